"""Data from everywhere: the same bytes from each, in bounded memory, by the kernel or not; sources that change."""

import errno
import gzip
import io
import itertools
import os
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import edit
from gguf_schema.blocks import block
from gguf_schema.cli import main
from gguf_schema.convert import convert
from gguf_schema.shards import merge, open_shards, split
from gguf_schema.targets import chunks_of, copying, pieces
from gguf_schema.targets.copying import BATCH, BLOCK

from .short_writes import ShortWrites

T = gs.GGMLQuantizationType
OLD = b"the old file"
ROWS, COLUMNS = 24, 512
NUMBERS = np.arange(ROWS * COLUMNS, dtype="<f4").reshape(ROWS, COLUMNS)


def written(tensors, metadata=None, **options):
    out = io.BytesIO()
    gs.write(out, metadata or {}, tensors, **options)
    return out.getvalue()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 100 bytes, so that little data is many of them."""
    monkeypatch.setattr(pieces, "CHUNK", 100)
    monkeypatch.setattr(copying, "BATCH", 64)


class Pipe(io.RawIOBase):
    """A stream that cannot seek and gives at most 1000 bytes at once."""

    def __init__(self, data):
        super().__init__()
        self.left = data

    def readable(self):
        return True

    def readinto(self, buffer):
        given, self.left = self.left[: min(1000, len(buffer))], self.left[min(1000, len(buffer)) :]
        buffer[: len(given)] = given
        return len(given)


def positioned(file, offset):
    file.seek(offset)
    return file


def as_generator(data):
    yield from (data[start : start + 777] for start in range(0, len(data), 777))


DATA = NUMBERS.tobytes()
IN_MEMORY = {
    "array": lambda: NUMBERS,
    "array of the other order": lambda: NUMBERS.astype(">f4"),
    "array in columns": lambda: np.asfortranarray(NUMBERS),
    "array backwards": lambda: NUMBERS[::-1, ::-1].copy()[::-1, ::-1],
    "every second row": lambda: np.repeat(NUMBERS, 2, axis=0)[::2],
    "array of bytes": lambda: np.frombuffer(DATA, np.uint8),
    "bytes": lambda: DATA,
    "bytearray": lambda: bytearray(DATA),
    "memoryview": lambda: memoryview(NUMBERS),
    "list of chunks": lambda: [DATA[:1], b"", memoryview(DATA)[1:5000], bytearray(DATA[5000:])],
    "list of arrays": lambda: list(NUMBERS),
    "generator": lambda: as_generator(DATA),
    "callable, a generator": lambda: lambda: as_generator(DATA),
    "callable, a list": lambda: lambda: [DATA[:4], DATA[4:]],
    "callable, bytes": lambda: lambda: DATA,
    "callable, an array": lambda: lambda: NUMBERS.copy().T.copy().T,
    "file object": lambda: positioned(io.BytesIO(b"x" * 99 + DATA + b"y"), 99),
    "range of a file object": lambda: gs.FileRange(positioned(io.BytesIO(b"x" * 99 + DATA), 5), 99),
    "stream": lambda: Pipe(DATA + b"more"),
}
ON_DISK = {
    "path": lambda folder: gs.FileRange(folder / "raw", 99),
    "path and size": lambda folder: gs.FileRange(str(folder / "raw"), 99, len(DATA)),
    "open file": lambda folder: positioned((folder / "raw").open("rb"), 99),
    "range of an open file": lambda folder: gs.FileRange((folder / "raw").open("rb"), 99),
    "raw file": lambda folder: positioned((folder / "raw").open("rb", buffering=0), 99),
    "gzip": lambda folder: positioned(gzip.GzipFile(folder / "raw.gz"), 99),
    "map": lambda folder: np.memmap(folder / "raw", "<f4", "r", 99, NUMBERS.shape),
    "map, copy on write": lambda folder: np.memmap(folder / "raw", "<f4", "c", 99, NUMBERS.shape),
    "map in columns": lambda folder: np.memmap(folder / "columns", "<f4", "r+", 0, NUMBERS.shape, "F"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "raw").write_bytes(b"x" * 99 + DATA + b"y")
    (tmp_path / "columns").write_bytes(NUMBERS.tobytes("F"))
    with gzip.open(tmp_path / "raw.gz", "wb") as file:
        file.write(b"x" * 99 + DATA + b"y")
    return tmp_path


def close(data):
    for file in data, getattr(data, "file", None):
        if hasattr(file, "close"):
            file.close()


@pytest.mark.parametrize("source", [*IN_MEMORY, *ON_DISK])
@pytest.mark.parametrize("chunk", [None, 100])
def test_every_source_gives_the_same_bytes(folder, path, source, chunk, monkeypatch):
    if chunk:
        monkeypatch.setattr(pieces, "CHUNK", chunk)
        monkeypatch.setattr(copying, "BATCH", 64)
    expected = gs.GGUF.build(
        {
            "metadata_kv": [{"key": "a.b", "value_type": 4, "value": 1}],
            "tensor_infos": [
                {"name": "t", "dimensions": [COLUMNS, ROWS], "type": 0, "offset": 0},
                {"name": "u", "dimensions": [3], "type": 0, "offset": len(DATA)},
            ],
            "tensor_data": DATA + b"123456789012" + bytes(20),
        }
    )
    for target in path, io.BytesIO():
        data = IN_MEMORY[source]() if source in IN_MEMORY else ON_DISK[source](folder)
        tensors = [gs.NewTensor("t", T.F32, (COLUMNS, ROWS), data), gs.NewTensor("u", T.F32, (3,), b"123456789012")]
        gs.write(target, {"a.b": 1}, tensors)
        assert (target.getvalue() if target is not path else path.read_bytes()) == expected
        close(data)


BLOCKS = {
    T.F32: [4],
    T.F16: [2],
    T.I8: [1],
    T.Q8_0: [2, *[1] * 32],  # d, qs
    T.Q4_K: [2, 2, *[1] * 12, *[1] * 128],  # d, dmin, scales, qs
    T.IQ2_XXS: [2, *[2] * 32],  # d, qs
}
"""The bytes of each number of a block, from ggml-common.h."""


def swapped(data, sizes):
    """Blocks in the other byte order."""
    out, position = b"", 0
    for size in itertools.cycle(sizes):
        if position == len(data):
            return out
        out += data[position : position + size][::-1]
        position += size
    return out


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("source_order", ["<", ">"])
@pytest.mark.parametrize("type", BLOCKS)
@pytest.mark.usefixtures("small_chunks")
def test_tensors_of_open_files_in_either_order(tmp_path, path, order, source_order, type):
    """By a Tensor of a path and of memory, and by the array that it gives."""
    raw = np.random.default_rng(0).integers(0, 256, (6, 4 * sum(BLOCKS[type])), np.uint8)
    (tmp_path / "source.gguf").write_bytes(written({"a": np.ones(3, np.float32), "t": (type, raw)}, order=source_order))
    expected = raw.tobytes() if order == source_order else swapped(raw.tobytes(), BLOCKS[type])
    with gs.open(tmp_path / "source.gguf") as model, gs.open((tmp_path / "source.gguf").read_bytes()) as in_memory:
        tensor = model.tensors["t"]
        for data in tensor, in_memory.tensors["t"], tensor.data:
            gs.write(path, {}, [gs.NewTensor("n", type, tensor.dimensions, data)], order=order)
            with gs.open(path) as copy:
                assert copy.tensors["n"].data.tobytes() == expected
                assert path.read_bytes()[copy.data_offset :].rstrip(b"\0") == expected.rstrip(b"\0")
        for tensors in model.tensors, {"n": in_memory.tensors["t"]}, {"n": (type, tensor.data)}:
            gs.write(path, {}, tensors, order=order)
            with gs.open(path) as copy:
                assert copy.tensors.infos[-1].data.tobytes() == expected


GIVEN = {
    "array": lambda array: array,
    "list": list,
    "numbers": lambda array: iter(array.reshape(-1)),
    "callable, an array": lambda array: lambda: array,
    "callable, a generator": lambda array: lambda: (row for row in array),
}
"""An array in the ways that a NewTensor takes it."""


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("given_order", ["<", ">"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("type", BLOCKS)
def test_arrays_are_swapped_and_bytes_are_not(given, type, given_order, order):
    raw = np.random.default_rng(0).integers(0, 100, (6, 4 * sum(BLOCKS[type])), np.uint8)  # no number is NaN
    struct = block(type, given_order)
    array = raw.view(struct.dtype())
    dimensions = (array.shape[1] * struct.block_size, 6)
    for data, is_swapped in (array, order != given_order), (raw, False):
        out = written([gs.NewTensor("t", type, dimensions, GIVEN[given](data))], order=order)
        expected = swapped(raw.tobytes(), BLOCKS[type]) if is_swapped else raw.tobytes()
        with gs.open(out) as model:
            assert model.tensors["t"].data.tobytes() == expected


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    ("type", "dtype"),
    [(T.F32, "<i4"), (T.F32, ">u4"), (T.F32, "f8"), (T.F32, "f2"), (T.I32, "f4"), (T.Q8_0, "i1"), (T.I8, "?")],
)
def test_arrays_of_another_dtype_are_refused(path, given, type, dtype):
    data = GIVEN[given](np.ones((4, 32), dtype))
    with pytest.raises(gs.BuildError, match=r"^tensor 'x'(\.data)?: expected dtype .* in either byte order, or uint8"):
        gs.write(path, {}, [gs.NewTensor("x", type, (32, 4), data)])
    assert path.read_bytes() == OLD


def test_arrays_of_unknown_types_are_of_bytes():
    assert written([gs.NewTensor("t", 77, (3,), np.full(6, 7, np.uint8))]).endswith(b"\7" * 6 + bytes(26))
    with pytest.raises(gs.BuildError, match=r"^tensor 't'\.data: expected dtype uint8 for bytes; found float32"):
        written([gs.NewTensor("t", 77, (3,), np.ones(6, np.float32))])


def test_a_tensor_of_unknown_type_keeps_its_bytes_but_is_not_swapped(tmp_path):
    data = written([gs.NewTensor("t", 77, (3,), b"123456"), gs.NewTensor("u", 0, (1,), b"1234")])
    with gs.open(data) as model:
        assert model.tensors["t"].n_bytes == 32  # up to the next tensor
        assert gs.open(written(model.tensors)).tensors["t"].data[:6].tobytes() == b"123456"
        with pytest.raises(gs.BuildError, match=r"^tensor 't'\.type: nobody knows how to swap the bytes of type 77$"):
            written(model.tensors, order=">")


def test_empty_tensors_of_every_source(tmp_path):
    (tmp_path / "raw").write_bytes(b"")
    sources = [b"", [], iter([]), lambda: [b""], gs.FileRange(tmp_path / "raw"), np.zeros(0, np.float32), io.BytesIO()]
    for source in sources:
        gs.write(tmp_path / "out.gguf", {}, [gs.NewTensor("t", T.F32, (0,), source)])
        with gs.open(tmp_path / "out.gguf") as model:
            assert model.tensors["t"].n_bytes == 0


SIZE = 4 * 300


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([bytes(SIZE - 1)], f"{SIZE} bytes expected, {SIZE - 1} came from chunks"),
        ([], f"{SIZE} bytes expected, 0 came from chunks"),
        ([bytes(SIZE), b"x"], f"{SIZE} bytes expected, more came from chunks"),
        (lambda: itertools.repeat(b"abc"), f"{SIZE} bytes expected, more came from chunks"),
        (lambda: bytes(SIZE + 4), f"{SIZE} bytes expected, more came from chunks"),
        ([b"x", "text"], "a chunk is no bytes: .*'str'"),
        ([5], "a chunk is no bytes: .*'int'"),
        (lambda: None, "expected bytes, an array or an iterable of such, found NoneType"),
        ([np.array([None])], "a chunk is no bytes: an array of Python objects has no bytes"),
        ([memoryview(bytes(2 * SIZE))[::2]], "a chunk is no bytes: .*contiguous"),
        (Pipe(bytes(SIZE - 1)), f"{SIZE} bytes expected, {SIZE - 1} came from chunks"),
    ],
    ids=map(str, range(11)),
)
def test_sources_that_give_too_little_too_much_or_no_bytes(path, data, told):
    with pytest.raises(gs.BuildError, match=f"^tensor 'x\\.y': {told}"):
        gs.write(path, {}, [gs.NewTensor("a", 0, (1,), b"1234"), gs.NewTensor("x.y", T.F32, (300,), data)])
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (io.BytesIO(bytes(SIZE - 1)), f"{SIZE} bytes expected at byte 0 of <file object>, {SIZE - 1} are there"),
        (gs.FileRange(io.BytesIO(b"12"), 5), f"{SIZE} bytes expected at byte 5 of <file object>, 0 are there"),
        (gs.FileRange(io.BytesIO(bytes(SIZE)), 0, 8), f"{SIZE} bytes expected for these dimensions, 8 found"),
        (gs.FileRange(io.BytesIO(b"12"), 0, -1), "-1 bytes expected"),
        (gs.FileRange(io.BytesIO(bytes(SIZE)), -1), f"{SIZE} bytes expected at byte -1"),
        (io.StringIO("text"), "expected a file object opened in binary mode"),
        ("raw", "expected an array, bytes, a file or an iterable, found str"),
        (None, "expected an array, bytes, a file or an iterable, found NoneType"),
        (np.array([None] * 150), "TypeError: an array of Python objects has no bytes"),
    ],
    ids=map(str, range(9)),
)
def test_what_is_told_before_anything_is_written(data, told):
    with pytest.raises(gs.BuildError, match=rf"^tensor 't'(\.data)?: {told}"):
        gs.plan({}, [gs.NewTensor("t", T.F32, (300,), data)])


def test_a_type_without_a_size_needs_data_that_have_one(tmp_path):
    (tmp_path / "raw").write_bytes(b"0123456789")
    for data in b"23456", gs.FileRange(tmp_path / "raw", 2, 5):
        assert b"23456" + bytes(27) in written([gs.NewTensor("t", 77, (5,), data)])
    for data in [b"23456"], gs.FileRange(tmp_path / "raw", 2):
        with pytest.raises(gs.BuildError, match=r"^tensor 't'\.data: the size of type 77 is not known: give bytes"):
            written([gs.NewTensor("t", 77, (5,), data)])


def test_an_error_of_a_source_is_its_own(path):
    def failing():
        yield b"1234"
        raise ZeroDivisionError("the source's own")

    with pytest.raises(ZeroDivisionError, match="own"):
        gs.write(path, {}, [gs.NewTensor("t", T.F32, (2,), failing())])
    with pytest.raises(FileNotFoundError, match="nothing"):
        gs.write(path, {}, [gs.NewTensor("t", T.F32, (2,), gs.FileRange(path.parent / "nothing"))])
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


# Plans and progress.


def test_a_plan_says_what_will_be_written(folder, path):
    tensors = [
        gs.NewTensor("raw\x1b[2J", T.F32, (COLUMNS, ROWS), gs.FileRange(folder / "raw", 99)),
        gs.NewTensor("short", T.F32, (3,), lambda: [bytes(12)]),
    ]
    plan = gs.plan({"a.b": 1}, tensors)
    head = 24 + (8 + 3) + 4 + 4 + (8 + 7 + 4 + 16 + 4 + 8) + (8 + 5 + 4 + 8 + 4 + 8)
    assert head == 127
    assert plan.size == 128 + len(DATA) + 32
    lines = [line.split(maxsplit=2) for line in str(plan).splitlines()]
    assert " ".join(lines[0]).split() == ["offset", "bytes", "what", "from"]
    assert [(int(line[0]), int(line[1])) for line in lines[1:-1]] == [
        (0, head),
        (127, 1),
        (128, len(DATA)),
        (128 + len(DATA), 12),
        (128 + len(DATA) + 12, 20),
    ]
    assert "tensor 'raw\\x1b[2J'" in str(plan)
    assert f"from {folder / 'raw'} from byte 99" in str(plan)
    assert str(plan).endswith(f"\n{plan.size} bytes in all")
    assert path.read_bytes() == OLD
    for _ in range(2):  # nothing is used up
        plan.save(path)
        assert path.stat().st_size == plan.size


def test_progress_ends_with_the_whole(folder, path, small_chunks, monkeypatch):
    monkeypatch.setattr(copying, "STEP", 1000)
    shown = []
    tensors = {"t": gs.NewTensor("", T.F32, (COLUMNS, ROWS), gs.FileRange(folder / "raw", 99)), "u": NUMBERS}
    gs.write(path, {}, tensors, show=lambda *args: shown.append(args))
    done = [done for done, _ in shown]
    assert {whole for _, whole in shown} == {path.stat().st_size}
    assert done == sorted(done)
    assert done[-1] == path.stat().st_size
    assert len(done) > 2 * len(DATA) // 1000
    assert max(after - before for before, after in itertools.pairwise(done)) <= 1000


def written_again(model, folder, show):
    gs.write(folder / "out", model.metadata, model.tensors, show=show)


def converted(model, folder, show):
    convert(model, order=">").save(folder / "out", show=show)


def divided(model, folder, show):
    split(model, max_tensors=2).save(folder / "out", show=show)


def merged(model, folder, show):
    split(model, max_tensors=2).save(folder / "in")
    with open_shards(folder / "in-00001-of-00003.gguf") as shards:
        merge(shards).save(folder / "out", show=show)


def edited(model, folder, show):
    edit.save(edit.plan(model, [edit.DeleteTensor("1"), edit.Align(64)]), folder / "out", show=show)


@pytest.mark.parametrize("is_on_disk", [True, False])
@pytest.mark.parametrize("action", [written_again, converted, divided, merged, edited])
def test_progress_of_every_operation_goes_up_to_the_whole_of_all_files(
    tmp_path, action, is_on_disk, small_chunks, monkeypatch
):
    monkeypatch.setattr(copying, "STEP", 1000)
    data = written({str(number): np.full(1000 + number, number, np.float32) for number in range(5)})
    (tmp_path / "model.gguf").write_bytes(data)
    shown = []
    with gs.open(tmp_path / "model.gguf" if is_on_disk else data) as model:
        action(model, tmp_path, lambda *counts: shown.append(counts))
    files = list(tmp_path.glob("out*"))
    assert len(files) == (3 if action is divided else 1)
    size = sum(file.stat().st_size for file in files)
    done = [done for done, _ in shown]
    assert {whole for _, whole in shown} == {size}
    assert done == sorted(done)
    assert done[-1] == size
    assert max(after - before for before, after in itertools.pairwise([0, *done])) <= 1000


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no such call")
@pytest.mark.parametrize("fails", [False, True])
def test_the_disk_begins_early(folder, path, small_chunks, monkeypatch, fails):
    """What is written is handed to it piece by piece, each once, and a system that cannot is none the worse."""
    told = []

    def noting(file, start, size, advice):
        assert advice == os.POSIX_FADV_DONTNEED
        told.append((start, size, os.fstat(file).st_size))
        if fails:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(copying, "STEP", 1000)
    monkeypatch.setattr(os, "posix_fadvise", noting)
    tensors = {"t": gs.NewTensor("", T.F32, (COLUMNS, ROWS), gs.FileRange(folder / "raw", 99)), "u": NUMBERS}
    gs.write(path, {}, tensors)
    ends = list(itertools.accumulate(size for _, size, _ in told))
    assert [start for start, _, _ in told] == [0, *ends[:-1]]
    assert min(size for _, size, _ in told) >= 1000
    assert path.stat().st_size - ends[-1] < 1000
    assert sorted({there for _, _, there in told})[0] < path.stat().st_size  # while the rest was not there yet
    with gs.open(path) as model:
        assert model.tensors["t"].data.tobytes() == (folder / "raw").read_bytes()[99 : 99 + len(DATA)]


# The kernel's copy.


@pytest.fixture
def source(tmp_path):
    """A file of tensors of awkward sizes."""
    rng = np.random.default_rng(1)
    path = tmp_path / "source.gguf"
    tensors = {f"t{n}": rng.integers(0, 99, 10 + n * 999, np.int8) for n in range(9)}
    gs.write(path, {"a.b": "x" * 77}, tensors, alignment=BLOCK)  # so that blocks could be shared
    return path


def copied(source, target):
    """The bytes of a copy with other metadata, made from the file; and those that they should be."""
    with gs.open(source) as model:
        arrays = {name: tensor.data.copy() for name, tensor in model.tensors.items()}
        expected = written(arrays, {"c.d": 5}, alignment=BLOCK)
        gs.write(target, {"c.d": 5}, model.tensors, alignment=BLOCK)
    return target.read_bytes(), expected


@pytest.fixture
def calls(monkeypatch):
    """The (size, position in the source) of each of the kernel's copies that worked."""
    original, noted = os.copy_file_range, []

    def noting(source, target, size, position):
        done = original(source, target, size, position)
        noted.append((done, position))
        return done

    monkeypatch.setattr(os, "copy_file_range", noting)
    return noted


