"""Where bytes go: a path, whose file is replaced at once when all is written, a binary file object, or a folder.

`save` takes what is small and at hand; `save_pieces` takes pieces of known size, of any size, from anywhere; `save_set`
takes those of several files that belong together.
"""

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

from ..errors import GGUFError
from ..sources import FileSource, PathSource, on_disk
from .copying import BLOCK, copy, early, to_border
from .folders import own_folder
from .locking import JOURNAL, UNDO, BusyError, is_still, lock, naming_alone
from .memory import array_of, is_bytes_like
from .pieces import CHUNK, Chunks, Content, Memory, Piece, Range, Swapped, Zeros, bytes_piece
from .replacement import (
    Naming,
    aside,
    ending_handlers,
    real_path,
    remove_leftovers,
    replacing,
    sync_folder,
    undisturbed,
)

__all__ = [
    "save",
    "save_pieces",
    "save_set",
    "chunks_of",
    "own_folder",
    "sync_folder",
    "replacing",
    "remove_leftovers",
    "lock",
    "is_still",
    "BusyError",
    "JOURNAL",
    "UNDO",
    "undisturbed",
    "ending_handlers",
    "Naming",
    "Piece",
    "bytes_piece",
    "Content",
    "Zeros",
    "Memory",
    "Range",
    "Swapped",
    "Chunks",
    "BLOCK",
    "CHUNK",
    "array_of",
    "is_bytes_like",
    "Show",
    "Target",
]

Target = str | os.PathLike[str] | BinaryIO
Show = Callable[[int, int], None]
"""Called with the bytes that are done and the whole."""


def save(target: Target, chunks: Iterable[memoryview | bytes], *, overwrite: bool = True) -> None:
    """Write pieces of bytes.

    Args:
        target: A path or a binary file object. The file of a path appears when all of it is written; until then an
            old one stays whole. What is there and is no file (a pipe, a device) is written to.
        chunks: The pieces, in order.
        overwrite: Whether a file that is there may be replaced.

    Raises:
        TypeError: The target is neither.
        FileExistsError: A file is there that may not be replaced.
        BusyError: Somebody edits that file.
        GGUFError: An edit of it was interrupted.
        OSError: It cannot be written.
    """
    with _opened(target, overwrite, 0) as (file, _):
        for chunk in chunks:
            _write_all(file, memoryview(chunk), 0)


def save_pieces(
    target: Target,
    pieces: Sequence[Piece],
    *,
    overwrite: bool = True,
    show: Show | None = None,
    naming: Naming | None = None,
) -> None:
    """Write pieces that follow each other; no more than a few MiB are held at once.

    Args:
        target: As for `save`.
        pieces: In order. Ranges of files on disk go from file to file (see `copying`) where the target is a path.
        overwrite: Whether a file that is there may be replaced.
        show: Called with the bytes that are written and the whole, often.
        naming: As of `replacement.replacing`.

    Raises:
        TypeError: The target is neither a path nor a binary file object.
        BuildError: A piece does not come as it should, or a file was written to meanwhile; the path says which.
        FileExistsError: A file is there that may not be replaced.
        BusyError: Somebody edits that file.
        GGUFError: An edit of it was interrupted.
        OSError: It cannot be written, or a source cannot be read.
    """
    with _opened(target, overwrite, _new_bytes(target, pieces), naming) as (file, by_kernel):
        _fill(file, by_kernel, pieces, _counter(pieces, show))


def save_set(files: Mapping[str, Sequence[Piece]], *, overwrite: bool = True, show: Show | None = None) -> None:
    """Write files that belong together: all are whole on the disk before the first of them appears.

    They appear from the last to the first, so where the first is, all others are. Of an old set that is replaced the
    first one goes before, and comes back if no other can be replaced; so none is made of old and new files, also where
    two processes write them at once.

    Args:
        files: The pieces of each, by path.
        overwrite: As for `save_pieces`.
        show: Called with the bytes of all files that are written and the whole, often.

    Raises:
        BuildError, FileExistsError, BusyError, GGUFError, OSError: As `save_pieces`. Nothing appears, unless it
            happens while files do.
    """
    count = _counter([piece for pieces in files.values() for piece in pieces], show)
    paths = {real_path(path): pieces for path, pieces in files.items()}
    if len(paths) < len(files):
        raise GGUFError("two of the names are links to one file")
    for path in paths:
        if os.path.isdir(path):  # would be found out when the first of an old set is gone
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    needed = [sum(_new_bytes(path, pieces) for path, pieces in paths.items()), *[0] * len(paths)]
    with contextlib.ExitStack() as last, contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(replacing(path, overwrite, room)) for path, room in zip(paths, needed, strict=False)
        ]
        for file, pieces in zip(opened, paths.values(), strict=True):
            _fill(file, hasattr(os, "pread"), pieces, count)
            file.flush()
            os.fsync(file.fileno())
        first, *others = paths
        if overwrite and others:
            last.enter_context(naming_alone(os.path.dirname(first)))
        last.enter_context(undisturbed())
        if overwrite and others:
            last.enter_context(aside(first, others))


