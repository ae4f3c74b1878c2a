"""Arrays as bytes, and memory maps that do not stay in memory after they were read."""

import contextlib
import mmap
import sys
from typing import Any

import numpy as np

POPULATE_READ = 22 if sys.platform == "linux" else None
"""MADV_POPULATE_READ of Linux 5.14, which Python's mmap does not name."""


def as_bytes(data: Any) -> memoryview:
    """A contiguous array or a bytes-like object as its bytes.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")


def is_bytes_like(data: Any) -> bool:
    """Whether something is an array or another object that shows its memory."""
    try:
        memoryview(data)
    except (TypeError, ValueError):  # of some dtypes an array shows none
        return isinstance(data, np.ndarray)
    return True


def array_of(data: Any) -> np.ndarray[Any, Any]:
    """An array, or a number of one, as an array; a contiguous bytes-like object as an array of its bytes.

    Raises:
        TypeError: It is neither, or holds Python objects.
    """
    array = np.asarray(data if isinstance(data, np.ndarray | np.generic) else as_bytes(data))
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes")
    return array


class Map:
    """The memory map that an array looks into, whose pages are in memory only while they are written elsewhere.

    The system has them in the file. Private maps that may have been written to stay: that is nowhere else.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.map = shared_map(array)
        self.start = _extent(np.frombuffer(self.map, np.uint8))[0] if self.map else 0

    def fetch(self, part: np.ndarray[Any, Any]) -> None:
        """Get the pages of a part, all at once: `write` gets them too few at a time, and begins again with each few."""
        if POPULATE_READ is not None:
            self._advise(part, POPULATE_READ)

    def release(self, part: np.ndarray[Any, Any]) -> None:
        """Let go of the pages of a part."""
        self._advise(part, mmap.MADV_DONTNEED)

    def _advise(self, part: np.ndarray[Any, Any], advice: int) -> None:
        if self.map is None or not part.size:
            return
        low, high = (address - self.start for address in _extent(part))
        low -= low % mmap.PAGESIZE
        with contextlib.suppress(OSError):  # locked memory, an older system, or a file that has shrunk
            self.map.madvise(advice, low, high - low)


def shared_map(array: Any) -> mmap.mmap | None:
    """The memory map that an array looks into, if it holds nothing that its file does not."""
    is_shared = False
    while array is not None and not isinstance(array, mmap.mmap):
        if isinstance(array, np.memmap):
            is_shared = array.mode in ("r", "r+", "w+")
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    if array is None or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return array if is_shared or memoryview(array).readonly else None


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses of an array's first byte and of the first one behind it."""
    low = high = array.__array_interface__["data"][0]
    for length, stride in zip(array.shape, array.strides, strict=True):
        reach = (length - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + array.itemsize
