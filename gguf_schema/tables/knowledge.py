"""Tables of what is known besides the layout: names of numbers, standard keys, limits and divergences of readers."""

from enum import IntEnum

from ..divergences import DIVERGENCES, LIMITS, Divergence, Limit
from ..keys import FAMILIES, KEYS, Key
from .forms import Table


def enum_table(enum: type[IntEnum]) -> Table:
    """The members of an enumeration."""
    return Table(("number", "name"), [(int(member), member.name) for member in enum], code=("name",))


def keys(family: str | None = None) -> Table:
    """The standard metadata keys, of one of `keys.FAMILIES` or of all."""
    wanted = KEYS if family is None else FAMILIES[family]
    rows = [(key.template, _types(key), key.required, key.docs) for key in wanted]
    return Table(("key", "type", "required", "meaning"), rows, code=("key",))


def _types(key: Key) -> str:
    """The type that is written, and others that are read."""
    return " or ".join(map(str, (key.type, *key.also)))


def limits() -> Table:
    """What readers take at most."""
    return Table(Limit._fields, list(LIMITS))


def divergences() -> Table:
    """Where the specification and readers differ."""
    rows = [(*row[:-1], ", ".join(row.cases)) for row in DIVERGENCES]
    return Table(Divergence._fields, rows)
