"""Finds the ends of length-prefixed strings that lie back to back, without looking at each in Python.

The chain of lengths is guessed, then proven. A little-endian 64-bit length below 256 is one byte that is not zero
before seven that are. Text seldom holds zeros, so numpy finds nearly all lengths, and little else, as the places where
a run of zeros begins. Such a candidate counts only if it is linked: if it stands exactly where the string before it
ends. Where the chain of links breaks (a length of 256 or more, an empty string, zeros in a text) one length is read the
plain way.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1 << 18
"""Bytes looked at in one go: few enough for the processor's cache."""

WORTHWHILE = 64
"""Strings from which on guessing is faster than looking."""

LONGEST_STRIDE = 1024
"""Strings that are looked at in a row before the chain is tried again."""

GROUP = 8
"""Bytes of a length that can be guessed; also of the groups in which places are collected, at most one in each."""

PLACE = np.uint64(0x0001020304050607)
PLACE_SHIFT = np.uint64(56)
"""A byte of value 1 in a group, times PLACE, has its index in the highest byte."""


_kept = threading.local()


def workspace() -> NDArray[np.bool_]:
    """Room for what comes in between: three arrays of the size of a block, made once in a thread.

    Large pieces of memory that come and go cost a page fault for every 4 KiB, each time.
    """
    if not hasattr(_kept, "work") or _kept.work.shape[1] != BLOCK:
        _kept.work = np.empty((3, BLOCK), np.bool_)
    work: NDArray[np.bool_] = _kept.work
    return work


def string_ends(data: bytes, prefix: np.dtype[Any], ends: NDArray[Any]) -> int:
    """Find the ends of the strings that begin at the start of `data`.

    Args:
        data: Strings, each a length and its bytes; the last one may be cut.
        prefix: The dtype of a length.
        ends: Filled with the position in `data` after each whole string. Its length is the most that is looked for.

    Returns:
        How many were found.
    """
    octets = np.frombuffer(data, np.uint8)
    is_guessed = prefix == np.dtype("<u8") and len(ends) >= WORTHWHILE
    found = position = 0
    while found < len(ends) and position < len(data):
        if is_guessed:
            more = _guess(data, octets, prefix, position, ends[found:])
        else:
            more = _plain(data, prefix, position, ends[found:])
        if not more:
            break
        found += more
        position = int(ends[found - 1])
    return found


def _guess(data: bytes, octets: NDArray[np.uint8], prefix: np.dtype[Any], start: int, ends: NDArray[Any]) -> int:
    """Find the ends of strings that begin in the block at `start`, where one begins."""
    work = workspace()
    size = min(BLOCK, len(data) - start)
    length = (size - GROUP) // GROUP * GROUP
    if length <= 0:
        return _plain(data, prefix, start, ends)
    zero = np.equal(octets[start : start + size], 0, out=work[0, :size])
    # Seven zeros after a byte that is none: two, four and seven in a row, by putting runs together.
    two = np.logical_and(zero[1:-1], zero[2:], out=work[1, : size - 2])
    four = np.logical_and(two[:-2], two[2:], out=work[2, : size - 4])
    is_length = np.logical_and(four[:length], four[3 : length + 3], out=work[1, :length])
    np.greater(is_length, zero[:length], out=is_length)
    groups = is_length.view("<u8")
    filled = (groups != 0).nonzero()[0]  # nonzero of bools is several times as fast as of numbers
    places = groups.take(filled)
    places *= PLACE
    places >>= PLACE_SHIFT
    places = places.view(np.int64)
    filled *= GROUP
    places += filled
    places += start
    linked = octets.take(places) + places
    linked += GROUP
    breaks = (linked[:-1] != places[1:]).nonzero()[0]
    if len(breaks) * 16 > len(places) or not len(places):
        return _plain(data, prefix, start, ends, start + size)
    return _follow(data, prefix, start, ends, places, linked, breaks)


def _follow(
    data: bytes,
    prefix: np.dtype[Any],
    position: int,
    ends: NDArray[Any],
    places: NDArray[np.int64],
    linked: NDArray[np.int64],
    breaks: NDArray[np.int64],
) -> int:
    """Follow the links from `position` to the last of the places; step over each break the plain way.

    Args:
        places: Where lengths may stand.
        linked: Where a string whose length stands there would end.
        breaks: Indices of places whose string does not end at the next place.
    """
    lasts = [*breaks.tolist(), len(places) - 1]
    found = 0
    stride = 1
    while found < len(ends) and position <= places[-1]:
        first = int(np.searchsorted(places, position))
        if places[first] == position:
            last = lasts[int(np.searchsorted(breaks, first))]
            more = min(last + 1 - first, len(ends) - found)
            more -= int(linked[first + more - 1] > len(data))
            ends[found : found + more] = linked[first : first + more]
            stride = 1
        else:
            # Where one string breaks the chain, many may (empty ones stand in rows).
            more = _plain(data, prefix, position, ends[found : found + stride])
            stride = min(2 * stride, LONGEST_STRIDE)
        if not more:
            break
        found += more
        position = int(ends[found - 1])
    return found


def _plain(
    data: bytes,
    prefix: np.dtype[Any],
    position: int,
    ends: NDArray[Any],
    stop: int | None = None,
) -> int:
    """Find the ends of strings that begin before `stop`, one after the other."""
    order: Literal["little", "big"] = "little" if prefix.newbyteorder("<") == prefix else "big"
    size = prefix.itemsize
    stop = len(data) if stop is None else stop
    found: list[int] = []
    while len(found) < len(ends) and position < stop:
        text = position + size
        position = text + int.from_bytes(data[position:text], order)
        if position > len(data):
            break
        found.append(position)
    ends[: len(found)] = found
    return len(found)
