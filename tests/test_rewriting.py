"""Open files written again: byte by byte where nothing was edited, else as the construct builds them; or canonical."""

import io

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.generate import valid_file
from gguf_schema.mutate import mutants
from tests.shared import cases, corpus_files, needs_cases, needs_corpus

T = gs.GGUFValueType


def saved(plan):
    out = io.BytesIO()
    plan.save(out)
    assert len(out.getvalue()) == plan.size
    return out.getvalue()


def built(tensors, metadata_kv=(), *, order="<", **fields):
    """A file of tensors as they are given: (name, dimensions, type, offset)."""
    infos = [dict(zip(("name", "dimensions", "type", "offset"), tensor, strict=True)) for tensor in tensors]
    return gs.GGUF.build({"order": order, "metadata_kv": metadata_kv, "tensor_infos": infos, **fields})


PAIR = {"key": "a.b", "value_type": T.UINT32, "value": 7}
INFO = {"name": "t", "dimensions": [1], "type": 0, "offset": 0}


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ({}, "metadata_kv: expected a list in the wire form"),
        ({"metadata_kv": []}, "tensor_infos: expected a list in the wire form"),
        ({"metadata_kv": "ab", "tensor_infos": []}, "metadata_kv: expected a list in the wire form"),
        (
            {"metadata_kv": [gs.MetadataKV("a", T.BOOL, True)], "tensor_infos": []},
            r"metadata_kv\[0\]: expected the fields",
        ),
        ({"metadata_kv": [], "tensor_infos": [7]}, r"tensor_infos\[0\]: expected the fields of the wire form.*found 7"),
        (5, "metadata_kv: expected a list in the wire form"),
        ({"metadata_kv": memoryview(np.zeros((2, 2))), "tensor_infos": []}, "metadata_kv: expected a list in the wire"),
        ({"metadata_kv": np.zeros(2), "tensor_infos": []}, "metadata_kv: expected a list in the wire form"),
        ({"metadata_kv": [{}], "tensor_infos": []}, r"metadata_kv\[0\].key: the field is missing"),
        (
            {"metadata_kv": [{**PAIR, "key": 5}], "tensor_infos": []},
            r"metadata_kv\[0\].key: expected str . bytes, found 5",
        ),
        (
            {"metadata_kv": [{**PAIR, "value_type": np.zeros(2)}], "tensor_infos": []},
            r"\[0\].value_type: expected int . ",
        ),
        ({"metadata_kv": [], "tensor_infos": [{"name": "t"}]}, r"tensor_infos\[0\].dimensions: the field is missing"),
        ({"metadata_kv": [], "tensor_infos": [{**INFO, "name": 10**5000}]}, r"tensor_infos\[0\].name: expected str"),
        ({"metadata_kv": [], "tensor_infos": [{**INFO, "type": []}]}, r"tensor_infos\[0\].type: expected int"),
        ({"metadata_kv": [], "tensor_infos": [{**INFO, "dimensions": np.zeros(2)}]}, r"dimensions: expected list"),
        ({"metadata_kv": [], "tensor_infos": [{**INFO, "dimensions": [1, ()]}]}, r"dimensions\[1\]: expected int"),
    ],
)
@pytest.mark.parametrize("canonical", [False, True])
def test_heads_that_are_none_are_told(head, told, canonical):
    with gs.open(built([])) as model, pytest.raises(gs.BuildError, match=told):
        gs.rewrite(model, head, canonical=canonical)


