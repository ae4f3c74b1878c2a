"""An open file written again: with every byte that an edit of its head leaves in place, or made canonical."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..enums import GGUFValueType
from ..errors import BuildError, shown
from ..file import Model, Tensor
from ..layout import Fields, align_up, alignment_of, known_sizes, place
from ..schema import GGUFStructs
from ..targets import Piece, Range
from ..values import is_sequence
from .arguments import in_path
from .plans import Change, Plan, canonical_pieces, demand_sound, head_of, head_piece, padding
from .tensors import tensor_content


def rewrite(
    model: Model, head: Fields | None = None, *, layout: GGUFStructs | None = None, canonical: bool = False
) -> Plan:
    """The plan of an open file written again.

    Args:
        model: The file. It must stay open until the plan is saved; its own path may be the target.
        head: What takes the place of `model.head`, in the wire form: `metadata_kv` and `tensor_infos`. The offset of an
            info says where in `model` its data is, so infos may be renamed, reordered and left out.
        layout: The constructs of another version or byte order, in which tensors are swapped block by block.
        canonical: False keeps all that follows the head, byte by byte: gaps, what is in them, other paddings, a tail,
            data that no info tells of any more. Only zeros before the data are as many as are needed. True puts
            tensors in the order of the infos, each at the next multiple of the alignment, with zeros between and after
            them, and nothing else; and makes BOOL bytes 0 or 1. `Plan.changes` tells what that changes.

    Returns:
        The plan; its `changes` are what was not edited and will still differ.

    Raises:
        BuildError: A value does not fit its type, the alignment changes where all is kept, `open` would refuse the
            file, or nobody knows how to swap a type's bytes.
        GGUFError: The model is in several files.
    """
    model.demand_one_file()
    fields = model.head if head is None else head
    _demand_wire_form(fields)
    remade = _canonical if canonical else _faithful
    return remade(model, layout or model.layout, fields["metadata_kv"], fields["tensor_infos"])


INTEGER = int | np.integer
NEEDED: dict[str, dict[str, Any]] = {
    "metadata_kv": {"key": str | bytes, "value_type": INTEGER, "value": object},
    "tensor_infos": {"name": str | bytes, "dimensions": list | tuple, "type": INTEGER},
}
"""Records of a head → their fields, and of which kind; offsets are asked for where it is said what they are for."""


def _demand_wire_form(head: Fields) -> None:
    """Refuse what is no head in the wire form, as far as it is looked at here."""
    for field, needed in NEEDED.items():
        records = head.get(field) if isinstance(head, Mapping) else None
        if not isinstance(records, Sequence) or not is_sequence(records):
            raise BuildError(f"expected a list in the wire form, as model.head.{field} is", field)
        for index, record in enumerate(records):
            path = f"{field}[{index}]"
            if not isinstance(record, Mapping):
                problem = f"expected the fields of the wire form, as in model.head.{field}, found {shown(record, 100)}"
                raise BuildError(problem, path)
            for name, kind in needed.items():
                if name not in record:
                    raise BuildError("the field is missing", f"{path}.{name}")
                _demand_kind(f"{path}.{name}", record[name], kind)
            for axis, length in enumerate(record["dimensions"] if "dimensions" in needed else ()):
                _demand_kind(f"{path}.dimensions[{axis}]", length, INTEGER)


def _demand_kind(path: str, value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise BuildError(f"expected {kind}, found {shown(value, 100)}", path)


def _faithful(model: Model, layout: GGUFStructs, metadata_kv: Sequence[Fields], tensor_infos: Sequence[Fields]) -> Plan:
    """All that follows the head is kept."""
    alignment = alignment_of(metadata_kv)
    if alignment != model.alignment:
        problem = f"the alignment was {model.alignment} and becomes {alignment}: the tensors cannot stay where they are"
        raise BuildError(problem, "metadata_kv")
    _demand_offsets(tensor_infos)
    head = head_of(layout, metadata_kv, tensor_infos)
    between, changes = _padding(model, len(head), bool(tensor_infos))
    rest = [*between, *_data_section(model, layout.order)]
    if changes and not model.head["tensor_infos"]:  # no padding, as there is no data: something that follows at once
        rest, changes = _from(model, model.infos_end, "after the metadata"), []
    pieces = [head_piece(head), *rest]
    demand_sound(metadata_kv, tensor_infos, len(head), sum(piece.size for piece in pieces))
    return Plan(pieces, changes)


def _from(model: Model, position: int, what: str) -> list[Piece]:
    """All bytes from a position on."""
    return [Piece(what, model.size - position, Range(model.source, position))] if position < model.size else []


def _padding(model: Model, infos_end: int, has_tensors: bool) -> tuple[list[Piece], list[Change]]:
    """What stands before the data: the bytes that were there if they are as many as are needed, else zeros."""
    zeros = padding("padding", infos_end, model.alignment)
    needed = sum(piece.size for piece in zeros)
    held = min(model.size, model.data_offset) - model.infos_end
    is_end = not has_tensors and (model.size < model.data_offset or model.size == model.infos_end)
    if held == needed or is_end:
        return [Piece("padding", held, Range(model.source, model.infos_end))] if held else [], []
    return zeros, list(zeroed(model, model.infos_end, model.infos_end + held, "padding"))


def _data_section(model: Model, order: str) -> Iterator[Piece]:
    """All bytes from the data on, in a byte order, by tensors and what is between and behind them."""
    position = model.data_offset
    for tensor in sorted(model.tensors.infos, key=lambda tensor: tensor.offset):
        what = f"tensor {tensor.name!r}"
        if tensor.n_bytes is None and order == model.order:
            continue  # nobody knows where it ends: it goes with the rest
        content, size = in_path(tensor_content, what, tensor, order)
        if tensor.data_offset > position:
            yield Piece("between tensors", tensor.data_offset - position, Range(model.source, position))
            position = tensor.data_offset
        elif tensor.data_offset < position:  # it shares bytes with one before
            if order != model.order:
                raise BuildError("it shares bytes with another tensor: they cannot be swapped for both", what)
            size -= position - tensor.data_offset
            content = Range(model.source, position)
        if size > 0:
            yield Piece(what, size, content)
            position += size
    yield from _from(model, position, "after the last tensor")


def _canonical(
    model: Model, layout: GGUFStructs, metadata_kv: Sequence[Fields], tensor_infos: Sequence[Fields]
) -> Plan:
    """The tensors of the infos, and nothing else; BOOL bytes as every reader takes them."""
    pairs = [_with_plain_bools(pair) for pair in metadata_kv]
    plan = laid_out_anew(model, layout, pairs, tensor_infos)
    changes = [
        Change(f"metadata_kv[{index}].value", "BOOL bytes other than 0 become 1")
        for index, (new, old) in enumerate(zip(pairs, metadata_kv, strict=True))
        if new is not old
    ]
    return plan._replace(changes=[*changes, *plan.changes])


def laid_out_anew(
    model: Model, layout: GGUFStructs, metadata_kv: Sequence[Fields], tensor_infos: Sequence[Fields]
) -> Plan:
    """The plan of an open file written again in the canonical layout, perhaps of another alignment; values stay.

    Args:
        model: The file.
        layout: The constructs of the new file.
        metadata_kv: The pairs in the wire form; they say the alignment.
        tensor_infos: The infos in the wire form; their offsets say where in `model` the data is.

    Raises:
        BuildError: As `rewrite`.
    """
    _demand_offsets(tensor_infos)
    gaps = {tensor.offset: tensor.n_bytes for tensor in model.tensors.infos}
    data = []
    for info, known in zip(tensor_infos, known_sizes(tensor_infos), strict=True):
        size = gaps.get(info["offset"]) if known is None else known
        what = f"tensor {info['name']!r}"
        content, size = in_path(tensor_content, what, Tensor(info, size, model), layout.order)
        data.append(Piece(what, size, content))
    pieces = canonical_pieces(layout, metadata_kv, tensor_infos, data)
    return Plan(pieces, list(not_kept(model, tensor_infos, data, alignment_of(metadata_kv))))


def not_kept(model: Model, tensor_infos: Sequence[Fields], data: Sequence[Piece], alignment: int) -> Iterator[Change]:
    """What the canonical layout does not keep of an open file: offsets, and what stands around the tensors.

    Args:
        model: The file; of a model in shards one of them.
        tensor_infos: The infos of the tensors that are kept, in the wire form.
        data: The data of each.
        alignment: Of the canonical layout, in bytes.
    """
    yield from _moves(tensor_infos, data, alignment)
    yield from left_out(model)


def _demand_offsets(tensor_infos: Sequence[Fields]) -> None:
    """Refuse infos that do not say where their data is."""
    for index, info in enumerate(tensor_infos):
        if info.get("offset") is None:
            raise BuildError("no offset: it says where the data is that is written again", f"tensor_infos[{index}]")


def _with_plain_bools(pair: Fields) -> Fields:
    """A pair whose BOOL bytes are 0 or 1; the pair itself where they are."""
    if pair["value_type"] == GGUFValueType.BOOL and not isinstance(pair["value"], bool | np.bool_):
        return {**pair, "value": bool(pair["value"])}
    if pair["value_type"] == GGUFValueType.ARRAY and (value := _array_with_plain_bools(pair["value"])) is not None:
        return {**pair, "value": value}
    return pair


def _array_with_plain_bools(array: Fields) -> dict[str, Any] | None:
    """The wire form of an array with BOOL bytes that are 0 or 1; None where they are."""
    if array["type"] == GGUFValueType.BOOL:
        held = np.asarray(array["array"])
        return None if held.dtype == np.bool_ or not held.size else {**array, "array": held != 0}
    if array["type"] != GGUFValueType.ARRAY:
        return None
    inner = [_array_with_plain_bools(item) for item in array["array"]]
    if inner == [None] * len(inner):
        return None
    return {**array, "array": [old if new is None else new for old, new in zip(array["array"], inner, strict=True)]}


def _moves(tensor_infos: Sequence[Fields], data: Sequence[Piece], alignment: int) -> Iterator[Change]:
    """The offsets that change."""
    offsets = place([piece.size for piece in data], alignment)
    for index, (info, offset) in enumerate(zip(tensor_infos, offsets, strict=True)):
        if info["offset"] != offset:
            yield Change(f"tensor_infos[{index}].offset", f"{info['offset']} becomes {offset}")


def left_out(model: Model, *, tail: bool = True) -> Iterator[Change]:
    """What a file with the same tensors, each behind the other, does not keep of what stands around them.

    Args:
        model: The file; of a model in shards it alone.
        tail: Whether what stands behind them is left out, too.
    """
    own = (tensor for tensor in model.tensors.infos if tensor.file is model)
    tensors = sorted(own, key=lambda tensor: tensor.offset)
    if not tensors:
        if model.size > model.infos_end:
            yield Change("tail", f"{model.size - model.infos_end} bytes after the metadata are left out")
        return
    yield from zeroed(model, model.infos_end, model.data_offset, "padding")
    end = model.data_offset
    for tensor in tensors:
        yield from _gap(model, end, tensor.data_offset)
        end = model.size if tensor.n_bytes is None else max(end, tensor.data_offset + tensor.n_bytes)
    padded = model.data_offset + align_up(end - model.data_offset, model.alignment)
    yield from zeroed(model, end, padded, "tensor_data")
    if model.size < padded:
        yield Change("tensor_data", f"{padded - model.size} zeros are added after the last tensor")
    if tail and model.size > padded:
        yield Change("tail", f"{model.size - padded} bytes after the last tensor are left out")


def _gap(model: Model, start: int, stop: int) -> Iterator[Change]:
    """What becomes of the bytes between two tensors."""
    padded = min(stop, model.data_offset + align_up(start - model.data_offset, model.alignment))
    yield from zeroed(model, start, padded, "tensor_data")
    if padded < stop:
        yield Change("tensor_data", f"{stop - padded} bytes between tensors, from byte {padded} on, are left out")


def zeroed(model: Model, start: int, stop: int, path: str) -> Iterator[Change]:
    """What becomes of padding that is made zeros: nothing, if it is.

    Args:
        model: The file.
        start: Absolute offset of its first byte.
        stop: Absolute offset behind its last one.
        path: The schema path of the field that it belongs to.
    """
    held = Piece(path, max(0, min(stop, model.size) - start), Range(model.source, start))
    other = sum(len(chunk) - bytes(chunk).count(0) for chunk in held.chunks())
    if other:
        yield Change(path, f"{other} bytes of padding, from byte {start} on, become zeros")
