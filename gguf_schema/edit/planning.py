"""What edits would do to a file, and the cheapest safe way to do it."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from .. import journal
from ..errors import GGUFError
from ..file import Model
from ..journal import Change, Record, Span
from ..layout import align_up
from ..sources import FileSource
from ..targets import BLOCK
from ..write import Change as Lost
from ..write import demand_sound
from .edits import Edit, Head, edited, head_of
from .parts import (
    NewPart,
    Unchanged,
    data_anew,
    data_as_it_is,
    head_parts,
    inverse,
    is_laid_out_anew,
    joined,
    merged,
    size_of,
    start_of,
    with_offsets,
)
from .reserve import MOST_IN_PLACE, place_of, room, with_room, without_room

LARGE = 1 << 20
"""Bytes of a file that a block more makes no larger."""

MOST_KEPT = journal.LARGEST // 4
"""Bytes of an old file that are kept to undo a rewrite: what the new one does not have."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What would be done.

    Attributes:
        model: The file as it is.
        head: Its metadata pairs and tensor infos as they would be.
        head_parts: The file as it would be up to the end of the tensor infos: bytes, and ranges of the file as it is.
        data_parts: All that follows; zeros, too.
        in_place: Whether the file itself is to be changed.
        changes: What no edit names, and will still differ: bytes around the tensors.
        record: Of a patch in place how it is done, and undone; None where a new file is made.
        kept: Of a new file in place how it is undone; None where too much would have to be kept for that.
        why_not: Where the file itself is to be changed, but not patched, the reason.
    """

    model: Model
    head: Head
    head_parts: tuple[NewPart, ...]
    data_parts: tuple[NewPart, ...]
    in_place: bool
    changes: tuple[Lost, ...] = ()
    record: Record | None = None
    kept: Record | None = None
    why_not: str = ""

    @property
    def parts(self) -> tuple[NewPart, ...]:
        """The whole file as it would be."""
        return (*self.head_parts, *self.data_parts)

    @property
    def size(self) -> int:
        """Bytes of the file as it would be."""
        return sum(map(size_of, self.parts))

    @property
    def changes_nothing(self) -> bool:
        """Whether the file is so already."""
        return self.record is not None and not self.record.replaced

    @property
    def written(self) -> int:
        """Bytes that are written, the record to undo them included."""
        if self.record is None:
            return self.size + (journal.size_on_disk(self.kept) if self.kept else 0)
        if self.changes_nothing:
            return 0
        return sum(map(len, self.record.replaced)) + journal.size_on_disk(self.record)

    @property
    def read(self) -> int:
        """Bytes that are read, besides the head as it is opened."""
        if self.record is None:
            return sum(size_of(part) for part in self.parts if isinstance(part, Span))
        return sum(checked.size for checked in self.record.before.checked)

    @property
    def can_be_undone(self) -> bool:
        """Whether a change in place leaves a record."""
        return self.record is not None or self.kept is not None

    def __str__(self) -> str:
        """What would be done, on a line."""
        if self.changes_nothing:
            return "nothing to do"
        if self.record is None:
            reason = f" ({self.why_not})" if self.why_not else ""
            place = "a new file in the place of the old one" if self.in_place else "a new file"
            undo = "; it cannot be undone" if self.in_place and not self.can_be_undone else ""
            kept = f"; {self.written - self.size} more to undo it" if self.kept else ""
            return f"{place}{reason}: {self.size} bytes, {self.read} of them copied{kept}{undo}"
        changes = self.record.changes()
        first, last = changes[0], changes[-1]
        size = sum(len(change.new) for change in changes)
        plural = "ranges" if len(changes) > 1 else "range"
        before, after = room(self.model.head["metadata_kv"]), room(self.head.pairs)
        reserve = f"; the reserve goes from {before} to {after} bytes" if before != after else ""
        return (
            f"a patch in place: {size} bytes in {len(changes)} {plural} between byte {first.start} and "
            f"{last.start + len(last.new)}, {self.written} with the journal{reserve}"
        )


def plan(model: Model, edits: Iterable[Edit], *, in_place: bool = False, reserve: int | None = None) -> Plan:
    """What edits would do to a file, and how.

    Args:
        model: The open file.
        edits: They are done one after the other.
        in_place: Change the file itself, which must be a path: by a patch if that is possible and cheaper, or by a new
            file in its place. Of a reserve as much is used, or added, as keeps the data where it is.
        reserve: Bytes that the file shall at least have in reserve for later patches, up to `MOST_IN_PLACE`; 0 for
            none. Without it they stay.

    Raises:
        GGUFError: An edit cannot be done, so much cannot be in reserve, or `open` would refuse the new file for a
            reason for which it does not refuse the old one.
    """
    model.demand_one_file()
    head = edited(head_of(model.head), edits)
    if reserve is not None:
        if type(reserve) is not int or not 0 <= reserve <= MOST_IN_PLACE:
            raise GGUFError(f"a reserve is of 0 to {MOST_IN_PLACE} bytes")
        head = head._replace(pairs=with_room(head.pairs, reserve) if reserve else without_room(head.pairs))
    unchanged = Unchanged(model)
    is_anew = is_laid_out_anew(model, head)
    if is_anew:
        head = with_offsets(model, head)
    elif reserve:
        head = _with_room_to_share(unchanged, head, reserve)
    elif in_place and reserve is None:
        head = _with_fitting_room(unchanged, head)
    start = merged(head_parts(unchanged, head))
    head_size = sum(map(size_of, start))
    rest, changes = data_anew(model, head, head_size) if is_anew else data_as_it_is(model, head_size)
    known = {fault.code for fault in model.faults()}
    infos = [kept.info for kept in head.tensors]
    demand_sound(head.pairs, infos, head_size, head_size + sum(map(size_of, rest)), known)
    whole = Plan(model, head, tuple(start), tuple(merged(rest)), in_place, tuple(changes))
    if not in_place:
        return whole
    if not isinstance(model.source, FileSource):
        raise GGUFError("only a file with a path can be changed in place")
    growth = None if is_anew else head_size - model.infos_end
    if why_not := _why_not(model, model.source, whole.parts, growth):
        return _anew(whole, why_not)
    record = journal.in_place(model.size, [_window(model, *moved) for moved in _moved(whole.parts)])
    if len(record.parts) > journal.MOST_PARTS:
        return _anew(whole, "too many places would change")
    patch = replace(whole, record=record)
    if patch.written <= whole.size:
        return patch
    return min(patch, _anew(whole, "less is written so"), key=lambda plan: plan.written)


def _anew(plan: Plan, why_not: str) -> Plan:
    """The plan of a new file in the place of the old one."""
    return replace(plan, kept=_record_of(plan), why_not=why_not)


def _record_of(plan: Plan) -> Record | None:
    """How to undo a new file in the place of the old one, if that is possible."""
    model = plan.model
    spans = list(inverse(plan.parts, model.size))
    if len(spans) > journal.MOST_PARTS or sum(span.size for span, is_kept in spans if not is_kept) > MOST_KEPT:
        return None
    parts = tuple(span if is_kept else joined(model, [span]) for span, is_kept in spans)
    after = journal.identity(plan.size, [(0, joined(model, start_of(plan.head_parts, MOST_KEPT)))])
    return Record(journal.identity(model.size, ()), after, parts)


def _with_room_to_share(unchanged: Unchanged, head: Head, least: int) -> Head:
    """The head of a large file with a little more in reserve: as much as keeps the data at the same place in a block.

    Files can share blocks on some file systems, so that a new one takes no time and no room; but whole ones only.
    """
    model = unchanged.model
    if not model.head["tensor_infos"] or model.size < LARGE:
        return head
    end = sum(map(size_of, head_parts(unchanged, head)))
    missing = (model.data_offset - align_up(end, model.alignment)) % BLOCK
    return head._replace(pairs=with_room(head.pairs, min(least + missing, MOST_IN_PLACE)))


def _with_fitting_room(unchanged: Unchanged, head: Head) -> Head:
    """The head with as much in reserve as keeps the data where it is, where that can be and no edit says otherwise."""
    model = unchanged.model
    held, place = room(head.pairs), place_of(head.pairs)
    if held is None or place is None or id(head.pairs[place]) not in unchanged.pairs:
        return head
    least = sum(map(size_of, head_parts(unchanged, head))) - held
    wanted = max(0, model.infos_end - least)
    stays = least + wanted == model.infos_end
    if model.head["tensor_infos"]:
        stays = align_up(least + wanted, model.alignment) == model.data_offset
    if wanted == held or wanted > MOST_IN_PLACE or not stays:
        return head
    return head._replace(pairs=with_room(head.pairs, wanted))


def _why_not(model: Model, source: FileSource, parts: Sequence[NewPart], growth: int | None) -> str:
    """Why a patch is impossible; empty where it is not.

    Args:
        model: The file as it is.
        source: Where it is.
        parts: The file as it would be.
        growth: Bytes by which metadata and tensor infos grow, where the data is as it was.
    """
    if growth is None:
        return "the tensors are laid out anew"
    if sum(map(size_of, parts)) != model.size:
        held = room(model.head["metadata_kv"])
        holds = f", {held} in reserve" if held is not None else ""
        spare = model.data_offset - model.infos_end
        if growth > spare:
            return f"metadata and tensor infos grow by {growth} bytes; {spare} are free before the data{holds}"
        return "the data moves towards the start"
    changed = sum(sum(map(size_of, moved)) for _, moved in _moved(parts))
    if changed > MOST_IN_PLACE:
        return f"{changed} bytes would change place"
    if changed and not journal.is_writable(os.path.realpath(source.name)):
        return "it may not be written to"
    return ""


def _moved(parts: Sequence[NewPart]) -> list[tuple[int, list[NewPart]]]:
    """The parts that are not ranges of the old file at the same place, in runs, each with its absolute offset."""
    runs: list[tuple[int, list[NewPart]]] = []
    ends = -1
    for start, part in zip(accumulate(map(size_of, parts), initial=0), parts, strict=False):
        if isinstance(part, Span) and part.start == start:
            continue
        if start != ends:
            runs.append((start, []))
        runs[-1][1].append(part)
        ends = start + size_of(part)
    return runs


def _window(model: Model, start: int, parts: Sequence[NewPart]) -> Change:
    """What stands in a place, and what will."""
    new = joined(model, parts)
    return Change(start, joined(model, [Span(start, len(new))]), new)
