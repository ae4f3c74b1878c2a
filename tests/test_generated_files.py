"""Files made up by hypothesis: what goes in comes out, byte for byte; and bulk constructs mean what plain ones mean."""

import contextlib
import io
import itertools
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from construct import len_, this
from hypothesis import given, settings
from hypothesis import strategies as st

import gguf_schema as gs
from gguf_schema import ArrayType, strategies
from gguf_schema import GGMLQuantizationType as Q
from gguf_schema import GGUFValueType as T
from gguf_schema.constructs import Array, Integer, Rebuild, Strings, Struct, bulk, field, scan
from gguf_schema.generate import Extent

settings.register_profile("generated", deadline=None, max_examples=200)
thorough = settings(settings.get_profile("generated"))

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]
WIDTH = {1: "I", 2: "Q", 3: "Q"}
"""The struct module's letter for counts, lengths and dimensions of each version."""
LETTERS = {
    T.UINT8: "B",
    T.INT8: "b",
    T.UINT16: "H",
    T.INT16: "h",
    T.UINT32: "I",
    T.INT32: "i",
    T.FLOAT32: "f",
    T.BOOL: "B",
    T.UINT64: "Q",
    T.INT64: "q",
    T.FLOAT64: "d",
}
BLOCKS = {
    Q.F32: (1, 4),
    Q.F16: (1, 2),
    Q.Q4_0: (32, 18),
    Q.Q4_1: (32, 20),
    Q.Q5_0: (32, 22),
    Q.Q5_1: (32, 24),
    Q.Q8_0: (32, 34),
    Q.Q8_1: (32, 36),
    Q.Q2_K: (256, 84),
    Q.Q3_K: (256, 110),
    Q.Q4_K: (256, 144),
    Q.Q5_K: (256, 176),
    Q.Q6_K: (256, 210),
    Q.Q8_K: (256, 292),
    Q.IQ2_XXS: (256, 66),
    Q.IQ2_XS: (256, 74),
    Q.IQ3_XXS: (256, 98),
    Q.IQ1_S: (256, 50),
    Q.IQ4_NL: (32, 18),
    Q.IQ3_S: (256, 110),
    Q.IQ2_S: (256, 82),
    Q.IQ4_XS: (256, 136),
    Q.I8: (1, 1),
    Q.I16: (1, 2),
    Q.I32: (1, 4),
    Q.I64: (1, 8),
    Q.F64: (1, 8),
    Q.IQ1_M: (256, 56),
    Q.BF16: (1, 2),
    Q.TQ1_0: (256, 54),
    Q.TQ2_0: (256, 66),
    Q.MXFP4: (32, 17),
    Q.NVFP4: (64, 36),
    Q.Q1_0: (128, 18),
    Q.Q2_0: (64, 18),
}
"""Block size and type size as ggml measures them, written down a second time so that the package's can be wrong."""


# Comparing without mercy.


def bits(number: float) -> int:
    """The 64 bits of a Python float."""
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def widened(raw: int, letter: str) -> float:
    """The Python float for the bits of a float16 (e), float32 (f) or float64 (d), with a NaN's payload moved along."""
    size, mantissa = {"e": (16, 10), "f": (32, 23), "d": (64, 52)}[letter]
    integer = {16: "<H", 32: "<I", 64: "<Q"}[size]
    number = struct.unpack("<" + letter, struct.pack(integer, raw))[0]
    if number == number:
        return number
    payload = raw % 2**mantissa * 2 ** (52 - mantissa)
    return struct.unpack("<d", struct.pack("<Q", (raw >> size - 1) * 2**63 + 0x7FF * 2**52 + payload))[0]


