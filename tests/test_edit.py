"""Edits from Python: values, types, plans and their costs, lists, refusals."""

import contextlib
import io
import json
import math
import os
import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import edit, journal
from gguf_schema.demo import demo_model
from gguf_schema.edit.edits import edited, head_of
from gguf_schema.edit.lists import edits_of
from gguf_schema.edit.preview import preview
from gguf_schema.edit.reserve import KEY
from gguf_schema.edit.values import from_json
from gguf_schema.enums import ArrayType
from gguf_schema.enums import GGUFValueType as T
from gguf_schema.limits import MAX_NESTING
from gguf_schema.values import exact_json

from . import peers
from .shared import corpus_files

STRINGS = ArrayType(T.STRING)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(demo_model())
    return path


def planned(path, *edits, **options):
    with gs.open(path) as model:
        return edit.plan(model, edits, in_place=True, **options)


def change(path, *edits, **options):
    """Edit a file in place; the plan."""
    with gs.open(path) as model:
        plan = edit.plan(model, edits, in_place=True, **options)
        edit.apply(plan)
    return plan


def name_of(path):
    with gs.open(path) as model:
        return model.metadata["general.name"]


def new_file(data, *edits, **options):
    target = io.BytesIO()
    with gs.open(data) as model:
        edit.save(edit.plan(model, edits, **options), target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("UINT8", T.UINT8),
        ("float64", T.FLOAT64),
        ("[INT32]", ArrayType(T.INT32)),
        ("[[INT32]]", ArrayType(T.ARRAY, (ArrayType(T.INT32),))),
        ("[[INT32], [STRING]]", ArrayType(T.ARRAY, (ArrayType(T.INT32), STRINGS))),
        ("[ARRAY]", ArrayType(T.ARRAY)),
        ("[[ARRAY]]", ArrayType(T.ARRAY, (ArrayType(T.ARRAY),))),
        (" [ [bool] , [[int8],[uint8]] ] ", None),
    ],
)
def test_types_as_text(text, type):
    named = edit.type_named(text)
    assert type in (named, None)
    assert edit.type_named(edit.type_text(named)) == named


@pytest.mark.parametrize(
    "text", ["", "INT", "ARRAY", "[]", "[[INT32]", "INT32]", "[INT32, INT32]", "[INT32, [INT32]]", "[" * 99]
)
def test_what_is_no_type(text):
    with pytest.raises(gs.GGUFError, match="is no type"):
        edit.type_named(text)


def test_levels_are_counted_not_arrays():
    unlike = ArrayType(T.ARRAY, (ArrayType(T.INT32), ArrayType(T.STRING)) * MAX_NESTING)
    assert edit.type_named(edit.type_text(unlike)) == unlike
    with pytest.raises(gs.GGUFError, match="is no type"):
        edit.type_named("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("type", "dtype"), [(T.FLOAT32, "u4"), (T.FLOAT64, "u8")])
def test_every_nan_of_an_array_is_told_and_taken(type, dtype, order):
    """Nothing makes a signalling NaN a quiet one on the way."""
    limits = np.iinfo(dtype)
    bits = np.random.default_rng(7).integers(limits.min, limits.max, 500, np.dtype(dtype), endpoint=True)
    exponent = {4: 0x7F800000, 8: 0x7FF0000000000000}[bits.itemsize]
    bits |= bits.dtype.type(exponent)
    held = bits.astype(order + dtype).view(f"{order}f{bits.itemsize}")
    assert np.isnan(held).sum() > 490
    told = exact_json(ArrayType(type), held)
    taken = from_json(ArrayType(type), json.loads(json.dumps(told, allow_nan=False)))[1]
    number = gs.structs(order).numbers[type]
    assert b"".join(map(number.build, taken)) == held.tobytes()


def test_nested_types_of_one_kind_have_any_number():
    many = ArrayType(T.ARRAY, (ArrayType(T.INT32),) * 3)
    assert edit.type_text(many) == "[[INT32]]"
    assert from_json(edit.type_named("[[INT32]]"), [[1], [], [2, 3]]) == (many, [[1], [], [2, 3]])
    assert from_json(many, []) == (ArrayType(T.ARRAY), [])


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (T.UINT64, "18446744073709551615", 2**64 - 1),
        (T.INT64, "-9223372036854775808", -(2**63)),
        (T.FLOAT32, "1", 1),
        (T.FLOAT64, "1e-5", 1e-5),
        (T.FLOAT64, "-inf", -math.inf),
        (T.FLOAT32, '"Infinity"', math.inf),
        (T.BOOL, "true", True),
        (T.BOOL, "1", 1),
        (T.STRING, "true", "true"),
        (T.STRING, '"', '"'),
        (T.STRING, "", ""),
        (ArrayType(T.INT8), "[-128, 127]", [-128, 127]),
        (STRINGS, '["a", "\\udc80", "☃"]', ["a", "\udc80", "☃"]),
        (ArrayType(T.BOOL), "[true, 0]", [True, 0]),
        (ArrayType(T.FLOAT32), '[1, 2.5, "NaN"]', None),
    ],
)
def test_values_as_they_are_typed(type, text, value):
    kind, found = from_json(type, edit.Text(text))
    assert kind == type
    assert value is None or (found == value and [found].__repr__() == [value].__repr__())


@pytest.mark.parametrize("text", ["nan", "NaN", '"NaN"', "NAN"])
def test_nan_as_it_is_typed(text):
    assert math.isnan(from_json(T.FLOAT32, edit.Text(text))[1])


def test_the_bits_of_a_nan():
    signalling = gs.structs().float32.parse(struct.pack("<L", 0x7FA00001))
    assert exact_json(T.FLOAT32, signalling) == "nan(0x7fa00001)"
    _, again = from_json(T.FLOAT32, edit.Text("nan(0x7fa00001)"))
    assert gs.structs().float32.build(again) == struct.pack("<L", 0x7FA00001)
    array = np.array([0x7FF8000000000000, 0x7FF0000000000001, 0], ">u8").view(">f8")
    assert exact_json(ArrayType(T.FLOAT64), array) == ["NaN", "nan(0x7ff0000000000001)", 0.0]


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (T.UINT8, "1.0"),
        (T.UINT8, "true"),
        (T.UINT8, "x"),
        (T.UINT8, '"1"'),
        (T.UINT8, ""),
        (T.UINT8, "9" * 5000),
        (T.FLOAT32, "1e999"),
        (T.FLOAT32, "nan(0x7f800000)"),
        (T.FLOAT32, "nan(0x7fa0000100000000)"),
        (T.FLOAT32, "true"),
        (T.BOOL, "2"),
        (T.BOOL, "-1"),
        (T.BOOL, "1.0"),
        (ArrayType(T.BOOL), "[true, 2]"),
        (T.BOOL, '"true"'),
        (ArrayType(T.INT32), "1"),
        (ArrayType(T.INT32), '"12"'),
        (ArrayType(T.INT32), "[[1]]"),
        (STRINGS, "[1]"),
        (STRINGS, "[" * 100_000),
        (ArrayType(T.ARRAY), "[[1]]"),
        (ArrayType(T.ARRAY, (ArrayType(T.INT32), STRINGS)), '[[1], ["a"], ["b"]]'),
        (ArrayType(T.ARRAY, (ArrayType(T.INT32),)), "[1]"),
    ],
)
def test_values_that_do_not_fit_their_type(type, text):
    with pytest.raises(gs.GGUFError):
        from_json(type, edit.Text(text))


