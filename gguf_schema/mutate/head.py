"""Operations on whole pairs and infos: removed, doubled, put in, swapped, with the counts kept or kept right."""

from collections.abc import Callable
from functools import partial

from .. import keys
from ..enums import ArrayType, GGMLQuantizationType, ValueType
from ..enums import GGUFValueType as T
from ..generate import Extent, Seeded, make
from ..layout import align_up
from ..limits import DEFAULT_ALIGNMENT, MAX_NESTING
from .base import Base, Edit, Field, Pair, growth, padding, repaired, spliced
from .change import Change, Operation
from .numbers import aligned, retyped
from .verdicts import ACCEPT, MILD, UNKNOWN, Verdict, both, placed, reject, shaped, too_many, warn

NEW_KEY, NEW_NAME = "mutate.new", "mutate.new.weight"
PYTHON_LEVELS = 1200
"""Levels of arrays that are more than Python's stack has room for."""


def counted(base: Base, path: str, step: int) -> Edit:
    """The count at a path, changed by a step."""
    field = base.by_path[path]
    return field.start, field.end, base.number(field.value + step, field.end - field.start)


def well_made(base: Base, edits: tuple[Edit, ...], verdict: Verdict) -> Change:
    """A change of the head that keeps everything around it in place."""
    return Change(repaired(base, edits), verdict)


def renamed(base: Base, pair: Pair, edits: tuple[Edit, ...]) -> Verdict:
    """What follows when a pair is no longer found under its key.

    Args:
        base: The file as it was.
        pair: The pair.
        edits: Those that take the key away, before the padding is repaired.
    """
    if pair.standard is keys.ALIGNMENT:
        data = spliced(base.data, repaired(base, edits))
        return placed(data, base.infos_end + growth(edits), DEFAULT_ALIGNMENT, base.places)
    if pair.standard is keys.ARCHITECTURE:
        return UNKNOWN if "split.no" in base.key_names else warn("architecture-missing")
    return MILD if pair.is_own else ACCEPT


def _remove_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """A pair is not there, and not counted."""
    edits = (counted(base, "metadata_kv_count", -1), (field.start, field.end, b""))
    verdict = renamed(base, base.pair_of(field), edits)
    if len(base.pairs) == 1 and verdict.rule == "architecture-missing":
        verdict = ACCEPT
    return well_made(base, edits, verdict)


def _lose_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """A pair is not there, but counted."""
    verdict = UNKNOWN
    if not base.infos and len(base.data) == base.infos_end:
        size = len(base.data) - (field.end - field.start)
        least = len(base.pairs) * base.least_pair
        is_short = least > size - base.by_path["metadata_kv_count"].end
        verdict = too_many(least, size) if is_short else reject("number-cut")
    return Change(((field.start, field.end, b""),), verdict)


def _double_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """A pair stands twice."""
    edits = (counted(base, "metadata_kv_count", 1), (field.end, field.end, base.data[field.start : field.end]))
    return well_made(base, edits, reject("key-twice"))


def _double_uncounted_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """A pair stands twice, and the last one is not counted any more."""
    is_last = base.pair_of(field) is base.pairs[-1]
    verdict = reject("key-twice") if not is_last else UNKNOWN if base.infos else warn("tail-nonzero")
    return Change(((field.end, field.end, base.data[field.start : field.end]),), verdict)


def _pair(base: Base, draw: Seeded, key: str, type: T, value: int) -> bytes:
    """A pair; fields that are not heard of here have any values."""
    given = {"key": key, "value_type": type, "value": value}
    return bytes(base.layout.metadata_kv.build(make(base.layout.metadata_kv, draw, Extent(), given)))


def _new_pair(base: Base, draw: Seeded) -> bytes:
    return _pair(base, draw, NEW_KEY, T.UINT8, 1)


def _insert_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """One more pair."""
    edits = (counted(base, "metadata_kv_count", 1), (field.start, field.start, _new_pair(base, draw)))
    return well_made(base, edits, ACCEPT)


def _insert_uncounted_pair(base: Base, field: Field, draw: Seeded) -> Change:
    """One more pair, and the last one is not counted any more."""
    verdict = UNKNOWN if base.infos else warn("tail-nonzero")
    return Change(((field.start, field.start, _new_pair(base, draw)),), verdict)


def _swap(base: Base, field: Field, following: Field, verdict: Verdict) -> Change:
    both_pieces = base.data[following.start : following.end] + base.data[field.start : field.end]
    return Change(((field.start, following.end, both_pieces),), verdict)


