"""`gguf-schema set`."""

import argparse
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .arguments import Commands, UsageError
from .editing import add_command, run

if TYPE_CHECKING:
    from ..edit import Set

WORDS_HELP = (
    "VALUE: a string as it is, @FILE for all that is in a file, byte by byte (@@… is a string that begins with "
    "one @), or JSON for any other type. The type of a key that is there stays unless a TYPE is given; a new one needs "
    "a TYPE, such as STRING, UINT32, or [FLOAT32]"
)

ASSIGNMENT = re.compile(r"(?P<key>[^=]*?)(:(?P<type>\[[^=]*\]|[A-Za-z]+[0-9]*))?=(?P<value>.*)", re.DOTALL)


def set(args: argparse.Namespace) -> tuple[str | None, int]:
    """Set values of keys, in a new file or in place."""
    return run(args, _edits, _is_assignment)


def _is_assignment(word: str) -> bool:
    """Whether it is one, and no path with a = somewhere."""
    found = ASSIGNMENT.fullmatch(word)
    return found is not None and not {"/", os.sep} & {*found["key"]}


def _edits(words: Sequence[str]) -> "list[Set]":
    return [_edit(word) for word in words]


def _edit(word: str) -> "Set":
    from ..edit import Set, Text, type_named
    from ..edit.values import text_of

    found = ASSIGNMENT.fullmatch(word)
    if found is None or not found["key"]:
        raise UsageError(f"expected KEY=VALUE or KEY:TYPE=VALUE, found {word!r}")
    value = found["value"]
    if value.startswith("@") and not value.startswith("@@"):
        if value == "@":
            raise UsageError(f"{word!r} names no file: @FILE is what is in a file, @@ a string that begins with @")
        value = text_of(value[1:])
    else:
        value = value.replace("@@", "@", 1) if value.startswith("@@") else value
    return Set(found["key"], Text(value), type_named(found["type"]) if found["type"] else None)


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, set, "KEY[:TYPE]=VALUE", WORDS_HELP)
