"""What tensor infos may say: names, dimensions, types, sizes."""

import math
from collections.abc import Iterator
from typing import Any

from .. import policy
from ..blocks import block_sizes
from ..enums import GGMLQuantizationType
from ..errors import Finding
from ..layout import align_up, type_name
from ..limits import LONGEST_NAME, MAX_DIMENSIONS, MAX_SIZE, MAX_TYPE, NUMPY_DIMENSIONS, STALE_Q8_1, USUAL_DIMENSIONS
from .metadata import is_utf8, shown
from .rule import ERROR, GGUF_CPP, NOTE, WARNING, Rule
from .subject import Subject

NEWEST = GGMLQuantizationType.Q2_0
"""A type that readers of 2026-06 do not know."""

BITS_64 = (1 << 64) - 1
"""The largest number of 64 bits."""


def names(subject: Subject) -> Iterator[Finding]:
    """Names that trouble readers."""
    for index, info in enumerate(subject.tensor_infos):
        name, path = info["name"], f"tensor_infos[{index}].name"
        size = len(name.encode("utf-8", "surrogateescape"))
        if not is_utf8(name):
            yield Finding("name-utf8", f"{path}.string", f"{shown(name)} is not valid UTF-8")
        if "\0" in name:
            yield Finding("name-nul", f"{path}.string", f"{shown(name)} has a NUL, where C readers see its end")
        if not size:
            yield Finding("name-empty", f"{path}.len", "the name is empty")
        elif size == LONGEST_NAME:
            yield Finding("name-64", f"{path}.len", f"{size} bytes; llama.cpp reads at most {LONGEST_NAME - 1}")
        elif size > LONGEST_NAME:
            yield Finding("name-long", f"{path}.len", f"{size} bytes; {LONGEST_NAME} are allowed")


def names_in_c(subject: Subject) -> Iterator[Finding]:
    """Names that are equal up to a NUL: two tensors to Python, one to C."""
    first: dict[str, int] = {}
    names = [info["name"] for info in subject.tensor_infos]
    for index, name in enumerate(names):
        known = first.setdefault(name.partition("\0")[0], index)
        if known != index and names[known] != name:
            yield Finding(
                "name-nul-twice", f"tensor_infos[{index}].name.string", f"{shown(name)} is tensor {known}'s name in C"
            )


def name_errors(subject: Subject) -> Iterator[Finding]:
    """Names that stand twice."""
    return policy.tensor_names(subject.parsed)


def dimensions(subject: Subject) -> Iterator[Finding]:
    """Numbers of dimensions that not all readers take."""
    for index, info in enumerate(subject.tensor_infos):
        count, path = len(info["dimensions"]), f"tensor_infos[{index}].n_dimensions"
        if count == 0:
            yield Finding("dimensions-none", path, "no dimensions: one element; llama.cpp writes it as one dimension")
        elif USUAL_DIMENSIONS < count <= MAX_DIMENSIONS:
            yield Finding("dimensions-many", path, f"{count} dimensions; {USUAL_DIMENSIONS} are allowed")
        if count > NUMPY_DIMENSIONS:
            yield Finding("dimensions-numpy", path, f"{count} dimensions; numpy's arrays have up to {NUMPY_DIMENSIONS}")
        elif count > MAX_DIMENSIONS and not _is_sound(subject, info):
            yield Finding("dimensions-numpy", path, f"{count} dimensions, and no data of such a shape")
        elif count == 0 and info["type"] == GGMLQuantizationType.BF16:
            yield Finding("dimensions-numpy", path, "gguf-py asks a BF16 tensor for its last dimension")


def _is_sound(subject: Subject, info: Any) -> bool:
    """Whether a tensor of more dimensions than are counted elsewhere has whole blocks, and its data is there."""
    sizes = block_sizes().get(info["type"])
    parsed = subject.parsed
    if sizes is None or parsed.size is None or max(info["dimensions"]) > MAX_SIZE:
        return False
    size = math.prod(info["dimensions"]) // sizes[0] * sizes[1]
    return not info["dimensions"][0] % sizes[0] and parsed.data_offset + info["offset"] + size <= parsed.size


def types(subject: Subject) -> Iterator[Finding]:
    """Types that are not, not any more, or not yet known everywhere."""
    for index, info in enumerate(subject.tensor_infos):
        type, path = info["type"], f"tensor_infos[{index}].type"
        if type > MAX_TYPE:
            continue
        if type == NEWEST:
            yield Finding("tensor-type-new", path, f"{type_name(type)} is not known to readers from before 2026-07")
        elif type not in block_sizes():
            is_removed = isinstance(type, GGMLQuantizationType)
            code = "tensor-type-removed" if is_removed else "tensor-type-unknown"
            yield Finding(
                code, path, f"{type_name(type)}{' was removed from ggml' if is_removed else ' is no type of ggml'}"
            )


