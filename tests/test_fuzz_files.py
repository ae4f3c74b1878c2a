"""Labelled files for other harnesses, and what of the format files exercise."""

import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.fuzz import cases
from gguf_schema.fuzz.cases import EACH
from gguf_schema.fuzz.coverage import exercised
from gguf_schema.fuzz.folder import byte_map
from gguf_schema.generate import valid_file
from gguf_schema.validate import check

T = gs.GGUFValueType
pytestmark = pytest.mark.usefixtures("nothing_left")


def test_out_writes_the_same_files_each_time(tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["fuzz", "--out", str(one), "--count", "90", "--seed", "5"]) == 0
    assert main(["fuzz", "--out", str(two), "--count", "100", "--seed", "6"]) == 0
    assert main(["fuzz", "--out", str(two), "--count", "90", "--seed", "5"]) == 0
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in two.iterdir()
    }
    labels = json.loads((one / "labels.json").read_text())
    assert len(labels["files"]) == 90 == len(list(one.iterdir())) - 1
    for file, case in zip(labels["files"], cases(5), strict=False):
        data = (one / file["file"]).read_bytes()
        assert data == case.data
        assert (file["sha256"], file["size"]) == (hashlib.sha256(data).hexdigest(), len(data))
        assert [file[name] for name in case.label._fields] == list(case.label)
        assert (file["base"], file["number"]) == (case.base_seed, case.number)
    assert "90 files" in capsys.readouterr().out


def test_out_leaves_what_is_not_its_own(tmp_path, capsys):
    (tmp_path / "0000000.gguf").write_bytes(b"mine")
    assert main(["fuzz", "--out", str(tmp_path), "--count", "1"]) == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]
    assert "labels.json" in capsys.readouterr().err
    assert main(["fuzz", "--out", str(tmp_path / "0000000.gguf"), "--count", "1"]) == 2
    assert f"{tmp_path / '0000000.gguf'}: File exists" in capsys.readouterr().err
    assert main(["fuzz", "--out", str(tmp_path / "new"), "--count", "1"]) == 0
    assert capsys.readouterr().out.startswith("1 file; ")


def test_maps_of_what_cannot_be_read():
    assert byte_map(b"") == "magic at byte 0: expected b'GGUF', found b'': an empty file"
    for case in islice(cases(11), 3 * EACH):
        lines = byte_map(case.data).splitlines()
        assert lines[0].startswith("           0            4") or lines[0].startswith(("magic", "version"))


def test_what_a_file_exercises():
    assert exercised(b"GGUF") == {("rules", fault.code) for fault in check(b"GGUF")} != set()
    data = valid_file(3, order=">", version=2)
    found = exercised(data)
    with gs.open(data) as model:
        assert {("versions", "2"), ("orders", "big")} < found
        assert {name for kind, name in found if kind == "tensor types"} == {
            tensor.type.name for tensor in model.tensors.values()
        }
        types = [pair.type for pair in model.metadata.pairs]
    arrays = {type.type.name for type in types if isinstance(type, gs.ArrayType)}
    scalars = {type.name for type in types if not isinstance(type, gs.ArrayType)}
    assert {name for kind, name in found if kind == "element types"} == arrays
    assert {name for kind, name in found if kind == "value types"} == scalars | ({"ARRAY"} if arrays else set())


def test_coverage_of_the_suite_is_whole_and_a_few_files_do_as_much(capsys):
    suite = Path(__file__).parent / "suite"
    assert main(["fuzz", "--coverage", "--json", str(suite)]) == 0
    whole = json.loads(capsys.readouterr().out)
    for kind in "versions", "orders", "value types", "element types", "tensor types", "rules":
        assert whole["missing"][kind] == [], kind
    assert 0 < len(whole["subset"]) < len(list(suite.rglob("*.gguf")))
    assert main(["fuzz", "--coverage", "--json", *whole["subset"]]) == 0
    assert json.loads(capsys.readouterr().out)["covered"] == whole["covered"]


def test_coverage_tells_what_is_missing(tmp_path, capsys):
    (tmp_path / "3.gguf").write_bytes(valid_file(1, order="<", version=3))
    assert main(["fuzz", "--coverage", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["versions: 1 of 3", "  not 1, 2", "orders: 1 of 2", "  not big"]
    assert "1 of 1 file has as much as all:" in lines
    (tmp_path / "2.gguf").write_bytes(valid_file(1, order="<", version=2))
    assert main(["fuzz", "--coverage", str(tmp_path)]) == 0
    assert "2 of 2 files have as much as all:" in capsys.readouterr().out.splitlines()


def test_coverage_of_nothing_is_no_coverage(tmp_path, capsys):
    (tmp_path / "model.bin").write_bytes(valid_file(1))
    (tmp_path / "sub").mkdir()
    assert main(["fuzz", "--coverage", str(tmp_path)]) == 2
    assert f"there is no model in {tmp_path}" in capsys.readouterr().err


def test_types_in_nested_arrays_count(tmp_path):
    inner = [gs.ArrayType(T.UINT8), gs.ArrayType(T.ARRAY, (gs.ArrayType(T.STRING), gs.ArrayType(T.BOOL)))]
    path = tmp_path / "nested.gguf"
    gs.write(path, {"general.architecture": "llama", "a.b": (gs.ArrayType(T.ARRAY, tuple(inner)), [[1], [["a"], []]])})
    elements = {name for kind, name in exercised(path) if kind == "element types"}
    assert elements == {"ARRAY", "UINT8", "STRING", "BOOL"}


STREAM = [sys.executable, "-m", "gguf_schema", "fuzz", "--stream"]


def test_a_stream_has_the_cases():
    run = subprocess.run([*STREAM, "--seed", "5", "--start", "3", "--count", "80"], capture_output=True, check=True)
    assert run.stderr == b""
    piped = io.BytesIO(run.stdout)
    for case in islice(cases(5, 3), 80):
        label = json.loads(piped.readline())
        data = piped.read(label["size"])
        assert data == case.data
        assert [label[name] for name in case.label._fields] == list(case.label)
        assert (label["index"], label["base"], label["number"]) == (case.index, case.base_seed, case.number)
        assert label["sha256"] == hashlib.sha256(data).hexdigest()
    assert piped.read() == b""


def test_the_harness_that_the_readme_shows():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (harness,) = re.findall(r"^```python\n((?:(?!```).)*sys\.stdin.*?)```", readme, re.MULTILINE | re.DOTALL)
    with subprocess.Popen([*STREAM, "--count", "70"], stdout=subprocess.PIPE) as stream:
        run = subprocess.run([sys.executable, "-c", harness], stdin=stream.stdout, capture_output=True, check=True)
    told = [line.split() for line in run.stdout.decode().splitlines()]
    assert told == [
        f"{case.label.expected} {len(case.data)} {case.label.operation} {case.label.path}".split()
        for case in islice(cases(0), 70)
    ]


def test_a_stream_ends_when_nobody_reads():
    with subprocess.Popen([*STREAM, "--count", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as stream:
        assert json.loads(stream.stdout.readline())["index"] == 0
        stream.stdout.close()
        assert stream.stderr.read() == b""
    assert stream.returncode == 141


def test_a_stream_that_is_interrupted():
    with subprocess.Popen([*STREAM, "--count", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as stream:
        stream.stdout.readline()
        stream.send_signal(signal.SIGINT)
        stream.stdout.read()
        assert stream.stderr.read() == b""
    assert stream.returncode == 130
