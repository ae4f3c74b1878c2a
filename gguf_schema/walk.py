"""Walks a tree of constructs: the only module that knows construct's class zoo.

Everything that is derived from the schema goes through here: what children a construct has, how few bytes it can take,
which numpy dtype it is, and where in a stream each of its fields stands.
"""

import enum
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import construct
import numpy as np
from construct.core import evaluate
from construct.expr import ExprMixin

from .errors import GGUFError

Con: TypeAlias = construct.Construct


class Stream(Protocol):
    """What constructs read from: positions are bytes."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def seekable(self) -> bool: ...


class Sink(Protocol):
    """What constructs write to."""

    def write(self, data: Any, /) -> Any: ...
    def tell(self) -> int: ...
    def seekable(self) -> bool: ...


def children(con: Con) -> tuple[Con, ...]:
    """The constructs that `con` is made of, in the order of the bytes; of a recursion, the construct it returns to."""
    if isinstance(con, construct.Struct):
        return tuple(con.subcons)
    if isinstance(con, construct.Switch):
        return (*con.cases.values(), con.default)
    if isinstance(con, construct.Subconstruct):
        return (con.subcon,)
    return ()


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


def new_context(
    parent: construct.Container, con: construct.Struct, stream: Sink | Stream | None
) -> construct.Container:
    """The context in which the fields of a Struct are parsed or built, as construct itself makes it."""
    context = construct.Container(
        _=parent,
        _params=parent._params,
        _root=None,
        _parsing=parent._parsing,
        _building=parent._building,
        _sizing=parent._sizing,
        _subcons=con._subcons,
        _io=stream,
        _index=parent.get("_index"),
    )
    context._root = parent.get("_root") or context
    return context


class Node(NamedTuple):
    """One construct met while parsing.

    Attributes:
        path: Its place in the tree.
        start: Stream position of its first byte.
        end: Stream position after its last byte.
        value: What it was parsed to.
        con: The construct that parsed it; of a Switch the case that was taken.
        docs: What the field is documented with.
    """

    path: str
    start: int
    end: int
    value: Any
    con: Con
    docs: str


Enter = Callable[[str, int], bool]
"""Asked with the path of a Struct or an Array and the number of its items whether its inside is wanted."""


def trace(con: Con, data: bytes | Stream, enter: Enter, **params: Any) -> Iterator[Node]:
    """Parse `data` and report every field on the way, fields before the Struct or Array that holds them.

    Args:
        con: What to parse: one layout's construct, not the one that sniffs.
        data: The bytes, or a seekable stream at their start.
        enter: Whether the inside of a Struct or an Array is wanted; otherwise it is parsed in one go.
        params: construct's context parameters.

    Raises:
        GGUFError: As parsing does.
    """
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    context = construct.Container(_parsing=True, _building=False, _sizing=False, **params)
    context._params = context
    yield from _trace(con, stream, context, "", enter)


def _trace(
    con: Con, stream: Stream, context: construct.Container, path: str, enter: Enter, docs: str | None = None
) -> Iterator[Node]:
    """The nodes of `con`, itself last, with the docs of the Switch that took it, if one did."""
    docs = con.docs if docs is None else docs
    start = stream.tell()
    inner = unwrap(con)
    if isinstance(inner, construct.Switch) and (key := evaluate(inner.keyfunc, context)) in inner.cases:
        yield from _trace(inner.cases[key], stream, context, path, enter, docs)
        return
    if isinstance(inner, construct.Struct) and enter(path, len(inner.subcons)):
        fields = new_context(context, inner, stream)
        value = construct.Container()
        starts: dict[str, int] = {}
        for child in inner.subcons:
            starts[child.name] = stream.tell()
            try:
                for node in _trace(child, stream, fields, _joined(path, child.name), enter):
                    yield node
            except GGUFError as error:
                if error.blame in starts:
                    error.path, error.offset, error.blame = _joined(path, error.blame), starts[error.blame], None
                raise
            value[child.name] = fields[child.name] = node.value
    elif isinstance(inner, construct.Array) and enter(path, evaluate(inner.count, context)):
        value = construct.ListContainer()
        for index in range(evaluate(inner.count, context)):
            for node in _trace(inner.subcon, stream, context, f"{path}[{index}]", enter):
                yield node
            value.append(node.value)
    else:
        try:
            value = con._parsereport(stream, context, path)
        except GGUFError as error:
            raise (error.inside(path, start) if path and error.blame is None else error) from None
    end = stream.tell()
    if isinstance(value, construct.Container) and is_adapted(con):
        stream.seek(start)
        value = con._parsereport(stream, context, path)
    yield Node(path, start, end, value, con, docs)


def _joined(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}.{name}" if path else name


def is_adapted(con: Con) -> bool:
    """Whether an adapter stands between `con` and its bytes, so that its value is not the Struct's."""
    while isinstance(con, construct.Subconstruct) and not isinstance(con, construct.Array):
        if isinstance(con, construct.Adapter):
            return True
        con = con.subcon
    return False


def kind(con: Con) -> str:
    """What a construct is on the wire, in a word: uint32, float64, bytes, struct, array, or nothing (no bytes)."""
    inner = unwrap(con)
    if isinstance(inner, construct.FormatField):
        return dtype(inner).name
    names = {construct.Struct: "struct", construct.Array: "array", construct.Computed: "nothing"}
    return next((name for type, name in names.items() if isinstance(inner, type)), "bytes")


def is_inside(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or a path below it."""
    return path.startswith(outer) and (not outer or path[len(outer) : len(outer) + 1] in ("", ".", "["))
