"""Operations on numbers: the values that break readers, by the kind of field."""

from collections.abc import Callable
from functools import partial

from ..blocks import block_sizes
from ..enums import GGMLQuantizationType
from ..enums import GGUFValueType as T
from ..generate import Seeded
from ..layout import align_up
from ..schema import VERSIONS
from .base import Base, Field
from .change import Change, Operation, below
from .numbers import JUDGES, reversed_bytes

Choose = Callable[[Base, Field, Seeded], int | None]
"""The new number of a field; None where there is none."""


def set_number(choose: Choose, base: Base, field: Field, draw: Seeded) -> Change | None:
    """Put another number into a field."""
    new = choose(base, field, draw)
    width = field.end - field.start
    if new is None or new == field.value or not 0 <= new < 1 << 8 * width:
        return None
    return Change(((field.start, field.end, base.number(new, width)),), JUDGES[field.kind](base, field, new))


def _exactly(number: int, base: Base, field: Field, draw: Seeded) -> int:
    return number


def _by(step: int, base: Base, field: Field, draw: Seeded) -> int:
    """A step away, around the ends of the number."""
    return int(field.value + step) % (1 << 8 * (field.end - field.start))


def _largest(base: Base, field: Field, draw: Seeded) -> int:
    return (1 << 8 * (field.end - field.start)) - 1


def _sign(base: Base, field: Field, draw: Seeded) -> int:
    """The bit that is the sign to whoever reads a signed number."""
    return 1 << 8 * (field.end - field.start) - 1


def _left(step: int, base: Base, field: Field, draw: Seeded) -> int:
    """As many bytes as are left."""
    return len(base.data) - field.end + step


def _wraps_position(base: Base, field: Field, draw: Seeded) -> int:
    """What added to the position makes 0."""
    return (1 << 8 * (field.end - field.start)) - field.end


def _wraps_padding(base: Base, field: Field, draw: Seeded) -> int:
    """What rounded up to the alignment makes 0."""
    return (1 << 8 * (field.end - field.start)) - base.alignment // 2


