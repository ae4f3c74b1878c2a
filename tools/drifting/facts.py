"""The one shape of all that is compared: facts, from a subject to its value; and those of our own side.

The first word of a subject is its family: `GGMLQuantizationType.Q4_K`, `type_size Q4_K`, `key general.name`,
`GGUF_VERSION`.
"""

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from gguf_schema.blocks import blocks
from gguf_schema.enums import GGMLQuantizationType, GGUFValueType, LlamaFileType, TokenType
from gguf_schema.keys import KEYS
from gguf_schema.limits import DEFAULT_ALIGNMENT, MAX_DIMENSIONS
from gguf_schema.schema import LATEST_VERSION, MAGIC

Value: TypeAlias = int | str
Facts: TypeAlias = dict[str, Value]

TENSOR_TYPE, VALUE_TYPE, FILE_TYPE, TOKEN_TYPE = "GGMLQuantizationType", "GGUFValueType", "LlamaFileType", "TokenType"
GGUF = ("GGUF_MAGIC", "GGUF_VERSION", "GGUF_DEFAULT_ALIGNMENT")
GGML = ("GGML_MAX_DIMS", "GGML_MAX_NAME")
COUNTS = ("GGML_TYPE_COUNT", "GGUF_TYPE_COUNT")


class Source(NamedTuple):
    """What somebody else says.

    Attributes:
        name: The package and its version, or the file's path below the tree.
        families: All that it speaks of: a fact of ours in one of these must be in it, too.
        facts: Its facts.
    """

    name: str
    families: frozenset[str]
    facts: Facts


def family(subject: str) -> str:
    """The first word of a subject."""
    return re.split("[. ]", subject, maxsplit=1)[0]


def numbered(family: str, members: dict[str, int]) -> Facts:
    """The members of an enumeration."""
    return {f"{family}.{name}": number for name, number in members.items()}


def sizes(table: dict[str, tuple[int, int]]) -> Facts:
    """Elements and bytes of the blocks of tensor types."""
    return {
        **{f"block_size {name}": elements for name, (elements, _) in table.items()},
        **{f"type_size {name}": size for name, (_, size) in table.items()},
    }


def keys(templates: Iterable[str]) -> Facts:
    """Keys of metadata that are known."""
    return {f"key {template}": "known" for template in templates}


def block(size: Value, fields: Iterable[str]) -> str:
    """A block as text: its bytes and its fields, as `field` writes them."""
    return f"{size} bytes: {', '.join(fields)}"


def field(type: str, name: str, extent: int | None = None) -> str:
    """A field of a block as text; the type has numpy's name."""
    return f"{type} {name}" + ("" if extent is None else f"[{extent}]")


def ours() -> Facts:
    """What gguf_schema says."""
    live = {type.name: struct for type, struct in blocks("<").items()}
    facts: Facts = {
        "GGUF_MAGIC": MAGIC.decode(),
        "GGUF_VERSION": LATEST_VERSION,
        "GGUF_DEFAULT_ALIGNMENT": DEFAULT_ALIGNMENT,
        "GGUF_TYPE_COUNT": max(GGUFValueType) + 1,
        "GGML_TYPE_COUNT": max(GGMLQuantizationType) + 1,
        "GGML_MAX_DIMS": MAX_DIMENSIONS,
    }
    for enum in (GGUFValueType, GGMLQuantizationType, LlamaFileType, TokenType):
        facts |= numbered(enum.__name__, _members(enum))
    facts |= sizes({name: (struct.block_size, struct.type_size) for name, struct in live.items()})
    for name, struct in live.items():
        if not struct.is_plain:
            facts[f"block {name}"] = block(struct.type_size, _fields(struct.dtype()))
    return facts | keys(key.template for key in KEYS)


def _members(enum: type[IntEnum]) -> dict[str, int]:
    return {member.name: int(member) for member in enum}


def _fields(dtype: np.dtype[np.void]) -> list[str]:
    found = []
    for name in dtype.names or ():
        base, shape = dtype[name].subdtype or (dtype[name], ())
        found.append(field(base.name, name, *shape))
    return found
