"""What may have happened to a file that cannot be read.

Guesses are tried where they can be: a repair is named only if `open` takes the file with it, in memory.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import keys
from ..annotate import Entry, data_entries
from ..enums import GGUFValueType
from ..errors import FileKindError, GGUFError, ParseError, TruncatedError
from ..file import Model
from ..layout import align_up
from ..limits import MAX_NESTING
from ..schema import MAGIC, ORDER_NAMES, ORDERS, VERSIONS, GGUFStructs, structs
from ..sources import MemorySource, PatchedSource, Reader, Source

FAR = 1 << 18
"""Faults beyond this many bytes are not tried to be repaired: each try reads all that stands before."""

LIKELY = 1 << 30
"""Lengths up to this are taken for real; nobody writes longer strings (llama.cpp refuses them)."""

LENGTHS = range(256)
"""Lengths that are tried."""

COUNTS = ("tensor_count", "metadata_kv_count")
CHANGES = range(-3, 4)
"""By how much counts are tried to be wrong."""

MISLEADING = (".len", ".value_type", ".n_dimensions")
"""The ends of paths of fields after which, if they are damaged, something else seems to be wrong."""

STEERING = (*MISLEADING, ".value.type")
"""The ends of paths of fields on which depends where the next field is."""

SUSPECTED = 4
"""Fields before the fault that are tried."""

DIMENSIONS = range(1, 5)
"""Usual numbers of dimensions."""

MOST_COUNTED = 1 << 14
"""Pairs or infos that are counted."""

FIRST_MEGABYTE = 1 << 20
LARGEST_COPIED = 1 << 24
"""Bytes of a file that is tried with other line ends."""


class Failure(NamedTuple):
    """What is known of a failure.

    Attributes:
        source: The file.
        layout: The layout that its first bytes declare; None where they declare none.
        error: The fault; of a file that can be opened, the first odd thing.
        entries: The fields that could be read, in the order of the bytes.
    """

    source: Source
    layout: GGUFStructs | None
    error: GGUFError
    entries: list[Entry]


def likely_causes(failure: Failure) -> Iterator[str]:
    """What may have happened: the guesses of the first kind that has any."""
    for guess in (leading_bytes, changed_line_ends, other_layout, damaged_number, cut_short):
        if guesses := list(guess(failure)):
            yield from guesses
            return


class Rest:
    """A Source from a byte on."""

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start = source, start
        self.name, self.size = source.name, source.size - start

    def read_at(self, position: int, size: int) -> bytes:
        return self.source.read_at(self.start + position, size)

    def view(self, position: int, size: int) -> Any:
        return self.read_at(position, size), 0

    def close(self) -> None:
        """It is the source's to close."""


def quality(source: Source) -> int:
    """How sure it is that somebody meant a file: 0 if it does not open, has unusual names or tensors, or stray bytes.

    Else one more than the number of its standard keys and tensors.
    """
    try:
        model = Model(source, check=True, max_nesting=MAX_NESTING)
    except GGUFError:
        return 0
    names = [*model.metadata, *model.tensors]
    is_usual = all(tensor.block is not None and len(tensor.dimensions) in DIMENSIONS for tensor in model.tensors.infos)
    if not names or not all(map(str.isprintable, names)) or not is_usual or not _is_tidy(model):
        return 0
    architecture = str(model.metadata.get(keys.ARCHITECTURE.template, ""))
    return 1 + len(model.tensors) + sum(keys.find(key, architecture) is not None for key in model.metadata)


def _is_tidy(model: Model) -> bool:
    """Whether there are only zeros where no field is."""
    for entry in data_entries(model):
        if entry.is_leaf and entry.path.endswith(("padding", "tail")):
            size = entry.end - entry.start
            if size > FIRST_MEGABYTE or any(model.source.read_at(entry.start, size)):
                return False
    return True


def other_layout(failure: Failure) -> Iterator[str]:
    """The version or the byte order is another than the first bytes say."""
    layouts = [structs(order, version) for order in ORDERS for version in reversed(VERSIONS)]
    for layout in layouts:
        starts = _starts(layout, failure)
        if layout is failure.layout or not any(quality(PatchedSource(failure.source, 0, start)) for start in starts):
            continue
        name = f"{ORDER_NAMES[layout.order]}-endian, version {layout.version}"
        if failure.layout is None:
            yield f"the first bytes are damaged, or the version is newer: the rest can be read as {name}"
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
        if position > 0 and quality(Rest(failure.source, position)):
            yield f"{MAGIC.decode()} stands at byte {position}, and a whole file from there on"


