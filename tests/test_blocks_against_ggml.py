"""Peers: sizes, names and fields of the tensor types against ggml's and gguf-py's tables and one that is typed out.

That the fields stand in the right order is shown by dequantising: the formulas below take nothing but the fields of our
structured dtypes, and give what ggml's C code gives, bit by bit.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gguf_schema
from gguf_schema import GGMLQuantizationType as Q
from gguf_schema.blocks import block, blocks

from . import peers
from .shared import CORPUS, needs_corpus

REMOVED = [4, 5, 31, 32, 33, 36, 37, 38]
"""Ids whose types ggml removed."""

TYPES = pytest.mark.parametrize("type", peers.TYPES)


def test_types_are_those_of_the_table():
    assert len(peers.TYPES) == 35
    assert {type.name: int(type) for type in blocks("<")} == {name: id for name, (id, *_) in peers.TYPES.items()}
    assert blocks("<").keys() == blocks(">").keys()
    assert [id for id in range(44) if block(id) is None] == [*REMOVED, 43]


@TYPES
@pytest.mark.parametrize("order", ["<", ">"])
def test_block_is_that_of_the_table(type, order):
    id, block_size, type_size, fields = peers.TYPES[type]
    struct = blocks(order)[Q(id)]
    assert (struct.block_size, struct.type_size, struct.sizeof()) == (block_size, type_size, type_size)
    assert [field.name for field in struct.subcons] == [name for name, *_ in fields]
    assert struct.dtype() == peers.block_dtype(type, order)
    assert struct.dtype().itemsize == type_size
    assert struct.is_plain == (block_size == 1)


@TYPES
@pytest.mark.parametrize("order", ["<", ">"])
def test_struct_and_dtype_agree(type, order):
    """A block that construct parses has the values that numpy sees, and is built again of them."""
    struct = blocks(order)[Q[type]]
    raw = random_blocks(type, 1, order).tobytes()
    parsed = struct.parse(raw)
    assert struct.build(parsed) == raw
    (seen,) = np.frombuffer(raw, peers.block_dtype(type, order))
    for name, *_ in peers.TYPES[type][3]:
        expected = seen if struct.is_plain else seen[name]
        np.testing.assert_array_equal(np.asarray(parsed[name], expected.dtype), expected)


def test_ggml_has_the_same_table():
    """All ids that ggml knows, and no more: it reads past its table for others."""
    c = peers.ggml()
    assert c.type_count == 42, "another ggml-python: see whether it knows Q2_0 (42) now"
    for id in range(c.type_count):
        struct = block(id)
        if struct is None:
            assert id in REMOVED
            assert c.ggml_blck_size(id) == 0
        else:
            assert (struct.block_size, struct.type_size) == (c.ggml_blck_size(id), c.ggml_type_size(id)), Q(id)
            assert c.ggml_type_name(id).decode().upper() == Q(id).name
    assert sorted(set(blocks("<")) - set(range(c.type_count))) == [Q.Q2_0]


def test_gguf_py_has_the_same_table():
    """All but Q8_1, which gguf-py 0.19.0 has with two float32 instead of float16, and Q2_0, which is newer."""
    gguf = peers.gguf_py()
    table = {type.name: size for type, size in gguf.constants.GGML_QUANT_SIZES.items()}
    ours = {type.name: (struct.block_size, struct.type_size) for type, struct in blocks("<").items()}
    assert table.pop("Q8_1") == (32, 40), "mended: the exception can go"
    assert ours.pop("Q8_1") == (32, 36)
    assert ours.pop("Q2_0") == (64, 18)
    assert ours == table
    assert {type.name: type.value for type in gguf.GGMLQuantizationType} == {
        type.name: type.value for type in Q if type.name != "Q2_0" and type in blocks("<")
    }


# Dequantisation. Each takes an array of blocks, and gives one row of float32 a block.

Formula = Callable[[np.ndarray], np.ndarray]
F = np.float32


def split(array: np.ndarray, width: int) -> np.ndarray:
    """Bytes (..., n) as numbers of some bits (..., 8 / width, n): first the lowest bits of all, then the next ones."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    return ((array[..., None, :] >> shifts) & np.uint8((1 << width) - 1)).astype(np.int32)


def split_each(array: np.ndarray, width: int) -> np.ndarray:
    """Bytes (..., n) as numbers of some bits (..., n * 8 / width): the lowest bits of a byte first."""
    pieces = np.moveaxis(split(array, width), -2, -1)
    return pieces.reshape(*pieces.shape[:-2], -1)


