"""Differences as text for a person, and as JSON for programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..enums import ArrayType, GGUFValueType
from ..layout import type_name
from ..terminal import printable
from ..values import MetadataKV, exact_float, exact_json
from .difference import Difference, Move, is_note
from .sequences import Hunk, hunks, numbered
from .tensors import Blocks, Info

HUNKS, ELEMENTS, MOVES, LETTERS = 10, 6, 10, 200
"""How much is shown: hunks of an array, elements and lines of a hunk, names that moved, letters of a value."""


def as_text(old: str, new: str, found: Iterable[Difference]) -> str:
    """Lines as `diff -u` has them: `-` is what only the old file has, `+` what only the new one has, `~` what changed.

    Args:
        old: Name of the old file.
        new: Name of the new file.
        found: The differences.

    Returns:
        The text, in which nothing is left that a terminal would obey; empty without differences.
    """
    lines = [line for difference in found for line in _lines(difference)]
    return "\n".join([f"--- {printable(old)}", f"+++ {printable(new)}", *lines]) if lines else ""


def as_json(old: str, new: str, found: Iterable[Difference], with_data: bool) -> str:
    """One JSON object: `old` and `new` (names), `same`, `data` (whether it was compared), `differences`, `notes`.

    Each difference has `kind`, `name`, `old_path`, `new_path`, `old` and `new`. In the last two, pairs are objects of
    `type` and `value`, infos of `type` and `dimensions`; values are those of `values.exact_json`. Instead of them, an
    array that changed has `hunks`, with index and elements on each side, data `blocks`, and an order `moved`.
    """
    records: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for difference in found:
        records[is_note(difference)].append(_record(difference))
    document = {
        "old": old,
        "new": new,
        "same": not records[False],
        "data": with_data,
        "differences": records[False],
        "notes": records[True],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _record(difference: Difference) -> dict[str, Any]:
    kind, name, old_path, new_path, old, new, detail = difference
    record: dict[str, Any] = {"kind": kind, "name": name, "old_path": old_path, "new_path": new_path}
    if kind == "pair-elements":
        record["hunks"] = [
            {
                "old_start": hunk.old_start,
                "old": _elements(old, hunk.old_start, hunk.old_end),
                "new_start": hunk.new_start,
                "new": _elements(new, hunk.new_start, hunk.new_end),
            }
            for hunk in detail
        ]
        return {**record, "type": str(new.type)}
    if kind == "tensor-data":
        return {**record, "blocks": detail[0]._asdict()}
    if kind in ("pairs-moved", "tensors-moved"):
        return {**record, "moved": [move._asdict() for move in detail]}
    return {**record, "old": _json(old), "new": _json(new)}


def _json(side: Any) -> Any:
    if isinstance(side, MetadataKV):
        return {"type": str(side.type), "value": exact_json(side.type, side.value)}
    if isinstance(side, Info):
        return {"type": type_name(side.type), "dimensions": list(side.dimensions)}
    return side


def _elements(pair: MetadataKV, start: int, end: int) -> Any:
    """Some elements of an array as JSON has them."""
    assert isinstance(pair.type, ArrayType)
    return exact_json(ArrayType(pair.type.type, pair.type.items[start:end]), pair.value[start:end])


def _lines(difference: Difference) -> Iterator[str]:
    kind, name, _, _, old, new, detail = difference
    shown = printable(name)
    match kind:
        case "version" | "order" | "alignment":
            yield f"~ {'byte order' if kind == 'order' else kind}: {old} -> {new}"
        case "pair-removed":
            yield f"- {shown}: {old.type} = {_value(old)}"
        case "pair-added":
            yield f"+ {shown}: {new.type} = {_value(new)}"
        case "pair-type":
            yield f"~ {shown}: {old.type} = {_value(old)} -> {new.type} = {_value(new)}"
        case "pair-value" if old.type is GGUFValueType.STRING and "\n" in old.value + new.value:
            yield f"~ {shown}: {new.type}, lines"
            yield from _text_hunks(old.value, new.value)
        case "pair-value":
            yield f"~ {shown}: {new.type} {_value(old)} -> {_value(new)}"
        case "pair-elements":
            path = printable(difference.new_path or "").partition(".value")[2].removesuffix(".array")
            yield f"~ {shown}{path}: {new.type}, {len(old.value)} -> {len(new.value)} elements"
            yield from _hunks(old.value, new.value, detail, new.type.type)
        case "tensor-removed":
            yield f"- tensor {shown}: {_info(old)}"
        case "tensor-added":
            yield f"+ tensor {shown}: {_info(new)}"
        case "tensor-type" | "tensor-dimensions":
            yield f"~ tensor {shown}: {_info(old)} -> {_info(new)}"
        case "tensor-data":
            blocks: Blocks = detail[0]
            yield f"~ tensor {shown}: {blocks.different} of {blocks.of} blocks differ, the first is {blocks.first}"
        case "tensor-unknown":
            yield f"~ tensor {shown}: data of {old} and {new} bytes cannot be compared: its blocks are not known"
        case "pairs-moved" | "tensors-moved":
            yield f"~ order of {kind.partition('-')[0]}: {_moves(detail)}"
        case "offsets":
            yield f"  note: {detail[0]} tensors stand elsewhere in the data; the first is {shown}: {old} -> {new}"
        case "padding":
            yield f"  note: padding differs: {old} -> {new} bytes that are not zero"
        case "tail":
            yield f"  note: bytes behind the data differ: {old} -> {new} bytes"
        case "end":
            yield f"  note: bytes missing behind the last tensor, up to the alignment: {old} -> {new}"


def _value(pair: MetadataKV) -> str:
    """A value in few letters."""
    if not isinstance(pair.type, ArrayType):
        return _element(pair.type, pair.value)
    elements = ", ".join(_element(pair.type.type, value) for value in pair.value[:ELEMENTS])
    return f"{len(pair.value)} of [{elements}{', …' if len(pair.value) > ELEMENTS else ''}]"


def _element(type: GGUFValueType, value: Any) -> str:
    """A value that is no array, or an element of one, in few letters."""
    if type is GGUFValueType.ARRAY:
        return f"{len(value)} elements"
    if isinstance(value, float | np.floating):
        return str(exact_float(type, value))
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}…"


def _info(info: Info) -> str:
    return f"{type_name(info.type)} [{', '.join(map(str, info.dimensions))}]"


def _moves(found: Sequence[Move]) -> str:
    shown = ", ".join(f"{printable(move.name)} ({move.old} -> {move.new})" for move in found[:MOVES])
    return f"{shown}{f' and {len(found) - MOVES} more' if len(found) > MOVES else ''}"


def _hunks(old: Any, new: Any, found: Sequence[Hunk], type: GGUFValueType) -> Iterator[str]:
    """Hunks with their elements; indices count from 0."""
    for hunk in found[:HUNKS]:
        sizes = hunk.old_end - hunk.old_start, hunk.new_end - hunk.new_start
        yield f"  @@ -{hunk.old_start},{sizes[0]} +{hunk.new_start},{sizes[1]} @@"
        for sign, values, start, size in (("-", old, hunk.old_start, sizes[0]), ("+", new, hunk.new_start, sizes[1])):
            yield from (f"  {sign} {_element(type, value)}" for value in values[start : start + min(size, ELEMENTS)])
            if size > ELEMENTS:
                yield f"  {sign} … {size - ELEMENTS} more"
    if len(found) > HUNKS:
        yield f"  … {len(found) - HUNKS} more hunks"


def _text_hunks(old: str, new: str) -> Iterator[str]:
    """The lines in which two texts differ."""
    olds, news = old.splitlines(keepends=True), new.splitlines(keepends=True)
    encoded = ((line.encode("utf-8", "surrogateescape") for line in lines) for lines in (olds, news))
    return _hunks(olds, news, hunks(*numbered(*encoded)), GGUFValueType.STRING)
