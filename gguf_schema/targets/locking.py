"""Locks on open files, where the system has them: who changes a file has it alone, who replaces it shares it."""

import contextlib
import os
import time
from collections.abc import Iterator

from ..errors import GGUFError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


JOURNAL = ".journal"
UNDO = ".undo"
"""What is added to the name of a file for those of the records of an edit: while it is under way, and afterwards."""

TRIES = 20
"""How often a file is opened to be locked, a millisecond apart, before its being locked is taken for an edit."""


LONG = 60
"""Seconds that a folder may be locked: giving names to a thousand files takes some on a slow disk."""


class BusyError(GGUFError):
    """Somebody else edits the file."""


def lock(handle: int, *, alone: bool, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed.

    Args:
        handle: Its descriptor.
        alone: Nobody else may have it locked; else others may share it.
        wait: Wait for those who have it otherwise.

    Returns:
        Whether it is locked; None where there are no locks, as on some network file systems.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_still(path: str, handle: int) -> bool:
    """Whether a path, not one that is a link, is the name of an open file."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def naming_alone(folder: str) -> Iterator[None]:
    """Keep others from giving names in a folder to files that belong together, where the system has such locks.

    Raises:
        BusyError: Somebody does, and has not come to an end in `LONG`.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            handle = os.open(folder or os.curdir, os.O_RDONLY)
            stack.callback(os.close, handle)
            end = time.monotonic() + LONG
            while lock(handle, alone=True) is False:
                if time.monotonic() > end:
                    raise BusyError(f"another process has locked the folder {folder}: nothing is replaced in it")
                time.sleep(0.01)
        yield


@contextlib.contextmanager
def unedited(path: str) -> Iterator[None]:
    """Keep those who would edit a file from it while it is replaced, if it is there.

    Raises:
        BusyError: Somebody edits it.
        GGUFError: An edit of it was interrupted: what would mend the old file would damage the new one.
    """
    with contextlib.ExitStack() as stack:
        for attempt in range(TRIES):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            except (AttributeError, OSError):  # Windows; not there, or not readable
                break
            is_locked = lock(handle, alone=False)
            if is_locked is not False and is_still(path, handle):
                stack.callback(os.close, handle)
                break
            os.close(handle)  # it was just replaced, or is edited, or for a moment looked like a leftover
            if is_locked is False and attempt == TRIES - 1:
                raise BusyError(f"another process is editing {path}: it is not replaced")
            time.sleep(0.001)
        if os.path.exists(path + JOURNAL):
            raise GGUFError(
                f"an edit of {path} is under way or was interrupted: it is not replaced; recover it first "
                f"(`gguf-schema edit --recover`), or remove {path}{JOURNAL}"
            )
        yield