def shape_errors(subject: Subject) -> Iterator[Finding]:
    """Shapes that ggml cannot count."""
    return policy.shapes(subject.parsed)


def partial_products(subject: Subject) -> Iterator[Finding]:
    """A tensor without elements whose other dimensions make too many: llama.cpp multiplies up to the zero."""
    for index, info in enumerate(subject.tensor_infos):
        product = 1
        dimensions = info["dimensions"]
        if 0 not in dimensions or max(dimensions) > MAX_SIZE:
            continue
        for dimension in dimensions:
            if dimension > 1 and product > MAX_SIZE // dimension:
                path = f"tensor_infos[{index}].dimensions[0]"
                yield Finding("dimensions-partial", path, "the dimensions before the 0 make 2^63 elements or more")
                break
            product *= dimension


def numpy_sizes(subject: Subject) -> Iterator[Finding]:
    """A tensor without elements whose other dimensions make an array of numpy too large: it, too, multiplies them."""
    for index, info in enumerate(subject.tensor_infos):
        dimensions = info["dimensions"]
        if 0 not in dimensions or len(dimensions) > NUMPY_DIMENSIONS:
            continue
        block_size, type_size = block_sizes().get(info["type"], (1, 1))
        if block_size > 1 or info["type"] == GGMLQuantizationType.BF16:  # these are arrays of bytes
            dimensions, type_size = [dimensions[0] // block_size * type_size, *dimensions[1:]], 1
        if math.prod(filter(None, dimensions)) * type_size > MAX_SIZE:
            path = f"tensor_infos[{index}].dimensions[0]"
            yield Finding("dimensions-numpy-range", path, "the dimensions other than 0 make 2^63 bytes or more")


def stale_sizes(subject: Subject) -> Iterator[Finding]:
    """A Q8_1 tensor whose data is there, but not for who takes its blocks for larger."""
    parsed = subject.parsed
    for index, info in enumerate(subject.tensor_infos):
        if info["type"] != GGMLQuantizationType.Q8_1 or parsed.size is None:
            continue
        block_size, type_size = block_sizes()[GGMLQuantizationType.Q8_1]
        blocks = math.prod(info["dimensions"]) // block_size
        left = parsed.size - (parsed.data_offset + info["offset"] & BITS_64)
        if blocks * type_size <= left < blocks * STALE_Q8_1:
            problem = f"gguf-py 0.19.0 takes blocks of {type_size} bytes for {STALE_Q8_1}: {left} bytes are left"
            yield Finding("q8-1-short", f"tensor_infos[{index}].type", problem)


def size_wraps(subject: Subject) -> Iterator[Finding]:
    """Sizes whose padded sum does not fit 64 bits, in which llama.cpp counts."""
    total = 0
    for index, size in enumerate(subject.parsed.known_sizes):
        if size is None:
            return
        total += size + subject.parsed.alignment - 1
        if total > BITS_64:
            problem = f"with its {size} bytes the data is too large for a number of 64 bits"
            yield Finding("data-size-wraps", f"tensor_infos[{index}].dimensions[0]", problem)
            return
        total = align_up(total - subject.parsed.alignment + 1, subject.parsed.alignment)


TENSOR_CLAUSE = "specification, gguf_tensor_info_t"

RULES = (
    Rule(
        "tensor-name-twice",
        ERROR,
        "A tensor's name that stands twice",
        "tensor_infos.name.len",
        GGUF_CPP,
        "Rename one of the tensors",
        name_errors,
    ),
    Rule(
        "name-utf8",
        WARNING,
        "A name that is not valid UTF-8",
        "tensor_infos.name.string",
        TENSOR_CLAUSE,
        "Rename the tensor",
        names,
        True,
    ),
    Rule(
        "name-nul",
        WARNING,
        "A name with a NUL",
        "tensor_infos.name.string",
        "C readers see its end there",
        "Rename the tensor",
        names,
        True,
    ),
    Rule(
        "name-nul-twice",
        WARNING,
        "Names that are equal up to a NUL",
        "tensor_infos.name.string",
        "gets round llama.cpp's check",
        "Rename the tensor",
        names_in_c,
        True,
    ),
    Rule(
        "name-empty",
        WARNING,
        "An empty name",
        "tensor_infos.name.len",
        "no reader can ask for the tensor",
        "Name the tensor",
        names,
    ),
    Rule(
        "name-64",
        WARNING,
        "A name of exactly 64 bytes",
        "tensor_infos.name.len",
        GGUF_CPP + ": GGML_MAX_NAME counts a NUL",
        "Shorten the name by a byte",
        names,
    ),
    Rule(
        "name-long",
        WARNING,
        "A name of more than 64 bytes",
        "tensor_infos.name.len",
        TENSOR_CLAUSE,
        "Shorten the name",
        names,
        True,
    ),
    Rule(
        "dimensions-none",
        WARNING,
        "No dimensions",
        "tensor_infos.n_dimensions",
        GGUF_CPP,
        "Write one dimension of 1",
        dimensions,
    ),
    Rule(
        "dimensions-many",
        WARNING,
        "5 to 8 dimensions",
        "tensor_infos.n_dimensions",
        TENSOR_CLAUSE,
        "Join dimensions",
        dimensions,
        True,
    ),
    Rule(
        "dimensions-too-many",
        ERROR,
        "More than 8 dimensions",
        "tensor_infos.n_dimensions",
        GGUF_CPP,
        "Join dimensions",
        shape_errors,
    ),
    Rule(
        "dimensions-numpy",
        NOTE,
        "More dimensions than numpy has",
        "tensor_infos.n_dimensions",
        "gguf-py, gguf_reader.py",
        "Join dimensions",
        dimensions,
    ),
    Rule(
        "dimension-range",
        ERROR,
        "A dimension of 2^63 or more",
        "tensor_infos.dimensions",
        "CVE-2024-23605 and others",
        "The number is damaged: see `gguf-schema explain`",
        shape_errors,
    ),
    Rule(
        "tensor-elements-range",
        ERROR,
        "2^63 elements or more",
        "tensor_infos.dimensions",
        "CVE-2024-23605 and others",
        "The dimensions are damaged: see `gguf-schema explain`",
        shape_errors,
    ),
    Rule(
        "tensor-bytes-range",
        ERROR,
        "2^63 bytes or more",
        "tensor_infos.dimensions",
        "CVE-2025-53630 and others",
        "The dimensions are damaged: see `gguf-schema explain`",
        shape_errors,
    ),
    Rule(
        "dimensions-partial",
        NOTE,
        "Dimensions that overflow before a 0",
        "tensor_infos.dimensions",
        GGUF_CPP,
        "Write the tensor without elements with small dimensions",
        partial_products,
    ),
    Rule(
        "dimensions-numpy-range",
        NOTE,
        "Dimensions beside a 0 that are too large for numpy",
        "tensor_infos.dimensions",
        "gguf-py, gguf_reader.py",
        "Write the tensor without elements with small dimensions",
        numpy_sizes,
    ),
    Rule(
        "data-size-wraps",
        NOTE,
        "Data of 2^64 bytes or more",
        "tensor_infos.dimensions",
        GGUF_CPP,
        "The dimensions are damaged: see `gguf-schema explain`",
        size_wraps,
    ),
    Rule(
        "tensor-type-range",
        ERROR,
        "A type of 2^31 or more",
        "tensor_infos.type",
        GGUF_CPP + ": an enum of C",
        "The number is damaged: see `gguf-schema explain`",
        shape_errors,
    ),
    Rule(
        "tensor-type-removed",
        WARNING,
        "A type that ggml removed",
        "tensor_infos.type",
        "ggml.h",
        "Quantise the model anew",
        types,
        True,
    ),
    Rule(
        "tensor-type-unknown",
        WARNING,
        "A type that ggml does not have",
        "tensor_infos.type",
        "ggml.h",
        "Use the program that the type belongs to, or quantise the model anew",
        types,
        True,
    ),
    Rule(
        "tensor-type-new",
        NOTE,
        "A type that is newer than many readers",
        "tensor_infos.type",
        "gguf-py 0.19.0 does not know it",
        "Nothing is wrong; old readers need another type",
        types,
    ),
    Rule(
        "q8-1-short",
        NOTE,
        "Q8_1 data that gguf-py 0.19.0 misses the end of",
        "tensor_infos.type",
        "gguf-py 0.19.0, constants.py: a block's size is stale",
        "Nothing is wrong; later gguf-py reads it",
        stale_sizes,
    ),
    Rule(
        "row-not-blocks",
        ERROR,
        "A row that is no whole number of blocks",
        "tensor_infos.dimensions",
        GGUF_CPP,
        "Quantise the tensor to a type with smaller blocks",
        shape_errors,
    ),
)
