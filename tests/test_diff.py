"""Differences of two models: one edit gives one, byte order and layout give none, and no vocabulary is slow."""

import io
import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gguf_schema as gs
from gguf_schema import strategies
from gguf_schema.blocks import blocks
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.diff import differences, heads, is_note
from gguf_schema.diff.sequences import hunks, moved, numbered
from gguf_schema.diff.text import as_json, as_text
from gguf_schema.generate import valid_file
from gguf_schema.mutate import mutants
from gguf_schema.write import NewTensor

from .shared import CORPUS, corpus_files, needs_corpus

T, Q = gs.GGUFValueType, gs.GGMLQuantizationType


def written(metadata, tensors=(), **layout):
    """A model of these pairs and tensors."""
    file = io.BytesIO()
    gs.write(file, metadata, tensors, **layout)
    return gs.open(file.getvalue())


def found(old, new):
    return list(differences(old, new))


def kinds(old, new):
    return [(difference.kind, difference.name) for difference in found(old, new)]


def elements(values):
    """Numbers for a sequence, as the hunks are made of."""
    return np.array(values, np.int64)


def patched(old, new, found):
    """The old sequence with the hunks applied; by the way, they are in order and nothing between them differs."""
    result, at = [], 0
    for hunk in found:
        assert hunk.old_start >= at
        result += old[at : hunk.old_start]
        assert len(result) == hunk.new_start
        result += new[hunk.new_start : hunk.new_end]
        at = hunk.old_end
    return result + old[at:]


# Sequences


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40), st.booleans())
def test_hunks_turn_the_old_sequence_into_the_new_one(old, new, in_place):
    got = hunks(elements(old), elements(new), in_place)
    assert patched(old, new, got) == new
    assert bool(got) == (old != new)


@pytest.mark.parametrize("seed", range(30))
def test_hunks_of_long_sequences(seed):
    """Longer than difflib may have at once, of many different elements and of few."""
    choices = random.Random(seed)
    different = 3 if seed % 2 else 3000
    old = [choices.randrange(different) for _ in range(3000)]
    new = old.copy()
    for _ in range(seed):
        at = choices.randrange(len(new))
        new[at : at + choices.randrange(3)] = [choices.randrange(different) for _ in range(choices.randrange(3))]
    got = hunks(elements(old), elements(new))
    assert patched(old, new, got) == new
    if different > 3:
        assert len(got) <= seed


def test_unique_elements_give_the_smallest_hunks():
    old = list(range(150_000))
    new = old.copy()
    new[140_000:140_000] = [-1]
    del new[70_000:70_002]
    new[5] = -2
    got = hunks(elements(old), elements(new))
    assert got == [(5, 6, 5, 6), (70_000, 70_002, 70_000, 70_000), (140_000, 140_000, 139_998, 139_999)]


