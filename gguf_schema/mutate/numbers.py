"""What follows when a number of the file is another one, by the kind of field."""

from collections.abc import Callable, Sequence

from .. import keys
from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..limits import DEFAULT_ALIGNMENT, MAX_DIMENSIONS
from ..schema import VERSIONS, structs
from .base import Base, Field, Pair
from .verdicts import (
    ACCEPT,
    MILD,
    UNKNOWN,
    VALUE_TYPES,
    Verdict,
    array_cut,
    both,
    is_zero,
    placed,
    read_on,
    reject,
    shaped,
    string_cut,
    too_many,
    unknown_element,
    warn,
)

LARGE_ALIGNMENT = 1 << 20


def version(base: Base, field: Field, new: int) -> Verdict:
    """Another version, which tells the byte order, too."""
    swapped = reversed_bytes(new, field.end - field.start)
    known = next((one for one in (new, swapped) if one in VERSIONS), None)
    if known is None:
        return reject("version-unknown")
    if structs(base.layout.order, known).count.sizeof() != base.layout.count.sizeof():
        return UNKNOWN
    if known == new:
        return ACCEPT
    counts = base.by_path["metadata_kv_count"], base.by_path["tensor_count"]
    for count, least in zip(counts, (base.least_pair, base.least_info), strict=True):
        read = reversed_bytes(count.value, count.end - count.start)
        if read * least > len(base.data) - counts[0].end:
            return too_many(read * least, len(base.data))
        if read:
            return UNKNOWN
    return ACCEPT


def reversed_bytes(value: int, width: int) -> int:
    """A number of so many bytes, read in the other order."""
    return int.from_bytes(value.to_bytes(width, "big"), "little")


def count(base: Base, field: Field, new: int) -> Verdict:
    """Another number of pairs, or of infos."""
    return (_pair_count if field.path == "metadata_kv_count" else _info_count)(base, field, new)


def _pair_count(base: Base, field: Field, new: int) -> Verdict:
    if new * base.least_pair > len(base.data) - field.end:
        return too_many(new * base.least_pair, len(base.data))
    if new < len(base.pairs):
        start = base.pairs[new].field.start
        if not base.infos:
            return ended(base, start)
        is_declared = any(pair.standard is keys.ALIGNMENT for pair in base.pairs[:new])
        alignment = base.alignment if is_declared else DEFAULT_ALIGNMENT
        return read_on(base, base.infos[0].field.place, start, alignment=alignment)
    if not base.infos and base.infos_end == len(base.data):
        return reject("number-cut")
    return UNKNOWN


def _info_count(base: Base, field: Field, new: int) -> Verdict:
    if new * base.least_info > len(base.data) - base.infos_start:
        return too_many(new * base.least_info, len(base.data))
    if new < len(base.infos):
        verdict = placed(base.data, base.infos[new].field.start, base.alignment, base.places[:new])
        return both(verdict, MILD if base.counts_layers else ACCEPT)
    more = new - len(base.infos)
    end = base.infos_end + more * base.least_info
    if end > len(base.data) or not is_zero(base.data[base.infos_end : end]):
        return UNKNOWN
    if more > 1:  # of zeros each is an info without a name
        return reject("tensor-name-twice")
    verdict, size = shaped(0, ())
    assert size is not None
    return both(warn("name-empty"), verdict, placed(base.data, end, base.alignment, [*base.places, (0, size)]))


def ended(base: Base, position: int) -> Verdict:
    """A file without tensors whose metadata ends at a position."""
    return UNKNOWN if is_zero(base.data[position:]) else warn("tail-nonzero")


def length(base: Base, field: Field, new: int) -> Verdict:
    """Another length of a string."""
    if new > len(base.data) - field.end:
        return string_cut(base, field)
    pending = reject(None) if field.kind == "key.len" and not new else UNKNOWN
    return _after(base, field.place + 2, field.end + new, pending)


def _after(base: Base, place: int, position: int, pending: Verdict = UNKNOWN) -> Verdict:
    """What follows when the leaf with this number is read from a position; there may be none."""
    if place < len(base.leaves):
        return read_on(base, place, position, pending=pending)
    return ended(base, position) if position < base.infos_end and not base.infos else pending


