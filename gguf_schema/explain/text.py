"""An explanation in words."""

from ..annotate import LETTERS, Entry, value_text
from ..terminal import printable
from . import Explanation

SHOWN_FIRST, SHOWN_LAST = 4, 12
"""Fields shown of those that were read."""

WIDTH = 16
"""Bytes in a line."""


def explanation_text(explained: Explanation) -> str:
    """The explanation for people, as several paragraphs."""
    if explained.error is None:
        if not explained.warnings:
            return "nothing is wrong: the file can be opened"
        lines = [f"- {printable(f'{odd.path} at byte {odd.start}: {odd.message}')}" for odd in explained.warnings]
        lines += [f"likely cause: {printable(cause)}" for cause in explained.causes]
        return "\n".join(["the file can be opened, but something is odd:", *lines])
    parts = [printable(str(explained.error)), _read(explained), _bytes(explained)]
    if explained.expected:
        parts.append(f"expected there: {explained.expected}")
    for cause in explained.causes:
        parts.append(f"likely cause: {printable(cause)}")
    return "\n\n".join(filter(None, parts))


def _read(explained: Explanation) -> str:
    """The fields that were read, the middle ones left out."""
    entries = explained.entries
    first, last = entries[:SHOWN_FIRST], entries[max(SHOWN_FIRST, len(entries) - SHOWN_LAST) :]
    lines = [*map(_line, first), *map(_line, last)]
    if len(first) + len(last) < len(entries):
        lines.insert(len(first), f"{'…':>12} {len(entries) - len(first) - len(last):>12}  more fields")
    return "\n".join(["read before that (offset, size, field):", *lines]) if lines else ""


def _line(entry: Entry) -> str:
    return f"{entry.start:>12} {entry.end - entry.start:>12}  {entry.path}: {value_text(entry, LETTERS)}"


def _bytes(explained: Explanation) -> str:
    """The bytes around the fault, a bracket before the first byte of the field at fault."""
    assert explained.error is not None
    fault = explained.error.offset or 0
    lines = []
    for start in range(explained.start, explained.start + len(explained.found), WIDTH):
        data = explained.found[start - explained.start :][:WIDTH]
        shown = "".join(f"{'[' if start + index == fault else ' '}{byte:02x}" for index, byte in enumerate(data))
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
        lines.append(f"{start:>12} {shown:<{3 * WIDTH}}  {letters}")
    if explained.start + len(explained.found) <= fault:
        lines.append(f"{fault:>12} [the file ends here")
    return "\n".join(["bytes there:", *lines])