def difference(one, other, path="") -> str | None:
    """Where two values differ: in type, in dtype, in any bit, in the order of fields; None where they are the same.

    A list of str stands for `Strings` of the same texts, and a dict for a Container.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return f"{path}: fields {list(one)} and {list(other)}"
        found = (difference(one[name], other[name], f"{path}.{name}") for name in one)
    elif isinstance(one, list | Strings) and isinstance(other, list | Strings):
        if len(one) != len(other):
            return f"{path}: {len(one)} and {len(other)} items"
        found = (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))
    elif isinstance(one, tuple) and isinstance(other, tuple) and type(one) is type(other):
        found = [difference(list(one), list(other), path)]
    elif type(one) is not type(other):
        return f"{path}: {type(one).__name__} {one!r} and {type(other).__name__} {other!r}"
    elif isinstance(one, np.ndarray):
        same = (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
        return None if same else f"{path}: {one!r} and {other!r}"
    elif isinstance(one, float):
        return None if bits(one) == bits(other) else f"{path}: {bits(one):016x} and {bits(other):016x}"
    else:
        return None if one == other else f"{path}: {one!r} and {other!r}"
    return next(filter(None, found), None)


def same(one, other) -> bool:
    """Whether two values are the same in every bit and type; fails with the place where they are not."""
    found = difference(one, other)
    assert found is None, found
    return True


def test_same_is_strict():
    signalling, quiet = widened(0x7FA00001, "f"), widened(0x7FE00001, "f")
    for one, other in [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (signalling, quiet),
        (T.UINT8, 0),
        ([1], [1, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.array([1], "<u2"), np.array([1], ">u2")),
        (np.array([1], "u1"), np.array([True])),
        (np.array([signalling]), np.array([quiet])),
        ("a", b"a"),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}),
    ]:
        assert difference(one, other) is not None, (one, other)
        assert same(one, one)
    with pytest.raises(AssertionError, match=r"\.a\[0\]\.b: 'x' and 'y'"):
        same({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]})


# The wire form, and its bytes by the struct module alone.


def encode(value_type, value, order: str, version: int) -> bytes:
    """The bytes of one metadata value."""
    if value_type == T.STRING:
        raw = value.encode("utf-8", "surrogateescape")
        return struct.pack(order + WIDTH[version], len(raw)) + raw
    if value_type == T.ARRAY:
        start = struct.pack(order + "I" + WIDTH[version], value["type"], len(value["array"]))
        if isinstance(value["array"], np.ndarray):
            return start + value["array"].tobytes()
        return start + b"".join(encode(value["type"], item, order, version) for item in value["array"])
    if value_type == T.FLOAT32 and value != value:
        wide = bits(value)
        return struct.pack(order + "I", (wide >> 63) * 2**31 + 0xFF * 2**23 + wide % 2**52 // 2**29)
    if value_type == T.FLOAT64:
        return struct.pack(order + "Q", bits(value))
    return struct.pack(order + LETTERS[value_type], value)


def encode_head(obj) -> bytes:
    """The bytes of a file up to the tensor infos."""
    order, version = obj["order"], obj["version"]
    count = order + WIDTH[version]
    parts = [b"GGUF", struct.pack(order + "I", version)]
    parts += [struct.pack(count, len(obj[name])) for name in ("tensor_infos", "metadata_kv")]
    for pair in obj["metadata_kv"]:
        parts += [encode(T.STRING, pair["key"], order, version), struct.pack(order + "I", pair["value_type"])]
        parts += [encode(pair["value_type"], pair["value"], order, version)]
    for info in obj["tensor_infos"]:
        parts += [encode(T.STRING, info["name"], order, version), struct.pack(order + "I", len(info["dimensions"]))]
        parts += [struct.pack(count, dimension) for dimension in info["dimensions"]]
        parts += [struct.pack(order + "IQ", info["type"], info["offset"])]
    return b"".join(parts)


def size_of(info) -> int:
    """The bytes of a tensor."""
    block_size, type_size = BLOCKS[info["type"]]
    return int(np.prod(info["dimensions"], dtype=object)) // block_size * type_size


def up(position: int, alignment: int) -> int:
    """The next multiple."""
    return -(-position // alignment) * alignment


def complete(obj):
    """What parsing gives for an object: with all that is computed, in the order of the bytes."""

    def value(value_type, given):
        if value_type != T.ARRAY:
            return given
        items = given["array"]
        if given["type"] == T.ARRAY:
            items = [value(T.ARRAY, item) for item in items]
        return {"type": given["type"], "len": len(items), "array": items}

    alignments = [pair for pair in obj["metadata_kv"] if pair["key"] == "general.alignment"][:1]
    return {
        "magic": b"GGUF",
        "version": obj["version"],
        "tensor_count": len(obj["tensor_infos"]),
        "metadata_kv_count": len(obj["metadata_kv"]),
        "metadata_kv": [
            {"key": p["key"], "value_type": p["value_type"], "value": value(p["value_type"], p["value"])}
            for p in obj["metadata_kv"]
        ],
        "alignment": next((p["value"] for p in alignments if p["value_type"] == T.UINT32), 32),
        "tensor_infos": [
            {
                "name": info["name"],
                "n_dimensions": len(info["dimensions"]),
                "dimensions": info["dimensions"],
                "type": info["type"],
                "offset": info["offset"],
            }
            for info in obj["tensor_infos"]
        ],
        "padding": obj["padding"],
        "tensor_data": obj["tensor_data"],
        "tail": obj["tail"],
        "order": obj["order"],
    }


# Strategies.

ODD = Extent(items=(0, 6), letters=(0, 12), levels=4, valid=False)
texts = strategies.values(T.STRING, extent=ODD)


def floats(letter: str):
    """Floats of one width by their bits; every other one is a NaN or an infinity."""
    size, mantissa = {"e": (16, 10), "f": (32, 23), "d": (64, 52)}[letter]
    exponent = 2 ** (size - 1) - 2**mantissa
    payloads = st.integers(0, 2 ** (mantissa - 1) - 1)
    special = st.builds(
        lambda sign, quiet, payload: sign << size - 1 | exponent | quiet << mantissa - 1 | payload,
        st.integers(0, 1),
        st.integers(0, 1),
        payloads,
    )
    return (st.integers(0, 2**size - 1) | special).map(lambda raw: widened(raw, letter))


def numbers(value_type: T):
    """Values of one number type, as parsing gives them."""
    letter = LETTERS[value_type]
    return floats(letter) if letter in "fd" else strategies.values(value_type, extent=ODD)


def number_arrays(value_type: T, order: str):
    """A numpy array, as parsing gives it."""
    return strategies.arrays(value_type, gs.structs(order), extent=ODD).map(lambda array: array["array"])


@st.composite
def pairs(draw, order: str, keys=texts):
    """A metadata pair; floats are made here, so that the package may be wrong about their bits."""
    types = [*T, T.ARRAY, T.STRING]
    pair = draw(strategies.metadata_pairs(gs.structs(order), keys=keys, types=types, extent=ODD))
    if pair["value_type"] in (T.FLOAT32, T.FLOAT64):
        pair["value"] = draw(numbers(pair["value_type"]))
    return pair


ALIGNMENTS = [2**n for n in range(13)] + [24, 40, 48, 56, 72, 96, 136, 1000, 4088]


@st.composite
def files(draw, canonical=False, layouts=tuple(LAYOUTS)):
    """The wire form of a file; canonical: one that `write` would write, and that `open` accepts."""
    order, version = draw(st.sampled_from(layouts))
    made = draw(
        strategies.wire_files(
            gs.structs(order, version),
            pairs=pairs(order, texts.filter(bool) if canonical else texts),
            infos=strategies.tensor_infos(extent=ODD),
            alignments=ALIGNMENTS,
            metadata=(0, 5),
            tensors=(0, 6),
            extent=ODD._replace(valid=canonical),
        )
    )
    metadata_kv, tensor_infos = made["metadata_kv"], made["tensor_infos"]
    alignment = next((p["value"] for p in metadata_kv if p["key"] == "general.alignment"), 32)
    if alignment == 32 and not canonical and draw(st.integers(0, 3)) == 0:
        metadata_kv.insert(0, {"key": "general.alignment", "value_type": T.UINT64, "value": 64})
        metadata_kv.append({"key": "general.alignment", "value_type": T.UINT32, "value": 64})

    end = 0
    spans = []
    for info in tensor_infos:
        gap = 0 if canonical else draw(st.sampled_from([0, 0, 0, 1, 2]))
        info["offset"] = up(end, alignment) + gap * alignment
        end = info["offset"] + size_of(info)
        spans.append((info["offset"], end))
    if not canonical and draw(st.booleans()):
        tensor_infos = draw(st.permutations(tensor_infos))

    noise = random.Random(draw(st.integers(0, 2**32)))
    obj = {"order": order, "version": version, "metadata_kv": metadata_kv, "tensor_infos": tensor_infos}
    head = len(encode_head(obj))
    missing = up(head, alignment) - head
    if canonical:
        data = bytearray(up(end, alignment))
        for start, stop in spans:
            data[start:stop] = noise.randbytes(stop - start)
        return {**obj, "padding": bytes(missing if tensor_infos else 0), "tensor_data": bytes(data), "tail": b""}
    padding = bytes(missing) if draw(st.booleans()) else noise.randbytes(missing)
    data = noise.randbytes(up(end, alignment))
    tail = draw(st.just(b"") | st.binary(max_size=40))
    if not tail and draw(st.booleans()):
        # The file ends early: within the data, or within the padding.
        cut = draw(st.integers(0, len(padding) + len(data)))
        padding, data = padding[:cut], data[: max(0, cut - len(padding))]
    return {**obj, "padding": padding, "tensor_data": data, "tail": tail}


def as_lists(value):
    """Arrays as lists of numpy scalars, which keep every bit; in all else the value itself."""
    if isinstance(value, dict):
        return {name: as_lists(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return list(value)
    return [as_lists(item) for item in value] if isinstance(value, list) else value


def as_other_order(value):
    """Arrays in the other byte order, bit by bit."""
    if isinstance(value, dict):
        return {name: as_other_order(item) for name, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.itemsize > 1:
        return value.byteswap().view(value.dtype.newbyteorder())
    return [as_other_order(item) for item in value] if isinstance(value, list) else value


# Whole files.


@thorough
@given(files())
def test_build_writes_the_bytes_and_parse_reads_them(obj):
    data = encode_head(obj) + obj["padding"] + obj["tensor_data"] + obj["tail"]
    assert gs.GGUF.build(obj) == data
    parsed = gs.GGUF.parse(data)
    assert same(complete(obj), parsed)
    assert gs.GGUF.build(parsed) == data
    assert same(parsed, gs.GGUF.parse(gs.GGUF.build(parsed)))


@thorough
@given(files())
def test_build_takes_lists_and_arrays_of_either_order(obj):
    data = gs.GGUF.build(obj)
    assert gs.GGUF.build(as_lists(obj)) == data
    assert gs.GGUF.build(as_other_order(obj)) == data


@thorough
@given(files(canonical=True))
def test_build_computes_offsets_and_padding(obj):
    given = dict(obj)
    del given["padding"], given["tail"]
    given["tensor_infos"] = [{k: v for k, v in info.items() if k != "offset"} for info in obj["tensor_infos"]]
    assert gs.GGUF.build(given) == gs.GGUF.build(obj)


@thorough
@given(files(), st.binary(max_size=70))
def test_a_file_within_a_file(obj, before):
    """All positions count from where the file starts."""
    data = gs.GGUF.build(obj)
    stream = io.BytesIO(before + data)
    stream.seek(len(before))
    assert same(gs.GGUF.parse(data), gs.GGUF.parse_stream(stream))
    out = io.BytesIO()
    out.write(before)
    gs.GGUF.build_stream(obj, out)
    assert out.getvalue() == before + data
    stream.seek(len(before))
    assert same(plain_of(gs.open(data, check=False)), plain_of(gs.open(stream, check=False)))


def plain_of(model):
    """All that an open file says."""
    return [[list(pair) for pair in model.metadata.pairs], *(tensor_of(tensor) for tensor in model.tensors.infos)]


def tensor_of(tensor):
    """All that a tensor says; its data only where it is there."""
    facts = [tensor.name, tensor.type, tensor.dimensions, tensor.offset, tensor.data_offset, tensor.n_bytes]
    with contextlib.suppress(gs.GGUFError):
        facts.append(tensor.data)
    return facts


def type_of(value_type, value):
    """The plain type of a wire value."""
    if value_type != T.ARRAY:
        return value_type
    inner = value["array"] if value["type"] == T.ARRAY else ()
    return ArrayType(value["type"], tuple(type_of(T.ARRAY, item) for item in inner))


def plain_value(value_type, value):
    """The plain value of a wire value."""
    if value_type != T.ARRAY:
        return value
    return [plain_value(T.ARRAY, item) for item in value["array"]] if value["type"] == T.ARRAY else value["array"]


@thorough
@given(files())
def test_open_gives_the_same_values(obj):
    data = encode_head(obj) + obj["padding"] + obj["tensor_data"] + obj["tail"]
    alignment = complete(obj)["alignment"]
    with gs.open(data, check=False) as model:
        assert (model.order, model.version, model.alignment) == (obj["order"], obj["version"], alignment)
        assert model.infos_end == len(encode_head(obj))
        assert model.data_offset == up(model.infos_end, alignment)
        assert model.size == len(data)
        expected = [
            [p["key"], type_of(p["value_type"], p["value"]), plain_value(p["value_type"], p["value"])]
            for p in obj["metadata_kv"]
        ]
        assert same(expected, [list(pair) for pair in model.metadata.pairs])
        for pair in reversed(model.metadata.pairs):
            first = next(p for p in model.metadata.pairs if p.key == pair.key)
            assert model.metadata[pair.key] is first.value, "of keys that stand twice, the first"
        assert len(model.tensors.infos) == len(obj["tensor_infos"])
        for info, tensor in zip(obj["tensor_infos"], model.tensors.infos, strict=True):
            size, start = size_of(info), info["offset"]
            found = [tensor.name, tensor.type, tensor.dimensions, tensor.offset, tensor.n_bytes]
            assert same([info["name"], info["type"], tuple(info["dimensions"]), start, size], found)
            assert tensor.data_offset == model.data_offset + start
            if tensor.data_offset + size <= len(data):
                assert tensor.data.tobytes() == obj["tensor_data"][start : start + size]
                assert tensor.data.nbytes == size
            else:
                with pytest.raises(gs.GGUFError, match="the file ends"):
                    _ = tensor.data


@thorough
@given(files(canonical=True))
def test_write_gives_the_bytes_of_a_canonical_file(obj):
    data = gs.GGUF.build(obj)
    with gs.open(data) as model:
        out = io.BytesIO()
        gs.write(out, model.metadata, model.tensors, order=model.order, version=model.version)
    assert out.getvalue() == data


@thorough
@given(files(canonical=True), st.sampled_from(LAYOUTS))
def test_write_in_another_layout_and_back(obj, layout):
    """Values live through any order and version."""
    data = gs.GGUF.build(obj)
    other, back = io.BytesIO(), io.BytesIO()
    order, version = layout
    with gs.open(data) as model:
        gs.write(other, model.metadata, model.tensors, order=order, version=version)
    with gs.open(other.getvalue()) as model:
        assert (model.order, model.version) == layout
        gs.write(back, model.metadata, model.tensors, order=obj["order"], version=obj["version"])
    assert back.getvalue() == data


def test_the_strategy_reaches_what_it_is_for():
    """Every value type, every live tensor type, four levels of arrays of different types, NaNs, gaps, … do turn up."""
    seen = set()

    def note(value_type, value, depth=0):
        seen.add(("value", value_type))
        if value_type == T.ARRAY:
            seen.add(("depth", depth + 1))
            seen.add(("array of", value["type"]))
            if value["type"] == T.ARRAY:
                kinds = {item["type"] for item in value["array"]}
                if len(kinds) > 1:
                    seen.add("heterogeneous")
                for item in value["array"]:
                    note(T.ARRAY, item, depth + 1)
        elif value_type == T.BOOL and type(value) is int:
            seen.add("byte")
        elif isinstance(value, str) and not value.isascii() and any("\udc80" <= c <= "\udcff" for c in value):
            seen.add("invalid UTF-8")
        elif isinstance(value, float) and value != value:
            seen.add(("NaN", value_type, "quiet" if bits(value) & 2**51 else "signalling"))

    @settings(deadline=None, max_examples=1000, database=None, derandomize=True)
    @given(files())
    def look(obj):
        seen.add(("layout", obj["order"], obj["version"]))
        for pair in obj["metadata_kv"]:
            note(pair["value_type"], pair["value"])
        seen.update(("tensor", info["type"]) for info in obj["tensor_infos"])
        seen.update(("dimensions", len(info["dimensions"])) for info in obj["tensor_infos"])
        ends = sorted((info["offset"], info["offset"] + size_of(info)) for info in obj["tensor_infos"])
        alignment = complete(obj)["alignment"]
        seen.add(("alignment", alignment if alignment & (alignment - 1) == 0 else "no power of two"))
        if any(after[0] > up(before[1], alignment) for before, after in itertools.pairwise(ends)):
            seen.add("gap")
        if any(obj["padding"]):
            seen.add("padding")
        if obj["tail"]:
            seen.add("tail")

    look()
    wanted = {"heterogeneous", "byte", "invalid UTF-8", "gap", "padding", "tail"}
    wanted |= {("value", t) for t in T} | {("tensor", t) for t in BLOCKS} | {("layout", *layout) for layout in LAYOUTS}
    wanted |= {("depth", n) for n in range(1, 5)} | {("array of", t) for t in T}
    wanted |= {("dimensions", n) for n in range(5)} | {("alignment", a) for a in (1, 8, 32, 4096, "no power of two")}
    wanted |= {("NaN", t, kind) for t in (T.FLOAT32, T.FLOAT64) for kind in ("quiet", "signalling")}
    missing = wanted - seen
    assert not missing


def test_the_types_are_the_live_ones():
    from gguf_schema.blocks import blocks

    assert {type: (block.block_size, block.type_size) for type, block in blocks("<").items()} == BLOCKS
    assert len(BLOCKS) == 35


# Bulk constructs mean what the plain constructs inside them mean.

BULK = [*LETTERS, T.STRING]


def twins(order: str, version: int, value_type: T) -> tuple[Struct, Struct]:
    """A length and an array: once with the schema's bulk construct, once with the plain Array inside it."""
    layout = gs.structs(order, version)
    fast = layout.array.subcons[2].subcon.cases[value_type]
    assert type(fast) in (bulk.NumberArray, bulk.StringArray)
    assert type(fast.subcon) is Array
    length = field("len", Rebuild(layout.length, len_(this.array)))
    return Struct(length, field("array", fast)), Struct(length, field("array", fast.subcon))


