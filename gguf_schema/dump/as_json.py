"""One JSON object."""

import json
import os
from collections.abc import Iterable
from typing import Any

from ..enums import ArrayType
from ..file import Model
from ..values import to_json
from .contents import Field, Info, contents, endian


def dump_json(model: Model, arrays: bool = False, tensors: bool = True) -> str:
    """One JSON object, in ASCII: `filename`, `endian`, `metadata` and `tensors`, the latter two by name.

    Args:
        model: The open file.
        arrays: Give the values of arrays, too.
        tensors: Fill `tensors`.

    Raises:
        GGUFError: The file is closed or has changed.
    """
    fields, infos = contents(model)
    result = {
        "filename": os.fsdecode(model.name),
        "endian": endian(model),
        "metadata": _by_name((field.name, field.offset, _field(n, field, arrays)) for n, field in enumerate(fields)),
        "tensors": _by_name((info.name, info.offset, _tensor(info)) for info in infos if tensors),
    }
    return json.dumps(result, allow_nan=False)


def _by_name(entries: Iterable[tuple[str, int, Any]]) -> dict[str, Any]:
    """Entries by name; `@offset` is added to a name that is taken."""
    result: dict[str, Any] = {}
    for name, offset, entry in entries:
        while name in result:
            name = f"{name}@{offset}"
        result[name] = entry
    return result


def _field(index: int, field: Field, arrays: bool) -> dict[str, Any]:
    outer, *inner = field.types
    result = {"index": index, "type": outer, "offset": field.offset}
    if isinstance(field.type, ArrayType):
        result["array_types"] = inner
        if not arrays:
            return result
    return {**result, "value": to_json(field.value)}


def _tensor(info: Info) -> dict[str, Any]:
    return {"index": info.number, "shape": info.dimensions, "type": info.type, "offset": info.offset}
