"""Room that is left on purpose: a pair that means nothing, and shrinks and grows, so that what follows need not move.

Readers round up to the next alignment, so there is no other place for it: what stands between the infos and the data
can be no longer than that.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..enums import GGUFValueType as T

KEY = "gguf_schema.reserve"
"""No standard key, and none of any architecture. Its value is an array of UINT8, all zeros."""


def reserve_pair(size: int) -> dict[str, Any]:
    """The pair with so many bytes of room, in the wire form."""
    return {"key": KEY, "value_type": T.ARRAY, "value": {"type": T.UINT8, "array": np.zeros(size, np.uint8)}}


def is_reserve(pair: Mapping[str, Any]) -> bool:
    """Whether a pair is the reserve."""
    return pair["key"] == KEY and pair["value_type"] is T.ARRAY and pair["value"]["type"] is T.UINT8


def room(pairs: Sequence[Mapping[str, Any]]) -> int | None:
    """The bytes that pairs have in reserve; None where they have no such pair."""
    return next((len(pair["value"]["array"]) for pair in pairs if is_reserve(pair)), None)


def with_room(pairs: Sequence[Mapping[str, Any]], size: int) -> list[Any]:
    """Pairs that have so many bytes in reserve: where they had it, or else behind all others."""
    new = reserve_pair(size)
    if room(pairs) is None:
        return [*pairs, new]
    return [new if is_reserve(pair) else pair for pair in pairs]


def without_room(pairs: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Pairs that have nothing in reserve."""
    return [pair for pair in pairs if not is_reserve(pair)]
