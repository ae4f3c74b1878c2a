"""Files in another byte order, version or alignment: values stay, and what need not change keeps its bytes."""

import io
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.blocks import UNDEFINED_BIG, blocks
from gguf_schema.cli import main
from gguf_schema.convert import convert
from gguf_schema.generate import valid_file
from tests import peers
from tests.shared import corpus_files, needs_corpus

Q = gs.GGMLQuantizationType
T = gs.GGUFValueType
REFUSED = (Q.Q5_0, Q.Q5_1, Q.Q3_K, Q.IQ2_XXS, Q.IQ3_XXS, Q.IQ1_M)
"""Types whose big-endian form nobody defines, as ggml's code has it: bytes of them are read as larger numbers."""

SWAPPABLE = [type for type in blocks("<") if type not in REFUSED]
KNOWN_TO_GGUF_PY = ("F32", "F16", "BF16", "Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4", "NVFP4")
"""Types that gguf-convert-endian of gguf 0.19.0 takes."""

PAIRS = {
    "general.architecture": "llama",
    "a.u64": (T.UINT64, 2**40 + 3),
    "a.f64": (T.FLOAT64, 0.1),
    "a.numbers": np.arange(300, dtype=np.int16),
    "a.words": ["one", "two", ""],
}


def saved(plan):
    out = io.BytesIO()
    plan.save(out)
    assert len(out.getvalue()) == plan.size
    return out.getvalue()


def converted(data, **options):
    with gs.open(data, shards=False) as model:
        return saved(convert(model, **options))


def model_of(*types, order="<", **options):
    """A file with a tensor of each type, of bytes that are all different from their neighbours."""
    tensors = {}
    for number, type in enumerate(types):
        block = blocks(order)[type]
        data = np.arange(7 * number, 7 * number + 6 * block.type_size, dtype=np.uint32).astype(np.uint8)
        tensors[f"{number}.{type.name}"] = (type, data.reshape(2, -1))
    out = io.BytesIO()
    gs.write(out, PAIRS, tensors, order=order, **options)
    return out.getvalue()


