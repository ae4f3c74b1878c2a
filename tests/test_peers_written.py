"""Peers: what gguf-py's GGUFWriter writes is parsed with equal values, and written again byte by byte."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gguf_schema
from gguf_schema import GGUF, ArrayType, MetadataKV
from gguf_schema import GGUFValueType as T

from . import peers
from .test_peers_read_ours import SAMPLES, number, text

ORDERS = pytest.mark.parametrize("order", ["<", ">"])


def write_with_gguf_py(
    path: Path, pairs: list[tuple[str, Any, Any]], tensors: Any = (), order: str = "<", alignment: int | None = None
) -> bytes:
    """A file as GGUFWriter writes it.

    Args:
        path: Where it writes it.
        pairs: (key, type, Python value), after `general.architecture`, which it writes of itself.
        tensors: (name, array, name of its type or None for the one that the array's dtype says).
        order: "<" or ">". The writer swaps the bytes of arrays for ">".
        alignment: Written as `general.alignment`, before the pairs.
    """
    gguf = peers.gguf_py()
    endianess = gguf.GGUFEndian.BIG if order == ">" else gguf.GGUFEndian.LITTLE
    writer = gguf.GGUFWriter(path, "llama", endianess=endianess)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, type, value in pairs:
        if isinstance(type, ArrayType):
            writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(int(type.type)))
        else:
            writer.add_key_value(key, value, gguf.GGUFValueType(int(type)))
    for name, array, type in tensors:
        writer.add_tensor(name, array, raw_dtype=None if type is None else gguf.GGMLQuantizationType[type])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def rewritten(data: bytes) -> bytes:
    """The file through `open` and `write`."""
    file = io.BytesIO()
    with gguf_schema.open(data) as model:
        gguf_schema.write(file, model.metadata, model.tensors, order=model.order, version=model.version)
    return file.getvalue()


def plain(pair: MetadataKV) -> tuple[str, Any, Any]:
    """A pair with Python values, floats as their bits."""
    key, type, value = pair
    element = type.type if isinstance(type, ArrayType) else type
    if element in (T.FLOAT32, T.FLOAT64):
        dtype = peers.NUMBERS[element]
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype)
        bits = peers.canonical(element, array)
        return key, type, bits if isinstance(type, ArrayType) else bits[0]
    return key, type, value.tolist() if isinstance(value, np.ndarray) else list(value) if type != element else value


def check(data: bytes, pairs: list[tuple[str, Any, Any]], order: str) -> None:
    """The values are those that went in (after the architecture), and `build` makes the same bytes of them."""
    parsed = GGUF.parse(data)
    assert (parsed.order, parsed.version) == (order, 3)
    assert GGUF.build(parsed) == data
    with gguf_schema.open(data) as model:
        assert (model.order, model.version) == (order, 3)
        expected = [MetadataKV("general.architecture", T.STRING, "llama"), *(MetadataKV(*pair) for pair in pairs)]
        assert [plain(pair) for pair in model.metadata.pairs] == [plain(pair) for pair in expected]
        end = len(data)
        if not model.tensors:  # gguf-py pads here, too; `write` does not
            assert len(data) == model.data_offset
            end = model.infos_end
    assert rewritten(data) == data[:end]
    assert not any(data[end:])


SCALARS = [
    (f"{type.name.lower()}.{index}", type, value.item() if isinstance(value, np.generic) else value)
    for type, values in SAMPLES.items()
    for index, value in enumerate(values)
]
ARRAYS = [
    (f"array.{type.name.lower()}", ArrayType(type), values.tolist() if isinstance(values, np.ndarray) else values)
    for type, values in SAMPLES.items()
]


@ORDERS
def test_single_values(tmp_path, order):
    assert {type for _, type, _ in SCALARS} == set(T) - {T.ARRAY}
    check(write_with_gguf_py(tmp_path / "f", SCALARS, order=order), SCALARS, order)


@ORDERS
def test_arrays(tmp_path, order):
    assert {type.type for _, type, _ in ARRAYS} == set(T) - {T.ARRAY}
    check(write_with_gguf_py(tmp_path / "f", ARRAYS, order=order), ARRAYS, order)


@ORDERS
def test_pairs_and_tensors(tmp_path, order):
    pairs = SCALARS + ARRAYS
    tensors = [("a", np.arange(7, dtype="f4"), None), ("b", np.arange(12, dtype="f2").reshape(3, 4), None)]
    check(write_with_gguf_py(tmp_path / "f", pairs, tensors, order), pairs, order)


@ORDERS
def test_nested_arrays(tmp_path, order):
    inner, strings = ArrayType(T.INT32), ArrayType(T.STRING)
    deep = ArrayType(T.ARRAY, (inner, inner))
    values = {
        "numbers": (ArrayType(T.ARRAY, (inner, inner, inner)), [[1, 2, 3], [-4], [5, 6]]),
        "strings": (ArrayType(T.ARRAY, (strings, strings)), [["a", "héllo"], ["<s>"]]),
        "deep": (ArrayType(T.ARRAY, (deep, ArrayType(T.ARRAY, (inner,)))), [[[1], [2, 3]], [[4, 5]]]),
    }
    data = write_with_gguf_py(
        tmp_path / "f", [(key, type, value) for key, (type, value) in values.items()], order=order
    )
    assert GGUF.build(GGUF.parse(data)) == data
    with gguf_schema.open(data) as model:
        for key, (type, value) in values.items():
            assert model.metadata.type(key) == type
            assert as_lists(model.metadata[key]) == value
        assert rewritten(data) == data[: model.infos_end]


def as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, str) else [as_lists(item) for item in value]


@ORDERS
@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
def test_alignments(tmp_path, order, alignment):
    sizes = (1, 64, 65, 4096, 5)
    tensors = [(f"t{size}", np.arange(size, dtype="u4").astype("i1"), None) for size in sizes]
    pairs = [] if alignment is None else [("general.alignment", T.UINT32, alignment)]
    data = write_with_gguf_py(tmp_path / "f", [], tensors, order, alignment)
    check(data, pairs, order)
    with gguf_schema.open(data) as model:
        assert model.alignment == (alignment or 32)
        assert model.data_offset % model.alignment == 0
        for name, array, _ in tensors:
            assert model.tensors[name].data.tobytes() == array.tobytes()
            assert data[model.tensors[name].data_offset :].startswith(array.tobytes())


@ORDERS
@pytest.mark.parametrize("type", ["F32", "F16", "F64", "I8", "I16", "I32", "I64"])
def test_plain_tensors(tmp_path, order, type):
    """Values are equal in both orders; the shape is the array's."""
    dtype = peers.block_dtype(type, "<")
    raw = random.Random(3).randbytes(2 * 3 * 4 * 5 * dtype.itemsize)
    shapes = [(120,), (6, 20), (2, 3, 20), (2, 3, 4, 5)]
    tensors = [(f"t{index}", np.frombuffer(raw, dtype).reshape(shape), None) for index, shape in enumerate(shapes)]
    data = write_with_gguf_py(tmp_path / "f", [], tensors, order)
    check(data, [], order)
    with gguf_schema.open(data) as model:
        assert list(model.tensors) == ["t0", "t1", "t2", "t3"]
        for name, array, _ in tensors:
            tensor = model.tensors[name]
            assert (tensor.type.name, tensor.shape, tensor.dimensions) == (type, array.shape, array.shape[::-1])
            assert tensor.data.dtype == dtype.newbyteorder(order)
            assert tensor.data.shape == array.shape
            assert (
                tensor.data.astype(dtype).view(f"u{dtype.itemsize}").tolist()
                == array.view(f"u{dtype.itemsize}").tolist()
            )


QUANTISED = ["BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
"""What gguf-py 0.19.0 quantises."""


@ORDERS
@pytest.mark.parametrize("type", QUANTISED)
def test_quantised_tensors(tmp_path, order, type):
    """Bytes as gguf-py quantised them: it never swaps the numbers in its blocks, not even for big-endian files."""
    gguf = peers.gguf_py()
    source = np.random.default_rng(5).standard_normal((2, 3, 512)).astype("f4")
    raw = gguf.quants.quantize(source, gguf.GGMLQuantizationType[type])
    assert raw.dtype == np.uint8
    data = write_with_gguf_py(
        tmp_path / "f", [("a", T.BOOL, True)], [("x", raw, type), ("n", source[0, 0], None)], order
    )
    check(data, [("a", T.BOOL, True)], order)
    _, block_size, type_size, _ = peers.TYPES[type]
    with gguf_schema.open(data) as model:
        tensor = model.tensors["x"]
        assert (tensor.type.name, tensor.dimensions) == (type, (512, 3, 2))
        assert tensor.n_bytes == raw.size == 6 * 512 // block_size * type_size
        assert tensor.data.shape == (2, 3, 512 // block_size)
        assert tensor.data.tobytes() == raw.tobytes()
        assert np.array_equal(model.tensors["n"].data, source[0, 0])


RAW = [type for type, (_, size, _, _) in peers.TYPES.items() if size > 1 and type not in ("Q8_1", "Q2_0")]
"""Types of blocks whose sizes gguf-py 0.19.0 knows right (see test_peers_read_ours.UNREADABLE)."""


@ORDERS
def test_raw_tensors(tmp_path, order):
    """All types of blocks in one file, from bytes that are ready-made."""
    tensors = []
    for index, type in enumerate(RAW):
        shape = (index % 3 + 1, 2, 3 * peers.TYPES[type][2])
        raw = np.frombuffer(random.Random(index).randbytes(int(np.prod(shape))), np.uint8).reshape(shape)
        tensors.append((f"blk.{index}.{type}", raw, type))
    data = write_with_gguf_py(tmp_path / "f", [], tensors, order, 64)
    check(data, [("general.alignment", T.UINT32, 64)], order)
    with gguf_schema.open(data) as model:
        assert len(model.tensors) == len(RAW) == 25
        for name, raw, type in tensors:
            tensor = model.tensors[name]
            assert tensor.type == peers.TYPES[type][0]
            assert tensor.shape == (*raw.shape[:2], 3 * peers.TYPES[type][1])
            assert tensor.data.tobytes() == raw.tobytes()


@st.composite
def pairs_for_gguf_py(draw: Any) -> list[tuple[str, Any, Any]]:
    """Pairs as GGUFWriter takes them: Python values, arrays not empty."""
    pairs = []
    for index in range(draw(st.integers(0, 5))):
        type = draw(st.sampled_from(sorted(SAMPLES)))
        element = text if type is T.STRING else number(type).map(lambda scalar: scalar.item())
        if draw(st.booleans()):
            pairs.append((f"k{index}", type, draw(element)))
        else:
            pairs.append((f"k{index}", ArrayType(type), draw(st.lists(element, min_size=1, max_size=6))))
    return pairs


@ORDERS
@settings(deadline=None, max_examples=50)
@given(pairs=pairs_for_gguf_py(), sizes=st.lists(st.integers(0, 40), max_size=3))
def test_anything(tmp_path_factory, order, pairs, sizes):
    tensors = [(f"t{index}", np.arange(size, dtype="i2"), None) for index, size in enumerate(sizes)]
    data = write_with_gguf_py(tmp_path_factory.mktemp("anything") / "f", pairs, tensors, order)
    check(data, pairs, order)
    with gguf_schema.open(data) as model:
        for name, array, _ in tensors:
            assert np.array_equal(model.tensors[name].data, array)