def test_the_type_of_a_key_stays(path):
    change(
        path, edit.Set("general.name", "x"), edit.Set("llama.context_length", 5), edit.Set("tokenizer.ggml.scores", [1])
    )
    with gs.open(path) as model:
        assert model.metadata.type("llama.context_length") is T.UINT32
        assert model.metadata.type("tokenizer.ggml.scores") == ArrayType(T.FLOAT32)
        assert model.metadata["tokenizer.ggml.scores"].tolist() == [1.0]
    change(path, edit.Set("llama.context_length", 5, T.UINT64))
    with gs.open(path) as model:
        assert model.metadata.type("llama.context_length") is T.UINT64


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            [edit.Set("new.key", 1)],
            r"edits\[0\]: there is no key 'new.key': a new one needs a type, such as STRING",
        ),
        ([edit.Set("llama.vocab_size", 1)], "such as UINT32 .llama.vocab_size:UINT32=VALUE where it is typed"),
        (
            [edit.Set("llama.context_length", 2**32)],
            "llama.context_length: 4294967296 does not fit",
        ),
        ([edit.Set("llama.context_length", "1")], "llama.context_length: UINT32 expected, found '1'"),
        ([edit.Set(5, 1, T.UINT8)], "expected a string, found 5"),
        ([edit.Unset("x"), edit.Unset("y")], r"edits\[0\]: there is no key 'x'"),
        ([edit.RenameKey("x", "y")], "there is no key 'x'"),
        ([edit.RenameKey("general.name", "llama.block_count")], "there is a key 'llama.block_count' already"),
        (
            [edit.RenameKey("general.name", "x"), edit.RenameKey("general.file_type", "x"), edit.Unset("x")],
            "a key 'x' already",
        ),
        ([edit.RenameKey("general.name", "")], "the key is empty"),
        ([edit.Unset("general.nane")], "there is no key 'general.nane'; is 'general.name' meant?"),
        ([edit.RenameTensor("x", "y")], "there is no tensor 'x'"),
        (
            [edit.RenameTensor("token_embd.weight", "output_norm.weight")],
            "there is a tensor 'output_norm.weight' already",
        ),
        ([edit.DeleteTensor("output_norm.wait")], "is 'output_norm.weight' meant?"),
        ([edit.OrderTensors(["output_norm.weight"] * 2)], "a tensor is named twice"),
        ([edit.Align(64), edit.Align(24)], r"edits\[1\].alignment: 24 is no alignment"),
        ([edit.Align(-1)], "-1 is no alignment"),
        ([edit.Align(1 << 40)], "does not fit"),
        ([edit.Set("general.alignment", 64, T.UINT64)], "general.alignment must be UINT32"),
        ([edit.RenameKey("general.name", "\ud800")], "cannot be encoded"),
    ],
)
def test_edits_that_cannot_be_done(path, edits, message):
    with pytest.raises(gs.GGUFError, match=message):
        change(path, *edits)
    assert path.read_bytes() == demo_model()


def endless():
    """A type of more levels than Python counts to."""
    type = ArrayType(T.INT8)
    for _ in range(100_000):
        type = ArrayType(T.ARRAY, (type,))
    return type


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (edit.Set("general.name", "x"), r"expected a list of edits, found Set\(key='general.name'"),
        ("general.name=x", "expected a list of edits, found 'general.name=x'"),
        (None, "expected a list of edits, found None"),
        (np.array(3), "expected a list of edits, found array"),
        (memoryview(np.zeros((2, 2))), "expected a list of edits, found <memory"),
        ([edit.Set("a", memoryview(np.zeros((2, 2))), "[FLOAT64]")], r"edits\[0\]: a: \[FLOAT64\] expected"),
        ([edit.Set("a", np.array(5), "[[INT32]]")], r"edits\[0\]: a: \[\[INT32\]\] expected, found array"),
        ([edit.Set("a", [np.array(5)], "[[INT32]]")], r"edits\[0\]: a: \[INT32\] expected, found array"),
        (
            [edit.Set("a", memoryview(np.array(5)), "[[INT32]]")],
            r"edits\[0\]: a: \[\[INT32\]\] expected, found <memory",
        ),
        ([edit.OrderTensors(memoryview(np.zeros((2, 2))))], r"edits\[0\].names: expected a list of names"),
        (["general.name=x"], r"edits\[0\]: expected an edit, found 'general.name=x'"),
        ([edit.Set("a", 1, "NONE")], r"edits\[0\]: 'NONE' is no type"),
        ([edit.Set("a", 1, 4.5)], r"edits\[0\].type: expected a type, found 4.5"),
        ([edit.Set("a", 1, ArrayType(5))], r"edits\[0\].type: expected a type, found ArrayType"),
        ([edit.Set("a", [1], ArrayType(T.ARRAY, 5))], r"edits\[0\].type: expected a type"),
        ([edit.Set("a", [1], ArrayType(T.ARRAY, (5,)))], r"edits\[0\].type: expected a type"),
        ([edit.Set("a", [1], endless())], r"edits\[0\].type: expected a type"),
        ([edit.Set(10**5000, 1)], r"edits\[0\].key: expected a string, found what cannot be shown"),
        ([edit.Unset(np.array([1, 2]))], r"edits\[0\].key: expected a string, found array"),
        ([edit.RenameKey("general.name", 5)], r"edits\[0\].to: expected a string, found 5"),
        ([edit.Unset("general.name"), edit.DeleteTensor(np.array([1, 2]))], r"edits\[1\].name: expected a string"),
        ([edit.RenameTensor("output_norm.weight", None)], r"edits\[0\].to: expected a string, found None"),
        ([edit.OrderTensors(5)], r"edits\[0\].names: expected a list of names, found 5"),
        ([edit.OrderTensors("output_norm.weight")], r"edits\[0\].names: expected a list of names"),
        ([edit.OrderTensors([5])], r"edits\[0\].names: expected a list of names, found \[5\]"),
        ([edit.Align(np.array([1, 2]))], r"edits\[0\].alignment: array"),
    ],
)
def test_what_is_no_edit(path, edits, message):
    with gs.open(path) as model, pytest.raises(gs.GGUFError, match=message):
        edit.plan(model, edits)


