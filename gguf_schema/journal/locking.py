"""One editor at a time: a lock on the file itself, which readers need not know of."""

import contextlib
import os
from collections.abc import Iterator

from ..targets import BusyError, lock


@contextlib.contextmanager
def exclusive(path: str) -> Iterator[int]:
    """Open a file to change it, and keep others from doing so meanwhile, where the file system can.

    Args:
        path: Not a symbolic link.

    Yields:
        The file descriptor.

    Raises:
        BusyError: Somebody else edits the file, or replaces it, or has done so this moment.
        OSError: It cannot be opened for writing.
    """
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        if lock(handle, alone=True) is False:
            raise BusyError("another process is editing the file")
        if not os.path.samestat(os.stat(path), os.fstat(handle)):
            raise BusyError("another process has just replaced the file")
        yield handle
    finally:
        os.close(handle)


def is_busy(path: str) -> bool:
    """Whether somebody edits a file."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            return lock(handle, alone=False) is False
        finally:
            os.close(handle)
    return False
