"""Where bytes come from: a path, an object in memory, or a binary file object; read in pieces, mapped where it pays.

Metadata is copied by reads, never mapped: a file that shrinks under a map kills the process (SIGBUS).
"""

import io
import mmap
import os
from typing import Any, BinaryIO, Protocol

from .errors import GGUFError

FIRST_READ = 1 << 14
LARGEST_READ = 1 << 20
"""Bytes fetched at once: from the first read on, twice as many each time."""


class Source(Protocol):
    """A file-like thing of known size. Positions are bytes from its start."""

    name: str
    size: int

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from a position."""

    def view(self, position: int, size: int) -> Any:
        """A read-only buffer whose first `size` bytes are those at `position`, and the offset of them in it.

        Returns:
            A pair (buffer, offset), for `numpy.frombuffer`.
        """

    def close(self) -> None:
        """Let go of it. Views stay valid."""


class FileSource:
    """A path. Views are a memory map of the whole file, made when the first one is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        self.size = os.fstat(self.file.fileno()).st_size
        self.map: mmap.mmap | None = None

    def read_at(self, position: int, size: int) -> bytes:
        self.file.seek(position)
        return self.file.read(size)

    def view(self, position: int, size: int) -> tuple[Any, int]:
        if os.fstat(self.file.fileno()).st_size < position + size:
            raise GGUFError(f"the file has shrunk: {size} bytes at byte {position} were there when it was opened")
        if size == 0:
            return b"", 0
        if self.map is None:
            self.map = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return self.map, position

    def close(self) -> None:
        # The map is not closed: arrays may look into it. It goes with the last of them.
        self.map = None
        self.file.close()


class MemorySource:
    """Any bytes-like object. Views look into it; nothing is copied but what is read."""

    def __init__(self, data: Any) -> None:
        self.name = "<memory>"
        self.data: memoryview | bytes = memoryview(data).cast("B").toreadonly()
        self.size = len(self.data)

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self.data[position : position + size])

    def view(self, position: int, size: int) -> tuple[Any, int]:
        return self.data, position

    def close(self) -> None:
        self.data = b""


class ObjectSource:
    """A binary file object that can seek, from its current position on. Views are copies: it may be of any kind."""

    def __init__(self, file: BinaryIO) -> None:
        self.name = str(getattr(file, "name", "<file object>"))
        self.file = file
        self.start = file.tell()
        self.size = file.seek(0, io.SEEK_END) - self.start
        file.seek(self.start)

    def read_at(self, position: int, size: int) -> bytes:
        self.file.seek(self.start + position)
        pieces = []
        while size > 0 and (piece := self.file.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def view(self, position: int, size: int) -> tuple[Any, int]:
        data = self.read_at(position, size)
        if len(data) < size:
            raise GGUFError(f"the file has shrunk: {size} bytes at byte {position} were there when it was opened")
        return data, 0

    def close(self) -> None:
        """The object belongs to the caller and stays open."""


def source_of(source: Any) -> Source:
    """The Source of a path, a bytes-like object or a binary file object.

    Raises:
        TypeError: Anything else.
        OSError: The path cannot be opened.
    """
    if isinstance(source, str | os.PathLike):
        return FileSource(source)
    if hasattr(source, "read"):
        if hasattr(source, "seekable") and source.seekable():
            return ObjectSource(source)
        data = source.read()
        if not isinstance(data, bytes):
            raise TypeError("expected a file object opened in binary mode")
        return MemorySource(data)
    try:
        return MemorySource(source)
    except TypeError:
        raise TypeError(f"expected a path, bytes or a binary file object, found {type(source).__name__}") from None


class Reader(io.RawIOBase):
    """A stream over a Source that fetches ahead in growing pieces, so that a small file's reader reads little."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.position = 0
        self.window = b""
        self.window_start = 0
        self.fetch = FIRST_READ

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self.position, self.source.size)[whence]
        self.position = max(0, base + offset)
        return self.position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self.source.size - self.position)
        size = left if size is None or size < 0 else min(size, left)
        start = self.position - self.window_start
        if start < 0 or start + size > len(self.window):
            self.window = self.source.read_at(self.position, max(size, self.fetch))
            self.window_start = self.position
            self.fetch = min(2 * self.fetch, LARGEST_READ)
            start = 0
        data = self.window[start : start + size]
        self.position += len(data)
        return data