class Counted(str):
    """A name that counts how often it is compared with others."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str(self) == other

    def __ne__(self, other):
        return not self == other


@pytest.mark.parametrize(
    "edits",
    [
        lambda names: [edit.OrderTensors(names)],
        lambda names: [edit.RenameTensor(name, f"new.{name}") for name in names],
        lambda names: [edit.DeleteTensor(name) for name in names],
        lambda names: [edit.Set(name, 1, T.UINT8) for name in names],
        lambda names: [edit.Set(Counted(f"new.{name}"), 1, T.UINT8) for name in names],
        lambda names: [edit.RenameKey(name, f"new.{name}") for name in names],
        lambda names: [edit.Unset(name) for name in names],
    ],
    ids=["order", "rename tensors", "delete", "set", "add", "rename keys", "unset"],
)
def test_edits_of_many_names_do_not_look_through_all_of_them_each(edits, monkeypatch):
    monkeypatch.setattr(Counted, "compared", 0)
    names = [f"name.{number}" for number in range(300)]
    pairs = [{"key": name, "value_type": T.UINT8, "value": 0} for name in names]
    infos = [{"name": name, "dimensions": [1], "type": 0, "offset": 0} for name in names]
    head = head_of({"metadata_kv": pairs, "tensor_infos": infos})
    edited(head, edits(list(map(Counted, names))))
    assert Counted.compared <= 20 * len(names)
    assert head == head_of({"metadata_kv": pairs, "tensor_infos": infos})


def test_types_may_be_text(path):
    change(path, edit.Set("a", [1], "[int32]"))
    with gs.open(path) as model:
        assert model.metadata.type("a") == ArrayType(T.INT32)


def test_a_key_that_stands_twice_is_not_guessed():
    pair = {"key": "a", "value_type": T.UINT8, "value": 1}
    data = gs.GGUF.build({"metadata_kv": [pair, {**pair, "value": 2}], "tensor_infos": []})
    with gs.open(data, check=False) as model:
        with pytest.raises(gs.GGUFError, match="the key 'a' stands 2 times"):
            edit.plan(model, [edit.Set("a", 3)])
        plan = edit.plan(model, [edit.Set("b", 3, T.UINT8)])  # it was refused for that before
        with pytest.raises(gs.GGUFError, match="the key is empty"):
            edit.plan(model, [edit.Set("", 3, T.UINT8)])
        assert [pair["value"] for pair in plan.head.pairs] == [1, 2, 3]
    assert len(gs.open(new_file_unchecked(data, edit.Unset("a"))).metadata.pairs) == 0


def test_a_tensor_that_stands_twice_is_not_guessed():
    infos = [{"name": name, "dimensions": [], "type": 0, "offset": 0} for name in ("t", "t", "u")]
    head = head_of({"metadata_kv": [], "tensor_infos": infos})
    for one in edit.DeleteTensor("t"), edit.RenameTensor("t", "v"), edit.OrderTensors(["u", "t"]):
        with pytest.raises(gs.GGUFError, match=r"edits\[0\]: the tensor 't' stands 2 times"):
            edited(head, [one])
    assert [kept.place for kept in edited(head, [edit.OrderTensors(["u"])]).tensors] == [2, 0, 1]


def new_file_unchecked(data, *edits):
    target = io.BytesIO()
    with gs.open(data, check=False) as model:
        edit.save(edit.plan(model, edits), target)
    return target.getvalue()


def test_nothing_to_do_touches_nothing(path):
    before = path.stat()
    plan = change(path, edit.Set("llama.context_length", 128))
    assert (str(plan), plan.written) == ("nothing to do", 0)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)
    assert os.listdir(path.parent) == ["model.gguf"]


def test_a_number_is_a_patch_of_its_bytes(path):
    plan = change(path, edit.Set("llama.context_length", 0x01020304))
    assert [(len(item.old), len(item.new)) for item in plan.record.changes()] == [(4, 4)]
    assert plan.written == 4 + os.path.getsize(journal.undo_of(path)) < 1000
    assert str(plan).startswith("a patch in place: 4 bytes in 1 range")


def test_the_padding_takes_up_a_difference():
    """Infos end at 7167 of 7168: one byte more fits, two do not."""
    data = demo_model()
    with gs.open(data) as model:
        spare = model.data_offset - model.infos_end
    assert spare == 1
    one, two = (new_file(data, edit.Set("general.name", "gguf_schema demo" + more)) for more in ("!", "!!"))
    assert len(one) == len(data)
    assert len(two) == len(data) + 32


def test_the_padding_takes_up_a_difference_in_place(path):
    assert planned(path, edit.Set("general.name", "gguf_schema demo!")).record is not None
    plan = planned(path, edit.Set("general.name", "gguf_schema demo!!"))
    assert plan.record is None
    assert plan.why_not == "metadata and tensor infos grow by 2 bytes; 1 are free before the data"
    with gs.open(path) as model:
        plan = edit.plan(model, [edit.Set("general.name", "gguf_schema demo!!")], in_place=True)
        edit.apply(plan)
    assert plan.written == plan.size + os.path.getsize(journal.undo_of(path))


def test_a_reserve_shrinks_and_grows(path):
    change(path, reserve=300)
    data = path.read_bytes()
    for name, left in [("A longer name of the demo", 291), ("n", 315), ("gguf_schema demo", 300)]:
        plan = change(path, edit.Set("general.name", name))
        assert plan.record is not None
        assert f"to {left} bytes" in str(plan)
        with gs.open(path) as model:
            assert model.metadata[KEY].tolist() == [0] * left
    assert path.read_bytes() == data
    assert change(path, edit.Set("new", "", T.STRING)).record is not None
    with gs.open(path) as model:
        assert [pair.key for pair in model.metadata.pairs[-2:]] == ["new", KEY]
    assert change(path, edit.Unset("new")).record is not None
    assert path.read_bytes() == data
    plan = change(path, edit.Set("general.name", "x" * 400))
    assert plan.why_not == "metadata and tensor infos grow by 384 bytes; 10 are free before the data, 300 in reserve"
    change(path, edit.Set("general.name", "gguf_schema demo"), reserve=0)
    assert path.read_bytes() == demo_model()


def test_a_reserve_that_is_used_up_leaves_the_padding(path):
    """Its last bytes and the padding together: less than nothing is no reserve."""
    change(path, reserve=10)
    with gs.open(path) as model:
        spare = model.data_offset - model.infos_end
    plan = change(path, edit.Set("general.name", "gguf_schema demo" + "x" * (10 + spare)))
    assert plan.record is not None
    with gs.open(path) as model:
        assert (len(model.metadata[KEY]), model.infos_end) == (0, model.data_offset)
    assert planned(path, edit.Set("general.name", "gguf_schema demo" + "x" * (11 + spare))).record is None


def test_an_edit_of_the_reserve_itself_is_obeyed(path):
    change(path, reserve=300)
    change(path, edit.Set(KEY, [1, 2, 3]), edit.Set("general.name", "x"))
    with gs.open(path) as model:
        assert model.metadata[KEY].tolist() == [1, 2, 3]


@pytest.mark.parametrize("reserve", [-1, (1 << 23) + 1, 1 << 62, 10**5000, 1.5, True], ids="abcdef")
def test_what_cannot_be_in_reserve(path, reserve):
    with gs.open(path) as model, pytest.raises(gs.GGUFError, match="a reserve is of 0 to 8388608 bytes"):
        edit.plan(model, [], reserve=reserve)


def test_as_much_in_reserve_as_can_be_changed_in_place(path, monkeypatch):
    """No edit makes it more, and a pair with more is one like others."""
    monkeypatch.setattr("gguf_schema.edit.planning.MOST_IN_PLACE", 300)
    monkeypatch.setattr("gguf_schema.edit.reserve.MOST_IN_PLACE", 300)
    with open(path, "ab") as file:
        file.write(bytes(1 << 20))
    change(path, reserve=300)
    with gs.open(path) as model:
        assert len(model.metadata[KEY]) == 300
    shorter = planned(path, edit.Set("general.name", "x"))
    assert "reserve" not in str(shorter).partition("(")[0]
    change(path, edit.Set(KEY, [0] * 301))
    before = planned(path, edit.Set("llama.context_length", 5)).head.pairs
    assert [len(pair["value"]["array"]) for pair in before if pair["key"] == KEY] == [301]
    assert planned(path, edit.Set("general.name", "gguf_schema demo!!"), reserve=0).record is None


def reserves(*values):
    """A file with these pairs of the reserve's key."""
    arrays = [{"type": T.UINT8, "array": list(held)} for held in values]
    pairs = [{"key": KEY, "value_type": T.ARRAY, "value": array} for array in arrays]
    pairs.insert(1, {"key": "a", "value_type": T.STRING, "value": "a"})
    return gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": []})