def f32(array: np.ndarray) -> np.ndarray:
    """Numbers as float32, with two more axes: a scale of one block, or of each sub-block."""
    return array.astype(F).reshape(len(array), -1, 1)


def times(scales: np.ndarray, quants: np.ndarray) -> np.ndarray:
    """Quants of all blocks, each multiplied with the scale of its sub-block."""
    return scales * quants.astype(F).reshape(len(scales), scales.shape[1], -1)


def q4_0(b):
    return times(f32(b["d"]), split(b["qs"], 4) - 8)


def q4_1(b):
    return times(f32(b["d"]), split(b["qs"], 4)) + f32(b["m"])


def with_fifth_bits(b):
    return split(b["qs"], 4).reshape(-1, 32) | split_each(b["qh"], 1) << 4


def q5_0(b):
    return times(f32(b["d"]), with_fifth_bits(b) - 16)


def q5_1(b):
    return times(f32(b["d"]), with_fifth_bits(b)) + f32(b["m"])


def q8_0(b):
    return times(f32(b["d"]), b["qs"])


def q2_k(b):
    quants = split(b["qs"].reshape(-1, 2, 32), 2)
    return times(f32(b["d"]) * f32(b["scales"] & 15), quants) - f32(b["dmin"]) * f32(b["scales"] >> 4)


def q3_k(b):
    low, high = split(b["qs"].reshape(-1, 2, 32), 2).reshape(-1, 256), split(b["hmask"], 1).reshape(-1, 256)
    scales = split(b["scales"][:, :8], 4).reshape(-1, 16) | split(b["scales"][:, 8:], 2).reshape(-1, 16) << 4
    return times(f32(b["d"]) * f32(scales - 32), low - 4 * (1 - high))


def six_bits(scales):
    """The eight scales and eight minimums in the twelve bytes of Q4_K and Q5_K."""
    first, second, third = np.moveaxis(scales.reshape(-1, 3, 4), 1, 0)
    high = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], axis=1)
    return high, np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], axis=1)


def q4_k(b, high=0):
    scales, minimums = six_bits(b["scales"])
    quants = split(b["qs"].reshape(-1, 4, 32), 4).reshape(-1, 8, 32) | high
    return times(f32(b["d"]) * f32(scales), quants) - f32(b["dmin"]) * f32(minimums)


def q5_k(b):
    return q4_k(b, split(b["qh"], 1) << 4)


def q6_k(b):
    low, high = (
        split(b["ql"].reshape(-1, 2, 64), 4).reshape(-1, 256),
        split(b["qh"].reshape(-1, 2, 32), 2).reshape(-1, 256),
    )
    return times(f32(b["d"]) * f32(b["scales"]), (low | high << 4) - 32)


def q1_0(b):
    return times(f32(b["d"]), 2 * split_each(b["qs"], 1) - 1)


def q2_0(b):
    return times(f32(b["d"]), split_each(b["qs"], 2) - 1)


def tq1_0(b):
    """Base 3, as a fraction of 256: times a power of three, the next digit is what leaves the byte at the top."""
    parts = []
    for packed, digits in ((b["qs"][:, :32], 5), (b["qs"][:, 32:], 5), (b["qh"], 4)):
        powers = 3 ** np.arange(digits)[:, None]
        digit = (packed[:, None, :].astype(np.int32) * powers % 256) * 3 // 256
        parts.append(digit.reshape(len(b), -1))
    return times(f32(b["d"]), np.concatenate(parts, axis=1) - 1)


def tq2_0(b):
    return times(f32(b["d"]), split(b["qs"].reshape(-1, 2, 32), 2) - 1)


E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])
"""4-bit floats, doubled."""


def mxfp4(b):
    return times(f32(np.ldexp(F(1), b["e"].astype(np.int32) - 128)), E2M1[split(b["qs"], 4)])


def nvfp4(b):
    exponent, mantissa = b["d"].astype(np.int32) >> 3 & 15, b["d"].astype(np.int32) & 7
    scale = np.where(exponent == 0, np.ldexp(F(1) * mantissa, -10), np.ldexp(F(1) * (8 + mantissa), exponent - 11))
    return times(f32(np.where(b["d"] == 127, 0, scale)), E2M1[split(b["qs"].reshape(-1, 4, 8), 4)])


LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
"""What the quants of IQ4_NL and IQ4_XS stand for."""


def iq4_nl(b):
    return times(f32(b["d"]), LEVELS[split(b["qs"], 4)])


def iq4_xs(b):
    high = b["scales_h"].astype(np.int32)[:, None] >> np.arange(0, 16, 2) & 3
    scales = (split_each(b["scales_l"], 4) | high << 4) - 32
    return times(f32(b["d"]) * f32(scales), LEVELS[split(b["qs"].reshape(-1, 8, 16), 4)])


