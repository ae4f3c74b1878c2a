"""A record beside a file: what it was before a change, as bytes and as ranges of what it is after it.

On disk it is a line with the format's name and the SHA-256 of all that follows, a line of JSON, and bytes.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import GGUFError
from ..targets import replacing

FIRST_LINE = "gguf-schema journal 1 {}\n"
LARGEST = 1 << 25
"""Bytes of a record at most: a larger one is neither written nor read."""

MOST_PARTS = 1 << 16
LARGEST_LINE = 64 * MOST_PARTS
"""Parts in a record at most, and bytes of the line that has them: JSON takes ten times as much when it is read."""

START = FIRST_LINE.partition("{}")[0].encode()


ADVICE = "nothing can be put back by it; make sure that the file beside it is whole, then remove it"
"""What to do about a record that is none."""


class Span(NamedTuple):
    """Bytes of a file: absolute offset of the first, and how many."""

    start: int
    size: int


class Identity(NamedTuple):
    """What a file is known by.

    Attributes:
        size: Bytes of it.
        checked: The ranges that are compared.
        sha256: Of those, put together.
    """

    size: int
    checked: tuple[Span, ...]
    sha256: str


def identity(size: int, parts: Iterable[tuple[int, bytes | bytearray]]) -> Identity:
    """The identity of a file of this size that has these bytes at these offsets."""
    ranges = []
    checksum = hashlib.sha256()
    for start, data in parts:
        ranges.append(Span(start, len(data)))
        checksum.update(data)
    return Identity(size, tuple(ranges), checksum.hexdigest())


Part = bytes | Span
"""A part of a file: bytes, or those of a range of another file."""


class Change(NamedTuple):
    """Bytes that are replaced by as many others.

    Attributes:
        start: Absolute offset of the first.
        old: As they were.
        new: As they become.
    """

    start: int
    old: bytes
    new: bytes


class Record(NamedTuple):
    """How to undo a change.

    Attributes:
        before: The file as it was.
        after: The file as it is.
        parts: The file as it was: bytes that it has no longer, and ranges of what it is.
        replaced: Of a change in place the bytes that stand where each of those stood; of others nothing.
        is_undo: Whether the change is itself the undoing of another one.
    """

    before: Identity
    after: Identity
    parts: tuple[Part, ...]
    replaced: tuple[bytes, ...] = ()
    is_undo: bool = False

    def changes(self) -> list[Change]:
        """What a change in place does."""
        starts = accumulate((size_of(part) for part in self.parts), initial=0)
        old = [(start, part) for start, part in zip(starts, self.parts, strict=False) if isinstance(part, bytes)]
        return [Change(start, part, new) for (start, part), new in zip(old, self.replaced, strict=True)]

    @property
    def is_in_place(self) -> bool:
        """Whether nothing moves."""
        return bool(self.replaced)


def in_place(size: int, windows: Sequence[Change]) -> Record:
    """The record of a change in place.

    Args:
        size: Bytes of the file.
        windows: The parts of the file that are looked at, in its order: what differs is there, and it is known by them.
    """
    parts: list[Part] = []
    replaced: list[bytes] = []
    position = 0
    for window in windows:
        for change in differences(window):
            parts += [Span(position, change.start - position), change.old]
            replaced.append(change.new)
            position = change.start + len(change.old)
    parts.append(Span(position, size - position))
    before = identity(size, ((window.start, window.old) for window in windows))
    after = identity(size, ((window.start, window.new) for window in windows))
    return Record(before, after, tuple(parts), tuple(replaced))


NEAR = 32
"""Equal bytes between two that differ, up to which both make one change: as much as a further change costs."""


MOST_CHANGES = 1 << 10
"""Changes in a window, about: where it is large, more equal bytes may stand between two that differ."""

PIECE = 1 << 18
"""Bytes that are compared at once."""


def differences(window: Change) -> list[Change]:
    """Where the old and the new bytes differ, in as few changes as are worth it."""
    start, old, new = window
    near = max(NEAR, len(old) // MOST_CHANGES)
    ranges: list[list[int]] = []
    for first, end in _differing(old, new, near):
        if ranges and first - ranges[-1][1] <= near:
            ranges[-1][1] = end
        else:
            ranges.append([first, end])
    return [Change(start + first, old[first:end], new[first:end]) for first, end in ranges]


def _differing(old: bytes, new: bytes, near: int) -> Iterator[tuple[int, int]]:
    """The ranges of bytes that differ, piece by piece; those in a piece stand further apart than is near."""
    for start in range(0, len(old), PIECE):
        was, becomes = (np.frombuffer(memoryview(data)[start : start + PIECE], np.uint8) for data in (old, new))
        differ = np.flatnonzero(was != becomes) + start
        if len(differ):
            breaks = np.flatnonzero(np.diff(differ) - 1 > near)
            firsts = differ[np.concatenate([[0], breaks + 1])].tolist()
            ends = (differ[np.concatenate([breaks, [len(differ) - 1]])] + 1).tolist()
            yield from zip(firsts, ends, strict=True)


def reverse(record: Record) -> Record:
    """The record of the opposite of a change in place."""
    new = iter(record.replaced)
    parts = tuple(next(new) if isinstance(part, bytes) else part for part in record.parts)
    replaced = tuple(part for part in record.parts if isinstance(part, bytes))
    return Record(record.after, record.before, parts, replaced, not record.is_undo)


def _line(record: Record) -> bytes:
    """The line of JSON."""
    fields = {
        "before": record.before,
        "after": record.after,
        "parts": [len(part) if isinstance(part, bytes) else part for part in record.parts],
        "in_place": record.is_in_place,
        "undo": record.is_undo,
    }
    return json.dumps(fields).encode() + b"\n"


def _payload(record: Record) -> list[bytes]:
    """What follows the line."""
    return [*(part for part in record.parts if isinstance(part, bytes)), *record.replaced]


def size_on_disk(record: Record) -> int:
    """The bytes of a record as it stands on disk."""
    return len(_first_line([])) + len(_line(record)) + sum(map(len, _payload(record)))


def to_bytes(record: Record) -> bytes:
    """The record as it stands on disk.

    Raises:
        GGUFError: It is too large to be read again.
    """
    line, payload = _line(record), _payload(record)
    data = b"".join([_first_line([line, *payload]), line, *payload])
    if len(data) > LARGEST or len(line) > LARGEST_LINE or len(record.parts) > MOST_PARTS:
        problem = f"the record of the change would be of {len(data)} bytes in {len(record.parts)} parts"
        raise GGUFError(f"{problem}; {LARGEST} and {MOST_PARTS} are the most")
    return data


def _first_line(body: Iterable[bytes]) -> bytes:
    """The format's name, and the checksum of all that follows."""
    checksum = hashlib.sha256()
    for part in body:
        checksum.update(part)
    return FIRST_LINE.format(checksum.hexdigest()).encode()


