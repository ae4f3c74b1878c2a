"""What standard keys mean: their types, and whether they agree with each other and with the tensors."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import keys
from ..enums import ArrayType, LlamaFileType, ValueType
from ..enums import GGUFValueType as T
from ..errors import Finding
from ..layout import type_name
from .metadata import shown
from .rule import NOTE, WARNING, Rule
from .subject import INTEGERS, Subject

BLOCK = re.compile(r"blk\.(\d+)\.")
SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS = (key.template for key in (keys.SPLIT_NO, keys.SPLIT_COUNT, keys.SPLIT_TENSORS))


def type_of(pair: Any) -> ValueType:
    """The type of a pair's value."""
    value_type: T = pair["value_type"]
    return ArrayType(pair["value"]["type"]) if value_type == T.ARRAY else value_type


def key_types(subject: Subject) -> Iterator[Finding]:
    """Standard keys whose values have a type that neither the specification nor llama.cpp's loader takes."""
    for index, pair in enumerate(subject.metadata_kv):
        key = keys.find(pair["key"], subject.architecture or "")
        if key is None or key is keys.ALIGNMENT:  # which has an error of its own
            continue
        found = type_of(pair)
        allowed = (key.type, *key.also)
        if found not in allowed:
            field = "value.type" if isinstance(found, ArrayType) and _has_array(allowed) else "value_type"
            wanted = " or ".join(map(str, allowed))
            yield Finding(
                "key-type", f"metadata_kv[{index}].{field}", f"{shown(pair['key'])} is {found}; {wanted} is expected"
            )


def _has_array(types: tuple[ValueType, ...]) -> bool:
    return any(isinstance(type, ArrayType) for type in types)


def _count(subject: Subject, key: keys.Key) -> int | None:
    """A number that a model of this architecture declares."""
    if subject.architecture is None:
        return None
    value = subject.value(key.of(subject.architecture), T.UINT32, T.UINT64)
    return None if value is None else int(value)


def _is_shard(subject: Subject) -> bool:
    count = subject.value(SPLIT_COUNT, T.UINT16)
    return count is not None and count > 1


def block_count(subject: Subject) -> Iterator[Finding]:
    """The number of layers is that of the blk.N tensors, and not 0."""
    count = _count(subject, keys.BLOCK_COUNT)
    if count is None or subject.failure is not None:
        return
    path = subject.path(keys.BLOCK_COUNT.of(subject.architecture or ""))
    found = [int(match[1]) for info in subject.tensor_infos if (match := BLOCK.match(info["name"]))]
    if count == 0:
        yield Finding("block-count", path, "0 layers")
    elif found and not _is_shard(subject) and max(found) + 1 != count:
        yield Finding("block-count", path, f"{count} layers; the tensors are those of {max(found) + 1}")


def shards(subject: Subject) -> Iterator[Finding]:
    """A file that calls itself a shard is one, and its numbers agree."""
    count = subject.value(SPLIT_COUNT, T.UINT16)
    number = subject.value(SPLIT_NO, T.UINT16)
    total = subject.value(SPLIT_TENSORS, T.INT32)
    if count is not None and number is not None and number >= max(count, 1):
        yield Finding("shard-number", subject.path(SPLIT_NO), f"shard {number} of {count}; the first is 0")
    if subject.failure is not None or total is None:
        return
    here = len(subject.tensor_infos)
    if count is not None and count > 1 and number == 0 and here and here >= total:
        yield Finding(
            "shard-whole", subject.path(SPLIT_COUNT), f"one of {count} shards, but all {total} tensors are here"
        )


def quantised_version(subject: Subject) -> Iterator[Finding]:
    """A file with quantised tensors tells the version of their blocks."""
    from ..blocks import block

    key = "general.quantization_version"
    if key in subject.pairs or subject.failure is not None or _is_shard(subject):
        return
    for index, info in enumerate(subject.tensor_infos):
        struct = block(info["type"])
        if struct is not None and not struct.is_plain:
            yield Finding(
                "quantization-version-missing",
                f"tensor_infos[{index}].type",
                f"{type_name(info['type'])}, but there is no {key}",
            )
            return