needs_copy_file_range = pytest.mark.skipif(not hasattr(os, "copy_file_range"), reason="this system has no such call")


@needs_copy_file_range
def test_the_kernel_copies_what_is_on_disk(source, path, calls):
    got, expected = copied(source, path)
    assert got == expected
    with gs.open(source) as model:
        assert sum(size for size, _ in calls) == sum(tensor.n_bytes for tensor in model.tensors.values())


@needs_copy_file_range
def test_neighbours_are_copied_at_once(tmp_path, path, calls):
    gs.write(tmp_path / "source.gguf", {}, {f"t{n}": np.full(1024, n, np.float32) for n in range(10)}, alignment=BLOCK)
    with gs.open(tmp_path / "source.gguf") as model:
        tensors = list(model.tensors.values())
        gs.write(path, {"a.b": 1}, tensors, alignment=BLOCK)
        assert calls == [(10 * BLOCK, model.data_offset)]
        calls.clear()
        gs.write(path, {"a.b": 1}, [*tensors[5:], *tensors[:5]], alignment=BLOCK)
        half = 5 * BLOCK
        assert calls == [(half, model.data_offset + half), (half, model.data_offset)]
        calls.clear()
        gs.write(path, {"a.b": "x" * 99}, tensors)  # all bytes move within their pages
        assert calls == []
        with gs.open(path) as copy:
            assert copy.tensors["t7"].data.tolist() == [7] * 1024


