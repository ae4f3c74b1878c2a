"""Where bytes go: a path, whose file is replaced at once when all is written, a binary file object, or a folder."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from .errors import GGUFError


def save(target: str | os.PathLike[str] | BinaryIO, chunks: Iterable[memoryview | bytes]) -> None:
    """Write pieces of bytes.

    Args:
        target: A path or a binary file object. The file of a path appears when all of it is written; until then an
            old one stays whole. What is there and is no file (a pipe, a device) is written to.
        chunks: The pieces, in order.

    Raises:
        TypeError: The target is neither.
        OSError: It cannot be written.
    """
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "write"):
        raise TypeError(f"expected a path or a binary file object, found {target.__class__.__name__}")
    if not isinstance(target, str | os.PathLike):
        _write_all(target, chunks)
    elif os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as special:  # a pipe or a device cannot be replaced
            _write_all(special, chunks)
    else:
        _replace(os.path.realpath(target), chunks)


def own_folder(folder: str | os.PathLike[str], mark: str) -> Path:
    """A folder that may be written into, because it is ours or is made now.

    Args:
        folder: Its path.
        mark: The file that tells that a folder which is not empty was written before.

    Raises:
        GGUFError: It holds something else.
        OSError: It cannot be made.
    """
    root = Path(folder)
    if root.is_dir() and any(root.iterdir()) and not (root / mark).is_file():
        raise GGUFError(f"{root} is not empty, and holds no {mark} of older files")
    root.mkdir(parents=True, exist_ok=True)
    return root


def _write_all(file: BinaryIO, chunks: Iterable[memoryview | bytes]) -> None:
    """Write every byte, also where the file takes fewer at once (raw files may)."""
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            written = file.write(rest)
            rest = rest[len(rest) if written is None else written :]


def _replace(path: str, chunks: Iterable[memoryview | bytes]) -> None:
    """Write a file beside `path`, then put it in its place at once; the old file stays whole until then."""
    import tempfile  # not at the top: it costs a third of the package's import

    folder, name = os.path.split(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name[:40]}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with open(handle, "wb") as file:
            os.chmod(temporary, _mode(path))
            _write_all(file, chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _mode(path: str) -> int:
    """The permissions of the file that is there, or those of a new one."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _sync_folder(folder: str) -> None:
    """Make the new name last, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