def _swap_pairs(base: Base, field: Field, draw: Seeded) -> Change | None:
    """A pair and the one behind it change places."""
    following = base.pairs.index(base.pair_of(field)) + 1
    return _swap(base, field, base.pairs[following].field, ACCEPT) if following < len(base.pairs) else None


def _value_start(base: Base, field: Field) -> int:
    """Where the type of a pair's value stands."""
    return base.by_path[f"{field.path}.value_type"].start


def nested(base: Base, levels: int) -> bytes:
    """So many arrays, one in the other, the innermost of no elements."""
    level = base.number(T.ARRAY, base.type_width) + base.number(1, base.length_width)
    innermost = base.number(T.UINT8, base.type_width) + base.number(0, base.length_width)
    return level * (levels - 1) + innermost


def _nest(levels: int, rule: str | None, base: Base, field: Field, draw: Seeded) -> Change:
    """Arrays in arrays as a value."""
    value = base.number(T.ARRAY, base.type_width) + nested(base, levels)
    edits = ((_value_start(base, field), field.end, value),)
    if rule is not None:
        return well_made(base, edits, reject(rule))
    return well_made(base, edits, retyped(base, base.pair_of(field), ArrayType(T.ARRAY)))


def _retype(type: T, base: Base, field: Field, draw: Seeded) -> Change | None:
    """A value of another type, well formed: zero, or empty."""
    pair = base.pair_of(field)
    found = T.ARRAY if isinstance(pair.type, ArrayType) else pair.type
    if found == type:
        return None
    new: ValueType = type
    if type == T.ARRAY:
        new = ArrayType(T.UINT8)
        value = nested(base, 1)
    else:
        value = bytes(base.sizes.get(type, base.length_width))
    edits = ((_value_start(base, field), field.end, base.number(type, base.type_width) + value),)
    return well_made(base, edits, retyped(base, pair, new))


def _insert_alignment(value: int, base: Base, field: Field, draw: Seeded) -> Change:
    """A pair that declares another alignment."""
    pair = _pair(base, draw, keys.ALIGNMENT.template, T.UINT32, value)
    edits = (counted(base, "metadata_kv_count", 1), (base.infos_start, base.infos_start, pair))
    change = repaired(base, edits)
    if keys.ALIGNMENT.template in base.key_names:
        return Change(change, reject("key-twice"))
    verdict = placed(spliced(base.data, change), base.infos_end + growth(edits), value or 1, base.places)
    missing = ACCEPT if base.pairs else warn("architecture-missing")
    return Change(change, both(aligned(value), verdict, missing))


def _new_info(base: Base, draw: Seeded, offset: int) -> tuple[bytes, int]:
    """A tensor of one number, and its bytes."""
    type, dimensions = GGMLQuantizationType.F32, (1,)
    _, size = shaped(type, dimensions)
    given = {"name": NEW_NAME, "dimensions": dimensions, "type": type, "offset": offset}
    return bytes(base.layout.tensor_info.build(make(base.layout.tensor_info, draw, Extent(), given))), size or 0


def _with_infos(base: Base, edits: tuple[Edit, ...], places: list[tuple[int, int]], data: bytes = b"") -> Change:
    """Other infos, well counted, and perhaps more data; the verdict is that on where the tensors are."""
    end = base.infos_end + growth(edits)
    zeros = padding(end, base.alignment) if places else b""
    old_end = base.data_offset if base.infos else base.infos_end
    change = (*edits, (base.infos_end, old_end, zeros))
    if data:
        change = (*change, (len(base.data), len(base.data), data))
    return Change(change, both(placed(spliced(base.data, change), end, base.alignment, places), _layers(base)))


def _layers(base: Base) -> Verdict:
    """What may follow when there are other tensors."""
    return MILD if base.counts_layers else ACCEPT


def _remove_info(base: Base, field: Field, draw: Seeded) -> Change:
    """An info is not there, and not counted."""
    places = base.places
    del places[base.index_of(field)]
    return _with_infos(base, (counted(base, "tensor_count", -1), (field.start, field.end, b"")), places)


def _lose_info(base: Base, field: Field, draw: Seeded) -> Change:
    """An info is not there, but counted."""
    size = len(base.data) - (field.end - field.start)
    least = len(base.infos) * base.least_info
    verdict = too_many(least, size) if least > size - base.infos_start else UNKNOWN
    return Change(((field.start, field.end, b""),), verdict)


def _double_info(base: Base, field: Field, draw: Seeded) -> Change:
    """An info stands twice."""
    edits = (counted(base, "tensor_count", 1), (field.end, field.end, base.data[field.start : field.end]))
    return well_made(base, edits, reject("tensor-name-twice"))


