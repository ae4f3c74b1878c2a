"""What must be said of a file, told from what was changed in a valid one: of places, shapes, and fields read elsewhere.

This is POLICY as it is written, applied to one change at a time. Nothing here parses a file, or asks who judges files.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..blocks import block_sizes
from ..enums import GGMLQuantizationType
from ..enums import GGUFValueType as T
from ..layout import align_up
from ..limits import MAX_DIMENSIONS, MAX_SIZE, MAX_TYPE, SLOWLY_COUNTED, USUAL_DIMENSIONS
from .base import Base, Field

VALUE_TYPES = frozenset(map(int, T))
TEXTS = ("key.string", "name.string", "string.string")
LENGTHS = ("key.len", "name.len", "string.len")


class Verdict(NamedTuple):
    """What is expected of a mutant.

    Attributes:
        expected: accept, warn, reject, or unknown.
        rule: The code of the rule that is broken; None where none is, or where it cannot be told which.
        is_mild: Of an unknown one: it is accept or warn, not reject.
    """

    expected: str
    rule: str | None = None
    is_mild: bool = False


ACCEPT = Verdict("accept")
UNKNOWN = Verdict("unknown")
MILD = Verdict("unknown", None, True)


def reject(rule: str | None) -> Verdict:
    """It must be refused."""
    return Verdict("reject", rule)


def warn(rule: str) -> Verdict:
    """It must be taken with a warning."""
    return Verdict("warn", rule)


def both(*verdicts: Verdict) -> Verdict:
    """The verdict of a file of which all of these are true."""
    return max(verdicts, key=_weight)


def _weight(verdict: Verdict) -> tuple[int, bool]:
    levels = {"accept": 0, "warn": 2, "unknown": 1 if verdict.is_mild else 3, "reject": 4}
    return levels[verdict.expected], verdict.rule is not None


def is_zero(data: bytes) -> bool:
    """Whether all bytes are zero."""
    return data.count(0) == len(data)


def placed(data: bytes, infos_end: int, alignment: int, places: Sequence[tuple[int, int]]) -> Verdict:
    """The verdict on where the tensors are, and on the bytes around them.

    Args:
        data: The whole file.
        infos_end: Where the padding begins.
        alignment: A possible one.
        places: Offset and size of each tensor, in the order of the infos.
    """
    size = len(data)
    if not places:
        rest = data[infos_end:]
        return ACCEPT if not rest else Verdict("accept", "tail-zero") if is_zero(rest) else warn("tail-nonzero")
    start = align_up(infos_end, alignment)
    if any(offset % alignment for offset, _ in places):
        return reject("offset-unaligned")
    if start > size:
        return reject("data-start-missing")
    for offset, length in places:
        if start + offset + length > size:
            wrapped = (start + offset) % 2**64
            is_wrapped = start + offset >= 2**64 and wrapped + length <= size
            return reject("offset-wraps" if is_wrapped else "data-missing" if length else "offset-past-end")
    return _arranged(data, infos_end, start, alignment, places)


def _arranged(data: bytes, infos_end: int, start: int, alignment: int, places: Sequence[tuple[int, int]]) -> Verdict:
    """The verdict on tensors that are all there."""
    offsets = [offset for offset, _ in places]
    if offsets != sorted(offsets):
        return warn("offset-order")
    if min(offsets):
        return warn("offset-first")
    if not is_zero(data[infos_end:start]):
        return warn("padding-nonzero")
    end = 0
    ordered = sorted(places, key=lambda place: (place[0], place[1] > 0))
    for number, (offset, length) in enumerate(ordered):
        if length and offset < end:
            return warn("tensors-overlap")
        if number and offset > align_up(end, alignment):
            return warn("offset-gap")
        end = max(end, offset + length)
        following = ordered[number + 1][0] if number + 1 < len(ordered) else align_up(end, alignment)
        if not is_zero(data[start + end : start + min(align_up(end, alignment), following)]):
            return warn("padding-nonzero")
    rest = data[start + align_up(end, alignment) :]
    if rest:
        return Verdict("accept", "tail-zero") if is_zero(rest) else warn("tail-nonzero")
    return ACCEPT if start + align_up(end, alignment) <= len(data) else Verdict("accept", "last-unpadded")


def shaped(type: int, dimensions: Sequence[int]) -> tuple[Verdict, int | None]:
    """The verdict on a tensor's type and dimensions, and the bytes of its data, where they can be told."""
    if len(dimensions) > MAX_DIMENSIONS:
        return reject("dimensions-too-many"), None
    if type > MAX_TYPE:
        return reject("tensor-type-range"), None
    if any(dimension > MAX_SIZE for dimension in dimensions):
        return reject("dimension-range"), None
    elements = math.prod(dimensions)
    if type not in block_sizes():
        is_removed = type in GGMLQuantizationType._value2member_map_
        verdict = warn("tensor-type-removed" if is_removed else "tensor-type-unknown")
        return (verdict if elements <= MAX_SIZE else reject("tensor-elements-range")), None
    block_size, type_size = block_sizes()[type]
    if (dimensions[0] if dimensions else 1) % block_size:
        return reject("row-not-blocks"), None
    if elements > MAX_SIZE:
        return reject("tensor-elements-range"), None
    size = elements // block_size * type_size
    if size > MAX_SIZE:
        return reject("tensor-bytes-range"), None
    if not dimensions:
        return warn("dimensions-none"), size
    return (warn("dimensions-many") if len(dimensions) > USUAL_DIMENSIONS else ACCEPT), size


