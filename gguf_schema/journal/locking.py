"""One editor at a time: a lock on the file itself, which readers need not know of."""

import contextlib
import os
from collections.abc import Iterator

from ..errors import GGUFError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class BusyError(GGUFError):
    """Somebody else edits the file."""


@contextlib.contextmanager
def exclusive(path: str) -> Iterator[int]:
    """Open a file to change it, and keep others from doing so meanwhile, where the file system can.

    Args:
        path: Not a symbolic link.

    Yields:
        The file descriptor.

    Raises:
        BusyError: Somebody else edits the file, or has replaced it this moment.
        OSError: It cannot be opened for writing.
    """
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        if not _lock(handle):
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
            return not _lock(handle)
        finally:
            os.close(handle)
    return False


def _lock(handle: int) -> bool:
    """Lock an open file; False where somebody else has. Where there are no locks, everybody gets one."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # some network file systems have no locks
            pass
    return True
