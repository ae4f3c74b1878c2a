"""Nothing is lost: every odd bit comes back as it was; and what would be lost is refused, by its place."""

import io
import subprocess
import sys

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import ArrayType
from gguf_schema import GGUFValueType as T
from gguf_schema.blocks import block
from gguf_schema.constructs import Array, Bool, Float, Integer, NumberArray
from gguf_schema.schema import GGUFStructs

from .test_generated_files import BLOCKS, bits, difference, encode_head, same, widened

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]
each_layout = pytest.mark.parametrize(("order", "version"), LAYOUTS)

# NaNs. Letter, bytes little-endian, bytes big-endian, the bits of the Python float.
NANS = [
    ("f", "01 00 a0 7f", "7f a0 00 01", 0x7FF4000020000000),  # signalling, with a payload
    ("f", "01 00 80 7f", "7f 80 00 01", 0x7FF0000020000000),  # signalling, the smallest payload
    ("f", "01 00 a0 ff", "ff a0 00 01", 0xFFF4000020000000),  # signalling, negative
    ("f", "00 00 c0 7f", "7f c0 00 00", 0x7FF8000000000000),  # quiet, the usual one
    ("f", "00 00 c0 ff", "ff c0 00 00", 0xFFF8000000000000),  # quiet, negative: what x86 makes of 0 / 0
    ("f", "ef be ed 7f", "7f ed be ef", 0x7FFDB7DDE0000000),  # quiet, with a payload
    ("e", "01 7d", "7d 01", 0x7FF4040000000000),  # float16, signalling
    ("e", "00 7e", "7e 00", 0x7FF8000000000000),
    ("e", "34 ff", "ff 34", 0xFFFCD00000000000),
    ("d", "01 00 00 00 00 00 f4 7f", "7f f4 00 00 00 00 00 01", 0x7FF4000000000001),
    ("d", "ef be ad de 00 00 f0 ff", "ff f0 00 00 de ad be ef", 0xFFF00000DEADBEEF),
    ("d", "00 00 00 00 00 00 f8 7f", "7f f8 00 00 00 00 00 00", 0x7FF8000000000000),
]
VALUE_TYPE = {"f": T.FLOAT32, "d": T.FLOAT64}


@pytest.mark.parametrize(("letter", "little", "big", "wide"), NANS)
def test_nan_as_a_number(letter, little, big, wide):
    for order, text in ("<", little), (">", big):
        data = bytes.fromhex(text)
        value = Float(order, letter).parse(data)
        assert type(value) is float
        assert bits(value) == wide
        assert Float(order, letter).build(value) == data


@pytest.mark.parametrize(("letter", "little", "big", "wide"), NANS)
def test_nan_as_a_numpy_scalar(letter, little, big, wide):
    """A scalar of the same width is written by its own bits, whatever the order of the file and of its dtype."""
    for text, dtype in (little, f"<{letter}"), (big, f">{letter}"):
        scalar = np.frombuffer(bytes.fromhex(text), dtype)[0]
        assert Float("<", letter).build(scalar) == bytes.fromhex(little)
        assert Float(">", letter).build(scalar) == bytes.fromhex(big)


@pytest.mark.parametrize(("letter", "little", "big", "wide"), NANS)
def test_nan_in_arrays(letter, little, big, wide):
    ones = {"e": "3c00", "f": "3f800000", "d": "3ff0000000000000"}[letter]
    for order, text in ("<", little), (">", big):
        one = bytes.fromhex(ones)[:: -1 if order == "<" else 1]
        data = bytes.fromhex(text) + one + bytes.fromhex(text)
        plain = Array(3, Float(order, letter))
        value = plain.parse(data)
        assert [bits(item) for item in value] == [wide, bits(1.0), wide]
        array = NumberArray(plain).parse(data)
        assert (array.dtype, array.tobytes()) == (np.dtype(order + letter), data)
        swapped = array.byteswap().view(array.dtype.newbyteorder())
        for items in value, list(value), tuple(value), array, list(array), swapped, list(swapped):
            assert plain.build(items) == data
            assert NumberArray(plain).build(items) == data


