"""What is said of one difference."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .sequences import moved

NOTES = ("offsets", "padding", "tail", "end")
"""Kinds that are no difference of what the files say."""


class Difference(NamedTuple):
    """One difference between an old model and a new one.

    Attributes:
        kind: What differs, one of `KINDS`.
        name: The key or the tensor's name, if it is about one.
        old_path: The schema path in the old file; None where it has nothing.
        new_path: The same in the new file.
        old: What the old file says: a `MetadataKV`, an `Info`, a number, a word; None where it says nothing.
        new: The same of the new file.
        detail: More: of an array its `Hunk`s, of data its `Blocks`, of what has moved `Move`s, of offsets how many
            tensors they are; else empty.
    """

    kind: str
    name: str
    old_path: str | None
    new_path: str | None
    old: Any = None
    new: Any = None
    detail: Sequence[Any] = ()


KINDS = {
    "version": "The version of the format",
    "order": "The byte order",
    "alignment": "The alignment of the tensor data",
    "pair-removed": "A pair that only the old file has",
    "pair-added": "A pair that only the new file has",
    "pair-type": "The type of a value, or of an array's elements",
    "pair-value": "A value",
    "pair-elements": "Elements of an array",
    "pairs-moved": "Pairs that stand in another order",
    "tensor-removed": "A tensor that only the old file has",
    "tensor-added": "A tensor that only the new file has",
    "tensor-type": "The type of a tensor",
    "tensor-dimensions": "The dimensions of a tensor",
    "tensor-data": "Blocks of a tensor",
    "tensor-unknown": "Data that cannot be compared: nobody knows the blocks of the type, or how many there are",
    "tensors-moved": "Tensors that stand in another order",
    "offsets": "Where the same tensors stand in the data",
    "padding": "What is in bytes that no field has, before and between tensors: how many are not zero",
    "tail": "Bytes behind the tensor data",
    "end": "Bytes that are missing behind the last tensor, up to the alignment",
}
"""Kind → what it means. The last four are notes."""


class Move(NamedTuple):
    """A name that stands elsewhere in the order than others.

    Attributes:
        name: The key or the tensor's name.
        old: Its index in the old file.
        new: Its index in the new file.
    """

    name: str
    old: int
    new: int


def is_note(difference: Difference) -> bool:
    """Whether the models are the same for all that."""
    return difference.kind in NOTES


def placed(names: Iterable[str]) -> dict[tuple[str, int], int]:
    """The index of each name; with the name goes how often it stood before."""
    seen: dict[str, int] = {}
    found = {}
    for index, name in enumerate(names):
        found[name, seen.setdefault(name, 0)] = index
        seen[name] += 1
    return found


def moves(old: dict[tuple[str, int], int], new: dict[tuple[str, int], int]) -> list[Move]:
    """What of that which both have has moved: the fewest that explain it."""
    both = [name for name in old if name in new]
    back = {old[name]: name for name in both}
    order = sorted(both, key=new.__getitem__)
    names = [back[index] for index in moved([old[name] for name in both], [old[name] for name in order])]
    return [Move(name[0], old[name], new[name]) for name in names]