def held_after(path, *edits, **options):
    """The values of the pairs of that key after an edit."""
    with gs.open(path, check=False) as model:
        edit.apply(edit.plan(model, edits, in_place=True, **options))
    with gs.open(path, check=False) as model:
        return [bytes(pair.value) for pair in model.metadata.pairs if pair.key == KEY]


@pytest.mark.parametrize(
    ("values", "shrunk", "left"),
    [
        ([bytes(20)], [bytes(17)], []),
        ([bytes(20), bytes(9)], [bytes(20), bytes(6)], [bytes(20)]),
        ([bytes(20), b"\0\1\0"], [bytes(17), b"\0\1\0"], [b"\0\1\0"]),
        ([b"\1" * 20], [b"\1" * 20], [b"\1" * 20]),
    ],
)
def test_the_reserve_is_the_last_pair_of_zeros(path, values, shrunk, left):
    path.write_bytes(reserves(*values))
    assert held_after(path, edit.Set("a", "abcd")) == shrunk
    assert held_after(path, edit.Set("a", "a")) == values
    assert held_after(path, reserve=0) == left


def test_a_value_of_the_key_of_the_reserve_is_not_lost(path):
    path.write_bytes(reserves(b"\1\2\3"))
    with pytest.raises(gs.GGUFError, match=f"the key '{KEY}' stands in"):
        change(path, reserve=300)
    change(path, edit.Set("a", "longer"))
    with gs.open(path) as model:
        assert model.metadata[KEY].tolist() == [1, 2, 3]


def test_a_new_file_keeps_the_reserve():
    data = new_file(demo_model(), reserve=300)
    with gs.open(new_file(data, edit.Set("general.name", "x"))) as model:
        assert len(model.metadata[KEY]) == 300


@pytest.mark.parametrize("reserve", [1, 300, 4096, 5000])
def test_the_data_of_a_large_file_stays_at_its_place_in_a_block(path, reserve):
    """So that some file systems share its blocks; the reserve is no smaller for it."""
    with open(path, "ab") as file:
        file.write(bytes(1 << 20))
    change(path, edit.Set("general.name", "a name of another length"), reserve=reserve)
    with gs.open(path) as model:
        assert model.data_offset % 4096 == gs.open(demo_model()).data_offset % 4096
        assert reserve <= len(model.metadata[KEY]) < reserve + 4096
    change(path, edit.Set("general.name", "gguf_schema demo"), reserve=0)
    assert path.read_bytes()[: len(demo_model())] == demo_model()


def test_only_what_stands_behind_an_edit_moves(path):
    change(path, reserve=3000)
    with gs.open(path) as model:
        starts = {node.value["key"]: node.start for node in model.trace("metadata_kv[0]") if node.path.endswith("]")}
    plan = change(path, edit.Set("tokenizer.ggml.model", "longer"), edit.Set("tokenizer.ggml.bos_token_id", 3))
    first, last = plan.record.changes()[0], plan.record.changes()[-1]
    assert first.start > starts["tokenizer.ggml.model"]
    assert last.start + len(last.new) <= starts[KEY] + 60
    assert plan.read < 7000


