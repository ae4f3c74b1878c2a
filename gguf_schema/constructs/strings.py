"""A sequence of strings that stays bytes until it is asked for text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class Strings(Sequence[str]):
    """Strings as they stand in a file: each a length, then its bytes; decoded one by one, when asked for.

    Bytes that are no UTF-8 become lone surrogates, as in every string of the package.

    Args:
        wire: All strings with their lengths, back to back.
        prefix: The numpy dtype of a length: its size and its byte order.
        ends: End of each string's bytes in `wire`, int64, ascending.
    """

    def __init__(self, wire: bytes, prefix: np.dtype[Any], ends: NDArray[np.int64]) -> None:
        self.wire = wire
        self.prefix = prefix
        self.ends = ends
        self.starts = np.concatenate(([0], ends[:-1]))[: len(ends)] + prefix.itemsize

    @classmethod
    def of(cls, texts: Iterable[bytes], prefix: np.dtype[Any]) -> "Strings":
        """Make the wire form of byte strings, each with its length before it."""
        texts = list(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(lengths + prefix.itemsize)
        prefixes = lengths.astype(prefix).tobytes()
        size = prefix.itemsize
        pieces = (part for i, text in enumerate(texts) for part in (prefixes[i * size : (i + 1) * size], text))
        return cls(b"".join(pieces), prefix, ends)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each string in bytes."""
        lengths: NDArray[np.int64] = self.ends - self.starts
        return lengths

    def raw(self) -> Iterator[bytes]:
        """The bytes of each string, not decoded."""
        wire = self.wire
        return (wire[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return str(self.wire[self.starts[index] : self.ends[index]], "utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (str(raw, "utf-8", "surrogateescape") for raw in self.raw())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Strings) and other.prefix == self.prefix:
            return self.wire == other.wire
        if isinstance(other, str | bytes) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<Strings: {len(self)} of {shown}{', …' if len(self) > 3 else ''}>"
