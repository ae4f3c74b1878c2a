"""Version, byte order, and alignment."""

from collections.abc import Iterator

from .. import policy
from ..enums import GGUFValueType
from ..errors import Finding
from ..keys import ALIGNMENT
from .rule import ERROR, GGUF_CPP, NOTE, WARNING, Rule
from .subject import Subject

LARGE = 1 << 20
"""Alignments above this are surely a mistake: padding of a megabyte and more before every tensor."""


def version(subject: Subject) -> Iterator[Finding]:
    """Version 1."""
    if subject.layout is not None and subject.layout.version == 1:
        yield Finding("version-1", "version", "version 1, which few readers take", *_field(subject, "version"))


def byte_order(subject: Subject) -> Iterator[Finding]:
    """Big-endian."""
    if subject.layout is not None and subject.layout.order == ">":
        yield Finding(
            "big-endian",
            "version",
            "big-endian, which llama.cpp reads on big-endian machines only",
            *_field(subject, "version"),
        )


def _field(subject: Subject, path: str) -> tuple[int, int]:
    """Where a field of the header stands."""
    return subject.places({path})[path]


def alignment(subject: Subject) -> Iterator[Finding]:
    """Alignments that not all readers take."""
    value = subject.value(ALIGNMENT.template, GGUFValueType.UINT32)
    if value is None or not policy.is_alignment(value):
        return
    path = subject.path(ALIGNMENT.template)
    if value < 8:
        yield Finding("alignment-small", path, f"{value}; the specification asks for a multiple of 8")
    elif value & (value - 1):
        yield Finding("alignment-multiple", path, f"{value}; llama.cpp and gguf-py ask for a power of two")
    if value > LARGE:
        yield Finding("alignment-large", path, f"{value} bytes before every tensor are up to as many bytes of zeros")


def alignment_errors(subject: Subject) -> Iterator[Finding]:
    """An alignment that cannot be meant."""
    return policy.alignment(subject.parsed)


ALIGNMENT_CLAUSE = "specification, general.alignment"

RULES = (
    Rule(
        "version-1",
        WARNING,
        "Version 1",
        "version",
        "llama.cpp, gguf-py: no longer supported",
        "Write the file in version 3",
        version,
        True,
    ),
    Rule(
        "big-endian",
        NOTE,
        "Big-endian",
        "version",
        "specification, Endianness",
        "Write the file in little-endian order, unless it is meant for a big-endian machine",
        byte_order,
    ),
    Rule(
        "alignment-type",
        ERROR,
        "general.alignment is no UINT32",
        "metadata_kv.value_type",
        ALIGNMENT_CLAUSE,
        "Write it as UINT32",
        alignment_errors,
    ),
    Rule(
        "alignment-value",
        ERROR,
        "No alignment",
        "metadata_kv.value",
        GGUF_CPP + "; readers divide by it",
        "Write a power of two, such as 32, and align the tensors to it",
        alignment_errors,
    ),
    Rule(
        "alignment-small",
        WARNING,
        "An alignment below 8",
        "metadata_kv.value",
        ALIGNMENT_CLAUSE,
        "Align the tensors to 32",
        alignment,
        True,
    ),
    Rule(
        "alignment-multiple",
        WARNING,
        "An alignment that is no power of two",
        "metadata_kv.value",
        GGUF_CPP,
        "Align the tensors to a power of two",
        alignment,
    ),
    Rule(
        "alignment-large",
        WARNING,
        "An alignment of more than a megabyte",
        "metadata_kv.value",
        "no reader asks for it",
        "Align the tensors to 32",
        alignment,
    ),
)
