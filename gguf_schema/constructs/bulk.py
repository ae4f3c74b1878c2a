"""Fast forms of arrays. Each wraps the plain Array that says what it means, and must never mean anything else.

Where something is wrong, the plain construct is asked, so that errors are the same ones.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import construct
import numpy as np
from construct.core import evaluate

from ..errors import GGUFError, TruncatedError
from ..walk import Sink, Stream, dtype, unwrap
from .core import Context, Guarded, bytes_left, encode, read
from .numbers import Bool
from .scan import string_ends
from .strings import Strings

LIKELY_SIZE = 24
"""Bytes read at once for each string that is wanted: a little more than those of a vocabulary take."""

LARGEST_WINDOW = 1 << 20
"""The most bytes that StringArray reads at once."""


class NumberArray(Guarded, construct.Subconstruct):
    """An Array of numbers of fixed size as a read-only numpy array in the file's byte order: shape (count,).

    Bools are numpy bools, unless a byte is neither 0 nor 1: then all are uint8, so that nothing is lost.
    """

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of one number on the wire."""
        return dtype(self.subcon.subcon)

    @property
    def is_bool(self) -> bool:
        """Whether the numbers are Bools."""
        return isinstance(self.subcon.subcon, Bool)

    def _parse(self, stream: Stream, context: Context, path: str) -> np.ndarray[Any, Any]:
        count = self.subcon.checked_count(stream, context)
        data = read(stream, count * self.dtype.itemsize, self.subcon.count, context)
        array = np.frombuffer(data, self.dtype)
        if self.is_bool and (count == 0 or array.max() <= 1):
            return array.view(np.bool_)
        return array

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        array = self._exact(obj)
        if array is None or len(array) != evaluate(self.subcon.count, context):
            return self.subcon._build(obj, stream, context, path)
        stream.write(array.tobytes())
        return obj

    def _exact(self, obj: Any) -> np.ndarray[Any, Any] | None:
        """`obj` as an array of the wire's dtype, bit by bit; None where only the item-by-item way is exact."""
        array = obj if isinstance(obj, np.ndarray) else _array(obj)
        if array is None or array.ndim != 1:
            return None
        if self.is_bool:
            return array.view(np.uint8) if array.dtype in (np.bool_, np.uint8) else None
        if array.dtype == self.dtype:
            return array
        if array.dtype == self.dtype.newbyteorder():
            return array.byteswap().view(self.dtype)
        if array.dtype.kind in "iu" and self.dtype.kind in "iu":
            bounds = np.iinfo(self.dtype)
            fits = len(array) == 0 or (int(array.min()) >= bounds.min and int(array.max()) <= bounds.max)
            return array.astype(self.dtype) if fits else None
        if array.dtype.kind == "f" and self.dtype.kind == "f" and np.isfinite(array).all():
            with np.errstate(over="ignore"):
                narrow = array.astype(self.dtype)
            return narrow if np.isfinite(narrow).all() else None
        return None


def _array(obj: Any) -> np.ndarray[Any, Any] | None:
    """A list of plain ints, plain floats or plain bools as an array; None for a mixture or anything else."""
    kinds = set(map(type, obj)) if isinstance(obj, Sequence) else set()
    if len(kinds) != 1 or not kinds <= {int, float, bool}:
        return None
    array = np.array(obj)
    return array if array.dtype.kind in "iufb" else None


class StringArray(Guarded, construct.Subconstruct):
    """An Array of length-prefixed strings as `Strings`: found by their lengths, decoded when asked for."""

    @cached_property
    def prefix(self) -> construct.FormatField:
        """The number that holds a string's length."""
        return unwrap(self.subcon.subcon.subcon.subcons[0])

    def _parse(self, stream: Stream, context: Context, path: str) -> Strings:
        count = self.subcon.checked_count(stream, context)
        start = stream.tell()
        left = bytes_left(stream, context)
        prefix = dtype(self.prefix)
        pieces: list[bytes | memoryview] = []
        ends = np.empty(count, np.int32 if left <= np.iinfo(np.int32).max else np.int64)
        found = position = 0
        window = min(count * LIKELY_SIZE, LARGEST_WINDOW)
        while found < count:
            stream.seek(start + position)
            asked = min(window, left - position)
            chunk = stream.read(asked)
            more = string_ends(chunk, prefix, ends[found:])
            if more:
                used = int(ends[found + more - 1])
                # What is kept must not hold much more alive.
                pieces.append(memoryview(chunk)[:used] if 2 * used > len(chunk) else chunk[:used])
                ends[found : found + more] += position
                found += more
                position += used
                window = min((count - found) * LIKELY_SIZE, LARGEST_WINDOW)
                continue
            window = self.prefix.length
            if len(chunk) >= window:
                window += self.prefix.parse(chunk)
            if not asked < window <= left - position:
                stream.seek(start + position)
                self.subcon.parse_item(found, stream, context, path)
                here = start + position - context._params.get("stream_start", 0)
                raise TruncatedError(f"{window} bytes expected, {len(chunk)} came", f"[{found}].len", here)
        stream.seek(start + position)
        return Strings(pieces, prefix, ends)

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        if len(obj) != evaluate(self.subcon.count, context):
            return self.subcon._build(obj, stream, context, path)
        prefix = dtype(self.prefix)
        if not (isinstance(obj, Strings) and obj.prefix == prefix):
            obj = Strings.of(obj.raw() if isinstance(obj, Strings) else _encoded(obj), prefix)
        stream.write(obj.wire)
        return obj


def _encoded(texts: Sequence[Any]) -> list[bytes]:
    """Each text as bytes; an error names its index."""
    encoded = []
    for index, text in enumerate(texts):
        try:
            encoded.append(encode(text))
        except GGUFError as error:
            raise error.inside(f"[{index}]", None) from None
    return encoded
