"""Where bytes come from: a path, an object in memory, or a binary file object; read in pieces, mapped where it pays.

Metadata is copied by reads, never mapped: a file that shrinks under a map kills the process (SIGBUS).
"""

import contextlib
import io
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol, Self

from .errors import GGUFError

FIRST_READ = 1 << 14
LARGEST_READ = 1 << 20
"""Bytes fetched at once: from the first read on, twice as many each time."""


class Source(Protocol):
    """A file-like thing of known size. Positions are bytes from its start."""

    @property
    def name(self) -> str:
        """Its path, or what stands for it."""

    @property
    def size(self) -> int:
        """In bytes."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from a position."""

    def view(self, position: int, size: int) -> Any:
        """A read-only buffer whose first `size` bytes are those at `position`, and the offset of them in it.

        Returns:
            A pair (buffer, offset), for `numpy.frombuffer`.
        """

    def close(self) -> None:
        """Let go of it. Views stay valid."""


def _read_at(file: Any, position: int, size: int, end: int) -> bytes:
    """Up to `size` bytes from a position; fewer only where the file ends (one read may give fewer than are there).

    Nothing is asked for behind the end: a position that a file declares may be more than the system can count.
    """
    _refuse_closed(file)
    size = min(size, end - position)
    if size <= 0:
        return b""
    file.seek(position)
    data: bytes = file.read(size)
    if len(data) in (0, size):
        return data
    pieces = [data]
    size -= len(data)
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _refuse_closed(file: Any) -> None:
    if getattr(file, "closed", False):
        raise GGUFError("the file is closed")


class FileSource:
    """A path. Views are a memory map of the whole file, made when the first one is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fsdecode(path)
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        self.size, self.modified = self._state()
        self.lock = threading.Lock()
        self.map: mmap.mmap | None = None

    def read_at(self, position: int, size: int) -> bytes:
        with self.lock:
            return _read_at(self.file, position, size, self.size)

    def view(self, position: int, size: int) -> tuple[Any, int]:
        with self.lock:
            _refuse_closed(self.file)
            if os.fstat(self.file.fileno()).st_size < position + size:
                raise GGUFError(f"the file has shrunk: {size} bytes at byte {position} were there when it was opened")
            if size == 0:
                return b"", 0
            if self.map is None:
                self.map = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
            return self.map, position

    def has_changed(self) -> bool:
        """Whether the file was written to since it was opened, as far as its size and times tell."""
        return not self.file.closed and self._state() != (self.size, self.modified)

    def _state(self) -> tuple[int, int]:
        """Bytes of the file, and the time of its last change in nanoseconds."""
        state = os.fstat(self.file.fileno())
        return state.st_size, state.st_mtime_ns

    def close(self) -> None:
        # The map is not closed: arrays may look into it. It goes with the last of them.
        with self.lock:
            self.map = None
            self.file.close()


class PathSource(NamedTuple):
    """A path that is open only while it is read: many may be held. Views are copies."""

    path: str | os.PathLike[str]
    size: int
    modified: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """The file that is there now."""
        state = os.stat(path)
        return cls(path, state.st_size, state.st_mtime_ns)

    @property
    def name(self) -> str:
        return os.fsdecode(self.path)

    def read_at(self, position: int, size: int) -> bytes:
        with open(self.path, "rb", buffering=0) as file:
            return _read_at(file, position, size, self.size)

    def view(self, position: int, size: int) -> tuple[Any, int]:
        return self.read_at(position, size), 0

    def has_changed(self) -> bool:
        """Whether another file is there, as far as its size and times tell."""
        return PathSource.of(self.path) != self

    def close(self) -> None:
        """It is not open."""


class MemorySource:
    """Any bytes-like object. Views look into it; nothing is copied but what is read."""

    def __init__(self, data: Any) -> None:
        self.name = "<memory>"
        self.data: memoryview | bytes = memoryview(data).cast("B").toreadonly()
        self.size = len(self.data)

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._open()[position : position + size])

    def view(self, position: int, size: int) -> tuple[Any, int]:
        return self._open(), position

    def _open(self) -> memoryview | bytes:
        data = self.data
        if len(data) < self.size:
            raise GGUFError("the file is closed")
        return data

    def close(self) -> None:
        self.data = b""


class ObjectSource:
    """A binary file object that can seek, from its current position on. Views are copies: it may be of any kind."""

    def __init__(self, file: BinaryIO) -> None:
        self.name = str(getattr(file, "name", "<file object>"))
        self.file = file
        self.lock = threading.Lock()
        self.start = file.tell()
        self.size = file.seek(0, io.SEEK_END) - self.start
        file.seek(self.start)

    def read_at(self, position: int, size: int) -> bytes:
        with self.lock:
            return _read_at(self.file, self.start + position, size, self.start + self.size)

    def view(self, position: int, size: int) -> tuple[Any, int]:
        data = self.read_at(position, size)
        if len(data) < size:
            raise GGUFError(f"the file has shrunk: {size} bytes at byte {position} were there when it was opened")
        return data, 0

    def close(self) -> None:
        """The object belongs to the caller and stays open."""


@contextlib.contextmanager
def on_disk(source: Source) -> Iterator[tuple[int, int] | None]:
    """The descriptor of an open file that holds a source's bytes as they are, and where in it they start; or None."""
    if isinstance(source, PathSource):
        with open(source.path, "rb", buffering=0) as file:
            yield file.fileno(), 0
    elif isinstance(source, FileSource):
        yield None if source.file.closed else (source.file.fileno(), 0)
    elif isinstance(source, ObjectSource):
        # Of no other kind of object does `fileno` tell that its bytes are those of the file: gzip's have it, too.
        raw = source.file.raw if type(source.file) is io.BufferedReader else source.file
        yield (raw.fileno(), source.start) if type(raw) is io.FileIO and not raw.closed else None
    else:
        yield None


