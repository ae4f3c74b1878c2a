"""Shards as one file."""

from collections.abc import Iterator

from ..canonical import canonical
from ..file import Model
from ..keys import SPLIT_KEYS
from ..write import Change, Plan, canonical_pieces
from .splitting import data_piece


def merge(model: Model) -> Plan:
    """The plan of a model in shards as one file: the pairs of the first but `split.*`, the tensors of all, in order.

    Args:
        model: What `open_shards` opened; it must stay open until the plan is saved.

    Returns:
        The plan; its `changes` are pairs of later shards that the first one does not have, and that are left out.

    Raises:
        BuildError: `open` would refuse the file.
        GGUFError: Data of a tensor is not there.
    """
    pairs = [pair for pair in model.head.metadata_kv if pair["key"] not in SPLIT_KEYS]
    infos = [info for shard in model.shards for info in shard.head.tensor_infos]
    data = [data_piece(tensor, model.order) for tensor in model.tensors.infos]
    return Plan(canonical_pieces(model.layout, pairs, infos, data), list(_left_out(model)))


def _left_out(model: Model) -> Iterator[Change]:
    """Pairs of later shards that are not in the first."""
    first = {pair["key"]: pair for pair in model.head.metadata_kv}
    for shard in model.later:
        for index, pair in enumerate(shard.head.metadata_kv):
            held = first.get(pair["key"])
            if pair["key"] not in SPLIT_KEYS and (held is None or canonical(held) != canonical(pair)):
                yield Change(f"metadata_kv[{index}]", f"{pair['key']} of {shard.name} is left out")
