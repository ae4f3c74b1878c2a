"""The byte map: which field every byte of a file belongs to.

Metadata and infos are mapped by walking the schema along the file (`walk.trace`). What follows is mapped by arithmetic
on the infos, because nobody wants to read 20 GB to be told where they are.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .constructs import Strings
from .enums import NamedInt
from .errors import GGUFError
from .file import Model
from .layout import data_size, type_name
from .schema import ORDER_NAMES
from .terminal import printable
from .values import to_json
from .walk import Enter, Node, is_inside, kind

FOLD = 16
"""Items from which on an array is one entry, unless its inside is asked for."""


class Entry(NamedTuple):
    """A field, or a run of bytes outside of all fields, with its place.

    Attributes:
        path: The schema path; the data of a tensor is `tensor_data[index]`, by the index of its info.
        start: Absolute offset of the first byte.
        end: Absolute offset after the last byte.
        type: What it is on the wire: uint32, bytes, struct, array, nothing, or the name of a tensor type.
        value: Its value, plain; of arrays and runs of bytes their size in words, of a tensor its name.
        doc: What the schema says of it.
        is_leaf: Whether it is not divided further. Leaves tile the file.
    """

    path: str
    start: int
    end: int
    type: str
    value: Any
    doc: str
    is_leaf: bool


def short(path: str, items: int) -> bool:
    """What is divided unless more is asked for: Structs, short arrays, and the lists of pairs and infos."""
    return items < FOLD or path in ("metadata_kv", "tensor_infos")


def everything(path: str, items: int) -> bool:
    """Every array, however long."""
    return True


def entries(model: Model, enter: Enter = short) -> list[Entry]:
    """The map of a file in the order of the bytes, outer entries before those inside them.

    Args:
        model: The open file; open it with `check=False` to map one that is refused.
        enter: What is divided (see `walk.trace`).

    Raises:
        GGUFError: The file is closed, or has changed.
    """
    return [*_head(model, enter), *data_entries(model)]


def leaves(model: Model, enter: Enter = short) -> list[Entry]:
    """The entries that are not divided further: each begins where the one before it ends, the first at 0."""
    return [entry for entry in entries(model, enter) if entry.is_leaf]


def at(model: Model, offset: int) -> list[Entry]:
    """The entries that a byte belongs to, from the outermost to the leaf; long arrays are divided on the way.

    An offset outside of the file belongs to none.
    """
    inside: list[str] = []
    while True:
        mapped = entries(model, lambda path, items: short(path, items) or path in inside)
        found = [entry for entry in mapped if entry.start <= offset < entry.end]
        if not found or found[-1].type != "array":
            return found
        inside.append(found[-1].path)


def where(model: Model, path: str) -> list[Entry]:
    """The entry at a path and those inside it; long arrays are divided on the way. Empty for a path that is none."""
    mapped = entries(model, lambda outer, items: short(outer, items) or (path != outer and is_inside(path, outer)))
    return [entry for entry in mapped if is_inside(entry.path, path)]


def _head(model: Model, enter: Enter) -> list[Entry]:
    """The entries up to the end of the tensor infos."""
    found, error = mapped(model.trace_inside, enter)
    if error is not None:
        raise error
    return found


def mapped(trace: Callable[[Enter], Iterator[Node]], enter: Enter) -> tuple[list[Entry], GGUFError | None]:
    """The entries of a traced parse in the order of the bytes; if it fails, those before the failure, and the error.

    Args:
        trace: Parses, and yields nodes divided as far as it is told to (see `walk.trace`).
        enter: What is divided.
    """
    found: dict[str, Entry | None] = {}

    def noted(path: str, items: int) -> bool:
        if not path:
            return True
        if not enter(path, items):
            return False
        found[path] = None  # keeps its place before what is inside it; it is reported after that
        return True

    error = None
    try:
        for node in trace(noted):
            if node.path:
                is_leaf = node.path not in found
                value = _value(node.value)
                found[node.path] = Entry(node.path, node.start, node.end, kind(node.con), value, node.docs, is_leaf)
    except GGUFError as failure:
        error = failure
    return [entry for entry in found.values() if entry is not None], error


def _value(value: Any) -> Any:
    """A value, or the size of what has many."""
    if isinstance(value, dict):
        return f"{len(value)} fields"
    return f"{len(value)} items" if isinstance(value, list | np.ndarray | Strings) else value


def data_entries(model: Model) -> Iterator[Entry]:
    """The entries after the tensor infos: padding, tensors with what follows each, bytes after the end."""
    docs = {child.name: child.docs for child in model.layout.gguf.subcons}

    def run(path: str, start: int, end: int, doc: str, is_leaf: bool = True) -> Iterator[Entry]:
        if end > start:
            yield Entry(path, start, end, "bytes", f"{end - start} bytes", doc, is_leaf)

    tensors = model.tensors.infos
    start = cursor = min(model.data_offset, model.size)
    size = data_size(((tensor.offset, tensor.n_bytes) for tensor in tensors), model.alignment)
    end = model.size if size is None else min(start + size, model.size)
    yield from run("padding", model.infos_end, start, docs["padding"])
    yield from run("tensor_data", start, end, docs["tensor_data"], is_leaf=not tensors)
    path = "tensor_data"
    for index, tensor in sorted(enumerate(tensors), key=lambda pair: pair[1].offset):
        begin = min(max(cursor, tensor.data_offset), end)
        yield from run(f"{path}.padding", cursor, begin, "Bytes between tensors")
        cursor = end if tensor.n_bytes is None else max(begin, min(tensor.data_offset + tensor.n_bytes, end))
        path = f"tensor_data[{index}]"
        yield Entry(path, begin, cursor, type_name(tensor.type), tensor.name, "Data of a tensor", True)
    if tensors:
        yield from run(f"{path}.padding", cursor, end, "Bytes after a tensor")
    yield from run("tail", end, model.size, docs["tail"])


def map_json(model: Model, mapped: list[Entry]) -> str:
    """Leaves as one JSON object: `file`, `size`, `version`, `order`, and in `leaves` a record for each."""
    head = {"file": model.name, "size": model.size, "version": model.version, "order": ORDER_NAMES[model.order]}
    records = [
        {
            "path": entry.path,
            "start": entry.start,
            "end": entry.end,
            "type": entry.type,
            "value": plain(entry.value),
            "doc": entry.doc,
        }
        for entry in mapped
        if entry.is_leaf
    ]
    return json.dumps({**head, "leaves": records}, allow_nan=False)


def plain(value: Any) -> Any:
    """A value for JSON: bytes as text, members of enumerations by name."""
    if isinstance(value, bytes):
        return str(value, "utf-8", "surrogateescape")
    return str(value) if isinstance(value, NamedInt) else to_json(value)


LETTERS = 48
"""Letters shown of a value."""

HEX_BYTES = 16
"""Bytes shown in hex."""


def map_text(model: Model, mapped: list[Entry], depth: int | None = None, with_hex: bool = False) -> str:
    """Entries as a tree, one line each: offset, size, bytes in hex if wanted, field, value, doc.

    Args:
        model: The open file.
        mapped: Its entries.
        depth: Levels shown; None means all.
        with_hex: Show the first bytes of each leaf.
    """
    lines = []
    for entry in mapped:
        level = _level(entry.path)
        if depth is not None and level >= depth:
            continue
        place = f"{entry.start:>12} {entry.end - entry.start:>12}"
        if with_hex:
            shown = model.source.read_at(entry.start, min(HEX_BYTES, entry.end - entry.start)) if entry.is_leaf else b""
            more = "…" if entry.is_leaf and entry.end - entry.start > HEX_BYTES else " "
            place += f"  {shown.hex(' '):<{3 * HEX_BYTES - 1}}{more}"
        name = entry.path if entry.path.endswith("]") else entry.path.rpartition(".")[2]
        name = name[name.rfind("[") :] if name.endswith("]") else name
        value = value_text(entry, LETTERS)
        lines.append(f"{place}  {'  ' * level}{name}: {value}  ({entry.type}{f': {entry.doc}' if entry.doc else ''})")
    return "\n".join(lines)


def value_text(entry: Entry, letters: int) -> str:
    """The value of an entry as text that is safe to print, cut after so many letters."""
    whole = str(plain(entry.value))
    text = printable(whole[:letters])
    return text if max(len(whole), len(text)) <= letters else f"{text[:letters]}…"


def _level(path: str) -> int:
    """How deep a path lies."""
    return path.count(".") + path.count("[")
