"""A file in another byte order, version or alignment."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .blocks import UNDEFINED_BIG
from .errors import BuildError
from .file import Model
from .keys import ALIGNMENT
from .layout import Fields, alignment_of, type_name
from .schema import ORDER_NAMES, structs
from .write import Change, Plan, demand_power_of_two, laid_out_anew, rewrite


def convert(
    model: Model,
    *,
    order: str | None = None,
    version: int | None = None,
    alignment: int | None = None,
    canonical: bool = False,
    any_type: bool = False,
) -> Plan:
    """The plan of an open file in another byte order, version or alignment; what is not said stays.

    Byte order swaps every number of metadata and infos, and the tensors' blocks field by field. Everything else is kept
    byte by byte, unless tensors must move: then they stand in the order of their infos, with zeros between them and
    nothing behind them.

    Args:
        model: The file. It must stay open until the plan is saved.
        order: Byte order, "<" or ">".
        version: 1, 2 or 3.
        alignment: In bytes, a power of two.
        canonical: Also make it canonical, as `rewrite` does.
        any_type: Swap also types whose big-endian form nobody defines (`blocks.UNDEFINED_BIG`), by their block Structs.

    Returns:
        The plan; its `changes` tell all that becomes of the file.

    Raises:
        BuildError: A count or length does not fit the version, the alignment is none, `open` would refuse the file, or
            a type cannot be swapped; the path says what.
        GGUFError: The model is in several files.
    """
    model.demand_one_file()
    layout = structs(model.order if order is None else order, model.version if version is None else version)
    if layout.order != model.order and not any_type:
        _demand_defined(model)
    infos: Sequence[Fields] = model.head.tensor_infos
    pairs = list(_aligned(model.head.metadata_kv, alignment))
    if canonical:
        plan = rewrite(model, {"metadata_kv": pairs, "tensor_infos": infos}, layout=layout, canonical=True)
        changes = plan.changes
    elif alignment_of(pairs) != model.alignment:
        plan = laid_out_anew(model, layout, pairs, infos)
        changes = [*_moved(plan.changes, len(infos)), *filter(_is_no_move, plan.changes)]
    else:
        plan = rewrite(model, {"metadata_kv": pairs, "tensor_infos": infos}, layout=layout)
        changes = plan.changes
    told = [*_layout(model, layout.order, layout.version), *_alignment(model.alignment, pairs), *changes]
    return plan._replace(changes=told)


def _demand_defined(model: Model) -> None:
    """Refuse tensors whose bytes in the other order nobody agrees upon."""
    for index, tensor in enumerate(model.tensors.infos):
        field = UNDEFINED_BIG.get(tensor.type)  # type: ignore[call-overload]
        if field is not None:
            what = f"{tensor.name!r} is {type_name(tensor.type)}, whose big-endian form nobody defines"
            why = f"ggml reads {field} as larger numbers; any_type swaps what the block declares"
            raise BuildError(f"{what}: {why}", f"tensor_infos[{index}].type")


def _aligned(metadata_kv: Sequence[Fields], alignment: int | None) -> Iterator[Fields]:
    """The pairs, with another alignment; at the end, where there is none."""
    is_kept = isinstance(alignment, int | np.integer) and alignment == alignment_of(metadata_kv)
    if alignment is None or is_kept:
        yield from metadata_kv
        return
    demand_power_of_two(alignment)
    new: dict[str, Any] = {"key": ALIGNMENT.template, "value_type": ALIGNMENT.type, "value": alignment}
    is_held = False
    for pair in metadata_kv:
        is_other = pair["key"] != ALIGNMENT.template
        yield pair if is_other else new
        is_held |= not is_other
    if not is_held:
        yield new


def _layout(model: Model, order: str, version: int) -> Iterator[Change]:
    if version != model.version:
        yield Change("version", f"{model.version} becomes {version}")
    if order != model.order:
        types = Counter(tensor.type for tensor in model.tensors.infos)
        swapped = ", ".join(f"{type_name(type)} {count}" for type, count in sorted(types.items()))
        tensors = f"; tensors swapped: {swapped}" if swapped else ""
        yield Change("order", f"{ORDER_NAMES[model.order]} becomes {ORDER_NAMES[order]}{tensors}")


def _alignment(old: int, pairs: Sequence[Fields]) -> Iterator[Change]:
    if alignment_of(pairs) != old:
        yield Change("alignment", f"{old} becomes {alignment_of(pairs)}")


def _is_no_move(change: Change) -> bool:
    return not change.path.startswith("tensor_infos[")


def _moved(changes: Sequence[Change], tensors: int) -> Iterator[Change]:
    """How many offsets change."""
    moves = sum(not _is_no_move(change) for change in changes)
    if moves:
        yield Change("tensor_infos", f"{moves} of {tensors} offsets change")
