"""Files that appear whole or not at all: written beside their place, and put into it at once."""

import contextlib
import errno
import hashlib
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, BinaryIO

from .locking import is_still, lock, unedited

MARK = "gguf_schema"
"""In the names of temporary files, so that no other program's is taken for ours."""

LONGEST = 40
"""Characters of a target's name that the name of its temporary file has. Of longer ones a hash tells the rest."""

GAP = 8
"""Names of temporary files that are looked at behind the last that is there."""

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a process; Windows has no SIGHUP."""

NO_OPEN_NAMES = os.name == "nt"
"""Windows neither renames nor removes a file that is open. It has no locks, so nobody else touches one either."""

Naming = Callable[[os.stat_result], contextlib.AbstractContextManager[object]]
"""Called with the state of a new file that is whole on the disk. What it gives is entered before the file gets its
name, and left when it has that, while it is still locked."""

FULL = {errno.ENOSPC, errno.EFBIG} | {getattr(errno, "EDQUOT", errno.ENOSPC)}
"""What the system says when bytes are too many for it."""


def real_path(path: str | os.PathLike[str]) -> str:
    """The file that a path means, behind links.

    Raises:
        IsADirectoryError: It ends as the path of a folder does: `os.path.realpath` would take it for the file before.
    """
    text = os.fsdecode(path)
    if os.path.basename(text) in ("", os.curdir, os.pardir):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), text)
    return os.path.realpath(text)


@contextlib.contextmanager
def replacing(
    path: str, overwrite: bool, needed: int, naming: Naming | None = None, like: str | None = None
) -> Iterator[BinaryIO]:
    """A new file, put in the place of `path` when the block ends without an error; an old one stays whole until then.

    Args:
        path: Not a symbolic link.
        overwrite: Whether an old file may be replaced.
        needed: Bytes that will surely take up room on the disk.
        naming: What goes with its getting its name. Whoever gives this edits the old file, and has it locked.
        like: The file whose owner, permissions and attributes it gets, if not the old one.

    Raises:
        FileExistsError: An old file is there that may not be replaced.
        BusyError: Somebody edits the old file.
        GGUFError: An edit of it was interrupted.
        OSError: The disk is full, the folder cannot be written to, and the like; with the path.
    """
    with contextlib.suppress(FileNotFoundError):
        os.lstat(path)  # a name that is too long is told now, not when all is written
        if not overwrite:
            raise _error(errno.EEXIST, path)
    folder = os.path.dirname(path)
    with contextlib.ExitStack() as beginning:
        beginning.enter_context(undisturbed())
        try:
            temporary, handle = _temporary(path, 0o600 if os.path.exists(like or path) else 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, path) from None
        ours = beginning.pop_all()  # what a signal interrupts from now on is removed
    with open(handle, "wb") as file, contextlib.ExitStack() as stack:
        try:
            ours.close()
            if naming is None:
                stack.enter_context(unedited(path))
            _keep_owner_and_mode(like or path, handle)
            _keep_attributes(like or path, handle)
            _demand_room(handle, needed, path)
            yield file
            file.flush()
            os.fsync(handle)
            if NO_OPEN_NAMES:
                file.close()
            with naming(os.stat(temporary)) if naming else unedited(path):  # again: it may be another file by now
                _demand_ours(temporary, file, path)
                if overwrite:
                    os.replace(temporary, path)
                else:
                    _link(temporary, path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                _remove(temporary, file)
            with contextlib.suppress(OSError):
                file.close()
            if isinstance(error, OSError) and _is_of(error, temporary):
                raise type(error)(error.errno, error.strerror, path) from None
            raise
    sync_folder(folder)


def _is_of(error: OSError, temporary: str) -> bool:
    """Whether what failed is a matter of the temporary file, of which nobody knows: its name, or the room for it."""
    return error.filename == temporary or (error.filename is None and error.errno in FULL)


def _temporary(path: str, mode: int) -> tuple[str, int]:
    """A new file beside `path`, with these permissions less the process's umask: its name and descriptor.

    It is locked as long as it is open. What killed processes left there is removed: nobody has it locked.
    """
    # Nobody renames or removes a name but who has the file of that name locked, and has then seen that it is its name:
    # - Its maker shares the lock, from `is_still` on until it has renamed or removed it; only then it closes it.
    # - Who removes a leftover has the lock alone, so the maker has not begun, or is gone.
    # So between the look and the act the name cannot become that of another file. A maker whose file was removed
    # before it had the lock finds that out here. Where there are no locks, nobody removes a file that he did not make.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    names = _temporary_names(path)
    temporary = next(names)
    while True:
        try:
            handle = os.open(temporary, flags, mode)
        except FileExistsError:
            if not _remove_stale(temporary):
                temporary = next(names)
            continue
        if lock(handle, alone=False, wait=True) is None or is_still(temporary, handle):
            break
        os.close(handle)  # somebody thought that it was left over, before it was locked
    _remove_all_stale(names)
    return temporary, handle


def _temporary_names(path: str) -> Iterator[str]:
    """The names that temporary files of a target have, one after the other."""
    return (_temporary_name(path, number) for number in count())


def _temporary_name(path: str, which: int | str) -> str:
    """A name beside a target that no other program gives, and that looks like no model."""
    folder, name = os.path.split(path)
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"
    return os.path.join(folder, f".{name}.{MARK}-{which}.tmp")


def remove_leftovers(path: str) -> None:
    """Remove the temporary files that killed processes left of a target."""
    _remove_all_stale(_temporary_names(path))


def _remove_all_stale(names: Iterator[str]) -> None:
    """Remove leftovers of these names, up to where a few are none: other writers may have had those between."""
    kept = 0
    while kept < GAP:
        kept += not _remove_stale(next(names))


def _remove_stale(temporary: str) -> bool:
    """Remove a temporary file if its process has ended; whether it was."""
    try:
        handle = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (AttributeError, OSError):  # not there, not ours, or Windows
        return False
    try:
        is_left = stat.S_ISREG(os.fstat(handle).st_mode) and lock(handle, alone=True) is True
        is_stale = is_left and is_still(temporary, handle)
        if is_stale:
            os.unlink(temporary)
        return is_stale
    except OSError:
        return False
    finally:
        os.close(handle)


def _demand_ours(temporary: str, file: BinaryIO, path: str) -> None:
    """Refuse to give a name to what is not the file that was written.

    Raises:
        FileNotFoundError: Somebody who asks for no lock has removed it.
    """
    if not NO_OPEN_NAMES and not is_still(temporary, file.fileno()):
        raise FileNotFoundError(errno.ENOENT, "its temporary file was removed", path)


def _remove(temporary: str, file: BinaryIO) -> None:
    """Remove a temporary file, if it is still ours, while it is locked."""
    if NO_OPEN_NAMES:
        file.close()
    if NO_OPEN_NAMES or is_still(temporary, file.fileno()):
        os.unlink(temporary)


@contextlib.contextmanager
def aside(path: str, others: Sequence[str]) -> Iterator[None]:
    """Take a file, if it is there, out of its place while others take theirs; it comes back if none of them does.

    Meanwhile it has a name that no other writer gives or removes, if nobody else does this in the folder at once
    (`locking.naming_alone`).

    Args:
        path: The file.
        others: The paths of the others.
    """
    spare = _temporary_name(path, "old")
    before = _files_of(others)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path, spare)
            sync_folder(os.path.dirname(path))
        yield
    except BaseException:
        if _files_of(others) == before and not os.path.lexists(path):
            with contextlib.suppress(OSError):
                os.rename(spare, path)
        raise
    finally:
        if _files_of(others) != before:
            with contextlib.suppress(OSError):
                os.unlink(spare)


def _files_of(paths: Iterable[str]) -> list[tuple[int, int] | None]:
    """What tells the files that have these names from others; None of a name that none has."""
    states = [os.stat(path) if os.path.exists(path) else None for path in paths]
    return [state and (state.st_dev, state.st_ino) for state in states]


def ending_handlers() -> dict[int, Any]:
    """What is done at each signal that ends a process, but those that are ignored: what this thread may replace."""
    if threading.current_thread() is not threading.main_thread():  # no other can
        return {}
    handlers = {number: signal.getsignal(number) for number in ENDING}
    # None: the handler of a program that Python is a part of.
    return {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let the signals that end a process wait for a moment, while names are given. Only the main thread has to."""
    handlers = ending_handlers()
    came: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _keep_owner_and_mode(path: str, handle: int) -> None:
    """Give a file the owner and the permissions of the one that is there."""
    with contextlib.suppress(AttributeError, OSError):
        old = os.stat(path)
        with contextlib.suppress(OSError):
            os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _keep_attributes(path: str, handle: int) -> None:
    """Give a file the extended attributes, access control lists among them, of the one that is there, where they go."""
    with contextlib.suppress(AttributeError, OSError):
        for name in os.listxattr(path):
            with contextlib.suppress(OSError):
                os.setxattr(handle, name, os.getxattr(path, name))


def _demand_room(handle: int, needed: int, path: str) -> None:
    """Refuse to begin what cannot end, where the system tells how much room there is.

    Not by allocating it: where a file system cannot, the C library writes every block; and shared blocks need none.
    """
    try:
        disk = os.fstatvfs(handle)
    except (AttributeError, OSError):
        return
    free = disk.f_bfree * disk.f_frsize
    if disk.f_blocks and free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {needed} bytes needed, {free} free", path)


def _link(temporary: str, path: str) -> None:
    """Give a file its name unless that is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _error(errno.EEXIST, path) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise _error(errno.EEXIST, path) from None
        os.replace(temporary, path)
    else:
        os.unlink(temporary)


def _error(number: int | None, path: str) -> OSError:
    return OSError(number, os.strerror(number or 0), path)


def sync_folder(folder: str) -> None:
    """Make names in a folder last, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder or os.curdir, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
