"""Files and uses that broke readers, ours among them: each kind once, small."""

import contextlib
import gc
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import tracemalloc

import construct
import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import edit
from gguf_schema.cli import main
from gguf_schema.constructs import Strings
from gguf_schema.diff import differences
from gguf_schema.dump import dump_json, dump_markdown, dump_text
from gguf_schema.extract import raw
from gguf_schema.hashing import hashes
from gguf_schema.policy import RULES
from gguf_schema.summary import summarize, summary_text

from .short_writes import ShortWrites

T = gs.GGUFValueType
Q = gs.GGMLQuantizationType


def file_of(metadata, tensors=()):
    written = io.BytesIO()
    gs.write(written, metadata, tensors)
    return written.getvalue()


def wire_file(pairs=(), infos=(), **fields):
    return gs.GGUF.build({"metadata_kv": list(pairs), "tensor_infos": list(infos), **fields})


def tensor(name="t", dimensions=(4,), type=Q.F32, **fields):
    return {"name": name, "dimensions": list(dimensions), "type": type, **fields}


def strings(texts):
    return gs.open(file_of({"a.b": texts})).metadata["a.b"]


# Every fault that `open` refuses for, with the place where it stands.

FAULTS = {
    "key-empty": (wire_file([{"key": "", "value_type": T.UINT8, "value": 1}]), "metadata_kv[0].key.len", 24),
    "key-twice": (wire_file([{"key": "a", "value_type": T.UINT8, "value": 1}] * 2), "metadata_kv[1].key.len", 38),
    "alignment-type": (
        wire_file([{"key": "general.alignment", "value_type": T.UINT8, "value": 32}]),
        "metadata_kv[0].value_type",
        49,
    ),
    "alignment-value": (
        wire_file([{"key": "general.alignment", "value_type": T.UINT32, "value": 12}]),
        "metadata_kv[0].value",
        53,
    ),
    "tensor name-twice": (wire_file(infos=[tensor(offset=0)] * 2), "tensor_infos[1].name.len", 57),
    "dimensions-too-many": (
        wire_file(infos=[tensor(dimensions=[1] * 9, offset=0)]),
        "tensor_infos[0].n_dimensions",
        33,
    ),
    "tensor-type-range": (wire_file(infos=[tensor(type=2**31, offset=0)]), "tensor_infos[0].type", 45),
    "dimension-range": (
        wire_file(infos=[tensor(dimensions=[0, 2**63], offset=0)]),
        "tensor_infos[0].dimensions[1]",
        45,
    ),
    "row-not-blocks": (wire_file(infos=[tensor(type=Q.Q8_0, offset=0)]), "tensor_infos[0].dimensions[0]", 37),
    "row-not-blocks, no dimensions": (
        wire_file(infos=[tensor(dimensions=[], type=Q.Q8_0, offset=0)]),
        "tensor_infos[0].n_dimensions",
        33,
    ),
    "tensor-elements-range": (
        wire_file(infos=[tensor(dimensions=[2**32, 2**32], offset=0)]),
        "tensor_infos[0].dimensions[0]",
        37,
    ),
    "offset-unaligned": (wire_file(infos=[tensor(offset=1)], tensor_data=bytes(64)), "tensor_infos[0].offset", 49),
    "data-missing": (wire_file(infos=[tensor(offset=0)], tensor_data=bytes(15)), "tensor_data", 79),
    "data-missing, offset": (wire_file(infos=[tensor(offset=64)], tensor_data=bytes(32)), "tensor_infos[0].offset", 49),
    "data-missing, dimensions": (
        wire_file(infos=[tensor(dimensions=[2**40], offset=0)], tensor_data=bytes(32)),
        "tensor_infos[0].dimensions[0]",
        37,
    ),
    "data-start-missing, padding": (wire_file(infos=[tensor(offset=0)])[:60], "padding", 57),
    "data-start-missing, alignment": (
        wire_file(
            [{"key": "general.alignment", "value_type": T.UINT32, "value": 2**31}], [tensor(offset=0)], padding=b""
        ),
        "metadata_kv[0].value",
        53,
    ),
}


