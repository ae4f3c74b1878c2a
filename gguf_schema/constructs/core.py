"""Structure: the classes of construct that GGUF needs, with places in their errors and lengths that are checked.

They mean what construct's classes of the same name mean. What they add: only `GGUFError` leaves them, with the path
(array indices included) and the byte offset; a count or a length is compared with the bytes left before anything is
allocated; the parsed Containers hold no stream, so they can be copied and pickled.
"""

import contextlib
import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import construct
from construct.core import evaluate

from ..errors import BuildError, GGUFError, NestingError, ParseError, TruncatedError
from ..limits import MAX_NESTING
from ..walk import Sink, Stream, field_of, minimum_size, new_context

Context: TypeAlias = construct.Container

IMPLAUSIBLE = 1 << 30
"""Bytes or items that a length or a count in metadata never has."""


class Guarded(construct.Construct):
    """Mixin: the funnel. Its `parse` and `build` let no exception but GGUFError out.

    `parse` takes `max_nesting=` (default `limits.MAX_NESTING`), the levels of arrays of arrays that are read.
    """

    def parse(self, data: Any, **params: Any) -> Any:
        """Parse a bytes-like object."""
        return self.parse_stream(io.BytesIO(data if isinstance(data, bytes) else memoryview(data)), **params)

    def parse_stream(self, stream: Stream, **params: Any) -> Any:
        """Parse from a stream's position. A stream that cannot seek is read to its end first.

        Raises:
            ParseError: With the offset counted from where the stream stood.
        """
        if not stream.seekable():
            stream = io.BytesIO(stream.read())
        with _whole_reads(stream) as reader:
            start = reader.tell()
            end = reader.seek(0, io.SEEK_END)
            reader.seek(start)
            try:
                return super().parse_stream(reader, stream_start=start, stream_end=end, **params)
            except Exception as error:
                raise _ours(error, ParseError) from error.__cause__

    def build_stream(self, obj: Any, stream: Sink, **params: Any) -> None:
        """Build into a stream.

        Raises:
            BuildError: A value is missing or does not fit; the path says which.
        """
        with _whole_writes(stream) as writer:
            start = writer.tell() if writer.seekable() else 0
            try:
                super().build_stream(obj, writer, stream_start=start, **params)
            except Exception as error:
                raise _ours(error, BuildError) from error.__cause__

    def sizeof(self, **params: Any) -> int:
        """The size in bytes.

        Raises:
            GGUFError: There is no one size.
        """
        try:
            return int(super().sizeof(**params))
        except construct.ConstructError as error:
            raise GGUFError("has no fixed size") from error


@contextlib.contextmanager
def _whole_reads(stream: Stream) -> Iterator[Stream]:
    """The stream; a raw one, which may give fewer bytes than it has, behind a buffer."""
    if not isinstance(stream, io.RawIOBase):
        yield stream
        return
    buffered = io.BufferedReader(stream)
    try:
        yield buffered
    finally:
        position = buffered.tell()
        buffered.detach()  # else it would close the stream with itself
        stream.seek(position)


@contextlib.contextmanager
def _whole_writes(stream: Sink) -> Iterator[Sink]:
    """The stream; a raw one, which may take fewer bytes than it is given, behind a buffer."""
    if not isinstance(stream, io.RawIOBase):
        yield stream
        return
    buffered = io.BufferedWriter(stream)
    try:
        yield buffered
    finally:
        buffered.detach()  # writes what is left


def _ours(error: Exception, kind: type[GGUFError]) -> GGUFError:
    """The error itself where it is one of ours, else one of ours that says the same."""
    if isinstance(error, GGUFError):
        return error
    if isinstance(error, RecursionError):
        return NestingError("nested deeper than Python's stack allows")
    ours = kind(f"{type(error).__name__}: {error}")
    ours.__cause__ = error
    return ours


def bytes_left(stream: Stream, context: Context) -> int:
    """Bytes from the stream's position to its end."""
    here = stream.tell()
    end = context._params.get("stream_end")
    if end is None:
        end = stream.seek(0, io.SEEK_END)
        stream.seek(here)
    return int(end) - here


def read(stream: Stream, size: int, expression: Any, context: Context) -> bytes:
    """Read exactly `size` bytes, of which `expression` (a number or `this.len`) told.

    Raises:
        TruncatedError: Fewer are left; the fault of the field that the expression names.
    """
    left = bytes_left(stream, context)
    if size > left:
        raise TruncatedError.of(size, f"{size} bytes declared, {left} left", field_of(expression))
    data = stream.read(size)
    if len(data) < size:
        raise TruncatedError(f"{size} bytes declared, {len(data)} came", blame=field_of(expression))
    return data