def test_tensors_go_change_places_and_names(path):
    with gs.open(path) as model:
        data = {name: tensor.data.tobytes() for name, tensor in model.tensors.items()}
    change(
        path,
        edit.RenameTensor("output_norm.weight", "norm"),
        edit.DeleteTensor("blk.0.attn_q.weight"),
        edit.OrderTensors(["norm", "blk.0.ffn_up.weight"]),
        edit.Align(128),
    )
    with gs.open(path) as model:
        names = list(model.tensors)
        assert names[:3] == ["norm", "blk.0.ffn_up.weight", "token_embd.weight"]
        assert len(names) == 10
        data["norm"] = data["output_norm.weight"]
        assert {name: tensor.data.tobytes() for name, tensor in model.tensors.items()} == {
            name: data[name] for name in names
        }
        ends = [0, *(-(-(tensor.offset + tensor.n_bytes) // 128) * 128 for tensor in model.tensors.values())]
        assert [tensor.offset for tensor in model.tensors.values()] == ends[:-1]
        assert model.size == model.data_offset + ends[-1]
    edit.undo(path)
    assert path.read_bytes() == demo_model()


@contextlib.contextmanager
def in_little_memory():
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_large_alignment_takes_no_memory(path):
    """What is padded is not held, whatever is done with it."""
    gs.write(path, {}, {"a": np.ones(8, np.float32), "b": np.ones(8, np.float32)})
    old = path.read_bytes()
    with in_little_memory(), gs.open(path) as model:
        plan = edit.plan(model, [edit.Align(1 << 31)])
        assert (plan.size, plan.written) == (3 << 31, 3 << 31)
        assert sum(map(len, edit.chunks(edit.plan(model, [edit.Align(1 << 27)])))) == 3 << 27
    with in_little_memory():
        change(path, edit.Align(1 << 25))
        edit.undo(path)
        assert path.read_bytes() == old
        change(path, edit.Align(1 << 25))
        assert change(path, edit.Set("a", "longer", T.STRING)).written < 1000
    with gs.open(path) as model:
        assert (model.data_offset, model.size) == (1 << 25, 3 << 25)
        assert [tensor.data.tolist() for tensor in model.tensors.values()] == [[1.0] * 8] * 2
    with in_little_memory():
        change(path, edit.Unset("general.alignment"), edit.Unset("a"))
    assert path.read_bytes() == old


@pytest.mark.parametrize("alignment", [0, 12, (1 << 31) + 4, 1 << 32, 1 << 200])
def test_what_is_no_alignment_is_refused_at_once(path, alignment):
    with in_little_memory(), gs.open(path) as model, pytest.raises(gs.GGUFError, match=r"is no alignment|does not fit"):
        edit.plan(model, [edit.Align(alignment)])


def test_gaps_and_what_follows_the_data_stay():
    """A gap before the first tensor and between two, an overlap, an unknown type, non-zero padding, a tail."""
    infos = [
        {"name": "late", "dimensions": [8], "type": 0, "offset": 128},
        {"name": "early", "dimensions": [10], "type": 0, "offset": 32},
        {"name": "overlaps", "dimensions": [10], "type": 99, "offset": 64},
    ]
    octets = bytes(range(1, 161))
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": octets, "tail": b"tail"})
    edited = gs.GGUF.parse(new_file(data, edit.Set("a", 1, T.UINT8)))
    assert (edited.tensor_data, edited.tail) == (octets, b"tail")
    assert new_file(new_file(data, edit.Set("a", 1, T.UINT8)), edit.Unset("a")) == data
    packed = gs.GGUF.parse(new_file(data, edit.DeleteTensor("early")))
    # The size of the last tensor is not known: readers take all that follows.
    assert packed.tensor_data == octets[128:160] + octets[64:128] + b"tail"
    emptied = new_file(data, *(edit.DeleteTensor(info["name"]) for info in infos))
    assert emptied.endswith(b"tail")


def test_overlapping_tensors_are_packed_and_come_back(tmp_path):
    infos = [
        {"name": "a", "dimensions": [16], "type": 0, "offset": 0},
        {"name": "b", "dimensions": [16], "type": 0, "offset": 32},
        {"name": "c", "dimensions": [8], "type": 0, "offset": 32},
    ]
    octets = bytes(range(96))
    path = tmp_path / "model.gguf"
    path.write_bytes(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": octets}))
    data = path.read_bytes()
    change(path, edit.OrderTensors(["c"]))
    assert gs.GGUF.parse(path.read_bytes()).tensor_data == octets[32:64] + octets[:64] + octets[32:96]
    edit.undo(path)
    assert path.read_bytes() == data


def test_a_file_that_shrinks_while_it_is_planned_is_told(path):
    with gs.open(path) as model:
        os.truncate(path, 100)
        with pytest.raises(gs.GGUFError, match="has changed since it was opened"):
            edit.plan(model, [edit.Set("llama.context_length", 5)], in_place=True)


def test_padding_stays_as_it_is_while_it_fits():
    infos = [{"name": "a", "dimensions": [8], "type": 0, "offset": 0}]
    pairs = [{"key": "k", "value_type": T.UINT32, "value": 1}]
    plain = gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": infos, "tensor_data": bytes(32)})
    padding = len(gs.GGUF.parse(plain).padding)
    data = gs.GGUF.build(
        {"metadata_kv": pairs, "tensor_infos": infos, "padding": b"x" * padding, "tensor_data": bytes(32)}
    )
    assert padding > 8
    assert gs.GGUF.parse(new_file(data, edit.Set("k", 2))).padding == b"x" * padding
    assert not any(gs.GGUF.parse(new_file(data, edit.Set("k", 2, T.UINT64))).padding)


def odd_file():
    """Padding that holds something, before the data, between tensors and behind them; a gap; a tail."""
    infos = [
        {"name": "a", "dimensions": [5], "type": 0, "offset": 0},
        {"name": "b", "dimensions": [5], "type": 0, "offset": 96},
    ]
    plain = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos})
    padding = b"p" * len(gs.GGUF.parse(plain).padding)
    octets = bytes(20) + b"x" * 76 + bytes(20) + b"y" * 12
    return gs.GGUF.build(
        {"metadata_kv": [], "tensor_infos": infos, "padding": padding, "tensor_data": octets, "tail": b"tail"}
    )


def changes_of(data, *edits):
    with gs.open(data) as model:
        plan = edit.plan(model, edits)
        assert all(str(change) in preview(plan, "model.gguf") for change in plan.changes)
        start = model.data_offset
        told = [str(change) for change in plan.changes]
        for number, name in (start + 20, "A"), (start + 32, "B"), (start + 116, "C"), (model.infos_end, "P"):
            told = [line.replace(f"byte {number} on", name) for line in told]
        return told


@pytest.mark.parametrize(
    "edits", [[edit.DeleteTensor("a")], [edit.OrderTensors(["b"])], [edit.Align(64)]], ids=["delete", "order", "align"]
)
def test_what_stood_around_tensors_is_told(edits):
    """Not the tail, which stays."""
    assert new_file(odd_file(), *edits).endswith(b"tail")
    padding = len(gs.GGUF.parse(odd_file()).padding)
    assert changes_of(odd_file(), *edits) == [
        f"changed: padding: {padding} bytes of padding, from P, become zeros",
        "changed: tensor_data: 12 bytes of padding, from A, become zeros",
        "changed: tensor_data: 64 bytes between tensors, from B, are left out",
        "changed: tensor_data: 12 bytes of padding, from C, become zeros",
    ]
    assert changes_of(demo_model(), edit.Align(64)) == []


def test_padding_that_becomes_zeros_is_told():
    padding = len(gs.GGUF.parse(odd_file()).padding)
    told = [f"changed: padding: {padding} bytes of padding, from P, become zeros"]
    assert changes_of(odd_file(), edit.Set("a", 1, T.UINT8)) == told
    assert changes_of(odd_file(), edit.RenameTensor("a", "c")) == []
    assert changes_of(demo_model(), edit.Set("a", 1, T.UINT8)) == []


def test_missing_data_is_not_packed():
    data = demo_model()[:-3000]
    with gs.open(data, check=False) as model:
        edit.plan(model, [edit.Set("general.name", "x")])
        with pytest.raises(gs.GGUFError, match=r"tensor 'output_norm.weight': 256 bytes declared, the file ends"):
            edit.plan(model, [edit.OrderTensors(["output_norm.weight"])])


def written_by(do):
    """Bytes that this process gives to the system meanwhile, as Linux counts them."""
    try:
        before = int(re.search(r"wchar: (\d+)", Path("/proc/self/io").read_text())[1])
    except OSError as error:
        pytest.skip(f"this system counts no bytes: {error}")
    do()
    return int(re.search(r"wchar: (\d+)", Path("/proc/self/io").read_text())[1]) - before


@pytest.fixture
def heavy(tmp_path):
    """A file of a MiB, a quarter of which is metadata, with some room."""
    path = tmp_path / "heavy.gguf"
    pairs = {"general.name": "a", "noise": np.arange(1 << 18, dtype=np.uint8)}
    gs.write(path, pairs, {"a": np.ones(1 << 17, np.float32), "b": np.ones(1 << 16, np.float32)})
    change(path, reserve=1 << 12)
    os.unlink(journal.undo_of(path))
    return path


@pytest.mark.parametrize(
    "edits",
    [
        [edit.Set("general.name", "b")],
        [edit.Set("general.name", "a longer name"), edit.RenameTensor("a", "c")],
        [edit.Set("noise", np.full(1 << 18, 7, np.uint8))],
        [edit.Set("new", np.full(1 << 13, 7, np.uint8), "[UINT8]")],
        [edit.DeleteTensor("a")],
        [edit.Align(64)],
    ],
)
def test_as_many_bytes_are_written_as_the_plan_tells(heavy, edits):
    """The record to undo them, too; whether it is a patch or a new file."""
    with gs.open(heavy) as model:
        plan = edit.plan(model, edits, in_place=True)
        assert written_by(lambda: edit.apply(plan)) == plan.written
    kept = os.path.getsize(journal.undo_of(heavy))
    assert plan.written - kept == (plan.size if plan.record is None else sum(map(len, plan.record.replaced)))


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4, 0.45, 0.55, 0.7, 0.9])
def test_the_way_that_writes_less_is_taken(path, share):
    """A patch writes what changes three times, a new file all once and what it lacks of the old one again."""
    size = 1 << 16
    gs.write(
        path, {"noise": np.zeros(size, np.uint8)}, {"a": np.zeros(int(size * (1 / share - 1)), np.uint8).view(np.int8)}
    )
    plan = planned(path, edit.Set("noise", np.ones(size, np.uint8)))
    patch, new = 3 * size, path.stat().st_size + size
    assert abs(plan.written - min(patch, new)) < 2000
    assert (plan.record is None) == (patch > new)
    assert (plan.why_not == "less is written so") == (patch > new)


