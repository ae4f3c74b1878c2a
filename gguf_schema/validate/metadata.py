"""Keys, strings, booleans and arrays: what the metadata may look like, whatever it means."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import policy
from ..constructs import Strings
from ..enums import GGUFValueType as T
from ..errors import Finding
from ..keys import ARCHITECTURE
from ..limits import LONGEST_KEY
from ..policy import SHOWN
from .rule import ERROR, NOTE, WARNING, Rule
from .subject import Subject

FORBIDDEN = re.compile(r"[^a-z0-9_.-]")
VIRTUAL = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")
"""Names under which gguf-py's reader keeps the header among the pairs."""


def shown(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text[:SHOWN])


def is_utf8(text: str) -> bool:
    """Whether a string was valid UTF-8: bytes that are not are lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def errors(subject: Subject) -> Iterator[Finding]:
    """Keys that are empty or stand twice."""
    return policy.keys(subject.parsed)


def _keys(subject: Subject) -> Iterator[tuple[str, str]]:
    """Path and text of each key."""
    for index, pair in enumerate(subject.metadata_kv):
        yield f"metadata_kv[{index}].key", pair["key"]


def key_text(subject: Subject) -> Iterator[Finding]:
    """Keys whose bytes trouble readers: no UTF-8, or with a NUL, where C ends a string."""
    for path, key in _keys(subject):
        if not is_utf8(key):
            yield Finding("key-utf8", f"{path}.string", f"{shown(key)} is not valid UTF-8")
        elif "\0" in key:
            yield Finding("key-nul", f"{path}.string", f"{shown(key)} has a NUL, where C readers see its end")


def key_form(subject: Subject) -> Iterator[Finding]:
    """Keys that break the specification's rules of form."""
    for path, key in _keys(subject):
        segments = key.split(".")
        if is_utf8(key) and "\0" not in key and (match := FORBIDDEN.search(key)):
            place = f"{path}.len" if key.isascii() else f"{path}.string"
            yield Finding("key-characters", place, f"{shown(key)} has {match[0]!r}; a-z, 0-9, _ and - are allowed")
        if key and "" in segments:
            yield Finding("key-segment-empty", f"{path}.len", f"{shown(key)} has an empty segment")
        if len(key.encode("utf-8", "surrogateescape")) > LONGEST_KEY:
            yield Finding("key-long", f"{path}.len", f"{len(key)} characters; {LONGEST_KEY} bytes are allowed")


def key_style(subject: Subject) -> Iterator[Finding]:
    """Keys of an unusual form: without a family, or with a segment that begins with a digit and is no number."""
    for path, key in _keys(subject):
        if key and "." not in key:
            yield Finding("key-no-dot", f"{path}.len", f"{shown(key)} belongs to no family: it has no dot")
        for segment in key.split("."):
            if segment[:1].isdigit() and not segment.isdigit():
                yield Finding("key-segment-digit", f"{path}.len", f"segment {shown(segment)} begins with a digit")
                break


def key_hyphen(subject: Subject) -> Iterator[Finding]:
    """Keys with a hyphen, which the names of some architectures have, and the specification does not."""
    for path, key in _keys(subject):
        if "-" in key and not FORBIDDEN.search(key) and not key.startswith(f"{subject.architecture}."):
            yield Finding("key-hyphen", f"{path}.len", f"{shown(key)} has a hyphen")


def key_virtual(subject: Subject) -> Iterator[Finding]:
    """Keys that gguf-py's reader keeps for itself."""
    for path, key in _keys(subject):
        if key in VIRTUAL:
            yield Finding("key-virtual", f"{path}.len", f"gguf-py's reader has a field {key!r} of its own")


