"""Trees as plain data, for consumers that know nothing of construct: documents, exports, code generators."""

import enum
import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias

import construct
from construct.expr import ExprMixin

from .tree import Con, class_word, dtype, field_of

Description: TypeAlias = dict[str, Any]
"""One construct: `kind`, and what that kind has. Wherever a construct stands in it, a name may stand instead."""

BY_VERSION = "by_version"


def describe(con: Con, names: Mapping[int, str], is_definition: bool = False) -> Description | str:
    """A construct as data that JSON can hold.

    Args:
        con: The construct.
        names: Names of constructs by their `id()`; where one is met, its name is the description.
        is_definition: Describe `con` itself, even if it has a name.

    Returns:
        Its name; or its `kind` (the class, in lower case) with:

        * integer, float: `bytes`, and `signed`
        * struct: `fields`, each with `name`, `type`, `doc`
        * array: `count`, `items`
        * switch: `on`, and `cases` from keys to constructs
        * any other: the arguments of its class; `type` is the construct inside

        Expressions are text: the names of fields in the same Struct, `len(field)`.
    """
    if id(con) in names and not is_definition:
        return names[id(con)]
    if isinstance(con, construct.FormatField):
        number = dtype(con)
        is_float = number.kind == "f"
        signed = {} if is_float else {"signed": number.kind == "i"}
        return {"kind": "float" if is_float else "integer", "bytes": number.itemsize} | signed
    if isinstance(con, construct.Struct):
        return {"kind": "struct", "fields": [_field(child, names) for child in con.subcons]}
    if isinstance(con, construct.Array):
        return {"kind": "array", "count": plain(con.count), "items": describe(con.subcon, names)}
    if isinstance(con, construct.Switch):
        cases = {plain(key): describe(case, names) for key, case in con.cases.items()}
        return {"kind": "switch", "on": plain(con.keyfunc), "cases": cases}
    arguments = _arguments(con)
    if isinstance(con, construct.Subconstruct):
        inner = describe(con.subcon, names)
        if not arguments and not isinstance(con, construct.Adapter):
            return inner  # a fast form, which means the same
        return {"kind": class_word(type(con)), **arguments, "type": inner}
    return {"kind": class_word(type(con)), **arguments}


def _field(field: construct.Renamed, names: Mapping[int, str]) -> Description:
    return {"name": field.name, "type": describe(field.subcon, names), "doc": field.docs}


def _arguments(con: Con) -> Description:
    """What a construct was made with, besides constructs. construct keeps arguments under their names."""
    arguments = inspect.signature(type(con).__init__).parameters.keys() - {"self", "subcon", "args", "kwargs"}
    return {name: plain(getattr(con, name)) for name in sorted(arguments)}


def plain(value: Any) -> Any:
    """An argument as data: expressions as text, enumerations and their members by name, bytes as text."""
    if isinstance(value, construct.expr.FuncPath):
        return f"{value._FuncPath__func.__name__}({field_of(value)})"
    if isinstance(value, ExprMixin):
        return field_of(value)
    if isinstance(value, enum.EnumType):
        return value.__name__
    if isinstance(value, enum.Enum):
        return value.name
    return str(value, "latin-1") if isinstance(value, bytes) else value


def merge(versions: Mapping[int, Any]) -> Any:
    """Descriptions of the same tree in several versions as one: what differs becomes {"by_version": {version: …}}."""
    first, *others = versions.values()
    if all(other == first for other in others):
        return first
    if isinstance(first, dict) and all(isinstance(other, dict) and other.keys() == first.keys() for other in others):
        return {key: merge({version: one[key] for version, one in versions.items()}) for key in first}
    if isinstance(first, list) and all(isinstance(other, list) and len(other) == len(first) for other in others):
        return [merge({version: one[index] for version, one in versions.items()}) for index in range(len(first))]
    return {BY_VERSION: {str(version): one for version, one in versions.items()}}
