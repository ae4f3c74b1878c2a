"""The files that are measured."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

import gguf_schema as gs
from gguf_schema.blocks import blocks
from gguf_schema.layout import align_up

T = gs.GGUFValueType
Q = gs.GGMLQuantizationType


def tensor_file(path: Path, tensors: int) -> Path:
    """A file with 30 scalar pairs and so many Q4_K tensors of 512 elements; the data is a hole."""
    kv = [
        {"key": "general.architecture", "value_type": T.STRING, "value": "llama"},
        *({"key": f"llama.number_{i}", "value_type": T.UINT32, "value": i} for i in range(29)),
    ]
    infos = [
        {"name": f"blk.{i // 9}.ffn_{i % 9}.weight", "dimensions": [256, 2], "type": Q.Q4_K} for i in range(tensors)
    ]
    path.write_bytes(gs.GGUF.build({"metadata_kv": kv, "tensor_infos": infos}))
    os.truncate(path, path.stat().st_size + tensors * align_up(288, 32))
    return path


def large_file(path: Path, tensors: int = 2_000, size: int = 20 << 30) -> Path:
    """A file with one pair and so many I8 tensors, whose data has about this size together and is a hole."""
    each = align_up(size // tensors, 32)
    kv = [{"key": "general.architecture", "value_type": T.STRING, "value": "llama"}]
    infos = [{"name": f"blk.{i // 9}.ffn_{i % 9}.weight", "dimensions": [each], "type": Q.I8} for i in range(tensors)]
    path.write_bytes(gs.GGUF.build({"metadata_kv": kv, "tensor_infos": infos}))
    os.truncate(path, path.stat().st_size + tensors * each)
    return path


def pair_file(path: Path, pairs: int) -> Path:
    """A file with so many UINT32 pairs and no tensors."""
    kv = [{"key": f"llama.number_{i}", "value_type": T.UINT32, "value": i} for i in range(pairs)]
    path.write_bytes(gs.GGUF.build({"metadata_kv": kv, "tensor_infos": []}))
    return path


def string_file(path: Path, strings: int) -> Path:
    """A file with a vocabulary of so many tokens, of 1 to 20 letters, one in seven not ASCII."""
    texts = [("Ġ" if i % 7 == 0 else "t") * (1 + i % 13) + f"{i:x}" for i in range(strings)]
    gs.write(path, {"general.architecture": "llama", "tokenizer.ggml.tokens": texts})
    return path


def number_file(path: Path, numbers: int) -> Path:
    """A file with an INT32 array of so many numbers."""
    gs.write(path, {"general.architecture": "llama", "x.numbers": np.arange(numbers, dtype=np.int32)})
    return path


def weight_file(path: Path, size: int) -> Path:
    """A file of about so many bytes, a third each in tensors of Q4_K, Q8_0 and F16, with finite floats."""
    random = np.random.default_rng(0)
    infos: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for number, type in enumerate((Q.Q4_K, Q.Q8_0, Q.F16)):
        struct = blocks("<")[type]
        piece = np.frombuffer(random.bytes(struct.type_size << 12), struct.dtype()).copy()
        for field in [piece] if struct.is_plain else [piece[name] for name in struct.dtype().names or ()]:
            if field.dtype.kind == "f":
                field[...] = random.standard_normal(field.shape)
        count = size // 3 // piece.nbytes
        infos.append({"name": f"blk.{number}", "dimensions": [struct.block_size << 12, count], "type": type})
        pieces += [piece.tobytes()] * count
    kv = [{"key": "general.architecture", "value_type": T.STRING, "value": "llama"}]
    with path.open("wb") as file:
        gs.GGUF.build_stream({"metadata_kv": kv, "tensor_infos": infos}, file)
        file.writelines(pieces)
    return path


def lying_files() -> dict[str, bytes]:
    """Files whose counts and lengths lie, by what they claim."""
    preamble = struct.pack("<4sI", b"GGUF", 3)
    pair = gs.structs().metadata_kv.build({"key": "a.b", "value_type": T.UINT8, "value": 1})[:-5]
    zeros = bytes(1_600_000)
    return {
        "2^63 pairs": preamble + struct.pack("<QQ", 0, 1 << 63) + zeros,
        "2^40 tensors": preamble + struct.pack("<QQ", 1 << 40, 0) + zeros,
        "2^40 strings": preamble + struct.pack("<QQ", 0, 1) + pair + struct.pack("<IIQ", 9, 8, 1 << 40) + zeros,
        "190,000 strings in 1.6 MB of zeros": preamble
        + struct.pack("<QQ", 0, 1)
        + pair
        + struct.pack("<IIQQ", 9, 8, 190_000, 1 << 63)
        + zeros,
        "100,000 arrays of arrays": preamble + struct.pack("<QQ", 0, 1) + pair + struct.pack("<I", 9) * 400_000,
        "a key of 2^63 bytes": preamble + struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1 << 63) + zeros,
    }