@pytest.mark.parametrize(("letter", "little", "big", "wide"), [nan for nan in NANS if nan[0] in VALUE_TYPE])
@each_layout
def test_nan_in_files(letter, little, big, wide, order, version):
    """As a value, in an array, and in an array of arrays, through the wire form and through open and write."""
    data = bytes.fromhex(little if order == "<" else big)
    value = widened(int(big.replace(" ", ""), 16), letter)
    assert bits(value) == wide
    type = VALUE_TYPE[letter]
    array = {"type": type, "array": [value, 1.0]}
    obj = {
        "order": order,
        "version": version,
        "metadata_kv": [
            {"key": "value", "value_type": type, "value": value},
            {"key": "array", "value_type": T.ARRAY, "value": array},
            {"key": "nested", "value_type": T.ARRAY, "value": {"type": T.ARRAY, "array": [array]}},
        ],
        "tensor_infos": [],
    }
    built = gs.GGUF.build(obj)
    assert built.count(data) == 3
    parsed = gs.GGUF.parse(built)
    assert bits(parsed.metadata_kv[0].value) == wide
    assert parsed.metadata_kv[1].value.array.tobytes()[: len(data)] == data
    assert gs.GGUF.build(parsed) == built
    assert rewritten(built) == built
    other = "<>".replace(order, "")
    assert rewritten(rewritten(built, order=other), order=order) == built

    out = io.BytesIO()
    pairs = [
        ("value", type, value),
        ("array", ArrayType(type), [value, 1.0]),
        ("nested", ArrayType(T.ARRAY, (ArrayType(type),)), [[value, 1.0]]),
    ]
    gs.write(out, pairs, order=order, version=version)
    assert out.getvalue() == built


def rewritten(data: bytes, **layout) -> bytes:
    """The file as `write` writes what `open` read, in the same layout where none is given."""
    out = io.BytesIO()
    with gs.open(data) as model:
        gs.write(out, model.metadata, model.tensors, **{"order": model.order, "version": model.version, **layout})
    return out.getvalue()


@pytest.mark.parametrize("type", ["F16", "F32", "F64", "BF16"])
@pytest.mark.parametrize("order", "<>")
def test_nan_in_tensors(type, order):
    """All bit patterns of 16 bits, and for wider types those with NaNs, go through open and write."""
    size = BLOCKS[gs.GGMLQuantizationType[type]][1]
    high = np.arange(65536, dtype=f"{order}u2").tobytes()
    if size > 2:
        numbers = np.frombuffer(high, f"{order}u2").astype(f"{order}u{size}")
        wide = numbers << np.array(8 * size - 16, f"u{size}") | np.array(1, f"u{size}")
        high = wide.astype(f"{order}u{size}").tobytes()
    info = {"name": "t", "dimensions": [65536], "type": gs.GGMLQuantizationType[type]}
    built = gs.GGUF.build({"order": order, "metadata_kv": [], "tensor_infos": [info], "tensor_data": high})
    assert gs.open(built).tensors["t"].data.tobytes() == high
    assert rewritten(built) == built
    other = "<>".replace(order, "")
    assert rewritten(rewritten(built, order=other), order=order) == built


def test_nan_without_room_for_its_payload_stays_a_nan():
    """A Python float's payload may be too low for a float32: an infinity must not come of it."""
    value = widened(0x7FF0000000000001, "d")
    assert Float("<", "f").build(value) == bytes.fromhex("00 00 c0 7f")
    assert Float(">", "e").build(value) == bytes.fromhex("7e 00")
    assert Float(">", "d").build(value) == bytes.fromhex("7f f0 00 00 00 00 00 01")


@pytest.mark.parametrize(("letter", "size"), [("e", 2), ("f", 4), ("d", 8)])
def test_zeros_infinities_and_subnormals(letter, size):
    top = {"e": (0x3C00, 0x7C00), "f": (0x3F800000, 0x7F800000), "d": (0x3FF << 52, 0x7FF << 52)}[letter]
    sign = 1 << 8 * size - 1
    for raw in (0, sign, 1, sign | 1, *top, sign | top[1], top[1] - 1):
        for order, name in ("<", "little"), (">", "big"):
            data = raw.to_bytes(size, name)
            assert Float(order, letter).build(Float(order, letter).parse(data)) == data


def test_all_float16():
    for order in "<>":
        data = np.arange(65536, dtype=f"{order}u2").tobytes()
        plain = Array(65536, Float(order, "e"))
        value = plain.parse(data)
        assert plain.build(value) == data
        assert NumberArray(plain).build(list(value)) == data
        assert NumberArray(plain).build(NumberArray(plain).parse(data)) == data


# numpy scalars.


