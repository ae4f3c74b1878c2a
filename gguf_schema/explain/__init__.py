"""Why a file cannot be read or is refused: how far it can be read, what stands there, what should, and what it may be.

`causes` has the guesses, `text` the words.
"""

from typing import Any, NamedTuple

from ..annotate import Entry, readable
from ..errors import GGUFError
from ..file import Model, any_source
from ..limits import MAX_NESTING
from ..schema import GGUFStructs, sniff, structs
from ..sources import Reader, Source
from ..validate import WITHOUT_DATA, Fault, faults
from ..validate.rule import WARNING
from ..walk import kind, locate
from .causes import COUNTS, Failure, likely_causes, other_layout

SHOWN_BEFORE, SHOWN_AFTER = 16, 48
"""Bytes shown around the place of a fault."""


class Explanation(NamedTuple):
    """What is wrong with a file.

    Attributes:
        error: The fault, with path and offset; None for a file that can be opened.
        warnings: Of a file that can be opened what is odd about it.
        entries: The fields that were read before the field at fault, in the order of the bytes.
        start: Absolute offset of the first byte in `found`.
        found: Bytes around the fault.
        expected: What should stand there, from the schema; empty where the fault is in no one field.
        causes: What may have happened, the likeliest first.
    """

    error: GGUFError | None
    warnings: list[Fault]
    entries: list[Entry]
    start: int
    found: bytes
    expected: str
    causes: list[str]


def explain(source: Any) -> Explanation:
    """Explain why `open` refuses a file.

    Args:
        source: A path, a bytes-like object, or a binary file object.

    Raises:
        OSError: The path cannot be read.
    """
    opened = any_source(source)
    try:
        layout, entries, error = _read(opened)
        if error is None:
            odd = [fault for fault in faults(opened, WITHOUT_DATA) if fault.severity == WARNING]
            errors = [GGUFError(fault.message, fault.path, fault.start) for fault in odd[:1]]
            causes = [cause for error in errors for cause in other_layout(Failure(opened, layout, error, []))]
            return Explanation(None, odd, entries, 0, b"", "", causes)
        offset = min(error.offset or 0, opened.size)
        start = max(0, offset - SHOWN_BEFORE)
        found = opened.read_at(start, offset + SHOWN_AFTER - start)
        causes = list(likely_causes(Failure(opened, layout, error, entries)))
        expected = _expected(layout or structs(), error.path)
        before = _read_before(entries, error, offset)
        return Explanation(error, [], before, start, found, expected, causes)
    finally:
        opened.close()


def _read(source: Source) -> tuple[GGUFStructs | None, list[Entry], GGUFError | None]:
    """The layout, the leaves that can be read, and the first fault."""
    reader = Reader(source)
    try:
        layout = sniff(reader)
    except GGUFError as error:
        return None, [], error
    try:
        errors: list[Any] = Model(source, check=False, max_nesting=MAX_NESTING).faults()
    except GGUFError as failure:
        errors = [failure]
    if not errors:
        return layout, [], None
    return layout, [entry for entry in readable(source, layout) if entry.is_leaf], errors[0]


def _read_before(entries: list[Entry], error: GGUFError, offset: int) -> list[Entry]:
    """The fields before the one at fault; all where a count is at fault, because the file goes on behind it."""
    return [entry for entry in entries if entry.start < offset or not offset or error.path in COUNTS]


def _expected(layout: GGUFStructs, path: str) -> str:
    """What the schema says of a field; of one that may be of several types only what it is for."""
    field = locate(layout.gguf, path)
    if field is None:
        return ""
    return field.docs if kind(field) == "switch" else ": ".join(filter(None, (kind(field), field.docs)))
