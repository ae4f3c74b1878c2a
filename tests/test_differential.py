"""tools/differential.py: readers do as their profiles say but for rows that are alive; what is left is told."""

import json
import struct

import pytest

import gguf_schema as gs
from gguf_schema.fuzz import Limits, Outcome
from gguf_schema.generate import valid_file
from gguf_schema.validate import check
from tools import differences, differential
from tools.differences import EXPLANATIONS, Judged, explanation
from tools.readers import READERS, running
from tools.reading import FILES

from .peers import PROJECT

SUITE = PROJECT / "tests" / "suite"
SHORT = Limits(0.5, 256)
BLOCK = 192


def needs(reader):
    if not READERS[reader].is_installed:
        pytest.skip(f"could not import {READERS[reader].package}")


def suite(name):
    return (SUITE / f"{name}.gguf").read_bytes()


def of_shape(*dimensions, type=0):
    """A file of one tensor without data."""
    infos = [{"name": "a", "dimensions": list(dimensions), "type": type, "offset": 0}]
    return gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": b""})


def of_array(count):
    """A file that ends where an array of so many bytes begins."""
    array = {"key": "a.b", "value_type": 9, "value": {"type": 0, "array": []}}
    return gs.GGUF.build({"metadata_kv": [array], "tensor_infos": []})[:-8] + struct.pack("<Q", count)


def of_alignment(type, *items):
    """A file whose alignment is an array."""
    array = {"key": "general.alignment", "value_type": 9, "value": {"type": type, "array": list(items)}}
    return gs.GGUF.build({"metadata_kv": [array], "tensor_infos": []})


SHOWN = {
    "zero-dimension": ("llama.cpp", suite("features/shape-4x0")),
    "empty-key": ("llama.cpp", suite("rules/key-empty")),
    "alignment-type": ("llama.cpp", suite("rules/alignment-type")),
    "alignment-array": ("llama.cpp", of_alignment(4, 32)),
    "q2-0": ("llama.cpp", suite("rules/tensor-type-new")),
    "name-nul-twice": ("llama.cpp", suite("rules/name-nul-twice")),
    "nearly-too-many": ("llama.cpp", of_shape(2**63 - 1, 1, type=24)),
    "padded-size-wraps": ("llama.cpp", suite("reports/llama.cpp-24759-padded-size-wraps")),
    "no-memory": ("llama.cpp-data", of_shape(2**50)),
    "counts-on": ("gguf-py", of_array(2**40)),
}
"""Row → a reader and a file that show it."""


def test_each_row_is_shown_here():
    assert [row.name for row in EXPLANATIONS] == list(SHOWN)


@pytest.mark.parametrize("row", EXPLANATIONS, ids=lambda row: row.name)
def test_a_row_is_alive_and_only_of_what_it_says(row):
    reader, data = SHOWN[row.name]
    needs(reader)
    with running(reader, SHORT) as process:
        judged = Judged(reader, data, check(data), process.read(data))
    assert judged.wanted != judged.seen
    assert explanation(judged) == row.name
    assert [other.name for other in EXPLANATIONS if judged.seen == other.seen and other.holds(judged)] == [row.name]
    good = valid_file(0, "<")
    for outcome in judged.outcome, Outcome("crash", "SIGSEGV"), Outcome("memory"):
        assert explanation(Judged(reader, good, check(good), outcome)) is None


@pytest.mark.parametrize("reader", READERS)
def test_mutants(reader, tmp_path, monkeypatch):
    needs(reader)
    monkeypatch.setattr(differential, "BLOCK", BLOCK)
    differential.run_block(reader, 11, tmp_path, 0)
    differential.run_block(reader, 11, tmp_path, BLOCK)
    found = differential.summary(reader, tmp_path)
    assert found["unexplained"] == {}
    assert (found["mutants"], found["bases"]) == (2 * BLOCK, 6)
    assert BLOCK < found["distinct"] <= 2 * BLOCK
    assert sum(found["seen"].values()) == 2 * BLOCK
    assert {"accept accept", "reject reject"} <= found["seen"].keys()
    others = sum(count for seen, count in found["seen"].items() if len(set(seen.split())) > 1)
    assert others == sum(found["explained"].values())


