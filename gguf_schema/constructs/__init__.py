"""Our construct subclasses. They know nothing of GGUF: only exactness, places of errors, and hostile lengths.

`core` has the structure (Struct, Array, Bytes, Switch, …), `numbers` the leaves, `bulk` the fast forms of arrays of
numbers and strings (`scan` finds the strings, `strings` holds them), `records` that of arrays of Structs.
"""

from .bulk import NumberArray, StringArray
from .core import (
    Array,
    Bytes,
    Const,
    Default,
    GreedyBytes,
    Guarded,
    Rebuild,
    Recursive,
    Renamed,
    String,
    Struct,
    Switch,
    field,
)
from .numbers import Bool, EnumAdapter, Float, Integer
from .records import RecordArray
from .strings import Strings

__all__ = [
    "Array",
    "Bool",
    "Bytes",
    "Const",
    "Default",
    "EnumAdapter",
    "Float",
    "GreedyBytes",
    "Guarded",
    "Integer",
    "NumberArray",
    "Rebuild",
    "RecordArray",
    "Recursive",
    "Renamed",
    "String",
    "StringArray",
    "Strings",
    "Struct",
    "Switch",
    "field",
]
