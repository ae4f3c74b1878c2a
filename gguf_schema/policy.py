"""What makes a file that can be parsed unfit to be opened: it can be read in more than one way, or not safely.

Each rule takes what was parsed up to the tensor infos, and yields a finding for each fault. `open` refuses a file with
any; the reasons stand in spec/decisions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .blocks import block
from .enums import GGUFValueType
from .errors import Finding, GGUFError
from .keys import ALIGNMENT
from .layout import n_bytes, n_elements
from .limits import MAX_DIMENSIONS, MAX_SIZE, MAX_TYPE


class Parsed(NamedTuple):
    """What the rules look at.

    Attributes:
        metadata_kv: The parsed metadata pairs.
        tensor_infos: The parsed tensor infos.
        alignment: The alignment in force.
        infos_end: Absolute offset of the first byte after the tensor infos.
        data_offset: Absolute offset of the tensor data.
        size: Bytes of the whole file, or None where there is no file yet.
    """

    metadata_kv: Sequence[Any]
    tensor_infos: Sequence[Any]
    alignment: int
    infos_end: int
    data_offset: int
    size: int | None


def keys(file: Parsed) -> Iterator[Finding]:
    """No empty key (ggml aborts), none twice (readers differ in which they take)."""
    yield from _names("key", "metadata_kv", [pair["key"] for pair in file.metadata_kv], "key", may_be_empty=False)


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
            yield Finding(f"{code}-twice", path, f"the {what} {name!r} stands in {array}[{first[name]}] already")


def alignment(file: Parsed) -> Iterator[Finding]:
    """`general.alignment` is a UINT32, and a power of two (llama.cpp) or a multiple of 8 (the specification)."""
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


def shapes(file: Parsed) -> Iterator[Finding]:
    """Types, dimensions and sizes that ggml can count, rows of whole blocks."""
    for index, info in enumerate(file.tensor_infos):
        path = f"tensor_infos[{index}]"
        dimensions = info["dimensions"]
        if len(dimensions) > MAX_DIMENSIONS:
            problem = f"{len(dimensions)} dimensions; {MAX_DIMENSIONS} are allowed"
            yield Finding("dimensions-too-many", f"{path}.n_dimensions", problem)
            continue
        if info["type"] > MAX_TYPE:
            yield Finding("tensor-type-range", f"{path}.type", f"{info['type']} is no type: {MAX_TYPE} is the largest")
        for axis, dimension in enumerate(dimensions):
            if dimension > MAX_SIZE:
                problem = f"{dimension} elements in one dimension; {MAX_SIZE} can be counted"
                yield Finding("dimension-range", f"{path}.dimensions[{axis}]", problem)
        try:
            size = n_bytes(info["type"], dimensions) or 0
        except GGUFError as error:
            yield Finding("row-not-blocks", f"{path}.{error.path}", error.problem)
            continue
        if max(n_elements(dimensions), size) > MAX_SIZE:
            problem = f"dimensions {' x '.join(map(str, dimensions))} make more than {MAX_SIZE} elements or bytes"
            yield Finding("tensor-size-range", f"{path}.dimensions[0]", problem)


def offsets(file: Parsed) -> Iterator[Finding]:
    """Every offset is a multiple of the alignment."""
    for index, info in enumerate(file.tensor_infos):
        if info["offset"] % file.alignment:
            problem = f"{info['offset']} is no multiple of the alignment {file.alignment}"
            yield Finding("offset-unaligned", f"tensor_infos[{index}].offset", problem)


IMPLAUSIBLE = 1 << 20
"""A tensor that declares this many times the bytes of the whole file was not cut short: its dimensions are wrong."""


def data_start(file: Parsed) -> Iterator[Finding]:
    """The tensor data begins within the file."""
    if file.size is None or not file.tensor_infos or file.data_offset <= file.size:
        return
    problem = f"tensor data begins at byte {file.data_offset}, the file ends at byte {file.size}"
    if file.alignment > file.size:
        index = next(index for index, pair in enumerate(file.metadata_kv) if pair["key"] == ALIGNMENT.template)
        yield Finding("data-missing", f"metadata_kv[{index}].value", problem)
    else:
        yield Finding("data-missing", "padding", problem, file.infos_end)


def data_end(file: Parsed) -> Iterator[Finding]:
    """The data of every tensor ends within the file. What is at fault, offset, dimensions or data, is an estimate."""
    if file.size is None or file.data_offset > file.size:
        return
    for index, info in enumerate(file.tensor_infos):
        start = file.data_offset + info["offset"]
        struct = block(info["type"]) if len(info["dimensions"]) <= MAX_DIMENSIONS else None
        size = n_elements(info["dimensions"]) // struct.block_size * struct.type_size if struct else 0
        if start + size <= file.size:
            continue
        path = f"tensor_infos[{index}]"
        problem = f"{size} bytes of tensor {info['name']!r} at byte {start}, the file ends at byte {file.size}"
        if start > file.size:
            yield Finding("data-missing", f"{path}.offset", problem)
        elif size > IMPLAUSIBLE * file.size:
            yield Finding("data-missing", f"{path}.dimensions[0]", problem)
        else:
            yield Finding("data-missing", "tensor_data", problem, file.size)


RULES = (keys, alignment, tensor_names, shapes, data_start, offsets, data_end)


def errors(file: Parsed) -> Iterator[Finding]:
    """All faults of a file for which it is refused."""
    for rule in RULES:
        yield from rule(file)
