"""Files of the suite: written out in the wire form, built by the schema, and changed in one place by its path."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import annotate
from ..blocks import block
from ..enums import GGMLQuantizationType, GGUFValueType
from ..enums import GGUFValueType as T
from ..errors import GGUFError
from ..file import any_source, open, trace_head
from ..keys import ALIGNMENT, ARCHITECTURE
from ..layout import align_up, alignment_of, known_sizes, place
from ..schema import GGUF, LATEST_VERSION, GGUFStructs, sniff
from ..sources import Reader
from ..walk import Node, children, unwrap

Draft = dict[str, Any]
"""A file in the wire form, as `GGUF.build` takes it; tensor data and offsets may be left out (see `placed`)."""

LARGEST = 1 << 14
"""Bytes of tensor data that a file of the suite has at most; of tensors that declare more it has none."""

STEP = re.compile(r"[^.\[\]]+")


class Made(NamedTuple):
    """A file that was made.

    Attributes:
        data: Its bytes.
        draft: What is to be read of it; None where nothing can be.
    """

    data: bytes
    draft: Draft | None


Change = Callable[[Made], Made]
"""Makes one file of another that differs in one thing."""


def pair(key: str, type: GGUFValueType, value: Any) -> dict[str, Any]:
    """A metadata pair."""
    return {"key": key, "value_type": type, "value": value}


def text(key: str, value: str) -> dict[str, Any]:
    """A pair with a string."""
    return pair(key, T.STRING, value)


def number(key: str, value: int, type: GGUFValueType = T.UINT32) -> dict[str, Any]:
    """A pair with a number."""
    return pair(key, type, value)


def items(type: GGUFValueType, *values: Any) -> dict[str, Any]:
    """An array."""
    return {"type": type, "array": list(values)}


def array(key: str, type: GGUFValueType, *values: Any) -> dict[str, Any]:
    """A pair with an array."""
    return pair(key, T.ARRAY, items(type, *values))


def alignment(value: int) -> dict[str, Any]:
    """The pair of an alignment."""
    return number(ALIGNMENT.template, value)


def tensor(name: str, type: int = GGMLQuantizationType.F32, *dimensions: int, **more: int) -> dict[str, Any]:
    """A tensor info; of four elements where no dimensions are given."""
    return {"name": name, "dimensions": list(dimensions or (4,)), "type": type, **more}


def drafted(*pairs: dict[str, Any], tensors: tuple[dict[str, Any], ...] = (), **more: Any) -> Draft:
    """A file of these pairs and tensors."""
    return {"order": "<", "version": LATEST_VERSION, "metadata_kv": list(pairs), "tensor_infos": list(tensors), **more}


ARCH = text(ARCHITECTURE.template, "llama")
QUANTISED = number("general.quantization_version", 2)


def toy(*pairs: dict[str, Any], tensors: tuple[dict[str, Any], ...] = (), **more: Any) -> Draft:
    """The same after the pair that every model has."""
    return drafted(ARCH, *pairs, tensors=tensors, **more)


def built(draft: Draft) -> Made:
    """The file of a draft."""
    return Made(GGUF.build(placed(draft)), draft)


def placed(draft: Draft) -> Draft:
    """A draft with all that it does not tell: the offsets of tensors that follow each other, and tensor data."""
    infos = draft["tensor_infos"]
    sizes = [size if size is not None and size <= LARGEST else 0 for size in known_sizes(infos)]
    aligned = alignment_of(draft["metadata_kv"])
    infos = [{"offset": at, **info} for info, at in zip(infos, place(sizes, aligned), strict=True)]
    return {"tensor_data": _tensor_data(infos, sizes, aligned), **draft, "tensor_infos": infos}


def _tensor_data(infos: list[dict[str, Any]], sizes: list[int], aligned: int) -> bytes:
    """The data of all tensors."""
    ends = [info["offset"] + size for info, size in zip(infos, sizes, strict=True) if size]
    data = bytearray(align_up(max((end for end in ends if end <= LARGEST), default=0), aligned))
    for index, (info, size) in enumerate(zip(infos, sizes, strict=True)):
        if info["offset"] + size <= LARGEST:
            data[info["offset"] : info["offset"] + size] = tensor_bytes(index, size)
    return bytes(data)


def tensor_bytes(index: int, size: int) -> bytes:
    """Data of which every piece looks different, and no piece is a NaN or an infinity in any type."""
    return bytes(1 + (7 * position + 17 * index + position // 59) % 59 for position in range(size))


def put(path: str, value: Any) -> Change:
    """Another value in the wire form: counts and lengths follow, and so does what is to be read."""
    return lambda made: built(_with(made.draft, path, value))


def _with(draft: Draft | None, path: str, value: Any) -> Draft:
    draft = copy.deepcopy(draft)
    assert draft is not None
    *outer, last = (int(step) if step.isdigit() else step for step in STEP.findall(path))
    inside: Any = draft
    for step in outer:
        inside = inside[step]
    inside[last] = value
    return draft


def damage(path: str, value: int) -> Change:
    """Another number in one field, whatever the others say."""

    def change(made: Made) -> Made:
        node = nodes(made.data)[path]
        return Made(made.data[: node.start] + unwrap(node.con).build(value) + made.data[node.end :], None)

    return change


def replace(path: str, data: bytes) -> Change:
    """Other bytes in the place of a field, perhaps more or fewer."""

    def change(made: Made) -> Made:
        start, end = span(made.data, path)
        return Made(made.data[:start] + data + made.data[end:], None)

    return change


def fill(path: str, byte: int) -> Change:
    """A byte in every place of a field that means nothing."""

    def change(made: Made) -> Made:
        start, end = span(made.data, path)
        return Made(made.data[:start] + bytes([byte]) * (end - start) + made.data[end:], made.draft)

    return change


def cut(path: str, kept: int = 0) -> Change:
    """The file ends within a field, so many bytes after its start, or before its end where the number is negative."""

    def change(made: Made) -> Made:
        start, end = span(made.data, path)
        return Made(made.data[: (start if kept >= 0 else end) + kept], None)

    return change


def plant(path: str, value: float) -> Change:
    """Another number in a field of a block of tensor data, such as `tensor_data[0][1].d`."""

    def change(made: Made) -> Made:
        assert made.draft is not None
        index, name = int(STEP.findall(path)[1]), path.rpartition(".")[2]
        struct = block(made.draft["tensor_infos"][index]["type"], made.draft["order"])
        (con,) = (child for child in children(struct) if child.name == name)
        return _with_data(made, path, con.build(value))

    return change


def blank(path: str) -> Change:
    """Zeros in the place of a tensor's data."""

    def change(made: Made) -> Made:
        start, end = span(made.data, path)
        return _with_data(made, path, bytes(end - start))

    return change