class Renamed(Guarded, construct.Renamed):
    """construct's Renamed: a construct with a name."""


def field(name: str, con: construct.Construct, docs: str = "") -> Renamed:
    """A named, documented field of a Struct. One wrapper, so that no name shows twice in a path."""
    return Renamed(con, newname=name, newdocs=docs)


class Struct(Guarded, construct.Struct):
    """construct's Struct whose errors say path and offset."""

    def _parse(self, stream: Stream, context: Context, path: str) -> Context:
        values = Context()
        fields = new_context(context, self, stream)
        starts: dict[str, int] = {}
        for child in self.subcons:
            start = starts[child.name] = stream.tell()
            try:
                values[child.name] = fields[child.name] = child._parsereport(stream, fields, path)
            except Exception as error:
                origin = context._params.get("stream_start", 0)
                offsets = {name: position - origin for name, position in starts.items()}
                raise _ours(error, ParseError).inside(child.name, start - origin, offsets) from error.__cause__
        return values

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Context:
        fields = new_context(context, self, stream)
        if not isinstance(obj, Mapping):
            raise BuildError(f"expected a mapping with the fields {self.names}, found {type(obj).__name__}")
        fields.update(dict(obj))
        for child in self.subcons:
            try:
                if child.name not in obj and not child.flagbuildnone:
                    raise BuildError("the field is missing")
                fields[child.name] = obj.get(child.name)
                fields[child.name] = child._build(obj.get(child.name), stream, fields, path)
            except Exception as error:
                raise _ours(error, BuildError).inside(
                    child.name, None, dict.fromkeys(self._subcons)
                ) from error.__cause__
        return fields

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.names}>"

    @property
    def names(self) -> str:
        """The names of the fields, for messages."""
        return ", ".join(child.name for child in self.subcons)


class Array(Guarded, construct.Array):
    """construct's Array whose count is compared with the bytes left first, and whose errors hold the index."""

    @cached_property
    def item_minimum(self) -> int:
        """The fewest bytes of one item."""
        return minimum_size(self.subcon)

    def checked_count(self, stream: Stream, context: Context) -> int:
        """The count, after comparing the smallest size of that many items with the bytes left.

        Records (Structs) are compared with the whole stream: if that could hold so many, the count may well be right,
        and the fault is that of the field in which the stream ends.

        Raises:
            TruncatedError: They cannot be there; the fault of the field that holds the count.
        """
        count: int = evaluate(self.count, context)
        left = bytes_left(stream, context)
        room = context._params.get("stream_end", 0) - context._params.get("stream_start", 0)
        if count * self.item_minimum > (max(room, left) if isinstance(self.subcon, construct.Struct) else left):
            raise self._too_many(count, left)
        return count

    def _too_many(self, count: int, left: int) -> TruncatedError:
        problem = f"{count} items of at least {self.item_minimum} bytes declared, {left} bytes left"
        return TruncatedError.of(count, problem, field_of(self.count))

    def _parse(self, stream: Stream, context: Context, path: str) -> construct.ListContainer:
        items = construct.ListContainer()
        for index in range(self.checked_count(stream, context)):
            items.append(self.parse_item(index, stream, context, path))
        return items

    def parse_item(self, index: int, stream: Stream, context: Context, path: str) -> Any:
        """Parse the item with this index at the stream's position.

        Raises:
            TruncatedError: It, or the count: where the items that are still to come cannot be there, and this one
                declares what is in no file.
        """
        start = stream.tell()
        try:
            return self.subcon._parsereport(stream, context, path)
        except Exception as error:
            ours = _ours(error, ParseError)
            if getattr(ours, "declared", 0) > IMPLAUSIBLE:
                stream.seek(start)
                left = bytes_left(stream, context)
                if self.item_minimum > left:
                    raise self._too_many(evaluate(self.count, context), left) from None
            raise ours.inside(f"[{index}]", start - context._params.get("stream_start", 0)) from error.__cause__

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        count = evaluate(self.count, context)
        if len(obj) != count:
            raise BuildError(f"{count} items expected, {len(obj)} found")
        for index, item in enumerate(obj):
            try:
                self.subcon._build(item, stream, context, path)
            except Exception as error:
                raise _ours(error, BuildError).inside(f"[{index}]", None) from error.__cause__
        return obj