def values(data):
    """What is in a file, by the block Structs of its byte order."""
    with gs.open(data) as model:
        pairs = [(pair.key, pair.type, np.asarray(pair.value).tolist()) for pair in model.metadata.pairs]
        tensors = []
        for tensor in model.tensors.infos:
            struct = tensor.block[tensor.n_bytes // tensor.block.type_size]
            parsed = struct.parse(data[tensor.data_offset : tensor.data_offset + tensor.n_bytes])
            tensors.append((tensor.name, tensor.dimensions, tensor.type, [plain(block) for block in parsed]))
        return pairs, tensors


def plain(block):
    return {
        name: [repr(item) for item in value] if hasattr(value, "__iter__") else repr(value)
        for name, value in block.items()
    }


# Byte order.


@pytest.mark.parametrize("type", SWAPPABLE, ids=lambda one: one.name)
def test_values_of_blocks_are_the_same_in_either_order(type):
    little = model_of(type)
    big = converted(little, order=">")
    assert big[4:8] == b"\0\0\0\3"
    assert values(big) == values(little)
    fields = peers.TYPES[type.name][3]
    with gs.open(little) as old, gs.open(big) as new:
        (first,), (second,) = old.tensors.infos, new.tensors.infos
        held, swapped = (tensor.data.tobytes() for tensor in (first, second))
    # The same by the table of fields that is typed by hand.
    expected = b""
    position = 0
    while position < len(held):
        for _, number, *count in fields:
            width = int(number[1:])
            for _ in range(*count or (1,)):
                expected += held[position : position + width][::-1]
                position += width
    assert swapped == expected
    assert converted(big, order="<") == little


def test_all_types_at_once():
    little = model_of(*SWAPPABLE, alignment=8)
    big = converted(little, order=">")
    assert values(big) == values(little)
    assert converted(big, order="<") == little
    for version in 1, 2:
        other = converted(little, version=version)
        assert values(other) == values(little)
        assert converted(other, version=3) == little


@pytest.mark.parametrize("type", REFUSED, ids=lambda one: one.name)
def test_types_without_a_big_endian_form_are_refused_by_name(type):
    data = model_of(Q.F32, type)
    with gs.open(data) as model:
        with pytest.raises(gs.BuildError, match=rf"^tensor_infos\[1\].type: '1.{type.name}' is {type.name}, whose big"):
            convert(model, order=">")
        assert not any("F32" in change.message for change in convert(model, version=2).changes)
        forced = saved(convert(model, order=">", any_type=True))
    assert values(forced) == values(data)
    assert converted(forced, order="<", any_type=True) == data


def test_those_are_the_types_whose_bytes_ggml_takes_as_larger_numbers():
    """Each has such a field, of bytes or of words, in the table that is typed by hand."""
    assert tuple(UNDEFINED_BIG) == REFUSED
    for type, name in UNDEFINED_BIG.items():
        (number,) = [number for field, number, *_ in peers.TYPES[type.name][3] if field == name]
        assert number == ("u2" if type is Q.IQ2_XXS else "u1")


def test_the_readme_lists_the_types_that_are_refused():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (item,) = re.findall(r"^- `gguf-schema convert .*?(?=^- )", readme, re.DOTALL | re.MULTILINE)
    (listed,) = re.findall(r"field\s+by\s+field\. ([^.:]*) are refused: ", item)
    assert re.split(r",\s+|\s+and\s+", listed) == [type.name for type in REFUSED]


def test_an_unknown_type_is_not_swapped():
    out = io.BytesIO()
    gs.write(out, PAIRS, [gs.NewTensor("t", 4242, (8,), b"12345678" * 4), gs.NewTensor("u", Q.F32, (1,), b"1234")])
    with gs.open(out.getvalue()) as model, pytest.raises(gs.BuildError, match="4242"):
        convert(model, order=">")


@pytest.mark.parametrize("seed", range(20))
def test_generated_files_there_and_back(seed):
    data = valid_file(seed, order="<", version=3)
    big = converted(data, order=">", any_type=True)
    with gs.open(big) as model:
        assert model.order == ">"
    assert converted(big, order="<", any_type=True) == data
    assert converted(converted(data, version=2), version=3) == data


@needs_corpus
@pytest.mark.parametrize("file", corpus_files(), ids=lambda file: file.name)
def test_real_files_there_and_back(file):
    data = file.read_bytes()
    with gs.open(data) as model:
        order, version = model.order, model.version
        other = "<" if order == ">" else ">"
        is_defined = not {tensor.type for tensor in model.tensors.infos} & set(REFUSED)
        if is_defined:
            swapped = saved(convert(model, order=other))
        else:
            with pytest.raises(gs.BuildError, match="big-endian form nobody defines"):
                convert(model, order=other)
            swapped = saved(convert(model, order=other, any_type=True))
    assert converted(swapped, order=order, any_type=True) == data
    for other_version in {1, 2, 3} - {version}:
        assert converted(converted(data, version=other_version), version=version) == data


@pytest.mark.parametrize("name", KNOWN_TO_GGUF_PY)
def test_gguf_convert_endian_makes_the_same_bytes(name, tmp_path, monkeypatch):
    peers.gguf_py()
    script = pytest.importorskip("gguf.scripts.gguf_convert_endian")
    little, big = model_of(Q.F32, Q[name]), tmp_path / "big.gguf"
    big.write_bytes(little)
    monkeypatch.setattr(sys, "argv", ["convert", str(big), "big"])
    monkeypatch.setattr("builtins.input", lambda prompt: "YES")
    script.main()
    assert big.read_bytes() == converted(little, order=">")
    assert big.read_bytes() != little


# Versions.


def test_a_count_that_does_not_fit_is_an_error():
    """A dimension of 2^32: no elements, as another dimension is 0."""
    out = io.BytesIO()
    gs.write(out, PAIRS, [gs.NewTensor("t", Q.F32, (0, 1 << 32), b"")])
    with gs.open(out.getvalue()) as model:
        with pytest.raises(gs.BuildError, match=r"tensor_infos\[0\].dimensions\[1\]"):
            convert(model, version=1)
        with gs.open(saved(convert(model, version=2))) as older:
            assert older.tensors["t"].dimensions == (0, 1 << 32)


# Alignment.


@pytest.mark.parametrize("alignment", [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])
def test_peers_read_every_alignment(alignment):
    data = model_of(Q.F32, Q.Q8_0, Q.F16)
    moved = converted(data, alignment=alignment)
    with gs.open(data) as old, gs.open(moved) as new:
        assert new.alignment == alignment
        assert [tensor.data.tobytes() for tensor in new.tensors.infos] == [t.data.tobytes() for t in old.tensors.infos]
        assert all(tensor.data_offset % alignment == 0 for tensor in new.tensors.infos)
    before, after = peers.read_with_gguf_py(data), peers.read_with_gguf_py(moved)
    assert after.alignment == alignment
    assert [tensor.data for tensor in after.tensors] == [tensor.data for tensor in before.tensors]
    assert [pair for pair in after.pairs if pair.key != "general.alignment"] == before.pairs
    before, after = peers.read_with_llama_cpp(data), peers.read_with_llama_cpp(moved)
    assert after.alignment == alignment
    assert [tensor.data for tensor in after.tensors] == [tensor.data for tensor in before.tensors]
    assert [pair for pair in after.pairs if pair.key != "general.alignment"] == before.pairs


def test_an_alignment_there_and_back():
    data = model_of(Q.F32, Q.Q8_0, alignment=64)
    moved = converted(data, alignment=4096)
    assert converted(moved, alignment=64) == data
    with gs.open(data) as model:
        told = {change.path: change.message for change in convert(model, alignment=4096).changes}
    assert told == {"alignment": "64 becomes 4096", "tensor_infos": "1 of 2 offsets change"}


def test_what_stood_around_the_tensors_is_told_where_they_move():
    infos = [{"name": "t", "dimensions": [2], "type": 0, "offset": 32}]
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": b"gap!" * 16, "tail": b"tail"})
    assert converted(data, version=3) == data
    with gs.open(data) as model:
        told = [str(change) for change in convert(model, alignment=8).changes]
    assert any("tail" in change for change in told)
    assert any("between" in change for change in told)
    for wrong in 0, 7, 24:
        with gs.open(data) as model, pytest.raises(gs.BuildError, match=f"^alignment: {wrong} is no alignment"):
            convert(model, alignment=wrong)


@pytest.mark.parametrize("alignment", [np.array([32, 64]), 32.0, "32", 10**5000, [10**5000]], ids="abcde")
def test_what_is_no_alignment(alignment):
    with gs.open(gs.GGUF.build({"metadata_kv": [], "tensor_infos": []})) as model:
        with pytest.raises(gs.BuildError, match=r"^alignment: .* is no alignment"):
            convert(model, alignment=alignment)
        assert not convert(model, alignment=np.uint8(32)).changes


@pytest.mark.parametrize("what", ["order", "version"])
def test_what_is_no_layout(what):
    with gs.open(gs.GGUF.build({"metadata_kv": [], "tensor_infos": []})) as model:
        for wrong in 10**5000, [10**5000], 0:
            with pytest.raises(gs.BuildError, match=f"^{what}: unknown "):
                convert(model, **{what: wrong})


def test_canonical():
    infos = [{"name": "t", "dimensions": [2], "type": 0, "offset": 32}]
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": b"gap!" * 16, "tail": b"tail"})
    clean = converted(data, canonical=True)
    assert len(clean) < len(data)
    with gs.open(clean) as model:
        assert not convert(model, canonical=True).changes


# The command.


def test_the_command(tmp_path, capsys):
    source, out = tmp_path / "in.gguf", tmp_path / "out.gguf"
    source.write_bytes(model_of(Q.F32))
    assert main(["convert", str(source), str(out), "--order", "big", "--version", "2", "--dry-run"]) == 0
    assert "changed: order: little becomes big; tensors swapped: F32 1" in capsys.readouterr().out
    assert not out.exists()
    assert main(["convert", str(source), str(out), "--order", "big", "--version", "2"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "changed: version: 3 becomes 2" in told.err
    assert out.read_bytes() == converted(source.read_bytes(), order=">", version=2)
    assert main(["convert", str(source), str(out), "--version", "2"]) == 2
    assert "is there already; --force replaces it" in capsys.readouterr().err
    assert main(["convert", str(source), str(out), "--version", "2", "--force"]) == 0
    assert out.read_bytes() == converted(source.read_bytes(), version=2)
    kept = source.read_bytes()
    assert main(["convert", str(source), str(source), "--version", "2", "--force"]) == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert source.read_bytes() == kept
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(source), str(out)])
    assert ended.value.code == 2


def test_a_refused_type_and_a_shard(tmp_path, capsys):
    source, out = tmp_path / "in.gguf", tmp_path / "out.gguf"
    source.write_bytes(model_of(Q.Q5_0))
    assert main(["convert", str(source), str(out), "--order", "big"]) == 2
    assert "Q5_0" in capsys.readouterr().err
    assert not out.exists()
    assert main(["convert", str(source), str(out), "--order", "big", "--any-type"]) == 0
    shard = tmp_path / "m-00001-of-00002.gguf"
    gs.write(shard, {"split.no": (T.UINT16, 0), "split.count": (T.UINT16, 2), "split.tensors.count": (T.INT32, 0)})
    assert main(["convert", str(shard), str(tmp_path / "other.gguf"), "--version", "2"]) == 0
    shutil.rmtree(tmp_path)
