"""Walks a tree of constructs: the only package that knows construct's class zoo.

Everything that is derived from the schema goes through here. `tree` tells what a construct is (children, kind, dtype,
smallest size), `describing` turns trees into plain data, `tracing` parses and reports where each field stands.
"""

from .describing import BY_VERSION, Description, describe, merge
from .tracing import Enter, Node, Sink, Stream, is_inside, new_context, trace
from .tree import (
    Con,
    callables,
    children,
    class_word,
    dtype,
    entry_of,
    every,
    field_of,
    is_adapted,
    is_construct,
    item_of,
    kind,
    locate,
    minimum_size,
    same_struct,
    unwrap,
)

__all__ = [
    "BY_VERSION",
    "Con",
    "Description",
    "Enter",
    "Node",
    "Sink",
    "Stream",
    "callables",
    "children",
    "class_word",
    "describe",
    "dtype",
    "entry_of",
    "every",
    "field_of",
    "is_adapted",
    "is_construct",
    "is_inside",
    "item_of",
    "kind",
    "locate",
    "merge",
    "minimum_size",
    "new_context",
    "same_struct",
    "trace",
    "unwrap",
]
