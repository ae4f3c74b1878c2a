"""Floors: what a hand-written reader of just these files would do, with the same values and the same refusals."""

import math
import mmap
import struct
from pathlib import Path
from typing import Any

import gguf_schema as gs
from gguf_schema.blocks import blocks
from gguf_schema.constructs import Strings
from gguf_schema.layout import align_up
from gguf_schema.policy import SURELY_COUNTABLE

from .measure import Run

T = gs.GGUFValueType


def floor_text(model: gs.Model) -> Run:
    """One decode and one split of the text of all string arrays."""
    arrays = [value for _, _, value in model.metadata.pairs if isinstance(value, Strings)]
    texts = [
        "\n".join(text.replace("\n", " ") for text in array).encode("utf-8", "surrogateescape") for array in arrays
    ]
    return lambda: [str(text, "utf-8", "surrogateescape").split("\n") for text in texts]


def floor_records(path: Path) -> Run:
    """A loop over scalar pairs and tensor infos that makes the same values and the same refusals as `open`.

    It maps the file, as one would who need not fear that it shrinks meanwhile.
    """
    numbers = {type: number for type, number in gs.structs().numbers.items() if type != T.BOOL}
    scalars = {
        int(type): (type, struct.Struct(number.fmtstr).unpack_from, number.length) for type, number in numbers.items()
    }
    types = {int(type): (type, con.block_size, con.type_size) for type, con in blocks("<").items()}
    read_header, read_u64 = struct.Struct("<4sIQQ").unpack_from, struct.Struct("<Q").unpack_from
    read_u32, read_info = struct.Struct("<I").unpack_from, struct.Struct("<IQ").unpack_from
    read_dimensions = [struct.Struct(f"<{n}Q").unpack_from for n in range(9)]
    string = T.STRING

    def run() -> int:
        total = 0
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = len(data)
        magic, version, tensor_count, kv_count = read_header(data)
        assert magic == b"GGUF"
        assert version == 3
        position = 24
        pairs: dict[str, Any] = {}
        for _ in range(kv_count):
            (length,) = read_u64(data, position)
            position += 8 + length
            if position > end:
                raise ValueError
            key = str(data[position - length : position], "utf-8", "surrogateescape")
            (type,) = read_u32(data, position)
            position += 4
            value: Any
            if type == 8:
                type = string
                (length,) = read_u64(data, position)
                position += 8 + length
                if position > end:
                    raise ValueError
                value = str(data[position - length : position], "utf-8", "surrogateescape")
            else:
                type, read, width = scalars[type]
                (value,) = read(data, position)
                position += width
            if not key or key in pairs:
                raise ValueError
            pairs[key] = (type, value)
            total ^= hash((key, type, value))
        alignment = 32
        if "general.alignment" in pairs:
            type, alignment = pairs["general.alignment"]
            if type != 4 or alignment < 1 or (alignment & (alignment - 1) and alignment % 8):
                raise ValueError
        tensors: dict[str, Any] = {}
        last = 0
        for _ in range(tensor_count):
            (length,) = read_u64(data, position)
            position += 8 + length
            if position > end:
                raise ValueError
            name = str(data[position - length : position], "utf-8", "surrogateescape")
            (n_dimensions,) = read_u32(data, position)
            dimensions = read_dimensions[n_dimensions](data, position + 4)
            position += 4 + 8 * n_dimensions
            type, offset = read_info(data, position)
            position += 12
            type, block_size, type_size = types[type]
            n_bytes = math.prod(dimensions) // block_size * type_size
            if (
                name in tensors
                or dimensions[0] % block_size
                or not 0 < n_bytes <= SURELY_COUNTABLE
                or offset % alignment
            ):
                raise ValueError
            if offset + n_bytes > last:
                last = offset + n_bytes
            tensors[name] = (type, dimensions, offset, n_bytes)
            total ^= hash((name, type, dimensions, offset))
        if tensors and align_up(position, alignment) + last > end:
            raise ValueError
        data.close()
        return total

    return run