def value_type(base: Base, field: Field, new: int) -> Verdict:
    """Another type of a value whose bytes stay."""
    if new not in VALUE_TYPES:
        return reject("value-type-unknown")
    pair = base.pair_of(field)
    position = field.end
    size = len(base.data)
    type: ValueType = T(new)
    if new in base.sizes:
        position += base.sizes[new]
        if position > size:
            return reject("number-cut")
    elif new == T.STRING:
        position += base.length_width
        if position > size:
            return reject("number-cut")
        read = base.read(field.end, base.length_width)
        if read > size - position:
            return reject("last-string-cut" if base.is_last(field) else "string-cut")
        position += read
    else:
        position += base.type_width
        if position > size:
            return reject("number-cut")
        read = base.read(field.end, base.type_width)
        if read in VALUE_TYPES:
            return UNKNOWN
        if position + base.length_width > size:
            return unknown_element(None)
        return unknown_element(base.read(position, base.length_width), pair.standard is not keys.ALIGNMENT)
    verdict = retyped(base, pair, type)
    if new == T.BOOL and base.data[field.end] > 1:
        verdict = both(verdict, warn("bool-byte"))
    if position == pair.field.end:
        return verdict
    return _shifted(base, field, position, verdict)


def _shifted(base: Base, field: Field, position: int, verdict: Verdict) -> Verdict:
    """What follows when a value ends elsewhere, and its pair has a verdict of its own."""
    pair = base.pair_of(field)
    following = base.pairs.index(pair) + 1
    if following < len(base.pairs):
        place = base.pairs[following].field.place
    elif base.infos:
        place = base.infos[0].field.place
    else:
        return both(verdict, ended(base, position)) if position < base.infos_end else UNKNOWN
    pending = verdict if verdict.expected == "reject" else UNKNOWN
    alignment = 1 if pair.standard is keys.ALIGNMENT else None
    return read_on(base, place, position, pending=pending, alignment=alignment)


def retyped(base: Base, pair: Pair, type: ValueType) -> Verdict:
    """A pair with a value of another type, and everything around it as it was."""
    if pair.standard is keys.ALIGNMENT:
        return ACCEPT if type == T.UINT32 else reject("alignment-type")
    if pair.standard is not None and type not in (pair.standard.type, *pair.standard.also):
        return warn("key-type")
    if isinstance(type, ArrayType) and type.type == T.ARRAY:
        return warn("array-nested")
    return MILD if pair.is_own else ACCEPT


def array_type(base: Base, field: Field, new: int) -> Verdict:
    """Another type of an array's elements, whose bytes stay."""
    length = base.leaves[field.place + 1]
    if new not in VALUE_TYPES:
        return unknown_element(length.value)
    left = len(base.data) - length.end
    if length.value * base.least[new] > left:
        return array_cut(base, length, new, length.value, left)
    pair = base.pair_of(field)
    verdict = retyped(base, pair, ArrayType(T(new))) if field.path.count("[") == 1 else MILD
    if length.value and new == T.STRING:
        read = base.read(length.end, base.length_width)
        if read > left - base.length_width:
            is_last = length.value == 1 and field.path.count("[") == 1 and base.is_last(length)
            return reject("last-string-cut" if is_last else "string-cut")
        return UNKNOWN
    if length.value and new == T.ARRAY:
        read = base.read(length.end, base.type_width)
        if read in VALUE_TYPES:
            return UNKNOWN
        return unknown_element(base.read(length.end + base.type_width, base.length_width))
    end = length.end + length.value * base.sizes.get(new, 0)
    if new == T.BOOL and max(base.data[length.end : end], default=0) > 1:
        verdict = both(verdict, warn("bool-byte"))
    if end == pair.field.end:
        return verdict
    return _shifted(base, field, end, verdict) if field.path.count("[") == 1 else UNKNOWN


