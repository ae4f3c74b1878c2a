"""Where files come from, and what happens when they go away under live views."""

import contextlib
import gzip
import io
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.demo import demo_model

DATA = demo_model()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_bytes(DATA)
    return path


class Pipe(io.RawIOBase):
    """A stream that cannot seek."""

    def __init__(self, data):
        self.inner = io.BytesIO(data)

    def readable(self):
        return True

    def read(self, size=-1):
        return self.inner.read(size)


class Trickle(io.BytesIO):
    """A file object that gives a few bytes at a time."""

    def __init__(self, data, most=7):
        super().__init__(data)
        self.most = most

    def read(self, size=-1):
        return super().read(min(size, self.most) if size >= 0 else size)


def sources(path):
    yield str(path)
    yield path
    yield DATA
    yield bytearray(DATA)
    yield memoryview(DATA)
    yield np.frombuffer(DATA, np.uint8)
    yield io.BytesIO(DATA)
    yield Trickle(DATA)
    yield Pipe(DATA)
    yield gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA)))
    shifted = io.BytesIO(b"before" + DATA)
    shifted.seek(6)
    yield shifted


def read_all(source):
    with gs.open(source) as model:
        return model.metadata.pairs, [tensor.data.tobytes() for tensor in model.tensors.infos]


def assert_same(one, other):
    assert [pair[:2] for pair in one[0]] == [pair[:2] for pair in other[0]]
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one[0], other[0], strict=True))
    assert one[1] == other[1]


def test_every_source_gives_the_same(path):
    read = [read_all(source) for source in sources(path)]
    assert len(read) == 11
    assert len(read[0][1]) == 11
    for other in read[1:]:
        assert_same(other, read[0])


def test_real_file_objects_and_maps(path):
    with path.open("rb") as file, gs.open(file) as model:
        assert model.tensors["output_norm.weight"].data.tolist() == [1.0] * 64
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        model = gs.open(mapped)
        data = model.tensors["output_norm.weight"].data.copy()
        model.close()
        del model
    assert data.sum() == 64


@pytest.mark.parametrize("source", [3, None, ["x"], io.StringIO("GGUF")])
def test_other_things_are_a_type_error(source):
    with pytest.raises(TypeError):
        gs.open(source)


def test_missing_file_and_folder_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        gs.open(tmp_path / "nothing.gguf")
    with pytest.raises(IsADirectoryError):
        gs.open(tmp_path)


def test_data_is_read_only_and_mapped(path):
    with gs.open(path) as model:
        data = model.tensors["output_norm.weight"].data
        with pytest.raises(ValueError, match="read-only"):
            data[0] = 2
        assert isinstance(data.base, mmap.mmap | np.ndarray | memoryview)
        tokens = model.metadata["tokenizer.ggml.token_type"]
        with pytest.raises(ValueError, match="read-only"):
            tokens[0] = 2


def test_views_outlive_the_model(path):
    with gs.open(path) as model:
        data = model.tensors["output_norm.weight"].data
        tensor = model.tensors["token_embd.weight"]
    assert data.sum() == 64
    with pytest.raises(gs.GGUFError, match="closed"):
        _ = tensor.data
    path.unlink()
    assert data.sum() == 64


def test_close_twice(path):
    model = gs.open(path)
    model.close()
    model.close()


def test_shrunken_file_is_an_error_not_a_crash(path):
    """Asked for data that is gone, a model raises. (A mapped array that shrinks later cannot be saved by anyone.)"""
    program = f"""
import gguf_schema as gs
model = gs.open({str(path)!r})
import os
os.truncate({str(path)!r}, model.data_offset)
try:
    model.tensors["token_embd.weight"].data
except gs.GGUFError as error:
    print("refused:", error)
print(len(model.metadata["tokenizer.ggml.tokens"]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "refused: tensor 'token_embd.weight': the file has shrunk" in run.stdout
    assert run.stdout.endswith("261\n")


def test_unseekable_stream_through_the_construct():
    assert gs.GGUF.build(gs.GGUF.parse_stream(Pipe(DATA))) == DATA


def test_what_trickles_through_the_construct_is_whole_or_refused():
    """The construct takes a read that gives too little for the end of the stream, never for the value."""
    written = io.BytesIO()
    gs.write(written, {"a": ["x" * 40, "y" * 50], "b": np.arange(20), "c": "z" * 60}, {"t": np.ones(96, np.float32)})
    data = written.getvalue()
    read = []
    for most in range(1, len(data)):
        with contextlib.suppress(gs.TruncatedError):
            parsed = gs.GGUF.parse_stream(Trickle(data, most))
            assert parsed.tensor_data == np.ones(96, "<f4").tobytes()
            assert gs.GGUF.build(parsed) == data
            read.append(most)
    assert read == list(range(4 * 96, len(data)))


@pytest.mark.parametrize(
    ("most", "path", "offset", "problem"),
    [
        (3, "magic", 0, "the file ends after b'GGU'"),
        (7, "version", 4, "a number of 4 bytes expected, 3 bytes left"),
        (30, "metadata_kv[0].value.array[0].len", 49, "40 bytes declared, 30 came"),
        (50, "metadata_kv[0].value.array[1].len", 97, "58 bytes expected, 50 came"),
        (100, "tensor_data", 192, "256 bytes declared, 100 came"),
    ],
)
def test_what_trickles_is_refused_where_it_does(most, path, offset, problem):
    pair = {"key": "k", "value_type": 9, "value": {"type": 8, "array": ["x" * 40, "y" * 50]}}
    info = {"name": "t", "dimensions": [64], "type": 0}
    data = gs.GGUF.build({"metadata_kv": [pair], "tensor_infos": [info], "tensor_data": bytes(256)})
    with pytest.raises(gs.TruncatedError) as caught:
        gs.GGUF.parse_stream(Trickle(data, most))
    assert (caught.value.path, caught.value.offset) == (path, offset)
    assert problem in caught.value.problem


def test_a_file_object_that_shrinks_is_an_error():
    stream = io.BytesIO(DATA)
    model = gs.open(stream)
    stream.truncate(model.data_offset)
    with pytest.raises(gs.GGUFError, match=r"^tensor 'token_embd\.weight': the file has shrunk") as caught:
        _ = model.tensors["token_embd.weight"].data
    assert caught.value.offset is None


def test_pipes_by_path(tmp_path):
    """What cannot seek is read whole; what is no GGUF file is refused by its first bytes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for data in DATA, b"\0" * (1 << 20):
        writer = subprocess.Popen(
            [sys.executable, "-c", f"import sys; open({str(pipe)!r}, 'wb').write(sys.stdin.buffer.read())"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=writer.communicate, args=(data,)).start()
        if data is DATA:
            assert_same(read_all(pipe), read_all(DATA))
        else:
            with pytest.raises(gs.FileKindError, match="zeros"):
                gs.open(pipe)
        writer.wait()


def test_endless_stream_is_refused_at_once():
    with open("/dev/zero", "rb") as zeros, pytest.raises(gs.FileKindError, match="zeros"):
        gs.open(zeros)