def _counter(pieces: Iterable[Piece], show: Show | None) -> Callable[[int], None]:
    """A function that is called with the bytes that were just written."""
    whole = sum(piece.size for piece in pieces)
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        if show is not None:
            show(done, whole)

    return count


def _fill(file: BinaryIO, by_kernel: bool, pieces: Sequence[Piece], count: Callable[[int], None]) -> None:
    """Write pieces that follow each other, the first at the file's beginning."""
    count = early(file.fileno(), count) if by_kernel else count
    position = 0
    for piece in _runs(pieces):
        if not (by_kernel and _copied(file, piece, count)):
            chunk_position = position
            for chunk in piece.chunks():
                _write_all(file, chunk, chunk_position)
                chunk_position += len(chunk)
                count(len(chunk))
        position += piece.size
    for piece in pieces:
        _demand_unchanged(piece)


def chunks_of(pieces: Sequence[Piece]) -> Iterator[bytes]:
    """The bytes of pieces that follow each other, for who writes them himself.

    Raises:
        BuildError: A piece does not come as it should; or, when all was given, a file was written to meanwhile.
        OSError: A source cannot be read.
    """
    for piece in pieces:
        yield from map(bytes, piece.chunks())
    for piece in pieces:
        _demand_unchanged(piece)


def _runs(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces; ranges of a source that follow each other there, too, as one."""
    run: Piece | None = None
    for piece in pieces:
        if run is not None and _continues(run, piece):
            run = run._replace(size=run.size + piece.size)
            continue
        if run is not None:
            yield run
        run = piece
    if run is not None:
        yield run


def _continues(run: Piece, piece: Piece) -> bool:
    """Whether a piece's bytes stand right behind those of another one."""
    before, after = run.content, piece.content
    if not isinstance(before, Range) or not isinstance(after, Range) or before.source != after.source:
        return False
    return before.position + run.size == after.position


def _copied(file: BinaryIO, piece: Piece, count: Callable[[int], None]) -> bool:
    """Let the kernel write a piece; whether it is a range of a file on disk, so that it did."""
    if not isinstance(piece.content, Range):
        return False
    source, position = piece.content
    with on_disk(source) as place:
        if place is None:
            return False
        descriptor, start = place
        file.flush()  # the kernel writes behind what was written before, and so does the file afterwards
        copied = copy(descriptor, start + position, file.fileno(), piece.size, count)
    if copied < piece.size:
        raise piece.wrong(f"{piece.size} bytes expected, {copied} came from {piece.content.whence}: it has shrunk")
    return True


def _demand_unchanged(piece: Piece) -> None:
    """Refuse what was copied while somebody wrote to it: it is neither the old nor the new file."""
    content = piece.content.range if isinstance(piece.content, Swapped) else piece.content
    if (
        isinstance(content, Range)
        and isinstance(content.source, FileSource | PathSource)
        and content.source.has_changed()
    ):
        raise piece.wrong(f"{content.source.name} has changed since it was opened")


def _new_bytes(target: Target, pieces: Iterable[Piece]) -> int:
    """The bytes that need room: not those that the new file may share with one on the same disk."""
    if not isinstance(target, str | os.PathLike):
        return 0
    folder = os.path.dirname(os.path.realpath(target))
    needed = position = 0
    for piece in pieces:
        if not _is_shareable(piece, position, folder):
            needed += piece.size
        position += piece.size
    return needed


def _is_shareable(piece: Piece, position: int, folder: str) -> bool:
    """Whether a piece that is written at a position may share blocks with the file that it comes from."""
    if not isinstance(piece.content, Range):
        return False
    with on_disk(piece.content.source) as place, contextlib.suppress(OSError):
        if place is not None and (place[1] + piece.content.position - position) % BLOCK == 0:
            return os.fstat(place[0]).st_dev == os.stat(folder).st_dev
    return False


@contextlib.contextmanager
def _opened(
    target: Target, overwrite: bool, needed: int, naming: Naming | None = None
) -> Iterator[tuple[BinaryIO, bool]]:
    """What is written to, and whether it is a new file that the kernel can write."""
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "write"):
        raise TypeError(f"expected a path or a binary file object, found {target.__class__.__name__}")
    if not isinstance(target, str | os.PathLike):
        yield target, False
    elif os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as special:  # a pipe or a device cannot be replaced
            yield special, False
    else:
        with replacing(real_path(target), overwrite, needed, naming) as file:
            yield file, hasattr(os, "pread")


def _write_all(file: BinaryIO, rest: memoryview, position: int) -> None:
    """Write every byte, in batches of the target, also where the file takes fewer at once (raw files may).

    Raises:
        BlockingIOError: A raw file that does not wait takes nothing now.
    """
    while rest:
        batch = rest[: to_border(position)]
        written = file.write(batch)
        if written is not None and not 0 < written <= len(batch):
            raise OSError(errno.EIO, f"the file says that it took {written} of {len(batch)} bytes")
        if written is None and isinstance(file, io.RawIOBase):  # of anything else that counts nothing it means all
            raise BlockingIOError(errno.EAGAIN, "the file takes no more now; let it block, so that writing waits")
        taken = len(batch) if written is None else written
        rest, position = rest[taken:], position + taken
