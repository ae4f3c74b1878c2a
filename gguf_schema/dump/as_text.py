"""One line for each metadata pair and each tensor."""

import sys
from collections.abc import Iterator

from ..enums import ArrayType
from ..enums import GGUFValueType as T
from ..file import Model
from ..terminal import printable
from .contents import Field, Info, contents, endian, first, listed

VALUES, LETTERS = 6, 60
"""How much is shown of an array and of a string."""


def dump_text(model: Model, tensors: bool = True) -> str:
    """The metadata and the tensor infos, one line each.

    Raises:
        GGUFError: The file is closed or has changed; or a tensor has too many dimensions to count its elements.
    """
    fields, infos = contents(model)
    return "\n".join(_lines(model, fields, infos if tensors else None))


def _lines(model: Model, fields: list[Field], infos: list[Info] | None) -> Iterator[str]:
    yield f"* File is {endian(model)} endian, script is running on a {sys.byteorder.upper()} endian host."
    yield f"* Dumping {len(fields)} key/value pair(s)"
    for n, field in enumerate(fields, 1):
        yield f"  {n:5}: {field.pretty_type:10} | {field.n_values:8} | {printable(field.name)} = {_value(field)}"
    if infos is None:
        return
    yield f"* Dumping {len(infos)} tensor(s)"
    for n, info in enumerate(infos, 1):
        dimensions = ", ".join(f"{dimension:5}" for dimension in info.padded)
        yield f"  {n:5}: {info.n_elements:10} | {dimensions} | {info.type:7} | {printable(info.name)}"


def _value(field: Field) -> str:
    if isinstance(field.type, ArrayType):
        return repr(first(field.value, VALUES, listed)[0])
    if field.type is T.STRING and len(field.value) > LETTERS:
        return repr(field.value[: LETTERS - 3] + "...")
    return repr(field.value)
