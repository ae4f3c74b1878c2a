"""Shards as one file."""

from ..file import Model
from ..keys import SPLIT_KEYS
from ..write import Plan, canonical_pieces
from .losing import lost
from .splitting import data_piece


def merge(model: Model) -> Plan:
    """The plan of a model in shards as one file: the pairs of the first but `split.*`, the tensors of all, in order.

    Args:
        model: What `open_shards` opened; it must stay open until the plan is saved.

    Returns:
        The plan; its `changes` are what it does not keep of the shards: pairs of later ones that the first does not
        have, other versions and alignments than its, gaps, odd padding, tails.

    Raises:
        BuildError: `open` would refuse the file.
        GGUFError: Data of a tensor is not there.
    """
    pairs = [pair for pair in model.head.metadata_kv if pair["key"] not in SPLIT_KEYS]
    infos = [info for shard in model.shards for info in shard.head.tensor_infos]
    data = [data_piece(tensor, model.order) for tensor in model.tensors.infos]
    return Plan(canonical_pieces(model.layout, pairs, infos, data), list(lost(model, data)))
