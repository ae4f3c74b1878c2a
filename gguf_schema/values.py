"""Metadata values with two faces: the wire form that the schema parses and builds, and plain Python values.

The type of a plain value is a `GGUFValueType`, or for an array an `ArrayType`; with it a value is written as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .constructs import Strings
from .enums import GGUFValueType as T
from .errors import BuildError, GGUFError
from .schema import structs
from .walk import dtype


@dataclass(frozen=True)
class ArrayType:
    """The type of an array.

    Attributes:
        type: The type of its elements.
        items: Of an array of arrays the type of each element, which may differ.
    """

    type: T
    items: "tuple[ArrayType, ...]" = ()

    def __str__(self) -> str:
        if self.type is not T.ARRAY:
            return f"ARRAY of {self.type.name}"
        kinds = dict.fromkeys(map(str, self.items))
        return f"ARRAY of ({', '.join(kinds)})"


ValueType = T | ArrayType


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


def to_plain(value_type: int, value: Any) -> MetadataKV:
    """The plain form of a parsed value, with an empty key."""
    if value_type != T.ARRAY:
        return MetadataKV("", T(value_type), value)
    if value["type"] != T.ARRAY:
        return MetadataKV("", ArrayType(value["type"]), value["array"])
    items = [to_plain(T.ARRAY, item) for item in value["array"]]
    return MetadataKV("", ArrayType(T.ARRAY, tuple(item.type for item in items)), [item.value for item in items])  # type: ignore[misc]


def plain_pair(pair: Mapping[str, Any]) -> MetadataKV:
    """The plain form of a parsed metadata pair."""
    return to_plain(pair["value_type"], pair["value"])._replace(key=pair["key"])


def to_wire(pair: MetadataKV) -> dict[str, Any]:
    """The wire form of a metadata pair, for building.

    Raises:
        BuildError: The value is no sequence where the type says array. Whether it fits is told when it is built.
    """
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
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise BuildError(f"expected a sequence, found {_kind(value)}", "value")
    if type.type is not T.ARRAY:
        return {"type": type.type, "array": value}
    if len(value) != len(type.items):
        raise BuildError(f"{len(type.items)} arrays expected, {len(value)} found", "value")
    return {"type": T.ARRAY, "array": [_wire_value(t, v) for t, v in zip(type.items, value, strict=True)]}


def infer(value: Any) -> ValueType:
    """The type that a plain value is written with when none is given.

    bool → BOOL. int → UINT32, or where it does not fit the first of INT32, UINT64, INT64 that does. float → FLOAT32.
    str, bytes → STRING. numpy scalars and arrays → the type of their dtype. Lists: bools → BOOL; ints → the first of
    INT32, UINT32, INT64, UINT64 that all fit (llama.cpp reads per-layer lists as INT32); floats, or ints and floats →
    FLOAT32; strings → STRING; lists → ARRAY of what each is.

    Raises:
        BuildError: No type fits, or an empty list, which could be of any.
    """
    if isinstance(value, np.generic):
        return _of_dtype(value.dtype)
    if isinstance(value, Strings):
        return ArrayType(T.STRING)
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise BuildError(f"an array of {value.ndim} dimensions; 1 is possible")
        return ArrayType(_of_dtype(value.dtype))
    if isinstance(value, bool):
        return T.BOOL
    if isinstance(value, int):
        return _first_that_fits((T.UINT32, T.INT32, T.UINT64, T.INT64), value, value)
    if isinstance(value, float):
        return T.FLOAT32
    if isinstance(value, str | bytes):
        return T.STRING
    if isinstance(value, Sequence):
        return _infer_list(value)
    raise BuildError(f"{_kind(value)} has no GGUF type")


def _infer_list(values: Sequence[Any]) -> ArrayType:
    if not len(values):
        raise BuildError("an empty list could be of any type: give an ArrayType")
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return ArrayType(T.BOOL)
    if kinds == {int}:
        return ArrayType(_first_that_fits((T.INT32, T.UINT32, T.INT64, T.UINT64), min(values), max(values)))
    if kinds <= {int, float}:
        return ArrayType(T.FLOAT32)
    if all(issubclass(kind, str | bytes) for kind in kinds):
        return ArrayType(T.STRING)
    if all(issubclass(kind, Sequence | np.ndarray) for kind in kinds):
        items = []
        for index, value in enumerate(values):
            try:
                items.append(infer(value))
            except GGUFError as error:
                raise error.inside(f"[{index}]", None) from None
        if all(isinstance(item, ArrayType) for item in items):
            return ArrayType(T.ARRAY, tuple(items))  # type: ignore[arg-type]
    raise BuildError(f"a list of {', '.join(sorted(kind.__name__ for kind in kinds))} has no GGUF type")


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