@pytest.mark.parametrize(
    ("type", "scalar", "value"),
    [
        (T.UINT8, np.uint8(255), 255),
        (T.UINT8, np.int64(255), 255),
        (T.INT8, np.int8(-128), -128),
        (T.UINT16, np.uint16(65535), 65535),
        (T.INT16, np.int16(-2), -2),
        (T.UINT32, np.uint32(2**32 - 1), 2**32 - 1),
        (T.INT32, np.int32(-3), -3),
        (T.UINT64, np.uint64(2**64 - 1), 2**64 - 1),
        (T.INT64, np.int64(-(2**63)), -(2**63)),
        (T.FLOAT32, np.float32(0.1), 0.10000000149011612),
        (T.FLOAT32, np.float64(0.5), 0.5),
        (T.FLOAT32, np.float16(0.1), 0.0999755859375),
        (T.FLOAT64, np.float64(0.1), 0.1),
        (T.FLOAT64, np.float32(0.1), 0.10000000149011612),
        (T.BOOL, np.bool_(True), True),
        (T.BOOL, np.bool_(False), False),
        (T.BOOL, np.uint8(7), 7),
        (T.STRING, np.str_("text"), "text"),
    ],
)
def test_numpy_scalars(type, scalar, value):
    for order in "<>":
        pair = {"key": "k", "value_type": type, "value": scalar}
        built = gs.GGUF.build({"order": order, "metadata_kv": [pair], "tensor_infos": []})
        assert same(value, gs.GGUF.parse(built).metadata_kv[0].value)
        out = io.BytesIO()
        gs.write(out, [("k", type, scalar)], order=order)
        assert out.getvalue() == built


# Bytes that stay what they are.


@each_layout
def test_bool_bytes(order, version):
    layout = gs.structs(order, version)
    for byte in range(256):
        value = layout.bool.parse(bytes([byte]))
        assert same(bool(byte) if byte < 2 else byte, value)
        assert layout.bool.build(value) == bytes([byte])
        array = NumberArray(Array(2, layout.bool)).parse(bytes([1, byte]))
        assert array.dtype == (np.bool_ if byte < 2 else np.uint8)
        assert NumberArray(Array(2, layout.bool)).build(array) == bytes([1, byte])
    pairs = [{"key": str(byte), "value_type": T.BOOL, "value": byte} for byte in range(256)]
    everything = {"type": T.BOOL, "array": list(range(256))}
    pairs.append({"key": "all", "value_type": T.ARRAY, "value": everything})
    built = gs.GGUF.build({"order": order, "version": version, "metadata_kv": pairs, "tensor_infos": []})
    assert bytes(range(256)) in built
    assert gs.GGUF.build(gs.GGUF.parse(built)) == built
    assert rewritten(built) == built


INVALID = [b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"ok \x80 ok", bytes(range(256)), b"\0"]


@pytest.mark.parametrize("raw", INVALID)
@each_layout
def test_strings_that_are_no_utf_8(order, version, raw):
    text = raw.decode("utf-8", "surrogateescape")
    pairs = [
        {"key": text, "value_type": T.STRING, "value": text},
        {"key": "a", "value_type": T.ARRAY, "value": {"type": T.STRING, "array": [text, "", text]}},
    ]
    infos = [{"name": text, "dimensions": [], "type": 0}]
    built = gs.GGUF.build({"order": order, "version": version, "metadata_kv": pairs, "tensor_infos": infos})
    assert built.count(raw) >= 5
    parsed = gs.GGUF.parse(built)
    assert parsed.metadata_kv[0].key == parsed.metadata_kv[0].value == parsed.tensor_infos[0].name == text
    assert list(parsed.metadata_kv[1].value.array) == [text, "", text]
    assert gs.GGUF.build(parsed) == built
    full = gs.GGUF.build({**parsed, "tensor_data": bytes(32)})
    assert rewritten(full) == full
    given_as_bytes = [{**pairs[0], "value": raw}, {**pairs[1], "value": {"type": T.STRING, "array": [raw, b"", raw]}}]
    obj = {"order": order, "version": version, "metadata_kv": given_as_bytes, "tensor_infos": infos}
    assert gs.GGUF.build(obj) == built, "bytes are taken as they are"


def unusual(order, version):
    """A file with everything that a canonical one has not."""
    return {
        "order": order,
        "version": version,
        "metadata_kv": [
            {"key": "twice", "value_type": T.UINT8, "value": 1},
            {"key": "twice", "value_type": T.STRING, "value": "2"},
            {"key": "", "value_type": T.INT8, "value": -1},
        ],
        "tensor_infos": [
            {"name": "b", "dimensions": [3], "type": gs.GGMLQuantizationType.I8, "offset": 96},
            {"name": "a", "dimensions": [5], "type": gs.GGMLQuantizationType.I8, "offset": 0},
            {"name": "a", "dimensions": [1, 1, 1, 1, 2], "type": gs.GGMLQuantizationType.I8, "offset": 32},
            {"name": "overlap", "dimensions": [4], "type": gs.GGMLQuantizationType.I8, "offset": 32},
        ],
        "tensor_data": bytes(range(1, 129)),
        "tail": b"tail",
    }


