"""Bytes from file to file: by the kernel where their place in a page stays the same, so that files can share them."""

import contextlib
import errno
import os
from collections.abc import Callable

STEP = 1 << 25
"""Bytes asked for at once: between two, progress is shown, the process can be interrupted, and the disk begins."""

BLOCK = 1 << 12
"""Files share whole blocks: they can where both positions are at the same place in one."""

BATCH = 1 << 17
"""Bytes written at once, from one multiple of them in the target to the next.

The system keeps what is written at once in one piece of memory, if it begins where such a piece may. Smaller or shifted
ones are more work; larger pieces may have to be made first. (The kernel itself copies half as many at once.)
"""

UNABLE = {
    getattr(errno, name)
    for name in ("EBADF", "EINVAL", "ENOSYS", "ENOTSOCK", "ENOTSUP", "EOPNOTSUPP", "EPERM", "ETXTBSY", "EXDEV")
}
"""What a way says that the system, the file systems or a sandbox do not let go."""


def to_border(position: int) -> int:
    """The bytes from a position in the target to the next multiple of a batch."""
    return BATCH - position % BATCH


def _share_or_copy(source: int, position: int, target: int, size: int) -> int:
    return os.copy_file_range(source, target, size, position)


def _send(source: int, position: int, target: int, size: int) -> int:
    return os.sendfile(target, source, position, size)


def _read_and_write(source: int, position: int, target: int, size: int) -> int:
    rest = memoryview(os.pread(source, min(size, to_border(os.lseek(target, 0, os.SEEK_CUR))), position))
    size = len(rest)
    while rest:
        rest = rest[os.write(target, rest) :]
    return size


Way = Callable[[int, int, int, int], int]
WAYS: tuple[Way, ...] = (_share_or_copy, _send, _read_and_write)
"""Ways to append at most `size` bytes of a file, from a position on, to another one; each gives how many it did.

The last one needs no help, and is the faster one where all bytes move within their pages.
"""


def copy(source: int, position: int, target: int, size: int, show: Callable[[int], None]) -> int:
    """Append bytes of one file to another by the first way that goes.

    Args:
        source: A file descriptor.
        position: In the source, in bytes.
        target: A file descriptor; written at its position, which moves on.
        size: In bytes.
        show: Called with the number of bytes that were copied, often.

    Returns:
        The bytes that were copied: fewer than `size` where the source ends.

    Raises:
        OSError: They cannot be read or written.
    """
    done = 0
    start = os.lseek(target, 0, os.SEEK_CUR)
    is_shareable = (start - position) % BLOCK == 0
    ways = list(WAYS if is_shareable else WAYS[-1:])
    while done < size:
        left = min(size - done, STEP if (start + done) % BATCH == 0 else to_border(start + done))
        copied = _try(ways[0], source, position + done, target, left)
        if copied:
            done += copied
            show(copied)
        elif len(ways) > 1:
            del ways[0]  # also where it copied nothing: some file systems say so of files that hold bytes
        else:
            break
    return done


def early(target: int, show: Callable[[int], None]) -> Callable[[int], None]:
    """Let the disk begin on what is written, while more is: else it waits until all is, and is waited for.

    Args:
        target: A file descriptor, to which bytes are appended from its beginning on.
        show: Called with the number of bytes that were just written.

    Returns:
        What is called instead.
    """
    begun = done = 0

    def written(size: int) -> None:
        nonlocal begun, done
        done += size
        if done - begun >= STEP:
            with contextlib.suppress(AttributeError, OSError):  # not on every system
                # Linux writes what is not on the disk yet before it lets go of it, and does not wait.
                os.posix_fadvise(target, begun, done - begun, os.POSIX_FADV_DONTNEED)
            begun = done
        show(size)

    return written


def _try(way: Way, *args: int) -> int:
    """The bytes that a way copied; none where it does not go."""
    try:
        return way(*args)
    except AttributeError:  # this system does not have it
        return 0
    except OSError as error:
        if way is _read_and_write or error.errno not in UNABLE:
            raise
        return 0