def outcome(con, data: bytes, start: int):
    """What parsing from a position gives: the Struct and the position afterwards, or the error, told exactly."""
    stream = io.BytesIO(data)
    stream.seek(start)
    try:
        return con.parse_stream(stream), stream.tell()
    except gs.GGUFError as error:
        return type(error), error.path, error.offset, error.problem, str(error)


def build_outcome(con, items):
    """The bytes, or the error, told exactly."""
    try:
        return con.build({"array": items})
    except gs.GGUFError as error:
        return type(error), error.path, error.offset, error.problem, str(error)


def items_of(array, value_type):
    """Items of either construct's value as one sort of thing, in which no bit is lost."""
    if isinstance(array, np.ndarray):
        letter = LETTERS[value_type]
        assert array.dtype == np.bool_ or array.dtype.itemsize == struct.calcsize("<" + letter)
        if letter in "fd":
            native = array.byteswap().view(array.dtype.newbyteorder("=")) if not array.dtype.isnative else array
            return [bits(widened(raw, letter)) for raw in native.view(f"u{array.dtype.itemsize}").tolist()]
        return array.tolist()
    return [bits(item) if isinstance(item, float) else item for item in array]


def assert_equal_outcomes(fast, plain, value_type, data: bytes, start: int):
    one, other = outcome(fast, data, start), outcome(plain, data, start)
    assert len(one) == len(other), (one, other)
    if len(one) > 2:
        assert one == other
        return one
    (fast_value, fast_end), (plain_value, plain_end) = one, other
    assert fast_end == plain_end
    assert fast_value["len"] == plain_value["len"] == len(fast_value["array"])
    fast_items, plain_items = (items_of(value["array"], value_type) for value in (fast_value, plain_value))
    assert fast_items == plain_items
    if value_type is T.BOOL:
        is_clean = all(type(item) is bool for item in plain_items)
        assert fast_value["array"].dtype == (np.bool_ if is_clean else np.uint8)
    elif value_type is T.STRING:
        assert fast_value["array"][:] == [fast_value["array"][i] for i in range(len(plain_items))] == plain_items
        assert list(fast_value["array"].raw()) == [s.encode("utf-8", "surrogateescape") for s in plain_items]
    wire = data[start:fast_end]
    for builder in fast, plain:
        for value in fast_value, plain_value:
            assert builder.build(value) == wire
    return one


