"""The ggml tensor types: one Struct a block, as ggml-common.h declares them.

A tensor's data is rows of blocks. Each live type is a `Block`: a Struct with ggml's field names whose `sizeof()` is the
type size and whose `block_size` is the number of elements that it holds. Types that ggml removed have no Block.
"""

from functools import cache, cached_property
from typing import Any

import construct
import numpy as np

from .constructs import Array, Float, Integer, Struct, field
from .enums import GGMLQuantizationType as T
from .walk import dtype as dtype_of


class Block(Struct):
    """The Struct of one block.

    Args:
        block_size: Elements in a block (ggml_blck_size).
        fields: Its fields, in the order of the bytes, without padding.
    """

    def __init__(self, block_size: int, *fields: construct.Construct) -> None:
        super().__init__(*fields)
        self.block_size = block_size

    @cached_property
    def type_size(self) -> int:
        """Bytes of a block (ggml_type_size)."""
        return self.sizeof()

    @property
    def is_plain(self) -> bool:
        """Whether an element is one number of its own: no quantisation, no neighbours."""
        return self.block_size == 1

    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype: of a plain type that of its number, else structured, with the fields of the block."""
        structured = dtype_of(self)
        return structured[0] if self.is_plain else structured


SCALE = "Scale of the block"
MINIMUM = "Minimum of the block, or offset: what an element of value 0 stands for"
SUPER_SCALE = "Scale of the sub-blocks' scales"
SUPER_MINIMUM = "Scale of the sub-blocks' minimums"
NIBBLES = "4-bit quants, two a byte: low nibbles are the first half of the elements, high nibbles the second"
LOW_NIBBLES = "Low 4 bits of the quants, two a byte"
HIGH_BITS = "The 5th bit of each quant; ggml reads the 4 bytes as a uint32 of the host's byte order"
QUANTS_2 = "2-bit quants, four a byte"
GRID = "Indices into a fixed grid of groups of elements"
SIGNS = "Signs of the elements, one bit each"


@cache
def blocks(order: str) -> dict[T, Block]:
    """The block Structs of all live tensor types.

    Args:
        order: Byte order of the fields, "<" or ">". Of those of `UNDEFINED_BIG` byte arrays stay byte arrays in both.
    """
    u8, u16, i8, i16 = (Integer(order, letter) for letter in "BHbh")
    i32, i64 = Integer(order, "l"), Integer(order, "q")
    f16, f32, f64 = (Float(order, letter) for letter in "efd")
    return {
        T.F32: Block(1, field("value", f32, "IEEE 754 binary32")),
        T.F16: Block(1, field("value", f16, "IEEE 754 binary16")),
        T.Q4_0: Block(32, field("d", f16, SCALE), field("qs", Array(16, u8), NIBBLES)),
        T.Q4_1: Block(32, field("d", f16, SCALE), field("m", f16, MINIMUM), field("qs", Array(16, u8), NIBBLES)),
        T.Q5_0: Block(
            32, field("d", f16, SCALE), field("qh", Array(4, u8), HIGH_BITS), field("qs", Array(16, u8), LOW_NIBBLES)
        ),
        T.Q5_1: Block(
            32,
            field("d", f16, SCALE),
            field("m", f16, MINIMUM),
            field("qh", Array(4, u8), HIGH_BITS),
            field("qs", Array(16, u8), LOW_NIBBLES),
        ),
        T.Q8_0: Block(32, field("d", f16, SCALE), field("qs", Array(32, i8), "8-bit quants")),
        T.Q8_1: Block(
            32,
            field("d", f16, SCALE),
            field("s", f16, "d times the sum of the quants"),
            field("qs", Array(32, i8), "8-bit quants"),
        ),
        T.Q2_K: Block(
            256,
            field("scales", Array(16, u8), "Scale (low nibble) and minimum (high) of each 16 elements"),
            field("qs", Array(64, u8), QUANTS_2),
            field("d", f16, SUPER_SCALE),
            field("dmin", f16, SUPER_MINIMUM),
        ),
        T.Q3_K: Block(
            256,
            field("hmask", Array(32, u8), "The high bit of each quant"),
            field("qs", Array(64, u8), "Low 2 bits of the quants, four a byte"),
            field("scales", Array(12, u8), "Sixteen 6-bit scales, packed"),
            field("d", f16, SUPER_SCALE),
        ),
        T.Q4_K: Block(
            256,
            field("d", f16, SUPER_SCALE),
            field("dmin", f16, SUPER_MINIMUM),
            field("scales", Array(12, u8), "Eight 6-bit scales and eight 6-bit minimums, packed"),
            field("qs", Array(128, u8), "4-bit quants, two a byte"),
        ),
        T.Q5_K: Block(
            256,
            field("d", f16, SUPER_SCALE),
            field("dmin", f16, SUPER_MINIMUM),
            field("scales", Array(12, u8), "Eight 6-bit scales and eight 6-bit minimums, packed"),
            field("qh", Array(32, u8), "The 5th bit of each quant"),
            field("qs", Array(128, u8), LOW_NIBBLES),
        ),
        T.Q6_K: Block(
            256,
            field("ql", Array(128, u8), "Low 4 bits of the quants"),
            field("qh", Array(64, u8), "High 2 bits of the quants"),
            field("scales", Array(16, i8), "Scale of each 16 elements"),
            field("d", f16, SUPER_SCALE),
        ),
        T.Q8_K: Block(
            256,
            field("d", f32, SCALE),
            field("qs", Array(256, i8), "8-bit quants"),
            field("bsums", Array(16, i16), "Sum of the quants of each 16 elements"),
        ),
        T.IQ2_XXS: Block(
            256, field("d", f16, SCALE), field("qs", Array(32, u16), f"{GRID}, with packed signs and 4-bit scales")
        ),
        T.IQ2_XS: Block(
            256,
            field("d", f16, SCALE),
            field("qs", Array(32, u16), "9-bit indices into a fixed grid, each with 7 bits of signs"),
            field("scales", Array(8, u8), "4-bit scales, two a byte"),
        ),
        T.IQ3_XXS: Block(
            256,
            field("d", f16, SCALE),
            field("qs", Array(96, u8), f"64 bytes: {GRID.lower()}; then 32: scales and signs, eight uint32 to ggml"),
        ),
        T.IQ1_S: Block(
            256,
            field("d", f16, SCALE),
            field("qs", Array(32, u8), "Low 8 bits of indices into a fixed grid"),
            field(
                "qh", Array(8, u16), "For each 32 elements four times 3 high bits, a 3-bit scale and the delta's sign"
            ),
        ),
        T.IQ4_NL: Block(
            32,
            field("d", f16, SCALE),
            field("qs", Array(16, u8), "4-bit indices into a fixed table of 16 values, two a byte"),
        ),
        T.IQ3_S: Block(
            256,
            field("d", f16, SCALE),
            field("qs", Array(64, u8), "Low 8 bits of indices into a fixed grid"),
            field("qh", Array(8, u8), "The 9th bit of the indices"),
            field("signs", Array(32, u8), SIGNS),
            field("scales", Array(4, u8), "4-bit scales, two a byte"),
        ),
        T.IQ2_S: Block(
            256,
            field("d", f16, SCALE),
            field("qs", Array(64, u8), "32 bytes: low 8 bits of indices into a fixed grid; then 32: signs"),
            field("qh", Array(8, u8), "High 2 bits of the indices"),
            field("scales", Array(8, u8), "4-bit scales, two a byte"),
        ),
        T.IQ4_XS: Block(
            256,
            field("d", f16, SUPER_SCALE),
            field("scales_h", u16, "High 2 bits of the eight scales"),
            field("scales_l", Array(4, u8), "Low 4 bits of the eight scales, two a byte"),
            field("qs", Array(128, u8), "4-bit indices into a fixed table of 16 values, two a byte"),
        ),
        T.I8: Block(1, field("value", i8, "Signed integer of 8 bits")),
        T.I16: Block(1, field("value", i16, "Signed integer of 16 bits")),
        T.I32: Block(1, field("value", i32, "Signed integer of 32 bits")),
        T.I64: Block(1, field("value", i64, "Signed integer of 64 bits")),
        T.F64: Block(1, field("value", f64, "IEEE 754 binary64")),
        T.IQ1_M: Block(
            256,
            field("qs", Array(32, u8), "Low 8 bits of indices into a fixed grid"),
            field("qh", Array(16, u8), "High 3 bits of each index and the sign of its delta, two a byte"),
            field("scales", Array(8, u8), "Four uint16 to ggml: 3-bit scales, and in the high nibbles a float16 scale"),
        ),
        T.BF16: Block(1, field("value", u16, "bfloat16: the upper half of a binary32, as its bits")),
        T.TQ1_0: Block(
            256,
            field("qs", Array(48, u8), "Ternary quants, five a byte (base 3)"),
            field("qh", Array(4, u8), "The last 16 ternary quants, four a byte"),
            field("d", f16, SCALE),
        ),
        T.TQ2_0: Block(
            256, field("qs", Array(64, u8), "Ternary quants of 2 bits, four a byte"), field("d", f16, SCALE)
        ),
        T.MXFP4: Block(
            32,
            field("e", u8, "Scale as a power of two (E8M0)"),
            field("qs", Array(16, u8), "4-bit floats (E2M1), two a byte"),
        ),
        T.NVFP4: Block(
            64,
            field("d", Array(4, u8), "Scale of each 16 elements (UE4M3)"),
            field("qs", Array(32, u8), "4-bit floats (E2M1), two a byte"),
        ),
        T.Q1_0: Block(128, field("d", f16, SCALE), field("qs", Array(16, u8), "1-bit quants, eight a byte")),
        T.Q2_0: Block(64, field("d", f16, SCALE), field("qs", Array(16, u8), QUANTS_2)),
    }


UNDEFINED_BIG = {
    T.Q5_0: "qh",
    T.Q5_1: "qh",
    T.Q3_K: "scales",
    T.IQ2_XXS: "qs",
    T.IQ3_XXS: "qs",
    T.IQ1_M: "scales",
}
"""Types whose big-endian form nobody defines → the field that ggml reads as larger numbers than it is declared with."""


@cache
def block_sizes() -> dict[int, tuple[int, int]]:
    """The block size (elements) and the type size (bytes) of each live tensor type."""
    return {type: (struct.block_size, struct.type_size) for type, struct in blocks("<").items()}


def block(type: int, order: str = "<") -> Block | None:
    """The block Struct of a tensor type; None for a type that was removed or is unknown."""
    return blocks(order).get(type)  # type: ignore[call-overload, no-any-return]