def required(subject: Subject) -> Iterator[Finding]:
    """A model with layers tells what an engine needs."""
    if (
        subject.architecture is None
        or subject.failure is not None
        or not any(BLOCK.match(info["name"]) for info in subject.tensor_infos)
    ):
        return
    for key in (keys.CONTEXT_LENGTH, keys.EMBEDDING_LENGTH, keys.BLOCK_COUNT, keys.HEAD_COUNT):
        if key.of(subject.architecture) not in subject.pairs and not _is_later_shard(subject):
            yield Finding("key-missing", "metadata_kv", f"there is no {key.of(subject.architecture)}")


def _is_later_shard(subject: Subject) -> bool:
    return bool(subject.value(SPLIT_NO, T.UINT16))


def _info(subject: Subject, name: str) -> tuple[int, Any] | None:
    """Index and info of the tensor of a name."""
    return next(((index, info) for index, info in enumerate(subject.tensor_infos) if info["name"] == name), None)


def embedding(subject: Subject) -> Iterator[Finding]:
    """token_embd.weight has a row of embedding_length elements for each token."""
    found = _info(subject, "token_embd.weight")
    if found is None or len(found[1]["dimensions"]) < 2:
        return
    index, info = found
    width, rows = info["dimensions"][:2]
    length = _count(subject, keys.EMBEDDING_LENGTH)
    tokens = subject.array(keys.TOKENS.template)
    path = f"tensor_infos[{index}].dimensions"
    if length is not None and width != length:
        yield Finding("embedding-width", f"{path}[0]", f"{width}; embedding_length is {length}")
    if tokens is not None and rows != len(tokens):
        yield Finding("vocabulary-rows", f"{path}[1]", f"{rows} rows for {len(tokens)} tokens")


def heads(subject: Subject) -> Iterator[Finding]:
    """Heads divide: query heads by KV heads, and the width by heads where no key length is given."""
    if subject.architecture is None:
        return
    count, kv = _count(subject, keys.HEAD_COUNT), _count(subject, keys.HEAD_COUNT_KV)
    length = _count(subject, keys.EMBEDDING_LENGTH)
    path = keys.HEAD_COUNT.of(subject.architecture)
    if count and kv and count % kv:
        yield Finding("heads-divide", subject.path(path), f"{count} query heads are not shared out among {kv} KV heads")
    if count and length and length % count and keys.KEY_LENGTH.of(subject.architecture) not in subject.pairs:
        yield Finding("heads-divide", subject.path(path), f"embedding_length {length} is no multiple of {count} heads")


def file_type(subject: Subject) -> Iterator[Finding]:
    """general.file_type names a type that some tensor has."""
    number = subject.value(keys.FILE_TYPE.template, T.UINT32)
    if number is None or not len(subject.tensor_infos) or number not in list(LlamaFileType):
        return
    name = LlamaFileType(number).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    here = {type_name(info["type"]) for info in subject.tensor_infos}
    if not name.startswith("IQ") and not any(name.startswith(type) for type in here):  # those are mixes of other types
        yield Finding(
            "file-type",
            subject.path(keys.FILE_TYPE.template),
            f"{LlamaFileType(number).name}; tensors are {', '.join(sorted(here))}",
        )


def fixed_lengths(subject: Subject) -> Iterator[Finding]:
    """Arrays that readers copy a fixed number of elements from."""
    for template, length in FIXED_LENGTHS.items():
        key = template.replace("{arch}", subject.architecture or "")
        array = subject.array(key)
        if array is not None and len(array) != length:
            yield Finding(
                "array-length", subject.path(key, "value.len"), f"{len(array)} elements; readers take {length}"
            )


def large_numbers(subject: Subject) -> Iterator[Finding]:
    """Numbers that are more than readers have room for."""
    for template, largest in LARGEST.items():
        key = template.replace("{arch}", subject.architecture or "")
        number = subject.value(key, *INTEGERS)
        if number is not None and number > largest:
            yield Finding("number-large", subject.path(key), f"{number}; llama.cpp has room for {largest}")