@st.composite
def array_bytes(draw):
    """A layout, a type, and the bytes of an array with its length, with other bytes before and after."""
    order, version = draw(st.sampled_from(LAYOUTS))
    value_type = draw(st.sampled_from([*BULK, T.STRING, T.STRING]))
    if value_type is T.STRING:
        items = draw(st.lists(texts, max_size=6))
    else:
        items = draw(number_arrays(value_type, order))
    wire = encode(T.ARRAY, {"type": value_type, "array": items}, order, version)[4:]
    before, after = draw(st.binary(max_size=5)), draw(st.just(b"") | st.binary(max_size=20))
    return order, version, value_type, before, wire, after


@thorough
@given(array_bytes())
def test_bulk_is_plain_on_good_bytes(drawn):
    order, version, value_type, before, wire, after = drawn
    found = assert_equal_outcomes(*twins(order, version, value_type), value_type, before + wire + after, len(before))
    assert len(found) == 2, found
    assert found[1] == len(before) + len(wire)


@thorough
@given(array_bytes())
def test_bulk_is_plain_where_bytes_are_missing(drawn):
    order, version, value_type, before, wire, _ = drawn
    for cut in range(len(wire)):
        data = before + wire[:cut]
        found = assert_equal_outcomes(*twins(order, version, value_type), value_type, data, len(before))
        assert found[0] is gs.TruncatedError
        assert found[1].startswith(("len", "array["))
        assert 0 <= found[2] <= cut


