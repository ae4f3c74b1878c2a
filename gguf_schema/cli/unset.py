"""`gguf-schema unset`."""

import argparse

from .arguments import Commands
from .editing import add_command, run


def unset(args: argparse.Namespace) -> tuple[str | None, int]:
    """Remove keys, in a new file or in place."""
    from ..edit import Unset

    return run(args, lambda words: [Unset(word) for word in words])


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, unset, "KEY", "KEY: a key that is there")
