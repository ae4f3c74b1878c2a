"""What may have happened to a file that cannot be read.

Guesses are tried where they can be: a repair is named only if `open` takes the file with it, in memory.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..annotate import Entry, data_entries
from ..enums import GGUFValueType
from ..errors import FileKindError, GGUFError, ParseError, TruncatedError
from ..file import Model
from ..limits import MAX_NESTING
from ..schema import MAGIC, ORDER_NAMES, ORDERS, VERSIONS, GGUFStructs, structs
from ..sources import Source

FAR = 1 << 18
"""Faults beyond this many bytes are not tried to be repaired: each try reads all that stands before."""

LIKELY = 1 << 30
"""Lengths up to this are taken for real; nobody writes longer strings (llama.cpp refuses them)."""

LENGTHS = range(256)
"""Lengths that are tried."""

COUNTS = ("tensor_count", "metadata_kv_count")
CHANGES = range(-3, 4)
"""By how much counts are tried to be wrong."""

FIRST_MEGABYTE = 1 << 20


class Failure(NamedTuple):
    """What is known of a failure.

    Attributes:
        source: The file.
        layout: The layout that its first bytes declare; None where they declare none.
        error: The fault.
        entries: The fields that could be read, in the order of the bytes.
    """

    source: Source
    layout: GGUFStructs | None
    error: GGUFError
    entries: list[Entry]


def likely_causes(failure: Failure) -> Iterator[str]:
    """What may have happened: the guesses of the first kind that has any."""
    for guess in (leading_bytes, changed_line_ends, other_layout, wrong_count, wrong_length, wrong_type, cut_short):
        if guesses := list(guess(failure)):
            yield from guesses
            return


class Patched:
    """A Source with some bytes replaced."""

    def __init__(self, source: Source, position: int, data: bytes) -> None:
        self.source = source
        self.name, self.size = source.name, source.size
        self.position, self.data = position, data

    def read_at(self, position: int, size: int) -> bytes:
        piece = bytearray(self.source.read_at(position, size))
        for index, byte in enumerate(self.data, self.position - position):
            if 0 <= index < len(piece):
                piece[index] = byte
        return bytes(piece)

    def view(self, position: int, size: int) -> Any:
        return self.read_at(position, size), 0

    def close(self) -> None:
        """It is the source's to close."""


def is_whole(source: Source) -> bool:
    """Whether it is a file that somebody meant: it opens, has readable names, and zeros where no field is."""
    try:
        model = Model(source, check=True, max_nesting=MAX_NESTING)
    except GGUFError:
        return False
    names = [*model.metadata, *model.tensors]
    if not names or not all(map(str.isprintable, names)):
        return False
    unnamed = [entry for entry in data_entries(model) if entry.is_leaf and entry.path.endswith(("padding", "tail"))]
    return not any(
        entry.end - entry.start > FIRST_MEGABYTE or any(source.read_at(entry.start, entry.end - entry.start))
        for entry in unnamed
    )


def other_layout(failure: Failure) -> Iterator[str]:
    """The version or the byte order is another than the first bytes say."""
    layouts = [structs(order, version) for order in ORDERS for version in reversed(VERSIONS)]
    for layout in layouts:
        starts = _starts(layout, failure)
        if layout is failure.layout or not any(is_whole(Patched(failure.source, 0, start)) for start in starts):
            continue
        name = f"{ORDER_NAMES[layout.order]}-endian, version {layout.version}"
        if failure.layout is None:
            yield f"the first bytes are damaged: the rest is that of a GGUF file ({name})"
        elif layout.order == failure.layout.order:
            yield f"wrong version: the rest is laid out as in version {layout.version}, not {failure.layout.version}"
        else:
            said = ORDER_NAMES[failure.layout.order]
            yield f"swapped byte order: the first numbers are {said}-endian, the rest is {name}"
        return


def _starts(layout: GGUFStructs, failure: Failure) -> Iterator[bytes]:
    """The first bytes of the file in another layout: without the counts, and with those that were read."""
    preamble = layout.preamble.build({"version": layout.version})
    yield preamble
    counts = [entry.value for entry in failure.entries if entry.path in COUNTS]
    with contextlib.suppress(GGUFError):  # a count may not fit
        yield preamble + b"".join(map(layout.count.build, counts))


def leading_bytes(failure: Failure) -> Iterator[str]:
    """Something stands before the file."""
    if isinstance(failure.error, FileKindError):
        position = failure.source.read_at(0, FIRST_MEGABYTE).find(MAGIC, 1)
        if position > 0:
            yield f"{MAGIC.decode()} stands at byte {position}: something was put before the file"


def changed_line_ends(failure: Failure) -> Iterator[str]:
    """The file was copied as text: every line feed became a carriage return and a line feed."""
    start = failure.source.read_at(0, FIRST_MEGABYTE)
    if start.count(b"\n") == start.count(b"\r\n") > 0:
        yield "copied as text: every line feed (0a) has a carriage return (0d) before it; copy it as binary"


def wrong_count(failure: Failure) -> Iterator[str]:
    """A count of pairs or tensors is a little too high or too low."""
    for entry in failure.entries:
        if entry.path in COUNTS and not failure.error.path.endswith("value_type"):
            yield from _repaired(failure, entry, [entry.value + change for change in CHANGES])


def wrong_length(failure: Failure) -> Iterator[str]:
    """The length of one of the last strings is wrong."""
    if not isinstance(failure.error, ParseError):
        return
    lengths = [entry for entry in failure.entries if entry.path.endswith(".len")]
    blamed = [entry for entry in lengths if entry.path == failure.error.path]
    for entry in [*blamed, *reversed(lengths[-2:])]:
        repairs = list(_repaired(failure, entry, LENGTHS))
        yield from repairs
        if repairs:
            return


def wrong_type(failure: Failure) -> Iterator[str]:
    """The type of a value is damaged."""
    for entry in failure.entries:
        if entry.path == failure.error.path and entry.path.endswith("value_type"):
            yield from _repaired(failure, entry, GGUFValueType)


def _repaired(failure: Failure, entry: Entry, values: Iterable[int]) -> Iterator[str]:
    """The first value with which the file can be opened."""
    if failure.layout is None or (failure.error.offset or 0) > FAR:
        return
    layout = failure.layout
    numbers = {"count": layout.count, "len": layout.length, "type": layout.value_type}
    number = next(number for end, number in numbers.items() if entry.path.endswith(end))
    for value in values:
        if 0 <= value <= LIKELY and value != entry.value:
            string = failure.source.read_at(entry.end, value) if entry.path.endswith("len") else b""
            patched = Patched(failure.source, entry.start, number.build(value))
            if str(string, "utf-8", "replace").isprintable() and is_whole(patched):
                place = f"{entry.path} at byte {entry.start}"
                yield f"{place} is wrong: with {value!s} instead of {entry.value} all can be read"
                return


def cut_short(failure: Failure) -> Iterator[str]:
    """The end of the file is missing, or a length is nonsense."""
    is_missing_data = getattr(failure.error, "code", "") == "data-missing"
    if not is_missing_data and not isinstance(failure.error, TruncatedError):
        return
    declared = next((entry.value for entry in failure.entries if entry.path == failure.error.path), 0)
    if isinstance(declared, int) and declared > LIKELY:
        yield f"a damaged number: no file has {declared} of these"
    else:
        yield f"cut short: a download or a copy that was interrupted; the file has {failure.source.size} bytes"
