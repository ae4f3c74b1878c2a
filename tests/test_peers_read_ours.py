"""Peers: what `write` and `GGUF.build` make is read by gguf-py and by llama.cpp's loader, with equal everything.

What is expected is computed here, from what the file was made of, not by the package.
"""

import argparse
import io
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gguf_schema
from gguf_schema import GGUF, ArrayType, GGMLQuantizationType, NewTensor
from gguf_schema import GGUFValueType as T

from . import peers

GGUF_PY, LLAMA_CPP = "gguf-py", "llama.cpp"
READ = {GGUF_PY: peers.read_with_gguf_py, LLAMA_CPP: peers.read_with_llama_cpp}
LAYOUTS = [
    (GGUF_PY, "<", 2),
    (GGUF_PY, "<", 3),
    (GGUF_PY, ">", 2),
    (GGUF_PY, ">", 3),
    (LLAMA_CPP, "<", 2),
    (LLAMA_CPP, "<", 3),
]
"""What each peer reads. Of version 1 neither does; llama.cpp's loader reads only the host's byte order."""

UNREADABLE = {
    (GGUF_PY, "Q2_0"): "gguf-py 0.19.0 does not know id 42",
    (GGUF_PY, "Q8_1"): "gguf-py 0.19.0 takes a block for 40 bytes instead of 36",
    (LLAMA_CPP, "Q2_0"): "the ggml of ggml-python 0.0.45 does not know id 42",
}
"""Tensor types that a peer does not read right, with the reason. See `test_exceptions_stand`."""

DIVIDES_BY_DIMENSIONS = LLAMA_CPP
"""The loader of ggml-python 0.0.45 divides by all dimensions but the first: a 0 there ends the process (SIGFPE)."""


class Content(NamedTuple):
    """What a file is made of: pairs (key, type, value), tensors (name, type, dimensions, bytes)."""

    pairs: list[tuple[str, Any, Any]]
    tensors: Sequence[tuple[str, str, tuple[int, ...], bytes]] = ()
    alignment: int = 32


class Layout(NamedTuple):
    """A peer, and a layout that it reads."""

    peer: str
    order: str
    version: int


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda layout: "{} {}{}".format(*layout))
def layout(request) -> Layout:
    layout = Layout(*request.param)
    peers.gguf_py() if layout.peer == GGUF_PY else peers.ggml()
    return layout


def padded(data: bytes, alignment: int) -> bytes:
    return data + bytes(-len(data) % alignment)


def written(content: Content, layout: Layout) -> bytes:
    """The file, as both ways of making it make it."""
    file = io.BytesIO()
    tensors = [NewTensor(name, GGMLQuantizationType[type], dims, data) for name, type, dims, data in content.tensors]
    gguf_schema.write(file, content.pairs, tensors, order=layout.order, version=layout.version)
    built = GGUF.build(
        {
            "order": layout.order,
            "version": layout.version,
            "metadata_kv": [{"key": key, **wire(type, value)} for key, type, value in content.pairs],
            "tensor_infos": [
                {"name": name, "dimensions": dims, "type": peers.TYPES[type][0]}
                for name, type, dims, _ in content.tensors
            ],
            "tensor_data": b"".join(padded(data, content.alignment) for *_, data in content.tensors),
        }
    )
    assert file.getvalue() == built
    return built


def wire(type: Any, value: Any) -> dict[str, Any]:
    if isinstance(type, ArrayType):
        return {"value_type": T.ARRAY, "value": {"type": type.type, "array": value}}
    return {"value_type": type, "value": value}


def expected_pairs(pairs: list[tuple[str, Any, Any]]) -> list[peers.Pair]:
    expected = []
    for key, type, value in pairs:
        element = type.type if isinstance(type, ArrayType) else None
        number = int(type) if element is None else int(element)
        if number in peers.NUMBERS:
            dtype = peers.NUMBERS[number]
            values = value if isinstance(value, np.ndarray | np.generic) else np.array(value, dtype)
            value = peers.canonical(number, values)
            value = value if element is not None else value[0]
        else:
            value = value if element is None else list(value)
        kind = peers.ARRAY if element is not None else number
        expected.append(peers.Pair(key, kind, None if element is None else int(element), value))
    return expected


