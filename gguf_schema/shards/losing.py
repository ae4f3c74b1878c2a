"""What neither shards nor one file of them keep of the files of a model."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from ..canonical import canonical
from ..file import Model
from ..keys import SPLIT_KEYS
from ..targets import Piece
from ..write import Change, not_kept


def lost(model: Model, data: Sequence[Piece]) -> Iterator[Change]:
    """What becomes of all that is not canonical, in every file; where there are several, messages name the file.

    Args:
        model: The model; what is made of it has the version and the alignment of its first file.
        data: The data of its tensors.
    """
    left = iter(data)
    held = {canonical(pair) for pair in model.head.metadata_kv} if model.later else set()
    for shard in model.shards:
        infos = shard.head.tensor_infos
        changes = list(not_kept(shard, infos, list(islice(left, len(infos))), shard.alignment))
        if not model.later:
            yield from changes
            return
        for path, message in (*_unlike(model, held, shard), *_moved(changes, len(infos))):
            yield Change(path, f"in {shard.name} {message}")


def _unlike(first: Model, held: Collection[bytes], shard: Model) -> Iterator[Change]:
    """What of a shard gives way to the first one, which holds these pairs."""
    for field in "version", "alignment":
        old, new = getattr(shard, field), getattr(first, field)
        if old != new:
            yield Change(field, f"{old} becomes {new}")
    for index, pair in enumerate(shard.head.metadata_kv):
        if pair["key"] not in SPLIT_KEYS and canonical(pair) not in held:
            yield Change(f"metadata_kv[{index}]", f"{pair['key']} is left out")


def _moved(changes: Sequence[Change], tensors: int) -> Iterator[Change]:
    """The changes; in place of offsets, which are others in another file, how many tensors stand oddly."""
    others = [change for change in changes if not change.path.startswith("tensor_infos[")]
    moves = len(changes) - len(others)
    if moves:
        yield Change("tensor_infos", f"{moves} of {tensors} tensors do not follow each other in the order of the infos")
    yield from others