def _wraps_size(base: Base, field: Field, draw: Seeded) -> int | None:
    """The least that multiplied by the size of an item is more than the number can hold."""
    if field.kind == "array.len":
        size = base.least[base.leaves[field.place - 1].value]
    elif field.kind == "n_dimensions":
        size = base.dimension_width
    else:
        size = base.least_pair if field.path == "metadata_kv_count" else base.least_info
    return -(-(1 << 8 * (field.end - field.start)) // size) if size > 1 else None


def _swapped(base: Base, field: Field, draw: Seeded) -> int:
    """The same bytes in the other order."""
    return reversed_bytes(field.value, field.end - field.start)


def _drawn(base: Base, field: Field, draw: Seeded) -> int:
    """Any number, small ones as often as large ones."""
    return draw.getrandbits(draw.integer(1, 8 * (field.end - field.start)))


def _drawn_type(base: Base, field: Field, draw: Seeded) -> int:
    """A number that is no value type."""
    return max(T) + 1 + draw.getrandbits(draw.integer(4, 8 * (field.end - field.start) - 1))


def _drawn_bool(base: Base, field: Field, draw: Seeded) -> int:
    return 2 + below(draw, 254)


def _wraps_elements(base: Base, field: Field, draw: Seeded) -> int | None:
    """A dimension whose product with the others is 2^64, or a little more."""
    others = _rest(base, field)
    return -(-(1 << 64) // others) if others > 1 else None


def _rest(base: Base, field: Field) -> int:
    """The elements of a tensor in one step of a dimension."""
    info = base.infos[base.index_of(field)]
    product = 1
    for axis, dimension in enumerate(info.dimensions):
        product *= 1 if field.path.endswith(f"[{axis}]") else dimension
    return product


def _wraps_bytes(base: Base, field: Field, draw: Seeded) -> int | None:
    """A dimension of whole blocks whose bytes are 2^64, or a little more."""
    return _for_bytes(base, field, 1 << 64)


def _wraps_padded(base: Base, field: Field, draw: Seeded) -> int | None:
    """A dimension whose bytes are just below 2^64, so that the padded size wraps."""
    found = _for_bytes(base, field, 1 << 64)
    return None if found is None else found - block_sizes()[base.infos[base.index_of(field)].type][0]


def _for_bytes(base: Base, field: Field, wanted: int) -> int | None:
    block_size, type_size = block_sizes()[base.infos[base.index_of(field)].type]
    rest = _rest(base, field)
    return -(-wanted // (rest * type_size)) * block_size if rest else None


def _just_too_large(base: Base, field: Field, draw: Seeded) -> int | None:
    """One more block than is there after the tensor begins."""
    info = base.infos[base.index_of(field)]
    return _for_bytes(base, field, len(base.data) - base.data_offset - info.offset + 1)


def _offset_by(step: int, base: Base, field: Field, draw: Seeded) -> int:
    """An offset that is so many alignments away."""
    return int(field.value + step * base.alignment)


def _offset_of_other(base: Base, field: Field, draw: Seeded) -> int | None:
    """Where another tensor begins."""
    return next((info.offset for info in base.infos if info.offset != field.value), None)


def _offset_at_end(step: int, base: Base, field: Field, draw: Seeded) -> int:
    """The end of the file, or so many alignments away."""
    return align_up(max(0, len(base.data) - base.data_offset), base.alignment) + step * base.alignment


def _offset_to_head(base: Base, field: Field, draw: Seeded) -> int:
    """What wraps around 2^64 to the first byte of the file."""
    return (1 << 64) - base.data_offset


def _offset_wraps(base: Base, field: Field, draw: Seeded) -> int:
    """The last multiple of the alignment, which wraps as soon as anything is added."""
    return (1 << 64) - base.alignment


def _offset_drawn(base: Base, field: Field, draw: Seeded) -> int:
    """A multiple of the alignment, small ones as often as large ones."""
    return draw.getrandbits(draw.integer(1, 64)) // base.alignment * base.alignment


def _alignment_drawn(base: Base, field: Field, draw: Seeded) -> int:
    """A power of two, or a multiple of it."""
    return draw.one_of((1, 3, 5)) << draw.integer(0, 29)


def _times(factor: int, base: Base, field: Field, draw: Seeded) -> int:
    return int(field.value * factor)


def _half(base: Base, field: Field, draw: Seeded) -> int:
    return int(field.value // 2)


def number(name: str, choose: Choose, is_drawn: bool = False) -> Operation:
    """The operation that puts in what is chosen."""
    return Operation(name, partial(set_number, choose), is_drawn)


def exactly(prefix: str, *numbers: int) -> tuple[Operation, ...]:
    """An operation for each number."""
    return tuple(number(f"{prefix}={shown(one)}", partial(_exactly, one)) for one in numbers)


def shown(value: int) -> str:
    """Powers of two above the small ones as such."""
    bits = value.bit_length() - 1
    return f"2^{bits}" if value >= 1 << 16 and value == 1 << bits else str(value)


def steps(prefix: str) -> tuple[Operation, ...]:
    """One more, one less, none, the largest, the sign, the other byte order, and any."""
    return (
        number(f"{prefix}+1", partial(_by, 1)),
        number(f"{prefix}-1", partial(_by, -1)),
        number(f"{prefix}-zero", partial(_exactly, 0)),
        number(f"{prefix}-max", _largest),
        number(f"{prefix}-sign", _sign),
        number(f"{prefix}-swap-order", _swapped),
        number(f"{prefix}-any", _drawn, is_drawn=True),
    )


def extents(prefix: str) -> tuple[Operation, ...]:
    """What breaks lengths and counts."""
    return (
        *steps(prefix),
        number(f"{prefix}-left", partial(_left, 0)),
        number(f"{prefix}-left+1", partial(_left, 1)),
        number(f"{prefix}-left-1", partial(_left, -1)),
        *exactly(prefix, 1 << 31, 1 << 32),
        number(f"{prefix}-wraps-position", _wraps_position),
        number(f"{prefix}-wraps-padding", _wraps_padding),
    )


LENGTH = extents("length")
COUNT = (*extents("count"), number("count-wraps-size", _wraps_size))
DIMENSIONS_NUMBER = (
    *steps("dimensions"),
    *exactly("dimensions", 2, 4, 5, 8, 9, 65),
    number("dimensions-left", partial(_left, 0)),
    number("dimensions-wraps-size", _wraps_size),
)
VALUE_TYPE = (
    *exactly("type", *T, max(T) + 1, 255, 1 << 31, (1 << 32) - 1),
    number("type-swap-order", _swapped),
    number("type-unknown", _drawn_type, is_drawn=True),
)
DIMENSION = (
    *steps("dimension"),
    *exactly("dimension", 1, 1 << 31, 1 << 32, (1 << 63) - 1),
    number("dimension-wraps-elements", _wraps_elements),
    number("dimension-wraps-bytes", _wraps_bytes),
    number("dimension-wraps-padding", _wraps_padded),
    number("dimension-past-end", _just_too_large),
)
TENSOR_TYPE = (
    *exactly("type", *GGMLQuantizationType, max(GGMLQuantizationType) + 1, 153, (1 << 31) - 1, 1 << 31, (1 << 32) - 1),
    number("type-swap-order", _swapped),
    number("type-any", _drawn, is_drawn=True),
)
OFFSET = (
    *steps("offset"),
    *exactly("offset", 1 << 31, 1 << 32),
    number("offset+alignment", partial(_offset_by, 1)),
    number("offset-alignment", partial(_offset_by, -1)),
    number("offset-shared", _offset_of_other),
    number("offset-at-end", partial(_offset_at_end, 0)),
    number("offset-before-end", partial(_offset_at_end, -1)),
    number("offset-past-end", partial(_offset_at_end, 1)),
    number("offset-to-head", _offset_to_head),
    number("offset-wraps", _offset_wraps),
    number("offset-aligned", _offset_drawn, is_drawn=True),
)
ALIGNMENT = (
    *steps("alignment"),
    *exactly("alignment", 1, 2, 3, 4, 12, 24, 48, 1 << 21),
    number("alignment-twice", partial(_times, 2)),
    number("alignment-half", _half),
    number("alignment-other", _alignment_drawn, is_drawn=True),
)
VERSION = (*steps("version"), *exactly("version", VERSIONS[0], VERSIONS[-1], 1 << 16))
INTEGER = steps("value")
BOOL = (*exactly("bool", 0, 1, 2, 128, 255), number("bool-any", _drawn_bool, is_drawn=True))
