"""Small files that do the same to a reader: what was not changed to make a mutant is left out or made short, and then
what was put in is made shorter.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from .. import keys
from ..layout import alignment_of
from ..mutate.base import Base, Edit, growth, padding, spliced
from ..mutate.verdicts import LENGTHS
from .cases import Case

PAIRS, TENSORS = "metadata_kv_count", "tensor_count"


class Part(NamedTuple):
    """Something that can be left out, or made short.

    Attributes:
        edit: The bytes of the base that it has, and what it becomes.
        counter: The count that says how many there are; empty for what is not counted.
        data: Of a tensor info the place of its data, with what is before the next.
        alignment: Whether it is the pair that sets the alignment.
    """

    edit: Edit
    counter: str = ""
    data: tuple[int, int] = (0, 0)
    alignment: bool = False


def minimised(case: Case, holds: Callable[[bytes], bool], runs: int) -> bytes:
    """A file that is smaller, of which the same holds.

    Args:
        case: The file.
        holds: Whether a file does the same.
        runs: How often that is asked at most.
    """
    kept: list[Part] = []
    best = case.data
    asked = 0

    def asks(data: bytes) -> bool:
        nonlocal best, asked
        if len(data) > len(best) or asked >= runs:  # padding may take the place of what goes, and be cut off at the end
            return False
        asked += 1
        if holds(data):
            best = data
            return True
        return False

    def search(parts: list[Part]) -> None:
        if not parts:
            return
        if asks(built(case, [*kept, *parts])):
            kept.extend(parts)
        elif len(parts) > 1:
            middle = len(parts) // 2
            search(parts[:middle])
            search(parts[middle:])

    def shows(index: int, new: bytes) -> bool:
        nonlocal case
        edits = list(case.edits)
        edits[index] = (*edits[index][:2], new)
        shorter = replace(case, edits=tuple(edits))
        if asks(built(shorter, kept)):
            case = shorter
            return True
        return False

    for parts in _parts(case):
        search(parts)
    for index, edit in enumerate(case.edits):
        _shorten(case.base, edit[2], partial(shows, index))
    low, high = 0, len(best)
    while high - low > 1:
        middle = (low + high) // 2
        if asks(best[:middle]):
            high = middle
        else:
            low = middle
    return best


def _parts(case: Case) -> Iterator[list[Part]]:
    """What can be left out or made short without touching what was changed: the large things first."""
    base = case.base
    pieces = ([Part((base.data_offset, len(base.data), b""))], _infos(base), _pairs(base), _arrays(base), _texts(base))
    for parts in pieces:
        yield [part for part in parts if part.edit[0] < part.edit[1] and not _is_touched(case.edits, *part.edit[:2])]


def _shorten(base: Base, new: bytes, shows: Callable[[bytes], bool]) -> None:
    """Make what was put in shorter: a text, dimensions, or arrays in arrays."""
    width, item = _counted(base, new)
    if item:
        low, high = 0, (len(new) - width) // item
        while high - low > 1:
            middle = (low + high) // 2
            if shows(base.number(middle, width) + new[width : width + middle * item]):
                high = middle
            else:
                low = middle
        return
    level = base.type_width + base.length_width
    size = level << max(0, len(new) // level).bit_length()
    while size >= level:
        shorter = new[:level] + new[level + size :]
        if level + size < len(new) and shows(shorter):
            new = shorter
        else:
            size //= 2


def _counted(base: Base, new: bytes) -> tuple[int, int]:
    """Bytes of the number that tells how many items follow, and of an item; 0 where that is not what the bytes are."""
    for width, item in ((base.length_width, 1), (base.layout.uint32.sizeof(), base.dimension_width)):
        if len(new) > width and int.from_bytes(new[:width], base.byteorder) * item == len(new) - width:
            return width, item
    return 0, 0


def _is_touched(edits: tuple[Edit, ...], start: int, end: int) -> bool:
    return any(first < end and last > start for first, last, _ in edits)


def _infos(base: Base) -> list[Part]:
    starts = sorted({info.offset for info in base.infos})
    ends = dict(pairwise([*starts, len(base.data) - base.data_offset]))
    parts = []
    for info in base.infos:
        end = ends[info.offset] if info.size else info.offset
        data = (base.data_offset + info.offset, base.data_offset + end)
        parts.append(Part((info.field.start, info.field.end, b""), TENSORS, data))
    return parts


def _pairs(base: Base) -> list[Part]:
    return [
        Part((pair.field.start, pair.field.end, b""), PAIRS, alignment=pair.key == keys.ALIGNMENT.template)
        for pair in base.pairs
    ]


def _arrays(base: Base) -> list[Part]:
    """Arrays, to be left empty."""
    parts = []
    for field in base.leaves:
        if field.kind == "array.len" and field.value:
            inside = field.path.removesuffix("len") + "array["
            end = max((leaf.end for leaf in base.leaves if leaf.path.startswith(inside)), default=field.end)
            parts.append(Part((field.start, end, base.number(0, base.length_width))))
    return parts


def _texts(base: Base) -> list[Part]:
    """Strings, to be cut to a letter or two, each to others."""
    parts: list[Part] = []
    for field in base.leaves:
        if field.kind in LENGTHS and field.value > 2:
            letters = bytes(97 + digit for digit in divmod(len(parts) % 26**2, 26) if digit) or b"a"
            parts.append(Part((field.start, field.end + field.value, base.string(letters))))
    return parts


def built(case: Case, parts: list[Part]) -> bytes:
    """The file with these parts left out or made short: counts, offsets and padding follow, unless they were
    changed.

    What was changed in several places was changed in one, and the counts and the padding were repaired.
    """
    base, edits = case.base, case.edits
    is_repaired = len(edits) > 1
    changed = {edit[:2]: edit[2] for edit in edits}
    cut = [part.edit for part in parts] + [(*part.data, b"") for part in parts if part.data[0] < part.data[1]]
    made = [edit for edit in cut if not any(_is_inside(edit, other) for other in cut)]
    for counter in (PAIRS, TENSORS):
        field = base.by_path[counter]
        place = (field.start, field.end)
        dropped = sum(part.counter == counter for part in parts)
        if dropped and (is_repaired or not _is_touched(edits, *place)):
            value = int.from_bytes(changed[place], base.byteorder) if place in changed else field.value
            changed[place] = base.number(max(0, value - dropped), field.end - field.start)
    gone = [part for part in parts if part.counter == TENSORS]
    starts = {part.edit[0] for part in gone}
    for index, info in enumerate(base.infos):
        field = base.by_path[f"tensor_infos[{index}].offset"]
        before = sum(part.data[1] - part.data[0] for part in gone if part.data[0] < base.data_offset + info.offset)
        if before and info.field.start not in starts and not _is_touched(edits, field.start, field.end):
            changed[field.start, field.end] = base.number(info.offset - before, field.end - field.start)
    between = (base.infos_end, base.data_offset)
    if base.infos and (is_repaired or (parts and not _is_touched(edits, *between))):
        changed.pop(between, None)
        alignment = alignment_of([]) if any(part.alignment for part in parts) else base.alignment
        head = [edit for edit in (*made, *((*place, new) for place, new in changed.items())) if edit[1] <= between[0]]
        end = base.infos_end + growth(tuple(head))
        changed[between] = padding(end, alignment) if len(gone) < len(base.infos) else b""
    return spliced(base.data, tuple(sorted([*made, *((*place, new) for place, new in changed.items())])))


def _is_inside(edit: Edit, other: Edit) -> bool:
    return edit[:2] != other[:2] and other[0] <= edit[0] and edit[1] <= other[1]