def _with_data(made: Made, path: str, data: bytes) -> Made:
    """The file with other bytes in its tensor data, from a path on."""
    assert made.draft is not None
    with open(made.data, check=False) as model:
        start = span(made.data, path)[0] - model.data_offset
    before = placed(made.draft)["tensor_data"]
    return built({**made.draft, "tensor_data": before[:start] + data + before[start + len(data) :]})


def unpad(made: Made) -> Made:
    """The file ends with the last tensor, without padding."""
    assert made.draft is not None
    last = len(made.draft["tensor_infos"]) - 1
    start, _ = span(made.data, f"tensor_data[{last}].padding")
    return Made(made.data[:start], made.draft)


def append(data: bytes) -> Change:
    """More bytes at the end."""
    return lambda made: Made(made.data + data, made.draft)


def levels(layout: GGUFStructs, count: int) -> bytes:
    """An array of arrays of arrays, so many levels deep, the innermost with one number."""
    head = layout.value_type.build(T.ARRAY) + layout.length.build(1)
    innermost: bytes = layout.array.build(items(T.UINT8, 1))
    return bytes(head) * (count - 1) + innermost


def nodes(data: bytes) -> dict[str, Node]:
    """Every field up to the tensor infos by its path, as far as the file can be parsed; of nested arrays the outer."""
    found: dict[str, Node] = {}
    try:
        for node in _traced(data):
            found[node.path] = node
    except GGUFError:
        pass
    return found


def _traced(data: bytes) -> Iterator[Node]:
    source = any_source(data)
    return trace_head(source, sniff(Reader(source)), lambda path, items: path.count(".array") < 2)


def span(data: bytes, path: str) -> tuple[int, int]:
    """Where a field is: absolute offsets of its first byte, and after its last.

    What can be missing at the end of a file, `tensor_data`, is then at its end.
    """
    found = nodes(data)
    if path in found:
        return found[path].start, found[path].end
    if path == "tensor_data":
        return len(data), len(data)
    with open(data, check=False) as model:
        for entry in annotate.where(model, path):
            return entry.start, entry.end
        return model.infos_end, model.infos_end
