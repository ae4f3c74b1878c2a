"""Values in the wire form for any construct, derived by walking it: whatever the schema declares can be generated.

`MAKERS` has one function for each kind of construct (`description.KINDS` says what they are). It makes a `Maker` once;
that is called for each value. What is computed on build is left out of the values.
"""

from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..walk import Con, children, class_word, dtype, entry_of, every, field_of, same_struct
from .choices import Choices


class Extent(NamedTuple):
    """How large and how odd the values are.

    Attributes:
        items: The fewest and the most elements of an array.
        letters: The fewest and the most characters of a text, or bytes of other bytes.
        levels: The most levels of arrays.
        valid: Only what no rule warns of, as far as one value tells: text is UTF-8, BOOL bytes are 0 and 1; else
            whatever parsing keeps.
    """

    items: tuple[int, int] = (0, 4)
    letters: tuple[int, int] = (0, 12)
    levels: int = 3
    valid: bool = True


Bounds = tuple[int, int]

Fields = Mapping[str, Any]
"""The fields of the Struct around a value, as far as they are chosen."""

Maker = Callable[[Choices, Fields, Extent], Any]

LEFT_OUT = object()
"""Stands for a value that is computed on build."""


def make(con: Con, choices: Choices, extent: Extent, given: Fields | None = None) -> Any:
    """A value that the construct builds.

    Args:
        con: The construct.
        choices: What makes the choices.
        extent: How large and how odd the value is.
        given: Of a Struct the fields that are chosen already.
    """
    return maker(con)(choices, {}, extent) if given is None else struct_maker(con)(choices, given, extent)


@cache
def maker(con: Con) -> Maker:
    """The function that makes values of a construct.

    Raises:
        LookupError: Nobody knows how to make values of a construct of this kind.
    """
    found, factory = entry_of(con, MAKERS)
    return factory(found)


def _integer(con: Con) -> Maker:
    bounds = np.iinfo(dtype(con))
    low, high = int(bounds.min), int(bounds.max)
    return lambda choices, fields, extent: choices.integer(low, high)


def _float(con: Con) -> Maker:
    size, mantissa, order = _float_form(con)

    def make_float(choices: Choices, fields: Fields, extent: Extent) -> float:
        number: float = con.parse(choices.float_bits(size, mantissa).to_bytes(size, order))
        return number

    return make_float


def _float_form(con: Con) -> tuple[int, int, Any]:
    """Bytes of a float, bits of its mantissa, and its byte order in the words of `int.to_bytes`."""
    number = dtype(con)
    return number.itemsize, np.finfo(number).nmant, "big" if number == number.newbyteorder(">") else "little"


def _float_bits(choices: Choices, size: int, mantissa: int) -> int:
    return choices.float_bits(size, mantissa)


def _bool(con: Con) -> Maker:
    any_byte = maker(con.subcon)

    def make_bool(choices: Choices, fields: Fields, extent: Extent) -> bool | int:
        byte = choices.one_of((0, 1)) if extent.valid else any_byte(choices, fields, extent)
        return bool(byte) if byte in (0, 1) else int(byte)

    return make_bool


def _enum(con: Con) -> Maker:
    members = tuple(con.enum)
    return lambda choices, fields, extent: choices.one_of(members)


def _string(con: Con) -> Maker:
    def make_string(choices: Choices, fields: Fields, extent: Extent) -> str:
        if extent.valid or choices.one_of((True, False)):
            return choices.text(None, *extent.letters)
        return str(choices.octets(choices.integer(*extent.letters)), "utf-8", "surrogateescape")

    return make_string


def _bytes(con: Con) -> Maker:
    bounds = _bounds(con.length)
    return lambda choices, fields, extent: choices.octets(choices.integer(*bounds(fields, extent.letters)))


def _greedy_bytes(con: Con) -> Maker:
    return lambda choices, fields, extent: choices.octets(choices.integer(*extent.letters))


def _const(con: Con) -> Maker:
    return lambda choices, fields, extent: con.value


def _default(con: Con) -> Maker:
    inner = maker(con.subcon)
    return lambda choices, fields, extent: (
        inner(choices, fields, extent) if choices.one_of((False, True)) else con.value
    )


def _left_out(con: Con) -> Maker:
    return lambda choices, fields, extent: LEFT_OUT


