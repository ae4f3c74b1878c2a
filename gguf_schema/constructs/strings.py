"""A sequence of strings that stays bytes until it is asked for text."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


DECODED = 1 << 17
"""Bytes decoded in one go; a longer string makes a block of its own."""

FEW = 8
"""Bytes by which strings are told apart before they are compared whole."""

LARGEST_BYTE = 0xFF
"""Lengths up to this have one byte that is not zero."""


class Strings(Sequence[str]):
    """Strings as they stand in a file: each a length, then its bytes; decoded when asked for, one or all.

    Bytes that are no UTF-8 become lone surrogates, as in every string of the package.

    Args:
        pieces: All strings with their lengths, back to back, in pieces that need not end where a string does.
        prefix: The numpy dtype of a length: its size and its byte order.
        ends: End of each string in the pieces put together, ascending, int32 or int64.
    """

    def __init__(self, pieces: Sequence[bytes | memoryview], prefix: np.dtype[Any], ends: NDArray[Any]) -> None:
        self._pieces = pieces
        self.prefix = prefix
        self.ends = ends
        self.ends.flags.writeable = False

    @classmethod
    def of(cls, texts: Iterable[bytes], prefix: np.dtype[Any]) -> Strings:
        """Make the wire form of byte strings, each with its length before it."""
        texts = list(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        prefixes = lengths.astype(prefix).tobytes()
        size = prefix.itemsize
        pieces = [part for i, text in enumerate(texts) for part in (prefixes[i * size : (i + 1) * size], text)]
        return cls(pieces, prefix, np.cumsum(lengths + size))

    def __reduce__(self) -> tuple[type[Strings], tuple[Any, ...]]:
        return Strings, ([self.wire], self.prefix, self.ends)

    @cached_property
    def wire(self) -> bytes:
        """All strings with their lengths, back to back: what stands in the file."""
        wire = b"".join(self._pieces)
        self._pieces = [wire]
        return wire

    @cached_property
    def starts(self) -> NDArray[Any]:
        """Start of each string's bytes in `wire`, of the dtype of `ends`."""
        starts = np.empty_like(self.ends)
        starts[:1] = 0
        starts[1:] = self.ends[:-1]
        starts += self.prefix.itemsize
        return starts

    @property
    def lengths(self) -> NDArray[Any]:
        """The length of each string in bytes, of the dtype of `ends`."""
        lengths: NDArray[Any] = self.ends - self.starts
        return lengths

    def raw(self) -> Iterator[bytes]:
        """The bytes of each string, not decoded."""
        wire = self.wire
        return (wire[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def tolist(self) -> list[str]:
        """All strings, decoded at once."""
        return list(self)

    def _decoded(self, first: int, last: int) -> list[str]:
        """The strings from index `first` up to `last`."""
        # With every length overwritten by zeros, and no zero in any text, a run of zeros is where a string begins.
        size = self.prefix.itemsize
        begin = int(self.starts[first]) - size
        octets = np.frombuffer(self.wire, np.uint8, int(self.ends[last - 1]) - begin, begin).copy()
        starts = self.starts[first:last] - begin
        ends = self.ends[first:last] - begin
        lowest = 0 if self.prefix == self.prefix.newbyteorder("<") else size - 1
        octets[starts + (lowest - size)] = 0
        long = starts[ends - starts > LARGEST_BYTE]
        for place in range(size if len(long) else 0):
            octets[long + (place - size)] = 0
        if len(octets) - np.count_nonzero(octets) == size * len(starts):
            return str(octets.data, "utf-8", "surrogateescape").split("\0" * size)[1:]
        pairs = zip((starts + begin).tolist(), (ends + begin).tolist(), strict=True)
        return [str(self.wire[start:end], "utf-8", "surrogateescape") for start, end in pairs]

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The index of the first string that equals `value`: by length, then byte after byte, without decoding.

        Raises:
            ValueError: There is none.
        """
        try:
            text = value.encode("utf-8", "surrogateescape")
        except (AttributeError, UnicodeEncodeError):
            text = None
        if text is None or str(text, "utf-8", "surrogateescape") != value:  # no bytes are read as it
            raise ValueError(f"{value!r} is not in the array")
        indices = np.arange(*slice(start, stop).indices(len(self)))
        indices = indices[self.lengths[indices] == len(text)]
        octets = np.frombuffer(self.wire, np.uint8)
        for place, octet in enumerate(text[:FEW]):
            indices = indices[octets[self.starts[indices] + place] == octet]
        for index in indices.tolist():
            if self.wire[self.starts[index] : self.ends[index]] == text:
                return int(index)
        raise ValueError(f"{value!r} is not in the array")

    def __contains__(self, value: object) -> bool:
        try:
            self.index(value)
        except ValueError:
            return False
        return True

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            return list(self._range(first, last)) if step == 1 else [self[i] for i in range(first, last, step)]
        index = operator.index(index)
        return str(self.wire[self.starts[index] : self.ends[index]], "utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return self._range(0, len(self))

    def _range(self, first: int, last: int) -> Iterator[str]:
        """The strings from index `first` up to `last`."""
        return chain.from_iterable(self._blocks(first, last))

    def _blocks(self, first: int, last: int) -> Iterator[list[str]]:
        """The same in blocks: memory that is used again costs no page faults."""
        while first < last:
            begin = int(self.starts[first]) - self.prefix.itemsize
            stop = min(last, max(first + 1, int(np.searchsorted(self.ends, begin + DECODED))))
            yield self._decoded(first, stop)
            first = stop

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Strings) and other.prefix == self.prefix:
            return self.wire == other.wire
        if isinstance(other, str | bytes) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and self.tolist() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<Strings: {len(self)} of {shown}{', …' if len(self) > 3 else ''}>"
