"""Whole valid files: the little that the tree of constructs does not say, on top of what is derived from it.

Keys and names are unique and well formed, `general.architecture` is there, standard keys have their types, alignments
are powers of two, rows are whole blocks, the data has the size that the infos declare.

A pair or a tensor takes about five choices, texts one each: hypothesis deletes no more of them at once when it shrinks.
"""

import io
import string
from collections.abc import Sequence
from typing import Any

from .. import keys
from ..blocks import block_sizes
from ..enums import ArrayType
from ..enums import GGUFValueType as T
from ..layout import align_up, alignment_of, known_sizes
from ..schema import ORDERS, VERSIONS, GGUFStructs
from .choices import Choices
from .making import Extent, make

LAYOUTS = tuple((order, version) for version in reversed(VERSIONS) for order in ORDERS)
CURRENT = tuple(layout for layout in LAYOUTS if layout[1] != 1)
"""Version 1 is warned of: few readers take it."""

Make = tuple[Any, ...]
"""A function of a source of choices, and its other arguments."""

LETTERS = string.ascii_lowercase
REST = LETTERS + string.digits + "_"
NAMES = REST + string.ascii_uppercase + "/.- é☃🦙"
"""What names are made of: characters of one to four bytes."""

VALID = Extent(levels=1)
"""Arrays of arrays are warned of: llama.cpp does not read them."""

ALIGNMENTS = tuple(1 << bit for bit in range(3, 13))
"""Those that no rule warns of, up to the size of a page."""

MOST_BYTES = 512
"""The size that a tensor is kept to, unless a single block is larger."""

MOST_DIMENSIONS = 4

COUNTS = (1, 2, 1, 3, 2, 4, 1, 5, 3, 1, 2, 0)
"""Blocks of a row, and the other dimensions: the small ones more often, none rarely."""

TYPES = tuple(block_sizes())
"""The tensor types whose blocks are known."""

MEANT = {*keys.FAMILIES["tokenizer"], *keys.FAMILIES["files"], keys.ARCHITECTURE, keys.ALIGNMENT, keys.BLOCK_COUNT}
"""Keys whose values must agree with each other or with the tensors."""

STANDARD = tuple(key for key in keys.KEYS if key not in MEANT and "{" not in key.template.replace("{arch}", ""))
"""Keys that may have any value of their type."""


def word(choices: Choices) -> str:
    """A segment of a key."""
    return segment(choices.text(REST, 1, 8))


def segment(text: str) -> str:
    """The text, or if it begins with no letter, the text with one before it."""
    return text if text[0] in LETTERS else f"x{text}"


def own_key(choices: Choices, architecture: str) -> str:
    """A key that is no standard one: segments with dots between them."""
    segments = [segment(text) for text in choices.text(REST + ".", 1, 24).split(".") if text]
    while len(segments) < 2:
        segments.insert(0, "x")
    key = ".".join(segments)
    while keys.find(key, architecture):
        key = f"x.{key}"
    return key


def name(choices: Choices) -> str:
    """A tensor's name: at most 63 bytes, none of them NUL."""
    return choices.text(NAMES, 1, 15)


def pair(choices: Choices, layout: GGUFStructs, extent: Extent, architecture: str) -> Any:
    """A metadata pair: of a standard key, which has a value of its type, or of a key that nobody knows."""
    if not extent.valid:
        return make(layout.metadata_kv, choices, extent)
    if choices.one_of((True, False)):
        return make(layout.metadata_kv, choices, extent, {"key": own_key(choices, architecture)})
    standard = choices.one_of(STANDARD)
    given: dict[str, Any] = {"key": standard.of(architecture)}
    if isinstance(standard.type, ArrayType):
        given["value_type"] = T.ARRAY
        given["value"] = make(layout.array, choices, extent, {"type": standard.type.type})
    else:
        given["value_type"] = standard.type
    return make(layout.metadata_kv, choices, extent, given)