def _bounds(expression: Any) -> Callable[[Fields, Bounds], Bounds]:
    """How many an Array or Bytes has: those that a number or a field before says; else any number within bounds."""
    name = field_of(expression)
    if name is None:
        return lambda fields, usual: (expression, expression)
    return lambda fields, usual: (fields[name], fields[name]) if name in fields else usual


def _array(con: Con) -> Maker:
    item, bounds = maker(con.subcon), _bounds(con.count)
    return lambda choices, fields, extent: choices.many(_item, *bounds(fields, extent.items), item, extent)


def _item(choices: Choices, item: Maker, extent: Extent) -> Any:
    return item(choices, {}, extent)


def _number_array(con: Con) -> Maker:
    """As parsing gives them: numpy arrays of the file's byte order, bit by bit."""
    number = con.dtype
    if number.kind == "f":
        size, mantissa, _ = _float_form(con.subcon.subcon)
        bounds = _bounds(con.subcon.count)
        as_bits = np.dtype(f"u{size}").newbyteorder(number.byteorder)

        def make_floats(choices: Choices, fields: Fields, extent: Extent) -> Any:
            bits = choices.many(_float_bits, *bounds(fields, extent.items), size, mantissa)
            return np.array(bits, as_bits).view(number)

        return make_floats

    plain = maker(con.subcon)

    def make_numbers(choices: Choices, fields: Fields, extent: Extent) -> Any:
        items = plain(choices, fields, extent)
        is_clean = con.is_bool and all(type(item) is bool for item in items)
        return np.array(items, np.bool_ if is_clean else number)

    return make_numbers


def _switch(con: Con) -> Maker:
    name = field_of(con.keyfunc) or ""
    cases = {key: maker(case) for key, case in con.cases.items()}
    return lambda choices, fields, extent: cases[fields[name]](choices, fields, extent)


def _recursive(con: Con) -> Maker:
    def make_inner(choices: Choices, fields: Fields, extent: Extent) -> Any:
        return maker(con.subcon)(choices, fields, extent._replace(levels=extent.levels - 1))

    return make_inner


def _struct(con: Con) -> Maker:
    make_struct = struct_maker(con)
    return lambda choices, fields, extent: make_struct(choices, {}, extent)


@cache
def struct_maker(con: Con) -> Maker:
    """The function that makes a Struct from those of its fields that are chosen already."""
    scope = [inner for field in children(con) for inner in same_struct(field)]
    switches = {field_of(inner.keyfunc): inner for inner in scope if class_word(type(inner)) == "switch"}
    counts = {field_of(getattr(inner, name, None)) for inner in scope for name in ("count", "length")}
    plan = [(field.name, _field(field, switches, counts)) for field in children(con)]

    def make_struct(choices: Choices, given: Fields, extent: Extent) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, make_field in plan:
            value = given[name] if name in given else make_field(choices, fields, extent)
            if value is not LEFT_OUT:
                fields[name] = value
        return fields

    return make_struct


def _field(field: Con, switches: Mapping[str | None, Con], counts: Set[str | None]) -> Maker:
    """A field that others of the Struct go by has a value that they can follow."""
    if field.name in switches:
        return _key(switches[field.name])
    if field.name in counts and entry_of(field, MAKERS)[1] is not _left_out:
        return lambda choices, fields, extent: choices.integer(*extent.items)
    return maker(field)


def _key(switch: Con) -> Maker:
    """The keys of a Switch: one out of three of a case that recurses, unless no more levels are wanted."""
    flat = tuple(key for key, case in switch.cases.items() if not _recurses(case))
    deep = tuple(key for key in switch.cases if key not in flat)
    weighted = flat + deep * (len(flat) // 2)
    return lambda choices, fields, extent: choices.one_of(weighted if extent.levels > 0 else flat)


def _recurses(con: Con) -> bool:
    return any(class_word(type(inner)) == "recursive" for inner in every(con))


MAKERS: dict[str, Callable[[Con], Maker]] = {
    "integer": _integer,
    "float": _float,
    "bool": _bool,
    "enum": _enum,
    "string": _string,
    "bytes": _bytes,
    "greedy_bytes": _greedy_bytes,
    "const": _const,
    "default": _default,
    "rebuild": _left_out,
    "alignment": _left_out,
    "alignment_padding": _left_out,
    "tensor_data": _left_out,
    "array": _array,
    "number_array": _number_array,
    "switch": _switch,
    "recursive": _recursive,
    "struct": _struct,
}
