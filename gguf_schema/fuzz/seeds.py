"""A few small files that exercise the format as well as many do, for fuzzers that begin with files."""

from collections.abc import Iterator
from itertools import count

from ..blocks import block_sizes
from ..generate import Extent, Seeded
from ..generate.files import ALIGNMENTS, LAYOUTS, file
from ..schema import structs
from ..validate import PROFILES, REJECT, check, verdict
from .coverage import KINDS, Alternative, exercised, few

LARGEST = 2 * max(type_size for _, type_size in block_sizes().values())
"""Bytes of a seed: enough for a block of any type, and what is around it."""

ROUNDS = 100
"""Files of each layout and extent that seeds are chosen from, at least."""

EXTENTS = (Extent(items=(0, 2), letters=(0, 4), levels=1), Extent(items=(0, 2), letters=(0, 4), valid=False))
PAIRS, TENSORS, SMALL_ALIGNMENTS = (0, 4), (0, 2), ALIGNMENTS[:4]
"""What makes files small."""

ALL = {(kind, one) for kind, every in KINDS.items() if kind != "rules" for one in every}
"""What seeds must have; of rules, they have those that files which are not refused can break."""


def seeds() -> list[bytes]:
    """Files that none of the rules of `open` refuses, the small ones first; the same every time."""
    whole: dict[bytes, set[Alternative]] = {}
    for made in _rounds():
        for data in made:
            if len(data) <= LARGEST and data not in whole and verdict(check(data), PROFILES["default"]) != REJECT:
                whole[data] = exercised(data)
        if set().union(*whole.values()) >= ALL:
            break
    return sorted(few({data: whole[data] for data in sorted(whole, key=_size)}), key=_size)


def _size(data: bytes) -> tuple[int, bytes]:
    return len(data), data


def _rounds() -> Iterator[list[bytes]]:
    """Files of all layouts, valid ones and odd ones: enough to choose from, then ever more."""
    yield [data for number in range(ROUNDS) for data in _round(number)]
    for number in count(ROUNDS):
        yield list(_round(number))


def _round(number: int) -> Iterator[bytes]:
    for order, version in LAYOUTS:
        layout = structs(order, version)
        for extent in EXTENTS:
            made = file(Seeded(number), layout, extent, None, None, SMALL_ALIGNMENTS, PAIRS, TENSORS)
            yield layout.gguf.build(made)
