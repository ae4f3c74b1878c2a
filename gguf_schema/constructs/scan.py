"""Finds the ends of length-prefixed strings that lie back to back, without looking at each in Python.

The chain of lengths is guessed, then proven. A little-endian 64-bit length below 256 is one byte that is not zero
before seven that are. Text seldom holds zeros, so numpy finds nearly all lengths, and little else, as the places where
a run of zeros begins. Such a candidate counts only if it is linked: if it stands exactly where the string before it
ends. Where the chain of links breaks (a length of 256 or more, an empty string, zeros in a text) one length is read the
plain way.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 17
"""Bytes looked at in one go: few enough for the processor's cache."""

GROUP = 8
"""Bytes of a length that can be guessed; also of the groups in which places are collected, at most one in each."""

PLACE = np.uint64(0x0001020304050607)
"""A byte of value 1 in a group, times this, has its index in the highest byte."""


def string_ends(data: bytes, count: int, prefix: np.dtype[Any]) -> NDArray[np.int64]:
    """The ends of the strings that begin at the start of `data`.

    Args:
        data: Strings, each a length and its bytes; the last one may be cut.
        count: The most to find.
        prefix: The dtype of a length.

    Returns:
        int64, ascending: the position after each whole string, at most `count`.
    """
    if prefix != np.dtype("<u8"):
        return _plain(data, count, prefix, 0, len(data))[0]
    octets = np.frombuffer(data, np.uint8)
    found: list[NDArray[np.int64]] = []
    position = 0
    while count > 0 and position < len(data):
        ends, position = _block(data, octets, count, prefix, position)
        if not len(ends):
            break
        found.append(ends)
        count -= len(ends)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _block(
    data: bytes, octets: NDArray[np.uint8], count: int, prefix: np.dtype[Any], start: int
) -> tuple[NDArray[np.int64], int]:
    """The ends of strings that begin in the block at `start`, where one begins, and the end of the last."""
    stop = min(start + BLOCK, len(data))
    length = (stop - start - GROUP) // GROUP * GROUP
    if length <= 0:
        return _plain(data, count, prefix, start, stop)
    zero = octets[start:stop] == 0
    # Seven zeros after a byte that is none: two, four and seven in a row, by putting runs together.
    two = zero[1:-1] & zero[2:]
    four = two[:-2] & two[2:]
    is_length = four[:length] & four[3 : length + 3]
    np.greater(is_length, zero[:length], out=is_length)
    groups = is_length.view("<u8")
    filled = np.flatnonzero(groups)
    places = filled * GROUP
    places += ((groups[filled] * PLACE) >> np.uint64(56)).view(np.int64)
    ends = octets[start:stop][places] + (places + GROUP)
    breaks = np.flatnonzero(ends[:-1] != places[1:])
    if len(breaks) * 16 > len(places) or not len(places):
        return _plain(data, count, prefix, start, stop)
    return _linked(data, count, prefix, start, stop, places, ends, breaks)


def _linked(
    data: bytes,
    count: int,
    prefix: np.dtype[Any],
    start: int,
    stop: int,
    places: NDArray[np.int64],
    ends: NDArray[np.int64],
    breaks: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Follow the links from the block's start; step over each break the plain way."""
    found: list[NDArray[np.int64]] = []
    lasts = [*breaks.tolist(), len(places) - 1]
    position = 0
    while count > 0 and position < stop - start:
        first = int(np.searchsorted(places, position))
        if first < len(places) and places[first] == position:
            last = lasts[int(np.searchsorted(breaks, first))]
            linked = ends[first : min(last + 1, first + count)]
            if start + int(linked[-1]) > len(data):
                linked = linked[:-1]
            if not len(linked):
                break
        else:
            linked, _ = _plain(data, 1, prefix, start + position, start + position + 1)
            if not len(linked):
                break
            linked = linked - start
        found.append(linked)
        position = int(linked[-1])
        count -= len(linked)
    if not found:
        return np.empty(0, np.int64), start
    return np.concatenate(found) + start, start + position


def _plain(data: bytes, count: int, prefix: np.dtype[Any], start: int, stop: int) -> tuple[NDArray[np.int64], int]:
    """The ends of strings that begin before `stop`, one after the other."""
    order: Literal["little", "big"] = "little" if prefix.newbyteorder("<") == prefix else "big"
    size = prefix.itemsize
    ends: list[int] = []
    position = start
    while len(ends) < count and position < stop:
        text = position + size
        end = text + int.from_bytes(data[position:text], order)
        if end > len(data) or text > len(data):
            break
        ends.append(end)
        position = end
    return np.array(ends, np.int64), position
