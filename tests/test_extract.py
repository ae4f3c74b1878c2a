"""Tensors out of files: numpy reads what was in them, of every type, in little memory; nothing is overwritten."""

import io
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import tensor_data
from gguf_schema.blocks import blocks
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.extract import npy, raw

from . import peers
from .shared import corpus_files

Q = gs.GGMLQuantizationType
GGUF_SCHEMA = [sys.executable, "-m", "gguf_schema"]


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.gguf").write_bytes(demo_model())
    return "demo.gguf"


def one_tensor(type, data, dimensions, order="<"):
    infos = [{"name": "t", "dimensions": dimensions, "type": type}]
    fields = {"metadata_kv": [], "tensor_infos": infos, "tensor_data": data, "order": order}
    return gs.open(gs.GGUF.build(fields))


def test_a_file_by_its_bytes():
    """The header as numpy's documentation has it, then two numbers."""
    model = one_tensor(Q.F32, np.array([1, -2], "<f4").tobytes(), [2, 1])
    data = b"".join(npy(model, "t"))
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"
    length = int.from_bytes(data[8:10], "little")
    assert data[:8] == b"\x93NUMPY\1\0"
    assert data[10 : 10 + length] == text.ljust(length - 1) + b"\n"
    assert (10 + length) % 64 == 0
    assert data[10 + length :] == b"\0\0\x80\x3f\0\0\0\xc0"
    assert b"".join(raw(model, "t")) == b"\0\0\x80\x3f\0\0\0\xc0"


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("type", blocks("<"), ids=str)
def test_numpy_reads_every_type(type, order, monkeypatch):
    """Without pickles; the dtype is that of a table typed from ggml's header, the bytes are those of the file."""
    monkeypatch.setattr(tensor_data, "CHUNK", 1000)
    _, block_size, type_size, _ = peers.TYPES[type.name]
    data = random.Random(type.name).randbytes(3 * 2 * type_size)
    model = one_tensor(type, data, [2 * block_size, 3], order)
    array = np.load(io.BytesIO(b"".join(npy(model, "t"))), allow_pickle=False)
    assert array.dtype == peers.block_dtype(type.name, order)
    assert array.shape == (3, 2)
    assert array.tobytes() == data
    shown = []
    assert b"".join(raw(model, "t", lambda *numbers: shown.append(numbers))) == data
    assert shown[-1] == (len(data), len(data))


@pytest.mark.parametrize("dimensions", [[], [0, 3], [4, 1, 2, 1]])
def test_shapes(dimensions):
    model = one_tensor(Q.I8, bytes(int(np.prod(dimensions or [1]))), dimensions)
    assert np.load(io.BytesIO(b"".join(npy(model, "t")))).shape == tuple(dimensions[::-1])


@pytest.mark.parametrize("path", corpus_files("types/*.gguf"), ids=lambda path: path.stem)
def test_real_files(path, tmp_path):
    with gs.open(path) as model:
        for number, (name, tensor) in enumerate(model.tensors.items()):
            out = tmp_path / f"{number}.npy"
            assert main(["extract", str(path), name, str(out)]) == 0
            array = np.load(out)
            assert (array.dtype, array.shape) == (tensor.data.dtype, tensor.data.shape)
            assert array.tobytes() == tensor.data.tobytes()


