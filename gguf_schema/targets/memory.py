"""Arrays as bytes, and memory maps that do not stay in memory after they were read."""

import contextlib
import mmap
from typing import Any

import numpy as np


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
    """An array as it is; a contiguous bytes-like object as an array of its bytes.

    Raises:
        TypeError: It is neither, or holds Python objects.
    """
    array = data if isinstance(data, np.ndarray) else np.asarray(as_bytes(data))
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes")
    return array


class Released:
    """Lets go of parts of an array that were read, where it looks into a memory map: the system has them in the file.

    Not of private maps that may have been written to: what was written is nowhere else.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.map = shared_map(array)
        self.start = _extent(np.frombuffer(self.map, np.uint8))[0] if self.map else 0

    def __call__(self, part: np.ndarray[Any, Any]) -> None:
        """Let go of the pages of a part."""
        if self.map is None or not part.size:
            return
        low, high = (address - self.start for address in _extent(part))
        low -= low % mmap.PAGESIZE
        with contextlib.suppress(OSError):  # locked memory stays
            self.map.madvise(mmap.MADV_DONTNEED, low, high - low)


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