@each_layout
def test_duplicates_gaps_padding_and_tail(order, version):
    obj = unusual(order, version)
    head = encode_head(obj)
    padding = b"\xaa" * (-len(head) % 32)
    assert padding
    data = head + padding + obj["tensor_data"] + obj["tail"]
    parsed = gs.GGUF.parse(data)
    assert parsed.padding == padding
    assert parsed.tensor_data == obj["tensor_data"], "gaps, overlaps, and padding that is not zero"
    assert parsed.tail == b"tail"
    assert [pair.key for pair in parsed.metadata_kv] == ["twice", "twice", ""]
    assert [info.name for info in parsed.tensor_infos] == ["b", "a", "a", "overlap"]
    assert [info.offset for info in parsed.tensor_infos] == [96, 0, 32, 32]
    assert gs.GGUF.build(parsed) == data
    with gs.open(data, check=False) as model:
        assert [(p.key, p.value) for p in model.metadata.pairs] == [("twice", 1), ("twice", "2"), ("", -1)]
        assert model.metadata["twice"] == 1
        found = [(t.name, t.data.tobytes()) for t in model.tensors.infos]
        assert found == [("b", b"abc"), ("a", b"\1\2\3\4\5"), ("a", b"!\x22"), ("overlap", b"!\x22#$")]


@pytest.mark.parametrize("type", [4, 5, 31, 33, 36, 38, 43, 97, 153, 2**31, 2**32 - 1])
@each_layout
def test_tensor_types_that_nobody_knows(order, version, type):
    infos = [
        {"name": "a", "dimensions": [7], "type": type, "offset": 0},
        {"name": "b", "dimensions": [2**31, 2**31, 2**31], "type": type, "offset": 64},
    ]
    obj = {"order": order, "version": version, "metadata_kv": [], "tensor_infos": infos}
    built = gs.GGUF.build({**obj, "tensor_data": bytes(range(99))})
    parsed = gs.GGUF.parse(built)
    assert [int(info.type) for info in parsed.tensor_infos] == [type, type]
    assert parsed.tensor_data == bytes(range(99))
    assert gs.GGUF.build(parsed) == built
    with gs.open(built, check=False) as model:
        assert model.tensors["a"].data.tobytes() == bytes(range(64)), "up to the next tensor"
        assert model.tensors["b"].n_bytes is None


# What would be lost is refused.


def of_pairs(*pairs):
    return {"metadata_kv": list(pairs), "tensor_infos": []}


def pair(value_type, value, **more):
    return of_pairs(GOOD_PAIR, {"key": "k", "value_type": value_type, "value": value, **more})


def array(type, items, **more):
    return pair(T.ARRAY, {"type": type, "array": items, **more})


def tensor(**more):
    info = {"name": "t", "dimensions": [2, 3], "type": 0, "offset": 0}
    return {"metadata_kv": [], "tensor_infos": [info, {**info, **more}]}


def without_offsets(obj):
    return {**obj, "tensor_infos": [{**info, "offset": None} for info in obj["tensor_infos"]]}


GOOD_PAIR = {"key": "good", "value_type": T.UINT8, "value": 1}
VALUE = "metadata_kv[1].value"
ITEM = "metadata_kv[1].value.array[1]"
INFO = "tensor_infos[1]"
INTEGERS = {
    T.UINT8: (0, 2**8 - 1),
    T.INT8: (-(2**7), 2**7 - 1),
    T.UINT16: (0, 2**16 - 1),
    T.INT16: (-(2**15), 2**15 - 1),
    T.UINT32: (0, 2**32 - 1),
    T.INT32: (-(2**31), 2**31 - 1),
    T.UINT64: (0, 2**64 - 1),
    T.INT64: (-(2**63), 2**63 - 1),
}

