"""Floors: what a hand-written reader of just these files would do, with the same values and the same refusals."""

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
Q = gs.GGMLQuantizationType


def floor_text(model: gs.Model) -> Run:
    """One decode and one split of the text of all string arrays."""
    arrays = [value for _, _, value in model.metadata.pairs if isinstance(value, Strings)]
    texts = [
        "\n".join(text.replace("\n", " ") for text in array).encode("utf-8", "surrogateescape") for array in arrays
    ]
    return lambda: [str(text, "utf-8", "surrogateescape").split("\n") for text in texts]


def floor_records(path: Path) -> Run:
    """A loop over scalar pairs and tensor infos that makes the same values and the same refusals as `open`."""
    scalars: dict[int, struct.Struct] = {
        type: struct.Struct(number.fmtstr) for type, number in gs.structs().numbers.items() if type != T.BOOL
    }
    types = {int(type): type for type in Q}
    value_types = {int(type): type for type in T}
    sizes = {type: (con.block_size, con.type_size) for type, con in blocks("<").items()}
    header, u64, u32, info = struct.Struct("<4sIQQ"), struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<IQ")
    dimension = {n: struct.Struct(f"<{n}Q") for n in range(9)}

    def run() -> int:
        total = 0
        data = path.read_bytes() if path.stat().st_size < 1 << 22 else path.open("rb").read(1 << 22)
        size = path.stat().st_size
        magic, version, tensor_count, kv_count = header.unpack_from(data)
        assert magic == b"GGUF"
        assert version == 3
        position = header.size
        keys: dict[str, Any] = {}
        alignment = 32
        for _ in range(kv_count):
            (length,) = u64.unpack_from(data, position)
            position += 8 + length
            assert position <= len(data)
            key = str(data[position - length : position], "utf-8", "surrogateescape")
            assert key
            assert key not in keys
            value_type = value_types[u32.unpack_from(data, position)[0]]
            position += 4
            value: Any
            if value_type == 8:
                (length,) = u64.unpack_from(data, position)
                position += 8 + length
                assert position <= len(data)
                value = str(data[position - length : position], "utf-8", "surrogateescape")
            else:
                number = scalars[value_type]
                (value,) = number.unpack_from(data, position)
                position += number.size
            keys[key] = (key, value_type, value)
            total ^= hash((key, value_type, value))
        if "general.alignment" in keys:
            _, value_type, alignment = keys["general.alignment"]
            assert value_type == 4
            assert alignment > 0
            assert alignment & (alignment - 1) == 0 or alignment % 8 == 0
        tensors: dict[str, Any] = {}
        last = 0
        for _ in range(tensor_count):
            (length,) = u64.unpack_from(data, position)
            position += 8 + length
            assert position <= len(data)
            name = str(data[position - length : position], "utf-8", "surrogateescape")
            assert name not in tensors
            (n_dimensions,) = u32.unpack_from(data, position)
            position += 4
            dimensions = dimension[n_dimensions].unpack_from(data, position)
            position += 8 * n_dimensions
            type, offset = info.unpack_from(data, position)
            position += 12
            type = types[type]
            block_size, type_size = sizes[type]
            n_elements = 1
            for one in dimensions:
                assert one < 1 << 63
                n_elements *= one
            assert n_elements < 1 << 63
            assert dimensions[0] % block_size == 0
            n_bytes = n_elements // block_size * type_size
            assert n_bytes <= SURELY_COUNTABLE
            assert offset % alignment == 0
            last = max(last, offset + n_bytes)
            tensors[name] = (name, type, dimensions, offset, n_bytes)
            total ^= hash((name, type, dimensions, offset))
        assert not tensors or align_up(position, alignment) + last <= size
        return total

    return run