ODD = {
    "nothing": built([]),
    "no tensors, padded": built([], [PAIR], padding=bytes(21)),
    "no tensors, padded in part": built([], [PAIR], padding=b"ab"),
    "no tensors, a tail": built([], [PAIR], padding=bytes(21), tail=b"tail"),
    "padding that is not zero": built([("t", [2], 0, 0)], padding=b"#" * 7, tensor_data=b"12345678" + bytes(24)),
    "last tensor not padded": built([("t", [2], 0, 0)], tensor_data=b"12345678"),
    "last tensor padded in part": built([("t", [2], 0, 0)], tensor_data=b"12345678" + b"\1" * 3),
    "a tail": built([("t", [2], 0, 0)], tensor_data=b"12345678" + bytes(24), tail=b"tail" * 50),
    "a gap": built([("t", [2], 0, 32), ("u", [1], 0, 96)], tensor_data=b"gap!" * 24 + b"1234" + bytes(28)),
    "another order": built([("t", [2], 0, 32), ("u", [1], 0, 0)], tensor_data=b"1234" + bytes(28) + b"12345678" * 4),
    "shared data": built([("t", [20], 0, 0), ("u", [1], 0, 32), ("v", [20], 0, 0)], tensor_data=bytes(range(96))),
    "empty tensors": built(
        [("t", [0], 0, 0), ("u", [2], 0, 0), ("v", [0], 0, 32)], tensor_data=b"12345678" + bytes(24)
    ),
    "an unknown type": built([("t", [2], 0, 0), ("u", [9], 99, 32)], tensor_data=bytes(range(64)), tail=b"more"),
    "bools": built(
        [],
        [
            {"key": "a", "value_type": T.BOOL, "value": 2},
            {"key": "b", "value_type": T.ARRAY, "value": {"type": T.BOOL, "array": np.array([0, 1, 9], np.uint8)}},
            {
                "key": "c",
                "value_type": T.ARRAY,
                "value": {
                    "type": T.ARRAY,
                    "array": [
                        {"type": T.BOOL, "array": np.array([True])},
                        {"type": T.UINT8, "array": np.array([5], np.uint8)},
                        {"type": T.BOOL, "array": np.array([7], np.uint8)},
                    ],
                },
            },
        ],
    ),
}
MADE = {f"seed {seed}": valid_file(seed) for seed in range(40)}
BIG = {f"big-endian, version 2, seed {seed}": valid_file(seed, order=">", version=2) for seed in range(5)}
FILES = {**ODD, **MADE, **BIG}


def longer(model):
    """The head with one pair more, at the front."""
    pair = {"key": "new.key", "value_type": T.STRING, "value": "x" * 13}
    return {"metadata_kv": [pair, *model.head.metadata_kv], "tensor_infos": model.head.tensor_infos}


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_edited_stays(name):
    with gs.open(FILES[name]) as model:
        plan = gs.rewrite(model)
        assert saved(plan) == FILES[name]
        assert not plan.changes


@pytest.mark.parametrize("name", FILES)
def test_after_an_edit_all_else_stays(name):
    """As the construct builds it, whose padding is computed where it was deleted."""
    data = FILES[name]
    with gs.open(data) as model:
        plan = gs.rewrite(model, longer(model))
        edited = saved(plan)
        expected = gs.GGUF.parse(data)
        expected["metadata_kv"] = longer(model)["metadata_kv"]
        if len(model.tensors) or model.size >= model.data_offset > model.infos_end:
            end = len(model.layout.head.build(longer(model)))
            expected["padding"] = bytes(-end % model.alignment)
            if name == "padding that is not zero":
                assert [change.path for change in plan.changes] == ["padding"]
        assert edited == gs.GGUF.build(expected)
        assert bool(plan.changes) == (name == "padding that is not zero")
        with gs.open(edited) as again:
            shorter = {"metadata_kv": again.head.metadata_kv[1:], "tensor_infos": again.head.tensor_infos}
            if not plan.changes:
                assert saved(gs.rewrite(again, shorter)) == data


def test_padding_that_need_not_change_stays():
    data = ODD["padding that is not zero"]
    with gs.open(data) as model:
        info = {**model.head.tensor_infos[0], "name": "T"}
        plan = gs.rewrite(model, {"metadata_kv": [], "tensor_infos": [info]})
        assert saved(plan) == data.replace(b"\1\0\0\0\0\0\0\0t", b"\1\0\0\0\0\0\0\0T")
        assert not plan.changes


@pytest.mark.parametrize("name", [name for name in FILES if name != "an unknown type"])
def test_canonical_files_and_what_changes(name):
    """What differs is told, and only that; the result has no more to tell."""
    data = FILES[name]
    with gs.open(data) as model:
        plan = gs.rewrite(model, canonical=True)
        canonical = saved(plan)
        assert bool(plan.changes) == (canonical != data), plan.changes
        with gs.open(canonical) as again:
            assert not gs.rewrite(again, canonical=True).changes
            assert again.tensors.keys() == model.tensors.keys()
            for tensor in model.tensors.values():
                assert again.tensors[tensor.name].data.tobytes() == tensor.data.tobytes()
            if "bools" not in name:
                out = io.BytesIO()
                gs.write(out, model.metadata, model.tensors, order=model.order, version=model.version)
                assert out.getvalue() == canonical


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no tensors, padded", [("tail", "21 bytes after the metadata are left out")]),
        ("padding that is not zero", [("padding", "7 bytes of padding, from byte 57 on, become zeros")]),
        ("last tensor not padded", [("tensor_data", "24 zeros are added after the last tensor")]),
        (
            "last tensor padded in part",
            [
                ("tensor_data", "3 bytes of padding, from byte 72 on, become zeros"),
                ("tensor_data", "21 zeros are added after the last tensor"),
            ],
        ),
        ("a tail", [("tail", "200 bytes after the last tensor are left out")]),
        (
            "a gap",
            [
                ("tensor_infos[0].offset", "32 becomes 0"),
                ("tensor_infos[1].offset", "96 becomes 32"),
                ("tensor_data", "32 bytes between tensors, from byte 96 on, are left out"),
                ("tensor_data", "24 bytes of padding, from byte 136 on, become zeros"),
                ("tensor_data", "32 bytes between tensors, from byte 160 on, are left out"),
            ],
        ),
        (
            "bools",
            [(f"metadata_kv[{index}].value", "BOOL bytes other than 0 become 1") for index in range(3)],
        ),
    ],
)
def test_what_is_told_of_a_canonical_file(name, told):
    with gs.open(ODD[name]) as model:
        plan = gs.rewrite(model, canonical=True)
        assert [tuple(change) for change in plan.changes] == told
        for path, message in told:
            assert f"changed: {path}: {message}" in str(plan)