REFUSED = {
    # Integers that do not fit, by one.
    **{f"{t.name} too small": (pair(t, low - 1), VALUE, "does not fit") for t, (low, _) in INTEGERS.items()},
    **{f"{t.name} too large": (pair(t, high + 1), VALUE, "does not fit") for t, (_, high) in INTEGERS.items()},
    **{f"{t.name}s too small": (array(t, [1, low - 1]), ITEM, "does not fit") for t, (low, _) in INTEGERS.items()},
    **{f"{t.name}s too large": (array(t, [1, high + 1]), ITEM, "does not fit") for t, (_, high) in INTEGERS.items()},
    # Other types for integers.
    **{f"bool for {t.name}": (pair(t, True), VALUE, "found bool") for t in INTEGERS},
    **{f"numpy bool for {t.name}": (pair(t, np.bool_(True)), VALUE, "found bool") for t in INTEGERS},
    **{f"float for {t.name}": (pair(t, 1.0), VALUE, "found float") for t in INTEGERS},
    **{f"numpy float for {t.name}": (pair(t, np.float32(1)), VALUE, "found float32") for t in INTEGERS},
    **{f"str for {t.name}": (pair(t, "1"), VALUE, "found str") for t in INTEGERS},
    **{f"bytes for {t.name}": (pair(t, b"1"), VALUE, "found bytes") for t in INTEGERS},
    **{f"list for {t.name}": (pair(t, [1]), VALUE, "found list") for t in INTEGERS},
    **{f"array for {t.name}": (pair(t, np.array([1])), VALUE, "found ndarray") for t in INTEGERS},
    **{f"nothing for {t.name}": (pair(t, None), VALUE, "found NoneType") for t in INTEGERS},
    **{f"bool among {t.name}": (array(t, [1, True]), ITEM, "found bool") for t in INTEGERS},
    **{f"float among {t.name}": (array(t, [1, 1.0]), ITEM, "found float") for t in INTEGERS},
    **{f"str among {t.name}": (array(t, [1, "1"]), ITEM, "found str") for t in INTEGERS},
    **{f"list among {t.name}": (array(t, [1, [1]]), ITEM, "found list") for t in INTEGERS},
    "only bools for UINT8": (array(T.UINT8, [True, False]), f"{VALUE}.array[0]", "found bool"),
    "a bool array for UINT8": (array(T.UINT8, np.array([True])), f"{VALUE}.array[0]", "found bool"),
    "only floats for INT32": (array(T.INT32, [1.0, 2.0]), f"{VALUE}.array[0]", "found float"),
    "a float array for INT32": (array(T.INT32, np.array([1.0])), f"{VALUE}.array[0]", "found float64"),
    "a matrix": (array(T.INT32, np.ones((2, 2), np.int32)), f"{VALUE}.array[0]", "found ndarray"),
    "one uint64 for INT64s": (array(T.INT64, np.array([1, 2**63], np.uint64)), ITEM, "does not fit"),
    "one int64 for UINT64s": (array(T.UINT64, np.array([1, -1])), ITEM, "does not fit"),
    "beyond 64 bits": (array(T.UINT64, [1, 2**64]), ITEM, "does not fit"),
    # Floats.
    "FLOAT32 too large": (pair(T.FLOAT32, 1e39), VALUE, "does not fit"),
    "FLOAT32s too large": (array(T.FLOAT32, [1.0, 1e39]), ITEM, "does not fit"),
    "FLOAT32s too large in an array": (array(T.FLOAT32, np.array([1.0, -1e39])), ITEM, "does not fit"),
    "FLOAT64 too large": (pair(T.FLOAT64, 10**400), VALUE, "does not fit"),
    **{f"bool for {t.name}": (pair(t, True), VALUE, "found bool") for t in (T.FLOAT32, T.FLOAT64)},
    **{f"str for {t.name}": (pair(t, "1.0"), VALUE, "found str") for t in (T.FLOAT32, T.FLOAT64)},
    **{f"list for {t.name}": (pair(t, [1.0]), VALUE, "found list") for t in (T.FLOAT32, T.FLOAT64)},
    **{f"complex for {t.name}": (pair(t, 1j), VALUE, "found complex") for t in (T.FLOAT32, T.FLOAT64)},
    **{f"bool among {t.name}": (array(t, [1.0, True]), ITEM, "found bool") for t in (T.FLOAT32, T.FLOAT64)},
    **{f"str among {t.name}": (array(t, [1.0, "1"]), ITEM, "found str") for t in (T.FLOAT32, T.FLOAT64)},
    # Bools.
    "a byte that is none": (pair(T.BOOL, 256), VALUE, "does not fit"),
    "a negative byte": (pair(T.BOOL, -1), VALUE, "does not fit"),
    "float for BOOL": (pair(T.BOOL, 1.0), VALUE, "found float"),
    "str for BOOL": (pair(T.BOOL, "true"), VALUE, "found str"),
    "list for BOOL": (pair(T.BOOL, [True]), VALUE, "found list"),
    "nothing for BOOL": (pair(T.BOOL, None), VALUE, "found NoneType"),
    "float among BOOL": (array(T.BOOL, [True, 1.0]), ITEM, "found float"),
    "a large byte among BOOL": (array(T.BOOL, np.array([1, 256])), ITEM, "does not fit"),
    # Strings.
    "int for STRING": (pair(T.STRING, 1), VALUE, "found int"),
    "list for STRING": (pair(T.STRING, ["a"]), VALUE, "found list"),
    "nothing for STRING": (pair(T.STRING, None), VALUE, "found NoneType"),
    "a surrogate that is no byte": (pair(T.STRING, "a\ud800"), VALUE, "character 1"),
    "int among STRING": (array(T.STRING, ["a", 1]), ITEM, "found int"),
    "list among STRING": (array(T.STRING, ["a", ["b"]]), ITEM, "found list"),
    "a surrogate among STRING": (array(T.STRING, ["a", "\ud800"]), ITEM, "character 0"),
    "int for a key": (pair(T.UINT8, 1, key=1), "metadata_kv[1].key", "found int"),
    # Types.
    "an unknown value type": (pair(13, 1), "metadata_kv[1].value_type", "unknown type 13"),
    "a negative value type": (pair(-1, 1), "metadata_kv[1].value_type", "does not fit"),
    "the name of a value type": (pair("UINT8", 1), "metadata_kv[1].value_type", "found str"),
    "bool for a value type": (pair(True, 1), "metadata_kv[1].value_type", "found bool"),
    "an unknown type of elements": (array(13, [1]), f"{VALUE}.type", "unknown type 13"),
    "an unknown type of no elements": (array(13, []), f"{VALUE}.type", "unknown type 13"),
    # Structure.
    "list for ARRAY": (pair(T.ARRAY, [1, 2]), VALUE, "expected a mapping"),
    "scalar for ARRAY": (pair(T.ARRAY, 1), VALUE, "expected a mapping"),
    "list in an array of arrays": (array(T.ARRAY, [{"type": 0, "array": []}, [1]]), ITEM, "expected a mapping"),
    "deep inside": (
        array(T.ARRAY, [{"type": 0, "array": []}, {"type": T.ARRAY, "array": [{"type": 1, "array": [0, 0, 128]}]}]),
        f"{ITEM}.array[0].array[2]",
        "does not fit",
    ),
    "no key": (of_pairs({"value_type": 0, "value": 1}), "metadata_kv[0].key", "missing"),
    "no value": (of_pairs({"key": "k", "value_type": 0}), "metadata_kv[0].value", "missing"),
    "no mapping for a pair": (of_pairs(3), "metadata_kv[0]", "expected a mapping"),
    # Tensors.
    "int for a name": (tensor(name=1), f"{INFO}.name", "found int"),
    "a negative dimension": (tensor(dimensions=[1, -1]), f"{INFO}.dimensions[1]", "does not fit"),
    "float for a dimension": (tensor(dimensions=[1, 2.0]), f"{INFO}.dimensions[1]", "found float"),
    "bool for a dimension": (tensor(dimensions=[True]), f"{INFO}.dimensions[0]", "found bool"),
    "str for a dimension": (tensor(dimensions=["2"]), f"{INFO}.dimensions[0]", "found str"),
    "too large a dimension": (tensor(dimensions=[2**64]), f"{INFO}.dimensions[0]", "does not fit"),
    "the name of a tensor type": (tensor(type="F32"), f"{INFO}.type", "found str"),
    "bool for a tensor type": (tensor(type=True), f"{INFO}.type", "found bool"),
    "too large a tensor type": (tensor(type=2**32), f"{INFO}.type", "does not fit"),
    "a negative offset": (tensor(offset=-1), f"{INFO}.offset", "does not fit"),
    "float for an offset": (tensor(offset=0.0), f"{INFO}.offset", "found float"),
    "an offset for one of two": (tensor(offset=None), "tensor_infos", "give all of them or none"),
    "too many dimensions to place": (
        without_offsets(tensor(dimensions=[1] * 9)),
        f"{INFO}.n_dimensions",
        "9 dimensions",
    ),
    # The file.
    "a wrong magic": ({**of_pairs(), "magic": b"FUGG"}, "magic", "FUGG"),
    "a version that nobody knows": ({**of_pairs(), "version": 4}, "version", "unknown version"),
    "an order that nobody knows": ({**of_pairs(), "order": "="}, "order", "unknown byte order"),
    "str for padding": ({**of_pairs(), "padding": "x"}, "padding", "bytes"),
    "str for tensor data": ({**of_pairs(), "tensor_data": "x"}, "tensor_data", "bytes"),
    "str for the tail": ({**of_pairs(), "tail": "x"}, "tail", "bytes"),
}