def test_the_command(demo, tmp_path, capsys):
    name = "output_norm.weight"
    assert main(["extract", demo, name]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"gguf-schema: {demo}: {name} is in {name}.npy, 384 bytes\n"
    assert np.array_equal(np.load(f"{name}.npy"), np.ones(64, np.float32))
    assert main(["extract", demo, name, "--raw"]) == 0
    assert (tmp_path / f"{name}.raw").read_bytes() == np.ones(64, "<f4").tobytes()
    assert sorted(os.listdir(tmp_path)) == ["demo.gguf", f"{name}.npy", f"{name}.raw"]


def test_files_are_not_overwritten(demo, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("mine")
    arguments = ["extract", demo, "output_norm.weight"]
    assert main([*arguments, "out"]) == 2
    assert "out is there already; --force replaces it" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main([*arguments, "out", "--force"]) == 0
    assert np.load(out).shape == (64,)
    os.link(demo, tmp_path / "link.gguf")
    for target in demo, "link.gguf", f"./{demo}":
        assert main([*arguments, target, "--force"]) == 2
        assert "is the file that is read" in capsys.readouterr().err
    assert (tmp_path / demo).read_bytes() == demo_model()


def test_what_cannot_be_extracted(demo, tmp_path, capsys):
    assert main(["extract", demo, "no\x1bthing", "out"]) == 2
    assert "there is no tensor 'no\\x1bthing'" in capsys.readouterr().err
    infos = [{"name": "odd", "dimensions": [4], "type": 200, "offset": 0}]
    (tmp_path / "odd.gguf").write_bytes(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": b"x"}))
    for form in "--npy", "--raw":
        assert main(["extract", form, "odd.gguf", "odd", "out"]) == 2
        assert "the size of type 200 is not known" in capsys.readouterr().err
    (tmp_path / "cut.gguf").write_bytes(demo_model()[:-300])
    assert main(["extract", "--no-check", "--raw", "cut.gguf", "output_norm.weight", "out"]) == 2
    assert main(["extract", demo, "output_norm.weight", "no/folder"]) == 2
    assert "cannot write no/folder: No such file or directory" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["cut.gguf", "demo.gguf", "odd.gguf"]


@pytest.mark.parametrize("form", [npy, raw])
@pytest.mark.parametrize("name", [None, 5, math.nan, [], b"t", 10**5000], ids="abcdef")
def test_what_is_no_name(form, name):
    model = one_tensor(Q.F32, bytes(4), [1])
    with pytest.raises(gs.GGUFError, match=r"^name: expected the name of a tensor, found "):
        next(form(model, name))


@pytest.mark.parametrize("name", ["../up", "/etc/name", ".hidden", "C:name", "a\\b", "a\nb"])
def test_a_name_cannot_choose_the_folder(name, tmp_path, monkeypatch):
    """Without OUT the file is called like the tensor: in this folder, or not at all."""
    monkeypatch.chdir(tmp_path)
    gs.write("evil.gguf", {}, {name: np.zeros(3, np.float32)})
    with pytest.raises(SystemExit) as caught:
        main(["extract", "evil.gguf", name])
    assert caught.value.code == 2
    assert os.listdir(tmp_path) == ["evil.gguf"]
    assert main(["extract", "evil.gguf", name, "out"]) == 0


def test_standard_streams(demo):
    arguments = [*GGUF_SCHEMA, "extract", "-", "output_norm.weight", "-", "--raw"]
    run = subprocess.run(arguments, input=demo_model(), capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, np.ones(64, "<f4").tobytes(), b"")


def test_nobody_reads(tmp_path):
    path = tmp_path / "big.gguf"
    gs.write(path, {}, {"big": np.zeros(1 << 20, np.float32)})
    program = f"{' '.join(GGUF_SCHEMA)} extract {path} big - | head -c 10; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", program], capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (141, b"\x93NUMPY\1\0v\0", b"")


def test_a_full_disk(demo):
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [*GGUF_SCHEMA, "extract", demo, "output_norm.weight", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (run.returncode, run.stderr) == (2, "gguf-schema: standard output: No space left on device\n")


@pytest.mark.parametrize("form", ["--npy", "--raw"])
@pytest.mark.parametrize("source", ["path", "standard input"])
def test_memory_is_bounded(tmp_path, form, source):
    """A tensor of 256 MiB takes a process no more than a few MiB more than one of a few bytes."""
    path = tmp_path / "big.gguf"
    gs.write(path, {}, {"big": np.zeros(1 << 26, np.float32), "small": np.zeros(1, np.float32)})
    peaks = {}
    for name in "small", "big":
        program = "import resource, sys; from gguf_schema.cli import main; status = main(sys.argv[1:]); "
        program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(status)"
        file = str(path) if source == "path" else "-"
        arguments = [sys.executable, "-c", program, "extract", form, file, name, str(tmp_path / name)]
        with open(path, "rb") as stdin:
            run = subprocess.run(arguments, stdin=stdin, capture_output=True, text=True, check=True)
        peaks[name] = int(run.stdout) * (1 if sys.platform == "darwin" else 1024)
    assert (tmp_path / "big").stat().st_size == 128 * (form == "--npy") + (256 << 20)
    assert peaks["big"] - peaks["small"] < 16 << 20


def test_no_more_is_mapped_or_read_than_the_tensor(tmp_path, monkeypatch):
    """Of a file of 40 GiB, which is sparse, a tensor behind all of them."""
    infos = [
        {"name": name, "dimensions": [size], "type": Q.I8, "offset": offset}
        for name, size, offset in (("big", 40 << 30, 0), ("small", 5, 40 << 30))
    ]
    head = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos})
    data_offset = -(-len(head) // 32) * 32
    with open(tmp_path / "x.gguf", "wb") as file:
        file.write(head)
        file.seek(data_offset + (40 << 30))
        file.write(b"small")
    monkeypatch.setattr("mmap.mmap", None)
    with open(tmp_path / "x.gguf", "rb") as opened:
        for source in tmp_path / "x.gguf", opened:
            with gs.open(source) as model:
                assert np.load(io.BytesIO(b"".join(npy(model, "small")))).tobytes() == b"small"
                begun = npy(model, "big")
                assert [len(next(begun)) for _ in range(3)] == [128, 1 << 20, 1 << 20]


def test_more_dimensions_than_tell_a_size_make_no_npy(tmp_path, capsys):
    """Its header would tell of other bytes than follow."""
    infos = [
        {"name": "t", "dimensions": [32, 4, 5, 1, 1, 1, 1, 1, 1], "type": 8, "offset": 0},
        {"name": "u", "dimensions": [1], "type": 0, "offset": 384},
    ]
    path = tmp_path / "many.gguf"
    path.write_bytes(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(416)}))
    assert main(["extract", "--no-check", str(path), "t", str(tmp_path / "t.npy")]) == 2
    assert "384 bytes make no array" in capsys.readouterr().err
    assert not (tmp_path / "t.npy").exists()


@pytest.mark.parametrize("dimensions", [[0, 2**56], [256, 0, 2**56], [2**56, 2**56, 0]])
def test_what_numpy_has_no_array_for(dimensions):
    """Empty tensors whose other dimensions are too many bytes for it: that is said; there are no bytes to take."""
    model = one_tensor(Q.Q4_K, b"", dimensions)
    for function in (lambda: model.tensors["t"].data), (lambda: next(npy(model, "t"))):
        with pytest.raises(gs.GGUFError, match="tensor 't': numpy has no array of shape"):
            function()
    assert b"".join(raw(model, "t")) == b""
