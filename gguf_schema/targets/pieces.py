"""What is written, piece by piece: how many bytes, and where they come from."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import BuildError, GGUFError
from ..sources import Source
from .memory import Map, array_of, as_bytes, is_bytes_like

CHUNK = 1 << 20
"""Bytes held at once. More do not stay in the processor's cache."""


class Content(Protocol):
    """Where the bytes of a piece come from."""

    def chunks(self, size: int) -> Iterator[memoryview]:
        """The bytes, of which `size` are expected."""

    @property
    def whence(self) -> str:
        """In words."""


class Zeros(NamedTuple):
    """As many zeros as are needed."""

    def chunks(self, size: int) -> Iterator[memoryview]:
        zeros = memoryview(bytes(min(size, CHUNK)))
        for start in range(0, size, CHUNK):
            yield zeros[: size - start]

    @property
    def whence(self) -> str:
        return "zeros"


class Memory(NamedTuple):
    """An array, in C order; converted in parts where it is of another dtype, or not contiguous."""

    array: np.ndarray[Any, Any]
    dtype: np.dtype[Any]

    def chunks(self, size: int) -> Iterator[memoryview]:
        map = Map(self.array)
        for part in _parts(self.array):
            map.fetch(part)
            yield as_bytes(np.ascontiguousarray(part, self.dtype))
            map.release(part)

    @property
    def whence(self) -> str:
        return "memory"


def _parts(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Views of an array, of at most a chunk each, which in C order follow each other."""
    if array.nbytes <= CHUNK:
        yield array
    elif len(array) == 1:
        yield from _parts(array[0])
    elif array.flags.c_contiguous:
        flat = array.reshape(-1)
        step = max(1, CHUNK // array.itemsize)
        yield from (flat[start : start + step] for start in range(0, flat.size, step))
    else:
        step = max(1, CHUNK * len(array) // array.nbytes)
        for start in range(0, len(array), step):
            yield from _parts(array[start : start + step])


class Range(NamedTuple):
    """Bytes of a source, from a position on."""

    source: Source
    position: int

    def chunks(self, size: int) -> Iterator[memoryview]:
        position, end = self.position, self.position + size
        while data := self.source.read_at(position, min(CHUNK, end - position)):
            yield memoryview(data)
            position += len(data)

    @property
    def whence(self) -> str:
        return f"{self.source.name} from byte {self.position}"


class Swapped(NamedTuple):
    """Items of a source, from a position on, from one dtype to another of the same size."""

    range: Range
    old: np.dtype[Any]
    new: np.dtype[Any]

    def chunks(self, size: int) -> Iterator[memoryview]:
        source, start = self.range
        step = max(1, CHUNK // self.old.itemsize) * self.old.itemsize
        for position in range(start, start + size, step):
            data = source.read_at(position, min(step, start + size - position))
            if len(data) % self.old.itemsize:
                return  # the source ends here: whoever counts the bytes says so
            yield as_bytes(np.frombuffer(data, self.old).astype(self.new))

    @property
    def whence(self) -> str:
        return f"{self.range.whence}, byte order swapped"


class Chunks(NamedTuple):
    """What a callable gives when it is asked: a bytes-like object or an array, or an iterable of such.

    Attributes:
        give: The callable.
        dtype: The dtype that an array of some dtype is written in; raises BuildError where it is not taken.
    """

    give: Callable[[], Any]
    dtype: Callable[[np.dtype[Any]], np.dtype[Any]]

    def chunks(self, size: int) -> Iterator[memoryview]:
        given = self.give()
        if not isinstance(given, Iterable) and not is_bytes_like(given):
            raise BuildError(f"expected bytes, an array or an iterable of such, found {given.__class__.__name__}")
        for chunk in (given,) if is_bytes_like(given) else given:
            try:
                array = array_of(chunk)
            except TypeError as error:
                raise BuildError(f"a chunk is no bytes: {error}") from None
            yield from Memory(array, self.dtype(array.dtype)).chunks(array.nbytes)

    @property
    def whence(self) -> str:
        return "chunks"


class Piece(NamedTuple):
    """A run of bytes that is written.

    Attributes:
        what: What it is, for messages and plans.
        size: In bytes.
        content: Where they come from.
    """

    what: str
    size: int
    content: Content

    def chunks(self) -> Iterator[memoryview]:
        """The bytes.

        Raises:
            BuildError: They are more or fewer than its size, or no bytes.
        """
        came = 0
        try:
            for chunk in self.content.chunks(self.size):
                came += len(chunk)
                if came > self.size:
                    raise BuildError(f"{self.size} bytes expected, more came from {self.content.whence}")
                yield chunk
        except GGUFError as error:
            raise self.wrong(str(error)) from None
        if came < self.size:
            raise self.wrong(f"{self.size} bytes expected, {came} came from {self.content.whence}")

    def wrong(self, problem: str) -> BuildError:
        """An error that names the piece."""
        return BuildError(problem, self.what)


def bytes_piece(what: str, data: Any) -> Piece:
    """Bytes that are at hand, or an array as it is, as a piece."""
    array = array_of(data)
    return Piece(what, array.nbytes, Memory(array, array.dtype))
