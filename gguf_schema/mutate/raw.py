"""Operations on bytes: files cut short, padding and data written over, what stands before and behind a file."""

from collections.abc import Callable
from functools import partial

from ..generate import Seeded
from .base import Base, Edit, Field, spliced
from .change import Change, Operation, below
from .verdicts import UNKNOWN, Verdict, placed, read_on, reject, too_many

MAGICS = {"lower": b"gguf", "reversed": b"FUGG", "older": b"ggjt", "zip": b"PK\x03\x04", "zero": bytes(4)}
MOST_DRAWN = 16
"""Bytes that are drawn at once."""


def arranged(base: Base, edits: tuple[Edit, ...]) -> Change:
    """Edits behind the infos, with the verdict on where the tensors are then."""
    return Change(edits, placed(spliced(base.data, edits), base.infos_end, base.alignment, base.places))


def cut(base: Base, end: int) -> Verdict:
    """What follows when a file ends at a byte."""
    if end >= base.infos_end:
        return placed(base.data[:end], base.infos_end, base.alignment, base.places)
    if not end:
        return reject("not-gguf")
    start = base.by_path["metadata_kv"].start
    if end < start:
        return reject("header-cut")
    if len(base.pairs) * base.least_pair > end - start:
        return too_many(len(base.pairs) * base.least_pair, end)
    if end >= base.infos_start and len(base.infos) * base.least_info > end - base.infos_start:
        return too_many(len(base.infos) * base.least_info, end)
    parts = [pair.field for pair in base.pairs] + [info.field for info in base.infos]
    whole = next(part for part in parts if end < part.end)
    return read_on(base, whole.place, whole.start, end)


def _cut_at(choose: Callable[[Field], int], base: Base, field: Field, draw: Seeded) -> Change | None:
    """The file ends at a byte of a field."""
    end = choose(field)
    return _cut(base, end) if field.end > field.start else None


def _cut(base: Base, end: int) -> Change | None:
    size = len(base.data)
    return Change(((end, size, b""),), cut(base, end)) if end < size else None


def _start(field: Field) -> int:
    return field.start


def _middle(field: Field) -> int:
    return (field.start + field.end) // 2


def _before_end(field: Field) -> int:
    return field.end - 1


def _cut_anywhere(base: Base, field: Field, draw: Seeded) -> Change | None:
    """The file ends at any byte."""
    return _cut(base, below(draw, len(base.data)))


def _magic(new: bytes, base: Base, field: Field, draw: Seeded) -> Change:
    """Another magic."""
    return Change(((field.start, field.end, new),), reject("not-gguf"))


def _magic_drawn(base: Base, field: Field, draw: Seeded) -> Change:
    """A bit of the magic is another."""
    wrong = int.from_bytes(field.value, "big") ^ 1 << below(draw, 8 * len(field.value))
    return _magic(wrong.to_bytes(len(field.value), "big"), base, field, draw)


def _overwritten(base: Base, field: Field, draw: Seeded) -> Change | None:
    """Some bytes behind the head are others."""
    if field.start == field.end:
        return None
    start = field.start + below(draw, field.end - field.start)
    new = draw.octets(min(field.end - start, draw.integer(1, MOST_DRAWN)))
    return arranged(base, ((start, start + len(new), new),))


def _filled(byte: int, base: Base, field: Field, draw: Seeded) -> Change | None:
    """All bytes behind the head are the same."""
    size = field.end - field.start
    return arranged(base, ((field.start, field.end, bytes([byte]) * size),)) if size else None


def _shorter(base: Base, field: Field, draw: Seeded) -> Change | None:
    """The first byte is not there."""
    return arranged(base, ((field.start, field.start + 1, b""),)) if field.end > field.start else None


def _longer(base: Base, field: Field, draw: Seeded) -> Change:
    """There is one byte more."""
    return arranged(base, ((field.start, field.start, b"\0"),))


def _dropped(base: Base, field: Field, draw: Seeded) -> Change | None:
    """None of the bytes is there."""
    return arranged(base, ((field.start, field.end, b""),)) if field.end > field.start else None


def _behind(tail: bytes, base: Base, field: Field, draw: Seeded) -> Change:
    """Bytes behind the end."""
    return arranged(base, ((field.end, field.end, tail),))


def _behind_drawn(base: Base, field: Field, draw: Seeded) -> Change:
    """Any bytes behind the end."""
    return _behind(draw.octets(draw.integer(1, MOST_DRAWN)), base, field, draw)


def _twice(base: Base, field: Field, draw: Seeded) -> Change:
    """The file behind itself."""
    return _behind(base.data, base, field, draw)


def _before(base: Base, field: Field, draw: Seeded) -> Change:
    """A byte before the beginning."""
    return Change(((0, 0, b"\0"),), reject("not-gguf"))


def _noise(base: Base, field: Field, draw: Seeded) -> Change:
    """Some bytes of the head are others, wherever."""
    start = below(draw, base.infos_end)
    new = draw.octets(min(base.infos_end - start, draw.integer(1, MOST_DRAWN)))
    return Change(((start, start + len(new), new),), UNKNOWN)


TRUNCATE = (
    Operation("truncate-start", partial(_cut_at, _start)),
    Operation("truncate-middle", partial(_cut_at, _middle)),
    Operation("truncate-end", partial(_cut_at, _before_end)),
)
MAGIC = (
    *(Operation(f"magic-{name}", partial(_magic, new)) for name, new in MAGICS.items()),
    Operation("magic-bit", _magic_drawn, is_drawn=True),
)
TAIL = (
    Operation("bytes-full", partial(_filled, 255)),
    Operation("bytes-any", _overwritten, is_drawn=True),
)
PADDING = (
    *TAIL,
    Operation("bytes-dropped", _dropped),
    Operation("bytes-shorter", _shorter),
    Operation("bytes-longer", _longer),
)
DATA = (*PADDING, Operation("bytes-zero", partial(_filled, 0)))
FILE = (
    Operation("tail-zero", partial(_behind, b"\0")),
    Operation("tail-one", partial(_behind, b"\1")),
    Operation("tail-zeros", partial(_behind, bytes(4096))),
    Operation("tail-any", _behind_drawn, is_drawn=True),
    Operation("file-twice", _twice),
    Operation("file-after-byte", _before),
    Operation("truncate-anywhere", _cut_anywhere, is_drawn=True),
    Operation("noise", _noise, is_drawn=True),
)