def test_a_patch_in_very_many_places_is_a_new_file(path, monkeypatch):
    """Which can be undone if it takes no more parts than that, either."""
    for most, number in (7, 3), (6, 2):
        monkeypatch.setattr("gguf_schema.journal.MOST_PARTS", most)
        monkeypatch.setattr("gguf_schema.journal.record.MOST_PARTS", most)
        keys = "llama.context_length", "llama.feed_forward_length", "llama.rope.dimension_count"
        assert change(path, *(edit.Set(key, 5) for key in keys[:number])).record is not None
        edit.undo(path)
    plan = change(path, *(edit.Set(key, 5) for key in keys))
    assert (plan.record, plan.kept, plan.why_not) == (None, None, "too many places would change")
    assert str(plan).endswith("; it cannot be undone")
    assert os.listdir(path.parent) == ["model.gguf"]


@pytest.mark.parametrize("number", [0, 1])
def test_the_last_edit_is_undone_only(path, number):
    change(path, edit.Set("general.name", "first"))
    first = path.read_bytes()
    change(path, edit.Set("general.name", "second" if number else "x" * 1000))
    edit.undo(path)
    assert path.read_bytes() == first
    with pytest.raises(gs.GGUFError, match="there is nothing to undo"):
        edit.undo(path)


def test_too_much_to_keep_is_not_kept(path, monkeypatch):
    monkeypatch.setattr("gguf_schema.edit.planning.MOST_KEPT", 1000)
    change(path, edit.Set("general.name", "first"))
    plan = change(path, edit.DeleteTensor("token_embd.weight"))
    assert str(plan).endswith("; it cannot be undone")
    assert os.listdir(path.parent) == ["model.gguf"]


def test_too_much_to_hold_is_not_patched(path, monkeypatch):
    monkeypatch.setattr("gguf_schema.edit.planning.MOST_IN_PLACE", 1000)
    change(path, reserve=300)
    assert planned(path, edit.Set("general.name", "x")).why_not.endswith("bytes would change place")


def test_a_file_that_changed_since_it_was_planned_is_refused(path):
    with gs.open(path) as model:
        patch = edit.plan(model, [edit.Set("llama.context_length", 5)], in_place=True)
        rewrite = edit.plan(model, [edit.Set("general.name", "x" * 99)], in_place=True)
        changed = bytearray(path.read_bytes())
        changed[-1] ^= 1
        path.write_bytes(changed)
        os.utime(path, ns=(1, 1))
        for plan in patch, rewrite:
            with pytest.raises(gs.GGUFError, match="has changed since it was opened"):
                edit.apply(plan)
    assert path.read_bytes() == changed
    assert os.listdir(path.parent) == ["model.gguf"]


def test_a_file_that_was_replaced_since_is_refused(path):
    with gs.open(path) as model:
        plan = edit.plan(model, [edit.Set("llama.context_length", 5)], in_place=True)
        other = path.with_name("other")
        other.write_bytes(b"other")
        other.rename(path)
        with pytest.raises(gs.GGUFError, match="has changed since it was opened"):
            edit.apply(plan)
    assert path.read_bytes() == b"other"


