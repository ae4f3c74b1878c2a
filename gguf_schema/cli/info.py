"""`gguf-schema info`."""

import argparse

from .arguments import FILE_OR_DEMO, Commands, model_command
from .streams import whole_model


def info(args: argparse.Namespace) -> str:
    """Print what is in a file; of a shard, what is in all of its model."""
    from ..summary import summary_json, summary_text

    with whole_model(args) as opened:
        return summary_json(opened) if args.json else summary_text(opened)


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, info, FILE_OR_DEMO, "?")
    added.add_argument("--json", action="store_true", help="as one JSON document")
