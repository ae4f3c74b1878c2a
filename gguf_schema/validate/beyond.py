"""What is behind an end of the parse that some reader passes by: the same file, with the fault written over.

Nothing moves: an empty array of unknown elements becomes one of bytes, and so do arrays nested too deep, as many bytes
as they have. So all that is found in the rest is found in its place.
"""

from ..enums import GGUFValueType as T
from ..schema import GGUFStructs
from ..sources import PatchedSource, Source
from ..walk import dtype
from .subject import Subject

MOST = 8
"""Faults of a file that are written over: each costs another parse."""


STEPS = 1 << 20
"""Strings and arrays within arrays that are passed by one after the other."""


def patched(subject: Subject, code: str) -> Source | None:
    """The file with what ended the parse written over; None where nobody passes it by, or it has no end.

    Args:
        subject: The file.
        code: The rule that it breaks there.
    """
    layout, error = subject.layout, subject.failure
    if layout is None or error is None or error.offset is None:
        return None
    if code == "element-type-unknown-empty":
        start = subject.fields[error.path].start
        return PatchedSource(subject.source, start, layout.value_type.build(T.UINT8))
    if code != "nesting-depth":
        return None
    end = array_end(subject.source, layout, error.offset)
    if end is None:
        return None
    head = layout.value_type.sizeof() + layout.length.sizeof()
    new = layout.value_type.build(T.UINT8) + layout.length.build(end - error.offset - head)
    return PatchedSource(subject.source, error.offset, new)


def array_end(source: Source, layout: GGUFStructs, position: int) -> int | None:
    """Where an array ends, however deep it is; None where that is not in the file, unknown, or far away."""
    widths = {int(type): dtype(number).itemsize for type, number in layout.numbers.items()}
    type_size, length_size = layout.value_type.sizeof(), layout.length.sizeof()
    left: list[tuple[int, int]] = [(T.ARRAY, 1)]
    for _ in range(STEPS):
        if not left:
            return position
        type, count = left.pop()
        if not count:
            continue
        if type in widths:
            position += count * widths[type]
        elif type in (T.STRING, T.ARRAY):
            left.append((type, count - 1))
            skipped = type_size if type == T.ARRAY else 0
            head = source.read_at(position, skipped + length_size)
            if len(head) < skipped + length_size:
                return None
            position += len(head)
            length = layout.length.parse(head[skipped:])
            if type == T.ARRAY:
                left.append((int(layout.value_type.parse(head[:skipped])), length))
            else:
                position += length
        else:
            return None
        if position > source.size:
            return None
    return None