@pytest.mark.parametrize("number", sorted(copying.UNABLE), ids=errno.errorcode.get)
@pytest.mark.parametrize("sendfile", [True, False])
@needs_copy_file_range
def test_what_the_kernel_cannot_do_is_done_without(source, path, monkeypatch, number, sendfile):
    def unable(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", unable)
    if not sendfile:
        monkeypatch.setattr(os, "sendfile", unable)
    got, expected = copied(source, path)
    assert got == expected


@pytest.mark.usefixtures("small_chunks")
def test_systems_without_these_calls(source, path, monkeypatch):
    monkeypatch.delattr(os, "copy_file_range", raising=False)
    monkeypatch.delattr(os, "sendfile", raising=False)
    got, expected = copied(source, path)
    assert got == expected


@needs_copy_file_range
def test_short_copies_go_on(source, path, monkeypatch):
    original = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", lambda a, b, size, at: original(a, b, min(size, 113), at))
    got, expected = copied(source, path)
    assert got == expected


@needs_copy_file_range
def test_a_copy_that_breaks_off_goes_on_another_way(source, path, monkeypatch):
    """After some bytes, it says that there are no more, as file systems do that make up their files."""
    original, left = os.copy_file_range, [500]

    def breaking_off(source, target, size, position):
        done = original(source, target, min(size, left[0]), position) if left[0] else 0
        left[0] -= done
        return done

    monkeypatch.setattr(os, "copy_file_range", breaking_off)
    got, expected = copied(source, path)
    assert left == [0]
    assert got == expected


@needs_copy_file_range
def test_other_errors_of_the_kernel_are_errors(source, path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(OSError, match=rf"No space left on device: '{path}'$"), gs.open(source) as model:
        gs.write(path, {}, model.tensors, alignment=BLOCK)
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(path.parent)) == ["model.gguf", "source.gguf"]


@needs_copy_file_range
def test_whole_blocks_are_asked_for_where_files_could_share_them(tmp_path, path, calls):
    """Both positions are at the same place in a block: the first copy leads to the next one's border."""
    size = 2 * BATCH
    (tmp_path / "raw").write_bytes(os.urandom(2 * size))
    plan = gs.plan({}, [gs.NewTensor("t", T.I8, (size,), gs.FileRange(tmp_path / "raw"))])
    start = next(offset for offset, piece in plan.placed() if piece.what == "tensor 't'")
    position = start + 3 * BLOCK
    gs.write(path, {}, [gs.NewTensor("t", T.I8, (size,), gs.FileRange(tmp_path / "raw", position))])
    assert [position for _, position in calls] == [position, position + BATCH - start]
    assert path.read_bytes()[start:] == (tmp_path / "raw").read_bytes()[position : position + size]


@pytest.fixture(params=["btrfs", "xfs"])
def sharing_disk(request, tmp_path):
    """A disk of 320 MiB whose files can share blocks."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    image.touch()
    os.truncate(image, 320 << 20)
    folder.mkdir()
    for command in [f"mkfs.{request.param}", "-q", str(image)], ["mount", "-o", "loop", str(image), str(folder)]:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"no such disk can be made: {error}")
        if done.returncode:
            pytest.skip(f"no such disk can be made: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_files_share_blocks_where_they_can(sharing_disk):
    """A file of most of the disk is written again with another head: for a second one there is no room."""
    size = os.statvfs(sharing_disk).f_bfree * os.statvfs(sharing_disk).f_frsize * 6 // 10 >> 20 << 20
    chunks = (np.random.default_rng(n).bytes(1 << 20) for n in range(size >> 20))
    gs.write(sharing_disk / "old.gguf", {}, [gs.NewTensor("t", T.I8, (size,), chunks)], alignment=BLOCK)
    with gs.open(sharing_disk / "old.gguf") as model:
        pair = {"key": "a.b", "value_type": gs.GGUFValueType.STRING, "value": "x" * 9999}
        head = {"metadata_kv": [*model.head.metadata_kv, pair], "tensor_infos": model.head.tensor_infos}
        gs.rewrite(model, head).save(sharing_disk / "new.gguf")
        with gs.open(sharing_disk / "new.gguf") as again:
            assert np.array_equal(again.tensors["t"].data, model.tensors["t"].data)
        with pytest.raises(OSError, match=r"No space left on device: .* bytes needed"):
            gs.write(sharing_disk / "third.gguf", {}, model.tensors)
    assert sorted(name for name in os.listdir(sharing_disk) if "gguf" in name) == ["new.gguf", "old.gguf"]


# Sources that change.


def shrink(file):
    os.truncate(file, os.path.getsize(file) - 1000)


def change(file):
    with open(file, "rb+") as opened:
        opened.seek(-1000, os.SEEK_END)
        opened.write(b"changed")
    os.utime(file, ns=(0, 0))


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("when", ["before", "while"])
@pytest.mark.parametrize("how", [shrink, change])
@pytest.mark.parametrize("alignment", [32, BLOCK])
def test_a_source_that_changes(source, path, monkeypatch, kernel, order, when, how, alignment):
    if not kernel:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
        monkeypatch.delattr(os, "sendfile", raising=False)

    def give():
        if when == "while":
            how(source)
        return b"1234"

    with gs.open(source) as model:
        if when == "before":
            how(source)
        tensors = [*model.tensors.values()]
        tensors.insert(5, gs.NewTensor("new", T.F32, (1,), give))
        with pytest.raises(gs.BuildError, match=r"^tensor 't\d': .*(shrunk|came from|has changed since it was opened)"):
            gs.write(path, {}, tensors, order=order, alignment=alignment)
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(path.parent)) == ["model.gguf", "source.gguf"]


def test_a_source_that_shrinks_while_it_is_swapped(tmp_path, path):
    gs.write(tmp_path / "source.gguf", {}, {"t": np.ones(1000, np.float32)})
    with gs.open(tmp_path / "source.gguf") as model:
        os.truncate(tmp_path / "source.gguf", model.size - 999)
        with pytest.raises(
            gs.BuildError, match=r"^tensor 't': 4000 bytes expected, 0 came from .*source\.gguf from byte"
        ):
            gs.write(path, {}, model.tensors, order=">")
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("how", [shrink, change])
def test_a_range_of_a_path_that_changes(tmp_path, path, how):
    (tmp_path / "raw").write_bytes(bytes(5000))
    plan = gs.plan({}, [gs.NewTensor("t", T.I8, (5000,), gs.FileRange(tmp_path / "raw"))])
    how(tmp_path / "raw")
    with pytest.raises(gs.BuildError, match=r"^tensor 't': .*raw"):
        plan.save(path)
    assert path.read_bytes() == OLD


def test_a_model_that_was_closed(source, path):
    with gs.open(source) as model:
        plan = gs.plan({}, model.tensors)
    with pytest.raises(gs.BuildError, match=r"^tensor 't0': the file is closed"):
        plan.save(path)
    with pytest.raises(gs.BuildError, match=r"^tensor 't0': the file is closed"):
        gs.plan({}, model.tensors)
    assert path.read_bytes() == OLD


def test_a_mapped_file_that_shrinks_is_an_error(tmp_path, path):
    """The process is not killed: the system reads the map for us, and says that it is not there."""
    program = f"""
import os, numpy as np, gguf_schema as gs
data = np.memmap({str(tmp_path / "raw")!r}, np.float32, "w+", shape=(1 << 20,))
os.truncate({str(tmp_path / "raw")!r}, 1 << 20)
try:
    gs.write({str(path)!r}, {{}}, {{"t": data}})
except OSError as error:
    print("refused", error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("refused"), (run.returncode, run.stderr)
    assert path.read_bytes() == OLD


# Memory.

MIB = 1 << 20
MEMORY = """
import itertools, os, resource, sys
import numpy as np, gguf_schema as gs
from tools.memory import peak_memory, reset_peak_memory
folder, way, order = sys.argv[1:]
raw, size = os.path.join(folder, "raw"), 300 << 20
with open(raw, "wb") as file:
    os.truncate(raw, size)
rows = size // 4 // 1024
def tensor(data):
    return [gs.NewTensor("t", gs.GGMLQuantizationType.F32, (1024, rows), data)]
def tensors():
    if way == "map":
        return tensor(np.memmap(raw, "<f4", "r"))
    if way == "map, written":
        return tensor(np.memmap(raw, "<f4", "r+"))
    if way == "small maps":
        return {f"t{n}": row for n, row in enumerate(np.memmap(raw, "<f4", "r").reshape(4096, -1))}
    if way == "every second row":
        os.truncate(raw, 2 * size)
        return tensor(np.memmap(raw, "<f4", "r").reshape(-1, 1024)[::2])
    if way == "path":
        return tensor(gs.FileRange(raw))
    if way == "file object":
        return tensor(open(raw, "rb"))
    if way == "chunks":
        return tensor(bytes(1 << 20) for _ in range(300))
    if way == "chunks of maps":
        return tensor(iter(np.memmap(raw, "<f4", "r").reshape(300, -1)))
    gs.write(os.path.join(folder, "source.gguf"), {}, tensor(gs.FileRange(raw)))
    model = gs.open(os.path.join(folder, "source.gguf"))
    return model.tensors if way == "tensor" else [model.tensors["t"].data] and tensor(model.tensors["t"].data)
given = tensors()
reset_peak_memory()
before = peak_memory()
gs.write(os.path.join(folder, "out.gguf"), {}, given, order=order)
print(peak_memory() - before)
"""
WAYS = ("map", "map, written", "small maps", "every second row", "path", "file object", "chunks", "chunks of maps")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("way", [*WAYS, "tensor", "tensor data"])
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peak memory is measured on Linux only")
def test_memory_is_bounded(tmp_path, way, order):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEMORY, str(tmp_path), way, order],
        capture_output=True,
        text=True,
        check=False,
        cwd=os.path.dirname(os.path.dirname(__file__)),
    )
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) <= 32 * MIB