@pytest.mark.parametrize(("name", "data", "path", "offset"), [(name, *fault) for name, fault in FAULTS.items()])
def test_every_fault_is_placed(name, data, path, offset):
    with pytest.raises(gs.CheckError) as caught:
        gs.open(data)
    assert (caught.value.path, caught.value.offset) == (path, offset)
    assert caught.value.code == name.partition(",")[0].replace(" ", "-")
    model = gs.open(data, check=False)
    assert str(next(iter(model.faults()))) == str(caught.value)


def test_every_rule_is_broken_by_a_fault():
    broken = {rule for rule in RULES for data, _, _ in FAULTS.values() if list(rule(parsed(data)))}
    assert broken == set(RULES)


def parsed(data):
    """What the rules look at."""
    from gguf_schema.layout import known_sizes
    from gguf_schema.policy import Parsed

    model = gs.open(data, check=False)
    infos = model.head.tensor_infos
    places = model.alignment, model.infos_end, model.data_offset, model.size
    return Parsed(model.head.metadata_kv, infos, known_sizes(infos), *places)


def test_messages_stay_short():
    data = wire_file([{"key": "k" * 100_000, "value_type": T.UINT8, "value": 1}] * 2)
    with pytest.raises(gs.CheckError) as caught:
        gs.open(data)
    assert len(str(caught.value)) < 300


# Memory and time that the file does not pay for.


def peak(look):
    tracemalloc.start()
    try:
        look()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_short_arrays_of_strings_keep_no_window_alive():
    array = {"type": T.STRING, "array": [""]}
    value = {"type": T.ARRAY, "array": [array] * 5_000}
    data = wire_file([{"key": "a.b", "value_type": T.ARRAY, "value": value}])
    assert peak(lambda: gs.open(data)) < 100 * len(data)


@pytest.mark.parametrize(
    "count", [2**32 - 1, (T.UINT64, 2**63), (T.FLOAT32, 2.5), (T.INT64, -3), (T.FLOAT32, float("nan"))]
)
def test_any_block_count_is_survived(count):
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 1,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 4,
        "llama.block_count": count,
    }
    model = gs.open(file_of(metadata))
    assert peak(lambda: summary_text(model)) < 1 << 20
    with contextlib.suppress(gs.GGUFError):
        gs.hyperparameters(model.metadata).kv_cache_bytes_per_token()


@pytest.mark.parametrize("heads", [0, [0, 0], [0, 8]])
def test_layers_without_heads(heads):
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 1,
        "llama.embedding_length": 64,
        "llama.block_count": 2,
        "llama.attention.head_count": 16,
        "llama.attention.head_count_kv": heads,
    }
    numbers = gs.hyperparameters(gs.open(file_of(metadata)).metadata)
    assert numbers.queries_per_kv_head == (2 if heads == [0, 8] else 0)


def test_very_many_dimensions_are_not_multiplied():
    data = wire_file(infos=[tensor(dimensions=[2**64 - 1] * 100_000, offset=0)])
    with pytest.raises(gs.GGUFError, match="are not counted"):
        _ = gs.open(data, check=False).tensors["t"].n_elements


@pytest.mark.parametrize("offset", [1 << 62, (1 << 63) - 32, 1 << 63, (1 << 64) - 32])
def test_what_lies_further_than_files_go_is_not_there(offset, tmp_path):
    """The system counts bytes of files up to 2^63, and file systems to less."""
    path = tmp_path / "far.gguf"
    infos = [{"name": "a", "dimensions": [8], "type": 0, "offset": offset}]
    path.write_bytes(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(32)}))
    with open(path, "rb") as file:
        for source in path, file, path.read_bytes():
            with gs.open(source, check=False) as model:
                for use in hashes, lambda model: differences(model, model), lambda model: raw(model, "a"):
                    with pytest.raises(gs.GGUFError, match="32 bytes expected at byte"):
                        list(use(model))
                assert edit.plan(model, [edit.DeleteTensor("a")]).head.tensors == []