def _arrays(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Path and wire form of an array and all arrays in it, which is bounded by the parser's limit."""
    yield path, value
    if value["type"] == T.ARRAY:
        for index, inner in enumerate(value["array"]):
            yield from _arrays(f"{path}.array[{index}]", inner)


def _values(subject: Subject) -> Iterator[tuple[str, T, Any]]:
    """Path, type and value of each value that is no array, and of the arrays those of their elements together."""
    for index, pair in enumerate(subject.metadata_kv):
        path = f"metadata_kv[{index}].value"
        if pair["value_type"] == T.ARRAY:
            for inner, array in _arrays(path, pair["value"]):
                yield f"{inner}.array", array["type"], array["array"]
        else:
            yield path, pair["value_type"], pair["value"]


def strings(subject: Subject) -> Iterator[Finding]:
    """Strings that are no UTF-8; of an array the first such string."""
    for path, type, value in _values(subject):
        if type != T.STRING:
            continue
        if isinstance(value, str):
            if not is_utf8(value):
                yield Finding("string-utf8", f"{path}.string", f"{shown(value)} is not valid UTF-8")
        elif (index := first_broken(value)) is not None:
            yield Finding("string-utf8", f"{path}[{index}].string", f"{shown(value[index])} is not valid UTF-8")


def first_broken(texts: Any) -> int | None:
    """The index of the first string that is not valid UTF-8."""
    if isinstance(texts, Strings) and _is_ascii(texts):
        return None
    return next((index for index, text in enumerate(texts) if not is_utf8(text)), None)


def _is_ascii(texts: Strings) -> bool:
    """Whether all bytes are ASCII; lengths may look like others, so it may be False of an ASCII array."""
    return texts.wire.isascii()


def bools(subject: Subject) -> Iterator[Finding]:
    """BOOL bytes other than 0 and 1; the parser leaves those as numbers."""
    for path, type, value in _values(subject):
        if type != T.BOOL:
            continue
        if isinstance(value, np.ndarray):
            broken = np.flatnonzero(value > 1) if value.dtype != bool else value[:0]
            if len(broken):
                index = int(broken[0])
                yield Finding("bool-byte", f"{path}[{index}]", f"{value[index]} is taken for true; 0 and 1 are allowed")
        elif not isinstance(value, bool):
            yield Finding("bool-byte", path, f"{value} is taken for true; 0 and 1 are allowed")


def nested(subject: Subject) -> Iterator[Finding]:
    """Arrays of arrays."""
    for index, pair in enumerate(subject.metadata_kv):
        if pair["value_type"] == T.ARRAY and pair["value"]["type"] == T.ARRAY:
            path = f"metadata_kv[{index}].value.type"
            yield Finding("array-nested", path, f"{shown(pair['key'])} is an array of arrays")


def architecture(subject: Subject) -> Iterator[Finding]:
    """A file with pairs tells its architecture, unless it is a later shard, in a-z, 0-9, _ and -."""
    key = ARCHITECTURE.template
    value = subject.value(key, T.STRING)
    if key not in subject.pairs:
        shard = subject.value("split.no", T.UINT16)
        if len(subject.metadata_kv) and not shard and subject.failure is None:
            yield Finding("architecture-missing", "metadata_kv", f"there is no {key}")
    elif value is not None and (not value or re.search(r"[^a-z0-9_-]", value)):
        place = subject.path(key, "value.string")
        yield Finding("architecture-characters", place, f"{shown(value)}: a-z, 0-9, _ and - are allowed")


KEYS_CLAUSE = "specification, Standardized key-value pairs"
KV_CLAUSE = "specification, gguf_metadata_kv_t"

RULES = (
    Rule(
        "key-empty",
        ERROR,
        "An empty key",
        "metadata_kv.key.len",
        "ggml#1140: ggml aborted on it",
        "Name the pair, or leave it out",
        errors,
    ),
    Rule(
        "key-twice",
        ERROR,
        "A key that stands twice",
        "metadata_kv.key.len",
        "llama.cpp gguf.cpp; readers differ in which they take",
        "Keep one of the pairs",
        errors,
    ),
    Rule(
        "key-utf8",
        WARNING,
        "A key that is not valid UTF-8",
        "metadata_kv.key.string",
        KV_CLAUSE,
        "Rename the key",
        key_text,
        True,
    ),
    Rule(
        "key-nul",
        WARNING,
        "A key with a NUL",
        "metadata_kv.key.string",
        "C readers look keys up as C strings",
        "Rename the key",
        key_text,
        True,
    ),
    Rule(
        "key-characters",
        WARNING,
        "A key with unusual characters",
        "metadata_kv.key",
        KV_CLAUSE,
        "Rename the key: lower-case letters, digits, _ and -, with dots between segments",
        key_form,
        True,
    ),
    Rule(
        "key-segment-empty",
        WARNING,
        "A key with an empty segment",
        "metadata_kv.key.len",
        KV_CLAUSE,
        "Rename the key",
        key_form,
        True,
    ),
    Rule(
        "key-long",
        WARNING,
        "A key of more than 65,535 bytes",
        "metadata_kv.key.len",
        KV_CLAUSE,
        "Rename the key",
        key_form,
        True,
    ),
    Rule(
        "key-no-dot",
        WARNING,
        "A key without a family",
        "metadata_kv.key.len",
        KEYS_CLAUSE,
        "Begin the key with its family and a dot, such as the architecture's name",
        key_style,
    ),
    Rule(
        "key-segment-digit",
        WARNING,
        "A segment that begins with a digit",
        "metadata_kv.key.len",
        KV_CLAUSE,
        "Begin the segment with a letter",
        key_style,
    ),
    Rule(
        "key-hyphen",
        NOTE,
        "A key with a hyphen",
        "metadata_kv.key.len",
        KV_CLAUSE,
        "Nothing is wrong: architectures such as gpt-oss have one",
        key_hyphen,
    ),
    Rule(
        "key-virtual",
        NOTE,
        "A key that gguf-py keeps for itself",
        "metadata_kv.key.len",
        "gguf-py, gguf_reader.py",
        "Rename the key",
        key_virtual,
    ),
    Rule(
        "string-utf8",
        WARNING,
        "A string that is not valid UTF-8",
        "metadata_kv.value.string",
        "specification, gguf_string_t",
        "Write the text as UTF-8; tokens of single bytes have the form <0xE4>",
        strings,
        True,
    ),
    Rule(
        "bool-byte",
        WARNING,
        "A BOOL byte other than 0 and 1",
        "metadata_kv.value",
        "specification, gguf_metadata_value_type",
        "Write 0 or 1",
        bools,
        True,
    ),
    Rule(
        "array-nested",
        WARNING,
        "An array of arrays",
        "metadata_kv.value.type",
        "llama.cpp gguf.cpp refuses them",
        "Write the arrays under keys of their own, or one after the other with their lengths",
        nested,
    ),
    Rule(
        "architecture-missing",
        WARNING,
        "No general.architecture",
        "metadata_kv",
        "specification, Required",
        "Add general.architecture",
        architecture,
        True,
    ),
    Rule(
        "architecture-characters",
        WARNING,
        "An architecture with unusual characters",
        "metadata_kv.value.string",
        "specification, Required",
        "Name the architecture as llama.cpp does",
        architecture,
        True,
    ),
)