def expected_tensors(content: Content, layout: Layout) -> list[peers.Info]:
    expected = []
    offset = 0
    for name, type, dims, data in content.tensors:
        seen_dims = (*dims, *[1] * (4 - len(dims))) if layout.peer == LLAMA_CPP else dims
        expected.append(peers.Info(name, peers.TYPES[type][0], seen_dims, offset, data))
        offset += len(padded(data, content.alignment))
    return expected


def check(content: Content, layout: Layout) -> None:
    """What the peer sees is what went in."""
    data = written(content, layout)
    seen = READ[layout.peer](data)
    assert (seen.version, seen.order, seen.alignment) == (layout.version, layout.order, content.alignment)
    assert seen.pairs == expected_pairs(content.pairs)
    assert seen.tensors == expected_tensors(content, layout)
    with gguf_schema.open(data) as model:
        if content.tensors:
            assert seen.data_offset == model.data_offset
            assert len(data) == seen.data_offset + sum(
                len(padded(tensor, content.alignment)) for *_, tensor in content.tensors
            )
        else:  # ggml counts no padding where no tensors follow
            assert seen.data_offset == (model.infos_end if layout.peer == LLAMA_CPP else model.data_offset)
            assert len(data) == model.infos_end


def some_bytes(type: str, dims: tuple[int, ...], seed: int = 0) -> bytes:
    """Random bytes for the data of a tensor."""
    _, block_size, type_size, _ = peers.TYPES[type]
    count = int(np.prod(dims, dtype=np.int64))
    assert (dims[0] if dims else 1) % block_size == 0
    return random.Random(seed).randbytes(count // block_size * type_size)


def bits(dtype: str, *patterns: int) -> np.ndarray:
    """Floats with these bits."""
    return np.array(patterns, dtype.replace("f", "u")).view(dtype)


FLOAT32 = bits(
    "f4", 0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x3727C5AC, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FA00001
)
FLOAT64 = bits("f8", 0, 1 << 63, 1, 0x3FB999999999999A, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52, 0x7FF8 << 48, 0x7FF4 << 48 | 1)
"""Zeros of both signs, subnormal and extreme ones, infinities, NaNs that are quiet and signalling."""

SAMPLES: dict[T, Any] = {
    **{
        T(id): np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 100, *(-1,) * (dtype[0] == "i")], dtype)
        for id, dtype in peers.NUMBERS.items()
        if dtype[0] in "iu"
    },
    T.FLOAT32: FLOAT32,
    T.FLOAT64: FLOAT64,
    T.BOOL: np.array([True, False]),
    T.STRING: ["", "llama", "héllo", "▁the", "🦙 \n\t", "x" * 70_000],
}


def test_samples_are_complete():
    assert set(SAMPLES) | {T.ARRAY} == set(T)
    assert len(T) == 13


def test_single_values(layout):
    pairs = [
        (f"{type.name.lower()}.{index}", type, value)
        for type, values in SAMPLES.items()
        for index, value in enumerate(values)
    ]
    check(Content(pairs), layout)


def test_python_values(layout):
    """Plain Python numbers, as users give them."""
    pairs = [
        ("general.architecture", T.STRING, "llama"),
        ("uint8", T.UINT8, 200),
        ("int8", T.INT8, -5),
        ("uint16", T.UINT16, 60000),
        ("int16", T.INT16, -1234),
        ("uint32", T.UINT32, 4294967295),
        ("int32", T.INT32, -7),
        ("float32", T.FLOAT32, 1e-5),
        ("bool", T.BOOL, True),
        ("uint64", T.UINT64, 2**64 - 1),
        ("int64", T.INT64, -9000000000),
        ("float64", T.FLOAT64, 0.1),
        ("ints", ArrayType(T.INT32), [2, 3, -3, 1, 1]),
        ("floats", ArrayType(T.FLOAT32), [0.1, -2.5, 1e30]),
        ("doubles", ArrayType(T.FLOAT64), [0.1, -2.5, 1e300]),
        ("bools", ArrayType(T.BOOL), [True, False, True]),
        ("strings", ArrayType(T.STRING), ["<unk>", "<s>", "</s>", "▁the", "▁cat"]),
    ]
    check(Content(pairs), layout)


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_arrays(layout, count):
    pairs = []
    for type, values in SAMPLES.items():
        short = values[:-1] if type is T.STRING else values
        repeated = (short * count)[:count] if type is T.STRING else np.resize(short, count)
        assert len(repeated) == count
        pairs.append((f"array.{type.name.lower()}", ArrayType(type), repeated))
    assert len(pairs) == 12
    check(Content(pairs), layout)