def lengths(subject: Subject) -> Iterator[Finding]:
    """Arrays with an element for each layer have as many as there are layers."""
    count = _count(subject, keys.BLOCK_COUNT)
    if not count or subject.architecture is None:
        return
    for key in (keys.HEAD_COUNT, keys.HEAD_COUNT_KV, keys.FEED_FORWARD_LENGTH):
        array = subject.array(key.of(subject.architecture))
        if isinstance(array, np.ndarray) and len(array) < count:
            yield Finding(
                "layers-length",
                subject.path(key.of(subject.architecture), "value.len"),
                f"{len(array)} elements for {count} layers",
            )


FIXED_LENGTHS = {"{arch}.rope.dimension_sections": 4, "clip.vision.image_mean": 3, "clip.vision.image_std": 3}
"""Key → elements that llama.cpp copies."""

LARGEST = {"{arch}.block_count": 512, "{arch}.expert_count": 512, "clip.audio.chunk_size": 65535}
"""Key → the largest number that llama.cpp has room for: an array with an element for each, a square in 32 bits."""

CLAUSE = "specification, Standardized key-value pairs; llama.cpp llama-model-loader.cpp"

RULES = (
    Rule(
        "key-type",
        WARNING,
        "A standard key with a value of another type",
        "metadata_kv.value_type",
        CLAUSE,
        "Write the value with the type that is expected",
        key_types,
        True,
    ),
    Rule(
        "block-count",
        WARNING,
        "Another number of layers than there are",
        "metadata_kv.value",
        "llama.cpp llama-model.cpp",
        "Correct {arch}.block_count",
        block_count,
    ),
    Rule(
        "shard-number",
        WARNING,
        "A shard with a number that the set does not have",
        "metadata_kv.value",
        "llama.cpp gguf-split",
        "Split the model anew",
        shards,
    ),
    Rule(
        "shard-whole",
        WARNING,
        "A whole model that calls itself a shard",
        "metadata_kv.value",
        "llama.cpp gguf-split",
        "Remove the split keys",
        shards,
    ),
    Rule(
        "quantization-version-missing",
        NOTE,
        "Quantised tensors without a version",
        "tensor_infos.type",
        "specification, Required",
        "Add general.quantization_version, 2",
        quantised_version,
    ),
    Rule(
        "key-missing",
        NOTE,
        "A key that an engine needs is missing",
        "metadata_kv",
        "llama.cpp llama-model.cpp",
        "Add the key",
        required,
    ),
    Rule(
        "embedding-width",
        NOTE,
        "An embedding of another width than declared",
        "tensor_infos.dimensions",
        "llama.cpp llama-model.cpp",
        "Correct {arch}.embedding_length",
        embedding,
    ),
    Rule(
        "vocabulary-rows",
        NOTE,
        "Another number of rows than tokens",
        "tensor_infos.dimensions",
        "llama.cpp llama-model.cpp",
        "Convert the model anew",
        embedding,
    ),
    Rule(
        "heads-divide",
        NOTE,
        "Heads that do not divide",
        "metadata_kv.value",
        "llama.cpp llama-model.cpp",
        "Correct the number of heads",
        heads,
    ),
    Rule(
        "layers-length",
        NOTE,
        "Fewer elements than layers",
        "metadata_kv.value.len",
        "llama.cpp get_key_or_arr",
        "Give each layer an element",
        lengths,
    ),
    Rule(
        "array-length",
        NOTE,
        "An array of another length than readers take",
        "metadata_kv.value.len",
        "readers copy so many",
        "Write as many elements as are expected",
        fixed_lengths,
    ),
    Rule(
        "number-large",
        NOTE,
        "A number that readers have no room for",
        "metadata_kv.value",
        "llama.cpp llama-hparams.h, clip.cpp",
        "Check the number",
        large_numbers,
    ),
    Rule(
        "file-type",
        NOTE,
        "A file type that no tensor has",
        "metadata_kv.value",
        "llama.h, llama_ftype",
        "Correct general.file_type",
        file_type,
    ),
)
