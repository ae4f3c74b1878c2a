"""Numbers that are none in tensor data: planted everywhere, beside ggml's own check, in pieces, and interrupted."""

import io
import os
import pty
import signal
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import progress, sources
from gguf_schema.annotate import where
from gguf_schema.blocks import Block, blocks
from gguf_schema.cli import main
from gguf_schema.constructs import Array, Float, field
from gguf_schema.demo import demo_model
from gguf_schema.validate import PROFILES, check, verdict, weights
from gguf_schema.write import NewTensor

from . import peers
from .shared import CORPUS, corpus_files, needs_corpus

Q = gs.GGMLQuantizationType
NAN, INF, FINE = "nan", "inf", None

# Bits, from IEEE 754, bfloat16, and OCP's E8M0 and E4M3: NaNs quiet and signalling of both signs, both infinities, and
# numbers that are the last before those.
HALF = {NAN: (0x7E00, 0x7C01, 0xFC01, 0xFFFF), INF: (0x7C00, 0xFC00), FINE: (0x7BFF, 0xFBFF, 0x8000, 0x0001, 0x03FF)}
SINGLE = {NAN: (0x7FC00000, 0x7F800001, 0xFFFFFFFF), INF: (0x7F800000, 0xFF800000), FINE: (0x7F7FFFFF, 0xFF7FFFFF)}
DOUBLE = {
    NAN: (0x7FF8 << 48, (0x7FF0 << 48) + 1, (1 << 64) - 1),
    INF: (0x7FF0 << 48, 0xFFF0 << 48),
    FINE: ((0x7FF0 << 48) - 1, (0xFFF0 << 48) - 1, 1 << 63),
}
BFLOAT = {NAN: (0x7FC0, 0x7F81, 0xFF81, 0xFFFF), INF: (0x7F80, 0xFF80), FINE: (0x7F7F, 0xFF7F, 0x8000)}
E8M0 = {NAN: (0xFF,), INF: (), FINE: (0xFE, 0x7F, 0x80)}
E4M3 = {NAN: (0x7F, 0xFF), INF: (), FINE: (0x7E, 0xFE, 0x80)}
FLOATS = {"f2": HALF, "f4": SINGLE, "f8": DOUBLE}
HIDDEN = {
    ("BF16", "value"): BFLOAT,
    ("MXFP4", "e"): E8M0,
    ("NVFP4", "d"): E4M3,
    ("IQ1_M", "scales"): HALF,
}
WITHOUT = {"I8", "I16", "I32", "I64"}
"""Types that hold no floats."""


def places(type):
    """Field, its offset, its bytes, numpy's name of the number, and bits, for each field that holds floats."""
    offset = 0
    for name, number, *counts in peers.TYPES[type][3]:
        size = int(number[1]) * (counts[0] if counts else 1)
        bits = FLOATS.get(number) or HIDDEN.get((type, name))
        if bits:
            yield name, offset, size, number, bits
        offset += size


def tame(type, count):
    """So many blocks of random bytes below 0x40: every number in them is finite, in both orders."""
    _, _, size, _ = peers.TYPES[type]
    return bytearray((np.random.default_rng(1).integers(1, 0x40, size * count, np.uint8)).tobytes())


def plant(data, type, order, at, number, bits):
    """Write the bits of a float that stands at a byte; of IQ1_M into the high nibbles of four uint16s."""
    if type != "IQ1_M":
        struct.pack_into(order + {"u1": "B", "u2": "H", "f2": "H", "f4": "L", "f8": "Q"}[number], data, at, bits)
        return
    packed = struct.unpack_from(f"{order}4H", data, at)
    packed = [old & 0x0FFF | (bits >> 4 * place & 15) << 12 for place, old in enumerate(packed)]
    struct.pack_into(f"{order}4H", data, at, *packed)


