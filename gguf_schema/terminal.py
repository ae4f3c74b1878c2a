"""Text from a file, made safe to print: names and values in a hostile file may hold commands for the terminal."""

from collections.abc import Iterable


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
    """What may have been meant by a name that is not there, as words behind a message; empty if nothing is near.

    That is the name of which all but a quarter of the letters, in one place, is the same.
    """
    most = len(name) // 4
    near = [(_apart(name, other), other) for other in names if abs(len(name) - len(other)) <= most]
    apart, found = min(near, default=(most + 1, ""))
    return f"; is {found!r} meant?" if apart <= most else ""


def _apart(one: str, other: str) -> int:
    """The letters between what two names begin and end with alike."""
    start = _alike(one, other)
    rests = one[start:], other[start:]
    return max(map(len, rests)) - _alike(*(rest[::-1] for rest in rests))


def _alike(one: str, other: str) -> int:
    """The letters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (letter, its) in pairs if letter != its), min(len(one), len(other)))
