"""`gguf-schema map`."""

import argparse
import os

from ..errors import GGUFError
from .arguments import FILE_OR_DEMO, Commands, UsageError, byte_offset, model_command, positive
from .streams import model, say


def map(args: argparse.Namespace) -> str | None:
    """Print which field every byte of a file belongs to."""
    from .. import annotate

    if args.html is not None and (args.json or args.hex or args.depth is not None):
        raise UsageError("--html goes with no other option than --all and --no-check")
    if args.json and (args.hex or args.depth is not None):
        raise UsageError("--json has all leaves, with neither --depth nor --hex")
    with model(args) as opened:
        if args.at is not None:
            mapped, wanted = annotate.at(opened, args.at), f"byte {args.at}: it ends at byte {opened.size}"
        elif args.where is not None:
            mapped, wanted = annotate.where(opened, args.where), f"field {args.where}"
        else:
            mapped, wanted = annotate.entries(opened, annotate.everything if args.all else annotate.short), "bytes"
        if not mapped:
            raise GGUFError(f"the file has no {wanted}")
        if args.html is not None:
            from ..page import map_html

            return _saved(args.file, args.html, map_html(opened, mapped))
        if args.json:
            return annotate.map_json(opened, mapped)
        return annotate.map_text(opened.source, mapped, depth=args.depth, with_hex=args.hex)


def _saved(file: str | None, target: str, page: str) -> str | None:
    """Write the page of a file; what is left to print: all of it if the target is "-", else nothing."""
    from ..targets import save

    if target == "-":
        return page
    try:
        if not _may_be_replaced(target):
            raise GGUFError(f"{target} is there, and is no page; it is not overwritten")
        save(target, [page.encode()])
    except OSError as error:
        raise GGUFError(f"cannot write {target}: {error.strerror or error}") from None
    say(file, f"the page is {target}, {len(page)} bytes")
    return None


def _may_be_replaced(path: str) -> bool:
    """Whether nothing is there, or a page: not the model that is read, nor anything else that was named by mistake."""
    from ..page import START

    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        return file.read(len(START)) in (b"", START)


def add(commands: Commands) -> None:
    """Add the command."""
    added = model_command(commands, map, FILE_OR_DEMO, "?")
    added.add_argument("--json", action="store_true", help="as one JSON document: a record for each leaf")
    added.add_argument("--depth", type=positive, metavar="N", help="levels of the tree that are shown")
    added.add_argument("--hex", action="store_true", help="show the first bytes of each field")
    added.add_argument("--all", action="store_true", help="divide long arrays, too")
    one = added.add_mutually_exclusive_group()
    one.add_argument(
        "--at", type=byte_offset, metavar="OFFSET", help="only the fields that this byte belongs to; 0x… is hex"
    )
    one.add_argument(
        "--where", metavar="PATH", help="only the field at this path, or of this key or tensor, and what is inside it"
    )
    one.add_argument("--html", metavar="OUT", help="as one HTML page, written to this file; '-' is standard output")
