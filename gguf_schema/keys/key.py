"""What a standard key is, and a short way to write each kind of row of the tables."""

from typing import NamedTuple

from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T


class Key(NamedTuple):
    """A standard key.

    Attributes:
        template: The key, perhaps with `{arch}` for the architecture, `{id}` for a number, `{name}` for a word.
        type: The type that llama.cpp's tools write; of a key that none writes, the one that is documented.
        docs: What the value means.
        also: Other types that the specification or a loader of llama.cpp takes, or that older files have.
        required: When a reader cannot do without it; empty: never.
    """

    template: str
    type: ValueType
    docs: str
    also: tuple[ValueType, ...] = ()
    required: str = ""

    def of(self, architecture: str) -> str:
        """The key for an architecture."""
        return self.template.replace("{arch}", architecture)

    @property
    def suffix(self) -> str:
        """The key without its first segment."""
        return self.template.partition(".")[2]


LLM = "for a language model"
"""The usual case in which a key is required."""

STRINGS = ArrayType(T.STRING)
BOOLS = ArrayType(T.BOOL)
FLOATS = ArrayType(T.FLOAT32)
INTS = ArrayType(T.INT32)
UINTS = ArrayType(T.UINT32)
LONGS = ArrayType(T.UINT64)


def string(template: str, docs: str, required: str = "") -> Key:
    """A text."""
    return Key(template, T.STRING, docs, (), required)


def strings(template: str, docs: str, required: str = "") -> Key:
    """A list of texts."""
    return Key(template, STRINGS, docs, (), required)


def flag(template: str, docs: str, required: str = "") -> Key:
    """Yes or no."""
    return Key(template, T.BOOL, docs, (), required)


def number(template: str, docs: str, required: str = "") -> Key:
    """A fraction."""
    return Key(template, T.FLOAT32, docs, (), required)


def numbers(template: str, docs: str, required: str = "") -> Key:
    """A list of fractions."""
    return Key(template, FLOATS, docs, (), required)


def choice(template: str, docs: str, required: str = "") -> Key:
    """A member of an enumeration, or a version, which the specification too has in 32 bits."""
    return Key(template, T.UINT32, docs, (), required)


def count(template: str, docs: str, required: str = "") -> Key:
    """A count, a length or a token's id: 64 bits by the specification, 32 by llama.cpp."""
    return Key(template, T.UINT32, docs, (T.UINT64,), required)


def counts(template: str, docs: str, required: str = "") -> Key:
    """A count that layers share, or one for each layer."""
    return Key(template, T.UINT32, docs, (T.UINT64, INTS, UINTS), required)


def integers(template: str, docs: str, required: str = "") -> Key:
    """A list of integers of 32 bits, whose sign llama.cpp's model loader does not mind."""
    return Key(template, INTS, docs, (UINTS,), required)


def signed(template: str, docs: str, required: str = "") -> Key:
    """A list of integers that is read as INT32 only."""
    return Key(template, INTS, docs, (), required)


def bools(template: str, docs: str, required: str = "") -> Key:
    """A list of yes or no."""
    return Key(template, BOOLS, docs, (), required)


def layers(template: str, docs: str, required: str = "") -> Key:
    """Yes or no for each layer, which llama.cpp reads from integers too."""
    return Key(template, BOOLS, docs, (INTS, UINTS), required)
