"""What is dumped: the fields and tensor infos of a file with their offsets, read in one pass; and pieces of values."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..constructs import Strings
from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..errors import GGUFError
from ..file import Model
from ..layout import n_elements, type_name
from ..schema import ORDER_NAMES
from ..values import plain_pairs
from ..walk import kind

COUNTS = {"version": "GGUF.version", "tensor_count": "GGUF.tensor_count", "metadata_kv_count": "GGUF.kv_count"}
"""Fields of the header → names under which gguf-py lists them with the metadata."""


class Field(NamedTuple):
    """A metadata pair, or one of the header's fields, with its absolute offset."""

    name: str
    offset: int
    type: ValueType
    value: Any

    @property
    def types(self) -> list[str]:
        """Its type; of an array also the type of its first element, and so on down; an empty array tells none."""
        return _types(self.type, self.value)

    @property
    def pretty_type(self) -> str:
        """Its type, with a pair of brackets for each level of arrays."""
        *outer, inner = self.types
        return "[" * len(outer) + inner + "]" * len(outer)

    @property
    def n_values(self) -> int:
        """The number of values, those of nested arrays together."""
        return _count(self.value)


class Info(NamedTuple):
    """A tensor info with its absolute offset.

    Attributes:
        number: Its index.
        offset: Where the info starts.
        name: The tensor's name.
        type: Name of its type, or the number.
        dimensions: In file order.
    """

    number: int
    offset: int
    name: str
    type: str
    dimensions: list[int]

    @property
    def padded(self) -> list[int]:
        """The dimensions, filled up to four with ones as ggml does."""
        return self.dimensions + [1] * (4 - len(self.dimensions))

    @property
    def n_elements(self) -> int:
        """The number of elements.

        Raises:
            GGUFError: They are too many to count.
        """
        try:
            return n_elements(self.dimensions)
        except GGUFError as error:
            raise error.inside(f"tensor_infos[{self.number}]", None) from None


def contents(model: Model) -> tuple[list[Field], list[Info]]:
    """Everything that is dumped, read in one pass over the file's head. Arrays of strings are not decoded.

    Raises:
        GGUFError: The file is closed or has changed; or the model is in several files.
    """
    model.demand_one_file()
    if model.closed:
        raise GGUFError("the file is closed")
    fields: list[Field] = []
    infos: list[Info] = []
    for node in model.trace("metadata_kv[0]", "tensor_infos[0]"):
        if node.path in COUNTS:
            fields.append(Field(COUNTS[node.path], node.start, T[kind(node.con).upper()], node.value))
        elif node.path.startswith("metadata_kv["):
            (pair,) = plain_pairs([node.value])
            fields.append(Field(pair.key, node.start, pair.type, _with_bools(pair.type, pair.value)))
        elif node.path.startswith("tensor_infos["):
            info = node.value
            type = type_name(info["type"])
            infos.append(Info(len(infos), node.start, info["name"], type, list(info["dimensions"])))
    return fields, infos


def endian(model: Model) -> str:
    """The byte order in gguf-py's words."""
    return ORDER_NAMES[model.order].upper()


def _with_bools(type: ValueType, value: Any) -> Any:
    """The value, whose BOOL bytes other than 0 and 1 are True: the views keep them as numbers."""
    if type is T.BOOL:
        return bool(value)
    if not isinstance(type, ArrayType):
        return value
    if type.type is T.BOOL:
        return value.astype(np.bool_)
    if type.type is T.ARRAY:
        return [_with_bools(inner, item) for inner, item in zip(type.items, value, strict=True)]
    return value


def _types(type: ValueType, value: Any) -> list[str]:
    if not isinstance(type, ArrayType):
        return [type.name]
    if len(value) == 0:
        return [T.ARRAY.name]
    inner = _types(type.items[0], value[0]) if type.items else [type.type.name]
    return [T.ARRAY.name, *inner]


def _count(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count, value))
    return len(value) if isinstance(value, np.ndarray | Strings) else 1


class _Rest:
    """Stands in a list for the values that are not shown."""

    def __repr__(self) -> str:
        return "..."


REST = _Rest()


def first(value: Any, limit: int, show: Callable[[Any], list[Any]]) -> tuple[list[Any], int]:
    """The first values of an array, depth first, and how many they are; an empty array counts as one.

    Args:
        value: The array.
        limit: Values to take.
        show: Turns some values of an innermost array into a list.
    """
    if not isinstance(value, list):
        rest = [REST] if len(value) > limit else []
        return show(value[:limit]) + rest, max(1, min(limit, len(value)))
    shown: list[Any] = []
    taken = 0
    for item in value:
        if taken >= limit:
            return [*shown, REST], taken
        inner, count = first(item, limit - taken, show)
        shown.append(inner)
        taken += count
    return shown, max(1, taken)


def listed(values: Any) -> list[Any]:
    """Some values of an innermost array as plain Python values."""
    return list(values.tolist() if isinstance(values, np.ndarray) else values)
