"""What differs between two models: by key and by the name of a tensor, not by bytes and offsets.

difference   what is said of a difference
sequences    two sequences in hunks, and what has moved
metadata     pairs and their values
tensors      infos, and the data block by block
notes        what is laid out otherwise, and means the same
text         all of it as text or JSON
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..file import Model
from ..schema import ORDER_NAMES
from .difference import Difference, is_note
from .metadata import metadata
from .notes import notes
from .tensors import data, infos


def differences(
    old: Model, new: Model, with_data: bool = True, show: Callable[[int, int], None] = lambda done, whole: None
) -> Iterator[Difference]:
    """What differs between two open models, found as it is asked for: head first, then the data, then notes.

    Values are compared exactly, floats bit by bit; data in pieces of about a MiB, and across byte orders as the blocks'
    fields say it. A pair is the other model's of the same key, a tensor that of the same name; where one stands twice
    the first is compared with the first.

    Args:
        old: An open model, in one file or in shards.
        new: Another one, of any version and byte order.
        with_data: Compare the tensors' data, too.
        show: Called with the bytes of data compared so far, and all of them.

    Raises:
        GGUFError: A file is closed, or its data is not there.
    """
    if old.version != new.version:
        yield Difference("version", "", "version", "version", old.version, new.version)
    if old.order != new.order:
        yield Difference("order", "", "version", "version", *(ORDER_NAMES[model.order] for model in (old, new)))
    yield from heads(_head(old), _head(new))
    if with_data:
        yield from data(old, new, show)
    if not old.later and not new.later:
        yield from notes(old, new, with_data)


def _head(model: Model) -> Mapping[str, Any]:
    """The head of a model; of one in shards with the tensors of all, and nothing of shards."""
    infos = [info for shard in model.shards for info in shard.head.tensor_infos]
    own = {"metadata_kv": model.metadata_kv, "tensor_infos": infos}
    return {**model.head, **own} if model.later else model.head


def heads(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """What differs between two heads in the wire form: `metadata_kv`, `alignment` and `tensor_infos`; no file is read.

    Args:
        old: The fields of `GGUFStructs.head`: `Model.head`, or a mapping with those three.
        new: The other one.

    Raises:
        BuildError: A value does not fit its type.
    """
    if old["alignment"] != new["alignment"]:
        yield Difference("alignment", "", "alignment", "alignment", old["alignment"], new["alignment"])
    yield from metadata(old["metadata_kv"], new["metadata_kv"])
    yield from infos(old["tensor_infos"], new["tensor_infos"])


__all__ = ["Difference", "differences", "heads", "is_note"]
