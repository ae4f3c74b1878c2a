"""A model as shards, as llama.cpp's gguf-split makes them."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..enums import ArrayType
from ..errors import BuildError, GGUFError, shown
from ..file import Model, Tensor
from ..keys import ALIGNMENT, SPLIT_COUNT, SPLIT_KEYS, SPLIT_NO, SPLIT_TENSORS, Key
from ..layout import Fields, align_up
from ..limits import DEFAULT_ALIGNMENT
from ..targets import Piece, Range, Show, save_set
from ..tensor_data import extent
from ..terminal import printable
from ..write import Change, Plan, canonical_pieces, tensor_content
from .losing import lost
from .names import ShardName

MAX_TENSORS = 128
"""Tensors of a shard where nothing else is asked for, as gguf-split has it."""

MAX_SHARDS = (1 << 16) - 1
"""As many as `split.count` can tell."""


class Split(NamedTuple):
    """Shards that are to be written.

    Attributes:
        plans: The file of each.
        tensors: The number of tensors in each.
        changes: What merging them will not give back; of a model that was in shards already, what they do not keep.
    """

    plans: Sequence[Plan]
    tensors: Sequence[int]
    changes: Sequence[Change]

    def paths(self, prefix: str | os.PathLike[str]) -> list[str]:
        """Where the shards will be.

        Args:
            prefix: The path without what tells the number.

        Raises:
            GGUFError: It names no file.
        """
        if not os.path.basename(prefix):
            raise GGUFError(f"{os.fsdecode(prefix)!r} is no beginning of the names of files")
        return [str(name) for name in ShardName(os.fsdecode(prefix), 0, len(self.plans)).all()]

    def save(self, prefix: str | os.PathLike[str], *, overwrite: bool = True, show: Show | None = None) -> None:
        """Write the shards (see `targets.save_set`).

        Args:
            prefix: The path without what tells the number.
            overwrite: Whether files that are there may be replaced.
            show: Called with the bytes that are written and the whole, often.
        """
        pieces = (plan.pieces for plan in self.plans)
        save_set(dict(zip(self.paths(prefix), pieces, strict=True)), overwrite=overwrite, show=show)

    def __str__(self) -> str:
        """As `text`, whatever the prefix will be."""
        return self.text("…")

    def text(self, prefix: str | os.PathLike[str]) -> str:
        """A line for each shard, and what merging will not give back; text from files is escaped."""
        rows = zip(self.paths(prefix), self.tensors, self.plans, strict=True)
        lines = [f"{printable(path)}: {tensors} tensors, {plan.size} bytes" for path, tensors, plan in rows]
        lost = [f"not kept: {change.path}: {printable(change.message)}" for change in self.changes]
        return "\n".join([*lines, *lost])


def split(
    model: Model, *, max_tensors: int | None = None, max_size: int | None = None, no_tensor_first_split: bool = False
) -> Split:
    """The plan of a model as shards. It must stay open until they are saved.

    Tensors keep their order. All metadata is in the first shard; each has the keys `split.no`, `split.tensors.count`
    and `split.count`, and `general.alignment` where the model has it, so that it holds for the data of each.

    Args:
        model: The model; one in shards is divided anew.
        max_tensors: Tensors of a shard, at least 1; 128 where neither limit is given. Not with `max_size`.
        max_size: Bytes of a shard, of which only tensors count, each up to a multiple of 32. A tensor that is larger
            has a shard of its own. At least 1.
        no_tensor_first_split: Put metadata alone into the first shard.

    Raises:
        BuildError: A limit is none, or both are given. There would be too many shards, or `open` would refuse one.
        GGUFError: Data of a tensor is not there.
    """
    _demand_limits(max_tensors, max_size)
    tensors = model.tensors.infos
    infos: list[Fields] = [info for shard in model.shards for info in shard.head.tensor_infos]
    twice = [name for name, times in Counter(info["name"] for info in infos).items() if times > 1]
    if twice:
        raise BuildError(f"the name {twice[0]!r} stands more than once; shards have each once", "tensor_infos")
    data = [data_piece(tensor, model.order) for tensor in tensors]
    sizes = [align_up(piece.size, DEFAULT_ALIGNMENT) for piece in data]
    if max_size is not None:
        groups = list(_by_size(sizes, max_size))
    else:
        groups = list(_by_number(len(tensors), max_tensors or MAX_TENSORS))
    groups = groups or [range(0)]
    if no_tensor_first_split:
        groups.insert(0, range(0))
    if len(groups) > MAX_SHARDS:
        raise BuildError(f"{len(groups)} shards; {MAX_SHARDS} can be counted", SPLIT_COUNT.template)
    pairs = [pair for pair in model.head.metadata_kv if pair["key"] not in SPLIT_KEYS]
    aligned = [pair for pair in pairs if pair["key"] == ALIGNMENT.template]
    plans = []
    for number, group in enumerate(groups):
        own = [*(aligned if number else pairs), *_place(number, len(groups), len(tensors))]
        chosen = [infos[index] for index in group], [data[index] for index in group]
        plans.append(Plan(canonical_pieces(model.layout, own, *chosen)))
    return Split(plans, list(map(len, groups)), [*_replaced(model), *lost(model, data)])


def _demand_limits(max_tensors: Any, max_size: Any) -> None:
    if max_tensors is not None and max_size is not None:
        raise BuildError("a shard is limited in tensors or in bytes, not in both", "max_size")
    for name, limit in (("max_tensors", max_tensors), ("max_size", max_size)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise BuildError(f"expected a number from 1 on, found {shown(limit, 100)}", name)


def data_piece(tensor: Tensor, order: str) -> Piece:
    """The data of a tensor in a byte order; of a type that nobody knows, all up to the next tensor or the end.

    Raises:
        GGUFError: It is not there, or nobody knows how to swap it.
    """
    if tensor.n_bytes is None and tensor.order == order:
        return Piece(f"tensor {tensor.name!r}", extent(tensor), Range(tensor.file.source, tensor.data_offset))
    content, size = tensor_content(tensor, order)
    return Piece(f"tensor {tensor.name!r}", size, content)


def _by_number(count: int, most: int) -> Iterator[range]:
    """Ranges of tensors, so many in each."""
    return (range(start, min(start + most, count)) for start in range(0, count, most))


def _by_size(sizes: Sequence[int], most: int) -> Iterator[range]:
    """Ranges of tensors with so many bytes in each at most, or one tensor."""
    start = size = 0
    for index, more in enumerate(sizes):
        if size + more > most and index > start:
            yield range(start, index)
            start, size = index, 0
        size += more
    if sizes:
        yield range(start, len(sizes))


def _place(number: int, count: int, tensors: int) -> list[Fields]:
    """The pairs that tell the place of a shard, in gguf-split's order."""
    return [_pair(SPLIT_NO, number), _pair(SPLIT_TENSORS, tensors), _pair(SPLIT_COUNT, count)]


def _pair(key: Key, value: Any) -> dict[str, Any]:
    assert not isinstance(key.type, ArrayType)
    return {"key": key.template, "value_type": key.type, "value": value}


def _replaced(model: Model) -> Iterator[Change]:
    """The keys of a file that is no shard, and says what only shards should."""
    for index, pair in enumerate(() if model.later else model.head.metadata_kv):
        if pair["key"] in SPLIT_KEYS:
            yield Change(f"metadata_kv[{index}]", f"{pair['key']} is replaced, and goes when the shards are merged")
