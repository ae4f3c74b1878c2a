"""What is said of one difference.

Kinds, which are also in the JSON, and stay:

version order alignment                 of the file
pair-removed pair-added                 only one file has the pair
pair-type pair-value pair-elements      the type of a value or of an array's elements; a value; elements of an array
pairs-moved                             pairs stand in another order
tensor-removed tensor-added             only one file has the tensor
tensor-type tensor-dimensions           as its info says
tensor-data                             blocks of its data
tensor-unknown                          its data cannot be compared: nobody knows its blocks, or how many there are
tensors-moved                           tensors stand in another order

and, as notes:

offsets     the same tensors stand elsewhere in the data
padding     bytes before and between tensors: how many are not zero
tail        bytes behind the data
end         bytes that are missing behind the last tensor, up to the alignment
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .sequences import moved

NOTES = ("offsets", "padding", "tail", "end")
"""Kinds that are no difference of what the models are."""


class Difference(NamedTuple):
    """One difference between an old model and a new one.

    Attributes:
        kind: What differs (see above).
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