def grid(type: str) -> np.ndarray:
    """The fixed grid of a type: thousands of numbers, so gguf-py's copy is used."""
    quant = getattr(peers.gguf_py().quants, type)
    quant.init_grid()
    return quant.grid.reshape(quant.grid_shape)


def signs(bits: np.ndarray) -> np.ndarray:
    """Bytes (..., n) as signs (..., n, 8)."""
    return 1 - 2 * split_each(bits[..., None].astype(np.uint8), 1)


def seven_signs(bits: np.ndarray) -> np.ndarray:
    """Signs of eight elements of seven bits: the number of minuses is even."""
    parity = sum(bits >> i & 1 for i in range(7)) & 1
    return signs(bits | parity << 7)


def scale_and_signs(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From uint32 a 4-bit scale each, and four times eight signs."""
    return words >> 28, seven_signs(words[..., None] >> np.arange(0, 28, 7) & 127)


def iq2_xxs(b):
    words = np.ascontiguousarray(b["qs"], "<u2").view("<u4").reshape(-1, 8, 2).astype(np.int64)
    scales, minus = scale_and_signs(words[..., 1])
    index = words[..., :1] >> np.arange(0, 32, 8) & 255
    return times(f32(b["d"]) * (F(0.5) + f32(scales)) * F(0.25), grid("IQ2_XXS")[index] * minus)


def iq2_xs(b):
    quants = b["qs"].astype(np.int32)
    scales = f32(b["d"]) * (F(0.5) + f32(split_each(b["scales"], 4))) * F(0.25)
    return times(scales, grid("IQ2_XS")[quants & 511] * seven_signs(quants >> 9))


def iq2_s(b):
    index = b["qs"][:, :32].astype(np.int32) | split_each(b["qh"], 2) << 8
    scales = f32(b["d"]) * (F(0.5) + f32(split_each(b["scales"], 4))) * F(0.25)
    return times(scales, grid("IQ2_S")[index] * signs(b["qs"][:, 32:]))


def iq3_xxs(b):
    words = np.ascontiguousarray(b["qs"][:, 64:]).view("<u4").astype(np.int64)
    scales, minus = scale_and_signs(words)
    quants = grid("IQ3_XXS")[b["qs"][:, :64]].reshape(-1, 256) * minus.reshape(-1, 256)
    return times(f32(b["d"]) * (F(0.5) + f32(scales)) * F(0.5), quants)


def iq3_s(b):
    index = b["qs"].astype(np.int32) | split_each(b["qh"], 1) << 8
    quants = grid("IQ3_S")[index].reshape(-1, 256) * signs(b["signs"]).reshape(-1, 256)
    return times(f32(b["d"]) * f32(1 + 2 * split_each(b["scales"], 4)), quants)


def iq1_s(b):
    qh = b["qh"].astype(np.int32)
    index = b["qs"].astype(np.int32) | (qh[..., None] >> np.arange(0, 12, 3) & 7).reshape(-1, 32) << 8
    delta = np.where(qh >> 15, F(-0.125), F(0.125)).reshape(-1, 8, 1)
    quants = grid("IQ1_S")[index].reshape(-1, 8, 32) + delta
    return times(f32(b["d"]) * f32(2 * (qh >> 12 & 7) + 1), quants)


def iq1_m(b):
    packed = np.ascontiguousarray(b["scales"]).view("<u2").astype(np.int32)
    half = (packed >> 12 << np.arange(0, 16, 4)).sum(axis=1).astype("u2").view("f2")
    scales = (packed[..., None] >> np.arange(0, 12, 3) & 7).reshape(-1, 16)
    high = split_each(b["qh"], 4)
    quants = (
        grid("IQ1_S")[b["qs"].astype(np.int32) | (high & 7) << 8] + np.where(high >> 3, F(-0.125), F(0.125))[..., None]
    )
    return times(f32(half) * f32(2 * scales + 1), quants)


FORMULAS: dict[str, Formula] = {
    "F32": lambda b: b.astype(F),
    "F16": lambda b: b.astype(F),
    "BF16": lambda b: (b.astype("u4") << 16).view(F),
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q8_0": q8_0,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
    "IQ2_XXS": iq2_xxs,
    "IQ2_XS": iq2_xs,
    "IQ3_XXS": iq3_xxs,
    "IQ1_S": iq1_s,
    "IQ4_NL": iq4_nl,
    "IQ3_S": iq3_s,
    "IQ2_S": iq2_s,
    "IQ4_XS": iq4_xs,
    "IQ1_M": iq1_m,
    "TQ1_0": tq1_0,
    "TQ2_0": tq2_0,
    "MXFP4": mxfp4,
    "NVFP4": nvfp4,
    "Q1_0": q1_0,
    "Q2_0": q2_0,
}
"""All types that ggml dequantises."""


def random_blocks(type: str, count: int, order: str = "<") -> np.ndarray:
    """Blocks of random bits whose floats are all finite."""
    dtype = peers.block_dtype(type, order)
    random = np.random.default_rng(peers.TYPES[type][0])
    array = np.frombuffer(random.bytes(count * dtype.itemsize), dtype).copy()
    for name in dtype.names or [None]:
        field = array if name is None else array[name]
        if field.dtype.kind == "f":
            field[...] = random.standard_normal(field.shape)
    if type == "BF16":
        array &= 0xBFFF
    if type == "IQ1_M":  # its float16 is spread over the high nibbles of the scales
        array["scales"][:, 7] &= 0xBF
    return array


@pytest.mark.parametrize("type", [type for type in FORMULAS if type not in ("F32", "Q2_0")])
def test_random_blocks_dequantised_as_ggml_does(type):
    """1024 blocks each, in which every bit varies. The installed ggml knows no Q2_0, and has nothing to do for F32."""
    c = peers.ggml()
    id, block_size, *_ = peers.TYPES[type]
    given = random_blocks(type, 1024 if block_size > 1 else 4096)
    struct = block(id)
    blocks = np.frombuffer(given.tobytes(), struct.dtype())
    expected = np.empty(len(blocks) * block_size, F)
    raw = ctypes.create_string_buffer(given.tobytes(), given.nbytes)
    c.ggml_get_type_traits(id).contents.to_float(ctypes.addressof(raw), expected.ctypes.data, expected.size)
    assert not np.isnan(expected).any()
    assert len(np.unique(expected)) > 400
    with np.errstate(over="ignore"):  # the largest scales of MXFP4
        values = FORMULAS[type](blocks)
    np.testing.assert_array_equal(values.reshape(-1), expected)


@needs_corpus
@pytest.mark.parametrize("type", FORMULAS)
def test_real_blocks_dequantised_as_ggml_does(type):
    expected = np.fromfile(CORPUS / "types" / f"{type}.f32", "<f4").reshape(8, 512)
    with gguf_schema.open(CORPUS / "types" / f"{type}.gguf") as model:
        tensor = model.tensors["blk.0.ffn_up.weight"]
        assert (tensor.type.name, tensor.shape) == (type, (8, 512))
        data = tensor.data
    assert data.dtype == peers.block_dtype(type, "<")
    values = FORMULAS[type](data.reshape(-1)).reshape(8, 512)
    assert len(np.unique(values)) > 10
    np.testing.assert_array_equal(values, expected)
    # the same through a big-endian file: other bytes, equal fields
    swapped = data.astype(block(tensor.type, ">").dtype())
    np.testing.assert_array_equal(FORMULAS[type](swapped.reshape(-1)).reshape(8, 512), expected)


@needs_corpus
def test_corpus_has_every_type_that_has_a_formula():
    assert {path.stem for path in (CORPUS / "types").glob("*.f32")} - {"source_8x512"} == set(FORMULAS)


@needs_corpus
@pytest.mark.parametrize("type", ["Q8_1", "Q8_K"])
def test_types_that_ggml_does_not_dequantise(type):
    """They are made only for dot products: d times qs is the source; sums of the quants are kept beside them."""
    source = np.fromfile(CORPUS / "types" / "source_8x512.f32", "<f4")
    with gguf_schema.open(CORPUS / "types" / f"{type}.gguf") as model:
        data = model.tensors["blk.0.ffn_up.weight"].data.reshape(-1)
    d, qs = data["d"].astype(F)[:, None], data["qs"].astype(np.int32)
    errors = np.abs(d * qs - source.reshape(len(data), -1))
    assert (errors <= np.abs(d) * 0.51 + np.abs(source).max() * 2**-11).all()
    assert (np.abs(qs).max(axis=1) >= 127).all()
    if type == "Q8_K":
        np.testing.assert_array_equal(data["bsums"], qs.reshape(-1, 16, 16).sum(axis=2))
    else:
        np.testing.assert_allclose(data["s"].astype(F), d[:, 0] * qs.sum(axis=1), rtol=2e-3, atol=1e-6)


def test_integers_and_doubles_have_no_formula():
    """What is left: types whose dtype says all (gguf-py reads their values in test_peers_written)."""
    left: set[Any] = set(peers.TYPES) - set(FORMULAS)
    assert left == {"I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K"}
