"""One editor at a time: a lock on the file itself, which readers need not know of."""

import contextlib
import errno
import os
from collections.abc import Iterator

from ..targets import BusyError, is_still, lock

FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for whoever writes


@contextlib.contextmanager
def exclusive(path: str) -> Iterator[int]:
    """Open a file to change or replace it, and keep others from doing so meanwhile, where the file system can.

    Args:
        path: Not a symbolic link.

    Yields:
        The file descriptor; one for reading where the file may not be written to (see `demand_writable`).

    Raises:
        BusyError: Somebody else edits the file, or replaces it, or has done so this moment.
        OSError: It cannot be opened.
    """
    handle = os.open(path, (os.O_RDWR if is_writable(path) else os.O_RDONLY) | FLAGS)
    try:
        if lock(handle, alone=True) is False:
            raise BusyError("another process is editing the file")
        demand_named(path, handle)
        yield handle
    finally:
        os.close(handle)


def demand_named(path: str, handle: int) -> None:
    """Refuse to go on with a file that others have put another one in the place of.

    Raises:
        BusyError: It is so.
    """
    if not is_still(path, handle):
        raise BusyError("another process has just replaced the file")


def is_writable(path: str) -> bool:
    """Whether this process may write to a file. Of one that it may not, the folder may still let it be replaced."""
    try:
        os.close(os.open(path, os.O_RDWR | FLAGS))
    except OSError:
        return False
    return True


def demand_writable(path: str) -> None:
    """Refuse to begin a change in place of a file that may not be written to.

    Raises:
        PermissionError: With the path.
    """
    if not is_writable(path):
        raise PermissionError(errno.EACCES, f"{os.strerror(errno.EACCES)}: the file may not be written to", path)


def is_busy(path: str) -> bool:
    """Whether somebody edits a file."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            return lock(handle, alone=False) is False
        finally:
            os.close(handle)
    return False
