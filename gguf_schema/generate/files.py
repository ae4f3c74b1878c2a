"""Whole valid files: the little that the tree of constructs does not say, on top of what is derived from it.

Keys and names are unique and well formed, `general.architecture` is there, standard keys have their types, alignments
are powers of two, rows are whole blocks, the data has the size that the infos declare.
"""

import string
from collections.abc import Callable
from typing import Any

from .. import keys
from ..blocks import block_sizes
from ..enums import ArrayType
from ..enums import GGUFValueType as T
from ..layout import align_up, alignment_of, known_sizes, place
from ..schema import GGUFStructs
from .choices import Choices
from .making import Extent, make

Make = Callable[[Choices], Any]

LETTERS = string.ascii_lowercase
REST = LETTERS + string.digits + "_"

VALID = Extent(levels=1)
"""Arrays of arrays are warned of: llama.cpp does not read them."""

ALIGNMENTS = tuple(1 << bit for bit in range(3, 13))
"""Those that no rule warns of, up to the size of a page."""

MOST_BYTES = 512
"""The size that a tensor is kept to, unless a single block is larger."""

MEANT = {*keys.FAMILIES["tokenizer"], *keys.FAMILIES["files"], keys.ARCHITECTURE, keys.ALIGNMENT, keys.BLOCK_COUNT}
"""Keys whose values must agree with each other or with the tensors."""

STANDARD = tuple(key for key in keys.KEYS if key not in MEANT and "{" not in key.template.replace("{arch}", ""))
"""Keys that may have any value of their type."""


def word(choices: Choices) -> str:
    """A segment of a key."""
    return choices.one_of(LETTERS) + choices.text(REST, 0, 7)


def dotted(choices: Choices) -> str:
    """Segments with dots between them: what keys look like, and most names."""
    return ".".join(choices.many(word, 2, 4))


def name(choices: Choices) -> str:
    """A tensor's name: at most 63 bytes, none of them NUL."""
    if choices.one_of((True, True, True, False)):
        return dotted(choices)
    return choices.text(None, 1, 15).replace("\0", "_")


def pair(choices: Choices, layout: GGUFStructs, extent: Extent, architecture: str) -> Any:
    """A metadata pair, of a standard key or of another; None where the other turns out to be standard."""
    if choices.one_of((True, False)):
        key = dotted(choices)
        is_free = keys.find(key, architecture) is None
        return make(layout.metadata_kv, choices, extent, {"key": key}) if is_free else None
    standard = choices.one_of(STANDARD)
    given: dict[str, Any] = {"key": standard.of(architecture)}
    if isinstance(standard.type, ArrayType):
        given["value_type"] = T.ARRAY
        given["value"] = make(layout.array, choices, extent, {"type": standard.type.type})
    else:
        given["value_type"] = standard.type
    return make(layout.metadata_kv, choices, extent, given)


def info(choices: Choices, layout: GGUFStructs, extent: Extent) -> Any:
    """A tensor info whose rows are whole blocks, and whose offset is computed."""
    type = choices.one_of(tuple(block_sizes()))
    block_size, type_size = block_sizes()[type]
    blocks = max(1, MOST_BYTES // type_size)
    dimensions = []
    for _ in range(choices.integer(1, 4)):
        dimensions.append(choices.integer(1, min(blocks, 4)))
        blocks //= dimensions[-1]
    dimensions[0] *= block_size
    if choices.integer(0, 15) == 15:
        dimensions[-1] = 0
    given = {"name": name(choices), "dimensions": dimensions, "type": type, "offset": None}
    return make(layout.tensor_info, choices, extent, given)


def file(
    choices: Choices,
    layout: GGUFStructs,
    extent: Extent = VALID,
    make_pair: Make | None = None,
    make_info: Make | None = None,
    alignments: tuple[int, ...] = ALIGNMENTS,
    pairs: int = 8,
    tensors: int = 4,
) -> dict[str, Any]:
    """A valid file in the wire form.

    Args:
        choices: What makes the choices.
        layout: Byte order and version.
        extent: How large the values are.
        make_pair: Makes a pair in place of `pair`.
        make_info: Makes an info in place of `info`.
        alignments: Those that a file may have, beside the default.
        pairs: The most pairs, without `general.architecture` and `general.alignment`.
        tensors: The most tensors.
    """
    architecture = word(choices)
    make_pair = make_pair or (lambda inner: pair(inner, layout, extent, architecture))
    make_info = make_info or (lambda inner: info(inner, layout, extent))
    metadata_kv = _unique(choices.many(make_pair, 0, pairs), "key")
    tensor_infos = _unique(choices.many(make_info, 0, tensors), "name")
    if alignments and choices.integer(0, 1):
        _put(metadata_kv, choices, layout, extent, keys.ALIGNMENT, choices.one_of(alignments))
    if metadata_kv:
        _put(metadata_kv, choices, layout, extent, keys.ARCHITECTURE, architecture)
    given = {
        "metadata_kv": metadata_kv,
        "tensor_infos": tensor_infos,
        "tensor_data": data(choices, tensor_infos, alignment_of(metadata_kv)),
        "tail": b"",
    }
    return {"order": layout.order, **make(layout.gguf, choices, extent, given)}


def data(choices: Choices, tensor_infos: list[dict[str, Any]], alignment: int) -> bytes:
    """The bytes of all tensors, with zeros up to the alignment after each."""
    sizes = [size or 0 for size in known_sizes(tensor_infos)]
    found = bytearray()
    for size, offset in zip(sizes, place(sizes, alignment), strict=True):
        found += bytes(offset - len(found)) + choices.octets(size)
    return bytes(found) + bytes(align_up(len(found), alignment) - len(found))


def _put(
    metadata_kv: list[dict[str, Any]], choices: Choices, layout: GGUFStructs, extent: Extent, key: keys.Key, value: Any
) -> None:
    """Put a pair somewhere, unless its key is there."""
    if all(pair["key"] != key.template for pair in metadata_kv):
        given = {"key": key.template, "value_type": key.type, "value": value}
        place = choices.integer(0, len(metadata_kv))
        metadata_kv.insert(place, make(layout.metadata_kv, choices, extent, given))


def _unique(made: list[Any], field: str) -> list[dict[str, Any]]:
    """Those with a name that none before them has."""
    return list({one[field]: one for one in reversed(made) if one is not None}.values())[::-1]
