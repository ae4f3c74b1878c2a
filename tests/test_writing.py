"""Files appear whole or not at all; targets of every kind; arguments of every form."""

import io
import os
import re
import stat
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.blocks import block
from gguf_schema.cli import main
from gguf_schema.demo import demo_model

from .short_writes import ShortWrites

OLD = b"the old file"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(OLD)
    return path


def test_replaces_a_file_and_keeps_its_permissions(path):
    path.chmod(0o640)
    gs.write(path, {"a.b": 1})
    assert gs.open(path.read_bytes()).metadata["a.b"] == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == [path.name]


def test_new_files_have_the_usual_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        gs.write(tmp_path / "new.gguf", {})
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.gguf").stat().st_mode) == 0o640


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "link.gguf"
    link.symlink_to(path)
    gs.write(link, {"a.b": 1})
    assert link.is_symlink()
    assert path.read_bytes() != OLD


@pytest.mark.parametrize("metadata", [{"a": []}, {"": 1}, {"a": 2**64}, [("a", gs.GGUFValueType.UINT8, 256)]])
def test_what_is_refused_leaves_the_old_file(path, metadata):
    with pytest.raises(gs.BuildError):
        gs.write(path, metadata)
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def test_an_error_while_writing_leaves_the_old_file(path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        gs.write(path, {"a.b": 1})
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_the_old_file(path):
    """The real thing: the process may write no more than 4 KiB to a file."""
    program = f"""
import resource, signal
import numpy as np, gguf_schema as gs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    gs.write({str(path)!r}, {{"a.b": 1}}, {{"t": np.zeros(1 << 20, np.float32)}})
except OSError as error:
    print("refused", error.errno)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("refused"), run.stderr
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def test_the_source_may_be_the_target(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(demo_model())
    with gs.open(path) as model:
        before = model.tensors["token_embd.weight"].data
        copy = before.tobytes()
        gs.write(path, {**model.metadata, "general.name": "renamed"}, model.tensors)
        assert before.tobytes() == copy
    with gs.open(path) as model:
        assert model.metadata["general.name"] == "renamed"
        assert model.tensors["token_embd.weight"].data.tobytes() == copy


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    gs.write(pipe, {"a.b": 1})
    reader.join()
    assert gs.open(read[0]).metadata["a.b"] == 1
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_missing_folder_and_folder_as_target(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing/x\.gguf'$"):
        gs.write(tmp_path / "nothing" / "x.gguf", {})
    with pytest.raises(IsADirectoryError):
        gs.write(tmp_path, {})


def test_raw_files_get_every_byte():
    target, whole = ShortWrites(5), io.BytesIO()
    for file in target, whole:
        gs.write(file, {"a.b": "x" * 50}, {"t": np.arange(9, dtype=np.float32)})
    assert target.taken == whole.getvalue()


ONE = np.zeros(1, np.float32)
PLANE = memoryview(np.zeros((2, 2)))
V, A = gs.GGUFValueType, gs.ArrayType


@pytest.mark.parametrize(
    ("type", "dimensions", "array"),
    [
        (gs.GGMLQuantizationType.F32, (3, 2), np.arange(6, dtype=np.float32).reshape(2, 3)),
        (gs.GGMLQuantizationType.F32, (3, 2), np.arange(6, dtype=np.float32)),
        (gs.GGMLQuantizationType.F32, (3, 1, 2), np.arange(6, dtype=">f4").reshape(2, 3)),
        (gs.GGMLQuantizationType.Q8_0, (64, 3), np.zeros((3, 2), block(gs.GGMLQuantizationType.Q8_0).dtype())),
        (gs.GGMLQuantizationType.Q8_0, (64, 3), np.zeros((6, 34), np.uint8)),  # bytes
    ],
)
def test_arrays_whose_shape_says_the_dimensions_or_none(type, dimensions, array):
    out = io.BytesIO()
    gs.write(out, {}, [gs.NewTensor("t", type, dimensions, array)])
    with gs.open(out.getvalue()) as model:
        assert model.tensors["t"].dimensions == dimensions


@pytest.mark.parametrize(
    ("metadata", "tensors", "told"),
    [
        ([("a", 1)], {}, r"metadata_kv\[0\]: expected \(key, type, value\)"),
        ({"a": object()}, {}, r"metadata_kv\[0\].value: a object has no GGUF type"),
        ({"a": [1, "x"]}, {}, r"metadata_kv\[0\].value: a list of int, str has no GGUF type"),
        ({"a": [[1], []]}, {}, r"metadata_kv\[0\].value\[1\]: an empty list could be of any type"),
        ({}, {"t": [1, 2]}, "tensor 't'.data: expected a Tensor, a numpy array or a pair"),
        ({}, [("t", ONE)], "tensor 0: expected a Tensor"),
        ({}, {"t": ("F32", ONE)}, "tensor 't'.type: expected a pair .tensor type, array., found a str first"),
        ({}, {"t": (ONE, gs.GGMLQuantizationType.F32)}, "found a ndarray first"),
        ({}, {"t": np.zeros(1, np.uint16)}, "tensor 't'.type: numpy's uint16 says no tensor type by itself"),
        ({}, {"t": (gs.GGMLQuantizationType.Q4_K, np.zeros(100, np.uint8))}, "rows of whole blocks of 144 bytes"),
        ({}, {"t": (gs.GGMLQuantizationType.Q4_2, ONE)}, "tensor 't'.type: type Q4_2 has no known block"),
        ({}, [gs.NewTensor("t", 0, (2,), b"1234")], "tensor 't'.data: 8 bytes expected for these dimensions, 4 found"),
        (
            {},
            [gs.NewTensor("t", 8, (), b"")],
            "tensor 't'.n_dimensions: 1 is no multiple of 32, the block size",
        ),
        ({}, 5, "tensors: expected a mapping from name to tensor, or a list of tensors, found 5"),
        ({}, np.array(1.0), "tensors: expected a mapping from name to tensor, .* found array"),
        ({}, PLANE, "tensors: expected a mapping from name to tensor, .* found <memory"),
        (np.array(1.0), {}, "metadata_kv: expected a mapping or a list .* found array"),
        (memoryview(np.array(1.0)), {}, "metadata_kv: expected a mapping or a list .* found <memory"),
        (PLANE, {}, "metadata_kv: expected a mapping or a list .* found <memory"),
        ({"a": PLANE}, {}, r"metadata_kv\[0\].value: an array of 2 dimensions; 1 is possible"),
        ({"a": [PLANE]}, {}, r"metadata_kv\[0\].value\[0\]: an array of 2 dimensions"),
        ({"a": memoryview(np.zeros(1, complex))}, {}, r"metadata_kv\[0\].value: NotImplementedError"),
        ({"a": (A(V.INT32), np.array(5))}, {}, r"metadata_kv\[0\].value: expected a sequence, found a ndarray"),
        ({"a": (A(V.ARRAY, (A(V.INT32),) * 2), PLANE)}, {}, "value: expected a sequence, found a memoryview"),
        ([(np.array([1, 2]), V.UINT8, 1)], {}, r"metadata_kv\[0\].key: expected a string, found array"),
        ({}, {5: ONE}, "tensor 5.name: expected a string, found 5"),
        ({"a": ("UINT8", 1)}, {}, r"no GGUF type; the type in a pair .* is a GGUFValueType, as gs.GGUFValueType.UINT8"),
        ({"a": ("[int32]", [1])}, {}, r"no GGUF type; the type in a pair .* or an ArrayType"),
        ({"a": ("UINT8", 1, 2)}, {}, r"has no GGUF type \(key 'a'\)$"),
        ({"a": ("other", 1)}, {}, r"has no GGUF type \(key 'a'\)$"),
        ({"a": (1, "UINT8")}, {}, r"has no GGUF type \(key 'a'\)$"),
        ({}, [gs.NewTensor("t", "F32", (1,), ONE)], "tensor 't'.type: expected a tensor type, as .* found 'F32'"),
        (
            {},
            [gs.NewTensor("t", 0, (2, 3), np.zeros((2, 3), np.float32))],
            r"tensor 't'.dimensions: an array of shape \(2, 3\) has \(3, 2\) in file order",
        ),
        ({}, [gs.NewTensor("t", 0, (1,), b"1234")] * 2, r"tensor_infos\[1\].name.len: the tensor name 't' stands"),
    ],
)
def test_wrong_arguments_are_told(metadata, tensors, told):
    with pytest.raises(gs.BuildError, match=told):
        gs.write(io.BytesIO(), metadata, tensors)


def test_a_key_that_is_none_is_told_beside_an_alignment():
    with pytest.raises(gs.BuildError, match=r"metadata_kv\[0\].key: expected a string, found array"):
        gs.plan([(np.array([1, 2]), V.UINT8, 1)], alignment=64)


def test_a_list_of_two_texts_is_one_though_the_first_is_the_name_of_a_type():
    file = io.BytesIO()
    gs.write(file, {"a": ("STRING", "UINT8")})
    assert list(gs.open(file.getvalue()).metadata["a"]) == ["STRING", "UINT8"]


@pytest.mark.parametrize("integer", [int, np.int16, np.uint16, np.array])
def test_the_place_of_a_range_is_any_integer(path, integer):
    """Of the integers of numpy some are too small for the size of the file."""
    path.write_bytes(b"ab" * 35_000 + b"end!")
    for offset, size in (integer(64), None), (70_000, integer(4)):
        file = io.BytesIO()
        gs.write(file, {}, [gs.NewTensor("t", 0, (1,), gs.FileRange(path, offset, size))])
        data = gs.open(file.getvalue()).tensors["t"].data.tobytes()
        assert data == path.read_bytes()[int(offset) :][:4]


@pytest.mark.parametrize(
    ("offset", "size", "found"),
    [(64.0, None, "64.0 and None"), ("64", None, "'64' and None"), (0, 4.0, "0 and 4.0"), (None, 4, "None and 4")],
)
def test_what_is_no_place_of_a_range_is_told_at_once(path, offset, size, found):
    path.write_bytes(bytes(100))
    with pytest.raises(gs.BuildError, match=rf"^tensor 't'.data: expected integers as .*, found {found}$"):
        gs.plan({}, [gs.NewTensor("t", 0, (1,), gs.FileRange(path, offset, size))])


@pytest.mark.parametrize("place", [(10**5000, None), (0, 10**5000), (-(10**5000), None)], ids="abc")
def test_a_place_far_out_of_a_range_is_told(path, place):
    with pytest.raises(gs.BuildError, match=r"^tensor 't'.data: .* bytes expected at byte .* are there$"):
        gs.plan({}, [gs.NewTensor("t", 0, (1,), gs.FileRange(path, *place))])


class NotShown:
    """Python's own errors are not all that may come of showing a value."""

    def __repr__(self):
        raise KeyError


@pytest.mark.parametrize("value", [10**5000, [10**5000], NotShown()], ids=["number", "list", "object"])
@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("alignment", lambda value: gs.plan({}, alignment=value)),
        ("alignment", lambda value: gs.plan({"general.alignment": (gs.GGUFValueType.UINT32, value)}, alignment=64)),
        ("version", lambda value: gs.plan({}, version=value)),
        ("order", lambda value: gs.plan({}, order=value)),
        ("metadata_kv[0].key", lambda value: gs.plan([(value, gs.GGUFValueType.UINT8, 1)])),
        ("metadata_kv[0]", lambda value: gs.plan([value])),
        ("metadata_kv[0]", lambda value: gs.plan([("a", value, 1)])),
        ("metadata_kv[0].value", lambda value: gs.plan([("a", A(A(value)), [1])])),
        ("tensor what cannot be shown.name", lambda value: gs.plan({}, [gs.NewTensor(value, 0, (), bytes(4))])),
    ],
)
def test_values_that_cannot_be_shown_are_refused(path, function, value):
    """Python writes no number of more than 4,300 digits."""
    with pytest.raises(gs.BuildError) as caught:
        function(value)
    assert caught.value.path == path
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("number", [1 << 20_000, 10**5000], ids=["power of two", "none"])
def test_alignments_that_cannot_be_shown_are_refused(number):
    with pytest.raises(gs.BuildError, match=r"^alignment: what cannot be shown "):
        gs.plan({"general.alignment": 64}, alignment=number)


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (True, gs.GGUFValueType.BOOL),
        (5, gs.GGUFValueType.UINT32),
        (-5, gs.GGUFValueType.INT32),
        (2**32, gs.GGUFValueType.UINT64),
        (-(2**31) - 1, gs.GGUFValueType.INT64),
        (gs.TokenType.BYTE, gs.GGUFValueType.UINT32),
        (0.5, gs.GGUFValueType.FLOAT32),
        ("x", gs.GGUFValueType.STRING),
        (b"x", gs.GGUFValueType.STRING),
        (np.str_("x"), gs.GGUFValueType.STRING),
        (np.uint8(5), gs.GGUFValueType.UINT8),
        (np.float64(5), gs.GGUFValueType.FLOAT64),
        (np.True_, gs.GGUFValueType.BOOL),
        ([True, False], gs.ArrayType(gs.GGUFValueType.BOOL)),
        ([1, 2], gs.ArrayType(gs.GGUFValueType.INT32)),
        ([gs.TokenType.BYTE, 1], gs.ArrayType(gs.GGUFValueType.INT32)),
        ([np.int64(3), np.int8(-3)], gs.ArrayType(gs.GGUFValueType.INT32)),
        ([1, 2**31], gs.ArrayType(gs.GGUFValueType.UINT32)),
        ([-1, 2**31], gs.ArrayType(gs.GGUFValueType.INT64)),
        ([1, 2**63], gs.ArrayType(gs.GGUFValueType.UINT64)),
        ([1, 0.5], gs.ArrayType(gs.GGUFValueType.FLOAT32)),
        ([np.float32(1), 0.5], gs.ArrayType(gs.GGUFValueType.FLOAT32)),
        (("a", "b"), gs.ArrayType(gs.GGUFValueType.STRING)),
        (np.arange(3, dtype=">i2"), gs.ArrayType(gs.GGUFValueType.INT16)),
        (
            [[1], ["x"]],
            gs.ArrayType(
                gs.GGUFValueType.ARRAY,
                (gs.ArrayType(gs.GGUFValueType.INT32), gs.ArrayType(gs.GGUFValueType.STRING)),
            ),
        ),
    ],
)
def test_types_are_inferred_and_values_come_back(value, type):
    written = io.BytesIO()
    gs.write(written, {"k": value})
    model = gs.open(written.getvalue())
    assert model.metadata.type("k") == type
    read = model.metadata["k"]
    if isinstance(value, list | tuple | np.ndarray):
        assert [list(item) if isinstance(item, list) else item for item in map(plain, read)] == list(value)
    else:
        assert read == (value.decode() if isinstance(value, bytes) else value)