def source_of(source: Any, check_start: Callable[[bytes], None]) -> Source:
    """The Source of a path, a bytes-like object or a binary file object.

    Args:
        source: What to read. What cannot seek or says that it is empty (pipes and devices, also by path) is read to
            its end.
        check_start: Called with the first bytes of such a stream before the rest is read; may raise.

    Raises:
        TypeError: Anything else.
        OSError: The path cannot be opened.
    """
    if isinstance(source, str | os.PathLike):
        opened = FileSource(source)
        if opened.size:
            return opened
        with opened.file:
            piped = _whole(opened.file, check_start)
        piped.name = opened.name
        return piped
    try:
        return MemorySource(source)
    except TypeError:
        if not hasattr(source, "read"):
            found = type(source).__name__
            raise TypeError(f"expected a path, bytes or a binary file object, found {found}") from None
    if not isinstance(source.read(0), bytes):
        raise TypeError("expected a file object opened in binary mode")
    opened_object = ObjectSource(source) if source.seekable() else None
    return opened_object if opened_object and opened_object.size else _whole(source, check_start)


def _whole(stream: Any, check_start: Callable[[bytes], None]) -> "MemorySource":
    """All that a stream gives."""
    pieces: list[bytes] = []
    size = 0
    is_checked = False
    while piece := stream.read(FIRST_READ if size < FIRST_READ else LARGEST_READ):
        pieces.append(piece)
        size += len(piece)
        if size >= FIRST_READ and not is_checked:
            check_start(b"".join(pieces))
            is_checked = True
    return MemorySource(b"".join(pieces))


class Reader:
    """A stream over a Source that fetches ahead in growing pieces, so that a small file's reader reads little."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.position = 0
        self.window = b""
        self.window_start = 0
        self.fetch = FIRST_READ

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = (0, self.position, self.source.size)[whence]
        self.position = max(0, base + offset)
        return self.position

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self.source.size - self.position)
        size = left if size < 0 else min(size, left)
        start = self.position - self.window_start
        if start < 0 or start + size > len(self.window):
            # What is held of it is read again: cheaper than putting large pieces together.
            self.window = self.source.read_at(self.position, max(size, self.fetch))
            self.window_start = self.position
            self.fetch = min(2 * self.fetch, LARGEST_READ)
            start = 0
        data = self.window[start : start + size]
        self.position += len(data)
        return data


class PatchedSource:
    """A Source some of whose bytes are others."""

    def __init__(self, source: Source, position: int, data: bytes) -> None:
        self.source = source
        self.name, self.size = source.name, source.size
        self.position, self.data = position, data

    def read_at(self, position: int, size: int) -> bytes:
        read = self.source.read_at(position, size)
        start, end = max(position, self.position), min(position + len(read), self.position + len(self.data))
        if start >= end:
            return read
        new = self.data[start - self.position : end - self.position]
        return read[: start - position] + new + read[end - position :]

    def view(self, position: int, size: int) -> Any:
        return self.read_at(position, size), 0

    def close(self) -> None:
        """It is the source's to close."""
