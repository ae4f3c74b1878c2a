"""Operations that take sections of another file."""

from functools import partial

from .. import keys
from ..generate import Seeded
from .base import Base, Edit, Field, growth, padding, repaired, spliced
from .change import Change, Operation
from .head import counted
from .verdicts import ACCEPT, MILD, UNKNOWN, Verdict, both, placed, reject, warn


def _is_alike(base: Base, other: Base) -> bool:
    """Whether the bytes of one mean the same in the other."""
    return other.layout.order == base.layout.order and other.layout.length.sizeof() == base.layout.length.sizeof()


def _judged(base: Base, other: Base, verdict: Verdict) -> Verdict:
    """The verdict, if the two files are of one layout, and neither has a verdict of its own."""
    if not _is_alike(base, other) or other.has_nested:
        return UNKNOWN
    return both(verdict, MILD if base.counts_layers or other.counts_layers else ACCEPT)


def _metadata(other: Base, base: Base, field: Field, draw: Seeded) -> Change:
    """The pairs of another file."""
    pairs = other.by_path["metadata_kv"]
    edits = (_count(base, other, "metadata_kv_count"), (field.start, field.end, other.data[pairs.start : pairs.end]))
    change = repaired(base, edits, other.alignment)
    end = base.infos_end + growth(edits)
    return Change(change, _judged(base, other, placed(spliced(base.data, change), end, other.alignment, base.places)))


def _count(base: Base, other: Base, path: str) -> Edit:
    field = base.by_path[path]
    width = field.end - field.start
    return field.start, field.end, base.number(min(other.by_path[path].value, (1 << 8 * width) - 1), width)


def _metadata_uncounted(other: Base, base: Base, field: Field, draw: Seeded) -> Change:
    """The pairs of another file, with the count as it was."""
    pairs = other.by_path["metadata_kv"]
    return Change(((field.start, field.end, other.data[pairs.start : pairs.end]),), UNKNOWN)


def _infos(other: Base, base: Base, field: Field, draw: Seeded) -> Change:
    """The infos of another file, over the data of this one."""
    infos = other.by_path["tensor_infos"]
    edits = (_count(base, other, "tensor_count"), (field.start, field.end, other.data[infos.start : infos.end]))
    end = base.infos_end + growth(edits)
    zeros = padding(end, base.alignment) if other.infos else b""
    change = (edits[0], (field.start, base.data_offset if base.infos else field.end, edits[1][2] + zeros))
    data = spliced(base.data, change)
    return Change(change, _judged(base, other, placed(data, end, base.alignment, other.places)))


def _data(other: Base, base: Base, field: Field, draw: Seeded) -> Change | None:
    """The data of another file."""
    if not other.infos:
        return None
    change = ((field.start, len(base.data), other.data[other.data_offset :]),)
    data = spliced(base.data, change)
    return Change(change, placed(data, base.infos_end, base.alignment, base.places))


def _pair(other: Base, base: Base, field: Field, draw: Seeded) -> Change | None:
    """A pair of another file."""
    if not other.pairs:
        return None
    pair = draw.one_of(other.pairs)
    piece = other.data[pair.field.start : pair.field.end]
    edits = (counted(base, "metadata_kv_count", 1), (base.infos_start, base.infos_start, piece))
    change = repaired(base, edits)
    if not _is_alike(base, other) or other.has_nested:
        return Change(change, UNKNOWN)
    if pair.key in base.key_names:
        return Change(change, reject("key-twice"))
    missing = keys.ARCHITECTURE.template not in base.key_names and pair.standard is not keys.ARCHITECTURE
    verdict = warn("architecture-missing") if missing and not base.pairs else MILD if pair.is_own else ACCEPT
    if pair.standard is keys.ALIGNMENT:
        end = base.infos_end + growth(edits)
        verdict = both(verdict, placed(spliced(base.data, change), end, other.alignment, base.places))
    return Change(change, verdict)


def _crossed(other: Base, base: Base, field: Field, draw: Seeded) -> Change:
    """The beginning of this file up to a field, and another file from a field on."""
    start = draw.one_of(base.leaves).start
    return Change(((start, len(base.data), other.data[draw.one_of(other.leaves).start :]),), UNKNOWN)


def operations(other: Base) -> dict[str, tuple[Operation, ...]]:
    """The operations that take sections of this file, by the kind of field that they are offered to."""
    return {
        "metadata": (
            Operation("splice-metadata", partial(_metadata, other)),
            Operation("splice-metadata-uncounted", partial(_metadata_uncounted, other)),
            Operation("splice-pair", partial(_pair, other), is_drawn=True),
        ),
        "infos": (Operation("splice-infos", partial(_infos, other)),),
        "data_section": (Operation("splice-data", partial(_data, other)),),
        "file": (Operation("splice-anywhere", partial(_crossed, other), is_drawn=True),),
    }
