"""Text from a file, made safe to print: names and values in a hostile file may hold commands for the terminal."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_NAME = 200
"""Characters of a name that is looked for, or may be meant: comparing takes the square of them."""


LIKENESS = 0.8
"""Of names, one of which may be meant by the other, the least ratio of difflib."""


def printable(text: str) -> str:
    r"""The text with every character that is not printable written as Python's escape for it.

    Those are control characters (ESC, newlines, DEL, C1), what is invisible or turns the direction of writing (U+202E,
    U+200B), spaces other than the ASCII one, private and unassigned characters, and the lone surrogates that stand for
    bytes that are no UTF-8. Backslashes stay as they are: the result is for reading, not for reading back.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def perhaps(name: str, names: Iterable[str]) -> str:
    """What may have been meant by a name that is not there, as words behind a message; empty if nothing is near."""
    others = [other for other in names if len(other) <= LONGEST_NAME] if len(name) <= LONGEST_NAME else []
    near = get_close_matches(name, others, n=1, cutoff=LIKENESS)
    return f"; is {near[0]!r} meant?" if near else ""
