"""Names, dimensions and types of tensors."""

from ..enums import GGMLQuantizationType as Q
from ..limits import MAX_DIMENSIONS, MAX_SIZE, MAX_TYPE, NUMPY_DIMENSIONS
from .case import GGUF_PY, LLAMA_CPP, PY_0_19, PY_HEAD, READERS, WITH_DATA, Pair
from .draft import QUANTISED, put, tensor, toy

NAME, LENGTH, STRING = "tensor_infos[0].name", "tensor_infos[0].name.len", "tensor_infos[0].name.string"
N_DIMENSIONS, DIMENSIONS, DIMENSION = (
    "tensor_infos[0].n_dimensions",
    "tensor_infos[0].dimensions",
    "tensor_infos[0].dimensions[0]",
)
TYPE = "tensor_infos[0].type"
ONE = toy(tensors=(tensor("a.weight"),))
TWO = toy(tensors=(tensor("a.weight"), tensor("b.weight")))
BYTES = toy(tensors=(tensor("a.weight", Q.I8, 32),))
NOTHING = toy(tensors=(tensor("a.weight", Q.I8, 2, 4, 0),))
BLOCKS = toy(QUANTISED, tensors=(tensor("a.weight", Q.Q4_0, 64),))
MISSING = "A file that holds so much data cannot be made"

PAIRS = (
    Pair("tensor-name-twice", TWO, put("tensor_infos[1].name", "a.weight"), "tensor_infos[1].name.len", READERS),
    Pair(
        "name-utf8",
        ONE,
        put(NAME, b"caf\xe9.weight".decode("utf-8", "surrogateescape")),
        STRING,
        GGUF_PY,
    ),
    Pair("name-nul", ONE, put(NAME, "a.weight\0x"), STRING),
    Pair(
        "name-nul-twice",
        TWO,
        put("tensor_infos[1].name", "a.weight\0x"),
        "tensor_infos[1].name.string",
        also=("name-nul",),
        why="Two names that differ, and are equal up to a NUL, have a NUL",
    ),
    Pair("name-empty", ONE, put(NAME, ""), LENGTH),
    Pair("name-64", toy(tensors=(tensor("n" * 63),)), put(NAME, "n" * 64), LENGTH, LLAMA_CPP),
    Pair("name-long", toy(tensors=(tensor("n" * 63),)), put(NAME, "n" * 65), LENGTH, LLAMA_CPP),
    Pair("dimensions-none", ONE, put(DIMENSIONS, []), N_DIMENSIONS),
    Pair("dimensions-many", ONE, put(DIMENSIONS, [2, 2, 1, 1, 1]), N_DIMENSIONS, (*LLAMA_CPP, *PY_HEAD)),
    Pair(
        "dimensions-too-many",
        NOTHING,
        put(DIMENSIONS, [2, 4, 0, *[1] * (MAX_DIMENSIONS - 2)]),
        N_DIMENSIONS,
        (*LLAMA_CPP, *PY_HEAD),
    ),
    Pair(
        "dimensions-numpy",
        NOTHING,
        put(DIMENSIONS, [2, 4, 0, *[1] * (NUMPY_DIMENSIONS - 2)]),
        N_DIMENSIONS,
        READERS,
        ("dimensions-too-many",),
        "It is more than our limit, too",
    ),
    Pair("dimension-range", NOTHING, put(DIMENSION, MAX_SIZE + 1), DIMENSION, READERS, ("dimensions-numpy-range",)),
    Pair(
        "tensor-elements-range",
        BYTES,
        put(DIMENSIONS, [1 << 32, 1 << 31]),
        DIMENSION,
        READERS,
        ("data-missing",),
        MISSING,
    ),
    Pair(
        "tensor-bytes-range",
        ONE,
        put(DIMENSIONS, [1 << 61]),
        DIMENSION,
        (*WITH_DATA, *GGUF_PY),
        ("data-missing",),
        MISSING,
    ),
    Pair("dimensions-partial", NOTHING, put(DIMENSION, 1 << 62), DIMENSION, READERS, ("dimensions-numpy-range",)),
    Pair(
        "dimensions-numpy-range",
        toy(tensors=(tensor("a.weight", Q.I8, 0, 2, 4),)),
        put("tensor_infos[0].dimensions[1]", 1 << 62),
        DIMENSION,
        GGUF_PY,
    ),
    Pair(
        "data-size-wraps",
        toy(
            tensors=(
                tensor("a.weight", Q.I8, 2**63 - 2**16, offset=0),
                tensor("b.weight", Q.I8, 2**63 - 2**16, offset=2**63 - 2**16),
                tensor("c.weight", Q.I8, 2**16, offset=2**64 - 2**17),
            )
        ),
        put("tensor_infos[2].dimensions[0]", 2**17),
        "tensor_infos[2].dimensions[0]",
        READERS,
        ("data-missing",),
        MISSING,
        ("data-missing",),
        (*WITH_DATA, *GGUF_PY),
    ),
    Pair("tensor-type-range", ONE, put(TYPE, MAX_TYPE + 1), TYPE, READERS),
    Pair("tensor-type-removed", ONE, put(TYPE, Q.Q4_2), TYPE, READERS),
    Pair("tensor-type-unknown", ONE, put(TYPE, 1000), TYPE, READERS),
    Pair(
        "tensor-type-new", toy(QUANTISED, tensors=(tensor("a.weight", Q.Q1_0, 128),)), put(TYPE, Q.Q2_0), TYPE, PY_0_19
    ),
    Pair(
        "q8-1-short",
        toy(QUANTISED, tensors=(tensor("a.weight", Q.Q8_1, 32, 4),)),
        put(DIMENSIONS, [32, 5]),
        TYPE,
        PY_0_19,
    ),
    Pair("row-not-blocks", BLOCKS, put(DIMENSION, 33), DIMENSION, READERS),
)