@pytest.mark.parametrize(("obj", "path", "problem"), REFUSED.values(), ids=REFUSED)
def test_refused(obj, path, problem):
    for order in "<>":
        with pytest.raises(gs.BuildError) as caught:
            gs.GGUF.build({"order": order, **obj})
        assert caught.value.path == path
        assert problem in caught.value.problem
        assert caught.value.offset is None


@pytest.mark.parametrize("obj", [None, 5, b"GGUF", "GGUF", [("metadata_kv", [])]])
def test_a_file_is_built_from_a_mapping(obj):
    found = type(obj).__name__
    with pytest.raises(gs.BuildError, match=f"^expected a mapping with the fields of a file, found {found}$"):
        gs.GGUF.build(obj)


def test_a_block_has_as_many_quants_as_it_has():
    for type, name, count in (gs.GGMLQuantizationType.Q4_0, "qs", 16), (gs.GGMLQuantizationType.Q6_K, "ql", 128):
        values = {field.name: [0] * 99 for field in block(type).subcons} | {"d": 1.0, "qs": [0] * 15, "ql": [0] * 127}
        with pytest.raises(gs.BuildError) as caught:
            block(type).build(values)
        assert str(caught.value) == f"{name}: {count} items expected, {count - 1} found"


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda items: np.array(items, np.uint64)])
def test_tensors_are_placed_whatever_holds_their_dimensions(form):
    """In Python's integers: the 2**63 elements of the second would wrap in int64."""
    dimensions = [[32, 3], [2**40, 2**23], [5]]
    obj = {
        "metadata_kv": [],
        "tensor_infos": [{"name": str(n), "type": 24, "dimensions": form(one)} for n, one in enumerate(dimensions)],
    }
    parsed = gs.GGUF.parse(gs.GGUF.build(obj))
    assert [info.offset for info in parsed.tensor_infos] == [0, 96, 96 + 2**63]
    assert [list(info.dimensions) for info in parsed.tensor_infos] == dimensions