def changed_line_ends(failure: Failure) -> Iterator[str]:
    """The file was copied as text: every line feed became a carriage return and a line feed."""
    source = failure.source
    if source.size <= LARGEST_COPIED:
        data = source.read_at(0, source.size)
        if data.count(b"\n") == data.count(b"\r\n") > 0 and quality(MemorySource(data.replace(b"\r\n", b"\n"))):
            yield "copied as text: every line feed (0a) has a carriage return (0d) before it; copy it as binary"


def damaged_number(failure: Failure) -> Iterator[str]:
    """A count, a length or a type is damaged: the one with which the most of the file makes sense."""
    best = 0, ""
    for entry in _suspects(failure):
        for value in _replacements(failure, entry):
            if value == entry.value:
                continue
            number = _number(failure.layout, entry)  # type: ignore[arg-type]
            string = failure.source.read_at(entry.end, value) if entry.path.endswith("len") else b""
            if not str(string, "utf-8", "replace").isprintable():
                continue
            found = quality(PatchedSource(failure.source, entry.start, number.build(value)))
            if found > best[0]:
                place = f"{entry.path} at byte {entry.start}"
                best = found, f"{place} is wrong: with {value!s} instead of {entry.value} all can be read"
    if best[0]:
        yield best[1]


def _suspects(failure: Failure) -> Iterator[Entry]:
    """The counts, and the last numbers that were read, on which depends where the next field is."""
    if failure.layout is None or (failure.error.offset or 0) > FAR:
        return
    error = failure.error
    if not error.path.endswith("value_type"):
        yield from (entry for entry in failure.entries if entry.path in COUNTS)
    steering = [entry for entry in failure.entries if entry.path.endswith(STEERING) and entry.path not in COUNTS]
    yield from (entry for entry in steering if entry.path == error.path)
    is_cut = isinstance(error, TruncatedError) and not error.declared
    if isinstance(error, ParseError) and not is_cut:
        before = [entry for entry in steering if entry.start < (error.offset or 0) and entry.path.endswith(MISLEADING)]
        yield from before[-SUSPECTED:]


def _replacements(failure: Failure, entry: Entry) -> Iterable[int]:
    """What may have stood there."""
    if entry.path in COUNTS:
        near = {entry.value + change for change in CHANGES} | {_countable(failure, entry)}
        return sorted(value for value in near if 0 <= value <= LIKELY)
    if entry.path.endswith("type"):
        return GGUFValueType
    return DIMENSIONS if entry.path.endswith("n_dimensions") else LENGTHS


def _number(layout: GGUFStructs, entry: Entry) -> Any:
    """The construct of a number."""
    if entry.path.endswith(("type", "n_dimensions")):
        return layout.uint32
    return layout.length if entry.path.endswith("len") else layout.count


def _countable(failure: Failure, count: Entry) -> int:
    """How many pairs or infos that somebody meant follow each other where the first must be."""
    layout = failure.layout
    assert layout is not None
    item, name = (layout.tensor_info, "name") if count.path == COUNTS[0] else (layout.metadata_kv, "key")
    reader = Reader(failure.source)
    reader.seek(_first_item(failure, count))
    found = 0
    with contextlib.suppress(GGUFError):
        while found < MOST_COUNTED:
            parsed = item.parse_stream(reader, max_nesting=MAX_NESTING)
            if not parsed[name].isprintable() or not parsed[name]:
                break
            found += 1
    return found


def _first_item(failure: Failure, count: Entry) -> int:
    """Where the first pair or info begins."""
    ends = [entry.end for entry in failure.entries if entry.path in COUNTS]
    pairs = [entry.end for entry in failure.entries if entry.path.startswith("metadata_kv[")]
    return max(ends + pairs) if count.path == COUNTS[0] else max(ends)


def cut_short(failure: Failure) -> Iterator[str]:
    """The end of the file is missing; or what says how long it is is damaged."""
    error, size = failure.error, failure.source.size
    if isinstance(error, TruncatedError):
        if error.declared > LIKELY:
            yield f"damaged: no file has {error.declared} of these; this number is wrong, or one before it"
        else:
            yield f"cut short: a download or a copy that was interrupted; the file has {size} bytes"
    elif getattr(error, "code", "") in ("data-missing", "data-start-missing"):
        if error.path.startswith("metadata_kv"):
            return  # the alignment, which the error tells
        model = Model(failure.source, check=False, max_nesting=MAX_NESTING)
        ends = [tensor.data_offset + (tensor.n_bytes or 0) for tensor in model.tensors.infos]
        if max(ends) > LIKELY * size or any(size in (end, align_up(end, model.alignment)) for end in ends):
            yield "damaged: an offset or a dimension is wrong; the other tensors end where the file does"
        else:
            yield f"cut short: a download or a copy that was interrupted; the file has {size} of {max(ends)} bytes"
