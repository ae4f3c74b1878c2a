"""Metadata values with two faces: the wire form that the schema parses and builds, and plain Python values.

The type of a plain value is a `GGUFValueType`, or for an array an `ArrayType`; with it a value is written as it was.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .constructs import Strings
from .enums import ArrayType, ValueType
from .enums import GGUFValueType as T
from .errors import BuildError, GGUFError, shown
from .schema import structs
from .walk import dtype

ARRAY = T.ARRAY
FLOATS = (T.FLOAT32, T.FLOAT64)


class MetadataKV(NamedTuple):
    """One metadata pair in plain form.

    Attributes:
        key: The key; bytes that are no UTF-8 are lone surrogates.
        type: The exact type of the value.
        value: bool, int, float, str; of an array a read-only numpy array, `Strings`, or a list of such.
    """

    key: str
    type: ValueType
    value: Any


def plain_pairs(pairs: Iterable[Mapping[str, Any]]) -> list[MetadataKV]:
    """The plain form of parsed metadata pairs."""
    new = tuple.__new__  # what MetadataKV(…) comes to, by way of a Python function
    return [
        new(MetadataKV, (pair["key"], *_plain_array(pair["value"])))
        if pair["value_type"] is ARRAY
        else new(MetadataKV, (pair["key"], pair["value_type"], pair["value"]))
        for pair in pairs
    ]


def _plain_array(array: Mapping[str, Any]) -> tuple[ArrayType, Any]:
    """The type and the plain form of a parsed array."""
    if array["type"] is not ARRAY:
        return ArrayType(array["type"]), array["array"]
    items = [_plain_array(item) for item in array["array"]]
    return ArrayType(T.ARRAY, tuple(type for type, _ in items)), [value for _, value in items]


def to_wire(pair: MetadataKV) -> dict[str, Any]:
    """The wire form of a metadata pair, for building.

    Raises:
        BuildError: The key is no string, or the value is no sequence where the type says array. Whether it fits is told
            when it is built.
    """
    if not isinstance(pair.key, str | bytes):
        raise BuildError(f"expected a string, found {shown(pair.key, 100)}", "key")
    value_type = T.ARRAY if isinstance(pair.type, ArrayType) else T(pair.type)
    return {"key": text(pair.key), "value_type": value_type, "value": _wire_value(pair.type, pair.value)}


def text(name: str | bytes) -> str:
    """A key or a name, which may be given as bytes, as it is compared with others."""
    return str(name, "utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _wire_value(type: ValueType, value: Any) -> Any:
    if not isinstance(type, ArrayType):
        if type == T.ARRAY:
            raise BuildError("ARRAY alone says nothing of the elements: give an ArrayType", "value")
        return value
    if not is_sequence(value):
        raise BuildError(f"expected a sequence, found {_kind(value)}", "value")
    if not isinstance(type.type, int) or not isinstance(type.items, Sequence) or any(map(_is_no_array, type.items)):
        form = "ArrayType(ARRAY, (ArrayType(INT32), …)), with a type for each element"
        raise BuildError(f"the type of an array of arrays is {form}; found {shown(type, 100)}", "value")
    if type.type is not T.ARRAY:
        return {"type": type.type, "array": value}
    if len(value) != len(type.items):
        raise BuildError(f"{len(type.items)} arrays expected, {len(value)} found", "value")
    return {"type": T.ARRAY, "array": [_wire_value(t, v) for t, v in zip(type.items, value, strict=True)]}


def is_sequence(value: Any) -> bool:
    """Whether a value may be that of an array: a sequence or a numpy array, with items to take; no text, no bytes."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes) and is_iterable(value)


def is_iterable(value: Any) -> bool:
    """Whether something has items to take: not all that look like it, arrays of no dimension, memoryviews of many."""
    if isinstance(value, np.ndarray | memoryview):
        return value.ndim == 1 or (value.ndim > 1 and isinstance(value, np.ndarray))
    return isinstance(value, Iterable)


def _is_no_array(type: Any) -> bool:
    return not isinstance(type, ArrayType)