def test_refusals_are_of_what_is_wrong_alone():
    """The same objects without the fault are built: each helper of the table makes sound objects."""
    for obj in pair(T.UINT8, 1), array(T.UINT8, [1, 2]), tensor(), pair(T.BOOL, 255), pair(T.STRING, b"a"):
        assert gs.GGUF.build(obj)
    for type, (low, high) in INTEGERS.items():
        for value in low, high:
            assert gs.GGUF.parse(gs.GGUF.build(pair(type, value))).metadata_kv[1].value == value
            assert gs.GGUF.parse(gs.GGUF.build(array(type, [0, value]))).metadata_kv[1].value.array[1] == value


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        # Without offsets, which are computed first.
        (without_offsets(tensor(dimensions=["2"])), f"{INFO}.dimensions[0]"),
        (without_offsets(tensor(dimensions=[1.5])), f"{INFO}.dimensions[0]"),
        (without_offsets(tensor(type=[0])), f"{INFO}.type"),
        (without_offsets(tensor(type="F32")), f"{INFO}.type"),
        # A number where a list belongs: the count is not what the caller gave.
        (tensor(dimensions=5), f"{INFO}.dimensions"),
        (array(T.UINT8, 5), f"{VALUE}.array"),
        ({"metadata_kv": 5, "tensor_infos": []}, "metadata_kv"),
        ({"tensor_infos": []}, "metadata_kv"),
    ],
)
def test_refused_by_the_field_that_was_given(obj, path):
    with pytest.raises(gs.BuildError) as caught:
        gs.GGUF.build(obj)
    assert caught.value.path == path


WRITE_REFUSED = {
    "int that does not fit": ([("k", T.UINT8, 256)], "metadata_kv[0].value"),
    "bool for int": ([("k", T.UINT8, True)], "metadata_kv[0].value"),
    "float for int": ([("k", T.UINT8, 1.0)], "metadata_kv[0].value"),
    "str for int": ([("k", T.UINT8, "1")], "metadata_kv[0].value"),
    "list for int": ([("k", T.UINT8, [1])], "metadata_kv[0].value"),
    "int for str": ([("k", T.STRING, 1)], "metadata_kv[0].value"),
    "int for array": ([("k", ArrayType(T.UINT8), 1)], "metadata_kv[0].value"),
    "str for array": ([("k", ArrayType(T.STRING), "text")], "metadata_kv[0].value"),
    "bytes for array": ([("k", ArrayType(T.UINT8), b"text")], "metadata_kv[0].value"),
    "an item": ([("k", ArrayType(T.UINT8), [1, 256])], "metadata_kv[0].value.array[1]"),
    "an item of mixed kinds": ([("k", ArrayType(T.UINT8), [1, True])], "metadata_kv[0].value.array[1]"),
    "too few arrays": ([("k", ArrayType(T.ARRAY, (ArrayType(T.UINT8),)), [])], "metadata_kv[0].value"),
    "the same key twice": ([("k", T.UINT8, 1), ("k", T.UINT8, 1)], "metadata_kv[1].key.len"),
    "no key": ([("", T.UINT8, 1)], "metadata_kv[0].key.len"),
    "no value": ([("k", T.UINT8, None)], "metadata_kv[0].value"),
    "str for the alignment": ([("general.alignment", T.UINT32, "64")], "metadata_kv[0].value"),
    "list for the alignment": ([("general.alignment", T.UINT32, [64])], "metadata_kv[0].value"),
    "nothing for the alignment": ([("general.alignment", T.UINT32, None)], "metadata_kv[0].value"),
    "float for the alignment": ([("general.alignment", T.UINT32, 64.0)], "metadata_kv[0].value"),
}