def test_more_dimensions_than_tell_a_size_make_no_array():
    """The bytes up to the next tensor are all that is known; what they are of is not."""
    infos = [
        {"name": "t", "dimensions": [32, 4, 5, 1, 1, 1, 1, 1, 1], "type": 8, "offset": 0},
        {"name": "u", "dimensions": [1], "type": 0, "offset": 384},
    ]
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(416)})
    with gs.open(data, check=False) as model:
        for function in model.tensors["t"].form, lambda: model.tensors["t"].data:
            with pytest.raises(gs.GGUFError, match="tensor 't': 384 bytes make no array"):
                function()
        assert model.tensors["u"].data.tolist() == [0]


@pytest.mark.parametrize("dimensions", [[2**64 - 1] * 8, [2**64 - 1] * 17, [0, 2**64 - 1], []])
def test_odd_dimensions_are_dumped_or_refused(dimensions):
    model = gs.open(wire_file(infos=[tensor(dimensions=dimensions, offset=0)]), check=False)
    for dump in (dump_text, dump_json, dump_markdown, summary_text):
        with contextlib.suppress(gs.GGUFError):
            assert dump(model)
    with contextlib.suppress(gs.GGUFError):
        assert model.tensors["t"].data.size == 1


# Strings, against the slow way.


def random_texts(rng):
    letters = ["", "\0", "a", "é", "\x01\0\0\0\0\0\0\0z", "\udcff", "\0" * 9, "x" * rng.randrange(300), "\n"]
    return ["".join(rng.choices(letters, k=rng.randrange(4))) for _ in range(rng.randrange(1, 200))]


def test_strings_are_a_sequence_like_the_list():
    rng = random.Random(5)
    for _ in range(300):
        texts = random_texts(rng)
        read = strings(texts)
        assert read.tolist() == list(read) == texts == read[:]
        assert read == texts
        assert texts == read.tolist()
        assert read != [*texts, "x"]
        assert len(read) == len(texts)
        for wanted in [*texts[:5], "", "\0", "a", "z", "nothing", "\ud800", 5]:
            assert (wanted in read) == (wanted in texts)
            if wanted in texts:
                assert read.index(wanted) == texts.index(wanted)
        start, stop = rng.randrange(-3, len(texts)), rng.randrange(-3, len(texts) + 3)
        assert read[start:stop:2] == texts[start:stop:2]
        for wanted in texts[:3]:
            with contextlib.ExitStack() as stack:
                if wanted not in texts[start:stop]:
                    stack.enter_context(pytest.raises(ValueError, match="is not in the array"))
                assert read.index(wanted, start, stop) == texts.index(
                    wanted, *slice(start, stop).indices(len(texts))[:2]
                )


def test_strings_are_equal_to_sequences_of_strings_alone():
    letters = strings(["a", "b"])
    assert letters == ("a", "b")
    for other in ("ab", b"ab", {"a", "b"}, {"a": 0, "b": 0}, 5, None):
        assert letters != other
        assert other != letters


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["a"], "<Strings: 1 of 'a'>"),
        (["a", "\x1b[2J", "\udcff"], r"<Strings: 3 of 'a', '\x1b[2J', '\udcff'>"),
        (["a"] * 1000, "<Strings: 1000 of 'a', 'a', 'a', …>"),
    ],
)
def test_strings_are_shown_short_and_escaped(texts, shown):
    assert repr(strings(texts)) == shown