def file_of(type, data, order="<", name="w"):
    """A file with one tensor of these blocks, in one dimension."""
    id, block_size, size, _ = peers.TYPES[type]
    written = io.BytesIO()
    tensor = NewTensor(name, id, (block_size * (len(data) // size),), bytes(data))
    gs.write(written, {"general.architecture": "llama"}, [tensor], order=order)
    return written.getvalue()


def wrong(file, data=True):
    """What is said of the numbers of a file."""
    codes = {rule.code for rule in weights.RULES}
    return [fault for fault in check(file, data) if fault.code in codes]


each_type = pytest.mark.parametrize("type", peers.TYPES)
each_order = pytest.mark.parametrize("order", ["<", ">"])


@each_type
@each_order
def test_planted_in_every_field(type, order):
    """In the first, a middle and the last block: one finding, with the field's path and bytes."""
    _, block_size, size, _ = peers.TYPES[type]
    count = 5
    clean = tame(type, count)
    start = gs.open(file_of(type, clean, order)).data_offset
    assert wrong(file_of(type, clean, order)) == []
    planted = 0
    for name, offset, width, number, bits in places(type):
        for block in 0, 2, 4:
            at = size * block + offset
            for kind, values in bits.items():
                for value in values:
                    data = bytearray(clean)
                    plant(data, type, order, at, number, value)
                    found = wrong(file_of(type, data, order))
                    planted += 1
                    if kind is FINE:
                        assert found == []
                        continue
                    (fault,) = found
                    assert fault.code == f"{'weight' if block_size == 1 else 'scale'}-{kind}"
                    assert fault.severity == "note"
                    assert fault.path == f"tensor_data[0][{block}].{name}"
                    assert (fault.start, fault.end) == (start + at, start + at + width)
                    assert fault.message.startswith("1 of 5 ")
                    assert "'w'" in fault.message
    assert bool(planted) == (type not in WITHOUT)


@pytest.mark.parametrize("index", range(4))
def test_each_scale_of_an_array(index):
    data = tame("NVFP4", 3)
    data[36 + index] = 0x7F
    (fault,) = wrong(file_of("NVFP4", data))
    assert fault.path == "tensor_data[0][1].d"
    assert fault.end - fault.start == 4


@each_type
def test_no_float_is_missed(type):
    """What is looked at follows from the Structs; the table of what they do not say is complete."""
    for order in "<>":
        _, floats = weights.fields(Q[type], order)
        assert [(one.name, one.start, one.end) for one in floats] == [
            (name, offset, offset + width) for name, offset, width, *_ in places(type)
        ]
    assert bool(floats) == (type not in WITHOUT)


def test_a_new_type_is_covered(monkeypatch):
    """A float in a block that nobody has seen, and an array of them, are found without further ado."""
    new = Block(
        32,
        field("qs", Array(3, Float("<", "e")), "three scales"),
        field("x", Float("<", "d"), "and one more"),
        field("d", Float("<", "f"), "and the last"),
    )
    monkeypatch.setitem(blocks("<"), Q.Q4_0, new)  # it has the size of Q4_0
    assert new.type_size == peers.TYPES["Q4_0"][2]
    weights.fields.cache_clear()
    try:
        for at, form, bits, name in (4, "<H", 0x7C01, "qs"), (6, "<Q", 0x7FF8 << 48, "x"), (14, "<L", 0x7FC00000, "d"):
            data = tame("Q4_0", 3)
            struct.pack_into(form, data, 18 + at, bits)
            (fault,) = wrong(file_of("Q4_0", data))
            assert fault.path == f"tensor_data[0][1].{name}"
    finally:
        weights.fields.cache_clear()


OTHERWISE = {
    "F64": "ggml makes floats of them first, so that large ones are infinite",
    "Q8_1": "ggml knows no check of it",
    "NVFP4": "ggml takes every scale: 0x7F is 0 to it",
    "Q2_0": "newer than the ggml that is installed",
}
"""Types of which ggml does not say the same, and why."""


@pytest.mark.parametrize("type", [type for type in peers.TYPES if type not in (*WITHOUT, *OTHERWISE)])
def test_ggml_says_the_same(type):
    """Blocks of bytes that are often special; ggml checks them as llama.cpp does with --check-tensors."""
    c = peers.ggml()
    id, block_size, size, _ = peers.TYPES[type]
    random = np.random.default_rng(id)
    common = np.array([0x00, 0x7C, 0x7F, 0x80, 0xC0, 0xF0, 0xFC, 0xFF], np.uint8)
    data = [common[random.integers(0, 8, size)].tobytes() for _ in range(64)]
    data += [random.bytes(size) for _ in range(32)]
    written = io.BytesIO()
    gs.write(written, {}, [NewTensor(f"t{index}", id, (block_size,), raw) for index, raw in enumerate(data)])
    found = {int(fault.path.split("[")[1].split("]")[0]) for fault in wrong(written.getvalue())}
    refused = {index for index, raw in enumerate(data) if not c.ggml_validate_row_data(id, raw, size)}
    assert found == refused
    assert 0 < len(found) < len(data)


@needs_corpus
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: str(path.relative_to(CORPUS)))
def test_nothing_is_wrong_with_real_files(path):
    found = [(fault.code, fault.path) for fault in wrong(path)]
    if path.stem == "bigendian_q8_0":  # gguf-py leaves the scales in little-endian order
        assert found == [("scale-nan", "tensor_data[0][97].d")]
    else:
        assert found == []


def test_nothing_is_wrong_with_the_demo():
    assert check(demo_model(), data=True) == []


def test_only_if_asked_for_and_no_verdict_changes():
    data = tame("F32", 3)
    data[:4] = b"\xff" * 4
    file = file_of("F32", data)
    assert len(wrong(file)) == 1
    assert wrong(file, data=False) == []
    assert {verdict(check(file, data=True), profile) for profile in PROFILES.values()} == {"accept"}


def test_blocks_are_counted_once_and_the_first_is_told():
    """Of each code one finding; a block with two wrong scales is one block."""
    data = tame("Q4_K", 9)
    for block, d, dmin in (3, 0x3C00, 0x7E00), (5, 0x7E00, 0x7E00), (6, 0xFC00, 0x7E00), (8, 0x7C00, 0x3C00):
        struct.pack_into("<HH", data, 144 * block, d, dmin)
    nan, infinite = wrong(file_of("Q4_K", data))
    assert (nan.code, nan.path) == ("scale-nan", "tensor_data[0][3].dmin")
    assert nan.message.startswith("3 of 9 blocks")
    assert (infinite.code, infinite.path) == ("scale-inf", "tensor_data[0][6].d")
    assert infinite.message.startswith("2 of 9 blocks")


@pytest.mark.parametrize("type", ["Q4_K", "F16", "NVFP4", "IQ1_M", "F64"])
def test_the_path_is_one_of_the_map(type):
    """`map --where` shows the bytes that the finding names."""
    _, offset, _, number, bits = next(places(type))
    data = tame(type, 4)
    plant(data, type, "<", 3 * peers.TYPES[type][2] + offset, number, bits[NAN][0])
    file = file_of(type, data)
    (fault,) = wrong(file)
    with gs.open(file) as model:
        (entry,) = (entry for entry in where(model, fault.path) if entry.path == fault.path)
    assert (entry.start, entry.end) == (fault.start, fault.end)


# In pieces.


@pytest.mark.parametrize("chunk", [292, 1000, 1024])
@pytest.mark.parametrize("type", ["F16", "Q8_0", "Q4_K", "Q8_K", "NVFP4", "IQ1_M"])
def test_pieces_of_any_size_find_the_same(type, chunk, monkeypatch):
    """A block wherever it lies in a piece of the file."""
    size = peers.TYPES[type][2]
    count = 4000 // size
    clean = tame(type, count)
    *_, (_, offset, _, number, bits) = places(type)
    for block in range(0, count - 1, 1 + count // 60):
        data = bytearray(clean)
        for at in block, count - 1:
            plant(data, type, "<", size * at + offset, number, bits[NAN][0])
        file = file_of(type, data)
        monkeypatch.undo()
        whole = wrong(file)
        monkeypatch.setattr(weights, "CHUNK", chunk)
        assert wrong(file) == whole
        assert whole[0].path.startswith(f"tensor_data[0][{block}].")
        assert whole[0].message.startswith(f"2 of {count} ")


def sparse(path, type, size, dimensions=1):
    """A file with one tensor of about so many bytes that are a hole."""
    id, block_size, type_size, _ = peers.TYPES[type]
    shape = (2 * block_size, size // type_size // 2) if dimensions == 2 else (block_size * (size // type_size),)
    start = gs.GGUF.build({"metadata_kv": [], "tensor_infos": [{"name": "w", "dimensions": shape, "type": id}]})
    path.write_bytes(start)
    os.truncate(path, len(start) + -(-(size // type_size * type_size) // 32) * 32)
    return path


@pytest.mark.parametrize("type", ["F16", "Q4_K"])
def test_memory_is_bounded_and_nothing_is_mapped(type, tmp_path, monkeypatch):
    monkeypatch.setattr(sources.FileSource, "view", None)
    path = sparse(tmp_path / "sparse.gguf", type, 64 << 20)
    check(path, data=True)
    tracemalloc.start()
    try:
        check(path, data=True)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_every_kind_of_source_finds_the_same(tmp_path):
    data = tame("Q8_0", 9)
    struct.pack_into("<H", data, 34 * 7, 0x7C00)
    file = file_of("Q8_0", data)
    path = tmp_path / "one.gguf"
    path.write_bytes(file)
    (fault,) = wrong(file)
    assert [fault] == wrong(path) == wrong(io.BytesIO(file)) == wrong(bytearray(file))


def test_matrices_of_zeros(tmp_path):
    """Matrices alone: a bias may well be zero. One byte is enough to make it none."""
    for type in "Q4_K", "F16", "I8":
        path = sparse(tmp_path / "sparse.gguf", type, 5 << 20, dimensions=2)
        (fault,) = wrong(path)
        assert (fault.code, fault.severity, fault.path) == ("weights-zero", "note", "tensor_data[0]")
        assert fault.end == path.stat().st_size
        with path.open("r+b") as file:
            file.seek(fault.end - 1)
            file.write(b"\1")
        assert wrong(path) == []
        assert wrong(sparse(tmp_path / "sparse.gguf", type, 5 << 20)) == []


def infos(*rows):
    return [dict(zip(("name", "type", "dimensions", "offset"), row, strict=True)) for row in rows]


def test_what_cannot_be_read_is_left_out():
    """Types that nobody knows, data that is not there, rows of half blocks; the others are looked at."""
    nan = struct.pack("<8f", *[float("nan")] * 8)
    listed = infos(
        ("a", 99, [8], 0), ("b", 0, [8], 32), ("c", 8, [8], 64), ("d", 0, [4096], 96), ("e", 0, [1], 1 << 63)
    )
    file = gs.GGUF.build({"metadata_kv": [], "tensor_infos": listed, "tensor_data": nan * 4})
    assert [fault.path for fault in wrong(file)] == ["tensor_data[1][0].value"]


@pytest.fixture
def read(monkeypatch):
    """The bytes that are read from memory, as a list of sizes."""
    sizes = []
    original = sources.MemorySource.read_at

    def noting(self, position, size):
        sizes.append(size)
        return original(self, position, size)

    monkeypatch.setattr(sources.MemorySource, "read_at", noting)
    return sizes


def test_bytes_are_read_once(read):
    """Thousands of tensors may claim the same bytes: the first of them stands for all."""
    data = bytearray(1 << 20)
    data[:4] = b"\xff" * 4
    listed = infos(*((f"t{index}", 0, [1 << 18], 0) for index in range(500)))
    file = gs.GGUF.build({"metadata_kv": [], "tensor_infos": listed, "tensor_data": bytes(data)})
    assert [fault.path for fault in wrong(file)] == ["tensor_data[0][0].value"]
    assert sum(read) < 3 * len(file)


def test_integers_are_read_until_one_is_not_zero(read):
    listed = infos(("a", 24, [1 << 12, 1 << 12], 0))
    for data in bytes(1 << 24), b"\1" * (1 << 24):
        read.clear()
        found = wrong(gs.GGUF.build({"metadata_kv": [], "tensor_infos": listed, "tensor_data": data}))
        assert bool(found) == (sum(read) >= len(data)) == (not data[0])


def test_a_file_that_shrinks_is_an_error(tmp_path, capsys, monkeypatch):
    path = sparse(tmp_path / "a.gguf", "F16", 8 << 20)
    with pytest.raises(gs.GGUFError, match="the file has shrunk: 1048576 bytes at byte "):
        check(path, True, lambda done, size: os.truncate(path, done))
    original = sources.FileSource.read_at

    def short(self, position, size):
        return original(self, position, size)[: -1 if self.name.endswith("a.gguf") and position > 4 << 20 else None]

    sparse(path, "F16", 8 << 20)
    (tmp_path / "b.gguf").write_bytes(demo_model())
    monkeypatch.setattr(sources.FileSource, "read_at", short)
    assert main(["check", "--data", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"gguf-schema: {path}: the file has shrunk")
    assert out == f"{tmp_path / 'b.gguf'}: accept (default)\n"


# The command.


def test_command_names_tensor_block_and_bytes(tmp_path, capsys):
    path = tmp_path / "bad.gguf"
    data = tame("Q8_0", 9)
    struct.pack_into("<H", data, 34 * 7, 0x7E00)
    path.write_bytes(file_of("Q8_0", data, name="blk.0\x1b[2J"))
    assert main(["check", str(path)]) == 0
    assert "scale-nan" not in capsys.readouterr().out
    assert main(["check", "--data", str(path)]) == 0
    out, err = capsys.readouterr()
    (line,) = (line for line in out.splitlines() if line.endswith("[scale-nan]"))
    with gs.open(path) as model:
        at = model.data_offset + 34 * 7
    assert line.startswith(f"  note: tensor_data[0][7].d at bytes {at} to {at + 2}: 1 of 9 blocks have a scale")
    assert "blk.0" in line
    assert "\x1b" not in out
    assert err == ""
    assert main(["check", "--explain", "scale-nan"]) == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_that_is_cleared(tmp_path, monkeypatch, capsys):
    path = sparse(tmp_path / "\x1b[2Jname.gguf", "F16", 4 << 20)
    terminal = Terminal()
    monkeypatch.setattr(progress, "PAUSE", 0)
    monkeypatch.setenv("COLUMNS", "60")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        assert main(["check", "--data", str(path)]) == 0
    first, *shown, blank, last = terminal.getvalue().split("\r")
    assert (first, blank.strip(" "), last) == ("", "", "")
    assert [line[-6:] for line in shown] == ["  25 %", "  50 %", "  75 %", " 100 %"]
    assert {len(line) for line in [*shown, blank]} == {len(blank)}
    assert len(blank) < 60
    assert not set(terminal.getvalue()) & {"\x1b", "\n"}
    assert all("name.gguf" in line for line in shown)


def test_no_progress_where_nobody_looks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PAUSE", 0)
    assert main(["check", "--data", str(sparse(tmp_path / "a.gguf", "F16", 4 << 20))]) == 0
    assert capsys.readouterr().err == ""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert main(["check", "--data", str(tmp_path / "a.gguf")]) == 0


def test_interrupted_at_a_terminal(tmp_path):
    """Ctrl-C while data is read: the line is cleared, no traceback, status 130."""
    path = sparse(tmp_path / "large.gguf", "F16", 1 << 40)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gguf_schema", "check", "--data", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        said = os.read(ours, 1000)
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 130
        assert run.stdout.read() == b""
    said += os.read(ours, 10_000)
    os.close(ours)
    assert b" %" in said
    assert b"Traceback" not in said
    assert said.endswith(b" \r")
