"""Where things stand in a file: alignment, sizes and offsets of tensors, the extent of the data.

Arithmetic on parsed fields, in Python ints that cannot wrap, and the constructs through which the schema uses it.
"""

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import construct
import numpy as np
from construct.core import evaluate

from .blocks import block_sizes
from .constructs import Guarded
from .constructs.core import Context, bytes_left, read
from .enums import GGMLQuantizationType, GGUFValueType
from .errors import BuildError, GGUFError
from .keys import ALIGNMENT
from .limits import DEFAULT_ALIGNMENT, MAX_DIMENSIONS
from .walk import Sink, Stream

KEYS = (ALIGNMENT.template, ALIGNMENT.template.encode())
"""The key of the alignment; objects that are built may hold strings as bytes."""

Fields = Mapping[str, Any]
"""A parsed Struct, or a mapping with the same fields."""


def align_up(position: int, alignment: int) -> int:
    """The first multiple of the alignment that is not below the position (GGML_PAD, for any alignment)."""
    return -(-position // alignment) * alignment


def alignment_of(metadata_kv: Sequence[Fields]) -> int:
    """The alignment that the metadata declares; the default where it declares none, or one that cannot be meant."""
    for pair in metadata_kv:
        if pair["key"] in KEYS:
            value = pair["value"]
            is_number = pair["value_type"] == GGUFValueType.UINT32 and isinstance(value, int | np.integer)
            return int(value) if is_number and value > 0 else DEFAULT_ALIGNMENT
    return DEFAULT_ALIGNMENT


def n_elements(dimensions: Sequence[int]) -> int:
    """The number of elements; 1 without dimensions.

    Raises:
        GGUFError: There are more dimensions than anybody uses: multiplying very many takes very long.
    """
    if len(dimensions) > MAX_DIMENSIONS:
        problem = f"{len(dimensions)} dimensions: the elements of more than {MAX_DIMENSIONS} are not counted"
        raise GGUFError(problem, "n_dimensions")
    return math.prod(dimensions)


def n_bytes(type: int, dimensions: Sequence[int]) -> int | None:
    """The bytes of a tensor's data (ggml_nbytes): bytes of a row times rows.

    Args:
        type: The tensor type.
        dimensions: In file order, fastest first. None are one row of one element (ggml fills up with ones).

    Returns:
        The size, or None where the type's block is not known.

    Raises:
        GGUFError: The first dimension is no multiple of the block size, or there are too many dimensions.
    """
    (size,) = known_sizes([{"type": type, "dimensions": dimensions}])
    if size is not None or type not in block_sizes():
        return size
    block_size, _ = block_sizes()[type]
    row = dimensions[0] if dimensions else 1
    if row % block_size:
        problem = f"{row} is no multiple of {block_size}, the block size of {type_name(type)}"
        raise GGUFError(problem, "dimensions[0]" if dimensions else "n_dimensions")
    return n_elements(dimensions)  # raises: there are too many dimensions


def type_name(type: int) -> str:
    """The name of a tensor type; the number where it has none."""
    return NAMES.get(type, str(type))


NAMES = {int(type): type.name for type in GGMLQuantizationType}
"""Tensor type → its name."""


def known_sizes(tensor_infos: Sequence[Fields]) -> list[int | None]:
    """The bytes of each tensor's data; None where type and dimensions do not tell."""
    blocks = block_sizes() if tensor_infos else {}  # making them takes longer than opening a file without tensors
    known: list[int | None] = []
    for info in tensor_infos:
        dimensions = info["dimensions"]
        sizes = blocks.get(info["type"])
        if sizes is None or (dimensions[0] if dimensions else 1) % sizes[0] or len(dimensions) > MAX_DIMENSIONS:
            known.append(None)
        else:
            known.append(math.prod(dimensions) // sizes[0] * sizes[1])
    return known


def sizes(tensor_infos: Sequence[Fields], known: list[int | None]) -> list[int | None]:
    """The bytes of each tensor's data, in the order of the infos, where some are known.

    Where type and dimensions do not tell, it is the gap to the next tensor; None for the last one.
    """
    if None not in known:
        return known
    offsets = sorted({info["offset"] for info in tensor_infos})
    gaps = {offset: following - offset for offset, following in pairwise(offsets)}
    return [gaps.get(info["offset"]) if size is None else size for info, size in zip(tensor_infos, known, strict=True)]


def data_size(placed: Iterable[tuple[int, int | None]], alignment: int) -> int | None:
    """The bytes of `tensor_data`, the padding after the last tensor included; None where a last tensor's is unknown.

    Args:
        placed: Offset and size of each tensor.
        alignment: In bytes.
    """
    end = 0
    for offset, size in placed:
        if size is None:
            return None
        end = max(end, offset + size)
    return align_up(end, alignment)


def place(sizes: Sequence[int], alignment: int) -> list[int]:
    """The offsets of tensors of these sizes that follow each other, each at the next multiple of the alignment."""
    offsets = []
    position = 0
    for size in sizes:
        offsets.append(position)
        position = align_up(position + size, alignment)
    return offsets


class Alignment(Guarded, construct.Computed):
    """No bytes: the alignment that an expression's metadata pairs declare."""

    def _parse(self, stream: Stream, context: Context, path: str) -> int:
        return alignment_of(evaluate(self.func, context))

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> int:
        return alignment_of(evaluate(self.func, context))


class Placed(Guarded, construct.Adapter):
    """An array of tensor infos whose offsets are computed on build where the objects do not hold them."""

    def __init__(self, subcon: construct.Construct, alignment: Any) -> None:
        super().__init__(subcon)
        self.alignment = alignment

    def _decode(self, obj: Any, context: Context, path: str) -> Any:
        return obj

    def _encode(self, obj: Any, context: Context, path: str) -> Any:
        if all(info.get("offset") is not None for info in obj):
            return obj
        if any(info.get("offset") is not None for info in obj):
            raise BuildError("some tensors have an offset and some do not: give all of them or none")
        try:
            sizes = [_placeable_size(index, info) for index, info in enumerate(obj)]
        except (KeyError, TypeError):
            # Something is no tensor info. Whoever builds it says best what it lacks.
            return [{**info, "offset": 0} for info in obj]
        offsets = place(sizes, evaluate(self.alignment, context))
        return [{**info, "offset": offset} for info, offset in zip(obj, offsets, strict=True)]


def _placeable_size(index: int, info: Fields) -> int:
    """The bytes of a tensor that is to be placed.

    Raises:
        BuildError: Its type tells no size.
    """
    try:
        size = n_bytes(info["type"], list(map(operator.index, info["dimensions"])))  # numpy's integers would wrap
    except GGUFError as error:
        raise BuildError(error.problem, error.path).inside(f"[{index}]", None) from None
    if size is None:
        problem = f"the size of type {type_name(info['type'])} is not known: give the offsets"
        raise BuildError(problem, f"[{index}].type")
    return size


class AlignmentPadding(Guarded, construct.Construct):
    """Bytes up to the next multiple of the alignment, counted from the file's start, as far as there are bytes.

    On build zeros where the object holds none; nothing where no tensors are (ggml pads only before tensors).
    """

    def __init__(self, alignment: Any, tensor_infos: Any, data: str) -> None:
        super().__init__()
        self.alignment = alignment
        self.tensor_infos = tensor_infos
        self.data = data
        self.flagbuildnone = True

    def _missing(self, stream: Sink | Stream, context: Context) -> int:
        position: int = stream.tell() - context._params.get("stream_start", 0)
        alignment: int = evaluate(self.alignment, context)
        return align_up(position, alignment) - position

    def _parse(self, stream: Stream, context: Context, path: str) -> bytes:
        return read(stream, min(self._missing(stream, context), bytes_left(stream, context)), None, context)

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> bytes:
        if obj is None:
            obj = bytes(self._missing(stream, context)) if evaluate(self.tensor_infos, context) else b""
        elif context.get(self.data) and len(obj) != self._missing(stream, context):
            problem = f"{len(obj)} bytes held, {self._missing(stream, context)} lead to the alignment"
            raise BuildError(f"{problem}: leave the field out, and it is computed")
        stream.write(obj)
        return bytes(obj)


class TensorData(Guarded, construct.Construct):
    """The data of all tensors, with what stands between them and the padding after the last, as far as there is any."""

    def __init__(self, alignment: Any, tensor_infos: Any) -> None:
        super().__init__()
        self.alignment = alignment
        self.tensor_infos = tensor_infos
        self.flagbuildnone = True

    def _parse(self, stream: Stream, context: Context, path: str) -> bytes:
        infos = evaluate(self.tensor_infos, context)
        placed = zip((info["offset"] for info in infos), sizes(infos, known_sizes(infos)), strict=True)
        size = data_size(placed, evaluate(self.alignment, context))
        left = bytes_left(stream, context)
        return read(stream, left if size is None else min(size, left), None, context)

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> bytes:
        data = b"" if obj is None else obj
        stream.write(data)
        return bytes(data)
