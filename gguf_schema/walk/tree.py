"""What a tree of constructs is: its children, kinds and types, its expressions as text, its sizes."""

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import construct
import numpy as np
from construct.expr import ExprMixin

Con: TypeAlias = construct.Construct
Entry = TypeVar("Entry")


def is_construct(value: Any) -> bool:
    """Whether something is a construct."""
    return isinstance(value, construct.Construct)


def children(con: Con) -> tuple[Con, ...]:
    """The constructs that `con` is made of, in the order of the bytes; of a recursion, the construct it returns to."""
    if isinstance(con, construct.Struct):
        return tuple(con.subcons)
    if isinstance(con, construct.Switch):
        return (*con.cases.values(), con.default)
    if isinstance(con, construct.Subconstruct):
        return (con.subcon,)
    return ()


def same_struct(con: Con) -> Iterator[Con]:
    """`con` and the constructs below it whose expressions speak of the fields of the same Struct."""
    yield con
    if not isinstance(con, construct.Struct):
        for child in children(con):
            yield from same_struct(child)


def unwrap(con: Con) -> Con:
    """`con` without the names, adapters and derived values around it: what it is on the wire."""
    while isinstance(con, construct.Subconstruct) and not isinstance(con, construct.Array):
        con = con.subcon
    return con


def every(con: Con) -> Iterator[Con]:
    """`con` and all constructs below it, each once, depth first."""
    seen: set[int] = set()
    todo = [con]
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            todo.extend(reversed(children(node)))


def callables(con: Con) -> Iterator[tuple[str, Any]]:
    """Attributes of one construct that are code instead of data: functions, lambdas, hooks. Expressions are data."""
    for name, value in vars(con).items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
        for one in values:
            if callable(one) and not isinstance(one, ExprMixin | Con | enum.EnumType):
                yield name, one


def field_of(expression: Any) -> str | None:
    """The sibling field in an expression such as `this.len` or `len_(this.array)`; None for anything else."""
    if isinstance(expression, construct.expr.FuncPath):
        return field_of(expression._FuncPath__operand)
    return expression.__getfield__() if isinstance(expression, construct.expr.Path) else None


def item_of(con: Con) -> Con:
    """What an array holds."""
    return unwrap(con).subcon


def locate(con: Con, path: str) -> Con | None:
    """The field at a path such as `metadata_kv[1].key.len`; of a Switch, one in the first case that has such a field.

    None where there is none.
    """
    here: Con | None = con
    for step in re.findall(r"\[|[^.\[\]]+", re.sub(r"\[\d+\]", ".[", path)):
        here = _inside(here, step)
        if here is None:
            return None
    return here


def _inside(con: Con, step: str) -> Con | None:
    """The field of this name, or the item of an array for "["."""
    inner = unwrap(con)
    if isinstance(inner, construct.Switch):
        return next(filter(None, (_inside(case, step) for case in inner.cases.values())), None)
    if isinstance(inner, construct.Struct):
        return next((child for child in inner.subcons if child.name == step), None)
    return inner.subcon if isinstance(inner, construct.Array) and step == "[" else None


def minimum_size(con: Con) -> int:
    """The fewest bytes that `con` can take on the wire."""
    if isinstance(con, construct.Struct):
        return sum(minimum_size(child) for child in con.subcons)
    if isinstance(con, construct.Switch):
        return min(minimum_size(case) for case in con.cases.values())
    if isinstance(con, construct.Array):
        return con.count * minimum_size(con.subcon) if isinstance(con.count, int) else 0
    if isinstance(con, construct.Subconstruct):
        return minimum_size(con.subcon)
    if isinstance(con, construct.FormatField):
        return int(con.length)
    if isinstance(con, construct.Bytes):
        return con.length if isinstance(con.length, int) else 0
    return 0


def dtype(con: Con) -> np.dtype[Any]:
    """The packed numpy dtype with the same bytes as `con`: a number, a fixed array of numbers, or a Struct of those."""
    if isinstance(con, construct.Struct):
        return np.dtype([(child.name, dtype(child)) for child in con.subcons])
    if isinstance(con, construct.Array):
        return np.dtype((dtype(con.subcon), (con.count,)))
    if isinstance(con, construct.FormatField):
        # Not np.dtype(con.fmtstr): the struct module's L has 4 bytes, numpy's 8.
        order, letter = con.fmtstr
        kind = "f" if letter in "efd" else "u" if letter.isupper() else "i"
        return np.dtype(f"{order}{kind}{con.length}")
    return dtype(con.subcon)


def is_adapted(con: Con) -> bool:
    """Whether an adapter stands between `con` and its bytes, so that its value is not the Struct's."""
    while isinstance(con, construct.Subconstruct) and not isinstance(con, construct.Array):
        if isinstance(con, construct.Adapter):
            return True
        con = con.subcon
    return False


def kind(con: Con) -> str:
    """What a construct is on the wire: uint32, float64, bytes, struct, array, switch, or nothing (no bytes)."""
    inner = unwrap(con)
    if isinstance(inner, construct.FormatField):
        return dtype(inner).name
    names = {
        construct.Struct: "struct",
        construct.Array: "array",
        construct.Switch: "switch",
        construct.Computed: "nothing",
    }
    return next((name for type, name in names.items() if isinstance(inner, type)), "bytes")


def class_word(cls: type) -> str:
    """The class of a construct as a word: EnumAdapter is "enum", GreedyBytes "greedy_bytes"."""
    return re.sub("(?<=.)([A-Z])", r"_\1", cls.__name__.removesuffix("Adapter")).lower()


def entry_of(con: Con, table: Mapping[str, Entry]) -> tuple[Con, Entry]:
    """What a table of constructs' kinds has for `con`, and the construct that it was found for.

    It is looked for under the word of the class, of the classes that it is made from, and of the construct inside: so
    names, and fast forms that mean the same, need no entries.

    Raises:
        LookupError: There is none.
    """
    for cls in type(con).__mro__:
        if (word := class_word(cls)) in table:
            return con, table[word]
    if isinstance(con, construct.Subconstruct):
        return entry_of(con.subcon, table)
    raise LookupError(f"no entry for {class_word(type(con))}")