def plain(item):
    return list(item) if isinstance(item, np.ndarray) or not isinstance(item, str | int | float | np.generic) else item


FORM = r"the type of an array of arrays is ArrayType\(ARRAY, \(ArrayType\(INT32\), …\)\), with a type for each element"


@pytest.mark.parametrize("form", [lambda pairs: pairs, lambda pairs: [(key, *pair) for key, pair in pairs.items()]])
@pytest.mark.parametrize(
    ("value", "path", "told"),
    [
        ((V.UINT8, 300), "value", "300 does not fit"),
        ((A(V.UINT8), [1, 300]), "value.array[1]", "300 does not fit"),
        ((V.ARRAY, [1]), "value", "ARRAY alone says nothing"),
        ((A(A(V.INT32)), [[1]]), "value", FORM),
        ((A(V.ARRAY, (V.INT32,)), [[1]]), "value", FORM),
        ((A(V.ARRAY, A(V.INT32)), [[1]]), "value", FORM),
    ],
)
def test_errors_of_pairs_name_the_key(form, value, path, told):
    with pytest.raises(
        gs.BuildError, match=rf"^metadata_kv\[1\]\.{re.escape(path)}: {told}.* \(key 'c\\x1b'\)$"
    ) as caught:
        gs.plan(form({"a.b": (V.UINT8, 1), "c\x1b": value}))
    assert caught.value.path == f"metadata_kv[1].{path}"
    assert len(traceback.format_exception(caught.value)) < 10


