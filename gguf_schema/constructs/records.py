"""Lists of records: an Array of Structs read by a function that is generated from the Struct.

The function is straight-line Python over a buffer. It knows only what is common: integers, strings, counted integers,
and of a Switch the cases that are numbers or strings; for a Struct with anything else none is written. Before anything
else (an array, a NaN, a BOOL byte of 2, a length that does not fit, the end of the buffer) it stops, and the record is
parsed by the Struct itself; so errors are the Struct's. To see what was generated, print `RecordArray.source`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import construct

from ..walk import Sink, Stream, field_of, unwrap
from .core import Context, Guarded, String, bytes_left
from .numbers import Bool, EnumAdapter, Integer, Number

FIRST_WINDOW = 1 << 12
LARGEST_WINDOW = 1 << 18
"""Bytes that RecordArray reads at once: from the first window on, twice as many each time."""

MOST_COUNTED = 16
"""Counted integers that the generated function unpacks."""

ReadRecords = Callable[[bytes, int, list[Any]], int]
"""(buffer, most records, list that they are appended to) → position after the last one."""


class RecordArray(Guarded, construct.Subconstruct):
    """An Array of Structs, whose items are the same Containers that the plain Array makes."""

    @property
    def source(self) -> str:
        """The text of the generated function; empty where none can be written for the Struct."""
        return _generated(self.subcon.subcon)[1]

    def _parse(self, stream: Stream, context: Context, path: str) -> construct.ListContainer:
        count = self.subcon.checked_count(stream, context)
        read_records, _ = _generated(self.subcon.subcon)
        records = construct.ListContainer()
        window = FIRST_WINDOW
        while len(records) < count:
            start = stream.tell()
            before = len(records)
            chunk = stream.read(min(window, bytes_left(stream, context)))
            stream.seek(start + read_records(chunk, count - before, records))
            if len(records) > before:
                window = min(2 * window, LARGEST_WINDOW)
            else:
                records.append(self.subcon.parse_item(before, stream, context, path))
                window = FIRST_WINDOW
        return records

    def _build(self, obj: Any, stream: Sink, context: Context, path: str) -> Any:
        return self.subcon._build(obj, stream, context, path)


@cache
def _generated(con: construct.Struct) -> tuple[ReadRecords, str]:
    """The function for a Struct, and its source. They are kept here, not in the tree, which holds no code."""
    try:
        generator = _Generator(con)
    except _UnknownError:
        return _read_nothing, ""
    exec(generator.source, generator.namespace)
    return generator.namespace["read_records"], generator.source


def _read_nothing(buffer: bytes, most: int, records: list[Any]) -> int:
    """Stands in for the function where none can be written: every record is left to the Struct."""
    return 0


class _UnknownError(Exception):
    """A Struct has a field of which the generator knows nothing."""


class _Generator:
    """Writes the function for one Struct, field by field; the names that it needs are in `namespace`.

    A field is read into a variable of its name with an underscore behind it. Integers of one byte order that stand side
    by side are unpacked together, so they are held back until something else comes.
    """

    def __init__(self, con: construct.Struct) -> None:
        self.namespace: dict[str, Any] = {
            "Container": construct.Container,
            "ListContainer": construct.ListContainer,
            "StructError": struct.error,
        }
        self.held: list[tuple[str, construct.Construct]] = []
        self.numbers: set[str | None] = set()
        switches = [unwrap(child) for child in con.subcons if isinstance(unwrap(child), construct.Switch)]
        self.keys = {field_of(switch.keyfunc) for switch in switches}
        lines = [line for child in con.subcons for line in self._field(child.name, _value_con(child))]
        body = "\n".join(f"            {line}" for line in lines + self._flush())
        items = ", ".join(f"{child.name!r}: {child.name}_" for child in con.subcons)
        self.source = (
            "def read_records(buffer, most, records):\n"
            "    end = len(buffer)\n"
            "    position = done = 0\n"
            "    try:\n"
            "        for _ in range(most):\n"
            f"{body}\n"
            f"            records.append(Container({{{items}}}))\n"
            "            done = position\n"
            "    except (StructError, KeyError):\n"
            "        pass\n"
            "    return done\n"
        )

    def _field(self, name: str, con: construct.Construct) -> list[str]:
        """The lines that read one field.

        Raises:
            _UnknownError: Nothing is known of such a field.
        """
        if isinstance(con, Integer) or (isinstance(con, EnumAdapter) and isinstance(con.subcon, Integer)):
            is_other = bool(self.held) and unwrap(con).fmtstr[0] != unwrap(self.held[0][1]).fmtstr[0]
            lines = self._flush() if is_other else []
            self.held.append((name, con))
            self.numbers.add(name)
            return lines
        if isinstance(con, String):
            return self._flush() + self._string(name, con)
        if isinstance(con, construct.Array) and isinstance(con.subcon, Integer) and field_of(con.count) in self.numbers:
            return self._flush() + self._counted(name, con)
        if isinstance(con, construct.Switch) and field_of(con.keyfunc) in self.numbers:
            return self._flush() + self._switch(name, con)
        raise _UnknownError(name)

    def _flush(self) -> list[str]:
        """The lines that unpack the integers held back."""
        if not self.held:
            return []
        formats = [unwrap(con).fmtstr for _, con in self.held]
        packer = struct.Struct(formats[0][0] + "".join(letter for _, letter in formats))
        names = ", ".join(f"{name}_" for name, _ in self.held)
        lines = [
            f"{names}, = {self._named('unpack', packer.unpack_from)}(buffer, position)",
            f"position += {packer.size}",
        ]
        for name, con in self.held:
            if isinstance(con, EnumAdapter) and name not in self.keys:
                lines.append(f"{name}_ = {self._named('members', con.members)}.get({name}_, {name}_)")
        self.held = []
        return lines

    def _string(self, name: str, con: String) -> list[str]:
        packer = unwrap(con.subcon.subcons[0]).packer
        return [
            f"length, = {self._named('unpack', packer.unpack_from)}(buffer, position)",
            f"position += {packer.size} + length",
            "if position > end:",
            "    break",
            f"{name}_ = str(buffer[position - length : position], 'utf-8', 'surrogateescape')",
        ]

    def _counted(self, name: str, con: construct.Array) -> list[str]:
        """A number of integers, which an earlier field tells; more than a few are left to the Struct."""
        order, letter = con.subcon.fmtstr
        count = f"{field_of(con.count)}_"
        unpackers = {n: struct.Struct(f"{order}{n}{letter}").unpack_from for n in range(MOST_COUNTED + 1)}
        return [
            f"{name}_ = ListContainer({self._named('unpack', unpackers)}[{count}](buffer, position))",
            f"position += {con.subcon.length} * {count}",
        ]

    def _switch(self, name: str, con: construct.Switch) -> list[str]:
        """Numbers are read by a table; what is in no table, or equal to nothing, is left to the Struct.

        The key is still a bare number here, and becomes a member of its enumeration by the way.
        """
        key = f"{field_of(con.keyfunc)}_"
        lines: list[str] = []
        numbers = {}
        for value, case in con.cases.items():
            if isinstance(case, String):
                member = f"{key} = {self._named('member', value)}"
                lines += [
                    f"{'elif' if lines else 'if'} {key} == {value:d}:",
                    *(f"    {line}" for line in [member, *self._string(name, case)]),
                ]
            elif isinstance(case, Number | Bool):
                members = {0: False, 1: True} if isinstance(case, Bool) else None
                numbers[int(value)] = value, unwrap(case).packer.unpack_from, unwrap(case).length, members
        table = [
            f"{key}, unpack, size, members = {self._named('types', numbers)}[{key}]",
            f"{name}_, = unpack(buffer, position)",
            "position += size",
            "if members:",
            f"    {name}_ = members[{name}_]",
            f"elif {name}_ != {name}_:",
            "    break",
        ]
        return [*lines, "else:", *(f"    {line}" for line in table)] if lines else table

    def _named(self, kind: str, value: Any) -> str:
        """A name under which the function finds a value."""
        name = f"{kind}{len(self.namespace)}"
        self.namespace[name] = value
        return name


def _value_con(field: construct.Construct) -> construct.Construct:
    """The construct that makes a field's value: without its name, and without what only matters on build."""
    while isinstance(field, construct.Renamed | construct.Rebuild):
        field = field.subcon
    return field