def test_canonical_bools_are_told_from_others():
    with gs.open(ODD["bools"]) as model, gs.open(saved(gs.rewrite(model, canonical=True))) as again:
        assert again.metadata["a"] is True
        assert again.metadata["b"].dtype == np.bool_
        assert [array.tolist() for array in again.metadata["c"]] == [[True], [5], [True]]
        assert again.metadata.type("c") == model.metadata.type("c")


THREE = built(
    [("a", [2], 0, 0), ("b", [3], 0, 32), ("c", [4], 0, 64)],
    [PAIR],
    tensor_data=b"a" * 8 + b"." * 24 + b"b" * 12 + b"," * 20 + b"c" * 16 + bytes(16),
)


def test_tensors_are_renamed_and_left_out_in_place():
    """The data of the one that is left out stays where it was."""
    with gs.open(THREE) as model:
        a, _, c = model.head.tensor_infos
        plan = gs.rewrite(model, {"metadata_kv": [], "tensor_infos": [{**c, "name": "cc"}, a]})
        result = saved(plan)
        with gs.open(result) as edited:
            assert {name: tensor.data.tobytes() for name, tensor in edited.tensors.items()} == {
                "cc": b"c" * 16,
                "a": b"a" * 8,
            }
            assert result[edited.data_offset :] == THREE[model.data_offset :]


def test_tensors_are_renamed_reordered_and_left_out_canonically():
    with gs.open(THREE) as model:
        a, _, c = model.head.tensor_infos
        plan = gs.rewrite(model, {"metadata_kv": [], "tensor_infos": [{**c, "name": "cc"}, a]}, canonical=True)
        result = saved(plan)
        with gs.open(result) as edited:
            assert result[edited.data_offset :] == b"c" * 16 + bytes(16) + b"a" * 8 + bytes(24)
            assert [(tensor.name, tensor.offset) for tensor in edited.tensors.values()] == [("cc", 0), ("a", 32)]
        assert ("tensor_infos[0].offset", "64 becomes 0") in plan.changes


def test_another_alignment():
    pair = {"key": "general.alignment", "value_type": T.UINT32, "value": 128}
    with gs.open(THREE) as model:
        head = {"metadata_kv": [pair], "tensor_infos": model.head.tensor_infos}
        with pytest.raises(gs.BuildError, match=r"^metadata_kv: the alignment was 32 and becomes 128: "):
            gs.rewrite(model, head)
        with gs.open(saved(gs.rewrite(model, head, canonical=True))) as edited:
            assert [tensor.offset for tensor in edited.tensors.values()] == [0, 128, 256]
            assert edited.data_offset % 128 == 0
            assert edited.tensors["c"].data.tobytes() == b"c" * 16


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("shared data", "an unknown type")])
def test_there_and_back_in_other_layouts(name):
    """Byte order and version, everything else kept; the values of the tensors stay."""
    data = FILES[name]
    with gs.open(data) as model:
        for order in "<>":
            for version in 2, 3:
                other = saved(gs.rewrite(model, layout=gs.structs(order, version)))
                with gs.open(other) as changed:
                    assert (changed.order, changed.version) == (order, version)
                    for tensor in model.tensors.values():
                        values = changed.tensors[tensor.name].data
                        assert values.astype(tensor.data.dtype).tobytes() == tensor.data.tobytes()
                    if name != "padding that is not zero":
                        assert saved(gs.rewrite(changed, layout=model.layout)) == data


