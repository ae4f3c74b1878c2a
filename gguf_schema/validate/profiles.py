"""For whom a file is judged: our own two verdicts, the specification's, and those of readers, as data.

A reader either reads a file or refuses it. What each refuses was read from its code and measured on labelled files.
"""

from typing import NamedTuple

from . import content, data, header, infos, meaning, metadata, unreadable, vocabulary, weights
from .rule import ERROR, WARNING, Rule

RULES: tuple[Rule, ...] = (
    *unreadable.RULES,
    *header.RULES,
    *metadata.RULES,
    *infos.RULES,
    *data.RULES,
    *meaning.RULES,
    *vocabulary.RULES,
    *content.RULES,
    *weights.RULES,
)
BY_CODE = {rule.code: rule for rule in RULES}


class Profile(NamedTuple):
    """One judge.

    Attributes:
        name: What it is called.
        describes: Whose verdict it is, and of which version.
        refuses: The codes for which it refuses a file.
        warns: The codes of which it warns.
    """

    name: str
    describes: str
    refuses: frozenset[str]
    warns: frozenset[str] = frozenset()


def _codes(*severities: str, is_forbidden: bool | None = None) -> frozenset[str]:
    return frozenset(
        rule.code
        for rule in RULES
        if rule.severity in severities and (is_forbidden is None or rule.is_forbidden is is_forbidden)
    )


ERRORS = _codes(ERROR)
FORBIDDEN = _codes(WARNING, is_forbidden=True)
UNREADABLE = frozenset(rule.code for rule in unreadable.RULES)

SPEC_SILENT = frozenset(
    {
        *(
            "key-twice",
            "row-not-blocks",
            "tensor-type-range",
            "name-nul",
            "name-nul-twice",
            "key-nul",
            "tensors-overlap",
        ),
        *("tensor-type-unknown", "dimensions-many", "nesting-depth", "nesting-python"),
    }
)
"""Errors and forbidden things of which the specification says nothing: it reads them, for want of a word."""

LLAMA_CPP = UNREADABLE | {
    *("version-1", "big-endian", "key-empty", "key-twice", "array-nested"),
    *("alignment-type", "alignment-value", "alignment-multiple"),
    *("tensor-name-twice", "name-64", "name-long", "dimensions-many", "dimensions-too-many"),
    *("dimension-range", "tensor-elements-range", "dimensions-partial", "tensor-type-range"),
    *("tensor-type-removed", "tensor-type-unknown", "row-not-blocks", "offset-unaligned", "offset-not-dense"),
    *("data-start-missing", "data-size-wraps", "alignment-nul"),
}
"""gguf_init_from_file, which reads no tensor data."""

GGUF_PY_LENIENT = {"last-number-missing", "last-array-cut", "element-type-unknown-empty", "nesting-depth"}
GGUF_PY = (UNREADABLE - GGUF_PY_LENIENT - {"last-string-cut"}) | {
    *("version-1", "key-twice", "key-utf8", "key-virtual", "alignment-type", "alignment-value", "alignment-multiple"),
    *("tensor-name-twice", "name-utf8", "tensor-type-range", "tensor-type-removed", "tensor-type-unknown"),
    *("row-not-blocks", "tensor-elements-range", "tensor-bytes-range"),
    *("dimensions-numpy-range", "data-missing"),
}
"""GGUFReader."""

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("default", "gguf_schema: what `open` refuses", ERRORS, _codes(WARNING)),
        Profile("strict", "gguf_schema: what the specification forbids, too", ERRORS | FORBIDDEN),
        Profile(
            "spec",
            "ggml's docs/gguf.md, 2026-08",
            ((ERRORS | FORBIDDEN) - SPEC_SILENT),
        ),
        Profile("llama.cpp", "gguf_init_from_file of llama.cpp, 2026-10, little-endian, without data", LLAMA_CPP),
        Profile(
            "llama.cpp-data",
            "gguf_init_from_file of llama.cpp, 2026-10, little-endian, with tensor data",
            LLAMA_CPP | {"data-missing", "last-unpadded", "tensor-bytes-range", "offset-wraps", "offset-past-end"},
        ),
        Profile(
            "gguf-py", "GGUFReader of gguf 0.19.0", GGUF_PY | {"tensor-type-new", "dimensions-numpy", "q8-1-short"}
        ),
        Profile(
            "gguf-py-head",
            "GGUFReader of llama.cpp's tree, 2026-10",
            GGUF_PY | {"last-string-cut", "dimensions-many", "dimensions-too-many"},
        ),
    )
}
"""Name → profile."""
