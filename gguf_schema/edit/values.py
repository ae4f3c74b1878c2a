"""Metadata values from JSON, bit by bit as `values.exact_json` tells them, and as they are typed."""

import json
import math
import re
from typing import Any

import numpy as np

from ..constructs import Strings
from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..errors import GGUFError, shown
from ..schema import structs
from ..values import FLOATS, is_sequence
from .types import type_text

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
LARGEST = 1 << 28
"""Bytes of a file that is taken for a value; some devices never end."""

BITS = re.compile(r"nan\(0x([0-9a-f]+)\)")


class Text(str):
    """A value as it is typed: of type STRING the text itself, of any other its JSON."""


def from_json(type: ValueType, value: Any) -> tuple[ValueType, Any]:
    """The type and the plain value that something from JSON, TOML or Python, or a `Text`, stands for.

    Args:
        type: The type that it must have. An array of arrays may have another number of them if all are of one type.
        value: The value. Whether numbers fit is told when they are built.

    Returns:
        The type, which differs from the one given in the number of arrays at most, and the value.

    Raises:
        GGUFError: It is of another kind.
    """
    if isinstance(value, Text):
        return (type, value) if type is T.STRING else from_json(type, _loads(type, value))
    if not isinstance(type, ArrayType):
        return type, _single(type, value)
    if not is_sequence(value):
        raise GGUFError(f"{type_text(type)} expected, found {shown(value)}")
    if type.type is not T.ARRAY:
        is_ready = isinstance(value, Strings | np.ndarray)
        return type, value if is_ready else [_single(type.type, item) for item in value]
    items = type.items if len(type.items) == len(value) else type.items[:1] * len(value)
    if (len(set(type.items)) > 1 and items != type.items) or len(items) != len(value):
        problem = f"{type_text(type)} is of {len(type.items)} arrays, {len(value)} found: say the type of each"
        raise GGUFError(problem)
    pairs = [from_json(inner, item) for inner, item in zip(items, value, strict=True)]
    return ArrayType(T.ARRAY, tuple(inner for inner, _ in pairs)), [item for _, item in pairs]  # type: ignore[misc]


def _single(type: T, value: Any) -> Any:
    """A value that is no array."""
    if type in FLOATS and isinstance(value, str):
        return _float(type, value)
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    fits = {
        T.STRING: isinstance(value, str | bytes),
        T.BOOL: isinstance(value, bool | np.bool_) or (is_number and value in (0, 1)),
        **dict.fromkeys(FLOATS, is_number or isinstance(value, float | np.floating)),
    }
    if not fits.get(type, is_number):
        raise GGUFError(f"{_expected(type)}, found {shown(value)}")
    return value


def _expected(type: ValueType) -> str:
    return f"{type_text(type)} expected{', true or false' * (type is T.BOOL)}"


def _float(type: T, text: str) -> float:
    """A float that is no number."""
    number = structs(">").numbers[type]
    bits = BITS.fullmatch(text.lower())
    if bits and len(bits[1]) == 2 * number.sizeof():
        value: float = number.parse(bytes.fromhex(bits[1]))
        if value != value:
            return value
    if text.lower() not in NOT_FINITE:
        raise GGUFError(f"{type.name} expected, found {shown(text)}")
    return NOT_FINITE[text.lower()]


def _loads(type: ValueType, text: str) -> Any:
    """Typed JSON; of floats that are no numbers the bare word, too."""
    if type in FLOATS and not text.startswith('"') and (text.lower() in NOT_FINITE or BITS.fullmatch(text.lower())):
        return str(text)
    try:
        return loads(text)
    except GGUFError as error:
        why = f": {error.problem}" if isinstance(type, ArrayType) else ""
        raise GGUFError(f"{_expected(type)}, found {shown(str(text))}{why}") from None


def loads(text: str | bytes) -> Any:
    """JSON, in which no number becomes another one.

    Raises:
        GGUFError: It is none.
    """
    try:
        return json.loads(text, parse_float=finite)
    except (RecursionError, ValueError) as error:
        raise GGUFError(f"no JSON: {error}") from None


def finite(text: str) -> float:
    """A float as it is written: it is infinite only where it says so.

    Raises:
        ValueError: It is too large.
    """
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        raise ValueError(f"{shown(text)} is too large")
    return value


def text_of(path: str) -> str:
    """All that is in a file, byte by byte.

    Raises:
        GGUFError: Nothing can be called so, or it is longer than values are.
        OSError: It cannot be read.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except ValueError:  # a null byte, or what cannot be encoded
        raise GGUFError(f"expected the name of a file, found {shown(path, 100)}") from None
    with file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise GGUFError(f"{path} has more than {LARGEST} bytes, which is no value")
    return data.decode("utf-8", "surrogateescape")
