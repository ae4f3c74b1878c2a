"""Versions, byte orders and alignments."""

from ..enums import GGUFValueType as T
from ..limits import DEFAULT_ALIGNMENT
from .case import LLAMA_CPP, READERS, Pair
from .draft import alignment, put, tensor, toy

VALUE = "metadata_kv[1].value"
ALIGNED = toy(alignment(DEFAULT_ALIGNMENT), tensors=(tensor("a.weight"),))
NO_TENSORS = toy(alignment(DEFAULT_ALIGNMENT))

PAIRS = (
    Pair("version-1", toy(tensors=(tensor("a.weight"),)), put("version", 1), "version", READERS),
    Pair("big-endian", toy(tensors=(tensor("a.weight"),)), put("order", ">"), "version", LLAMA_CPP),
    Pair("alignment-type", ALIGNED, put("metadata_kv[1].value_type", T.UINT64), "metadata_kv[1].value_type", READERS),
    Pair("alignment-value", NO_TENSORS, put(VALUE, 0), VALUE, READERS),
    Pair("alignment-small", ALIGNED, put(VALUE, 4), VALUE),
    Pair("alignment-multiple", ALIGNED, put(VALUE, 24), VALUE, READERS),
    Pair("alignment-large", NO_TENSORS, put(VALUE, 1 << 21), VALUE),
)