def test_array_of_long_strings(layout):
    check(
        Content([("a", ArrayType(T.STRING), ["a" * 255, "b" * 256, "c" * 257, "", "d" * 100_000, "\u00e9" * 128])]),
        layout,
    )


def test_no_pairs_and_no_tensors(layout):
    check(Content([]), layout)


@pytest.mark.parametrize("alignment", [8, 16, 32, 64, 4096])
def test_alignments(layout, alignment):
    tensors = [(f"t{n}", "I8", (n,), some_bytes("I8", (n,), n)) for n in (1, 8, 31, 32, 33, 4096, 5)]
    pairs = [("before", T.STRING, "x"), ("general.alignment", T.UINT32, alignment), ("after", T.UINT8, 1)]
    check(Content(pairs, tensors, alignment), layout)


def test_alignment_argument(layout):
    """`write(alignment=...)` says it in the metadata, so that peers know it."""
    file = io.BytesIO()
    gguf_schema.write(
        file, {"a": True}, {"x": np.arange(3, dtype="i1"), "y": np.arange(5, dtype="i1")},
        order=layout.order, version=layout.version, alignment=64,
    )  # fmt: skip
    seen = READ[layout.peer](file.getvalue())
    assert seen.alignment == 64
    assert seen.pairs == [peers.Pair("a", 7, None, True), peers.Pair("general.alignment", 4, None, 64)]
    assert [(tensor.offset, tensor.data) for tensor in seen.tensors] == [(0, b"\0\1\2"), (64, b"\0\1\2\3\4")]


@pytest.mark.parametrize("type", peers.TYPES)
def test_tensor_types(layout, type):
    """Each type with 1 to 4 dimensions, between tensors of another one; an exception only where it is listed."""
    if (layout.peer, type) in UNREADABLE:
        pytest.skip(UNREADABLE[layout.peer, type])
    row = peers.TYPES[type][1]
    shapes = [(row,), (3 * row, 2), (row, 1, 3), (2 * row, 3, 2, 2), (row, 1, 1, 1)]
    tensors = [(f"t{index}", type, dims, some_bytes(type, dims, index)) for index, dims in enumerate(shapes)]
    around = [("first", "I8", (7,), b"first.."), ("last", "I8", (5,), b"last.")]
    check(Content([("general.architecture", T.STRING, "llama")], [around[0], *tensors, around[1]]), layout)


def test_exceptions_stand():
    """The types that peers do not read right are those that are listed, for the reasons that are listed."""
    gguf = peers.gguf_py()
    for type, (id, block_size, type_size, _) in peers.TYPES.items():
        known = id in iter(gguf.GGMLQuantizationType)
        is_right = known and gguf.GGML_QUANT_SIZES[id] == (block_size, type_size)
        assert is_right == ((GGUF_PY, type) not in UNREADABLE), type
    c = peers.ggml()
    for type, (id, *_) in peers.TYPES.items():
        assert (id < c.type_count) == ((LLAMA_CPP, type) not in UNREADABLE), type


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_numbers_of_tensors(layout, count):
    types = ["F32", "Q8_0", "F16", "Q4_K", "I64"][:count]
    tensors = [
        (f"blk.{i}.{type}", type, (256, i + 1), some_bytes(type, (256, i + 1), i)) for i, type in enumerate(types)
    ]
    check(Content([("a", T.UINT32, 1)], tensors), layout)


