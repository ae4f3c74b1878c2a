"""`gguf-schema diff`."""

import argparse

from ..errors import GGUFError
from ..file import Model
from .arguments import FILE, Commands, UsageError, command
from .streams import opened, reason


def diff(args: argparse.Namespace) -> tuple[str | None, int]:
    """Print what differs between two models: metadata by key, tensors by name. Exit status 1 if anything does."""
    from ..diff import differences, is_note
    from ..diff.text import as_json, as_text
    from ..progress import progress

    if args.old == args.new == "-":
        raise UsageError("standard input can be one of the files, not both")
    with _opened(args.old, args.no_check) as old, _opened(args.new, args.no_check) as new, progress("diff") as show:
        found = list(differences(old, new, args.data, show))
        text = as_json(old.name, new.name, found, args.data) if args.json else as_text(old.name, new.name, found)
    return text or None, int(not all(map(is_note, found)))


def _opened(file: str, no_check: bool) -> Model:
    """One of the files; errors say which."""
    try:
        return opened(file, no_check)
    except (GGUFError, OSError) as error:
        raise GGUFError(f"{file}: {reason(error)}") from None


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, diff)
    added.add_argument("old", metavar="OLD", help=FILE)
    added.add_argument("new", metavar="NEW", help="another one")
    added.add_argument(
        "--data", action=argparse.BooleanOptionalAction, default=True, help="compare the tensors' data, too (default)"
    )
    added.add_argument("--json", action="store_true", help="as one JSON document")
    added.add_argument("--no-check", action="store_true", help="read refused files, too; say on stderr why they were")
