"""Metadata pairs: which are there, their types, their values, their order."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..canonical import canonical
from ..constructs import Strings
from ..enums import GGUFValueType as T
from ..layout import Fields
from ..schema import structs
from ..values import MetadataKV, plain_pairs, text
from .difference import Difference, moves, placed
from .sequences import Numbers, hunks, numbered


def metadata(old: Sequence[Fields], new: Sequence[Fields]) -> Iterator[Difference]:
    """What differs between two lists of pairs in the wire form."""
    olds, news = (placed(text(pair["key"]) for pair in pairs) for pairs in (old, new))
    for name, index in olds.items():
        if name not in news:
            yield Difference("pair-removed", name[0], f"metadata_kv[{index}]", None, _plain(old[index]))
    for name, index in news.items():
        if name not in olds:
            yield Difference("pair-added", name[0], None, f"metadata_kv[{index}]", None, _plain(new[index]))
            continue
        held = canonical(old[olds[name]]), canonical(new[index])
        if held[0] != held[1]:
            yield from _pair(name[0], f"metadata_kv[{olds[name]}]", f"metadata_kv[{index}]", *map(_parsed, held))
    if found := moves(olds, news):
        yield Difference("pairs-moved", "", "metadata_kv", "metadata_kv", detail=found)


def _parsed(data: bytes) -> Fields:
    """A pair again, whose arrays are all of one kind now, wherever they came from."""
    pair: Fields = structs().metadata_kv.parse(data)
    return pair


def _plain(pair: Fields) -> MetadataKV:
    """A pair with a plain value."""
    return plain_pairs([_parsed(canonical(pair))])[0]


def _pair(key: str, old_path: str, new_path: str, old: Fields, new: Fields) -> Iterator[Difference]:
    """How two pairs of one key differ that do."""
    if old["value_type"] is T.ARRAY and new["value_type"] is T.ARRAY:
        yield from _array(key, f"{old_path}.value", f"{new_path}.value", old["value"], new["value"])
        return
    is_type = old["value_type"] != new["value_type"]
    kind, field = ("pair-type", "value_type") if is_type else ("pair-value", "value")
    before, after = plain_pairs([old, new])
    yield Difference(kind, key, f"{old_path}.{field}", f"{new_path}.{field}", before, after)


def _array(key: str, old_path: str, new_path: str, old: Fields, new: Fields) -> Iterator[Difference]:
    """How two arrays differ that do; of arrays in them that stand in each other's place only what differs there."""
    before, after = plain_pairs({"key": key, "value_type": T.ARRAY, "value": array} for array in (old, new))
    if old["type"] != new["type"]:
        yield Difference("pair-type", key, f"{old_path}.type", f"{new_path}.type", before, after)
        return
    whole = []
    for hunk in hunks(*_numbers(old, new), in_place=old["type"] is not T.STRING):
        size = hunk.old_end - hunk.old_start
        if old["type"] is not T.ARRAY or size != hunk.new_end - hunk.new_start:
            whole.append(hunk)
            continue
        for i, j in zip(range(hunk.old_start, hunk.old_end), range(hunk.new_start, hunk.new_end), strict=True):
            paths = f"{old_path}.array[{i}]", f"{new_path}.array[{j}]"
            yield from _array(key, *paths, old["array"][i], new["array"][j])
    if whole:
        yield Difference("pair-elements", key, f"{old_path}.array", f"{new_path}.array", before, after, whole)


def _numbers(old: Fields, new: Fields) -> tuple[Numbers, Numbers]:
    """The elements of two arrays of one type as numbers."""
    first, second = old["array"], new["array"]
    if isinstance(first, Strings):
        return numbered(first.raw(), second.raw())
    if isinstance(first, np.ndarray):
        bits = np.concatenate([array.view(f"u{array.itemsize}") for array in (first, second)])
        numbers = np.unique(bits, return_inverse=True)[1].astype(np.int64)
        return numbers[: len(first)], numbers[len(first) :]
    return numbered(*(map(structs().array.build, array) for array in (first, second)))
