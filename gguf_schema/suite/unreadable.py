"""Files that end a parse, each with its twin that does not."""

from typing import Any

from ..enums import GGUFValueType as T
from ..limits import MAX_NESTING
from ..schema import structs
from .case import LLAMA_CPP, PY_HEAD, READERS, Pair
from .draft import Draft, array, built, cut, damage, drafted, items, levels, number, pair, replace, tensor, text, toy

PYTHON_CALLS = 1000
"""Levels of arrays that a reader which calls itself for each cannot read within Python's usual limit."""

ARRAY_LAST = toy(array("test.numbers", T.UINT32, 1, 2, 3))
ARRAY_THEN_MORE = toy(array("test.numbers", T.UINT32, 1, 2, 3), number("test.more", 4))
EMPTY_ARRAY = toy(array("test.numbers", T.UINT32))
NUMBER_LAST = toy(number("test.number", 7))
STRING_LAST = toy(text("test.text", "hello"))
ONE_TENSOR = toy(tensors=(tensor("a.weight"),))


def nested(count: int) -> Draft:
    """A file with arrays so many levels deep."""
    value: dict[str, Any] = items(T.UINT8, 1)
    for _ in range(count - 1):
        value = items(T.ARRAY, value)
    return toy(pair("test.nested", T.ARRAY, value))


TOO_DEEP = replace("metadata_kv[1].value", levels(structs(), MAX_NESTING + 1))

PAIRS = (
    Pair("not-gguf", toy(), replace("magic", b"gguf"), "magic", READERS),
    Pair("header-cut", drafted(), cut("metadata_kv_count", -4), "metadata_kv_count", READERS),
    Pair("version-unknown", toy(), damage("version", 4), "version", READERS),
    Pair("count-range", toy(), damage("tensor_count", 2**64 - 1), "tensor_count", READERS),
    Pair(
        "value-type-unknown",
        NUMBER_LAST,
        damage("metadata_kv[1].value_type", 13),
        "metadata_kv[1].value_type",
        READERS,
    ),
    Pair(
        "element-type-unknown",
        ARRAY_LAST,
        damage("metadata_kv[1].value.type", 13),
        "metadata_kv[1].value.type",
        READERS,
    ),
    Pair(
        "element-type-unknown-empty",
        EMPTY_ARRAY,
        damage("metadata_kv[1].value.type", 13),
        "metadata_kv[1].value.type",
        LLAMA_CPP,
    ),
    Pair(
        "nesting-depth",
        nested(MAX_NESTING),
        TOO_DEEP,
        "metadata_kv[1].value.type",
        LLAMA_CPP,
        twin_rules=("array-nested",),
        twin_refused_by=LLAMA_CPP,
    ),
    Pair(
        "nesting-python",
        TOO_DEEP(built(nested(MAX_NESTING))),
        replace("metadata_kv[1].value", levels(structs(), PYTHON_CALLS)),
        "metadata_kv[1].value.type",
        READERS,
        twin_rules=("nesting-depth",),
        twin_refused_by=LLAMA_CPP,
    ),
    Pair("number-cut", NUMBER_LAST, cut("metadata_kv[1].value", -1), "metadata_kv[1].value", READERS),
    Pair("last-number-missing", NUMBER_LAST, cut("metadata_kv[1].value"), "metadata_kv[1].value", LLAMA_CPP),
    Pair("string-cut", STRING_LAST, damage("metadata_kv[1].key.len", 1000), "metadata_kv[1].key.len", READERS),
    Pair(
        "last-string-cut",
        STRING_LAST,
        damage("metadata_kv[1].value.len", 1000),
        "metadata_kv[1].value.len",
        (*LLAMA_CPP, *PY_HEAD),
    ),
    Pair("array-cut", ARRAY_THEN_MORE, damage("metadata_kv[1].value.len", 1000), "metadata_kv[1].value.len", READERS),
    Pair("last-array-cut", ARRAY_LAST, damage("metadata_kv[1].value.len", 1000), "metadata_kv[1].value.len", LLAMA_CPP),
    Pair(
        "dimensions-cut",
        ONE_TENSOR,
        damage("tensor_infos[0].n_dimensions", 1000),
        "tensor_infos[0].n_dimensions",
        READERS,
    ),
)
