"""What of the format a corpus exercises, and a few of its files that exercise as much."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..blocks import block_sizes
from ..enums import ArrayType, GGMLQuantizationType, GGUFValueType
from ..errors import GGUFError
from ..file import open
from ..schema import ORDER_NAMES, VERSIONS
from ..terminal import printable
from ..validate import WITHOUT_DATA, check

Name = TypeVar("Name", str, bytes)
Alternative = tuple[str, str]
"""A kind of alternative, and one of them."""

VALUE_TYPES = tuple(type.name for type in GGUFValueType)
KINDS: dict[str, tuple[str, ...]] = {
    "versions": tuple(str(version) for version in VERSIONS),
    "orders": tuple(ORDER_NAMES.values()),
    "value types": VALUE_TYPES,
    "element types": VALUE_TYPES,
    "tensor types": tuple(GGMLQuantizationType(type).name for type in block_sizes()),
    "rules": tuple(rule.code for rule in WITHOUT_DATA),
}
"""Kind → all alternatives."""


class Coverage(NamedTuple):
    """What a corpus exercises.

    Attributes:
        covered: Kind → the alternatives that some file has, in the order of `KINDS`.
        missing: Kind → those that none has.
        subset: A few files that have together as much as all.
    """

    covered: dict[str, list[str]]
    missing: dict[str, list[str]]
    subset: list[str]


def exercised(source: Any) -> set[Alternative]:
    """What one file exercises; of one that cannot be read only the rules that it breaks.

    Args:
        source: A path, a bytes-like object, or a binary file object.

    Raises:
        OSError: The path cannot be read.
    """
    found = {("rules", fault.code) for fault in check(source)}
    try:
        model = open(source, check=False)
    except GGUFError:
        return found
    with model:
        found |= {("versions", str(model.version)), ("orders", ORDER_NAMES[model.order])}
        for pair in model.metadata.pairs:
            if isinstance(pair.type, ArrayType):
                found.add(("value types", GGUFValueType.ARRAY.name))
                found |= {("element types", name) for name in _element_types(pair.type)}
            else:
                found.add(("value types", pair.type.name))
        for tensor in model.tensors.infos:
            if tensor.type in block_sizes():
                found.add(("tensor types", GGMLQuantizationType(tensor.type).name))
    return found


def _element_types(array: ArrayType) -> set[str]:
    """The types of an array's elements, and of theirs."""
    return {GGUFValueType(array.type).name}.union(*(_element_types(inner) for inner in array.items))


def coverage(files: dict[str, set[Alternative]]) -> Coverage:
    """What files exercise together.

    Args:
        files: Name → what it exercises.
    """
    whole = set().union(*files.values())
    covered = {kind: [one for one in every if (kind, one) in whole] for kind, every in KINDS.items()}
    missing = {kind: [one for one in every if (kind, one) not in whole] for kind, every in KINDS.items()}
    return Coverage(covered, missing, few(files))


def few(files: Mapping[Name, set[Alternative]]) -> list[Name]:
    """A few files that exercise as much as all: each time the first of those that have most of what is left.

    Args:
        files: Name → what it exercises.
    """
    left, found = set[Alternative]().union(*files.values()), []
    while left:
        best = max(files, key=lambda name: len(files[name] & left))
        found.append(best)
        left -= files[best]
    return found


def coverage_json(found: Coverage) -> str:
    """The coverage as one JSON object."""
    return json.dumps(found._asdict(), indent=1)


def coverage_text(found: Coverage, files: Sequence[str]) -> str:
    """For each kind how many alternatives are exercised, and which are not; then the subset."""
    lines = []
    for kind, covered in found.covered.items():
        missing = found.missing[kind]
        lines.append(f"{kind}: {len(covered)} of {len(covered) + len(missing)}")
        lines += [f"  not {', '.join(missing)}"] if missing else []
    have = "file has" if len(files) == 1 else "files have"
    lines.append(f"{len(found.subset)} of {len(files)} {have} as much as all:")
    return "\n".join([*lines, *(f"  {printable(name)}" for name in found.subset)])
