"""Edits as data, and what they make of a head in the wire form. Whatever they do not name stays as it is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..errors import BuildError, GGUFError, shown
from ..keys import ALIGNMENT, ARCHITECTURE, find
from ..layout import Fields
from ..limits import MAX_NESTING
from ..schema import structs
from ..terminal import perhaps
from ..values import MetadataKV, plain_pairs, to_wire
from ..write import demand_power_of_two
from .reserve import is_reserve
from .types import type_named, type_text
from .values import from_json


class Set(NamedTuple):
    """Give a key a value; a new key comes behind the others.

    Attributes:
        key: The key.
        value: From Python, JSON or TOML, or a `values.Text`.
        type: The type, perhaps as text. Without one that of the key stays; a new key needs one.
    """

    key: str
    value: Any
    type: ValueType | str | None = None


class Unset(NamedTuple):
    """Remove a key."""

    key: str


class RenameKey(NamedTuple):
    """Give a pair another key."""

    key: str
    to: str


class RenameTensor(NamedTuple):
    """Give a tensor another name."""

    name: str
    to: str


class DeleteTensor(NamedTuple):
    """Remove a tensor and its data."""

    name: str


class OrderTensors(NamedTuple):
    """Put tensors first, in this order; the others follow as they were."""

    names: Sequence[str]


class Align(NamedTuple):
    """Let every tensor start at a multiple of so many bytes, a power of two."""

    alignment: int


Edit = Set | Unset | RenameKey | RenameTensor | DeleteTensor | OrderTensors | Align


class Kept(NamedTuple):
    """A tensor info, and its index in the file."""

    place: int
    info: Fields


class Head(NamedTuple):
    """What is edited.

    Attributes:
        pairs: The metadata pairs, in the wire form.
        tensors: The tensor infos.
    """

    pairs: list[Fields]
    tensors: list[Kept]


class Work(NamedTuple):
    """A head while it is edited, in place: what is in it has numbers, which stay when something comes, goes, or moves.

    Attributes:
        pairs: Number → metadata pair, in their order.
        tensors: Number → tensor, in their order.
        keys: Key → the numbers of its pairs.
        names: Name → the numbers of its tensors.
        unused: More numbers.
    """

    pairs: dict[int, Fields]
    tensors: dict[int, Kept]
    keys: dict[str, list[int]]
    names: dict[str, list[int]]
    unused: Iterator[int]


def head_of(parsed: Fields) -> Head:
    """The head of a file as it was parsed."""
    return Head(list(parsed["metadata_kv"]), [Kept(*item) for item in enumerate(parsed["tensor_infos"])])


def edited(head: Head, edits: Iterable[Edit]) -> Head:
    """The head after some edits, one after the other; the one that is given stays as it is.

    Raises:
        GGUFError: An edit cannot be done; the path is `edits[index]`.
    """
    if isinstance(edits, str | memoryview | np.ndarray) or type(edits) in DO or not isinstance(edits, Iterable):
        raise GGUFError(f"expected a list of edits, found {shown(edits, 100)}")
    work = _work(head)
    for index, edit in enumerate(edits):
        try:
            _demand_fields(edit)
            DO[type(edit)](work, edit)
        except GGUFError as error:
            raise error.inside(f"edits[{index}]", None) from None
    return Head(list(work.pairs.values()), list(work.tensors.values()))


def _work(head: Head) -> Work:
    keys = _numbers(pair["key"] for pair in head.pairs)
    names = _numbers(kept.info["name"] for kept in head.tensors)
    return Work(dict(enumerate(head.pairs)), dict(enumerate(head.tensors)), keys, names, count(len(head.pairs)))


def _numbers(names: Iterable[str]) -> dict[str, list[int]]:
    """Each name → where it stands."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    return numbers


def _demand_fields(edit: Any) -> None:
    """Refuse what is no edit, or has a field of another kind; values are looked at where they get their type.

    Raises:
        BuildError: It says which field.
    """
    if type(edit) not in DO:
        raise BuildError(f"expected an edit, found {shown(edit, 100)}")
    for field, given in edit._asdict().items():
        expected, is_so = FIELDS.get(field, ("", None))
        if is_so is not None and not is_so(given):
            raise BuildError(f"expected {expected}, found {shown(given, 100)}", field)


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _are_texts(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str | memoryview) and all(map(_is_text, given))


def _is_type(given: Any, levels: int = MAX_NESTING) -> bool:
    """Whether it is a type of values, as text or not; whether the text is one is told where it is read."""
    if not isinstance(given, ArrayType):
        return isinstance(given, T | str | None)
    if not isinstance(given.type, T) or not isinstance(given.items, tuple) or not levels:
        return False
    return all(isinstance(item, ArrayType) and _is_type(item, levels - 1) for item in given.items)


FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "key": ("a string", _is_text),
    "name": ("a string", _is_text),
    "to": ("a string", _is_text),
    "names": ("a list of names", _are_texts),
    "type": ("a type", _is_type),
}
"""Field of an edit → what it must be, and whether something is that."""


def _set(work: Work, edit: Set) -> None:
    number = _only(work, edit.key)
    kind = type_named(edit.type) if isinstance(edit.type, str) else edit.type
    if kind is None and number is None:
        raise _no_type(work, edit.key)
    if kind is None:
        kind = plain_pairs([work.pairs[number]])[0].type  # type: ignore[index]
    try:
        pair = to_wire(MetadataKV(edit.key, *from_json(kind, edit.value)))
        structs().metadata_kv.build(pair)  # to be told here of what does not fit
    except GGUFError as error:
        raise BuildError(f"{edit.key}: {error.problem}") from None
    if number is None:
        _add(work, pair)
    else:
        work.pairs[number] = pair


def _add(work: Work, pair: Fields) -> None:
    """Put a pair with a new key behind the others, but before the reserve, if that is the last."""
    last = next(reversed(work.pairs), None)
    behind = [work.pairs.popitem()] if last is not None and is_reserve(work.pairs[last]) else []
    number = next(work.unused)
    work.keys[pair["key"]] = [number]
    work.pairs[number] = pair
    work.pairs.update(behind)


def _no_type(work: Work, key: str) -> BuildError:
    """An error that tells how a new key is given; or which old one may be meant, if this is no standard key."""
    numbers = work.keys.get(ARCHITECTURE.template)
    architecture = str(work.pairs[numbers[0]]["value"]) if numbers else ""
    standard = find(key, architecture)
    usual = type_text(standard.type) if standard else "STRING"
    how = f"a new one needs a type, such as {usual} ({key}:{usual}=VALUE where it is typed)"
    return BuildError(f"there is no key {key!r}: {how}{'' if standard else perhaps(key, work.keys)}")


def _unset(work: Work, edit: Unset) -> None:
    if edit.key not in work.keys:
        raise _no_key(work, edit.key)
    for number in work.keys.pop(edit.key):
        del work.pairs[number]


def _rename_key(work: Work, edit: RenameKey) -> None:
    number = _only(work, edit.key)
    if number is None:
        raise _no_key(work, edit.key)
    if edit.to != edit.key and edit.to in work.keys:
        raise BuildError(f"there is a key {edit.to!r} already")
    work.pairs[number] = {**work.pairs[number], "key": edit.to}
    work.keys[edit.to] = work.keys.pop(edit.key)


def _no_key(work: Work, key: str) -> BuildError:
    return BuildError(f"there is no key {key!r}{perhaps(key, work.keys)}")


def _only(work: Work, key: str) -> int | None:
    """The number of the pair with this key; None where there is none."""
    found = work.keys.get(key, [])
    if len(found) > 1:
        raise BuildError(
            f"the key {key!r} stands {len(found)} times: which one is meant cannot be told; removing it removes all"
        )
    return found[0] if found else None


def _rename_tensor(work: Work, edit: RenameTensor) -> None:
    number = _only_tensor(work, edit.name)
    if edit.to != edit.name and edit.to in work.names:
        raise BuildError(f"there is a tensor {edit.to!r} already")
    kept = work.tensors[number]
    work.tensors[number] = kept._replace(info={**kept.info, "name": edit.to})
    work.names[edit.to] = work.names.pop(edit.name)


def _delete_tensor(work: Work, edit: DeleteTensor) -> None:
    del work.tensors[_only_tensor(work, edit.name)]
    del work.names[edit.name]


def _order_tensors(work: Work, edit: OrderTensors) -> None:
    first = [_only_tensor(work, name) for name in edit.names]
    if len(set(first)) < len(first):
        raise BuildError("a tensor is named twice")
    ordered = {number: work.tensors[number] for number in (*first, *work.tensors)}
    work.tensors.clear()
    work.tensors.update(ordered)


def _only_tensor(work: Work, name: str) -> int:
    found = work.names.get(name, [])
    if not found:
        raise BuildError(f"there is no tensor {name!r}{perhaps(name, work.names)}")
    if len(found) > 1:
        raise BuildError(f"the tensor {name!r} stands {len(found)} times: which one is meant cannot be told")
    return found[0]


def _align(work: Work, edit: Align) -> None:
    demand_power_of_two(edit.alignment)
    _set(work, Set(ALIGNMENT.template, edit.alignment, ALIGNMENT.type))


DO: dict[type, Callable[[Work, Any], None]] = {
    Set: _set,
    Unset: _unset,
    RenameKey: _rename_key,
    RenameTensor: _rename_tensor,
    DeleteTensor: _delete_tensor,
    OrderTensors: _order_tensors,
    Align: _align,
}
"""Kind of edit → the function that does it."""