def to_json(value: Any) -> Any:
    """A plain value as strict JSON can hold it: arrays as lists, NaN and the infinities as strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, np.ndarray):
        is_finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if is_finite else to_json(value.tolist())
    if isinstance(value, Strings):
        return value.tolist()
    if isinstance(value, list):
        return [to_json(item) for item in value]
    return {key: to_json(item) for key, item in value.items()} if isinstance(value, dict) else value


def exact_json(type: ValueType, value: Any) -> Any:
    """A plain value as strict JSON can hold it, bit by bit, as `get` tells it and `set` takes it.

    Integers have all their 64 bits, floats are those of `exact_float`, bytes that are no UTF-8 lone surrogates. A BOOL
    byte other than 0 and 1 is a number, which is told but not taken.

    Args:
        type: Its type.
        value: As `MetadataKV` has it.
    """
    if not isinstance(type, ArrayType):
        return exact_float(type, value) if type in FLOATS else value
    if type.type is T.ARRAY:
        return [exact_json(inner, item) for inner, item in zip(type.items, value, strict=True)]
    if type.type is T.BOOL:
        return [bool(item) if item in (0, 1) else item for item in value.tolist()]
    if type.type in FLOATS and not np.isfinite(value).all():
        return [exact_float(type.type, item) for item in value]
    return to_json(value)


def exact_float(type: T, value: Any) -> float | str:
    """A float of a type as strict JSON can hold it, with every bit.

    One that is no number is a string: "NaN", "Infinity", "-Infinity", or "nan(0x7fa00001)", with the bits, for another
    NaN.
    """
    if value != value:
        number = structs(">").numbers[type]
        bits: bytes = number.build(value)
        return "NaN" if bits == number.build(math.nan) else f"nan(0x{bits.hex()})"
    held: float | str = to_json(float(value))
    return held


def infer(value: Any) -> ValueType:
    """The type that a plain value is written with when none is given.

    bool → BOOL. int → UINT32, or where it does not fit the first of INT32, UINT64, INT64 that does. float → FLOAT32.
    str, bytes → STRING. numpy scalars and arrays → the type of their dtype. Lists: bools → BOOL; ints → the first of
    INT32, UINT32, INT64, UINT64 that all fit (llama.cpp reads per-layer lists as INT32); floats, or ints and floats →
    FLOAT32; strings → STRING; lists → ARRAY of what each is.

    Raises:
        BuildError: No type fits, or an empty list, which could be of any.
    """
    if isinstance(value, str | bytes):
        return T.STRING
    if isinstance(value, np.generic):
        return _of_dtype(value.dtype)
    if isinstance(value, Strings):
        return ArrayType(T.STRING)
    if isinstance(value, np.ndarray | memoryview) and value.ndim != 1:
        raise BuildError(f"an array of {value.ndim} dimensions; 1 is possible")
    if isinstance(value, np.ndarray):
        return ArrayType(_of_dtype(value.dtype))
    if isinstance(value, bool):
        return T.BOOL
    if isinstance(value, int):
        return _first_that_fits((T.UINT32, T.INT32, T.UINT64, T.INT64), value, value)
    if isinstance(value, float):
        return T.FLOAT32
    if isinstance(value, Sequence):
        return _infer_list(value)
    raise BuildError(f"{_kind(value)} has no GGUF type")


def _infer_list(values: Sequence[Any]) -> ArrayType:
    if not len(values):
        raise BuildError("an empty list could be of any type: give an ArrayType")
    types = {type(value) for value in values}
    kinds = {next((kind for kind, members in KINDS.items() if issubclass(type, members)), type) for type in types}
    if kinds == {bool}:
        return ArrayType(T.BOOL)
    if kinds == {int}:
        low, high = int(min(values)), int(max(values))
        return ArrayType(_first_that_fits((T.INT32, T.UINT32, T.INT64, T.UINT64), low, high))
    if kinds <= {int, float}:
        return ArrayType(T.FLOAT32)
    if kinds == {str}:
        return ArrayType(T.STRING)
    if kinds == {list}:
        items = []
        for index, value in enumerate(values):
            try:
                items.append(infer(value))
            except GGUFError as error:
                raise error.inside(f"[{index}]", None) from None
        if all(isinstance(item, ArrayType) for item in items):
            return ArrayType(T.ARRAY, tuple(items))  # type: ignore[arg-type]
    raise BuildError(f"a list of {', '.join(sorted(type.__name__ for type in types))} has no GGUF type{_hint(values)}")


def _hint(values: Sequence[Any]) -> str:
    """What helps whoever means a pair (type, value), but gives the type as text."""
    first = values[0]
    if len(values) != 2 or not isinstance(first, str) or first.strip("[]").upper() not in T.__members__:
        return ""
    return "; the type in a pair (type, value) is a GGUFValueType, as gs.GGUFValueType.UINT8, or an ArrayType"


KINDS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
    str: (str, bytes),
    list: (Sequence, np.ndarray),
}
"""What an item of a list counts as → the types that do; the first that fits is taken."""


def _first_that_fits(types: tuple[T, ...], low: int, high: int) -> T:
    for type in types:
        bounds = np.iinfo(dtype(structs().numbers[type]))
        if bounds.min <= low and high <= bounds.max:
            return type
    raise BuildError(f"{low if low < 0 else high} does not fit 64 bits")


def _of_dtype(of: np.dtype[Any]) -> T:
    if of == np.bool_:
        return T.BOOL
    for type, number in structs().numbers.items():
        if type is not T.BOOL and dtype(number) == of.newbyteorder("<"):
            return type
    raise BuildError(f"numpy's {of} has no GGUF type")


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