def _double_uncounted_info(base: Base, field: Field, draw: Seeded) -> Change:
    """An info stands twice, and the last one is not counted any more."""
    edits = ((field.end, field.end, base.data[field.start : field.end]),)
    if base.index_of(field) < len(base.infos) - 1:
        return Change(edits, reject("tensor-name-twice"))
    return Change(edits, placed(spliced(base.data, edits), base.infos_end, base.alignment, base.places))


def _insert_info(base: Base, field: Field, draw: Seeded) -> Change:
    """One more tensor, over the first one."""
    info, size = _new_info(base, draw, 0)
    places = base.places
    places.insert(base.index_of(field), (0, size))
    return _with_infos(base, (counted(base, "tensor_count", 1), (field.start, field.start, info)), places)


def _append_info(base: Base, field: Field, draw: Seeded) -> Change:
    """One more tensor, behind the others, with its data."""
    length = len(base.data) - (base.data_offset if base.infos else len(base.data))
    offset = align_up(length, base.alignment)
    info, size = _new_info(base, draw, offset)
    edits = (counted(base, "tensor_count", 1), (base.infos_end, base.infos_end, info))
    if not base.infos and base.infos_end != len(base.data):
        return Change(edits, UNKNOWN)
    end = base.infos_end + growth(edits)
    old_end = base.data_offset if base.infos else base.infos_end
    data = bytes(offset - length) + b"\1" * size + bytes(-size % base.alignment)
    at_end = len(base.data)
    change = (edits[0], (base.infos_end, old_end, info + padding(end, base.alignment)), (at_end, at_end, data))
    places = [*base.places, (offset, size)]
    return Change(change, both(placed(spliced(base.data, change), end, base.alignment, places), _layers(base)))


def _swap_infos(base: Base, field: Field, draw: Seeded) -> Change | None:
    """An info and the one behind it change places."""
    index = base.index_of(field)
    if index + 1 == len(base.infos):
        return None
    places = base.places
    places[index : index + 2] = places[index + 1], places[index]
    verdict = placed(base.data, base.infos_end, base.alignment, places)
    return _swap(base, field, base.infos[index + 1].field, verdict)


def _dimensions(number: int, base: Base, field: Field, draw: Seeded) -> Change | None:
    """So many dimensions, the rest of them 1."""
    index = base.index_of(field)
    info = base.infos[index]
    if number == len(info.dimensions):
        return None
    dimensions = (*info.dimensions, *[1] * number)[:number]
    first = base.by_path[f"{field.path}.n_dimensions"]
    wire = base.number(number, first.end - first.start)
    wire += b"".join(base.number(dimension, base.dimension_width) for dimension in dimensions)
    edits = ((first.start, first.end + len(info.dimensions) * base.dimension_width, wire),)
    change = repaired(base, edits)
    verdict, size = shaped(info.type, dimensions)
    if size is not None:
        places = base.places
        places[index] = places[index][0], size
        end = base.infos_end + growth(edits)
        verdict = both(verdict, placed(spliced(base.data, change), end, base.alignment, places))
    return Change(change, verdict)


def _operations(*rows: tuple[str, Callable[[Base, Field, Seeded], Change | None]]) -> tuple[Operation, ...]:
    return tuple(Operation(name, make) for name, make in rows)


PAIR = _operations(
    ("pair-removed", _remove_pair),
    ("pair-lost", _lose_pair),
    ("pair-doubled", _double_pair),
    ("pair-doubled-uncounted", _double_uncounted_pair),
    ("pair-inserted", _insert_pair),
    ("pair-inserted-uncounted", _insert_uncounted_pair),
    ("pair-swapped", _swap_pairs),
    ("nested-2", partial(_nest, 2, None)),
    ("nested-deepest", partial(_nest, MAX_NESTING, None)),
    ("nested-too-deep", partial(_nest, MAX_NESTING + 1, "nesting-depth")),
    ("nested-past-python", partial(_nest, PYTHON_LEVELS, "nesting-python")),
    *((f"retyped-{type.name}", partial(_retype, type)) for type in T),
)
METADATA = _operations(
    *((f"alignment-inserted-{value}", partial(_insert_alignment, value)) for value in (0, 1, 3, 8, 24, 32, 64)),
    ("alignment-inserted-2^31", partial(_insert_alignment, 1 << 31)),
)
INFO = _operations(
    ("info-removed", _remove_info),
    ("info-lost", _lose_info),
    ("info-doubled", _double_info),
    ("info-doubled-uncounted", _double_uncounted_info),
    ("info-inserted", _insert_info),
    ("info-swapped", _swap_infos),
    *((f"dimensions-made-{number}", partial(_dimensions, number)) for number in (0, 1, 2, 4, 5, 8, 9, 65)),
)
INFOS = _operations(("info-appended", _append_info))
