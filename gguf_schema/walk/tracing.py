"""Traced trees: parsing that reports where in a stream each field stands."""

import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import construct
from construct.core import evaluate

from ..errors import GGUFError
from .tree import Con, is_adapted, unwrap


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


def is_inside(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or a path below it."""
    return path.startswith(outer) and (not outer or path[len(outer) : len(outer) + 1] in ("", ".", "["))