def array_length(base: Base, field: Field, new: int) -> Verdict:
    """Another number of elements of an array."""
    type = base.leaves[field.place - 1].value
    left = len(base.data) - field.end
    if new * base.least[type] > left:
        return array_cut(base, field, type, new, left)
    place = _place_after(base, field)
    end = base.leaves[place - 1].end
    if type in base.sizes:
        return _after(base, place, field.end + new * base.sizes[type])
    if new < field.value:
        item = f"{field.path.removesuffix('.len')}.array[{new}]"
        start = next(leaf.start for leaf in base.leaves[field.place :] if leaf.path.startswith(item))
        return _after(base, place, start)
    if end + (base.length_width if type == T.STRING else base.type_width) > len(base.data):
        return reject("number-cut")
    if type == T.STRING:
        read = base.read(end, base.length_width)
        if read > len(base.data) - end - base.length_width:
            is_last = new == field.value + 1 and field.path.count("[") == 1 and base.is_last(field)
            return reject("last-string-cut" if is_last else "string-cut")
    return UNKNOWN


def _place_after(base: Base, field: Field) -> int:
    """The number of the first leaf after an array, by its length."""
    inside = f"{field.path.removesuffix('.len')}.array["
    place = field.place + 1
    while place < len(base.leaves) and base.leaves[place].path.startswith(inside):
        place += 1
    return place


def dimensions_number(base: Base, field: Field, new: int) -> Verdict:
    """Another number of dimensions."""
    if new * base.dimension_width > len(base.data) - field.end:
        return reject("dimensions-cut")
    pending = reject("dimensions-too-many") if new > MAX_DIMENSIONS else UNKNOWN
    return _after(base, field.place + 1 + field.value, field.end + new * base.dimension_width, pending)


def dimension(base: Base, field: Field, new: int) -> Verdict:
    """Another dimension."""
    index = base.index_of(field)
    axis = int(field.path[field.path.rindex("[") + 1 : -1])
    dimensions = list(base.infos[index].dimensions)
    dimensions[axis] = new
    return reshaped(base, index, base.infos[index].type, dimensions)


def tensor_type(base: Base, field: Field, new: int) -> Verdict:
    """Another type of a tensor."""
    index = base.index_of(field)
    return reshaped(base, index, new, base.infos[index].dimensions)


def offset(base: Base, field: Field, new: int) -> Verdict:
    """Another offset."""
    index = base.index_of(field)
    places = base.places
    places[index] = new, places[index][1]
    return placed(base.data, base.infos_end, base.alignment, places)


def reshaped(base: Base, index: int, type: int, dimensions: Sequence[int]) -> Verdict:
    """A tensor of another type, or with other dimensions."""
    verdict, size = shaped(type, dimensions)
    if size is None:
        return verdict
    places = base.places
    places[index] = places[index][0], size
    return both(placed(base.data, base.infos_end, base.alignment, places), verdict)


def alignment(base: Base, field: Field, new: int) -> Verdict:
    """Another alignment."""
    return both(aligned(new), placed(base.data, base.infos_end, new or 1, base.places))


def aligned(new: int) -> Verdict:
    """What must be said of an alignment."""
    if not new or (new.bit_count() != 1 and new % 8):
        return reject("alignment-value")
    if new < 8:
        return warn("alignment-small")
    if new.bit_count() != 1:
        return warn("alignment-multiple")
    return warn("alignment-large") if new > LARGE_ALIGNMENT else ACCEPT


def value(base: Base, field: Field, new: int) -> Verdict:
    """Another value."""
    return MILD if base.pair_of(field).is_own else ACCEPT


def boolean(base: Base, field: Field, new: int) -> Verdict:
    """Another BOOL."""
    return warn("bool-byte") if new > 1 else value(base, field, new)


def unheard(base: Base, field: Field, new: int) -> Verdict:
    """A field of which nothing is known here."""
    return UNKNOWN


JUDGES: dict[str, Callable[[Base, Field, int], Verdict]] = {
    "version": version,
    "count": count,
    "key.len": length,
    "name.len": length,
    "string.len": length,
    "value_type": value_type,
    "array.type": array_type,
    "array.len": array_length,
    "n_dimensions": dimensions_number,
    "dimension": dimension,
    "tensor_type": tensor_type,
    "offset": offset,
    "alignment": alignment,
    "integer": value,
    "float": value,
    "bool": boolean,
    "other": unheard,
}
"""Kind of field → what is expected if its number becomes another."""