def test_dimensions(layout):
    """0 to 4 dimensions; a dimension of 0 in each place that the peer bears."""
    shapes = [(), (1,), (3, 5), (3, 5, 2), (3, 5, 2, 4), (1, 1, 1, 2), (0,), (0, 3), (0, 1, 1, 4)]
    if layout.peer != DIVIDES_BY_DIMENSIONS:
        shapes += [(3, 0), (2, 0, 3), (0, 0, 0), (1, 1, 1, 0)]
    tensors = [(f"t{index}", "F32", dims, some_bytes("F32", dims, index)) for index, dims in enumerate(shapes)]
    check(Content([], tensors), layout)


def test_names_of_63_bytes(layout):
    """The longest name that llama.cpp takes, in ASCII and beyond it."""
    names = ["n" * 63, "é" * 31 + "n", "漢" * 21, "n", "" if layout.peer == GGUF_PY else "m"]
    assert [len(name.encode()) for name in names[:3]] == [63, 63, 63]
    check(
        Content([("k" * 70_000, T.BOOL, False)], [(name, "I8", (4,), some_bytes("I8", (4,))) for name in names]), layout
    )


def test_name_of_64_bytes_is_read_by_gguf_py():
    """The specification's longest name; llama.cpp's loader refuses it."""
    peers.gguf_py()
    check(Content([], [("n" * 64, "I8", (1,), b"x")]), Layout(GGUF_PY, "<", 3))


def test_nul_bytes_are_read_by_gguf_py():
    """llama.cpp's strings end at a NUL."""
    peers.gguf_py()
    check(Content([("a\0b", T.STRING, "c\0"), ("d", ArrayType(T.STRING), ["\0", "e\0f"])]), Layout(GGUF_PY, ">", 3))


@pytest.mark.parametrize("order", ["<", ">"])
def test_nested_arrays_are_read_by_gguf_py(order):
    """It flattens them; llama.cpp's loader refuses them."""
    gguf = peers.gguf_py()
    inner = ArrayType(T.INT16)
    file = io.BytesIO()
    pairs = [("n", ArrayType(T.ARRAY, (inner, inner)), [[1, 2], [-3]]), ("after", T.UINT8, 9)]
    gguf_schema.write(file, pairs, order=order)
    with peers.on_disk(file.getvalue()) as path:
        fields = gguf.GGUFReader(path).fields
        assert fields["n"].contents() == [1, 2, -3]
        assert fields["n"].types == [9, 9, 3]
        assert fields["after"].contents() == 9


PLAIN = ["F32", "F16", "I8", "I16", "I32", "I64", "F64"]


@pytest.mark.parametrize("given_order", ["<", ">"])
@pytest.mark.parametrize("type", peers.TYPES)
def test_arrays_in_either_order(layout, type, given_order):
    """numpy arrays of the plain dtype, or of the block's dtype in either order, end up in the file's order."""
    if (layout.peer, type) in UNREADABLE:
        pytest.skip(UNREADABLE[layout.peer, type])
    id, block_size, type_size, _ = peers.TYPES[type]
    raw = random.Random(7).randbytes(12 * type_size)
    array = np.frombuffer(raw, peers.block_dtype(type, given_order)).reshape(2, 3, 1, 2)
    tensors = {"blocks": array if type in PLAIN else (GGMLQuantizationType[type], array)}
    if type not in PLAIN:  # bytes are taken as they are
        tensors["bytes"] = GGMLQuantizationType[type], np.frombuffer(raw, np.uint8).reshape(2, 3, 2 * type_size)
    file = io.BytesIO()
    gguf_schema.write(file, {}, tensors, order=layout.order, version=layout.version)
    seen = {tensor.name: tensor for tensor in READ[layout.peer](file.getvalue()).tensors}
    assert list(seen) == list(tensors)
    assert {tensor.type for tensor in seen.values()} == {id}
    assert seen["blocks"].dimensions == (2 * block_size, 1, 3, 2)
    assert seen["blocks"].data == (raw if given_order == layout.order else swapped(raw, type))
    if type not in PLAIN:
        assert seen["bytes"].dimensions[:3] == (2 * block_size, 3, 2)
        assert seen["bytes"].data == raw


