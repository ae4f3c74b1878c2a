"""Leaves: integers, floats that keep every bit, booleans that keep every byte, enumerations that keep every number."""

import math
import struct
from enum import IntEnum
from typing import Any

import construct
import numpy as np

from ..errors import BuildError, TruncatedError
from ..walk import Sink, Stream, dtype
from .core import Context, Guarded


class Number(Guarded, construct.FormatField):
    """A number of fixed size; the letters are those of the struct module."""

    def __init__(self, order: str, letter: str) -> None:
        super().__init__(order, letter)
        self.packer = struct.Struct(self.fmtstr)


def read_number(stream: Stream, size: int) -> bytes:
    """Read a number's bytes.

    Raises:
        TruncatedError: Fewer are left.
    """
    data = stream.read(size)
    if len(data) < size:
        raise TruncatedError(f"a number of {size} bytes expected, {len(data)} bytes left")
    return data


class Integer(Number):
    """An integer of fixed size: `Integer("<", "L")` is a little-endian uint32.

    Builds from int and numpy integers that fit, not from bool.
    """

    def _parse(self, stream: Stream, context: Context, path: str) -> int:
        number: int = self.packer.unpack(read_number(stream, self.length))[0]
        return number

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> int:
        if isinstance(obj, bool | np.bool_) or not isinstance(obj, int | np.integer):
            raise BuildError(f"expected an integer, found {type(obj).__name__}")
        number = int(obj)
        try:
            stream.write(self.packer.pack(number))
        except struct.error:
            bounds = np.iinfo(dtype(self))
            raise BuildError(f"{number} does not fit; {bounds.min} to {bounds.max} do") from None
        return number


_FLOATS = {"e": ("H", 10), "f": ("L", 23), "d": ("Q", 52)}
"""Letter of a float in the struct module → letter of the integer of its size, bits of its mantissa."""


class Float(Number):
    """An IEEE 754 float: `Float("<", "f")`. Its value is a Python float that carries every bit, of a NaN too.

    The struct module makes signalling NaNs quiet. Here a NaN's payload is moved between the mantissas bit by bit.
    """

    def _parse(self, stream: Stream, context: Context, path: str) -> float:
        data = read_number(stream, self.length)
        value: float = self.packer.unpack(data)[0]
        if value != value:
            integer, mantissa = _FLOATS[self.fmtstr[1]]
            (bits,) = struct.unpack(self.fmtstr[0] + integer, data)
            sign = bits >> (8 * self.length - 1)
            wide = sign << 63 | 0x7FF << 52 | (bits & ((1 << mantissa) - 1)) << (52 - mantissa)
            (value,) = struct.unpack("<d", struct.pack("<Q", wide))
        return value

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> float:
        if isinstance(obj, bool | np.bool_) or not isinstance(obj, int | float | np.integer | np.floating):
            raise BuildError(f"expected a number, found {type(obj).__name__}")
        if isinstance(obj, np.floating) and obj.dtype == dtype(self).newbyteorder("="):
            native = obj.tobytes()
            stream.write(native if dtype(self).isnative else native[::-1])
            return float(obj)
        try:
            value = float(obj)
            data = self.packer.pack(value)
            fits = not math.isinf(value) or bool(np.isinf(obj))
        except OverflowError:
            fits = False
        if not fits:
            raise BuildError(f"{obj} does not fit a float of {self.length} bytes")
        stream.write(data if value == value else self._narrow_nan(value))
        return value

    def _narrow_nan(self, value: float) -> bytes:
        """The bytes of a NaN whose payload is the top of the Python float's; quiet where nothing is left of it."""
        integer, mantissa = _FLOATS[self.fmtstr[1]]
        (wide,) = struct.unpack("<Q", struct.pack("<d", value))
        payload = (wide & ((1 << 52) - 1)) >> (52 - mantissa) or 1 << (mantissa - 1)
        width = 8 * self.length
        exponent = (1 << (width - 1 - mantissa)) - 1
        return struct.pack(self.fmtstr[0] + integer, (wide >> 63) << (width - 1) | exponent << mantissa | payload)


class Bool(Guarded, construct.Adapter):
    """A byte as bool. Bytes other than 0 and 1 stay ints (they are true, too), so that they can be written again."""

    def _decode(self, obj: int, context: Context, path: str) -> bool | int:
        return bool(obj) if obj in (0, 1) else obj

    def _encode(self, obj: Any, context: Context, path: str) -> int:
        if not isinstance(obj, bool | np.bool_ | int | np.integer):
            raise BuildError(f"expected a bool, found {type(obj).__name__}")
        return int(obj)


class EnumAdapter(Guarded, construct.Adapter):
    """An integer as a member of an IntEnum; numbers without a member stay ints. Builds from both."""

    def __init__(self, subcon: construct.Construct, enum: type[IntEnum]) -> None:
        super().__init__(subcon)
        self.enum = enum
        self.members: dict[int, IntEnum] = {int(member): member for member in enum}

    def _decode(self, obj: int, context: Context, path: str) -> int:
        return self.members.get(obj, obj)

    def _encode(self, obj: Any, context: Context, path: str) -> Any:
        return obj
