"""Small files, byte by byte."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..annotate import Entry, everything, leaves
from ..blocks import blocks
from ..enums import GGMLQuantizationType, NamedInt
from ..file import Tensor, open
from ..schema import LATEST_VERSION
from ..walk import trace
from ..write import write
from .forms import Table


def example_file(order: str, version: int) -> bytes:
    """A file with a string, a number, an array, and two tensors, in any layout."""
    q8_0 = blocks(order)[GGMLQuantizationType.Q8_0]
    quantised = np.zeros((2, 1), q8_0.dtype())  # two rows of one block
    quantised["d"] = [[0.5], [-2]]
    quantised["qs"] = np.arange(q8_0.block_size)
    metadata = {
        "general.architecture": "llama",
        "general.quantization_version": 2,
        "tokenizer.ggml.tokens": ["<s>", "hello"],
    }
    tensors = {
        "output_norm.weight": np.array([1, 1, 0.5, -1], np.float32),
        "token_embd.weight": (GGMLQuantizationType.Q8_0, quantised),
    }
    return _written(metadata, tensors, order, version)


def values_file() -> bytes:
    """A file without tensors: an alignment, a BOOL, a FLOAT32, and an array of two arrays."""
    metadata = {
        "general.architecture": "llama",
        "general.alignment": 64,
        "my.flag": True,
        "my.scale": 0.75,
        "my.lists": [[1, -2], ["x"]],
    }
    return _written(metadata, {}, "<", LATEST_VERSION)


def _written(metadata: Any, tensors: Any, order: str, version: int) -> bytes:
    file = io.BytesIO()
    write(file, metadata, tensors, order=order, version=version)
    return file.getvalue()


def example(data: bytes) -> Table:
    """The fields of a file in the order of its bytes; of tensors those of their blocks."""
    with open(data) as model:
        tensors = {f"tensor_data[{index}]": tensor for index, tensor in enumerate(model.tensors.infos)}
        rows = []
        for entry in leaves(model, everything):
            fields = _fields(tensors[entry.path], entry, data) if entry.path in tensors else [_place(entry)]
            rows += [
                (start, data[start:end].hex(" "), path, value) for start, end, path, value in fields if end > start
            ]
    return Table(("at", "bytes", "field", "value"), rows, code=("bytes", "field", "value"))


def _place(entry: Entry) -> tuple[int, int, str, str]:
    """A field: start, end, path, value."""
    value = entry.value
    if isinstance(value, NamedInt):
        value = f"{value:d} ({value.name})"
    elif entry.path.endswith("padding"):
        value = f"{entry.end - entry.start} × 0"
    return entry.start, entry.end, entry.path, str(value, "ascii") if isinstance(value, bytes) else str(value)


def _fields(tensor: Tensor, entry: Entry, data: bytes) -> Iterator[tuple[int, int, str, str]]:
    """The fields of each block of a tensor."""
    struct = tensor.block
    assert struct is not None
    for index, start in enumerate(range(entry.start, entry.end, struct.type_size)):
        for node in trace(struct, data[start : start + struct.type_size], lambda path, items: path == ""):
            if node.path:
                value = ", ".join(map(str, node.value)) if isinstance(node.value, list) else str(node.value)
                yield start + node.start, start + node.end, f"{entry.path}[{index}].{node.path}", value
