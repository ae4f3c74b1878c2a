"""What differs between two sequences, in time that no content of them can make long.

Elements are numbers here (see `numbered`), so that numpy compares them. Common starts and ends are cut off first; what
is left is divided at elements that both sides have exactly once ("patience diff"), and only what is small goes to
difflib, whose time grows with the square of the size or worse.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

LEVELS = 50
"""How often a part is divided again."""

SMALL = 1 << 18
"""Elements of one side times those of the other that difflib may have at once …"""

ALLOWED = 1 << 21
"""… and in all. A part that is too large is one hunk."""


class Hunk(NamedTuple):
    """Elements of the old sequence that others of the new one stand in place of; either may be none.

    Attributes:
        old_start: Index of the first old element.
        old_end: Index after the last.
        new_start: Index of the first new element.
        new_end: Index after the last.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def numbered(old: Iterable[bytes], new: Iterable[bytes]) -> tuple[Numbers, Numbers]:
    """Numbers for the elements of two sequences: the same ones for the same elements."""
    numbers: dict[bytes, int] = {}
    first = np.array([numbers.setdefault(element, len(numbers)) for element in old], np.int64)
    return first, np.array([numbers.setdefault(element, len(numbers)) for element in new], np.int64)


def hunks(old: Numbers, new: Numbers, in_place: bool = False) -> list[Hunk]:
    """Where two sequences differ, in order; between two hunks nothing does.

    Args:
        old: The one sequence.
        new: The other one.
        in_place: Compare element by element where both are of one length and most elements are the same.
    """
    if in_place and len(old) == len(new):
        differ = old != new
        if 2 * int(np.count_nonzero(differ)) <= len(old):
            edges = np.flatnonzero(np.diff(differ, prepend=False, append=False)).tolist()
            return [Hunk(start, end, start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return list(_joined(_aligned(old, new)))


def moved(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """Which items to take out so that both sequences have the rest in the same order: as few as possible.

    Args:
        old: Distinct numbers.
        new: The same ones, in any order.

    Returns:
        Those, in their old order.
    """
    places = {item: place for place, item in enumerate(new)}
    keep = set(_increasing([places[item] for item in old]))
    return [item for index, item in enumerate(old) if index not in keep]


def _aligned(old: Numbers, new: Numbers) -> Iterator[Hunk]:
    """The hunks of two sequences that may have shifted."""
    waiting = [(Hunk(0, len(old), 0, len(new)), LEVELS)]
    allowed = ALLOWED
    while waiting:
        part, levels = waiting.pop()
        part = _trimmed(old, new, part)
        olds, news = old[part.old_start : part.old_end], new[part.new_start : part.new_end]
        size = len(olds) * len(news)
        if not size:
            if len(olds) or len(news):
                yield part
            continue
        if size <= min(SMALL, allowed):
            allowed -= size
            for tag, *bounds in SequenceMatcher(None, olds.tolist(), news.tolist(), autojunk=False).get_opcodes():
                if tag != "equal":
                    yield _shifted(Hunk(*bounds), part)
            continue
        divided = list(_divided(olds, news)) if levels else []
        if divided:
            waiting += [(_shifted(inner, part), levels - 1) for inner in reversed(divided)]
        else:
            yield part


def _joined(found: Iterable[Hunk]) -> Iterator[Hunk]:
    """Hunks with nothing between them as one."""
    last: Hunk | None = None
    for hunk in found:
        if last is not None and last.old_end == hunk.old_start and last.new_end == hunk.new_start:
            last = Hunk(last.old_start, hunk.old_end, last.new_start, hunk.new_end)
            continue
        if last is not None:
            yield last
        last = hunk
    if last is not None:
        yield last


def _shifted(inner: Hunk, part: Hunk) -> Hunk:
    """A hunk in a part as one of the whole."""
    old, new = part.old_start, part.new_start
    return Hunk(inner.old_start + old, inner.old_end + old, inner.new_start + new, inner.new_end + new)


def _trimmed(old: Numbers, new: Numbers, part: Hunk) -> Hunk:
    """A part without its common start and its common end."""
    old_start, old_end, new_start, new_end = part
    size = min(old_end - old_start, new_end - new_start)
    same = _same(old[old_start : old_start + size], new[new_start : new_start + size])
    old_start, new_start, size = old_start + same, new_start + same, size - same
    same = _same(old[old_end - size : old_end][::-1], new[new_end - size : new_end][::-1])
    return Hunk(old_start, old_end - same, new_start, new_end - same)


def _same(first: Numbers, second: Numbers) -> int:
    """How many elements from the start on are equal."""
    differ = first != second
    return int(differ.argmax()) if differ.any() else len(first)


def _divided(old: Numbers, new: Numbers) -> Iterator[Hunk]:
    """What stands between elements that occur once on each side and in the same order; nothing without such."""
    olds, news = _once(old), _once(new)
    common, old_at, new_at = np.intersect1d(old[olds], new[news], assume_unique=True, return_indices=True)
    if not len(common):
        return
    pairs = np.stack([olds[old_at], news[new_at]], axis=1)
    pairs = pairs[pairs[:, 0].argsort()]
    anchors = pairs[_increasing(pairs[:, 1].tolist())]
    starts = np.vstack([[(0, 0)], anchors + 1])
    ends = np.vstack([anchors, [(len(old), len(new))]])
    for (old_start, new_start), (old_end, new_end) in zip(starts.tolist(), ends.tolist(), strict=True):
        if old_start < old_end or new_start < new_end:
            yield Hunk(old_start, old_end, new_start, new_end)


def _once(numbers: Numbers) -> Numbers:
    """The places of the elements that occur once."""
    _, places, counts = np.unique(numbers, return_index=True, return_counts=True)
    once: Numbers = places[counts == 1]
    return once


def _increasing(numbers: Sequence[int]) -> list[int]:
    """The indices of a longest increasing run of distinct numbers, others between them left out."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        place = len(tails) if not tails or number > tails[-1] else bisect_left(tails, number)
        tails[place : place + 1] = [number]
        at[place : place + 1] = [index]
        before.append(at[place - 1] if place else -1)
    found = []
    index = at[-1] if at else -1
    while index >= 0:
        found.append(index)
        index = before[index]
    return found[::-1]