def info(choices: Choices, layout: GGUFStructs, extent: Extent, types: Sequence[int] = TYPES) -> Any:
    """A tensor info of one of these types, whose rows are whole blocks, and whose offset is computed."""
    type = choices.one_of(types)
    given = {"type": type, "dimensions": dimensions(choices, extent, type), "offset": None}
    if extent.valid:
        given["name"] = name(choices)
    return make(layout.tensor_info, choices, extent, given)


def dimensions(choices: Choices, extent: Extent, type: int) -> list[int]:
    """Dimensions of a small tensor, now and then without elements; if it need not be valid, perhaps none."""
    block_size, type_size = block_sizes()[type]
    blocks = max(1, MOST_BYTES // type_size)
    may_be_one_number = block_size == 1 and not extent.valid
    found = []
    for _ in range(choices.integer(0 if may_be_one_number else 1, MOST_DIMENSIONS)):
        found.append(min(choices.one_of(COUNTS), blocks))
        blocks //= max(1, found[-1])
    return [found[0] * block_size, *found[1:]] if found else []


def file(
    choices: Choices,
    layout: GGUFStructs,
    extent: Extent = VALID,
    make_pair: Make | None = None,
    make_info: Make | None = None,
    alignments: Sequence[int] = ALIGNMENTS,
    pairs: tuple[int, int] = (0, 8),
    tensors: tuple[int, int] = (0, 4),
) -> dict[str, Any]:
    """A file in the wire form.

    Unless it must be valid, keys and names may stand twice, there may be bytes after the end, and values are odd.

    Args:
        choices: What makes the choices.
        layout: Byte order and version.
        extent: How large the values are, and whether the file is valid.
        make_pair: Makes a pair in place of `pair`.
        make_info: Makes an info in place of `info`.
        alignments: Those that a file may have, beside the default.
        pairs: The fewest and the most pairs, without `general.architecture` and `general.alignment`.
        tensors: The fewest and the most tensors.
    """
    architecture = word(choices)
    pair_maker, *pair_arguments = make_pair or (pair, layout, extent, architecture)
    info_maker, *info_arguments = make_info or (info, layout, extent)
    metadata_kv = choices.many(pair_maker, *pairs, *pair_arguments)
    tensor_infos = choices.many(info_maker, *tensors, *info_arguments)
    if extent.valid:
        sound = [one for one in metadata_kv if _is_sound(one, alignments)]
        metadata_kv, tensor_infos = _unique(sound, "key"), _unique(tensor_infos, "name")
    if alignments and choices.integer(0, 1):
        _put(metadata_kv, choices, layout, extent, keys.ALIGNMENT, choices.one_of(alignments))
    if metadata_kv and extent.valid:
        _put(metadata_kv, choices, layout, extent, keys.ARCHITECTURE, architecture)
    tensor_data = data(choices, tensor_infos, alignment_of(metadata_kv))
    given = {"metadata_kv": metadata_kv, "tensor_infos": tensor_infos, "tensor_data": tensor_data}
    if extent.valid:
        given["tail"] = b""
    return {"order": layout.order, **make(layout.gguf, choices, extent, given)}


def data(choices: Choices, tensor_infos: list[dict[str, Any]], alignment: int) -> bytes:
    """The bytes of all tensors, with zeros up to the alignment after each."""
    sizes = [size or 0 for size in known_sizes(tensor_infos)]
    drawn = io.BytesIO(choices.octets(sum(sizes)))
    return b"".join(drawn.read(size).ljust(align_up(size, alignment), b"\0") for size in sizes)


def _is_sound(pair: dict[str, Any], alignments: Sequence[int]) -> bool:
    """Whether a pair that declares the alignment declares one of these."""
    if pair["key"] != keys.ALIGNMENT.template:
        return True
    return pair["value_type"] == keys.ALIGNMENT.type and pair["value"] in alignments


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
    return list({one[field]: one for one in reversed(made)}.values())[::-1]