@pytest.mark.parametrize(("pairs", "path"), WRITE_REFUSED.values(), ids=WRITE_REFUSED)
def test_write_refuses(pairs, path):
    out = io.BytesIO()
    with pytest.raises(gs.BuildError) as caught:
        gs.write(out, pairs)
    assert caught.value.path == path
    assert out.getvalue() == b"", "nothing was written"


# Keys and names as bytes are the same keys and names.


@pytest.mark.parametrize("key", ["general.alignment", b"general.alignment"])
def test_an_alignment_under_a_key_of_bytes_counts(key):
    """Strings may be given as bytes: where the data starts must not depend on it."""
    info = {"name": "t", "dimensions": [3], "type": gs.GGMLQuantizationType.I8}
    metadata_kv = [{"key": key, "value_type": T.UINT32, "value": 256}]
    obj = {"metadata_kv": metadata_kv, "tensor_infos": [info, {**info, "name": "u"}], "tensor_data": b"abc"}
    built = gs.GGUF.build(obj)
    assert built[256:] == b"abc"
    parsed = gs.GGUF.parse(built)
    assert [info.offset for info in parsed.tensor_infos] == [0, 256]
    assert parsed.tensor_data == b"abc"


@pytest.mark.parametrize("key", ["general.alignment", b"general.alignment"])
def test_write_minds_an_alignment_under_a_key_of_bytes(key):
    out = io.BytesIO()
    gs.write(out, [(key, T.UINT32, 256)], {"t": np.arange(3, dtype=np.int8)})
    with gs.open(out.getvalue()) as model:
        assert model.data_offset == 256
        assert model.tensors["t"].data.tolist() == [0, 1, 2]


def test_write_refuses_a_key_that_stands_twice_once_as_bytes():
    with pytest.raises(gs.BuildError):
        gs.write(io.BytesIO(), [("k", T.UINT8, 1), (b"k", T.UINT8, 1)])


# Layouts are made once, so nothing that a caller gives may stay in one.


@pytest.mark.parametrize("version", ["True", "2.0", "3.0"])
def test_a_version_of_another_type_spoils_no_layout(version):
    """In a fresh process: `structs` keeps what it made, and True == 1."""
    program = f"""
import gguf_schema as gs
empty = {{"metadata_kv": [], "tensor_infos": []}}
try:
    gs.GGUF.build({{**empty, "version": {version}}})
except gs.BuildError as error:
    assert error.path == "version", error
data = gs.GGUF.build({{**empty, "version": int({version})}})
assert type(gs.structs("<", int({version})).version) is int
assert type(gs.open(data).version) is int
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("version", [True, 1.0, "3", [3], None])
def test_a_version_must_be_an_integer(version):
    gs.structs("<", 1)  # So that nothing wrong is kept, see above.
    with pytest.raises(gs.BuildError) as caught:
        gs.GGUF.build({**of_pairs(), "version": version})
    assert caught.value.path == "version"


def test_layouts_of_one_order_share_nothing_that_changes():
    """Building and parsing leaves a layout as it was."""
    layout = GGUFStructs("<", 3)
    data = layout.gguf.build(unusual("<", 3))
    again = GGUFStructs("<", 3)
    layout.gguf.parse(data)
    assert again.gguf.build(again.gguf.parse(data)) == layout.gguf.build(layout.gguf.parse(data)) == data


# The leaves alone.


@pytest.mark.parametrize("letter", "BbHhLlQq")
def test_integers_at_their_bounds(letter):
    size = {"b": 1, "h": 2, "l": 4, "q": 8}[letter.lower()]
    low, high = (-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1) if letter.islower() else (0, 2 ** (8 * size) - 1)
    for order, name in ("<", "little"), (">", "big"):
        con = Integer(order, letter)
        for number in low, high, 1:
            data = number.to_bytes(size, name, signed=low < 0)
            assert con.build(number) == con.build(np.array(number, f"{'i' if low < 0 else 'u'}{size}")[()]) == data
            assert difference(con.parse(data), number) is None
        for number in low - 1, high + 1:
            with pytest.raises(gs.BuildError, match="does not fit"):
                con.build(number)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here")
@pytest.mark.parametrize("letter", "efd")
def test_wider_floats_that_do_not_fit(letter):
    """numpy's long double turns to an infinity, without a word, where Python raises OverflowError."""
    with pytest.raises(gs.BuildError, match="does not fit"):
        Float("<", letter).build(np.longdouble("1e4000"))


def test_bools_are_not_made_up():
    con = Bool(Integer("<", "B"))
    assert (con.build(True), con.build(False), con.build(np.True_), con.build(255)) == (b"\1", b"\0", b"\1", b"\xff")
    for wrong in 256, -1, 1.0, "x", None, [True]:
        with pytest.raises(gs.BuildError):
            con.build(wrong)
