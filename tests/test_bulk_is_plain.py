"""Whole files by the fast forms and by the plain Arrays that they wrap: the same values, bytes and errors."""

import random
import struct

import construct
import numpy as np
import pytest
from construct import this
from hypothesis import given, settings

import gguf_schema as gs
from gguf_schema.constructs import (
    Array,
    Bool,
    Bytes,
    Float,
    Integer,
    NumberArray,
    RecordArray,
    StringArray,
    Strings,
    Struct,
    Switch,
    field,
    records,
)
from gguf_schema.demo import demo_model

from .plain import plain_schema
from .shared import cases, corpus_files
from .test_generated_files import files

T = gs.GGUFValueType


def simple(value):
    """A parsed value with no more types than it needs: arrays as lists, floats as their bits."""
    if isinstance(value, dict):
        return {key: simple(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return simple(exact(value))
    if isinstance(value, list | Strings):
        # An array of bools of which one is neither 0 nor 1 is an array of numbers, in numpy.
        return [simple(int(item) if isinstance(item, bool) else item) for item in value]
    if isinstance(value, float):
        return struct.pack("<d", value)
    return type(value), value


def exact(array):
    """The items of a numpy array as the constructs make them, NaN payloads kept."""
    if array.dtype.kind != "f":
        return array.tolist()
    order = ">" if array.dtype.newbyteorder("=") != array.dtype else "<"
    number = gs.structs(order, 3).float32 if array.dtype.itemsize == 4 else gs.structs(order, 3).float64
    data, size = array.tobytes(), array.dtype.itemsize
    return [number.parse(data[i : i + size]) for i in range(0, len(data), size)]


def outcome(data):
    """What parsing gives: values, and the bytes built from them; or the error with its place."""
    try:
        parsed = gs.GGUF.parse(data)
    except gs.GGUFError as error:
        return type(error), error.path, error.offset, error.problem
    return simple(parsed), gs.GGUF.build(parsed)


def assert_same_outcomes(data):
    fast = outcome(data)
    with plain_schema():
        plain = outcome(data)
    assert fast == plain
    return fast


SMALL_CORPUS = [path for path in corpus_files() if path.stat().st_size < 1_000_000]


@pytest.mark.parametrize("path", SMALL_CORPUS, ids=lambda path: path.stem)
def test_corpus(path):
    built = assert_same_outcomes(path.read_bytes())[1]
    assert built == path.read_bytes()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_cases(case):
    assert_same_outcomes(case["bytes"])


def small_file(order, version):
    """A file of a few hundred bytes with everything in it."""
    values = {type: 1 for type in T if type not in (T.STRING, T.ARRAY)}
    values |= {T.FLOAT32: float("nan"), T.BOOL: True, T.STRING: "é"}
    pairs = [{"key": f"k.{type}", "value_type": type, "value": value} for type, value in values.items()]
    arrays = {T.STRING: ["a", "", "b" * 300], T.INT16: [1, 2], T.BOOL: [True, 2]}
    pairs += [
        {"key": f"a.{type}", "value_type": T.ARRAY, "value": {"type": type, "array": array}}
        for type, array in arrays.items()
    ]
    inner = {"type": T.STRING, "array": ["x"]}
    pairs.append({"key": "n", "value_type": T.ARRAY, "value": {"type": T.ARRAY, "array": [inner, inner]}})
    infos = [{"name": f"t{n}", "dimensions": [1] * n, "type": 0} for n in range(5)]
    obj = {"order": order, "version": version, "metadata_kv": pairs, "tensor_infos": infos}
    return gs.GGUF.build({**obj, "tensor_data": bytes(160), "tail": b"end"})


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("order", "<>")
def test_truncations_at_every_byte(order, version):
    data = small_file(order, version)
    outcomes = [assert_same_outcomes(data[:end]) for end in range(len(data))]
    assert gs.TruncatedError in {outcome[0] for outcome in outcomes if len(outcome) == 4}


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("order", "<>")
def test_bytes_changed_at_random(order, version):
    """Lengths, counts and types that lie, wherever they stand."""
    data = small_file(order, version)
    rng = random.Random(version)
    errors = 0
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            changed[rng.randrange(len(data))] = rng.choice([0, 1, 2, 7, 8, 9, 127, 128, 254, 255, rng.randrange(256)])
        errors += len(assert_same_outcomes(bytes(changed))) == 4
    assert 100 < errors < 1500


@settings(deadline=None, max_examples=150)
@given(files())
def test_generated_files(obj):
    values = assert_same_outcomes(gs.GGUF.build(obj))[0]
    assert values["metadata_kv_count"] == (int, len(obj["metadata_kv"]))


@pytest.mark.parametrize("window", [1, 40, 200])
def test_windows_of_records_make_no_difference(window, monkeypatch):
    monkeypatch.setattr(records, "FIRST_WINDOW", window)
    monkeypatch.setattr(records, "LARGEST_WINDOW", 2 * window)
    for data in demo_model(), small_file("<", 3), small_file(">", 1):
        assert assert_same_outcomes(data)[1] == data


def test_many_records_across_the_real_windows():
    pairs = [{"key": f"a.{'k' * (n % 50)}{n}", "value_type": T.UINT16, "value": n} for n in range(9000)]
    infos = [
        {"name": f"{'t' * (n % 60)}{n}", "dimensions": [n] * (n % 5), "type": n % 50, "offset": n} for n in range(9000)
    ]
    data = gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": infos})
    assert len(data) > 2 * records.LARGEST_WINDOW
    assert_same_outcomes(data)


def test_records_are_ordinary_containers():
    parsed = gs.GGUF.parse(demo_model())
    assert type(parsed.metadata_kv) is type(parsed.tensor_infos) is construct.ListContainer
    assert {type(record) for record in [*parsed.metadata_kv, *parsed.tensor_infos]} == {construct.Container}
    parsed.metadata_kv[0].value = "changed"
    del parsed.metadata_kv[1], parsed["padding"]
    assert gs.open(gs.GGUF.build(parsed)).metadata["general.architecture"] == "changed"


def test_strings_whose_lengths_lie():
    """More of them than the guess needs, a byte of a length changed, the top one too; all layouts."""
    rng = random.Random(11)
    for order, version in (("<", 3), ("<", 3), ("<", 1), (">", 3)):
        for _ in range(60):
            texts = [rng.randbytes(rng.choice([0, 1, 5, 5, 5, 20, 255, 256])) for _ in range(rng.randrange(64, 200))]
            value = {"type": T.STRING, "array": texts}
            pair = {"key": "k", "value_type": T.ARRAY, "value": value}
            data = bytearray(
                gs.GGUF.build({"order": order, "version": version, "metadata_kv": [pair], "tensor_infos": []})
            )
            assert_same_outcomes(bytes(data))
            width = 4 if version == 1 else 8
            end = len(data)
            for text in reversed(texts[rng.randrange(len(texts)) :]):
                end -= len(text) + width
            data[end + rng.randrange(width)] = rng.choice([0, 1, 2, 128, 255])
            assert_same_outcomes(bytes(data))


@pytest.mark.parametrize("value_type", [t for t in T if t.name[:3] in ("INT", "UIN")])
def test_the_bounds_of_integers(value_type):
    number = gs.structs("<", 3).numbers[value_type]
    bounds = np.iinfo(f"{'u' if number.fmtstr[1].isupper() else 'i'}{number.length}")
    for value, fits in ((bounds.min, True), (bounds.max, True), (bounds.min - 1, False), (bounds.max + 1, False)):
        items = [0, int(value)] if abs(value) < 2**63 else [int(value)]
        for array in (items, *([np.array(items)] if np.array(items).dtype.kind in "iu" else [])):
            pair = {"key": "k", "value_type": T.ARRAY, "value": {"type": value_type, "array": array}}
            obj = {"metadata_kv": [pair], "tensor_infos": []}
            if fits:
                assert gs.GGUF.parse(gs.GGUF.build(obj)).metadata_kv[0].value.array.tolist() == items
            else:
                with pytest.raises(gs.BuildError, match="does not fit"):
                    gs.GGUF.build(obj)


def test_strings_are_equal_only_if_their_texts_are():
    def strings(texts, order="<", version=3):
        value = {"type": T.STRING, "array": texts}
        pair = {"key": "k", "value_type": T.ARRAY, "value": value}
        obj = {"order": order, "version": version, "metadata_kv": [pair], "tensor_infos": []}
        return gs.GGUF.parse(gs.GGUF.build(obj)).metadata_kv[0].value.array

    same = [strings(["ab", "", "é"], order, version) for order in "<>" for version in (1, 2, 3)]
    for one in same:
        assert all(one == other for other in same)
        for unlike in (["ab", "", "è"], ["ab", "é", ""], ["ab", ""], ["a", "b", "é"], ["abc", "d"]):
            assert one != unlike
            assert all(one != strings(unlike, order, version) for order in "<>" for version in (1, 3))
    assert "\udcc3\udca9" not in same[0]
    assert next(iter(same[0])) == "ab"
    with pytest.raises(ValueError, match="read-only"):
        same[0].ends[0] = 99


@pytest.mark.parametrize(
    "fields",
    [
        {"position": Integer("<", "B"), "class": Integer("<", "L"), "records": Integer("<", "H")},
        {"a": Integer("<", "H"), "b": Integer(">", "H")},
        {"a": Float("<", "f")},
        {"a": Bool(Integer("<", "B"))},
        {"a": Integer("<", "B"), "b": Array(this.a, Float("<", "f"))},
        {"a": Integer("<", "B"), "b": Bytes(this.a)},
        {"a": Integer("<", "B"), "b": Switch(this.a, {0: Integer("<", "H"), 1: Float("<", "f"), 2: Bytes(3)})},
    ],
    ids=map(str, range(7)),
)
def test_records_of_any_struct(fields):
    """Whatever a Struct has, its records are read as the Struct reads them."""
    plain = Array(20, Struct(*[field(name, con) for name, con in fields.items()]))
    rng = random.Random(3)
    for _ in range(200):
        data = bytes(rng.choice([0, 0, 1, 1, 2, 127, 160, 192, 255]) for _ in range(rng.randrange(400)))
        outcomes = []
        for con in plain, RecordArray(plain):
            try:
                outcomes.append(simple(con.parse(data)))
            except gs.GGUFError as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("form", "items"),
    [
        (NumberArray(Array(3, Integer("<", "H"))), [1, 2, 3, 4]),
        (NumberArray(Array(3, Float("<", "f"))), np.ones(4, "<f4")),
        (NumberArray(Array(3, Bool(Integer("<", "B")))), [True, False, True, True]),
        (StringArray(Array(3, gs.structs().string)), ["a", "b", "c", "d"]),
        (RecordArray(Array(3, gs.structs().array)), [{"type": T.UINT8, "array": [1]}] * 4),
    ],
    ids=["integers", "floats", "bools", "strings", "records"],
)
def test_a_count_that_is_given_is_kept(form, items):
    """In a file the count is that of the items; elsewhere they are built only if they are as many as it says."""
    assert form.build(items[:3]) == form.subcon.build(items[:3])
    for count in 0, 2, 4:
        for con in form, form.subcon:
            with pytest.raises(gs.BuildError, match=f"^3 items expected, {count} found$"):
                con.build(items[:count])


def test_generated_source_can_be_read():
    """The function for tensor infos, as a person would write it."""
    infos = next(child for child in gs.structs("<", 3).head.subcons if child.name == "tensor_infos")
    source = infos.subcon.subcon.source
    assert source.startswith("def read_records(buffer, most, records):\n")
    assert len(source.splitlines()) < 30
    for name in ("name", "n_dimensions", "dimensions", "type", "offset"):
        assert f"{name!r}: {name}_" in source
