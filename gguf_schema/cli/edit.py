"""`gguf-schema edit`."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GGUFError
from .arguments import Commands, UsageError
from .editing import add_command, in_its_folder, mend, run
from .streams import named, say

if TYPE_CHECKING:
    from ..edit import Edit


LARGEST = 1 << 26
"""Bytes of a list of edits: what is read of one takes ten times as much memory."""

LISTS = (".toml", ".json")
"""What no new GGUF file is called."""


def edit(args: argparse.Namespace) -> tuple[str | None, int]:
    """Do a list of edits, in a new file or in place; undo the last edit in place; mend a file after a crash."""
    if args.undo or args.recover:
        if args.words or args.dry_run or args.reserve is not None:
            raise UsageError("--undo and --recover go with a FILE alone")
        if args.file == "-":
            raise UsageError("standard input cannot be mended, nor is there an edit of it to undo")
        mend(args.file) if args.recover else _undo(args.file)
        return None, 0
    if args.file == "-" and "-" in args.words[1:]:
        raise UsageError("standard input can be IN or the list of edits, not both")
    return run(args, _edits, lambda word: word.lower().endswith(LISTS), is_list=True)


def _undo(file: str) -> None:
    from ..edit import undo
    from ..progress import progress

    with progress(file) as show, in_its_folder(file):
        undo(file, show)
    say(file, "the file is as it was before its last edit")


def _edits(words: Sequence[str]) -> "list[Edit]":
    from ..edit.lists import edits_of

    if not words:
        return []
    if len(words) > 1:
        raise UsageError(f"expected one list of edits, found {' '.join(words)}")
    (name,) = words
    if name == "-":
        stdin: Any = named(name)
        data, name, is_toml = stdin.read(LARGEST + 1), "standard input", None
    else:
        with open(name, "rb") as file:
            data = file.read(LARGEST + 1)
        is_toml = name.lower().endswith(".toml") if name.lower().endswith(LISTS) else None
    if len(data) > LARGEST:
        raise UsageError(f"{name}: no list of edits: it has more than {LARGEST} bytes")
    try:
        return edits_of(data, is_toml, os.path.dirname(name))
    except GGUFError as error:
        raise UsageError(f"{name}: {error}") from None


def add(commands: Commands) -> None:
    """Add the command."""
    from ..edit.lists import EXAMPLE

    added = add_command(commands, edit, "EDITS", "EDITS: a list of edits, TOML or JSON; '-' is standard input")
    added.formatter_class = argparse.RawDescriptionHelpFormatter
    added.epilog = f"A list of edits, in TOML:\n\n{EXAMPLE}"
    mending = added.add_mutually_exclusive_group()
    mending.add_argument("--undo", action="store_true", help="put the file as it was before its last edit in place")
    mending.add_argument("--recover", action="store_true", help="mend the file, an edit of which was interrupted")
