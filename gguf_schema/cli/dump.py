"""`gguf-schema dump`."""

import argparse

from .arguments import Commands, UsageError, model_command
from .streams import model


def dump(args: argparse.Namespace) -> str:
    """Print all metadata and tensor infos of a file."""
    from ..dump import dump_json, dump_markdown, dump_text

    if args.json_array and (args.markdown or args.data_offset or args.data_alignment):
        raise UsageError("--json-array goes with no other form than --json")
    with model(args) as opened:
        tensors = not args.no_tensors
        if args.data_offset:
            return str(opened.data_offset)
        if args.data_alignment:
            return str(opened.alignment)
        if args.json or args.json_array:
            return dump_json(opened, arrays=args.json_array, tensors=tensors)
        if args.markdown:
            return dump_markdown(opened, tensors=tensors)
        return dump_text(opened, tensors=tensors)


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, dump)
    added.add_argument("--no-tensors", action="store_true", help="leave the tensors out")
    form = added.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as one JSON document, arrays left out")
    form.add_argument("--markdown", action="store_true", help="as a Markdown page")
    form.add_argument("--data-offset", action="store_true", help="only the byte where the tensor data starts")
    form.add_argument("--data-alignment", action="store_true", help="only the alignment in bytes")
    added.add_argument("--json-array", action="store_true", help="as one JSON document, arrays included")