class Bytes(Guarded, construct.Bytes):
    """construct's Bytes whose length is compared with the bytes left first."""

    def _parse(self, stream: Stream, context: Context, path: str) -> bytes:
        return read(stream, evaluate(self.length, context), self.length, context)


class Const(Guarded, construct.Const):
    """construct's Const, whose error says both values."""

    def _parse(self, stream: Stream, context: Context, path: str) -> Any:
        found = self.subcon._parsereport(stream, context, path)
        if found != self.value:
            raise ParseError(f"expected {self.value!r}, found {found!r}")
        return found

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        if obj not in (None, self.value):
            raise BuildError(f"expected {self.value!r}, found {obj!r}")
        return self.subcon._build(self.value, stream, context, path)


class Switch(Guarded, construct.Switch):
    """construct's Switch that refuses a key without a case, as the fault of the field that holds the key."""

    def __init__(self, keyfunc: Any, cases: dict[Any, construct.Construct]) -> None:
        super().__init__(keyfunc, cases, default=construct.Error)

    def case(self, context: Context) -> construct.Construct:
        """The construct for the key in this context.

        Raises:
            ParseError: There is none.
        """
        key = evaluate(self.keyfunc, context)
        try:
            return self.cases[key]
        except (KeyError, TypeError):
            known = f"{min(self.cases):d} to {max(self.cases):d}"
            kind = BuildError if context._building else ParseError
            raise kind(f"unknown type {key}; {known} are known", blame=field_of(self.keyfunc)) from None

    def _parse(self, stream: Stream, context: Context, path: str) -> Any:
        return self.case(context)._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        return self.case(context)._build(obj, stream, context, path)


class Recursive(Guarded, construct.Subconstruct):
    """A construct inside itself. Made by name, closed by setting `subcon` once the outer construct exists.

    Levels are counted against the parameter `max_nesting`. Where they are too many, the blame falls on the first field
    of the outermost level: that is where a reader decides to follow the nesting.
    """

    def __init__(self, construct_name: str) -> None:
        super().__init__(construct.Pass)
        self.construct_name = construct_name

    def _parse(self, stream: Stream, context: Context, path: str) -> Any:
        start = stream.tell()
        try:
            with _Level(context._params):
                return self.subcon._parsereport(stream, context, path)
        except NestingError as error:
            error.path = self.subcon.subcons[0].name
            error.offset = start - context._params.get("stream_start", 0)
            raise

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        try:
            with _Level(context._params):
                return self.subcon._build(obj, stream, context, path)
        except NestingError as error:
            raise BuildError(error.problem) from None


class _Level:
    """Counts one level of nesting while it is open."""

    def __init__(self, params: Context) -> None:
        self.params = params

    def __enter__(self) -> None:
        limit = self.params.get("max_nesting", MAX_NESTING)
        self.params["nesting"] = self.params.get("nesting", 0) + 1
        if self.params["nesting"] > limit:
            self.params["nesting"] -= 1
            raise NestingError(f"nested deeper than {limit} levels")

    def __exit__(self, *_: object) -> None:
        self.params["nesting"] -= 1


class String(Guarded, construct.Adapter):
    """A Struct of `len` and bytes, as str. Bytes that are no UTF-8 become lone surrogates and come back unchanged."""

    def _decode(self, obj: Context, context: Context, path: str) -> str:
        return str(obj[self.subcon.subcons[-1].name], "utf-8", "surrogateescape")

    def _encode(self, obj: Any, context: Context, path: str) -> dict[str, bytes]:
        return {self.subcon.subcons[-1].name: encode(obj)}


def encode(text: Any) -> bytes:
    """The bytes of a str (lone surrogates stand for single bytes) or bytes as they are.

    Raises:
        BuildError: Neither, or a surrogate that stands for no byte.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise BuildError(f"expected a string, found {type(text).__name__}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BuildError(f"cannot be encoded as UTF-8: {error.reason} at character {error.start}") from None


class Rebuild(Guarded, construct.Rebuild):
    """construct's Rebuild: computed on build, whatever the object holds."""

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        try:
            return super()._build(obj, stream, context, path)
        except KeyError:
            raise BuildError("the field is missing", blame=field_of(self.func)) from None
        except TypeError as error:
            raise BuildError(f"expected a sequence: {error}", blame=field_of(self.func)) from None


class Default(Guarded, construct.Default):
    """construct's Default: a value for what the object does not hold."""


class GreedyBytes(Guarded, type(construct.GreedyBytes)):  # type: ignore[misc]
    """construct's GreedyBytes: all bytes that are left."""
