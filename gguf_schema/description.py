"""The whole format as plain data: what documents, tables and exports are made from.

The schema has a tree for each byte order and version; here they are one. What differs between versions is
`{"by_version": {"1": …, "2": …, "3": …}}` (in fact only the sizes of `count`, `length`, `dimension`, and the constant);
the byte order is left out, because it is that of the file for every number.
"""

from enum import IntEnum
from typing import Any

from .blocks import Block, blocks
from .enums import GGMLQuantizationType, GGUFValueType, LlamaFileType, TokenType
from .keys import ALIGNMENT, KEYS
from .limits import DEFAULT_ALIGNMENT
from .schema import MAGIC, ORDER_NAMES, VERSIONS, GGUFStructs, structs
from .walk import Description, describe, is_construct, merge

KINDS = {
    "integer": "A whole number of so many `bytes`, `signed` (two's complement) or not, in the file's byte order",
    "float": "An IEEE 754 number of so many `bytes`, in the file's byte order",
    "bool": "`type` as truth: 0 is false, 1 is true, anything else is taken for true",
    "enum": "`type`, whose values have the names of the members of `enum`",
    "string": "`type` as text: that of its last field",
    "bytes": "`length` bytes",
    "greedy_bytes": "All bytes that are left",
    "struct": "`fields` back to back, without padding",
    "array": "`count` times `items`, back to back",
    "switch": "The construct in `cases` under the value of the field `on`; without a case nothing more can be read",
    "recursive": "`type`, in which this construct stands itself",
    "const": "`type` with no other value than `value`",
    "rebuild": "`type`; whoever writes a file computes it as `func`",
    "default": "`type`; whoever writes a file may leave it out, which means `value`",
    "alignment": "No bytes: the value of the key general.alignment among the pairs in the field `func`, or the default",
    "placed": "`type`, whose offsets follow from the sizes and the field `alignment` where none are given",
    "alignment_padding": "Bytes up to the next multiple of the field `alignment`, counted from the start of the file, "
    "as far as there are any: a file without `tensor_infos` needs none",
    "tensor_data": "The data of all `tensor_infos`, and what stands between them, up to a multiple of `alignment`, "
    "as far as there are any bytes",
}
"""The kinds of constructs in a description."""

ENUMS = (GGUFValueType, GGMLQuantizationType, LlamaFileType, TokenType)


def types() -> dict[str, Description]:
    """The named constructs of a layout, each before those that use it (an array holds itself): `walk.describe`."""
    described: dict[str, Description] = merge({version: _types(structs(version=version)) for version in VERSIONS})
    return described


def _types(layout: GGUFStructs) -> dict[str, Any]:
    named = {name: con for name, con in vars(layout).items() if is_construct(con)}
    names = {id(con): name for name, con in named.items()}
    return {name: describe(con, names, is_definition=True) for name, con in named.items()}


def tensor_types() -> dict[str, Description]:
    """The live tensor types: `id`, `block_size` (elements), `type_size` (bytes), `fields` of a block.

    A field has `name`, `offset` in the block, `bytes`, `type`, `doc`.
    """
    return {type.name: _tensor_type(type, block) for type, block in blocks("<").items()}


def _tensor_type(type: GGMLQuantizationType, block: Block) -> Description:
    fields = []
    offset = 0
    described = describe(block, {})
    for field, con in zip(described["fields"], block.subcons, strict=True):  # type: ignore[index]
        fields.append({"name": field["name"], "offset": offset, "bytes": con.sizeof(), **field})
        offset += con.sizeof()
    return {"id": int(type), "block_size": block.block_size, "type_size": block.type_size, "fields": fields}


def removed_tensor_types() -> dict[str, int]:
    """The types that ggml removed: their names and numbers, which nobody may use for another type."""
    return {type.name: int(type) for type in GGMLQuantizationType if type not in blocks("<")}


def enums() -> dict[str, Description]:
    """The enumerations: `doc`, and `members` from names to numbers."""
    return {enum.__name__: {"doc": first_paragraph(enum), "members": _members(enum)} for enum in ENUMS}


def _members(enum: type[IntEnum]) -> dict[str, int]:
    return {member.name: int(member) for member in enum}


def alignment() -> Description:
    """What the kind `alignment` refers to: the `key`, the `value_type` that is obeyed, and the `default`."""
    return {"key": ALIGNMENT.template, "value_type": GGUFValueType.UINT32.name, "default": DEFAULT_ALIGNMENT}


def keys() -> list[Description]:
    """The standard metadata keys: `template`, the `types` that are written (the first) or taken, `required`, `doc`."""
    return [
        {
            "template": key.template,
            "types": [str(type) for type in (key.type, *key.also)],
            "required": key.required,
            "doc": key.docs,
        }
        for key in KEYS
    ]


def first_paragraph(documented: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((documented.__doc__ or "").partition("\n\n")[0].split())


def the_format() -> Description:
    """Everything: `magic`, `versions`, `orders`, `kinds`, `types`, `enums`, `tensor_types`, and more."""
    return {
        "magic": str(MAGIC, "ascii"),
        "versions": list(VERSIONS),
        "orders": list(ORDER_NAMES.values()),
        "kinds": KINDS,
        "types": types(),
        "alignment": alignment(),
        "enums": enums(),
        "tensor_types": tensor_types(),
        "removed_tensor_types": removed_tensor_types(),
        "keys": keys(),
    }