def load(path: str) -> Record:
    """Read a record; no more than `LARGEST` bytes.

    Raises:
        GGUFError: It is damaged, or none.
        OSError: It cannot be read.
    """
    if not os.path.isfile(path):  # a pipe would wait for whoever writes
        raise GGUFError(f"{path} is no file: {ADVICE}")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        first, line = (file.readline(LARGEST_LINE), file.readline(LARGEST_LINE)) if size <= LARGEST else (b"", b"")
        payload = file.read(size) if first else b""
    if first != _first_line([line, payload]):
        raise GGUFError(f"{path} is damaged, or no record of a change: {ADVICE}")
    try:
        record = _record(json.loads(line), payload)
        is_sound = _is_sound(record)
    except (KeyError, RecursionError, StopIteration, TypeError, ValueError):
        is_sound = False
    if not is_sound:
        raise GGUFError(f"{path} is no record of a change: {ADVICE}")
    return record


def _record(fields: Any, payload: bytes) -> Record:
    if len(fields["parts"]) > MOST_PARTS:
        raise ValueError("too many parts")
    sizes = [_number(part) for part in fields["parts"] if not isinstance(part, list)]
    sizes = sizes * (2 if fields["in_place"] else 1)
    if sum(sizes) != len(payload):
        raise ValueError("bytes are missing")
    given = _split(payload, sizes)
    parts = tuple(_span(part) if isinstance(part, list) else next(given) for part in fields["parts"])
    before, after = (
        Identity(_number(size), tuple(map(_span, ranges)), sha256)
        for size, ranges, sha256 in (fields["before"], fields["after"])
    )
    return Record(before, after, parts, tuple(given), bool(fields["undo"]))


def _span(given: Any) -> Span:
    start, size = given
    return Span(_number(start), _number(size))


def _number(given: Any) -> int:
    """An offset or a size."""
    if type(given) is not int or given < 0:  # True is an int
        raise ValueError(f"{given} is no number of bytes")
    return given


def _is_sound(record: Record) -> bool:
    """Whether all of the old file is there, no range is outside of its file or taken twice, and what is compared fits.

    So the old file is no larger than the new one and the record together, and what is compared may be held.
    """
    before, after = record.before, record.after
    spans = [(part, after.size) for part in (*record.parts, *after.checked) if isinstance(part, Span)]
    spans += [(span, before.size) for span in before.checked]
    is_inside = all(sum(span) <= size for span, size in spans)
    kept = sum(part.size for part in record.parts if isinstance(part, Span))
    is_of_one_size = before.size == after.size or not record.is_in_place
    checked = max(sum(map(size_of, known.checked)) for known in (before, after))
    is_whole = before.size == sum(map(size_of, record.parts)) and kept <= after.size
    return is_inside and is_of_one_size and checked <= LARGEST and is_whole


def write_durably(path: str, data: bytes, like: str) -> None:
    """Write a file that appears whole, once it is on the disk, with the owner and the permissions of another one."""
    with replacing(path, True, len(data), like=like) as file:
        write_at(file.fileno(), 0, data)


def write_at(handle: int, position: int, data: bytes) -> None:
    """Write all of some bytes at a position of an open file."""
    os.lseek(handle, position, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def read_at(handle: int, position: int, size: int) -> bytes:
    """Read bytes at a position of an open file; fewer where it ends."""
    os.lseek(handle, position, os.SEEK_SET)
    parts = []
    while size and (part := os.read(handle, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def size_of(part: Part) -> int:
    """Its bytes."""
    return len(part) if isinstance(part, bytes) else part.size


def _split(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Consecutive parts of these sizes."""
    ends: Any = accumulate(sizes, initial=0)
    return (data[start:end] for start, end in pairwise(ends))
