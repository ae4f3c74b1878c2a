"""A whole file, byte by byte."""

import io
from typing import Any

import numpy as np

from ..annotate import everything, leaves
from ..blocks import blocks
from ..enums import GGMLQuantizationType
from ..file import open
from ..write import write
from .forms import Table

WIDEST = 32
"""Bytes shown of a field; the data of a tensor is longer."""


def example_file(order: str, version: int) -> bytes:
    """A small file with a string, a number, an array, and two tensors, in any layout."""
    block = blocks(order)[GGMLQuantizationType.Q8_0]
    quantised = np.zeros((2, 1), block.dtype())  # two rows of one block
    quantised["d"] = 0.5
    quantised["qs"] = np.arange(block.block_size)
    metadata = {"general.architecture": "llama", "llama.block_count": 1, "tokenizer.ggml.tokens": ["<s>", "hello"]}
    tensors = {
        "output_norm.weight": np.ones(4, np.float32),
        "token_embd.weight": (GGMLQuantizationType.Q8_0, quantised),
    }
    file = io.BytesIO()
    write(file, metadata, tensors, order=order, version=version)
    return file.getvalue()


def example(order: str, version: int) -> Table:
    """The fields of the small file in the order of its bytes."""
    data = example_file(order, version)
    with open(data) as model:
        rows = [
            (entry.start, _hex(data[entry.start : entry.end]), entry.path, _shown(entry.value))
            for entry in leaves(model, everything)
            if entry.end > entry.start
        ]
    return Table(("offset", "bytes", "field", "value"), rows, code=("bytes", "field"))


def _hex(data: bytes) -> str:
    return f"{data[:WIDEST].hex(' ')}{' …' if len(data) > WIDEST else ''}"


def _shown(value: Any) -> str:
    """A value as text."""
    return str(value, "ascii") if isinstance(value, bytes) else str(value)
