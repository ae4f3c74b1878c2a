"""What is laid out otherwise, and means the same: where the data stands, and bytes that no field has."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from ..annotate import data_entries
from ..file import Model
from ..layout import align_up
from ..tensor_data import CHUNK, read_exactly
from .difference import Difference


def notes(old: Model, new: Model, with_data: bool) -> Iterator[Difference]:
    """What differs in the layout and is no consequence of other differences.

    Args:
        old: An open model.
        new: Another one.
        with_data: Read the bytes that no field has.

    Raises:
        GGUFError: A file is closed, or has shrunk.
    """
    if _shape(old) == _shape(new):
        offsets = [[tensor.offset for tensor in model.tensors.infos] for model in (old, new)]
        places = [index for index, (first, second) in enumerate(zip(*offsets, strict=True)) if first != second]
        for index in places[:1]:
            name, path = old.tensors.infos[index].name, f"tensor_infos[{index}].offset"
            yield Difference("offsets", name, path, path, offsets[0][index], offsets[1][index], [len(places)])
    if not with_data:
        return
    first, second = _spare(old), _spare(new)
    for field in Spare._fields:
        values = getattr(first, field), getattr(second, field)
        if values[0] != values[1]:
            path = "tail" if field == "tail" else "tensor_data"
            yield Difference(field, "", path, path, values[0].size, values[1].size)


def _shape(model: Model) -> tuple[object, ...]:
    """What determines where a writer puts the tensors."""
    return model.alignment, [(tensor.name, tensor.n_bytes) for tensor in model.tensors.infos]


class Content(NamedTuple):
    """Bytes, told by their number and a checksum."""

    size: int
    checksum: int


class Spare(NamedTuple):
    """Bytes that no field has.

    Attributes:
        padding: Those of the padding that are not zero.
        tail: Those behind the data.
        end: Those that are missing behind the last tensor.
    """

    padding: Content
    tail: Content
    end: Content


def _spare(model: Model) -> Spare:
    """The bytes of a file that no field has."""
    padding, tail = Content(0, 0), Content(0, 0)
    end = model.data_offset
    for entry in data_entries(model):
        if entry.path == "tail":
            for chunk in _read(model, entry.start, entry.end):
                tail = Content(tail.size + len(chunk), zlib.crc32(chunk, tail.checksum))
        elif entry.path.endswith("padding"):
            for chunk in _read(model, entry.start, entry.end):
                odd = len(chunk) - chunk.count(0)
                if odd:
                    padding = Content(padding.size + odd, zlib.crc32(chunk, padding.checksum))
        end = max(end, entry.end)
    missing = align_up(end, model.alignment) - end if model.tensors.infos else 0
    return Spare(padding, tail, Content(0 if tail.size else missing, 0))


def _read(model: Model, start: int, end: int) -> Iterator[bytes]:
    for position in range(start, end, CHUNK):
        yield read_exactly(model, position, min(CHUNK, end - position))