def string_cut(base: Base, field: Field) -> Verdict:
    """A string that is longer than the rest of the file, by its length."""
    return reject("last-string-cut" if field.kind == "string.len" and base.is_last(field) else "string-cut")


def number_cut(base: Base, field: Field, is_missing: bool) -> Verdict:
    """A number that the file ends within, or before; the alignment is one that no reader does without."""
    is_value = field.kind in ("integer", "float", "bool") and field.path.endswith(".value")
    return reject("last-number-missing" if is_missing and is_value and base.is_last(field) else "number-cut")


def array_cut(base: Base, field: Field, type: int, count: int, left: int) -> Verdict:
    """An array that is larger than the rest of the file.

    Args:
        base: The file.
        field: The array's length.
        type: The type of its elements.
        count: How many are declared.
        left: Bytes of the file after the length.
    """
    if type not in base.sizes and count * base.least[type] <= len(base.data):
        return reject(None)  # the fault is that of the element in which the file ends
    is_whole = type in base.sizes and count <= SLOWLY_COUNTED and not left % base.sizes[type]
    is_last = field.path.count("[") == 1 and base.is_last(field)
    return reject("last-array-cut" if is_whole and is_last else "array-cut")


def unknown_element(count: int | None, is_skipped: bool = True) -> Verdict:
    """An array of elements of no type.

    Args:
        count: How many are declared; None where the file ends within that, which is read first.
        is_skipped: Whether nobody needs the value if it is empty.
    """
    if count is None:
        return reject("number-cut")
    return reject("element-type-unknown-empty" if count == 0 and is_skipped else "element-type-unknown")


def read_on(
    base: Base,
    place: int,
    position: int,
    size: int | None = None,
    pending: Verdict = UNKNOWN,
    alignment: int | None = None,
) -> Verdict:
    """The verdict on a file some leaves of which are read from another position than their own.

    Leaves are read one after the other, as long as they tell the same structure as in the base.

    Args:
        base: The file.
        place: The first leaf that is read.
        position: Where it is read.
        size: Where the file ends, if not where it did.
        pending: What is expected if all can be read.
        alignment: What offsets must be multiples of; without it that of the base, or 1 where pairs are read anew, which
            may declare another.

    Returns:
        A refusal, where the bytes leave nothing else; else what is pending.
    """
    size = len(base.data) if size is None else size
    first_info = base.infos[0].field.place if base.infos else -1
    if alignment is None:
        alignment = base.alignment if place >= first_info else 1
    leaves = base.leaves
    while place < len(leaves):
        field = leaves[place]
        if place == first_info and len(base.infos) * base.least_info > size - position:
            return too_many(len(base.infos) * base.least_info, size)
        place += 1
        kind = field.kind
        if kind in TEXTS:
            continue
        width = field.end - field.start
        if position + width > size:
            return number_cut(base, field, position == size)
        value = base.read(position, width)
        position += width
        if kind in LENGTHS:
            if value > size - position:
                least = {"key.len": base.least_pair, "name.len": base.least_info}.get(kind, 0)
                return string_cut(base, field) if position - width + least <= size else reject(None)
            position += value
            if kind == "key.len" and not value:
                pending = reject(None)
        elif kind == "value_type":
            if value not in VALUE_TYPES:
                return reject("value-type-unknown")
            if value != field.value:
                return undecided(pending)
        elif kind == "array.type":
            if value not in VALUE_TYPES:
                is_there = position + base.length_width <= size
                return unknown_element(base.read(position, base.length_width) if is_there else None)
            if value != field.value:
                return undecided(pending)
        elif kind == "array.len":
            type = leaves[place - 2].value
            if value * base.least[type] > size - position:
                return array_cut(base, field, type, value, size - position)
            if value != field.value:
                return undecided(pending)
        elif kind == "n_dimensions":
            if value * base.dimension_width > size - position:
                return reject("dimensions-cut")
            if value > MAX_DIMENSIONS and pending.expected != "reject":
                pending = reject("dimensions-too-many")
            position += value * base.dimension_width
            place += field.value
        elif kind == "tensor_type" and value > MAX_TYPE and pending.expected != "reject":
            pending = reject("tensor-type-range")
        elif kind == "offset" and value % alignment:
            pending = reject("offset-unaligned")
        elif kind == "offset" and value > size:
            pending = reject(None)
    return pending


def too_many(least: int, size: int) -> Verdict:
    """More items than are left, by their least size: the count's fault only where no whole file could hold them."""
    return reject("count-range" if least > size else None)


def undecided(pending: Verdict) -> Verdict:
    """What is known of a file that may be refused for another reason before what is pending comes up."""
    return reject(None) if pending.expected == "reject" else UNKNOWN