@thorough
@given(array_bytes(), st.data())
def test_bulk_is_plain_where_lengths_lie(drawn, data):
    order, version, value_type, before, wire, after = drawn
    width = struct.calcsize(order + WIDTH[version])
    starts = [0]
    if value_type is T.STRING:
        starts += [
            width + len(b"".join(encode(T.STRING, s, order, version) for s in list_of(wire, order, version)[:i]))
            for i in range(len(list_of(wire, order, version)))
        ]
    start = data.draw(st.sampled_from(starts))
    largest = 2 ** (8 * width) - 1
    lies = st.sampled_from([0, 1, 2, largest, largest // 2, largest // 2 + 1, 2**31, 2**16, len(wire), len(after)])
    lie = data.draw(lies | st.integers(0, 60))
    broken = wire[:start] + struct.pack(order + WIDTH[version], lie) + wire[start + width :]
    assert_equal_outcomes(*twins(order, version, value_type), value_type, before + broken + after, len(before))


def list_of(wire: bytes, order: str, version: int) -> list[str]:
    """The strings of an array, read by the struct module alone."""
    letter = order + WIDTH[version]
    position = struct.calcsize(letter)
    found = []
    for _ in range(struct.unpack_from(letter, wire)[0]):
        (length,) = struct.unpack_from(letter, wire, position)
        position += struct.calcsize(letter)
        found.append(wire[position : position + length].decode("utf-8", "surrogateescape"))
        position += length
    return found


@pytest.mark.parametrize("windows", [(1, 1), (1, 8), (3, 3), (9, 64)])
@settings(deadline=None, max_examples=60)
@given(array_bytes().filter(lambda drawn: drawn[2] is T.STRING), st.integers(0, 200))
def test_windows_make_no_difference(windows, drawn, cut):
    """With windows of a few bytes, every way in which a string can stand across their borders turns up."""
    order, version, value_type, before, wire, after = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "LIKELY_SIZE", windows[0])
        patch.setattr(bulk, "LARGEST_WINDOW", windows[1])
        patch.setattr(scan, "WORTHWHILE", 0)
        patch.setattr(scan, "BLOCK", 8 * windows[1])
        for data in before + wire + after, before + wire[:cut]:
            assert_equal_outcomes(*twins(order, version, value_type), value_type, data, len(before))


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_long_strings_across_the_real_windows(order, version):
    """Strings that end at, before and after the borders of the windows, longer than the largest; many short ones."""
    fast, plain = twins(order, version, T.STRING)
    width = struct.calcsize(order + WIDTH[version])
    first = 5 * bulk.LIKELY_SIZE
    around = [first - width + delta for delta in (-9, -1, 0, 1, 9)]
    noise = random.Random(7)
    for lengths in (
        around,
        [0] * 3000,
        [bulk.LARGEST_WINDOW * 3, 0, 5, bulk.LARGEST_WINDOW - width, 1],
        [noise.choice([0, 1, 7, 255, 256, 5000]) for _ in range(600)],
        [noise.choice([1, 7, 20, 100, 255]) for _ in range(2 * scan.BLOCK // 80)],
    ):
        items = [noise.randbytes(length) for length in lengths]
        wire = struct.pack(order + WIDTH[version], len(items))
        wire += b"".join(struct.pack(order + WIDTH[version], len(item)) + item for item in items)
        assert_equal_outcomes(fast, plain, T.STRING, wire + b"after", 0)
        for cut in {1, len(wire) // 3, len(wire) - 1, width + first, width + first - 1}:
            if cut < len(wire):
                assert len(assert_equal_outcomes(fast, plain, T.STRING, wire[:cut], 0)) > 2


anything = (
    st.integers(-(2**65), 2**65)
    | st.integers(-300, 300)
    | st.booleans()
    | st.floats()
    | floats("f")
    | texts
    | st.binary(max_size=4)
    | st.none()
    | st.sampled_from([[], [1], np.uint8(200), np.int64(-1), np.float16(1.5), np.float32("nan"), np.bool_(True)])
    | st.just("\ud800")
)
DTYPES = ["?", "u1", "i1", "<u2", ">i2", "<i4", ">u4", "<u8", ">i8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


@st.composite
def items_to_build(draw):
    """Items that fit and items that do not: lists of one kind, mixtures, numpy arrays of any dtype."""
    if draw(st.booleans()):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        raw = draw(st.binary(max_size=6 * dtype.itemsize))
        raw = raw[: len(raw) // dtype.itemsize * dtype.itemsize]
        if dtype == np.bool_:
            raw = bytes(byte % 2 for byte in raw)
        return np.frombuffer(raw, dtype)
    kind = draw(
        st.sampled_from(
            [
                st.integers(0, 100),
                st.integers(-(2**63), 2**64),
                st.booleans(),
                st.floats(),
                st.floats(allow_nan=False, allow_infinity=False, width=32),
                st.integers(-3, 3) | st.floats(-3, 3),
                texts,
                anything,
            ]
        )
    )
    return draw(st.lists(kind, max_size=5))


@thorough
@given(st.sampled_from(LAYOUTS), st.sampled_from(BULK), items_to_build())
def test_bulk_builds_what_plain_builds_or_refuses_it_with_the_same_words(layout, value_type, items):
    fast, plain = twins(*layout, value_type)
    assert build_outcome(fast, items) == build_outcome(plain, items)


@thorough
@given(st.sampled_from(LAYOUTS), st.sampled_from(sorted(LETTERS)), st.integers(0, 3), st.data())
def test_bulk_builds_one_wrong_item_as_plain_does(layout, value_type, index, data):
    """Nearly all fit: the path has the index of the one that does not."""
    items = data.draw(st.lists(numbers(value_type), min_size=index, max_size=index + 3))
    items.insert(index, data.draw(st.sampled_from([2**64, -(2**63) - 1, "1", None, [1]])))
    fast, plain = twins(*layout, value_type)
    found = build_outcome(fast, items)
    assert found == build_outcome(plain, items)
    if isinstance(items[index], int) and value_type in (T.FLOAT32, T.FLOAT64):
        assert isinstance(found, bytes)
    else:
        assert found[:2] == (gs.BuildError, f"array[{index}]")


@pytest.mark.parametrize("array", ['T.STRING, "array": ["x" * 100] * 1000', 'T.UINT8, "array": bytes(100_000)'])
def test_a_file_that_shrinks_while_it_is_read(array):
    """Its size is taken first; then fewer bytes come. That is an error: no endless loop, and no shorter array."""
    program = f"""
import io
import gguf_schema as gs
from gguf_schema import GGUFValueType as T

pair = {{"key": "a", "value_type": T.ARRAY, "value": {{"type": {array}}}}}
data = gs.GGUF.build({{"metadata_kv": [pair], "tensor_infos": []}})

class Shrinks(io.BytesIO):
    def seek(self, offset, whence=0):
        return super().seek(offset, whence) + (len(data) - 20000 if whence == 2 else 0)

try:
    gs.open(Shrinks(data[:20000]))
except gs.GGUFError:
    print("refused")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=10)
    assert run.stdout == "refused\n", run.stderr


def test_the_comparison_can_fail():
    """A bulk construct that means something else is told from the plain one."""

    class Wrong(bulk.NumberArray):
        def _parse(self, stream, context, path):
            return super()._parse(stream, context, path) + 1

    length = field("len", Rebuild(Integer("<", "Q"), len_(this.array)))
    plain_array = Array(this.len, Integer("<", "H"))
    plain, wrong = Struct(length, field("array", plain_array)), Struct(length, field("array", Wrong(plain_array)))
    with pytest.raises(AssertionError):
        assert_equal_outcomes(wrong, plain, T.UINT16, plain.build({"array": [1, 2]}), 0)