@pytest.mark.parametrize("text", ["short", "x" * 99])
def test_nothing_is_done_with_a_file_that_is_closed(path, text):
    with gs.open(path) as model:
        in_place = edit.plan(model, [edit.Set("general.name", text)], in_place=True)
        plan = edit.plan(model, [edit.Set("general.name", text)])
    for do in (
        lambda: edit.apply(in_place),
        lambda: edit.save(plan, path, overwrite=True),
        lambda: edit.save(plan, path.with_name("new")),
        lambda: list(edit.chunks(plan)),
    ):
        with pytest.raises(gs.GGUFError, match="the file is closed"):
            do()
    assert (path.read_bytes(), os.listdir(path.parent)) == (demo_model(), ["model.gguf"])


def test_what_has_no_path_is_not_changed_in_place():
    with gs.open(demo_model()) as model:
        with pytest.raises(gs.GGUFError, match="only a file with a path"):
            edit.plan(model, [], in_place=True)
        with pytest.raises(gs.GGUFError, match="one of a new file"):
            edit.apply(edit.plan(model, []))


def test_the_file_that_is_read_is_not_overwritten(path, tmp_path):
    link = tmp_path / "link.gguf"
    link.symlink_to(path)
    with gs.open(path) as model:
        plan = edit.plan(model, [edit.Set("general.name", "x")])
        for target in path, link, str(path):
            with pytest.raises(gs.GGUFError, match="the file that is read"):
                edit.save(plan, target, overwrite=True)
        other = tmp_path / "other.gguf"
        other.write_bytes(b"precious")
        with pytest.raises(FileExistsError):
            edit.save(plan, other, overwrite=False)
        assert other.read_bytes() == b"precious"
        edit.save(plan, other)
    assert name_of(other) == "x"
    assert path.read_bytes() == demo_model()


def test_a_plan_in_place_is_not_saved(path, tmp_path):
    with gs.open(path) as model:
        plan = edit.plan(model, [edit.Set("general.name", "x")], in_place=True)
        for do in edit.chunks, lambda plan: edit.save(plan, tmp_path / "new.gguf"):
            with pytest.raises(gs.GGUFError, match="one of a change in place"):
                do(plan)
    assert os.listdir(tmp_path) == ["model.gguf"]


def test_owner_mode_and_links_stay(path, tmp_path):
    path.chmod(0o640)
    link, hard = tmp_path / "link.gguf", tmp_path / "hard.gguf"
    link.symlink_to(path)
    os.link(path, hard)
    assert change(link, edit.Set("llama.context_length", 5)).record is not None
    assert hard.read_bytes() == path.read_bytes()
    patched = path.read_bytes()
    assert change(link, edit.Set("general.name", "x" * 99)).record is None
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert name_of(path) == "x" * 99
    assert hard.read_bytes() == patched


def test_an_interrupted_edit_stops_the_next(path):
    plan = planned(path, edit.Set("llama.context_length", 5))
    (path.parent / "model.gguf.journal").write_bytes(journal.to_bytes(plan.record))
    with pytest.raises(gs.GGUFError, match="was interrupted"):
        change(path, edit.Set("llama.context_length", 6))
    edit.recover(path)
    change(path, edit.Set("llama.context_length", 6))


LIST = [
    {"set": "general.name", "value": "n"},
    {"set": "a.floats", "type": "[FLOAT32]", "value": [1, 2.5]},
    {"set": "a.nested", "type": "[[INT8], [STRING]]", "value": [[1], ["a"]]},
    {"set": "a.text", "type": "STRING", "file": "text"},
    {"set": "a.big", "type": "UINT64", "value": 2**64 - 1},
    {"unset": "general.file_type"},
    {"rename": "llama.block_count", "to": "llama.blocks"},
    {"rename_tensor": "output_norm.weight", "to": "norm"},
    {"delete_tensor": "blk.0.attn_q.weight"},
    {"order_tensors": ["norm"]},
    {"align": 64},
]
TOML = """
[[edit]]
set = "general.name"
value = "n"
[[edit]]
set = "a.floats"
type = "[FLOAT32]"
value = [1, 2.5]
[[edit]]
set = "a.nested"
type = "[[INT8], [STRING]]"
value = [[1], ["a"]]
[[edit]]
set = "a.text"
type = "STRING"
file = "text"
[[edit]]
set = "a.big"
type = "UINT64"
value = 18446744073709551615
[[edit]]
unset = "general.file_type"
[[edit]]
rename = "llama.block_count"
to = "llama.blocks"
[[edit]]
rename_tensor = "output_norm.weight"
to = "norm"
[[edit]]
delete_tensor = "blk.0.attn_q.weight"
[[edit]]
order_tensors = ["norm"]
[[edit]]
align = 64
"""


def test_lists_in_json_and_toml_say_the_same(tmp_path):
    (tmp_path / "text").write_bytes(b"line\r\n\xff\n")
    edits = edits_of(json.dumps(LIST).encode(), False, tmp_path)
    assert edits_of(json.dumps({"edit": LIST}).encode(), False, tmp_path) == edits
    assert edits_of(TOML.encode(), True, tmp_path) == edits
    assert edits[3] == edit.Set("a.text", "line\r\n\udcff\n", T.STRING)
    with gs.open(new_file(demo_model(), *edits)) as model:
        assert list(model.metadata)[-5:] == ["a.floats", "a.nested", "a.text", "a.big", "general.alignment"]
        assert model.metadata["a.big"] == 2**64 - 1
        assert next(iter(model.tensors)) == "norm"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff",
        b"[1]",
        b"[" * 100_000,
        b'[{"set": "a"}]',
        b'[{"set": "a", "value": 1, "file": "x"}]',
        b'[{"set": "a", "value": 1, "typ": "UINT8"}]',
        b'[{"set": "a", "value": 1, "type": 3}]',
        b'[{"set": 1, "value": 1}]',
        b'[{"set": "a", "unset": "a"}]',
        b'[{"rename": "a"}]',
        b'[{"order_tensors": "a"}]',
        b'[{"order_tensors": [1]}]',
        b'{"edit": [], "edits": []}',
        b'[{"set": "a", "file": ""}]',
        b'[{"set": "a", "file": "a\\u0000b"}]',
        b'[{"set": "a", "file": "a\\ud800b"}]',
    ],
)
def test_what_is_no_list_of_edits(data):
    with pytest.raises(gs.GGUFError):
        edits_of(data, False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1e400", "'1e400' is too large"),
        ("[-1_0e4_00]", "'-1_0e4_00' is too large"),
        ("9" * 5000 + "e9", "no TOML: '9{39}… is too large"),
        ("1" * 5000, "no TOML: Exceeds the limit"),
        ("{a" + ".a" * 50_000 + " = 1}", "a key has more than 100 dots"),
        ("1\na" + ' . "a.\'"' * 50_000 + " = 1", "a key has more than 100 dots"),
        ("1\n[a" + ". 'a b'" * 50_000 + "]", "a key has more than 100 dots"),
    ],
    ids="abcdefg",
)
def test_what_is_not_taken_from_toml(value, message):
    with pytest.raises(gs.GGUFError, match=message):
        edits_of(f'[[edit]]\nset = "a"\ntype = "FLOAT64"\nvalue = {value}\n'.encode(), True)