def test_a_model_is_shown_short_and_escaped():
    tensors = {"\x1b[2J": np.ones((2, 3), np.float32), "u": np.ones(1, np.int8)}
    model = gs.open(file_of({"a.b": "x" * 1000}, tensors))
    assert repr(model) == "<Model '<memory>': GGUF v3, <Metadata: 1 pairs>, <Tensors: 2>>"
    assert repr(model.tensors["\x1b[2J"]) == r"<Tensor '\x1b[2J': F32, dimensions [3, 2]>"


def test_strings_of_other_layouts():
    for order in "<>":
        for version in 1, 2, 3:
            written = io.BytesIO()
            texts = random_texts(random.Random(version))
            gs.write(written, {"a.b": texts}, order=order, version=version)
            read = gs.open(written.getvalue()).metadata["a.b"]
            assert isinstance(read, Strings)
            assert read.tolist() == texts
            assert all(text in read for text in texts)


# Many threads, closed files, streams of every kind.


def test_threads_share_a_model(tmp_path):
    path = tmp_path / "model.gguf"
    gs.write(path, {"a.b": [f"token {i}" for i in range(20_000)]}, {"t": np.arange(5000, dtype=np.float32)})
    failures = []
    with path.open("rb") as file:
        for model in gs.open(path), gs.open(file):
            wanted = dump_json(model, arrays=True)

            def look(model=model, wanted=wanted):
                for _ in range(5):
                    if dump_json(model, arrays=True) != wanted or model.tensors["t"].data.sum() != 12497500:
                        failures.append(model)

            threads = [threading.Thread(target=look) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            model.close()
    assert not failures


class Sparing(io.RawIOBase):
    """A raw file that gives at most 3 bytes at once."""

    def __init__(self, data):
        super().__init__()
        self.inner = io.BytesIO(data)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        return self.inner.seek(offset, whence)

    def readinto(self, buffer):
        piece = self.inner.read(min(3, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


def test_raw_streams_that_give_little_at_once():
    data = file_of({"a.b": ["x" * 100] * 10}, {"t": np.ones(9, np.float32)})
    assert gs.GGUF.build(gs.GGUF.parse_stream(Sparing(data))) == data
    assert gs.open(Sparing(data)).tensors["t"].data.sum() == 9


@pytest.mark.parametrize("data", [None, 5, "GGUF"])
def test_parse_takes_bytes(data):
    with pytest.raises(TypeError):
        gs.GGUF.parse(data)


def test_another_layout_or_format_is_not_taken_for_this_one():
    data = file_of({"a.b": 1})
    for order, version, other, path, offset, found in (
        ("<", 3, b"GGML" + data[4:], "magic", 0, "b'GGML'"),
        ("<", 2, data, "version", 4, "3"),
        (">", 3, data, "version", 4, str(3 << 24)),
    ):
        with pytest.raises(gs.ParseError) as caught:
            gs.structs(order, version).head.parse(other)
        assert (caught.value.path, caught.value.offset) == (path, offset)
        assert caught.value.problem.endswith(f", found {found}")


def test_parts_within_foreign_structs_mind_the_end():
    """There nobody tells where the stream ends: it is looked for before anything is read."""
    foreign = construct.Struct("size" / construct.Byte, "text" / gs.structs().string, "rest" / construct.Byte)
    data = b"\x01" + struct.pack("<Q", 2) + b"ab" + b"\x02"
    assert foreign.parse(data) == {"size": 1, "text": "ab", "rest": 2}
    with pytest.raises(gs.TruncatedError) as caught:
        foreign.parse(b"\x01" + struct.pack("<Q", 2**62) + b"ab\x02")
    assert str(caught.value) == f"len at byte 1: {2**62} bytes declared, 3 left"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_cycle_collector_is_left_as_it_was(is_enabled):
    data = file_of({"a.b": 1}, {"t": np.ones(9, np.float32)})
    try:
        gc.enable() if is_enabled else gc.disable()
        model = gs.open(data)
        assert len(model.metadata) == len(model.tensors) == 1
        with pytest.raises(gs.GGUFError):
            gs.open(data[:40])
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_a_closed_model_says_so():
    model = gs.open(file_of({"a.b": 1}))
    model.close()
    with pytest.raises(gs.GGUFError, match="closed"):
        next(model.trace("metadata_kv[0]"))


# Nesting.


def nested_file(levels):
    """Arrays in arrays: a literal header of each, without building."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", T.ARRAY)
    return head + struct.pack("<IQ", T.ARRAY, 1) * (levels - 1) + struct.pack("<IQ", T.UINT8, 0)


@pytest.mark.parametrize(("levels", "limit"), [(16, 16), (3, 3), (1, 1), (60, 60)])
def test_nesting_up_to_the_limit(levels, limit):
    data = nested_file(levels)
    value = gs.open(data, max_nesting=limit).metadata["a"]
    for _ in range(levels - 1):
        (value,) = value
    assert len(value) == 0
    assert gs.GGUF.build(gs.GGUF.parse(data, max_nesting=limit), max_nesting=limit) == data


@pytest.mark.parametrize(("levels", "arguments"), [(17, {}), (4, {"max_nesting": 3}), (5000, {"max_nesting": 10_000})])
def test_deeper_nesting_is_refused(levels, arguments):
    for read in gs.open, gs.GGUF.parse:
        with pytest.raises(gs.NestingError, match="nested deeper than") as caught:
            read(nested_file(levels), **arguments)
        assert (caught.value.path, caught.value.offset) == ("metadata_kv[0].value.type", 37)


# Values to write.


def deep(levels):
    value = [1]
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": deep(17)},
        {"a": deep(3_000)},
        [("a", 99, 1)],
        [("a", None, 1)],
        {"a": (gs.ArrayType(T.ARRAY, None), [[1]])},
        {"general.alignment": np.array([1, 2])},
        {5: 1},
        {"a": "\ud800"},
        {"a": np.zeros(2, np.complex64)},
        {"a": np.zeros((2, 2), np.float32)},
    ],
    ids=map(str, range(10)),
)
def test_metadata_that_cannot_be_written(metadata):
    with pytest.raises(gs.BuildError):
        gs.write(io.BytesIO(), metadata, alignment=64)


@pytest.mark.parametrize(
    "tensors",
    [
        {"t": None},
        {"t": 5},
        {"t": (0, np.ones(1), 1)},
        {"t": ([], np.ones(1))},
        [gs.NewTensor("t", [], (1,), b"1234")],
        [gs.NewTensor("t", 0, (1,), None)],
        [gs.NewTensor("t", 0, 4, b"1234")],
        [gs.NewTensor("t", 0, ("4",), b"1234")],
        [gs.NewTensor("t", 0, (2,), memoryview(b"1234" * 4)[::2])],
        {"t": np.array([1, None])},
        {"t": np.array(["x"])},
    ],
    ids=map(str, range(11)),
)
def test_tensors_that_cannot_be_written(tensors):
    with pytest.raises(gs.BuildError, match="tensor 't'"):
        gs.write(io.BytesIO(), {}, tensors)


@pytest.mark.parametrize("target", [5, None, b"path"])
def test_targets_that_are_none(target):
    with pytest.raises(TypeError):
        gs.write(target, {})


def test_stale_padding_is_refused():
    """A changed string moves the data: the padding that was parsed would shift every tensor."""
    file = gs.GGUF.parse(file_of({"a.b": "x"}, {"t": np.ones(4, np.float32)}))
    file.metadata_kv[0].value = "longer"
    with pytest.raises(gs.BuildError, match=r"^padding: 15 bytes held, 10 lead to the alignment"):
        gs.GGUF.build(file)
    del file["padding"]
    assert gs.open(gs.GGUF.build(file)).tensors["t"].data.tolist() == [1.0] * 4


# The command.


def test_json_is_strict(tmp_path, capsys):
    path = tmp_path / "nan.gguf"
    path.write_bytes(file_of({"general.architecture": "llama", "llama.rope.freq_base": float("nan")}))
    assert main(["info", "--json", str(path)]) == 0
    summary = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert summary["hyperparameters"] == {"rope.freq_base": "NaN"}


@pytest.mark.parametrize(
    ("value", "shown"), [((T.FLOAT64, 1e-60), "1e-60"), ((T.FLOAT64, 1e300), "1e+300"), (0.1, "0.1")]
)
def test_floats_of_both_widths_are_shown(value, shown):
    model = gs.open(file_of({"general.architecture": "llama", "llama.rope.freq_base": value}))
    assert f"rope frequency base: {shown}\n" in summary_text(model)


def test_tokens_of_another_type_are_no_vocabulary():
    model = gs.open(file_of({"tokenizer.ggml.tokens": "abc"}))
    assert summarize(model)["vocabulary"] is None


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    program = f"{sys.executable} -m gguf_schema info - {closed}"
    run = subprocess.run(["bash", "-c", program], input=b"GGUF", capture_output=True, check=False)
    assert run.returncode == 2
    assert b"Traceback" not in run.stderr
    assert run.stdout == b""


def test_terminals_are_not_commanded_by_arguments(capsys):
    with pytest.raises(SystemExit):
        main(["dump", "a", "\x1b[31mred\x07"])
    assert "\x1b" not in capsys.readouterr().err
    assert main(["dump", "\x1b[31mred"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_narrow_terminals(encoding):
    run = subprocess.run(
        [sys.executable, "-m", "gguf_schema", "dump", "-"],
        input=file_of({"a.b": "▁the é"}),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert run.returncode == 0
    assert "a.b" in run.stdout.decode(encoding)


def test_why_a_file_was_refused_is_said(tmp_path, capsys):
    path = tmp_path / "twice.gguf"
    path.write_bytes(FAULTS["key-twice"][0])
    assert main(["info", "--no-check", str(path)]) == 0
    assert "metadata_kv[1].key.len at byte 38: the key 'a' stands in metadata_kv[0] already" in capsys.readouterr().err


def test_lengths_at_every_place_of_a_window():
    """Strings of one length after another, so that every place in a block is once the start of a length."""
    for length in (0, 1, 7, 8, 9, 63, 255, 256, 300):
        texts = ["x" * length] * 3000
        assert strings(texts).tolist() == texts
        cut = file_of({"a.b": texts})
        with pytest.raises(gs.TruncatedError):
            gs.open(cut[:-1] if length else cut[: -struct.calcsize("<Q")])


def test_very_many_faults_are_placed_in_one_pass():
    pairs = [{"key": "a", "value_type": T.UINT8, "value": 1}] * 20_000
    faults = gs.open(wire_file(pairs), check=False).faults()
    assert len(faults) == 19_999
    assert {fault.code for fault in faults} == {"key-twice"}
    assert [fault.offset for fault in faults[:3]] == [38, 52, 66]


@pytest.mark.parametrize("heads", [[[1], [1, 2]], [["x"] * 3], [[""] * 1000 + ["x" * 50_000]], [], [1.5], ["x"], [-1]])
def test_head_counts_of_any_shape(heads):
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 1,
        "llama.embedding_length": 64,
        "llama.block_count": 2,
        "llama.attention.head_count": heads or (gs.ArrayType(T.UINT32), []),
    }
    model = gs.open(file_of(metadata))

    def look():
        assert summary_text(model)
        with pytest.raises(gs.GGUFError, match=r"expected a (list of )?counts?, found"):
            gs.hyperparameters(model.metadata)

    assert peak(look) < 4 << 20


def test_hyperparameters_of_plain_lists():
    metadata = {"general.architecture": "a", "a.context_length": 1, "a.embedding_length": 64, "a.block_count": 2}
    numbers = gs.hyperparameters({**metadata, "a.attention.head_count": [4, 8], "a.attention.head_count_kv": [0, 2]})
    assert (numbers.head_count, numbers.queries_per_kv_head) == ((4, 8), 4)
    assert numbers.kv_cache_bytes_per_token() == 2 * (16 + 16) * 2


def test_a_changed_file_is_an_error():
    data = bytearray(wire_file([{"key": "a", "value_type": T.UINT8, "value": 1}] * 2))
    model = gs.open(io.BytesIO(data), check=False)
    model.source.file.getbuffer()[16:24] = struct.pack("<Q", 1)
    with pytest.raises(gs.GGUFError, match="has changed"):
        model.faults()
    model.source.file.getbuffer()[16:24] = struct.pack("<Q", 2)
    model.source.file.getbuffer()[33:37] = struct.pack("<I", 99)
    with pytest.raises(gs.GGUFError, match=r"^metadata_kv\[0\].value_type at byte 33: unknown type 99"):
        list(model.trace("metadata_kv[0].value"))


def test_errors_are_pickled_whole():
    with pytest.raises(gs.CheckError) as caught:
        gs.open(FAULTS["key-twice"][0])
    clone = pickle.loads(pickle.dumps(caught.value))
    assert (str(clone), clone.code, clone.offset) == (str(caught.value), "key-twice", 38)


def test_raw_streams_stay_open_and_stand_at_the_end_of_what_was_read():
    data = file_of({"a.b": 1})
    raw = Sparing(data)
    gs.structs("<", 3).preamble.parse_stream(raw)
    assert not raw.closed
    assert raw.seek(0, io.SEEK_CUR) == 8


def test_raw_files_get_every_byte_that_is_built():
    data = file_of({"a.b": "x" * 100})
    raw = ShortWrites(5)
    gs.GGUF.build_stream(gs.GGUF.parse(data), raw)
    assert raw.taken == data
    assert not raw.closed


def test_pipes_that_trickle(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of({"general.architecture": "llama"}))
    program = (
        f"(head -c 4 {path}; sleep .1; tail -c +5 {path}) | {sys.executable} -m gguf_schema info /dev/stdin; "
        f"(head -c 4 {path}; sleep .1; tail -c +5 {path}) | {sys.executable} -m gguf_schema info -"
    )
    run = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.count("architecture: llama") == 2, run.stderr


def test_closing_under_other_threads(tmp_path):
    """Whoever comes too late is told that the file is closed, and nothing else."""
    path = tmp_path / "model.gguf"
    gs.write(path, {"a.b": 1}, {"t": np.ones(100, np.float32)})
    wrong = []

    def look(model):
        try:
            while True:
                assert model.tensors["t"].data.sum() == 100
                next(iter(model.trace("metadata_kv[0]")))
        except gs.GGUFError as error:
            if "closed" not in str(error):
                wrong.append(error)
        except BaseException as error:
            wrong.append(error)

    for _ in range(60):
        for source in path, path.read_bytes():
            model = gs.open(source)
            threads = [threading.Thread(target=look, args=(model,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            model.close()
            for thread in threads:
                thread.join()
    assert not wrong


def test_a_full_stderr_changes_no_status(tmp_path):
    refused = tmp_path / "refused.gguf"
    refused.write_bytes(FAULTS["key-twice"][0])
    with open("/dev/full", "wb") as full:
        for arguments, status in ((["info", "nofile"], 2), (["info", "--no-check", str(refused)], 0)):
            command = [sys.executable, "-m", "gguf_schema", *arguments]
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False)
            assert run.returncode == status
            assert bool(run.stdout) == (status == 0)


def test_chains_broken_at_every_string_and_in_rows():
    for texts in (
        ["a", ""] * 3000,
        (["a"] * 20 + [""] * 500 + ["a"] * 12) * 8,
        ["b" * 256] * 2000,
        ["", "x" * 300] * 500,
    ):
        read = strings(texts)
        assert read.tolist() == texts
        assert read.lengths.tolist() == list(map(len, texts))
