"""`gguf-schema suite`."""

import argparse
import os

from .arguments import Commands, command


def suite(args: argparse.Namespace) -> str:
    """Write a suite of small files, each with one fault or one feature, and what a reader should make of it."""
    from ..suite.folder import files, write

    write(args.folder)
    return f"{len(files())} files; {os.path.join(args.folder, 'README.md')} says how to use them"


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, suite)
    added.add_argument("folder", metavar="DIR", help="a folder that is empty, not there, or holds an older suite")
