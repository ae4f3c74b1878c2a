"""Lists of records: an Array of Structs read by a function that is generated from the Struct.

The function is straight-line Python over a buffer. It knows only what is common: numbers, strings, counted numbers,
and of a Switch the cases that are numbers or strings. Before anything else (an array, a NaN, a BOOL byte of 2, a length
that does not fit, the end of the buffer) it stops, and the record is parsed by the Struct itself; so errors are the
Struct's. To see what was generated, print `RecordArray.source`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import construct

from ..walk import Sink, Stream, field_of, unwrap
from .core import Context, Guarded, String, bytes_left
from .numbers import Bool, EnumAdapter, Number

FIRST_WINDOW = 1 << 12
LARGEST_WINDOW = 1 << 18
"""Bytes that RecordArray reads at once: from the first window on, twice as many each time."""

ReadRecords = Callable[[bytes, int, list[Any]], int]
"""(buffer, most records, list that they are appended to) → position after the last one."""


class RecordArray(Guarded, construct.Subconstruct):
    """An Array of Structs, whose items are the same Containers that the plain Array makes."""

    @property
    def source(self) -> str:
        """The text of the generated function."""
        return _Generator(self.subcon.subcon).source

    def _parse(self, stream: Stream, context: Context, path: str) -> construct.ListContainer:
        count = self.subcon.checked_count(stream, context)
        records = construct.ListContainer()
        read_records = _generated(self.subcon.subcon)
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
def _generated(con: construct.Struct) -> ReadRecords:
    """The function for a Struct. It is kept here, not in the tree, which holds no code."""
    generator = _Generator(con)
    exec(generator.source, generator.namespace)
    return generator.namespace["read_records"]  # type: ignore[no-any-return]


class _Generator:
    """Writes the function for one Struct, field by field; the names that it needs are in `namespace`.

    Numbers that stand side by side are unpacked together, so they are held back until something else comes.
    """

    def __init__(self, con: construct.Struct) -> None:
        self.namespace: dict[str, Any] = {
            "Container": construct.Container,
            "ListContainer": construct.ListContainer,
            "StructError": struct.error,
        }
        self.held: list[tuple[str, construct.Construct]] = []
        switches = [unwrap(child) for child in con.subcons if isinstance(unwrap(child), construct.Switch)]
        self.keys = {field_of(switch.keyfunc) for switch in switches}
        lines = [line for child in con.subcons for line in self._field(child.name, _value_con(child))] + self._numbers()
        body = "\n".join(f"            {line}" for line in lines)
        items = ", ".join(f"{child.name!r}: {child.name}" for child in con.subcons)
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
        """The lines that read one field into a variable of its name."""
        if isinstance(con, Number) or (isinstance(con, EnumAdapter) and isinstance(con.subcon, Number)):
            self.held.append((name, con))
            return []
        if isinstance(con, String):
            return self._numbers() + self._string(name, con)
        if isinstance(con, construct.Array):
            return self._numbers() + self._counted(name, con)
        return self._numbers() + self._switch(name, con)

    def _numbers(self) -> list[str]:
        """The lines that unpack the numbers held back."""
        if not self.held:
            return []
        formats = [unwrap(con).fmtstr for _, con in self.held]
        packer = struct.Struct(formats[0][0] + "".join(letter for _, letter in formats))
        names = ", ".join(name for name, _ in self.held)
        lines = [
            f"{names}, = {self._named('unpack', packer.unpack_from)}(buffer, position)",
            f"position += {packer.size}",
        ]
        for name, con in self.held:
            if isinstance(con, EnumAdapter) and name not in self.keys:
                lines.append(f"{name} = {self._named('members', con.members)}.get({name}, {name})")
        self.held = []
        return lines

    def _string(self, name: str, con: String) -> list[str]:
        packer = unwrap(con.subcon.subcons[0]).packer
        return [
            f"_length, = {self._named('unpack', packer.unpack_from)}(buffer, position)",
            f"position += {packer.size} + _length",
            "if position > end:",
            "    break",
            f"{name} = str(buffer[position - _length : position], 'utf-8', 'surrogateescape')",
        ]

    def _counted(self, name: str, con: construct.Array) -> list[str]:
        """A number of numbers, which an earlier field tells; more than a few are left to the Struct."""
        number, count = unwrap(con.subcon), field_of(con.count)
        order, letter = number.fmtstr
        unpackers = {n: struct.Struct(f"{order}{n}{letter}").unpack_from for n in range(MOST_COUNTED + 1)}
        return [
            f"{name} = ListContainer({self._named('unpack', unpackers)}[{count}](buffer, position))",
            f"position += {number.length} * {count}",
        ]

    def _switch(self, name: str, con: construct.Switch) -> list[str]:
        """Numbers are read by a table; what is in no table, or equal to nothing, is left to the Struct.

        The key is still a bare number here, and becomes a member of its enumeration by the way.
        """
        key = field_of(con.keyfunc)
        lines = []
        numbers = {}
        for value, case in con.cases.items():
            if isinstance(case, String):
                member = f"{key} = {self._named('member', value)}"
                lines += [f"if {key} == {value:d}:", *(f"    {line}" for line in [member, *self._string(name, case)])]
            elif isinstance(unwrap(case), Number):
                members = {0: False, 1: True} if isinstance(case, Bool) else None
                numbers[int(value)] = value, unwrap(case).packer.unpack_from, unwrap(case).length, members
        return [
            *lines,
            "else:",
            f"    {key}, _unpack, _size, _members = {self._named('types', numbers)}[{key}]",
            f"    {name}, = _unpack(buffer, position)",
            "    position += _size",
            "    if _members:",
            f"        {name} = _members[{name}]",
            f"    elif {name} != {name}:",
            "        break",
        ]

    def _named(self, kind: str, value: Any) -> str:
        """A name under which the function finds a value."""
        name = f"_{kind}_{len(self.namespace)}"
        self.namespace[name] = value
        return name


MOST_COUNTED = 16
"""Counted numbers that the generated function unpacks."""


def _value_con(field: construct.Construct) -> construct.Construct:
    """The construct that makes a field's value: without its name, and without what only matters on build."""
    while isinstance(field, construct.Renamed | construct.Rebuild):
        field = field.subcon
    return field
