"""Tables of the layout: structures, versions, value types, tensor types and their blocks."""

from typing import Any

from ..description import KINDS, removed_tensor_types, tensor_types, types
from ..enums import GGUFValueType
from ..schema import LATEST_VERSION, VERSIONS, structs
from ..walk import BY_VERSION, minimum_size
from .drawings import draw
from .forms import Table

Described = Any
"""A construct as `walk.describe` has it: a name or a Description."""


def structure(name: str) -> Table:
    """The fields of a struct, in the order of the bytes."""
    rows = []
    offsets: list[int | None] = [0] * len(VERSIONS)
    for field in _fields(name):
        sizes = [size(field["type"], version) for version in VERSIONS]
        if not any(sizes) and None not in sizes:
            continue  # it is computed, and is not in the file
        rows.append((field["name"], type_text(field["type"]), _by_version(offsets), _by_version(sizes), field["doc"]))
        offsets = [None if None in (at, bytes) else at + bytes for at, bytes in zip(offsets, sizes, strict=True)]  # type: ignore[operator]
    return Table(("field", "type", "offset", "bytes", "meaning"), rows, code=("field", "type"))


def _fields(name: str) -> list[dict[str, Any]]:
    """The fields of a named struct, or of the one below an adapter."""
    described = types()[name]
    while "fields" not in described:
        described = described["type"]
    fields: list[dict[str, Any]] = described["fields"]
    return fields


def size(described: Described, version: int) -> int | None:
    """The bytes that a construct takes in a version; None where that depends on the file."""
    if isinstance(described, str):
        return size(types()[described], version)
    match described["kind"]:
        case "integer" | "float":
            return int(_in_version(described["bytes"], version))
        case "bytes":
            return described["length"] if isinstance(described["length"], int) else None
        case "array":
            items = size(described["items"], version)
            count = described["count"]
            return count * items if isinstance(count, int) and items is not None else None
        case "alignment":
            return 0
        case "default" | "string" | "recursive" | "placed":
            return None
    return size(described["type"], version) if "type" in described else None


def _in_version(value: Any, version: int) -> Any:
    return value[BY_VERSION][str(version)] if isinstance(value, dict) else value


def _by_version(values: list[int | None]) -> str | None:
    """Numbers that may differ between versions, as text."""
    latest = values[-1]
    others = {version: value for version, value in zip(VERSIONS, values, strict=True) if value != latest}
    if latest is None or not others:
        return None if latest is None else str(latest)
    return f"{latest} ({', '.join(f'{value} in version {version}' for version, value in others.items())})"


def type_text(described: Described) -> str:
    """A construct in a few letters, as C would write it."""
    if isinstance(described, str):
        return described
    match described["kind"]:
        case "integer" | "float":
            prefix = "float" if described["kind"] == "float" else "int" if described["signed"] else "uint"
            return f"{prefix}{8 * described['bytes']}"
        case "array":
            return f"{type_text(described['items'])}[{described['count']}]"
        case "bytes":
            return f"byte[{described['length']}]"
        case "switch":
            return f"by {described['on']}"
        case "enum":
            return f"{type_text(described['type'])} {described['enum']}"
        case "alignment":
            return ""
    return type_text(described["type"]) if "type" in described else "byte[]"


def versions() -> Table:
    """What differs between the versions of the format, and the type that it has in each."""
    rows = []
    for name, described in types().items():
        in_versions = (
            [type_text({key: _in_version(value, version) for key, value in described.items()}) for version in VERSIONS]
            if isinstance(described.get("bytes"), dict)
            else []
        )
        if in_versions:
            rows.append((name, *in_versions, ", ".join(_users(name))))
    columns = ("type", *(f"version {version}" for version in VERSIONS), "used by")
    return Table(columns, rows, code=columns)


def _users(name: str) -> list[str]:
    """The fields in whose type a name stands, as struct.field."""
    return [
        f"{struct}.{field['name']}"
        for struct in types()
        if struct not in ("head", "preamble") and "fields" in str(types()[struct])
        for field in _fields(struct)
        if name in _names(field["type"])
    ]


def _names(described: Described) -> set[str]:
    """The names in a description, not those inside them."""
    if isinstance(described, str):
        return {described}
    inner = [described.get("type"), described.get("items"), *described.get("cases", {}).values()]
    return set().union(*(_names(one) for one in inner if one is not None))


def smallest_sizes() -> Table:
    """The fewest bytes that the items of lists take, in each version."""
    rows = [
        (name, *(minimum_size(getattr(structs(version=version), name)) for version in VERSIONS))
        for name in ("metadata_kv", "tensor_info", "string", "array")
    ]
    return Table(("item", *(f"version {version}" for version in VERSIONS)), rows, code=("item",))


def value_types() -> Table:
    """The types of metadata values."""
    cases = next(field for field in _fields("metadata_kv") if field["name"] == "value")["type"]["cases"]
    rows = [
        (
            int(type),
            type.name,
            type_text(cases[type.name]),
            size(cases[type.name], LATEST_VERSION),
            _meaning(cases[type.name]),
        )
        for type in GGUFValueType
    ]
    return Table(("number", "name", "type", "bytes", "meaning"), rows, code=("name", "type"))


def _meaning(described: Described) -> str:
    """What a value is, in words."""
    named = types()[type_text(described)]
    match named["kind"]:
        case "integer":
            return f"{'Signed' if named['signed'] else 'Unsigned'} integer"
        case "float":
            return f"IEEE 754 binary{8 * named['bytes']}"
        case "bool":
            return KINDS["bool"].replace("`type` as truth: ", "")
    return f"See {type_text(described)}"


def tensor_type_table() -> Table:
    """The types of tensors: how many elements a block holds, and in how many bytes."""
    rows = []
    for name, described in tensor_types().items():
        fields = ", ".join(f"{field['name']} {type_text(field['type'])}" for field in described["fields"])
        bits = 8 * described["type_size"] / described["block_size"]
        rows.append((described["id"], name, described["block_size"], described["type_size"], f"{bits:g}", fields))
    columns = ("number", "name", "block_size", "type_size", "bits per element", "fields of a block")
    return Table(columns, rows, code=("name", "fields of a block"))


def removed() -> Table:
    """Numbers of tensor types that ggml removed, with the names that they had."""
    return Table(
        ("number", "name"), [(number, name) for name, number in removed_tensor_types().items()], code=("name",)
    )


def blocks() -> Table:
    """The fields of each type's block."""
    rows = [
        (name, field["offset"], field["bytes"], field["name"], type_text(field["type"]), field["doc"])
        for name, described in tensor_types().items()
        for field in described["fields"]
    ]
    return Table(("tensor type", "offset", "bytes", "field", "type", "meaning"), rows, as_markdown=draw)