def test_what_cannot_be_swapped():
    for name, told in [
        ("shared data", "tensor 'v': it shares bytes"),
        ("an unknown type", "tensor 'u': the size of type 99 is not known"),
    ]:
        with gs.open(ODD[name]) as model, pytest.raises(gs.BuildError, match=told):
            gs.rewrite(model, layout=gs.structs(">", 3))


def test_a_type_whose_end_nobody_knows():
    with gs.open(ODD["an unknown type"]) as model:
        with pytest.raises(gs.BuildError, match=r"tensor 'u': the size of type 99 is not known"):
            gs.rewrite(model, canonical=True)
        a, u = model.head.tensor_infos
        assert saved(gs.rewrite(model, {"metadata_kv": [PAIR], "tensor_infos": [u, a]})).endswith(b"\x3fmore")


@pytest.mark.parametrize("canonical", [True, False])
def test_what_open_would_refuse_is_not_made(canonical):
    with gs.open(THREE) as model:
        infos = model.head.tensor_infos
        for head, told in [
            ({"metadata_kv": [PAIR, PAIR], "tensor_infos": infos}, r"^metadata_kv\[1\]\.key\.len: the key 'a\.b'"),
            ({"metadata_kv": [], "tensor_infos": [infos[0], infos[0]]}, r"^tensor_infos\[1\]\.name\.len: "),
            ({"metadata_kv": [], "tensor_infos": [{**infos[0], "offset": None}]}, r"^tensor_infos\[0\]: no offset"),
            ({"metadata_kv": [{**PAIR, "value": "x"}], "tensor_infos": infos}, r"^metadata_kv\[0\]\.value: "),
            ({"metadata_kv": [], "tensor_infos": [{**infos[0], "offset": 1 << 40}]}, "the file ends at byte"),
        ]:
            with pytest.raises(gs.BuildError, match=told):
                gs.rewrite(model, head, canonical=canonical)


def test_the_file_itself_may_be_the_target(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(THREE)
    with gs.open(path) as model:
        gs.rewrite(model, longer(model)).save(path)
        with gs.open(path) as edited:
            assert edited.metadata["new.key"] == "x" * 13
            assert edited.tensors["b"].data.tobytes() == b"b" * 12
        assert model.tensors["b"].data.tobytes() == b"b" * 12


def test_mutants_are_written_again_or_refused():
    """What can be parsed at all is kept or refused; what open takes is kept."""
    kept = 0
    for data, label in mutants(valid_file(3), seed=1):
        try:
            model = gs.open(data, check=False)
        except gs.ParseError:
            continue
        with model:
            for canonical in False, True:
                try:
                    again = saved(gs.rewrite(model, canonical=canonical))
                except gs.GGUFError:
                    assert model.faults() or canonical, label
                    continue
                if not canonical:
                    assert again == data, label
                    kept += 1
    assert kept > 20


@needs_cases
def test_labelled_files_are_written_again():
    for case in cases():
        if case["expected"].get("roundtrip") == "byte-exact":
            with gs.open(case["bytes"], check=False) as model:
                assert model.faults() or saved(gs.rewrite(model)) == case["bytes"], case["file"]


@needs_corpus
@pytest.mark.parametrize("file", corpus_files(), ids=lambda file: file.name)
def test_real_files_are_written_again(file, tmp_path):
    with gs.open(file, shards=False) as model:
        gs.rewrite(model).save(tmp_path / "again.gguf")
        assert (tmp_path / "again.gguf").read_bytes() == file.read_bytes()
        older = saved(gs.rewrite(model, layout=gs.structs(model.order, 2)))
        with gs.open(older) as changed:
            assert changed.version == 2
            assert saved(gs.rewrite(changed, layout=model.layout)) == file.read_bytes()


@pytest.mark.parametrize("versions", [(2, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("length", [1, 20, 31, 32, 33, 100])
def test_what_follows_metadata_at_once_stays_whole(versions, length):
    """Without tensors there is no data for which padding would be needed."""
    old, new = versions
    tail = bytes(range(1, length + 1))
    data = gs.structs("<", old).gguf.build({"metadata_kv": [], "tensor_infos": []}) + tail
    with gs.open(data) as model:
        plan = gs.rewrite(model, layout=gs.structs("<", new))
        out = io.BytesIO()
        plan.save(out)
    assert out.getvalue().endswith(tail)
    assert plan.changes == []
    with gs.open(out.getvalue()) as again:
        back = io.BytesIO()
        gs.rewrite(again, layout=gs.structs("<", old)).save(back)
    assert back.getvalue() == data
