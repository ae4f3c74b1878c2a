"""A changed file in terms of the one that it is made from: new bytes, zeros, and ranges that stay or move."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from ..constructs import Strings, Struct
from ..enums import GGUFValueType as T
from ..errors import GGUFError
from ..file import Model
from ..journal import Part, Span
from ..journal import size_of as size_of_kept
from ..layout import Fields, align_up, alignment_of, data_size, place
from ..schema import GGUFStructs
from ..write import Change, left_out, zeroed
from .edits import Head
from .reserve import is_reserve, place_of


class Zeros(NamedTuple):
    """So many zeros, which may be more than memory holds."""

    size: int


NewPart = Part | Zeros
"""A part of a changed file."""


def size_of(part: NewPart) -> int:
    """Its bytes."""
    return part.size if isinstance(part, Zeros) else size_of_kept(part)


class Unchanged:
    """Where the parts of a file's head stand that an edit left alone; and what others are.

    Attributes:
        model: The file.
        pairs: The id of each metadata pair → its bytes.
        infos: The bytes of all tensor infos.
        built: The id of each new pair → the pair, and its bytes: they may be long, and are asked for twice.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        parsed = model.head["metadata_kv"]
        position = len(_counts(model.layout, parsed, model.head["tensor_infos"]))
        self.pairs: dict[int, Span] = {}
        self.built: dict[int, tuple[Fields, bytes]] = {}
        for pair in parsed:
            self.pairs[id(pair)] = Span(position, _pair_size(model.layout, pair))
            position += self.pairs[id(pair)].size
        self.infos = Span(position, model.infos_end - position)


def _counts(layout: GGUFStructs, pairs: Sequence[Fields], infos: Sequence[Fields]) -> bytes:
    """What stands before the pairs."""
    fields = takewhile(lambda field: field.name != "metadata_kv", layout.head.subcons)
    counts: bytes = Struct(*fields).build({"metadata_kv": pairs, "tensor_infos": infos})
    return counts


def _pair_size(layout: GGUFStructs, pair: Fields) -> int:
    """The bytes of a parsed pair; a long array is not built for it."""
    payload = 0
    if pair["value_type"] is T.ARRAY and pair["value"]["type"] is not T.ARRAY:
        items = pair["value"]["array"]
        payload = int(items.ends[-1:].sum()) if isinstance(items, Strings) else items.nbytes
        pair = {**pair, "value": {"type": pair["value"]["type"], "array": []}}
    return len(layout.metadata_kv.build(pair)) + payload


def head_parts(unchanged: Unchanged, head: Head) -> list[Part]:
    """The parts of a head, up to the end of the tensor infos.

    Raises:
        BuildError: A value does not fit its type; the path says which.
    """
    model, layout = unchanged.model, unchanged.model.layout
    infos = [kept.info for kept in head.tensors]
    parts: list[Part] = [_counts(layout, head.pairs, infos)]
    for index, pair in enumerate(head.pairs):
        span = unchanged.pairs.get(id(pair))
        if span is not None:
            parts.append(span)
        elif is_reserve(pair):
            parts += _with_room_that_stays(unchanged, layout.metadata_kv.build(pair))
        else:
            if id(pair) not in unchanged.built:
                unchanged.built[id(pair)] = pair, _built(layout.metadata_kv.build, pair, f"metadata_kv[{index}]")
            parts.append(unchanged.built[id(pair)][1])
    if list(map(id, infos)) == list(map(id, model.head["tensor_infos"])):
        return [*parts, unchanged.infos]
    return [*parts, *(_built(layout.tensor_info.build, info, f"tensor_infos[{i}]") for i, info in enumerate(infos))]


def _with_room_that_stays(unchanged: Unchanged, built: bytes) -> list[Part]:
    """The bytes of a reserve; as many zeros at its end as the old one has, too, are those of the old one."""
    pairs = unchanged.model.head["metadata_kv"]
    place = place_of(pairs)
    if place is None:
        return [built]
    span = unchanged.pairs[id(pairs[place])]
    zeros = min(len(pairs[place]["value"]["array"]), len(built) - len(built.rstrip(b"\0")))
    return [built[: len(built) - zeros], Span(span.start + span.size - zeros, zeros)]


def _built(build: Callable[[Fields], bytes], fields: Fields, path: str) -> bytes:
    try:
        return build(fields)
    except GGUFError as error:
        raise error.inside(path, None) from None


def is_laid_out_anew(model: Model, head: Head) -> bool:
    """Whether the data cannot stay as it is: a tensor went, they changed places, or the alignment changed."""
    old = range(len(model.head["tensor_infos"]))
    is_same = [tensor.place for tensor in head.tensors] == list(old)
    return not is_same or (bool(old) and alignment_of(head.pairs) != model.alignment)


