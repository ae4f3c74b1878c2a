"""`gguf-schema tables`."""

import argparse

from .arguments import Commands, command


def tables(args: argparse.Namespace) -> str:
    """Print a table of the specification, made from the schema."""
    from ..tables import FORMS, contents, table

    return FORMS[args.format](contents() if args.name is None else table(args.name))


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, tables)
    added.add_argument("name", metavar="NAME", nargs="?", help="the table; without one, a list of all")
    added.add_argument("--format", choices=("markdown", "json", "csv"), default="markdown", help="default: markdown")