@pytest.mark.parametrize("kind", ["numpy", "mmap", "mmap, as numpy's class"])
def test_what_was_written_to_a_private_map_stays(tmp_path, path, kind):
    """Its pages are nowhere else: they may not be let go of."""
    import mmap

    size = 4 * MIB
    (tmp_path / "raw").write_bytes(bytes(size))
    with (tmp_path / "raw").open("rb") as file:
        if kind == "numpy":
            data = np.memmap(file, np.uint8, "c")
        else:
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
            data = data.view(np.memmap) if kind != "mmap" else data
    data[:] = 7
    gs.write(path, {}, [gs.NewTensor("t", T.I8, (size,), data)])
    assert (data == 7).all()
    assert path.read_bytes().endswith(b"\7" * size)


def test_what_was_written_to_a_shared_map_stays(tmp_path, path):
    data = np.memmap(tmp_path / "raw", np.uint8, "w+", shape=(4 * MIB,))
    data[:] = 7
    gs.write(path, {}, [gs.NewTensor("t", T.I8, (4 * MIB,), data)])
    assert (data == 7).all()
    assert (tmp_path / "raw").read_bytes() == b"\7" * 4 * MIB


def test_large_paddings_are_written_in_parts(path):
    """An alignment of 64 MiB: a small file with much padding."""
    shown = []
    gs.write(path, {}, {"t": np.ones(1, np.float32)}, alignment=1 << 26, show=lambda *args: shown.append(args))
    assert path.stat().st_size == 2 << 26
    assert len(shown) >= 128
    with gs.open(path) as model:
        assert model.tensors["t"].data.tolist() == [1]