def with_offsets(model: Model, head: Head) -> Head:
    """The head of a file whose tensors follow each other in the order of the infos."""
    offsets = place([_tensor(model, tensor.place).size for tensor in head.tensors], alignment_of(head.pairs))
    tensors = [
        tensor._replace(info={**tensor.info, "offset": offset})
        for tensor, offset in zip(head.tensors, offsets, strict=True)
    ]
    return head._replace(tensors=tensors)


def data_as_it_is(model: Model, head_size: int) -> tuple[list[NewPart], list[Change]]:
    """What follows a head of so many bytes: all that followed the old one, at the next multiple of the alignment.

    Without tensors nothing needs to be aligned: then, and where a file ends before its data, the bytes follow at once.

    Returns:
        The parts, and what is lost: padding of another size becomes zeros.
    """
    if not model.head["tensor_infos"] or model.size < model.data_offset:
        return [Span(model.infos_end, model.size - model.infos_end)], []
    held = model.data_offset - model.infos_end
    padding = align_up(head_size, model.alignment) - head_size
    changes = list(zeroed(model, model.infos_end, model.data_offset, "padding")) if padding != held else []
    stays = 0 if changes else min(padding, held)
    start = model.data_offset - stays
    return [Zeros(padding - stays), Span(start, model.size - start)], changes


def data_anew(model: Model, head: Head, head_size: int) -> tuple[list[NewPart], list[Change]]:
    """What follows a head of so many bytes: the tensors in the order of the infos, with zeros up to the alignment.

    Returns:
        The parts, and what is lost: what stood between the tensors. What stood behind them comes behind them.

    Raises:
        GGUFError: The data of a tensor is not all there.
    """
    alignment = alignment_of(head.pairs)
    tail = _tail(model)
    parts: list[NewPart] = []
    position = head_size
    for range in [*(_tensor(model, tensor.place) for tensor in head.tensors), *([tail] if tail.size else [])]:
        parts += [Zeros(align_up(position, alignment) - position), range]
        position = align_up(position, alignment) + range.size
    if head.tensors and not tail.size:
        parts.append(Zeros(align_up(position, alignment) - position))
    return parts, list(left_out(model, tail=False))


def _tensor(model: Model, index: int) -> Span:
    """Where the data of a tensor stands; of one of unknown size at the end all that is left.

    Raises:
        GGUFError: It is not all there.
    """
    tensor = model.tensors.infos[index]
    size = model.size - tensor.data_offset if tensor.n_bytes is None else tensor.n_bytes
    if size < 0 or tensor.data_offset + size > model.size:
        raise GGUFError(f"{size} bytes declared, the file ends at byte {model.size}", f"tensor {tensor.name!r}")
    return Span(tensor.data_offset, size)


def _tail(model: Model) -> Span:
    """What stands behind the data."""
    placed = [(tensor.offset, tensor.n_bytes) for tensor in model.tensors.infos]
    size = data_size(placed, model.alignment)
    end = model.size if size is None else min(model.data_offset + size, model.size)
    return Span(end, model.size - end)


def merged(parts: Iterable[NewPart]) -> list[NewPart]:
    """The same parts, in as few as possible."""
    found: list[Any] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, bytes) and isinstance(last, list):
            last.append(part)
        elif isinstance(part, bytes):
            found += [[part]] if part else []
        elif isinstance(part, Zeros):
            found += [part] if part.size else []
        elif isinstance(last, Span) and last.start + last.size == part.start:
            found[-1] = Span(last.start, last.size + part.size)
        else:
            found += [part] if part.size else []
    return [b"".join(part) if isinstance(part, list) else part for part in found]


def inverse(parts: Sequence[NewPart], size: int) -> Iterator[tuple[Span, bool]]:
    """An old file of this size as ranges of the new one (True), and of itself where the new one lacks them (False)."""
    starts = accumulate(map(size_of, parts), initial=0)
    spans = [(part, start) for start, part in zip(starts, parts, strict=False) if isinstance(part, Span)]
    position = 0
    for old, new in sorted(spans):
        if old.start > position:
            yield Span(position, old.start - position), False
            position = old.start
        skipped = position - old.start
        if skipped < old.size:
            yield Span(new + skipped, old.size - skipped), True
            position += old.size - skipped
    if position < size:
        yield Span(position, size - position), False


def start_of(parts: Iterable[NewPart], size: int) -> Iterator[NewPart]:
    """The first bytes of parts."""
    for part in parts:
        taken = min(size, size_of(part))
        yield part[:taken] if isinstance(part, bytes) else part._replace(size=taken)
        size -= taken


def joined(model: Model, parts: Iterable[NewPart]) -> bytes:
    """The bytes of parts of a file that is made from an open one.

    Raises:
        GGUFError: The open file has changed.
    """
    return b"".join(_bytes_of(model, part) for part in parts)


def _bytes_of(model: Model, part: NewPart) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, Zeros):
        return bytes(part.size)
    data = model.source.read_at(*part)
    if len(data) < part.size:
        raise GGUFError("the file has changed since it was opened")
    return data