@pytest.mark.parametrize("type", ["STRING", "UINT64", "FLOAT64", "[UINT8]", "[[UINT8]]"])
@pytest.mark.parametrize("value", ["0x{}", "[0x{}]", "[[0x{}]]", "{{a = 0x{}}}"])
def test_a_number_that_is_too_long_to_be_written_is_refused(path, type, value):
    data = f'[[edit]]\nset = "a"\ntype = "{type}"\nvalue = {value.format("f" * 5000)}\n'.encode()
    with gs.open(path) as model, pytest.raises(gs.GGUFError, match=r"edits\[0\]"):
        edit.plan(model, edits_of(data, True))
    for verb in "set", "order_tensors", "unset", "none":
        with pytest.raises(gs.GGUFError, match=r"edits\[0\]"):
            edits_of(f"[[edit]]\n{verb} = {value.format('f' * 5000)}\n".encode(), True)


def test_what_toml_takes():
    dots = "..." + "1.5 " * 1000 + "a.b" * 50
    data = f"""edit = [{{set = "a", value = [{"0.5, " * 1000}inf, -inf, +inf]}}, {{unset = "{dots}"}}]"""
    floats, unset = edits_of(data.encode(), True)
    assert floats.value == [0.5] * 1000 + [math.inf, -math.inf, math.inf]
    assert unset == edit.Unset(dots)


def test_the_preview_shows_the_differences(path):
    text = preview(planned(path, edit.Set("llama.context_length", 5), edit.Unset("general.name")), "model.gguf")
    assert text.splitlines()[:4] == [
        "--- model.gguf",
        "+++ model.gguf (edited)",
        "- general.name: STRING = 'gguf_schema demo'",
        "~ llama.context_length: UINT32 128 -> 5",
    ]
    assert preview(planned(path), "model.gguf") == "nothing to do"


def test_the_preview_shows_another_alignment(path):
    """By the edit of that name, and by a value of the key."""
    for step in edit.Align(256), edit.Set("general.alignment", 256, T.UINT32):
        lines = preview(planned(path, step), "model.gguf").splitlines()
        assert lines[:3] == ["--- model.gguf", "+++ model.gguf (edited)", "~ alignment: 32 -> 256"]
        assert "+ general.alignment: UINT32 = 256" in lines


@pytest.mark.parametrize("path", corpus_files("*.gguf"), ids=lambda path: path.stem)
def test_real_files_come_back(path):
    edited = new_file(path.read_bytes(), edit.Set("a.b", [1.5, math.nan], ArrayType(T.FLOAT32)), reserve=100)
    assert len(gs.open(edited).metadata.pairs) == len(gs.open(path.read_bytes()).metadata.pairs) + 2
    assert new_file(edited, edit.Unset("a.b"), reserve=0) == path.read_bytes()


@pytest.mark.parametrize("alignment", [8, 32, 4096])
@pytest.mark.parametrize("read", [peers.read_with_gguf_py, peers.read_with_llama_cpp])
def test_other_readers_take_what_was_edited(path, read, alignment):
    """Infos, offsets and data are where they look for them."""
    change(
        path,
        edit.Set("general.name", "edited"),
        edit.OrderTensors(["output_norm.weight"]),
        edit.DeleteTensor("blk.0.ffn_up.weight"),
        edit.Align(alignment),
        reserve=5000,
    )
    assert change(path, edit.Set("tokenizer.chat_template", "x" * 3000, T.STRING)).record is not None
    seen = read(path.read_bytes())
    pairs = {pair.key: pair.value for pair in seen.pairs}
    assert (pairs["general.name"], pairs["tokenizer.chat_template"]) == ("edited", "x" * 3000)
    with gs.open(path) as model:
        assert [tensor.name for tensor in seen.tensors] == list(model.tensors)
        assert [tensor.data for tensor in seen.tensors] == [tensor.data.tobytes() for tensor in model.tensors.values()]


@contextlib.contextmanager
def in_memory_for(metadata):
    """What the package promises: 64 MiB, and three times the metadata."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < (64 << 20) + 3 * metadata
    finally:
        tracemalloc.stop()


@pytest.fixture
def large(tmp_path):
    """A file of 160 MiB, most of it a hole."""
    path = tmp_path / "large.gguf"
    gs.write(path, {"general.name": "large"}, {name: np.zeros(16 << 20, np.int8) for name in "abcdefghij"})
    return path


@pytest.mark.parametrize(
    ("edits", "reserve"),
    [
        ([edit.DeleteTensor(name) for name in "bcdefg"], None),
        ([edit.Set("x", "x" * 4_000_000, T.STRING)], 8 << 20),
        ([edit.Set("x", "x" * 7_000_000, T.STRING)], 8 << 20),
        ([edit.Set("x", np.tile(np.arange(2, dtype=np.uint8), 3_000_000), "[UINT8]")], 8 << 20),
    ],
    ids=["tensors", "string", "long", "array"],
)
def test_edits_in_place_take_little_memory(large, edits, reserve):
    if reserve:
        change(large, reserve=reserve)
    old = os.path.getsize(large)
    metadata = 2 * (reserve or 0)
    with in_memory_for(metadata):
        plan = change(large, *edits)
    assert (plan.record is not None) == (reserve is not None)
    if reserve is None:
        assert str(plan).endswith("it cannot be undone")
        return
    with in_memory_for(metadata):
        edit.undo(large)
    assert os.path.getsize(large) == old
    with gs.open(large) as model:
        assert "x" not in model.metadata


@pytest.mark.parametrize("in_place", [False, True])
def test_a_long_value_is_held_three_times_at_most(large, tmp_path, in_place):
    change(large, reserve=1 << 20)
    text = "x" * 60_000_000
    with in_memory_for(len(text) + (1 << 20)):
        if in_place:
            change(large, edit.Set("x", text, T.STRING))
        else:
            with gs.open(large) as model:
                edit.save(edit.plan(model, [edit.Set("x", text, T.STRING)]), tmp_path / "new.gguf")
    with gs.open(large if in_place else tmp_path / "new.gguf") as model:
        assert model.metadata["x"] == text
