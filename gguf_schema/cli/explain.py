"""`gguf-schema explain`."""

import argparse

from .arguments import FILE, Commands, command
from .streams import UNREADABLE, named


def explain(args: argparse.Namespace) -> tuple[str, int]:
    """Print why a file cannot be read: how far it can, what stands there, what should, and a likely cause."""
    from ..explain import explain as explained
    from ..explain.text import explanation_text

    found = explained(named(args.file))
    return explanation_text(found), 0 if found.error is None else UNREADABLE


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, explain)
    added.add_argument("file", metavar="FILE", help=FILE)
