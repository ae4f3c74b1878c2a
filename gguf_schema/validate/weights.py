"""Numbers that are none: NaN and infinity among the weights of plain tensors and the scales of quantised ones.

The only rules that read tensor data, in pieces and in the order of the file. What a block holds is told by its Struct:
every float is looked at, and the fields of HIDDEN, which are floats though the Struct calls them integers.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..blocks import block
from ..enums import GGMLQuantizationType as T
from ..errors import Finding, GGUFError
from ..file import Tensor
from ..layout import type_name
from ..walk import dtype
from .metadata import shown
from .rule import NOTE, Rule
from .subject import Subject

Array: TypeAlias = np.ndarray[Any, Any]
Bits: TypeAlias = Callable[[Array, str], Array]

CHUNK = 1 << 20
"""Bytes read at once; more than any block has."""


def _plainly(numbers: Array, order: str) -> Array:
    """The bits of numbers."""
    return numbers.view(f"{order}u{numbers.itemsize}")


def _from_high_nibbles(scales: Array, order: str) -> Array:
    """The bits of numbers that are spread over the high nibbles of uint16s, the lowest bits first."""
    nibbles = scales.view(f"{order}u2") >> 12
    places = np.arange(nibbles.shape[-1], dtype="u2") * 4
    return np.asarray(np.bitwise_or.reduce(nibbles << places, axis=-1))


def _exponent(number: Any) -> int:
    """The bits of a float's exponent, which are those of infinity."""
    infinity = np.array(np.inf, number)
    return int(infinity.view(f"u{infinity.itemsize}"))


HIDDEN: dict[tuple[T, str], tuple[int, Bits]] = {
    (T.BF16, "value"): (_exponent("f4") >> 16, _plainly),  # the upper half of a binary32
    (T.MXFP4, "e"): (0xFF, _plainly),  # E8M0 is all exponent; OCP's MX formats: all ones are NaN
    (T.NVFP4, "d"): (0x7F, _plainly),  # UE4M3 has no infinity; OCP's FP8: NaN has all bits set but the sign
    (T.IQ1_M, "scales"): (_exponent("f2"), _from_high_nibbles),  # a float16; ggml reads uint16s of the host's order
}
"""Fields that are floats by another name: bits that are all set in what is no finite number, and how to get at them."""


class Field(NamedTuple):
    """A field of a block that holds floats.

    Attributes:
        name: Its name.
        start: Its first byte in the block.
        end: The byte after its last.
        exponent: The bits that are all set in a NaN or infinity. It is infinite where it has bits below those, all 0.
        bits: Takes an array of fields and their byte order, and gives the bits of the floats.
    """

    name: str
    start: int
    end: int
    exponent: int
    bits: Bits


@cache
def fields(type: T, order: str) -> tuple[np.dtype[Any], tuple[Field, ...]]:
    """The dtype of a type's block, and its fields that hold floats, in the order of the bytes."""
    layout = dtype(block(type, order))
    found = []
    for name in layout.names or ():
        field, start = layout.fields[name][:2]  # type: ignore[index]
        if field.base.kind == "f":
            found.append(Field(name, start, start + field.itemsize, _exponent(field.base.newbyteorder("=")), _plainly))
        elif (type, name) in HIDDEN:
            found.append(Field(name, start, start + field.itemsize, *HIDDEN[type, name]))
    return layout, tuple(found)


def weights(subject: Subject) -> Iterator[Finding]:
    """Numbers that are none, and tensors of zeros: of each tensor and code the first place."""
    for index, tensor, size in _readable(subject):
        yield from _in_tensor(subject, index, tensor, size)


def _readable(subject: Subject) -> Iterator[tuple[int, Tensor, int]]:
    """Index, tensor and bytes of those whose type is known and whose data is there, in the order of the data.

    Of tensors that overlap the first: a million may claim the same gigabyte.
    """
    model = subject.model
    if model is None:
        return
    tensors, known = model.tensors.infos, subject.parsed.known_sizes
    reach = 0
    for index in sorted(range(len(tensors)), key=lambda index: tensors[index].offset):
        tensor, size = tensors[index], known[index]
        if size and tensor.offset >= reach and tensor.data_offset + size <= model.size:
            reach = tensor.offset + size
            yield index, tensor, size


