"""Room that is left on purpose: a pair that means nothing, and shrinks and grows, so that what follows need not move.

Readers round up to the next alignment, so there is no other place for it: what stands between the infos and the data
can be no longer than that.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..enums import GGUFValueType as T
from ..journal import LARGEST

KEY = "gguf_schema.reserve"
"""No standard key, and none of any architecture. Its value is an array of UINT8, all zeros."""

MOST_IN_PLACE = LARGEST // 4
"""Bytes that are changed in place, and so are of use in reserve, at most.

They are held in memory, and the record of the change has them twice.
"""


def reserve_pair(size: int) -> dict[str, Any]:
    """The pair with so many bytes of room, in the wire form."""
    return {"key": KEY, "value_type": T.ARRAY, "value": {"type": T.UINT8, "array": np.zeros(size, np.uint8)}}


def is_reserve(pair: Mapping[str, Any]) -> bool:
    """Whether a pair may be the reserve: of its key and type, and zeros, and no more than can be changed in place."""
    if pair["key"] != KEY or pair["value_type"] is not T.ARRAY or pair["value"]["type"] is not T.UINT8:
        return False
    held = pair["value"]["array"]
    return len(held) <= MOST_IN_PLACE and not np.any(held)


def place_of(pairs: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the reserve: the last pair that may be it, any other is a pair like others; None where none is."""
    return max((index for index, pair in enumerate(pairs) if is_reserve(pair)), default=None)


def room(pairs: Sequence[Mapping[str, Any]]) -> int | None:
    """The bytes that pairs have in reserve; None where they have no such pair."""
    place = place_of(pairs)
    return None if place is None else len(pairs[place]["value"]["array"])


def with_room(pairs: Sequence[Mapping[str, Any]], size: int) -> list[Any]:
    """Pairs that have so many bytes in reserve: where they had it, or else behind all others."""
    place = place_of(pairs)
    place = len(pairs) if place is None else place
    return [*pairs[:place], reserve_pair(size), *pairs[place + 1 :]]


def without_room(pairs: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Pairs without the reserve."""
    place = place_of(pairs)
    return [pair for index, pair in enumerate(pairs) if index != place]