def test_errors_of_types_that_are_not_inferred_name_the_key():
    with pytest.raises(gs.BuildError, match=r"^metadata_kv\[1\]\.value: an empty list .* \(key 'c\.d'\)$"):
        gs.plan({"a.b": 1, "c.d": []})


def test_an_array_of_arrays_by_its_right_type():
    file = io.BytesIO()
    gs.write(file, {"a.b": (A(V.ARRAY, (A(V.INT32), A(V.INT8))), [[1], [2, 3]])})
    assert [list(item) for item in gs.open(file.getvalue()).metadata["a.b"]] == [[1], [2, 3]]


@pytest.mark.parametrize(("name", "shape"), [("x" * 64, (4,)), ("x", (1, 1, 1, 1, 4))])
def test_what_llama_cpp_refuses_is_written_and_the_readme_says_who_tells(path, name, shape, capsys):
    gs.write(path, {"general.architecture": "llama"}, {name: np.ones(shape, np.float32)})
    assert main(["check", str(path)]) == 0
    command = "gguf-schema check --profile llama.cpp FILE"
    assert command in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert main([*command.split()[1:-1], str(path)]) == 1
    assert "(refused)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("type", "value", "last"),
    [
        (V.BOOL, 2, b"\2"),
        (V.BOOL, np.uint8(255), b"\xff"),
        (A(V.BOOL), [True, 2, 0], b"\1\2\0"),
        (A(V.BOOL), np.array([2, 1, 0]), b"\2\1\0"),
        (A(V.ARRAY, (A(V.BOOL), A(V.BOOL))), [[True], [2]], b"\2"),
    ],
)
def test_bool_bytes_that_default_takes_and_strict_does_not_are_written(path, type, value, last, capsys):
    """They cannot be told from those that were read, which come back byte by byte."""
    gs.write(path, {"general.architecture": (V.STRING, "llama"), "a.b": (type, value)})
    data = path.read_bytes()
    assert data.endswith(last)
    with gs.open(path) as model:
        for metadata in model.metadata, model.metadata.pairs, {**model.metadata, "a.b": (type, model.metadata["a.b"])}:
            again = io.BytesIO()
            gs.write(again, metadata)
            assert again.getvalue() == data
    assert main(["check", str(path)]) == 0
    assert "bool-byte" in capsys.readouterr().out
    assert main(["check", "--strict", str(path)]) == 1


@pytest.mark.parametrize("value", [256, -1, 2.0, "true", None])
def test_what_is_no_bool_byte_is_not_written(value):
    for type, given in (V.BOOL, value), (A(V.BOOL), [True, value]):
        with pytest.raises(gs.BuildError, match=r"^metadata_kv\[0\]\.value"):
            gs.plan({"a.b": (type, given)})
