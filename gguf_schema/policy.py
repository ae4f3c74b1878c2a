"""What makes a file that can be parsed unfit to be opened: it can be read in more than one way, or not safely.

Each rule takes what was parsed up to the tensor infos, and yields a finding for each fault. `open` refuses a file with
any; the reasons stand in spec/decisions.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Any

from .enums import GGUFValueType
from .errors import Finding, GGUFError
from .keys import ALIGNMENT
from .layout import n_bytes, n_elements
from .limits import MAX_DIMENSIONS, MAX_SIZE, MAX_TYPE


@dataclass(frozen=True)
class Parsed:
    """What the rules look at.

    Attributes:
        metadata_kv: The parsed metadata pairs.
        tensor_infos: The parsed tensor infos.
        known_sizes: The bytes of each, as far as type and dimensions tell.
        alignment: The alignment in force.
        infos_end: Absolute offset of the first byte after the tensor infos.
        data_offset: Absolute offset of the tensor data.
        size: Bytes of the whole file, or None where there is no file yet.
    """

    metadata_kv: Sequence[Any]
    tensor_infos: Sequence[Any]
    known_sizes: Sequence[int | None]
    alignment: int
    infos_end: int
    data_offset: int
    size: int | None

    @cached_property
    def keys(self) -> list[str]:
        """The key of each pair."""
        return [pair["key"] for pair in self.metadata_kv]


SHOWN = 80
"""Letters of a name that a message repeats."""


def keys(file: Parsed) -> Iterator[Finding]:
    """No empty key (ggml aborts), none twice (readers differ in which they take)."""
    yield from _names("key", "metadata_kv", file.keys, "key", may_be_empty=False)


def tensor_names(file: Parsed) -> Iterator[Finding]:
    """No tensor name twice."""
    names = [info["name"] for info in file.tensor_infos]
    yield from _names("tensor name", "tensor_infos", names, "name", may_be_empty=True)


def _names(what: str, array: str, names: list[str], field: str, may_be_empty: bool) -> Iterator[Finding]:
    if len(set(names)) == len(names) and (may_be_empty or "" not in names):
        return
    code = what.replace(" ", "-")
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        path = f"{array}[{index}].{field}.len"
        if not name and not may_be_empty:
            yield Finding(f"{code}-empty", path, f"the {what} is empty")
        if first.setdefault(name, index) != index:
            yield Finding(
                f"{code}-twice", path, f"the {what} {name[:SHOWN]!r} stands in {array}[{first[name]}] already"
            )


def alignment(file: Parsed) -> Iterator[Finding]:
    """`general.alignment` is a UINT32, and a power of two (llama.cpp) or a multiple of 8 (the specification)."""
    if ALIGNMENT.template not in file.keys:
        return
    for index, pair in enumerate(file.metadata_kv):
        if pair["key"] != ALIGNMENT.template:
            continue
        path = f"metadata_kv[{index}]"
        if pair["value_type"] != GGUFValueType.UINT32:
            found = GGUFValueType(pair["value_type"]).name
            yield Finding("alignment-type", f"{path}.value_type", f"{ALIGNMENT.template} must be UINT32, found {found}")
        elif not is_alignment(pair["value"]):
            problem = f"{pair['value']} is no alignment: neither a power of two nor a multiple of 8"
            yield Finding("alignment-value", f"{path}.value", problem)


def is_alignment(number: int) -> bool:
    """Whether it can be an alignment: a power of two (llama.cpp's rule) or a multiple of 8 (the specification's)."""
    return number > 0 and (number & (number - 1) == 0 or number % 8 == 0)


SURELY_COUNTABLE = MAX_SIZE >> 4
"""A tensor of some bytes, but no more than this, has no dimension and no number of elements that ggml cannot count."""


def shapes(file: Parsed) -> Iterator[Finding]:
    """Types, dimensions and sizes that ggml can count, rows of whole blocks."""
    for index, (info, size) in enumerate(zip(file.tensor_infos, file.known_sizes, strict=True)):
        if not size or size > SURELY_COUNTABLE or len(info["dimensions"]) > MAX_DIMENSIONS:
            yield from _shape(f"tensor_infos[{index}]", info, size)


def _shape(path: str, info: Any, size: int | None) -> Iterator[Finding]:
    """What is wrong with one tensor's type and dimensions."""
    dimensions = info["dimensions"]
    if len(dimensions) > MAX_DIMENSIONS:
        problem = f"{len(dimensions)} dimensions; {MAX_DIMENSIONS} are allowed"
        yield Finding("dimensions-too-many", f"{path}.n_dimensions", problem)
        return
    if info["type"] > MAX_TYPE:
        yield Finding("tensor-type-range", f"{path}.type", f"{info['type']} is no type: {MAX_TYPE} is the largest")
    for axis, dimension in enumerate(dimensions):
        if dimension > MAX_SIZE:
            problem = f"{dimension} elements in one dimension; {MAX_SIZE} can be counted"
            yield Finding("dimension-range", f"{path}.dimensions[{axis}]", problem)
    try:
        n_bytes(info["type"], dimensions)
    except GGUFError as error:
        yield Finding("row-not-blocks", f"{path}.{error.path}", error.problem)
        return
    for what, count in (("elements", n_elements(dimensions)), ("bytes", size or 0)):
        if count > MAX_SIZE:
            problem = f"dimensions {' x '.join(map(str, dimensions))} make more than {MAX_SIZE} {what}"
            yield Finding(f"tensor-{what}-range", f"{path}.dimensions[0]", problem)
            return