def of_more_tensors(cut):
    """A file that declares many tensors, and ends so many bytes after the dimensions of the second, which have a 0."""
    infos = [{"name": name, "dimensions": shape, "type": 0} for name, shape in (("aa", [4]), ("bb", [4, 0]))]
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(32)})
    end = data.index(b"bb") + 2 + 4 + 2 * 8
    return data[:8] + struct.pack("<Q", 100) + data[16 : end + cut]


def of_two_that_wrap():
    """Two tensors at the same offset: the first is of no bytes, to who counts in 64 bits and pads."""
    infos = [
        {"name": name, "dimensions": shape, "type": 0, "offset": 0} for name, shape in (("a", [2**62 - 1]), ("b", [4]))
    ]
    return gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(32)})


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("zero-dimension", of_more_tensors(cut)) for cut in (0, 1, 30)),
        ("padded-size-wraps", of_two_that_wrap()),
    ],
)
def test_other_files_of_a_row(name, data):
    needs("llama.cpp")
    with running("llama.cpp", SHORT) as process:
        judged = Judged("llama.cpp", data, check(data), process.read(data))
    assert judged.wanted == "reject"
    assert explanation(judged) == name


def test_mutants_are_the_same_each_time_and_of_many_kinds():
    all = list(differential.mutants("llama.cpp", 5, 0, 130))
    assert [one.number for one in all] == list(range(130))
    assert list(differential.mutants("llama.cpp", 5, 70, 20)) == all[70:90]
    assert {one.data for one in differential.mutants("llama.cpp", 6, 0, 64)}.isdisjoint(one.data for one in all)
    assert len({one.label.operation for one in all}) > 40
    assert any("any" in one.label.operation for one in all)


def test_what_is_not_explained_is_told_and_run_again(tmp_path, monkeypatch):
    needs("llama.cpp")
    monkeypatch.setattr(differential, "BLOCK", BLOCK)
    with monkeypatch.context() as patched:
        patched.setattr(differences, "EXPLANATIONS", ())
        differential.run_block("llama.cpp", 11, tmp_path, 0)
    assert not differential.is_done("llama.cpp", 11, tmp_path, 0)
    found = differential.summary("llama.cpp", tmp_path)
    assert found["explained"] == {}
    assert any("wanted reject, seen crash gguf.cpp" in what for what in found["unexplained"])
    for what, one in found["unexplained"].items():
        assert f"{one['count']:8} {what}" in differential.as_text(found)
        (again,) = differential.mutants("llama.cpp", one["seed"], one["number"], 1)
        assert len(again.data) == one["size"]
    differential.run_block("llama.cpp", 11, tmp_path, 0)
    assert differential.is_done("llama.cpp", 11, tmp_path, 0)


def test_what_is_done_is_not_run_again(tmp_path, monkeypatch, capsys):
    needs("llama.cpp")
    monkeypatch.setattr(differential, "BLOCK", BLOCK)
    differential.run_block("llama.cpp", 11, tmp_path, 0)
    (path,) = tmp_path.iterdir()
    before = path.stat().st_mtime_ns
    arguments = ["llama.cpp", "--seed", "11", "--start", "5", "--count", "100", "--state", str(tmp_path), "--json"]
    assert differential.main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["mutants"] == BLOCK
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_goes_on_after_all_that_happens(reader):
    """More files than one child reads, an empty one, one that is large, and one that ends the reader."""
    needs(reader)
    good, large = valid_file(0, "<"), valid_file(0, "<") + bytes(1 << 20)
    fatal = {"gguf-py": "counts-on"}.get(reader, "empty-key")
    with running(reader, SHORT) as process:
        assert process.read(b"").kind == "reject"
        seen = json.loads(process.read(good).told)
        with gs.open(good) as model:
            assert seen == {"pairs": len(model.metadata), "tensors": list(model.tensors)}
        assert process.read(SHOWN[fatal][1]).kind == {"counts-on": "hang", "empty-key": "crash"}[fatal]
        assert process.read(large).kind == "accept"
        for _ in range(FILES // 4 if reader == "gguf-py" else FILES + 1):
            assert process.read(b"FUGG").kind == "reject"
        assert process.read(good).kind == "accept"
    assert process.process.returncode is not None
