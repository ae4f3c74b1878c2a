"""The byte map: which field every byte of a file belongs to.

Metadata and infos are mapped by walking the schema along the file (`walk.trace`). What follows is mapped by arithmetic
on the infos, because nobody wants to read 20 GB to be told where they are.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .constructs import Strings
from .enums import NamedInt
from .errors import GGUFError
from .file import Model, trace_head
from .layout import data_size, type_name
from .schema import ORDER_NAMES, GGUFStructs
from .sources import Reader, Source
from .terminal import printable
from .values import to_json
from .walk import Enter, Node, is_inside, item_of, kind, trace

FOLD = 16
"""Items from which on an array is one entry, unless its inside is asked for."""


DEEPEST = 4
"""Levels of lists in which fields of a file that cannot be read are told apart."""


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


def shallow(path: str, items: int) -> bool:
    """What is divided of a file that cannot be read: arrays of arrays only so far. Deep ones may be what is wrong."""
    return short(path, items) and path.count("[") < DEEPEST


def everything(path: str, items: int) -> bool:
    """Every array, however long."""
    return True


def entries(model: Model, enter: Enter = short) -> list[Entry]:
    """The map of a file in the order of the bytes, outer entries before those inside them.

    Args:
        model: The open file; open it with `check=False` to map one that is refused.
        enter: What is divided (see `walk.trace`).

    Raises:
        GGUFError: The file is closed, or has changed; or the model is in several files.
    """
    return [*_head(model, enter), *data_entries(model)]


def leaves(model: Model, enter: Enter = short) -> list[Entry]:
    """The entries that are not divided further: each begins where the one before it ends, the first at 0."""
    return [entry for entry in entries(model, enter) if entry.is_leaf]


def at(model: Model, offset: int) -> list[Entry]:
    """The entries that a byte belongs to, from the outermost to the innermost, which may lie inside of a leaf.

    Long arrays are looked into, and so are the blocks of tensors. An offset outside of the file belongs to no entry.
    """
    inside: list[str] = []
    while True:
        mapped = entries(model, lambda path, items: short(path, items) or path in inside)
        found = [entry for entry in mapped if entry.start <= offset < entry.end]
        if not found:
            return []
        index = _index_at(model, found[-1], offset)
        if index is not None:
            items = _item(model, found[-1], index)
            return [*found, *(entry for entry in items if entry.start <= offset < entry.end)]
        if found[-1].type != "array":
            return found
        inside.append(found[-1].path)


def where(model: Model, path: str) -> list[Entry]:
    """The entry at a path and those inside it; an item of a long array, or a block of a tensor, by its index, too.

    The key of a pair and the name of a tensor stand for their paths. Empty for a path that is none.
    """
    item = ITEM.fullmatch(path)
    outer, index = item.group(1, 2) if item else (path, None)
    wanted = {path, *_named(model, path)}
    mapped = entries(model, lambda here, items: short(here, items) or (here != outer and is_inside(outer, here)))
    folded = next((entry for entry in mapped if entry.path == outer and entry.is_leaf), None)
    if index is not None and folded is not None:
        items = _item(model, folded, int(index))
        return [entry for entry in items if is_inside(entry.path, path)]
    return [entry for entry in mapped if any(is_inside(entry.path, one) for one in wanted)]


ITEM = re.compile(r"(.*)\[(\d+)\](?:\.\w+)?")
"""The path of an item, or of a field of one."""


def _named(model: Model, name: str) -> Iterator[str]:
    """The paths of the pairs with this key, and of the tensors with this name."""
    for index, pair in enumerate(model.metadata.pairs):
        if pair.key == name:
            yield f"metadata_kv[{index}]"
    for index, tensor in enumerate(model.tensors.infos):
        if tensor.name == name:
            yield f"tensor_infos[{index}]"
            yield f"tensor_data[{index}]"


class Items(NamedTuple):
    """A leaf that has items, which can be reached without reading those before them.

    Attributes:
        con: The construct of one.
        ends: End of each item, from the start of the leaf on; or, of items of one size, that size.
        number: How many there are.
    """

    con: Any
    ends: Any
    number: int

    def place(self, index: int) -> tuple[int, int]:
        """Start and end of an item, from the start of the leaf on."""
        if isinstance(self.ends, int):
            return index * self.ends, (index + 1) * self.ends
        return int(self.ends[index - 1]) if index else 0, int(self.ends[index])

    def index_at(self, offset: int) -> int:
        """The item that a byte belongs to."""
        return offset // self.ends if isinstance(self.ends, int) else int(np.searchsorted(self.ends, offset, "right"))


def _items(model: Model, leaf: Entry) -> Items | None:
    """The items of a leaf: the elements of a long array, or the blocks of a tensor's data."""
    if leaf.path.startswith("tensor_data[") and leaf.path.endswith("]"):
        tensor = model.tensors.infos[int(leaf.path[len("tensor_data[") : -1])]
        block = tensor.block
        return block and Items(block, block.type_size, (leaf.end - leaf.start) // block.type_size)
    if leaf.type != "array":
        return None
    (node,) = (node for node in model.trace(leaf.path) if node.path == leaf.path)
    ends = node.value.ends if isinstance(node.value, Strings) else getattr(node.value, "itemsize", None)
    return None if ends is None else Items(item_of(node.con), ends, len(node.value))


def _index_at(model: Model, leaf: Entry, offset: int) -> int | None:
    """The index of the item that a byte in a leaf belongs to; None where it has no items."""
    items = _items(model, leaf)
    index = items.index_at(offset - leaf.start) if items else None
    return index if items and index is not None and index < items.number else None


def _item(model: Model, leaf: Entry, index: int) -> list[Entry]:
    """The entry of an item of a leaf, and those inside it."""
    items = _items(model, leaf)
    if items is None or index >= items.number:
        return []
    start, end = (leaf.start + place for place in items.place(index))
    reader = Reader(model.source)

    def traced(enter: Enter) -> Iterator[Node]:
        reader.seek(start)
        return trace(items.con, reader, enter, stream_start=0, stream_end=model.size)

    found, error = mapped(traced, everything)
    if error is not None:
        raise error
    (value,) = (node.value for node in traced(lambda path, items: False) if not node.path)
    path = f"{leaf.path}[{index}]"
    entry = Entry(path, start, end, kind(items.con), _value(value), "", not found)
    below = [inner._replace(path=f"{path}.{inner.path}") for inner in found if inner.path.count("[") == 0]
    return [entry, *(inner._replace(is_leaf=True) for inner in below)]


def _head(model: Model, enter: Enter) -> list[Entry]:
    """The entries up to the end of the tensor infos."""
    model.demand_one_file()
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


def readable(source: Source, layout: GGUFStructs) -> list[Entry]:
    """The entries of a file's head up to its end, or to the first field that cannot be read."""
    return mapped(lambda enter: trace_head(source, layout, enter), shallow)[0]


def _value(value: Any) -> Any:
    """A value; of a pair or an info its key or name, of what has many parts their number."""
    if isinstance(value, dict):
        return value.get("key") or value.get("name") or f"{len(value)} fields"
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


def map_text(source: Source, mapped: list[Entry], depth: int | None = None, with_hex: bool = False) -> str:
    """Entries as a tree, one line each: offset, size, bytes in hex if wanted, field, value, doc.

    Args:
        source: The file.
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
            shown = source.read_at(entry.start, min(HEX_BYTES, entry.end - entry.start)) if entry.is_leaf else b""
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
