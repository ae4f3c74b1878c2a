"""Where tensor data is, and what stands around it."""

from ..enums import GGMLQuantizationType as Q
from ..limits import DEFAULT_ALIGNMENT
from .case import GGUF_PY, LLAMA_CPP, WITH_DATA, Pair
from .draft import Change, append, cut, fill, put, tensor, toy, unpad

A = tensor("a.weight")
TWO = toy(tensors=(A, tensor("b.weight")))
ONE = toy(tensors=(A,))
NOTHING = toy(tensors=(tensor("a.weight", Q.F32, 0),))
WITH_NOTHING = toy(tensors=(A, tensor("b.weight", Q.F32, 0)))
FIRST, SECOND = "tensor_infos[0].offset", "tensor_infos[1].offset"


def _placed(first: int, second: int) -> Change:
    """Two tensors at these offsets."""
    return lambda made: put(SECOND, second)(put(FIRST, first)(made))


PAIRS = (
    Pair("offset-unaligned", TWO, put(SECOND, 16), SECOND, LLAMA_CPP, ("offset-not-dense",)),
    Pair("offset-order", TWO, _placed(DEFAULT_ALIGNMENT, 0), SECOND, LLAMA_CPP, ("offset-not-dense",)),
    Pair("offset-first", ONE, put(FIRST, DEFAULT_ALIGNMENT), FIRST, LLAMA_CPP, ("offset-not-dense",)),
    Pair("offset-gap", TWO, put(SECOND, 2 * DEFAULT_ALIGNMENT), SECOND, LLAMA_CPP, ("offset-not-dense",)),
    Pair("tensors-overlap", TWO, put(SECOND, 0), SECOND, LLAMA_CPP, ("offset-not-dense",)),
    Pair("offset-not-dense", WITH_NOTHING, put(SECOND, 0), SECOND, LLAMA_CPP),
    Pair(
        "offset-wraps",
        TWO,
        put(SECOND, 2**64 - DEFAULT_ALIGNMENT),
        SECOND,
        LLAMA_CPP,
        ("offset-gap", "offset-not-dense"),
        "Where an offset wraps, a gap is before the tensor",
    ),
    Pair(
        "offset-past-end",
        WITH_NOTHING,
        put(SECOND, 1 << 12),
        SECOND,
        LLAMA_CPP,
        ("offset-gap", "offset-not-dense"),
        "Between the end and what begins after it is a gap",
    ),
    Pair("data-start-missing", NOTHING, cut("padding"), "padding", LLAMA_CPP),
    Pair("data-missing", ONE, cut("tensor_data[0]", -1), "tensor_data", (*WITH_DATA, *GGUF_PY)),
    Pair("last-unpadded", ONE, unpad, "tensor_data", WITH_DATA),
    Pair("padding-nonzero", ONE, fill("padding", 0xFF), "padding"),
    Pair("tail-nonzero", ONE, append(b"PK\3\4"), "tail"),
    Pair("tail-zero", ONE, append(bytes(DEFAULT_ALIGNMENT)), "tail"),
)
