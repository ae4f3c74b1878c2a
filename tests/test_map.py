"""The byte map: leaves tile the file, every byte is found by its offset and every field by its path."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

import gguf_schema as gs
from gguf_schema.annotate import at, entries, everything, leaves, map_text, short, where
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.walk import is_inside

from .shared import CORPUS, cases, corpus_files, needs_corpus
from .test_generated_files import files

T = gs.GGUFValueType


def assert_tiles(model, mapped):
    """Each leaf begins where the one before it ends; the first at 0, the last at the end of the file."""
    cursor = 0
    for leaf in mapped:
        assert leaf.start == cursor, leaf
        assert leaf.end >= leaf.start
        cursor = leaf.end
    assert cursor == model.size


def nested_file():
    """Short arrays of numbers, of strings and of arrays, and an empty one."""
    arrays = [
        {"type": T.UINT8, "array": [1, 2, 3]},
        {"type": T.STRING, "array": ["a", "", "bc"]},
        {"type": T.ARRAY, "array": [{"type": T.UINT16, "array": [1]}, {"type": T.STRING, "array": ["d"]}]},
        {"type": T.INT8, "array": []},
    ]
    pairs = [{"key": f"a.{i}", "value_type": T.ARRAY, "value": array} for i, array in enumerate(arrays)]
    return gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": []})


def places(model):
    return {entry.path: (entry.start, entry.end) for entry in entries(model)}


@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.stem)
def test_leaves_tile_the_corpus(path):
    with gs.open(path, shards=False) as model:
        assert_tiles(model, leaves(model))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_leaves_tile_whatever_can_be_read(case):
    try:
        model = gs.open(case["bytes"], check=False)
    except gs.ParseError:
        return
    assert_tiles(model, leaves(model))
    assert_tiles(model, leaves(model, everything))


@settings(deadline=None, max_examples=100)
@given(files())
def test_leaves_tile_generated_files(obj):
    model = gs.open(gs.GGUF.build(obj), check=False)
    assert_tiles(model, leaves(model, everything))
    assert_tiles(model, leaves(model, lambda path, items: False))


@pytest.mark.parametrize("enter", [short, everything])
@pytest.mark.parametrize("data", [demo_model(), nested_file()], ids=["demo", "nested"])
def test_outer_entries_come_before_those_inside_them(data, enter):
    """Each entry stands where what was before it ends: on what is inside the same one, or on the start of that."""
    cursor = 0
    outer = []
    for entry in entries(gs.open(data), enter):
        while outer and not is_inside(entry.path, outer[-1].path):
            assert outer.pop().end == cursor
        assert entry.start == cursor
        if entry.is_leaf:
            cursor = entry.end
        else:
            outer.append(entry)


def test_places_of_worked_example_2():
    pair = {"key": "general.architecture", "value_type": T.STRING, "value": "llama"}
    infos = [
        {"name": "output_norm.weight", "dimensions": [64], "type": 0},
        {"name": "token_embd.weight", "dimensions": [64, 3], "type": 8},
    ]
    data = gs.GGUF.build({"metadata_kv": [pair], "tensor_infos": infos, "tensor_data": bytes(256 + 224)})
    found = places(gs.open(data))
    assert found["metadata_kv_count"][1] == 24
    assert found["metadata_kv"] == (24, 69)
    assert found["tensor_infos"] == (69, 176)
    assert found["padding"] == (176, 192)
    assert found["tensor_data[0]"] == (192, 448)
    assert found["tensor_data[1]"] == (448, 652)
    assert found["tensor_data[1].padding"] == (652, 672)


def odd_file():
    """A gap before the first tensor and between two, an overlap, another order, an unknown type, a tail."""
    infos = [
        {"name": "late", "dimensions": [8], "type": 0, "offset": 128},
        {"name": "early", "dimensions": [10], "type": 0, "offset": 32},
        {"name": "overlaps", "dimensions": [10], "type": 0, "offset": 64},
        {"name": "within", "dimensions": [1], "type": 24, "offset": 64},
    ]
    return gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(160), "tail": b"tail"})


def test_gaps_overlaps_and_tail():
    model = gs.open(odd_file())
    assert_tiles(model, leaves(model))
    start = model.data_offset
    data = [(e.path, e.start - start, e.end - start) for e in leaves(model) if e.start >= start]
    assert data == [
        ("tensor_data.padding", 0, 32),
        ("tensor_data[1]", 32, 72),
        ("tensor_data[2]", 72, 104),
        ("tensor_data[3]", 104, 104),
        ("tensor_data[3].padding", 104, 128),
        ("tensor_data[0]", 128, 160),
        ("tail", 160, 164),
    ]


@pytest.mark.parametrize("data", [demo_model(), odd_file()], ids=["demo", "odd"])
def test_at_and_where_are_inverses(data):
    model = gs.open(data)
    mapped = entries(model, everything)
    for leaf in mapped[:: max(1, len(mapped) // 200)]:
        if leaf.is_leaf and leaf.end > leaf.start:
            for offset in {leaf.start, leaf.end - 1}:
                found = at(model, offset)
                assert leaf in found
                assert where(model, leaf.path)[0] == leaf
                assert where(model, found[-1].path) == [found[-1]]
                assert found[-1] == leaf or leaf.path.startswith("tensor_data[")
    for entry in mapped[:: max(1, len(mapped) // 100)]:
        assert where(model, entry.path)[0][:3] == entry[:3]
    assert at(model, model.size) == at(model, -1) == where(model, "nothing") == where(model, "metadata_kv[99]") == []


def test_long_arrays_are_divided_only_when_asked_for():
    model = gs.open(demo_model())
    tokens = next(e for e in entries(model) if e.value == "tokenizer.ggml.tokens" and e.path.endswith("key"))
    array = tokens.path.replace(".key", ".value.array")
    assert f"{array}[5]" not in places(model)
    length, string = where(model, f"{array}[5]")[1:]
    assert (length.path, length.value) == (f"{array}[5].len", 6)
    assert (string.path, string.value) == (f"{array}[5].string", b"<0x02>")
    assert at(model, string.start)[-1] == string


def test_blocks_of_tensors_are_looked_into():
    """Only where they are asked for, and without reading the others."""
    model = gs.open(demo_model())
    tensor = model.tensors["blk.0.attn_q.weight"]
    index = model.tensors.infos.index(tensor)
    start = tensor.data_offset + 3 * tensor.block.type_size
    path = f"tensor_data[{index}]"
    assert [entry.path for entry in at(model, start)][-2:] == [f"{path}[3]", f"{path}[3].d"]
    scale = at(model, start + 1)[-1]
    assert (scale.start, scale.end, scale.value) == (start, start + 2, float(tensor.data.reshape(-1)["d"][3]))
    assert at(model, start + 2)[-1][:4] == (f"{path}[3].qs", start + 2, start + 34, "array")
    assert [entry.path for entry in where(model, f"{path}[3]")] == [f"{path}[3]", f"{path}[3].d", f"{path}[3].qs"]
    blocks = tensor.n_bytes // tensor.block.type_size
    assert where(model, f"{path}[{blocks - 1}].d")
    assert not where(model, f"{path}[{blocks}].d")


def test_keys_and_names_stand_for_their_paths():
    model = gs.open(demo_model())
    assert where(model, "general.name") == where(model, "metadata_kv[1]")
    index = model.tensors.infos.index(model.tensors["output_norm.weight"])
    named = where(model, "output_norm.weight")
    assert named == [*where(model, f"tensor_infos[{index}]"), *where(model, f"tensor_data[{index}]")]
    assert named[0].value == "output_norm.weight"


@needs_corpus
@pytest.mark.parametrize("path", corpus_files("*.gguf"), ids=lambda path: path.name)
def test_items_of_long_arrays_are_found_at_once(path):
    """Strings and numbers: what is found at a byte is the item that the views give."""
    with gs.open(path) as model:
        arrays = [entry for entry in entries(model) if entry.type == "array" and entry.is_leaf]
        assert arrays
        for entry in arrays:
            pair = model.metadata.pairs[int(entry.path.partition("[")[2].partition("]")[0])]
            for index in {0, 1, len(pair.value) // 2, len(pair.value) - 1}:
                item, *_, last = [*where(model, f"{entry.path}[{index}]")] * 2
                value = last.value.decode() if isinstance(last.value, bytes) else last.value
                assert value == pair.value[index]
                assert at(model, item.end - 1)[-1].path.startswith(f"{entry.path}[{index}]")
                assert at(model, item.start)[-1].path.startswith(f"{entry.path}[{index}]")


@needs_corpus
def test_a_vocabulary_is_mapped_without_its_strings():
    with gs.open(CORPUS / "ggml-vocab-bert-bge.gguf") as model:
        assert len(leaves(model)) < 200
        index = [pair.key for pair in model.metadata.pairs].index("tokenizer.ggml.tokens")
        tokens = model.metadata["tokenizer.ggml.tokens"]
        (last,) = where(model, f"metadata_kv[{index}].value.array[{len(tokens) - 1}].string")
    assert last.value.decode() == tokens[-1]


def test_tensor_data_is_not_read(tmp_path, reads):
    path = tmp_path / "large.gguf"
    gs.write(path, {"a.b": 1}, {"t": np.zeros(1 << 20, np.float32)})
    with gs.open(path) as model:
        assert_tiles(model, leaves(model))
        assert map_text(model.source, entries(model), with_hex=True)
    assert 0 < max(position + size for position, size in reads) < 1 << 16


# The command.


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_bytes(demo_model())
    return str(path)


def test_json_has_a_record_for_each_leaf(path, capsys):
    assert main(["map", "--json", path]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["file", "size", "version", "order", "leaves"]
    with gs.open(path) as model:
        assert len(answer["leaves"]) == len(leaves(model))
    assert answer["leaves"][1] == {
        "path": "version",
        "start": 4,
        "end": 8,
        "type": "uint32",
        "value": 3,
        "doc": "Version of the format",
    }


def test_text_is_a_tree(path, capsys):
    assert main(["map", "--depth", "1", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == [
        *("magic:", "version:", "tensor_count:", "metadata_kv_count:", "metadata_kv:", "alignment:", "tensor_infos:"),
        *("padding:", "tensor_data:"),
    ]
    assert main(["map", "--hex", "--at", "4", path]) == 0
    out = capsys.readouterr().out
    assert out.split()[:6] == ["4", "4", "03", "00", "00", "00"]
    assert "version: 3  (uint32: Version of the format)" in out


def test_where_and_at(path, capsys):
    assert main(["map", "--where", "metadata_kv[0].key", path]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["map", "--at", "7168", "--json", path]) == 0
    tensor, scale = json.loads(capsys.readouterr().out)["leaves"]
    assert (tensor["value"], scale["path"]) == ("token_embd.weight", f"{tensor['path']}[0].d")
    assert main(["map", "--at", "0x1c00", path]) == 0
    assert "token_embd.weight" in capsys.readouterr().out
    for wrong in ["--at", "999999999"], ["--where", "nothing"]:
        assert main(["map", *wrong, path]) == 2
        assert "the file has no" in capsys.readouterr().err


def test_without_a_file_the_demo_is_mapped(capsys):
    assert main(["map", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 1000


def test_hostile_text_is_escaped(tmp_path, capsys):
    path = tmp_path / "hostile.gguf"
    gs.write(path, {"a\x1b[2J.b": "\x07\u202e", "c.d": float("nan")})
    for arguments in (["map"], ["map", "--json"], ["map", "--hex", "--all"]):
        assert main([*arguments, str(path)]) == 0
        out = capsys.readouterr().out
        assert not set(out) & {"\x1b", "\x07", "\u202e"}
