"""Tables of what is known besides the layout: names of numbers, standard keys, limits and divergences of readers."""

from enum import IntEnum
from itertools import groupby
from operator import itemgetter

from ..divergences import DIVERGENCES, Divergence
from ..keys import FAMILIES, KEYS, Key
from ..reader_limits import LIMITS
from ..validate import PROFILES, RULES
from .forms import Table, markdown

DIVERGENCE_COLUMNS = (
    "what is in the file",
    "ggml's specification",
    "llama.cpp",
    "gguf-py",
    "huggingface.js",
    "gguf_schema",
    "remark",
    "shown by",
)


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
    return ", ".join(map(str, (key.type, *key.also)))


def limits() -> Table:
    """What readers take at most."""
    return Table(("what is limited", "gguf_schema", "llama.cpp", "gguf-py", "huggingface.js"), list(LIMITS))


def rules() -> Table:
    """What the validator looks for."""
    rows = [
        (
            rule.code,
            f"{rule.severity}{', forbidden' if rule.is_forbidden else ''}",
            rule.title,
            rule.path,
            ", ".join(profile.name for profile in PROFILES.values() if rule.code in profile.refuses),
            rule.source,
            rule.mend,
        )
        for rule in RULES
    ]
    columns = ("code", "severity", "what is wrong", "field", "refused by", "source", "how to mend it")
    return Table(columns, rows, code=("code", "field"))


def profiles() -> Table:
    """For whom the validator judges."""
    rows = [(profile.name, profile.describes, len(profile.refuses)) for profile in PROFILES.values()]
    return Table(("profile", "whose verdict", "faults that it refuses"), rows, code=("profile",))


def divergences() -> Table:
    """Where the specification and readers differ."""
    rows = [(*row[:-1], ", ".join(row.cases)) for row in DIVERGENCES]
    return Table(Divergence._fields, rows, as_markdown=_by_part)


def _by_part(table: Table) -> str:
    """A table for each part of a file, with one case of each row."""
    parts = []
    for part, rows in groupby(table.rows, key=itemgetter(0)):
        shorter = [(*row[1:-1], row[-1].partition(",")[0]) for row in rows]
        parts.append(f"**{part}**\n\n{markdown(Table(DIVERGENCE_COLUMNS, shorter))}")
    return "\n\n".join(parts)
