"""The file that is mutated, mapped once: fields with their kinds, pairs, tensors, and the bytes that numbers make."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .. import keys
from ..annotate import entries, everything
from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..file import Model, open
from ..layout import align_up, n_bytes
from ..schema import ORDER_NAMES, GGUFStructs, structs
from ..walk import dtype, minimum_size

KINDS = {
    "magic": "magic",
    "version": "version",
    "tensor_count": "count",
    "metadata_kv_count": "count",
    "metadata_kv": "metadata",
    "metadata_kv[]": "pair",
    "metadata_kv[].key.len": "key.len",
    "metadata_kv[].key.string": "key.string",
    "metadata_kv[].value_type": "value_type",
    "tensor_infos": "infos",
    "tensor_infos[]": "info",
    "tensor_infos[].name.len": "name.len",
    "tensor_infos[].name.string": "name.string",
    "tensor_infos[].n_dimensions": "n_dimensions",
    "tensor_infos[].dimensions[]": "dimension",
    "tensor_infos[].type": "tensor_type",
    "tensor_infos[].offset": "offset",
    "padding": "padding",
    "tensor_data": "data_section",
    "tensor_data[]": "data",
    "tensor_data[].padding": "padding",
    "tail": "tail",
}
"""Schema path without indices → kind of field. Kinds in values are told by `_kind_in_value`."""

BEHIND = ("padding", "data_section", "data", "tail")
"""Kinds of what stands behind the tensor infos."""

ITEM = re.compile(r"(.*)\.array\[(\d+)\]")
IN_VALUE = re.compile(r"metadata_kv\[\d+\]\.value(?!\w)")
INDEX = re.compile(r"\[\d+\]")
OWN_RULES = {*keys.FAMILIES["tokenizer"], *keys.FAMILIES["files"], keys.ARCHITECTURE, keys.BLOCK_COUNT}
"""Standard keys whose values, not only their types, are looked at."""

BLOCK = re.compile(r"blk\.\d+\.")
"""The beginning of the names of tensors that layers are counted by."""


class Field(NamedTuple):
    """A field, or a group of them.

    Attributes:
        path: The schema path; empty for the whole file.
        start: Absolute offset of the first byte.
        end: Absolute offset after the last byte.
        kind: What operations it is offered to.
        value: Of numbers, and of fields that are not heard of, their bits as an unsigned integer, else the bytes.
        place: Its number among the leaves of the head; of a pair or an info that of its first leaf.
    """

    path: str
    start: int
    end: int
    kind: str
    value: Any
    place: int


class Pair(NamedTuple):
    """A metadata pair.

    Attributes:
        field: Where it stands.
        key: Its key.
        type: The type of its value.
        standard: The standard key that it is, if any.
        is_own: Whether its value, not only its type, is looked at by rules that know the key.
    """

    field: Field
    key: str
    type: ValueType
    standard: keys.Key | None
    is_own: bool


class Info(NamedTuple):
    """A tensor info.

    Attributes:
        field: Where it stands.
        name: The tensor's name.
        type: The tensor's type.
        dimensions: In file order.
        offset: Of its data, relative to the tensor data.
        size: Bytes of its data.
    """

    field: Field
    name: str
    type: int
    dimensions: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True)
class Base:
    """A mapped file.

    Attributes:
        data: Its bytes.
        layout: The constructs of its layout.
        fields: What can be mutated, the whole file first. Of an array only the first and the last item are among them.
        leaves: Every undivided field of the head (all before the padding), back to back.
        pairs: The metadata pairs.
        infos: The tensor infos.
        alignment: The alignment in force.
        infos_start: Where the tensor infos begin.
        infos_end: Where they end.
        data_offset: Where the tensor data begins.
        architecture: The file's `general.architecture`; empty without.
    """

    data: bytes
    layout: GGUFStructs
    fields: list[Field]
    leaves: list[Field]
    pairs: list[Pair]
    infos: list[Info]
    alignment: int
    infos_start: int
    infos_end: int
    data_offset: int
    architecture: str

    def __repr__(self) -> str:
        return f"<Base: {len(self.data)} bytes, {len(self.pairs)} pairs, {len(self.infos)} tensors>"

    @cached_property
    def byteorder(self) -> Any:
        """The byte order as `int.to_bytes` calls it."""
        return ORDER_NAMES[self.layout.order]

    @cached_property
    def sizes(self) -> dict[int, int]:
        """Bytes of a number of each value type."""
        return {type: dtype(number).itemsize for type, number in self.layout.numbers.items()}

    @cached_property
    def least(self) -> dict[int, int]:
        """The fewest bytes of an element of each value type."""
        return {
            **self.sizes,
            T.STRING: minimum_size(self.layout.string),
            T.ARRAY: minimum_size(self.layout.array),
        }

    @cached_property
    def least_pair(self) -> int:
        """The fewest bytes of a pair."""
        return minimum_size(self.layout.metadata_kv)

    @cached_property
    def least_info(self) -> int:
        """The fewest bytes of an info."""
        return minimum_size(self.layout.tensor_info)

    @cached_property
    def length_width(self) -> int:
        """Bytes of a length."""
        return self.layout.length.sizeof()

    @cached_property
    def type_width(self) -> int:
        """Bytes of a value type."""
        return self.layout.value_type.sizeof()

    @cached_property
    def dimension_width(self) -> int:
        """Bytes of a dimension."""
        return self.layout.dimension.sizeof()

    @cached_property
    def by_path(self) -> dict[str, Field]:
        """Fields by their paths."""
        return {field.path: field for field in (*self.fields, *self.leaves)}

    @cached_property
    def key_names(self) -> set[str]:
        """All keys."""
        return {pair.key for pair in self.pairs}

    @cached_property
    def names(self) -> set[str]:
        """All names of tensors."""
        return {info.name for info in self.infos}

    @cached_property
    def counts_layers(self) -> bool:
        """Whether its tensors are compared with the number of layers that it declares."""
        return keys.BLOCK_COUNT.of(self.architecture) in self.key_names

    @cached_property
    def has_nested(self) -> bool:
        """Whether it has arrays of arrays, of which is warned."""
        return any(isinstance(pair.type, ArrayType) and pair.type.type == T.ARRAY for pair in self.pairs)

    def number(self, value: int, width: int) -> bytes:
        """An unsigned integer as it stands in this file."""
        return value.to_bytes(width, self.byteorder)

    def read(self, position: int, width: int) -> int:
        """The unsigned integer at a position."""
        return int.from_bytes(self.data[position : position + width], self.byteorder)

    def string(self, text: bytes) -> bytes:
        """A string with its length."""
        return self.number(len(text), self.length_width) + text

    def pair_of(self, field: Field) -> Pair:
        """The pair that a field lies in."""
        return self.pairs[int(field.path[len("metadata_kv[") : field.path.index("]")])]

    def index_of(self, field: Field) -> int:
        """The index of the info that a field lies in."""
        return int(field.path[len("tensor_infos[") : field.path.index("]")])

    @property
    def places(self) -> list[tuple[int, int]]:
        """Offset and size of each tensor."""
        return [(info.offset, info.size) for info in self.infos]

    def is_last(self, field: Field) -> bool:
        """Whether nothing is read after the value of a field, nor is it used: it ends the last pair of a file without
        tensors, and is not the alignment.
        """
        if self.infos or not field.path.startswith(f"metadata_kv[{len(self.pairs) - 1}].value"):
            return False
        if self.pairs[-1].standard is keys.ALIGNMENT:
            return False
        item = ITEM.match(field.path)
        if item is None:
            return True
        return "[" not in item[1].partition("]")[2] and int(item[2]) == self.by_path[f"{item[1]}.len"].value - 1


def mapped(data: bytes) -> Base:
    """Map a valid file.

    Raises:
        GGUFError: It cannot be opened.
    """
    with open(data) as model:
        return _mapped(data, model)


def _mapped(data: bytes, model: Model) -> Base:
    layout = structs(model.order, model.version)
    order: Any = ORDER_NAMES[model.order]
    numbers: dict[str, int] = {}
    leaves: list[Field] = []
    keys_read = [pair.key for pair in model.metadata.pairs]
    alignments = {f"metadata_kv[{i}].value" for i, key in enumerate(keys_read) if key == keys.ALIGNMENT.template}
    fields = [Field("", 0, len(data), "file", data, 0)]
    for entry in entries(model, everything):
        if entry.type == "nothing":
            continue
        kind = KINDS.get(INDEX.sub("[]", entry.path)) or _kind_in_value(entry.path, entry.type, numbers)
        is_number = entry.is_leaf and (entry.type != "bytes" or kind == "other") and kind not in BEHIND
        if kind == "integer" and entry.path in alignments:
            kind = "alignment"
        raw = data[entry.start : entry.end]
        value: Any = int.from_bytes(raw, order) if is_number else raw
        field = Field(entry.path, entry.start, entry.end, kind, value, len(leaves))
        if is_number:
            numbers[entry.path] = value
        if entry.is_leaf and kind not in BEHIND:
            leaves.append(field)
        is_empty = kind == "other" and not raw
        if kind and not is_empty and all(index in (0, count - 1) for index, count in _items(entry.path, numbers)):
            fields.append(field)
    by_path = {field.path: field for field in fields}
    architecture = model.metadata.get(keys.ARCHITECTURE.template, "")
    if not isinstance(architecture, str):
        architecture = ""
    return Base(
        data,
        layout,
        fields,
        leaves,
        list(_pairs(model, by_path, architecture)),
        list(_infos(model, by_path)),
        model.alignment,
        by_path["tensor_infos"].start,
        model.infos_end,
        model.data_offset,
        architecture,
    )


def _kind_in_value(path: str, type: str, numbers: dict[str, int]) -> str:
    """The kind of a field in a value, by the fields before it, or of one that is not heard of; empty for groups."""
    if type in ("struct", "array"):
        return ""
    if not IN_VALUE.match(path):
        return "other"
    outer, _, last = path.rpartition(".")
    if last == "string":
        return "string.string"
    if last == "type":
        return "array.type"
    if last == "len":
        return "array.len" if f"{outer}.type" in numbers else "string.len"
    item = ITEM.fullmatch(path)
    value_type = numbers.get(f"{item[1]}.type" if item else f"{path}_type")
    if value_type is None:
        return "other"
    return "bool" if value_type == T.BOOL else "float" if value_type in (T.FLOAT32, T.FLOAT64) else "integer"


def _items(path: str, numbers: dict[str, int]) -> Iterator[tuple[int, int]]:
    """The index of each array's item that a field lies in, and the number of that array's items."""
    while item := ITEM.match(path):
        yield int(item[2]), numbers[f"{item[1]}.len"]
        path = item[1]


def _pairs(model: Model, by_path: dict[str, Field], architecture: str) -> Iterator[Pair]:
    for index, pair in enumerate(model.metadata.pairs):
        standard = keys.find(pair.key, architecture)
        is_own = standard in OWN_RULES or pair.key.startswith("tokenizer.")
        yield Pair(by_path[f"metadata_kv[{index}]"], pair.key, pair.type, standard, is_own)


def _infos(model: Model, by_path: dict[str, Field]) -> Iterator[Info]:
    for index, tensor in enumerate(model.tensors.infos):
        size = n_bytes(tensor.type, tensor.dimensions) or 0
        field = by_path[f"tensor_infos[{index}]"]
        yield Info(field, tensor.name, int(tensor.type), tensor.dimensions, tensor.offset, size)


Edit = tuple[int, int, bytes]
"""Start and end of the bytes that are replaced, and what replaces them."""


def spliced(data: bytes, edits: tuple[Edit, ...]) -> bytes:
    """The bytes with the edits made, which are in their order and do not overlap."""
    if len(edits) == 1:
        ((start, end, new),) = edits
        return data[:start] + new + data[end:]
    pieces = []
    position = 0
    for start, end, new in edits:
        pieces += [data[position:start], new]
        position = end
    return b"".join([*pieces, data[position:]])


def growth(edits: tuple[Edit, ...]) -> int:
    """Bytes that edits add."""
    return sum(len(new) - (end - start) for start, end, new in edits)


def padding(end: int, alignment: int) -> bytes:
    """Zeros from a position to the alignment."""
    return bytes(align_up(end, alignment) - end)


def repaired(base: Base, edits: tuple[Edit, ...], alignment: int | None = None) -> tuple[Edit, ...]:
    """Edits of the head, and the padding that puts the tensor data back to the alignment, where there are tensors."""
    if not base.infos:
        return edits
    end = base.infos_end + growth(edits)
    return (*edits, (base.infos_end, base.data_offset, padding(end, alignment or base.alignment)))
