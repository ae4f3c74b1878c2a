"""Good files: each type, version, byte order and alignment, and each shape that arrays and tensors may have."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ..blocks import block_sizes
from ..enums import GGMLQuantizationType as Q
from ..enums import GGUFValueType as T
from ..layout import type_name
from ..schema import ORDER_NAMES, ORDERS, VERSIONS, structs
from ..walk import dtype
from .case import LLAMA_CPP, PY_0_19, READERS, Row
from .draft import (
    QUANTISED,
    Draft,
    alignment,
    array,
    built,
    drafted,
    items,
    number,
    pair,
    span,
    tensor,
    text,
    toy,
)

SPECIFICATION = "specification, {}"
VALUES = SPECIFICATION.format("gguf_metadata_value_type")
ARRAYS = SPECIFICATION.format("gguf_metadata_value_t")
TENSORS = SPECIFICATION.format("gguf_tensor_info_t")
FILE = SPECIFICATION.format("File structure")
TEXTS = {
    "empty": "",
    "utf-8": "h\u00e9llo \u2581the \U0001f999",
    "nul": "a\0b",
    "line-ends": "\ufeffone\r\ntwo\n",
    "long": "0123456789" * 100,
}
ALIGNMENTS = {1: "alignment-small", 2: "alignment-small", 8: "", 16: "", 64: "", 128: "", 1024: ""}
"""Alignment → the rule that it breaks."""
SHAPES = ((7,), (5, 3), (4, 3, 2), (4, 3, 2, 2), (1, 1, 1, 1), (4, 0), (0,))


def extremes(type: T) -> list[Any]:
    """The values of a type that readers get wrong: the ends of its range, and a few in between."""
    if type is T.BOOL:
        return [False, True]
    if type is T.STRING:
        return list(TEXTS.values())
    kind = dtype(structs().numbers[type])
    if kind.kind == "f":
        limits = np.finfo(kind)
        return [0.0, -0.0, 0.1, float(limits.max), float(limits.smallest_subnormal), np.inf, -np.inf, np.nan]
    bounds = np.iinfo(kind)
    return [int(bounds.min), int(bounds.max), *([2**53 + 1] if kind.itemsize == np.dtype(np.int64).itemsize else [])]


def values() -> Iterator[Row]:
    """Metadata values of each type, single and in arrays."""
    for type in (*structs().numbers, T.STRING):
        name = type.name.lower()
        found = extremes(type)
        pairs = [pair(f"test.value_{index}", type, value) for index, value in enumerate(found)]
        yield Row(f"features/value-{name}", VALUES, f"{type.name} values", toy(*pairs))
        yield Row(f"features/array-{name}", ARRAYS, f"An array of {type.name}", toy(array("test.array", type, *found)))
        reason = f"An array of {type.name} without elements, and a pair behind it"
        yield Row(f"features/array-{name}-empty", ARRAYS, reason, toy(array("test.array", type), number("test.end", 1)))
    for name, value in TEXTS.items():
        yield Row(f"features/string-{name}", ARRAYS, f"A string: {name}", toy(text("test.text", value)))
    nested = {
        "nested": items(T.ARRAY, items(T.UINT8, 1, 2), items(T.UINT8), items(T.UINT8, 3)),
        "nested-strings": items(T.ARRAY, items(T.STRING, "a", ""), items(T.STRING, "b")),
        "nested-mixed": items(T.ARRAY, items(T.UINT8, 1), items(T.STRING, "b"), items(T.ARRAY, items(T.INT64, -1))),
        "nested-empty": items(T.ARRAY),
    }
    for name, arrays in nested.items():
        draft = toy(pair("test.array", T.ARRAY, arrays), number("test.end", 1))
        reason = f"An array of arrays: {name}"
        yield Row(f"features/array-{name}", ARRAYS, reason, draft, rules=("array-nested",), refused_by=LLAMA_CPP)


def tensors() -> Iterator[Row]:
    """Tensors of each type and shape."""
    for type, (block_size, _) in block_sizes().items():
        is_new, name = type == Q.Q2_0, type_name(type)
        yield Row(
            f"features/tensor-{name.lower()}",
            TENSORS,
            f"Two rows of {name}, and a tensor behind them",
            toy(QUANTISED, tensors=(tensor("a.weight", type, block_size, 2), tensor("b.weight"))),
            rules=("tensor-type-new",) if is_new else (),
            refused_by=PY_0_19 if is_new else (),
        )
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        draft = toy(tensors=(tensor("a.weight", Q.F16, *shape), tensor("b.weight")))
        yield Row(f"features/shape-{name}", TENSORS, f"A tensor of dimensions {list(shape)}", draft)
    many = tuple(tensor(f"test.{index}.weight", Q.F32, 1 + index % 3) for index in range(60))
    yield Row("features/tensors-60", TENSORS, "60 tensors", toy(tensors=many))
    name = "n" * 63
    yield Row("features/name-63", TENSORS, "A name of 63 bytes", toy(tensors=(tensor(name),)))
    yield Row("features/name-utf-8", TENSORS, "A name that is not ASCII", toy(tensors=(tensor("h\u00e9.weight"),)))


def everything(**more: Any) -> Draft:
    """A file with something of everything."""
    scalars = [pair(f"test.{type.name.lower()}", type, extremes(type)[1]) for type in structs().numbers]
    tokens = array("tokenizer.ggml.tokens", T.STRING, "<unk>", "<s>", "\u2581the")
    scores = array("tokenizer.ggml.scores", T.FLOAT32, 0.0, -1.5, -2.0)
    matrices = (tensor("token_embd.weight", Q.Q8_0, 32, 3), tensor("output_norm.weight", Q.F32, 32))
    return toy(QUANTISED, *scalars, tokens, scores, tensors=matrices, **more)


def files() -> Iterator[Row]:
    """Versions, byte orders, alignments, and files without one thing or another."""
    for order, version in product(ORDERS, VERSIONS):
        codes = {"version-1": version == 1, "big-endian": order == ">"}
        rules = tuple(code for code, is_broken in codes.items() if is_broken)
        yield Row(
            f"features/version-{version}-{ORDER_NAMES[order]}",
            FILE,
            f"Something of everything, in version {version}, {ORDER_NAMES[order]}-endian",
            everything(order=order, version=version),
            rules=rules,
            refused_by=READERS if version == 1 else LLAMA_CPP if order == ">" else (),
        )
    for value, code in ALIGNMENTS.items():
        draft = toy(alignment(value), tensors=(tensor("a.weight", Q.I8, 5), tensor("b.weight", Q.I8, 3)))
        yield Row(f"features/alignment-{value}", FILE, f"Alignment {value}", draft, rules=(code,) if code else ())
    draft = toy(alignment(24), tensors=(tensor("a.weight", Q.I8, 5), tensor("b.weight", Q.I8, 3)))
    reason = "Alignment 24: a multiple of 8, as the specification asks, and no power of two, as readers do"
    yield Row("features/alignment-24", FILE, reason, draft, rules=("alignment-multiple",), refused_by=READERS)
    yield Row("features/empty", FILE, "No pairs and no tensors", drafted())
    yield Row("features/no-tensors", FILE, "One pair and no tensors", toy())
    yield Row(
        "features/no-pairs",
        FILE,
        "One tensor and no pairs",
        drafted(tensors=(tensor("a.weight"),)),
    )
    yield Row("features/no-padding-needed", FILE, "The infos end where the tensor data begins", ends_on_boundary())
    late = drafted(number("llama.block_count", 1), text("general.architecture", "llama"))
    yield Row("features/architecture-last", FILE, "The architecture after a key that begins with it", late)


def ends_on_boundary() -> Draft:
    """A file whose infos end on the alignment: the value of its name is as long as that takes."""
    draft = toy(text("general.name", ""), tensors=(tensor("a.weight"),))
    start, end = span(built(draft).data, "padding")
    draft["metadata_kv"][1]["value"] = "n" * (end - start)
    return draft


def rows() -> Iterator[Row]:
    """All of them."""
    yield from values()
    yield from tensors()
    yield from files()
