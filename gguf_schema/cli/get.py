"""`gguf-schema get`."""

import argparse
import json
import sys

from .arguments import Commands, model_command
from .streams import model, say, whole_model


def get(args: argparse.Namespace) -> str | list[bytes] | tuple[None, int]:
    """Print the value of a key: strings as they are, escaped on a terminal, or JSON. Exit status 1: none there."""
    from ..edit.types import type_text
    from ..enums import GGUFValueType
    from ..keys import SPLIT_KEYS
    from ..terminal import perhaps, printable
    from ..values import exact_json

    reader = model if args.key in SPLIT_KEYS else whole_model  # those tell of the file, not of the model
    with reader(args) as opened:
        pair = next((pair for pair in opened.metadata.pairs if pair.key == args.key), None)
        if pair is None:
            say(args.file, f"there is no key {args.key!r}{perhaps(args.key, opened.metadata)}")
            return None, 1
        if args.type:
            return type_text(pair.type)
        value = exact_json(pair.type, pair.value)
        if args.json:
            return json.dumps({"key": pair.key, "type": type_text(pair.type), "value": value}, allow_nan=False)
        if not isinstance(value, str) or pair.type is not GGUFValueType.STRING:
            return json.dumps(value, allow_nan=False)
        if args.raw:
            return [value.encode("utf-8", "surrogateescape")]
        if sys.stdout is not None and sys.stdout.isatty():
            return "\n".join(map(printable, value.split("\n")))
        return [value.encode("utf-8", "surrogateescape") + b"\n"]


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, get)
    added.add_argument("key", metavar="KEY", help="the key")
    form = added.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as one JSON document: key, type and value")
    form.add_argument(
        "--raw", action="store_true", help="the bytes of a string as they are, for a file that `set KEY=@FILE` takes"
    )
    form.add_argument("--type", action="store_true", help="the type instead, as `set` takes it")
