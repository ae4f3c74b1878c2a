"""The command `gguf-schema`: one function a subcommand. stdout is the answer, stderr is talk.

Exit status: 0 fine; 1 the answer is no; 2 usage, or a file that cannot be read; 130 interrupted; 141 nobody reads.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from .demo import demo_model
from .dump import dump_json, dump_markdown, dump_text
from .errors import GGUFError
from .file import Model, open
from .summary import summarize, summary_text
from .terminal import printable


def info(args: argparse.Namespace) -> int:
    """Print what is in a file."""
    with _model(args) as model:
        print(json.dumps(summarize(model), indent=2) if args.json else summary_text(model))
    return 0


def dump(args: argparse.Namespace) -> int:
    """Print all metadata and tensor infos of a file."""
    with _model(args) as model:
        tensors = not args.no_tensors
        if args.data_offset:
            print(model.data_offset)
        elif args.data_alignment:
            print(model.alignment)
        elif args.json or args.json_array:
            print(dump_json(model, arrays=args.json_array, tensors=tensors))
        elif args.markdown:
            print(dump_markdown(model, tensors=tensors))
        else:
            print(dump_text(model, tensors=tensors))
    return 0


def _model(args: argparse.Namespace) -> Model:
    """The file that the arguments name: a path, "-" for standard input, nothing for the demo model."""
    source = demo_model() if args.file is None else sys.stdin.buffer.read() if args.file == "-" else args.file
    model = open(source, check=not args.no_check)
    model.name = {None: "<demo>", "-": "<stdin>"}.get(args.file, args.file)
    return model


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gguf-schema", description="Look into GGUF files.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: object, name: str, file_help: str, file_nargs: str | None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        added.add_argument("file", metavar="FILE", nargs=file_nargs, help=file_help)
        added.add_argument("--no-check", action="store_true", help="read a file that is ambiguous or unsafe, too")
        added.set_defaults(function=function)
        return added

    added = command(info, "info", "a GGUF file; '-' is standard input; without one, a built-in demo model", "?")
    added.add_argument("--json", action="store_true", help="as one JSON document")

    added = command(dump, "dump", "a GGUF file; '-' is standard input", None)
    added.add_argument("--no-tensors", action="store_true", help="leave the tensors out")
    form = added.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as one JSON document, arrays left out")
    form.add_argument("--markdown", action="store_true", help="as a Markdown page")
    form.add_argument("--data-offset", action="store_true", help="only the byte where the tensor data starts")
    form.add_argument("--data-alignment", action="store_true", help="only the alignment in bytes")
    added.add_argument("--json-array", action="store_true", help="as one JSON document, arrays included")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process); returns the exit status."""
    args = _parser().parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status: int = args.function(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads has enough. Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (GGUFError, OSError) as error:
        name = "the demo model" if args.file is None else args.file
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        print(f"gguf-schema: {printable(name)}: {printable(message)}", file=sys.stderr)
        return 2