def _in_tensor(subject: Subject, index: int, tensor: Tensor, size: int) -> Iterator[Finding]:
    """What is wrong with the numbers of one tensor."""
    struct = tensor.block
    assert struct is not None
    kind = "weight" if struct.is_plain else "scale"
    layout, floats = fields(T(tensor.type), tensor.order)
    counts: Counter[str] = Counter()
    first: dict[str, tuple[int, Field]] = {}
    is_zero = sum(dimension > 1 for dimension in tensor.dimensions) > 1
    for start, blocks in _chunks(subject, tensor.data_offset, size, layout):
        is_zero = is_zero and not blocks.view(np.uint8).max()
        if not is_zero and not floats:
            return
        bits = [field.bits(blocks[field.name], tensor.order) for field in floats]
        if not any(map(_may_be_wrong, bits, (field.exponent for field in floats))):
            continue
        for code, wrong in _wrong(bits, floats, kind):
            places = wrong.any(axis=0)
            if places.any():
                at = int(places.argmax())
                first.setdefault(code, (start + at, floats[int(wrong[:, at].argmax())]))
                counts[code] += int(np.count_nonzero(places))
    path, what = f"tensor_data[{index}]", f"tensor {shown(tensor.name)}, {type_name(tensor.type)}"
    for code, (at, field) in first.items():
        message = f"{counts[code]} of {size // layout.itemsize} {FOUND[code]}; this is the first ({what})"
        begin = tensor.data_offset + at * layout.itemsize
        yield Finding(code, f"{path}[{at}].{field.name}", message, begin + field.start, begin + field.end)
    if is_zero:
        message = f"all {size} bytes are zero ({what})"
        yield Finding("weights-zero", path, message, tensor.data_offset, tensor.data_offset + size)


def _chunks(subject: Subject, begin: int, size: int, layout: np.dtype[Any]) -> Iterator[tuple[int, Array]]:
    """The blocks in these bytes, whole ones, about CHUNK bytes at a time, and the index of the first."""
    step = CHUNK // layout.itemsize * layout.itemsize
    for done in range(0, size, step):
        wanted = min(step, size - done)
        data = subject.source.read_at(begin + done, wanted)
        if len(data) < wanted:
            raise GGUFError(f"the file has shrunk: {wanted} bytes at byte {begin + done} were there when it was opened")
        subject.progress(begin + done + wanted, subject.size)
        yield done // layout.itemsize, np.frombuffer(data, layout)


def _may_be_wrong(bits: Array, exponent: int) -> bool:
    """Whether a number is none. The largest of all, signed and unsigned, tell: one pass each, without a copy."""
    sign = 1 << (8 * bits.itemsize - 1)
    signed = bits.view(bits.dtype.str.replace("u", "i"))
    return bool(signed.max() >= exponent or bits.max() >= sign | exponent)


def _wrong(bits: list[Array], floats: tuple[Field, ...], kind: str) -> Iterator[tuple[str, Array]]:
    """The codes, and for each which fields of which blocks are wrong: bool, shape (fields, blocks)."""
    infinite, nan = [], []
    for field, numbers in zip(floats, bits, strict=True):
        numbers = numbers.reshape(len(numbers), -1)
        is_special = numbers & field.exponent == field.exponent
        below = (field.exponent & -field.exponent) - 1
        is_infinite = is_special & (numbers & below == 0) if below else np.zeros_like(is_special)
        infinite.append(is_infinite.any(axis=1))
        nan.append((is_special & ~is_infinite).any(axis=1))
    yield f"{kind}-nan", np.array(nan)
    yield f"{kind}-inf", np.array(infinite)


FOUND = {
    "weight-nan": "elements are NaN",
    "weight-inf": "elements are infinite",
    "scale-nan": "blocks have a scale or minimum that is NaN",
    "scale-inf": "blocks have a scale or minimum that is infinite",
}
"""What is said of the elements or blocks."""

CHECK_TENSORS = "llama.cpp's --check-tensors refuses it; what is computed from it is NaN"
ANEW = "Convert the model anew, or fetch the file again; a training run that went astray cannot be mended"

RULES = (
    Rule("weight-nan", NOTE, "A weight that is NaN", "tensor_data.value", CHECK_TENSORS, ANEW, weights),
    Rule("weight-inf", NOTE, "A weight that is infinite", "tensor_data.value", CHECK_TENSORS, ANEW, weights),
    Rule("scale-nan", NOTE, "A block with a scale or minimum that is NaN", "tensor_data", CHECK_TENSORS, ANEW, weights),
    Rule("scale-inf", NOTE, "A block with an infinite scale or minimum", "tensor_data", CHECK_TENSORS, ANEW, weights),
    Rule(
        "weights-zero",
        NOTE,
        "A matrix of nothing but zeros",
        "tensor_data",
        "downloads that reserve the space first leave holes where they stop",
        "Compare the file with the published checksum; fetch it again",
        weights,
    ),
)