def offsets(file: Parsed) -> Iterator[Finding]:
    """Every offset is a multiple of the alignment."""
    alignment = file.alignment
    for index, info in enumerate(file.tensor_infos):
        if info["offset"] % alignment:
            problem = f"{info['offset']} is no multiple of the alignment {alignment}"
            yield Finding("offset-unaligned", f"tensor_infos[{index}].offset", problem)


IMPLAUSIBLE = 1 << 20
"""A tensor that declares this many times the bytes of the whole file was not cut short: its dimensions are wrong."""


def data_start(file: Parsed) -> Iterator[Finding]:
    """The tensor data begins within the file."""
    if file.size is None or not file.tensor_infos or file.data_offset <= file.size:
        return
    problem = f"tensor data begins at byte {file.data_offset}, the file ends at byte {file.size}"
    if file.alignment > file.size:
        index = file.keys.index(ALIGNMENT.template)
        yield Finding("data-start-missing", f"metadata_kv[{index}].value", problem)
    else:
        yield Finding("data-start-missing", "padding", problem, file.infos_end)


def data_end(file: Parsed) -> Iterator[Finding]:
    """The data of every tensor ends within the file. What is at fault, offset, dimensions or data, is an estimate."""
    if file.size is None:
        return
    available = file.size - file.data_offset
    for index, (info, known) in enumerate(zip(file.tensor_infos, file.known_sizes, strict=True)):
        size = known or 0
        if info["offset"] + size <= available or (available < 0 and not size):
            continue
        start = file.data_offset + info["offset"]
        path = f"tensor_infos[{index}]"
        problem = f"{size} bytes of tensor {info['name'][:SHOWN]!r} at byte {start}, the file ends at byte {file.size}"
        if start > file.size and available >= 0:
            yield Finding("data-missing", f"{path}.offset", problem)
        elif size > IMPLAUSIBLE * file.size:
            yield Finding("data-missing", f"{path}.dimensions[0]", problem)
        else:
            yield Finding("data-missing", "tensor_data", problem, file.size)


RULES = (keys, alignment, tensor_names, shapes, data_start, offsets, data_end)
TENSOR_RULES = (shapes, offsets, data_end)
"""Rules that look at each tensor."""


def are_sound(file: Parsed) -> bool:
    """Whether none of the TENSOR_RULES can find anything, told from all tensors at once.

    A size is known only of tensors with few dimensions and rows of whole blocks.
    """
    infos, sizes = file.tensor_infos, file.known_sizes
    if not infos or file.size is None or None in sizes:
        return False
    at = [info["offset"] for info in infos]
    return (
        0 < min(sizes) <= max(sizes) <= SURELY_COUNTABLE  # type: ignore[type-var, operator]
        and math.gcd(file.alignment, *at) == file.alignment
        and max(map(add, at, sizes)) <= file.size - file.data_offset
    )


def errors(file: Parsed) -> Iterator[Finding]:
    """All faults of a file for which it is refused."""
    is_sound = are_sound(file)
    for rule in RULES:
        if not (is_sound and rule in TENSOR_RULES):
            yield from rule(file)
