"""Edits as data, and what they make of a head in the wire form. Whatever they do not name stays as it is."""

from collections.abc import Callable, Iterable, Sequence
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
    for index, edit in enumerate(edits):
        try:
            _demand_fields(edit)
            head = DO[type(edit)](head, edit)
        except GGUFError as error:
            raise error.inside(f"edits[{index}]", None) from None
    return head


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


def _set(head: Head, edit: Set) -> Head:
    index = _only(head, edit.key)
    old = None if index is None else head.pairs[index]
    kind = type_named(edit.type) if isinstance(edit.type, str) else edit.type
    if kind is None and old is None:
        raise _no_key(head, edit.key, f": {_hint(head, edit.key)}")
    if kind is None:
        kind = plain_pairs([old])[0].type  # type: ignore[list-item]
    try:
        pair = to_wire(MetadataKV(edit.key, *from_json(kind, edit.value)))
        structs().metadata_kv.build(pair)  # to be told here of what does not fit
    except GGUFError as error:
        raise BuildError(f"{edit.key}: {error.problem}") from None
    if index is not None:
        return head._replace(pairs=[*head.pairs[:index], pair, *head.pairs[index + 1 :]])
    behind = len(head.pairs) - bool(head.pairs and is_reserve(head.pairs[-1]))
    return head._replace(pairs=[*head.pairs[:behind], pair, *head.pairs[behind:]])


def _hint(head: Head, key: str) -> str:
    """How a new key is given."""
    architecture = next((str(pair["value"]) for pair in head.pairs if pair["key"] == ARCHITECTURE.template), "")
    standard = find(key, architecture)
    usual = type_text(standard.type) if standard else "STRING"
    return f"a new one needs a type, such as {usual} ({key}:{usual}=VALUE where it is typed)"


def _unset(head: Head, edit: Unset) -> Head:
    left = [pair for pair in head.pairs if pair["key"] != edit.key]
    if len(left) == len(head.pairs):
        raise _no_key(head, edit.key)
    return head._replace(pairs=left)


def _rename_key(head: Head, edit: RenameKey) -> Head:
    index = _only(head, edit.key)
    if index is None:
        raise _no_key(head, edit.key)
    if edit.to != edit.key and any(other["key"] == edit.to for other in head.pairs):
        raise BuildError(f"there is a key {edit.to!r} already")
    pair = {**head.pairs[index], "key": edit.to}
    return head._replace(pairs=[*head.pairs[:index], pair, *head.pairs[index + 1 :]])


def _no_key(head: Head, key: str, hint: str = "") -> BuildError:
    return BuildError(f"there is no key {key!r}{hint}{perhaps(key, (pair['key'] for pair in head.pairs))}")


def _only(head: Head, key: str) -> int | None:
    """The index of the pair with this key; None where there is none."""
    found = [index for index, pair in enumerate(head.pairs) if pair["key"] == key]
    if len(found) > 1:
        raise BuildError(
            f"the key {key!r} stands {len(found)} times: which one is meant cannot be told; removing it removes all"
        )
    return found[0] if found else None


def _rename_tensor(head: Head, edit: RenameTensor) -> Head:
    index = _only_tensor(head, edit.name)
    kept = head.tensors[index]
    if edit.to != edit.name and any(other.info["name"] == edit.to for other in head.tensors):
        raise BuildError(f"there is a tensor {edit.to!r} already")
    renamed = kept._replace(info={**kept.info, "name": edit.to})
    return head._replace(tensors=[*head.tensors[:index], renamed, *head.tensors[index + 1 :]])


def _delete_tensor(head: Head, edit: DeleteTensor) -> Head:
    index = _only_tensor(head, edit.name)
    return head._replace(tensors=[*head.tensors[:index], *head.tensors[index + 1 :]])


def _order_tensors(head: Head, edit: OrderTensors) -> Head:
    first = [_only_tensor(head, name) for name in edit.names]
    if len(set(first)) < len(first):
        raise BuildError("a tensor is named twice")
    named = set(first)
    order = [*first, *(index for index in range(len(head.tensors)) if index not in named)]
    return head._replace(tensors=[head.tensors[index] for index in order])


def _only_tensor(head: Head, name: str) -> int:
    found = [index for index, kept in enumerate(head.tensors) if kept.info["name"] == name]
    if not found:
        raise BuildError(f"there is no tensor {name!r}{perhaps(name, (kept.info['name'] for kept in head.tensors))}")
    if len(found) > 1:
        raise BuildError(f"the tensor {name!r} stands {len(found)} times: which one is meant cannot be told")
    return found[0]


def _align(head: Head, edit: Align) -> Head:
    demand_power_of_two(edit.alignment)
    return _set(head, Set(ALIGNMENT.template, edit.alignment, ALIGNMENT.type))


DO: dict[type, Callable[[Head, Any], Head]] = {
    Set: _set,
    Unset: _unset,
    RenameKey: _rename_key,
    RenameTensor: _rename_tensor,
    DeleteTensor: _delete_tensor,
    OrderTensors: _order_tensors,
    Align: _align,
}
"""Kind of edit → the function that does it."""