def test_numbers_of_one_length_are_compared_in_place():
    old, new = [7, 7, 1, 7, 7, 7], [7, 7, 7, 7, 1, 7]
    assert hunks(elements(old), elements(new), in_place=True) == [(2, 3, 2, 3), (4, 5, 4, 5)]
    assert hunks(elements([1, 2, 3]), elements([2, 3, 4]), in_place=True) == [(0, 1, 0, 0), (3, 3, 2, 3)]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: ([1, 2] * (n // 2), [2, 1] * (n // 2)),
        lambda n: (list(range(n)), list(range(n))[::-1]),
        lambda n: ([*range(n // 2), *range(n // 2)[::-1]], [*range(n // 2)[::-1], *range(n // 2)]),
        lambda n: (random.Random(1).choices(range(2), k=n), random.Random(2).choices(range(2), k=n)),
        lambda n: (random.Random(1).sample(range(n), n), random.Random(2).sample(range(n), n)),
        lambda n: ([x for i in range(n // 2) for x in (i, i)], [x for i in range(n // 2, 0, -1) for x in (i, i)]),
    ],
)
def test_content_that_is_bad_for_those_who_compare(make):
    """The hunks are right, and not slow: `pytest -s` tells the time of ten times as many elements."""
    taken = []
    for size in 5_000, 50_000:
        old, new = make(size)
        start = time.process_time()
        got = hunks(elements(old), elements(new))
        taken.append(time.process_time() - start)
        assert patched(old, new, got) == new
    print(f"{taken[0]:.3f} s, {taken[1]:.3f} s")


@given(st.permutations(range(9)))
def test_moved_items_are_as_few_as_possible(new):
    out = moved(range(9), new)
    assert [item for item in new if item not in out] == [item for item in range(9) if item not in out]
    assert out == sorted(out)
    best = [1] * 9  # the longest increasing run that ends here, by the textbook
    for i in range(9):
        best[i] = 1 + max((best[j] for j in range(i) if new[j] < new[i]), default=0)
    assert len(out) == 9 - max(best)


def test_equal_elements_have_equal_numbers():
    old, new = numbered([b"a", b"b", b"a"], [b"b", b"c"])
    assert old.tolist() == [0, 1, 0]
    assert new.tolist() == [1, 2]


# The same


@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.stem)
def test_real_files_are_the_same_as_themselves(path):
    with gs.open(path) as old, gs.open(path) as new:
        assert found(old, new) == []


@pytest.mark.parametrize("seed", range(40))
def test_generated_files_are_the_same_as_themselves(seed):
    data = valid_file(seed)
    assert found(gs.open(data), gs.open(data)) == []
    assert as_text("a", "b", []) == ""


@settings(deadline=None, max_examples=100)
@given(strategies.files())
def test_byte_order_and_version_are_all_that_differs(data):
    """Values are compared, not bytes: a file written in the other byte order, and of another version, is the same."""
    old = gs.open(data)
    order = "<" if old.order == ">" else ">"
    version = 2 if old.version == 3 else 3
    if any(tensor.block is None for tensor in old.tensors.infos):
        return
    new = written(old.metadata, old.tensors, order=order, version=version)
    assert [d.kind for d in found(old, new) if not is_note(d)] == ["version", "order"]
    assert [d.kind for d in found(new, old) if not is_note(d)] == ["version", "order"]


@pytest.mark.parametrize("type", blocks("<"), ids=str)
def test_blocks_of_other_byte_orders(type):
    """Random bits, signalling NaNs among them; then one bit of one block is turned."""
    struct = blocks("<")[type]
    bits = np.frombuffer(random.Random(type.name).randbytes(5 * struct.type_size), np.uint8)
    if type is Q.F32:
        bits = np.frombuffer(b"\1\0\xa0\x7f" * 5, np.uint8)  # a signalling NaN
    old = written({}, {"a": (type, bits.reshape(5, -1))})
    new = written({}, old.tensors, order=">")
    assert kinds(old, new) == [("order", "")]
    changed = bits.copy()
    changed[3 * struct.type_size + struct.type_size // 2] ^= 0x10
    other = written({}, {"a": (type, changed.reshape(5, -1))})
    for model in other, written({}, other.tensors, order=">"):
        *_, data = found(old, model)
        assert (data.kind, data.detail) == ("tensor-data", [(3, 1, 5)])


# One edit, one difference


def base():
    """Pairs of every type and tensors of some."""
    pairs = [
        gs.MetadataKV("general.architecture", T.STRING, "llama"),
        gs.MetadataKV("u8", T.UINT8, 200),
        gs.MetadataKV("i64", T.INT64, -9),
        gs.MetadataKV("f32", T.FLOAT32, 0.5),
        gs.MetadataKV("f64", T.FLOAT64, 0.1),
        gs.MetadataKV("flag", T.BOOL, True),
        gs.MetadataKV("numbers", gs.ArrayType(T.INT32), [3, 1, 2, 4]),
        gs.MetadataKV("floats", gs.ArrayType(T.FLOAT32), [0.0, 1.0, 2.0]),
        gs.MetadataKV("strings", gs.ArrayType(T.STRING), ["a", "b", "c", "d"]),
        gs.MetadataKV("empty", gs.ArrayType(T.UINT16), []),
        gs.MetadataKV(
            "nested",
            gs.ArrayType(T.ARRAY, (gs.ArrayType(T.UINT8), gs.ArrayType(T.STRING))),
            [[1, 2, 3], ["x", "y"]],
        ),
    ]
    tensors = {
        "norm": np.arange(64, dtype=np.float32),
        "matrix": (Q.Q8_0, np.arange(3 * 68, dtype=np.uint8).reshape(3, 68)),
        "ids": np.arange(7, dtype=np.int32),
    }
    return pairs, tensors


def with_value(pairs, key, value, type=None):
    """The pairs with another value, and type, for a key."""
    return [pair._replace(value=value, type=type or pair.type) if pair.key == key else pair for pair in pairs]


NEW_VALUES = {
    "general.architecture": "qwen2",
    "u8": 201,
    "i64": -10,
    "f32": -0.5,
    "f64": 0.1 + 2**-56,
    "flag": False,
}


@pytest.mark.parametrize(("key", "value"), NEW_VALUES.items())
@pytest.mark.parametrize("order", "<>")
def test_a_value(key, value, order):
    pairs, tensors = base()
    old = written(pairs, tensors)
    new = written(with_value(pairs, key, value), old.tensors, order=order)
    (difference,) = [difference for difference in found(old, new) if difference.kind != "order"]
    index = [pair.key for pair in pairs].index(key)
    assert difference[:4] == ("pair-value", key, f"metadata_kv[{index}].value", f"metadata_kv[{index}].value")
    assert difference.new.value == value
    assert difference.old == pairs[index]


def test_floats_are_told_apart_by_their_bits():
    def model(bits):
        return gs.open(
            gs.GGUF.build({"metadata_kv": [{"key": "f", "value_type": T.FLOAT32, "value": bits}], "tensor_infos": []})
        )

    quiet, signalling = (np.uint32(bits).view(np.float32) for bits in (0x7FC00000, 0x7FA00001))
    assert kinds(model(quiet), model(quiet)) == []
    (difference,) = found(model(quiet), model(signalling))
    assert difference.kind == "pair-value"
    assert "FLOAT32 NaN -> nan(0x7fa00001)" in as_text("a", "b", [difference])
    record = json.loads(as_json("a", "b", [difference], True))["differences"][0]
    assert record["new"] == {"type": "FLOAT32", "value": "nan(0x7fa00001)"}
    assert kinds(model(0.0), model(-0.0)) == [("pair-value", "f")]
    arrays = [written({"f": np.array([1, bits], np.uint32).view(np.float32)}) for bits in (0x7FC00000, 0x7FA00001)]
    (difference,) = found(*arrays)
    assert difference.detail == [(1, 2, 1, 2)]
    assert "- NaN\n  + nan(0x7fa00001)" in as_text("a", "b", [difference])


BITS = [0x7FC00000, 0xFFC00000, 0x7FA00001, 0x7F800000, 0xFF800000, 0x80000000, 0x3DCCCCCD]
FLOATS = np.array(BITS, np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("type", "value"),
    [
        *((T.FLOAT32, value) for value in FLOATS),
        *((T.FLOAT64, value) for value in (float("nan"), -float("nan"), float("inf"), 0.1)),
        (gs.ArrayType(T.FLOAT32), FLOATS),
        (gs.ArrayType(T.FLOAT64), np.array([0xFFF8000000000000, 1], np.uint64).view(np.float64)),
        (gs.ArrayType(T.ARRAY, (gs.ArrayType(T.FLOAT32), gs.ArrayType(T.INT8))), [FLOATS, [1]]),
    ],
)
def test_floats_are_told_as_get_tells_them(type, value, tmp_path, capsys):
    """Added, or as elements that changed; the text has the same words."""
    gs.write(tmp_path / "new", [("k", type, value)])
    gs.write(tmp_path / "old", {})
    assert main(["get", str(tmp_path / "new"), "k"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["diff", "--json", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert difference["new"]["value"] == told
    if isinstance(type, gs.ArrayType):
        gs.write(tmp_path / "old", [("k", gs.ArrayType(type.type), [])])
        assert main(["diff", "--json", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
        (difference,) = json.loads(capsys.readouterr().out)["differences"]
        assert difference["hunks"] == [{"old_start": 0, "old": [], "new_start": 0, "new": told}]
    else:
        assert main(["diff", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
        assert capsys.readouterr().out.splitlines()[-1] == f"+ k: {type.name} = {told}"


def test_a_bool_that_is_neither():
    values = [True, 2]
    pairs = [[{"key": "b", "value_type": T.BOOL, "value": value}] for value in values]
    old, new = (gs.open(gs.GGUF.build({"metadata_kv": pair, "tensor_infos": []})) for pair in pairs)
    assert as_text("a", "b", found(old, new)).splitlines()[2:] == ["~ b: BOOL True -> 2"]


@pytest.mark.parametrize(
    ("key", "type", "path"),
    [
        ("u8", T.UINT16, "value_type"),
        ("numbers", gs.ArrayType(T.UINT32), "value.type"),
        ("empty", gs.ArrayType(T.STRING), "value.type"),
        ("i64", gs.ArrayType(T.INT64), "value_type"),
    ],
)
def test_a_type(key, type, path):
    pairs, _ = base()
    index = [pair.key for pair in pairs].index(key)
    value = [pairs[index].value] if path == "value_type" and isinstance(type, gs.ArrayType) else pairs[index].value
    (difference,) = found(written(pairs), written(with_value(pairs, key, value, type)))
    assert difference[:4] == ("pair-type", key, *[f"metadata_kv[{index}].{path}"] * 2)
    assert (difference.old.type, difference.new.type) == (pairs[index].type, type)


@pytest.mark.parametrize(
    ("key", "value", "path", "expected"),
    [
        ("numbers", [3, 1, 9, 4], "", [(2, 3, 2, 3)]),
        ("numbers", [3, 1, 2, 4, 5], "", [(4, 4, 4, 5)]),
        ("strings", ["a", "c", "d"], "", [(1, 2, 1, 1)]),
        ("strings", ["b", "c", "d", "e"], "", [(0, 1, 0, 0), (4, 4, 3, 4)]),
        ("floats", [0.0, 1.0, -2.0], "", [(2, 3, 2, 3)]),
        ("empty", [7], "", [(0, 0, 0, 1)]),
        ("nested", [[1, 9, 3], ["x", "y"]], ".array[0]", [(1, 2, 1, 2)]),
        ("nested", [[1, 2, 3], ["x", "new", "y"]], ".array[1]", [(1, 1, 1, 2)]),
    ],
)
def test_elements(key, value, path, expected):
    pairs, _ = base()
    (difference,) = found(written(pairs), written(with_value(pairs, key, value)))
    index = [pair.key for pair in pairs].index(key)
    assert difference[:3] == ("pair-elements", key, f"metadata_kv[{index}].value{path}.array")
    assert difference.detail == expected


def test_arrays_in_an_array():
    pairs, _ = base()
    type = gs.ArrayType(T.ARRAY, (gs.ArrayType(T.STRING),))
    (difference,) = found(written(pairs), written(with_value(pairs, "nested", [["x", "y"]], type)))
    assert (difference.kind, difference.detail) == ("pair-elements", [(0, 1, 0, 0)])
    retyped = gs.ArrayType(T.ARRAY, (gs.ArrayType(T.INT8), gs.ArrayType(T.STRING)))
    (difference,) = found(written(pairs), written(with_value(pairs, "nested", pairs[-1].value, retyped)))
    assert difference[:3] == ("pair-type", "nested", "metadata_kv[10].value.array[0].type")


def test_pairs_come_go_and_move():
    pairs, _ = base()
    new = gs.MetadataKV("new", T.UINT32, 1)
    assert kinds(written(pairs), written(pairs[:3] + pairs[4:])) == [("pair-removed", "f32")]
    assert kinds(written(pairs), written([*pairs[:5], new, *pairs[5:]])) == [("pair-added", "new")]
    (difference,) = found(written(pairs), written([pairs[7], *pairs[:7], *pairs[8:]]))
    assert (difference.kind, difference.detail) == ("pairs-moved", [("floats", 7, 0)])


def test_tensors_come_go_and_move():
    _, tensors = base()
    norm, matrix, ids = tensors.items()
    old = written({}, tensors)
    assert kinds(old, written({}, dict([norm, matrix]))) == [("tensor-removed", "ids")]
    assert kinds(written({}, dict([norm, ids])), old) == [("tensor-added", "matrix")]
    (difference,) = found(old, written({}, dict([ids, norm, matrix])))
    assert (difference.kind, difference.detail) == ("tensors-moved", [("ids", 2, 0)])
    (difference,) = found(old, written({}, tensors | {"ids": np.arange(8, dtype=np.int32)}))
    assert difference[:3] == ("tensor-dimensions", "ids", "tensor_infos[2].dimensions")
    assert (difference.old.dimensions, difference.new.dimensions) == ((7,), (8,))
    (difference,) = found(old, written({}, tensors | {"ids": np.arange(7, dtype=np.float32)}))
    assert (difference.kind, difference.old.type, difference.new.type) == ("tensor-type", Q.I32, Q.F32)


def test_data_in_pieces(monkeypatch):
    """Blocks are counted across the pieces that are read."""
    monkeypatch.setattr("gguf_schema.tensor_data.CHUNK", 100)
    rows = np.zeros((50, 34), np.uint8)
    other = rows.copy()
    other[[7, 8, 49], 33] = 1
    old, new = (written({}, {"a": (Q.Q8_0, array)}) for array in (rows, other))
    (difference,) = found(old, new)
    assert difference.detail == [(7, 3, 50)]
    shown = []
    list(differences(old, new, show=lambda done, whole: shown.append((done, whole))))
    assert shown[-1] == (1700, 1700)
    assert len(shown) == 25
    assert list(differences(old, new, with_data=False)) == []


def test_the_alignment_and_its_pair():
    pairs, tensors = base()
    assert kinds(written(pairs, tensors), written(pairs, tensors, alignment=64)) == [
        ("alignment", ""),
        ("pair-added", "general.alignment"),
    ]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_one_edit_of_any_file(data):
    """A pair's value is edited, or a pair or a tensor goes, or a bit of a tensor turns: that is what is told."""
    old = gs.open(data.draw(strategies.files()))
    pairs, tensors = list(old.metadata.pairs), list(old.tensors.infos)
    edits = [
        *(("pair", i) for i, pair in enumerate(pairs) if pair.key != "general.alignment"),
        *(("tensor", i) for i in range(len(tensors))),
        *(("bit", i) for i, tensor in enumerate(tensors) if tensor.n_bytes and tensor.block),
    ]
    if not edits or any(tensor.block is None for tensor in tensors):
        return
    what, index = data.draw(st.sampled_from(edits))
    if what == "pair":
        expected = ("pair-removed", pairs.pop(index).key)
    elif what == "tensor":
        expected = ("tensor-removed", tensors.pop(index).name)
    else:
        tensor = tensors[index]
        held = bytearray(tensor.data.tobytes())
        held[data.draw(st.integers(0, len(held) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        tensors[index] = NewTensor(tensor.name, tensor.type, tensor.dimensions, bytes(held))
        expected = ("tensor-data", tensor.name)
    new = written(pairs, tensors, order=old.order, version=old.version)
    assert [(d.kind, d.name) for d in found(old, new) if not is_note(d)] == [expected]


def test_names_that_stand_twice():
    """The first is compared with the first, the second with the second."""

    def model(*values):
        pairs = [{"key": "k", "value_type": T.UINT8, "value": value} for value in values]
        return gs.open(gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": []}), check=False)

    assert found(model(1, 2), model(1, 2)) == []
    (difference,) = found(model(1, 2), model(1, 3))
    assert (difference.kind, difference.old_path) == ("pair-value", "metadata_kv[1].value")
    (difference,) = found(model(1, 2), model(1))
    assert (difference.kind, difference.old_path) == ("pair-removed", "metadata_kv[1]")


def test_heads_need_no_file():
    old = {"alignment": 32, "metadata_kv": [{"key": b"k", "value_type": 4, "value": 1}], "tensor_infos": []}
    new = old | {"metadata_kv": [{"key": "k", "value_type": 4, "value": 2}]}
    assert list(heads(old, old)) == []
    assert [(d.kind, d.name) for d in heads(old, new)] == [("pair-value", "k")]
    arrays = [
        {**old, "metadata_kv": [{"key": "k", "value_type": 9, "value": {"type": 5, "array": values}}]}
        for values in ([1, 2], np.array([1, 3]))
    ]
    assert [d.detail for d in heads(*arrays)] == [[(1, 2, 1, 2)]]


def test_types_that_nobody_knows():
    """Compared as bytes; across byte orders nobody can."""

    def model(order, data, type=200):
        infos = [{"name": "odd", "dimensions": [4], "type": type}, {"name": "last", "dimensions": [1], "type": 0}]
        infos = [{**info, "offset": 32 * index} for index, info in enumerate(infos)]
        fields = {"metadata_kv": [], "tensor_infos": infos, "tensor_data": data + bytes(32), "order": order}
        return gs.open(gs.GGUF.build(fields))

    one, other = model("<", bytes(32)), model("<", bytes(31) + b"\1")
    assert found(one, one) == []
    assert [d.detail for d in found(one, other)] == [[(31, 1, 32)]]
    assert kinds(one, model(">", bytes(32))) == [("order", ""), ("tensor-unknown", "odd")]


@pytest.mark.parametrize("seed", range(6))
def test_broken_files(seed):
    """Whatever can be opened at all is the same as itself, and differs from others without a crash, or is refused."""
    base = valid_file(seed)
    compared = 0
    for data, _ in mutants(base, seed=seed, count=100):
        try:
            model = gs.open(data, check=False)
            assert found(model, gs.open(data, check=False)) == []
            for pair in (gs.open(base), model), (model, gs.open(base)):
                text = as_text("a", "b", found(*pair))
                assert all(letter.isprintable() or letter == "\n" for letter in text)
                json.loads(as_json("a", "b", found(*pair), True))
            compared += 1
        except gs.GGUFError:
            continue
    assert compared


# Notes


def test_notes_are_no_difference():
    infos = [{"name": name, "dimensions": [8], "type": 0} for name in "ab"]

    def model(offsets, data, tail=b""):
        placed = [{**info, "offset": offset} for info, offset in zip(infos, offsets, strict=True)]
        return gs.open(gs.GGUF.build({"metadata_kv": [], "tensor_infos": placed, "tensor_data": data, "tail": tail}))

    one, two = b"1" * 32, b"2" * 32
    old = model((0, 32), one + two)
    for new, kind, text in [
        (model((32, 0), two + one), "offsets", "2 tensors stand elsewhere in the data; the first is a: 0 -> 32"),
        (
            model((0, 64), one + bytes(32) + two),
            "offsets",
            "1 tensors stand elsewhere in the data; the first is b: 32 -> 64",
        ),
        (model((0, 32), one + two, b"more"), "tail", "bytes behind the data differ: 0 -> 4 bytes"),
    ]:
        (note,) = found(old, new)
        assert note.kind == kind
        assert is_note(note)
        assert as_text("a", "b", [note]).splitlines()[2:] == [f"  note: {text}"]
        assert json.loads(as_json("a", "b", [note], True))["same"]
    gap = model((0, 64), one + bytes(32) + two)
    odd = model((0, 64), one + bytes(31) + b"x" + two)
    assert kinds(gap, odd) == [("padding", "")]
    (note,) = found(odd, model((0, 64), one + bytes(31) + b"y" + two))  # as many, but others
    assert (note.kind, note.old, note.new) == ("padding", 1, 1)
    assert kinds(model((0, 32), one + two, b"more"), model((0, 32), one + two, b"less")) == [("tail", "")]


def test_missing_padding_is_a_note():
    whole = io.BytesIO()
    gs.write(whole, {}, {"a": np.arange(3, dtype=np.int8)})
    data = whole.getvalue()
    (note,) = found(gs.open(data), gs.open(data[:-29]))
    assert (note.kind, note.old, note.new) == ("end", 0, 29)


# Text and commands


def one_of_each():
    """Two models that differ in as many ways as there are, and in hostile names."""
    pairs, tensors = base()
    evil = "evil\x1b[2J\u202e\udcff"
    old = written(
        [*pairs, gs.MetadataKV(evil, T.STRING, "old"), gs.MetadataKV("template", T.STRING, "a\nb\x1b\nc\n")],
        tensors | {evil: np.zeros(3, np.float32)},
    )
    new = written(
        [
            gs.MetadataKV("template", T.STRING, "a\nB\x07\nc\n"),
            *with_value(with_value(with_value(pairs, "u8", 3), "numbers", [3, 1, 2]), "i64", 1, T.UINT32)[1:],
            gs.MetadataKV("new", gs.ArrayType(T.STRING), [evil] * 9),
            gs.MetadataKV(evil, T.STRING, "new\x1b"),
        ],
        {
            "new": np.zeros(2, np.float32),
            "matrix": (Q.Q8_0, np.zeros((3, 68), np.uint8)),
            "norm": np.arange(64, dtype=np.float16),
        },
        order=">",
        version=2,
        alignment=64,
    )
    return old, new


def test_text_is_escaped_and_says_everything():
    old, new = one_of_each()
    text = as_text("a\x1b", "b", found(old, new))
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert text.splitlines() == [
        "--- a\\x1b",
        "+++ b",
        "~ version: 3 -> 2",
        "~ byte order: little -> big",
        "~ alignment: 32 -> 64",
        "- general.architecture: STRING = 'llama'",
        "~ template: STRING, lines",
        "  @@ -1,1 +1,1 @@",
        "  - 'b\\x1b\\n'",
        "  + 'B\\x07\\n'",
        "~ u8: UINT8 200 -> 3",
        "~ i64: INT64 = -9 -> UINT32 = 1",
        "~ numbers: ARRAY of INT32, 4 -> 3 elements",
        "  @@ -3,1 +3,0 @@",
        "  - 4",
        "+ new: ARRAY of STRING = 9 of "
        "['evil\\x1b[2J\\u202e\\udcff', 'evil\\x1b[2J\\u202e\\udcff', 'evil\\x1b[2J\\u202e\\udcff', "
        "'evil\\x1b[2J\\u202e\\udcff', 'evil\\x1b[2J\\u202e\\udcff', 'evil\\x1b[2J\\u202e\\udcff', …]",
        "~ evil\\x1b[2J\\u202e\\udcff: STRING 'old' -> 'new\\x1b'",
        "+ general.alignment: UINT32 = 64",
        "~ order of pairs: template (12 -> 0)",
        "- tensor ids: I32 [7]",
        "- tensor evil\\x1b[2J\\u202e\\udcff: F32 [3]",
        "+ tensor new: F32 [2]",
        "~ tensor norm: F32 [64] -> F16 [64]",
        "~ order of tensors: norm (0 -> 2)",
        "~ tensor matrix: 6 of 6 blocks differ, the first is 0",
    ]


def test_json_says_the_same():
    old, new = one_of_each()
    differences = found(old, new)
    document = json.loads(as_json("a", "b", differences, True))
    assert (document["old"], document["new"], document["same"], document["data"]) == ("a", "b", False, True)
    assert [record["kind"] for record in document["differences"]] == [d.kind for d in differences]
    by_kind = {record["kind"]: record for record in document["differences"]}
    assert by_kind["version"] | {"name": ""} == {
        "kind": "version",
        "name": "",
        "old_path": "version",
        "new_path": "version",
        "old": 3,
        "new": 2,
    }
    assert by_kind["pair-elements"]["hunks"] == [{"old_start": 3, "old": [4], "new_start": 3, "new": []}]
    assert by_kind["pairs-moved"]["moved"] == [{"name": "template", "old": 12, "new": 0}]
    assert by_kind["tensor-data"]["blocks"] == {"first": 0, "different": 6, "of": 6}
    assert by_kind["tensor-type"]["new"] == {"type": "F16", "dimensions": [64]}


def test_values_in_json_are_those_that_get_prints():
    old, new = (
        written({"a": [True], "b": [[True], [1.5]]}),
        written({"a": [False, True], "b": [[False], [float("inf")]]}),
    )
    document = json.loads(as_json("a", "b", found(old, new), True))
    changed = [(record["hunks"][0]["old"], record["hunks"][0]["new"]) for record in document["differences"]]
    assert changed == [([], [False]), ([True], [False]), ([1.5], ["Infinity"])]


def test_nested_values_stay_on_one_line():
    pairs, _ = base()
    new = with_value(pairs, "nested", [[0] * 100], gs.ArrayType(T.ARRAY, (gs.ArrayType(T.UINT8),)))
    lines = as_text("a", "b", found(written(pairs), written(new))).splitlines()
    assert lines[2:] == [
        "~ nested: ARRAY of (ARRAY of UINT8), 2 -> 1 elements",
        "  @@ -0,2 +0,1 @@",
        "  - 3 elements",
        "  - 2 elements",
        "  + 100 elements",
    ]


@pytest.fixture
def files(tmp_path):
    """A model, and one with another context length and another weight."""
    old, new = tmp_path / "old.gguf", tmp_path / "new.gguf"
    old.write_bytes(demo_model())
    with gs.open(old) as model:
        pairs = with_value(model.metadata.pairs, "llama.context_length", 4096)
        tensors = {name: (tensor.type, tensor.data.copy()) for name, tensor in model.tensors.items()}
        tensors["output_norm.weight"][1][5] = 2
        gs.write(new, pairs, tensors)
    return str(old), str(new)


def test_the_command(files, capsys):
    old, new = files
    assert main(["diff", old, old]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", old, new]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"--- {old}",
        f"+++ {new}",
        "~ llama.context_length: UINT32 128 -> 4096",
        "~ tensor output_norm.weight: 1 of 64 blocks differ, the first is 5",
    ]
    assert main(["diff", "--no-data", old, new]) == 1
    assert "output_norm" not in capsys.readouterr().out
    assert main(["diff", "--json", old, old]) == 0
    assert json.loads(capsys.readouterr().out)["same"]


def test_files_that_cannot_be_compared(files, tmp_path, capsys):
    other = tmp_path / "other"
    other.write_bytes(b"no model")
    for pair in ([files[0], str(other)], [str(tmp_path / "nothing"), files[0]]):
        assert main(["diff", *pair]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"diff: {other}: magic at byte 0" in err
    assert "nothing: No such file" in err
    with pytest.raises(SystemExit) as caught:
        main(["diff", "-", "-"])
    assert caught.value.code == 2


def test_refused_files_are_compared_on_demand(tmp_path, capsys):
    pair = {"key": "k", "value_type": 4, "value": 1}
    twice = tmp_path / "twice.gguf"
    twice.write_bytes(gs.GGUF.build({"metadata_kv": [pair, pair], "tensor_infos": []}))
    assert main(["diff", str(twice), str(twice)]) == 2
    assert main(["diff", "--no-check", str(twice), str(twice)]) == 0
    assert "stands in metadata_kv[0] already" in capsys.readouterr().err


def test_standard_input(files):
    run = subprocess.run(
        [sys.executable, "-m", "gguf_schema", "diff", "-", files[0]],
        input=demo_model(),
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_git_shows_it(files, tmp_path):
    """As the README says: the dump as text of the file, and the command as the tool that compares."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    try:
        subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    (tmp_path / ".gitattributes").write_text("*.gguf diff=gguf\n")
    subprocess.run([*git, "add", "old.gguf"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    (tmp_path / "old.gguf").write_bytes((tmp_path / "new.gguf").read_bytes())
    command = f"{sys.executable} -m gguf_schema"
    run = subprocess.run(
        [*git, "-c", f"diff.gguf.textconv={command} dump", "diff"], capture_output=True, text=True, check=True
    )
    changed = [line.split() for line in run.stdout.splitlines() if line[0] in "+-" and "context_length" in line]
    assert [(line[0][0], line[-1]) for line in changed] == [("-", "128"), ("+", "4096")]
    run = subprocess.run(
        [*git, "difftool", "--no-prompt", f"--extcmd={command} diff"], capture_output=True, text=True, check=False
    )
    assert "~ llama.context_length: UINT32 128 -> 4096" in run.stdout


@needs_corpus
def test_a_vocabulary_with_one_insertion():
    """No time is demanded, but it is told: `pytest -s`."""
    with gs.open(CORPUS / "ggml-vocab-qwen2.gguf") as old:
        tokens = old.metadata["tokenizer.ggml.tokens"].tolist()
        assert len(tokens) > 150_000
        new = written(
            with_value(old.metadata.pairs, "tokenizer.ggml.tokens", [*tokens[:75_000], "new", *tokens[75_000:]])
        )
        start = time.perf_counter()
        (difference,) = found(old, new)
        print(f"{time.perf_counter() - start:.2f} s")
        assert difference.detail == [(75_000, 75_000, 75_000, 75_001)]