def swapped(raw: bytes, type: str) -> bytes:
    """The blocks with each of their numbers reversed, without numpy's conversion of structured dtypes."""
    out = b""
    while raw:
        for _, number, *counts in peers.TYPES[type][3]:
            for _ in range(counts[0] if counts else 1):
                size = int(number[1])
                out, raw = out + raw[:size][::-1], raw[size:]
    return out


@pytest.mark.parametrize("type", ["Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4", "NVFP4", "F32", "F16", "BF16"])
def test_other_order_as_gguf_py_converts_it(type, monkeypatch):
    """A file in the other order is byte by byte what gguf-py's gguf-convert-endian makes of it (all types it takes)."""
    gguf = peers.gguf_py()
    convert_endian = pytest.importorskip("gguf.scripts.gguf_convert_endian")
    monkeypatch.setattr("builtins.input", lambda prompt: "YES")
    dims = (2 * peers.TYPES[type][1], 3)
    array = np.frombuffer(some_bytes(type, dims), peers.block_dtype(type, "<")).reshape(3, 2)
    pairs = [(f"v.{key.name}", ArrayType(key), values) for key, values in SAMPLES.items()]
    pairs += [(f"s.{key.name}", key, values[1]) for key, values in SAMPLES.items()]
    tensors = {"a": (GGMLQuantizationType[type], array), "b": np.arange(5, dtype="f4")}
    files = {}
    for order in "<>":
        file = io.BytesIO()
        gguf_schema.write(file, pairs, tensors, order=order)
        files[order] = file.getvalue()
    with peers.on_disk(files["<"]) as path:
        convert_endian.convert_byteorder(gguf.GGUFReader(path, "r+"), argparse.Namespace(order="big", dry_run=False))
        assert path.read_bytes() == files[">"]


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
keys = st.one_of(st.from_regex(r"[a-z0-9_.-]{1,40}", fullmatch=True), text.filter(bool)).map(lambda key: "k" + key)
names = st.one_of(
    st.from_regex(r"[a-z0-9_.]{1,63}", fullmatch=True), text.filter(lambda name: 0 < len(name.encode()) < 64)
)


def number(type: T) -> st.SearchStrategy[Any]:
    """Any number of a type, floats by their bits, as a numpy scalar."""
    dtype = np.dtype(peers.NUMBERS[type])
    if dtype.kind == "b":
        return st.booleans().map(np.bool_)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return st.integers(0, np.iinfo(unsigned).max).map(lambda pattern: np.array(pattern, unsigned).view(dtype)[()])


@st.composite
def pair(draw: Any, key: str) -> tuple[str, Any, Any]:
    type = draw(st.sampled_from(sorted(SAMPLES)))
    is_array = draw(st.booleans())
    element = text if type is T.STRING else number(type)
    if not is_array:
        return key, type, draw(element)
    values = draw(st.lists(element, max_size=6))
    return key, ArrayType(type), values if type is T.STRING else np.array(values, peers.NUMBERS[type])


@st.composite
def contents(draw: Any, peer: str) -> Content:
    """Any file that a peer can read."""
    pairs = [draw(pair(key)) for key in draw(st.lists(keys, unique=True, max_size=6))]
    alignment = draw(st.sampled_from([None, 8, 16, 32, 64, 4096]))
    if alignment is not None:
        pairs.insert(draw(st.integers(0, len(pairs))), ("general.alignment", T.UINT32, alignment))
    tensors = []
    for name in draw(st.lists(names, unique=True, max_size=4)):
        type = draw(st.sampled_from([type for type in peers.TYPES if (peer, type) not in UNREADABLE]))
        rest = draw(st.lists(st.integers(int(peer == DIVIDES_BY_DIMENSIONS), 3), max_size=3))
        dims = (peers.TYPES[type][1] * draw(st.integers(0, 3)), *rest)
        tensors.append((name, type, dims, some_bytes(type, dims, draw(st.integers(0, 999)))))
    return Content(pairs, tensors, alignment or 32)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_anything(layout, data):
    check(data.draw(contents(layout.peer)), layout)