def test_a_pipe_is_written_into_from_files(source, tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with gs.open(source) as model:
        gs.write(pipe, {}, model.tensors)
        reader.join()
        assert read == [written(model.tensors)]


@pytest.fixture
def full_pipe():
    """The writing end of a pipe that nobody reads; it does not wait."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with open(read, "rb"), open(write, "wb", buffering=0) as writer:
        yield writer


def test_a_file_that_does_not_wait_loses_nothing_in_silence(full_pipe):
    with pytest.raises(BlockingIOError, match="takes no more now"):
        gs.write(full_pipe, {}, {"t": NUMBERS.repeat(10)})


class Uncounted:
    """What only says that it can write."""

    def __init__(self):
        self.taken = b""

    def write(self, data):
        self.taken += bytes(data)


@pytest.mark.parametrize("make", [partial(ShortWrites, 1000), Uncounted])
def test_files_that_take_less_or_do_not_count(make):
    file = make()
    gs.write(file, {}, {"t": NUMBERS})
    assert file.taken == written({"t": NUMBERS})


def test_standard_output_that_takes_less_than_it_is_given(source, monkeypatch):
    """Without a buffer (python -u) it may."""
    file = ShortWrites(1000)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=file, isatty=lambda: False))
    assert main(["convert", str(source), "-", "--version", "2"]) == 0
    with gs.open(source) as model:
        assert file.taken == b"".join(chunks_of(convert(model, version=2).pieces))
