"""Tensors: which are there, their types, dimensions and order; their data, block by block."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..file import Model, Tensor
from ..tensor_data import extent, pieces
from ..values import text
from .difference import Difference, moves, placed

Layout: TypeAlias = np.dtype[Any]


class Info(NamedTuple):
    """What a file says of a tensor.

    Attributes:
        type: Its type.
        dimensions: In file order, fastest first.
    """

    type: int
    dimensions: tuple[int, ...]


class Blocks(NamedTuple):
    """What differs in the data of a tensor.

    Attributes:
        first: The index of the first block that does; of plain types a block is an element, of unknown ones a byte.
        different: How many do.
        of: How many there are.
    """

    first: int
    different: int
    of: int


def infos(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    """What differs between two lists of tensor infos in the wire form; where the data stands does not count."""
    olds, news = (placed(text(info["name"]) for info in tensors) for tensors in (old, new))
    for name, index in olds.items():
        if name not in news:
            yield Difference("tensor-removed", name[0], f"tensor_infos[{index}]", None, _info(old[index]))
    for name, index in news.items():
        if name not in olds:
            yield Difference("tensor-added", name[0], None, f"tensor_infos[{index}]", None, _info(new[index]))
            continue
        pair = _info(old[olds[name]]), _info(new[index])
        paths = f"tensor_infos[{olds[name]}]", f"tensor_infos[{index}]"
        for field in Info._fields:
            if getattr(pair[0], field) != getattr(pair[1], field):
                yield Difference(f"tensor-{field}", name[0], f"{paths[0]}.{field}", f"{paths[1]}.{field}", *pair)
    if found := moves(olds, news):
        yield Difference("tensors-moved", "", "tensor_infos", "tensor_infos", detail=found)


def _info(info: Mapping[str, Any]) -> Info:
    return Info(info["type"], tuple(map(int, info["dimensions"])))


def data(old: Model, new: Model, show: Callable[[int, int], None]) -> Iterator[Difference]:
    """What differs in the data of the tensors that both have with the same type and dimensions, in the old order.

    Args:
        old: An open model.
        new: Another one.
        show: Called with the bytes compared so far, and all of them.

    Raises:
        GGUFError: A file is closed, or the data is not there.
    """
    olds, news = (placed(tensor.name for tensor in model.tensors.infos) for model in (old, new))
    common = []
    for name, index in olds.items():
        if name in news:
            pair = old.tensors.infos[index], new.tensors.infos[news[name]]
            if (pair[0].type, pair[0].dimensions) == (pair[1].type, pair[1].dimensions):
                common.append((index, news[name], *pair))
    whole = sum(extent(old, first) for _, _, first, _ in common)
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        show(done, whole)

    for i, j, first, second in common:
        place = first.name, f"tensor_data[{i}]", f"tensor_data[{j}]"
        sizes = extent(old, first), extent(new, second)
        layouts = _layout(first, sizes[0]), _layout(second, sizes[1])
        if sizes[0] != sizes[1] or (first.order != second.order and layouts[0] is None):
            yield Difference("tensor-unknown", *place, *sizes)
        else:
            size = layouts[0].itemsize if layouts[0] else 1
            pairs = zip(pieces(old, first, size), pieces(new, second, size), strict=True)
            if blocks := _compared(pairs, *layouts, count):
                yield Difference("tensor-data", *place, detail=[blocks])


def _layout(tensor: Tensor, size: int) -> Layout | None:
    """The dtype of a block, if the data is whole blocks of a known type."""
    struct = tensor.block
    return None if struct is None or size % struct.type_size else struct.dtype()


def _compared(
    pairs: Iterable[tuple[bytes, bytes]], old: Layout | None, new: Layout | None, count: Callable[[int], None]
) -> Blocks | None:
    """The blocks that differ; where the layouts do, values are compared. Without layouts a byte is a block."""
    size = old.itemsize if old else 1
    done = different = 0
    start = None
    for first, second in pairs:
        if old is not None and new is not None and old != new:
            first = np.frombuffer(first, old).astype(new).tobytes()
        if first != second:
            differ = np.frombuffer(first, f"V{size}") != np.frombuffer(second, f"V{size}")
            start = done // size + int(differ.argmax()) if start is None else start
            different += int(np.count_nonzero(differ))
        done += len(second)
        count(len(second))
    return None if start is None else Blocks(start, different, done // size)
