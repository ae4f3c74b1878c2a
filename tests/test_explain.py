"""What is wrong with a file, where, and what may have happened to it."""

import io
import random
import struct

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.annotate import everything, leaves
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.explain import explain
from gguf_schema.explain.causes import COUNTS
from gguf_schema.explain.text import explanation_text
from gguf_schema.tables.example import example_file
from gguf_schema.validate import check

from .shared import cases, corpus_files, needs_corpus

DEMO = demo_model()


def replaced(data, position, new):
    return data[:position] + new + data[position + len(new) :]


def refusal(data):
    """The error of `open`, or None."""
    try:
        gs.open(data).close()
    except gs.GGUFError as error:
        return error
    return None


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_says_what_open_says(case):
    """The fault is that of `open`; all fields before it are told, without gaps; the bytes are those of the file."""
    data = case["bytes"]
    explained = explain(data)
    error = refusal(data)
    assert str(explained.error) == str(error)
    if error is not None:
        assert explained.error.offset == error.offset
        assert data[explained.start :].startswith(explained.found)
        assert explained.start <= error.offset <= explained.start + len(explained.found)
        ends = [entry.end for entry in explained.entries]
        assert [entry.start for entry in explained.entries] == [0, *ends[:-1]][: len(ends)]
        if isinstance(error, gs.ParseError) and error.path not in ("magic", "version", *COUNTS):
            assert ends[-1] == error.offset
        assert str(error) in explanation_text(explained) or not str(error).isprintable()


def made(order="<", version=3):
    return example_file(order, version)


def built(metadata):
    file = io.BytesIO()
    gs.write(file, metadata)
    return file.getvalue()


def layout_of_version_1():
    return replaced(made(version=1), 4, struct.pack("<I", 3))


def swapped():
    return made("<")[:8] + made(">")[8:]


def swapped_after_counts():
    return made("<")[:24] + made(">")[24:]


FIRST_KEY_LENGTH = 24
"""After the magic, the version and two counts of 64 bits."""

DAMAGED = {
    "version 1": (layout_of_version_1(), "laid out as in version 1, not 3"),
    "version 3": (replaced(made(), 4, struct.pack("<I", 1)), "laid out as in version 3, not 1"),
    "byte order": (
        swapped(),
        "swapped byte order: the first numbers are little-endian, the rest is big-endian, version 3",
    ),
    "byte order after the counts": (swapped_after_counts(), "swapped byte order"),
    "version number": (replaced(made(), 4, struct.pack("<I", 77)), "the rest can be read as little-endian, version 3"),
    "truncated metadata": (DEMO[:5000], "cut short"),
    "truncated data": (DEMO[:-1000], "cut short"),
    "truncated in a number": (made()[:60], "cut short"),
    "length": (
        replaced(made(), FIRST_KEY_LENGTH, struct.pack("<Q", 21)),
        "metadata_kv[0].key.len at byte 24 is wrong: with 20 instead of 21 all",
    ),
    "huge length": (
        replaced(made(), FIRST_KEY_LENGTH, struct.pack("<Q", 2**60)),
        "metadata_kv[0].key.len at byte 24 is wrong: with 20 instead of 1152921504606846976 all",
    ),
    "count": (replaced(made(), 16, struct.pack("<Q", 4)), "metadata_kv_count at byte 16 is wrong: with 3 instead of 4"),
    "type": (replaced(made(), 52, struct.pack("<I", 88)), "with STRING instead of 88 all"),
    "huge count": (replaced(made(), 8, struct.pack("<Q", 2**60)), "tensor_count at byte 8 is wrong: with 2 instead of"),
    "huge item": (
        replaced(DEMO, DEMO.index(b"<0x41>") - 8, struct.pack("<Q", 2**60)),
        "damaged: no file has 1152921504",
    ),
    "dimensions": (replaced(made(), 212, struct.pack("<Q", 2**15)), "damaged: an offset or a dimension is wrong"),
    "number of dimensions": (
        replaced(made(), 208, struct.pack("<I", 3)),
        "n_dimensions at byte 208 is wrong: with 1 in",
    ),
    "value type": (
        replaced(made(), 52, struct.pack("<I", 4)),
        "value_type at byte 52 is wrong: with STRING instead of",
    ),
    "an earlier length": (
        replaced(made(), 56, struct.pack("<Q", 6)),
        "value.len at byte 56 is wrong: with 5 instead of 6",
    ),
    "before": (b"HTTP/1.1 200 OK\r\n\r\n" + made(), "GGUF stands at byte 19"),
    "text": (built({"a.b": "one\ntwo\n", "c.d": 1}).replace(b"\n", b"\r\n"), "copied as text"),
}


@pytest.mark.parametrize(("data", "cause"), DAMAGED.values(), ids=DAMAGED)
def test_causes(data, cause):
    explained = explain(data)
    assert cause in "\n".join(explained.causes)
    assert f"likely cause: {explained.causes[0]}" in explanation_text(explained)


def test_no_cause_is_made_up():
    """Where nothing tells what happened, nothing is said."""
    page = explain(b"<html>no GGUF here")
    assert page.causes == []
    windows = explain(built({"a.b": "one\r\ntwo\r\n", "c.d": 1})[:-2])
    assert not any("text" in cause for cause in windows.causes)
    data = built({"general.architecture": "llama", "a.b": 1, "c.d": "hello"})
    several = io.BytesIO()
    gs.write(several, {"general.architecture": "llama", "a.b": 1, "c.d": "hello"}, {"x": np.zeros(8, np.float32)})
    whole = several.getvalue()
    place = whole.index(b"x\1\0\0\0") + 1
    (cause,) = explain(replaced(whole, place, b"\x11")).causes
    assert f"n_dimensions at byte {place} is wrong: with 1 instead of 17" in cause
    assert explain(data).error is None
    empty = explain(b"")
    assert (str(empty.error), empty.causes) == ("magic at byte 0: expected b'GGUF', found b'': an empty file", [])


class Zeros(io.RawIOBase):
    """An endless stream, of which nobody may read a megabyte."""

    served = 0

    def readable(self):
        return True

    def read(self, size=-1):
        assert size >= 0
        self.served += size
        assert self.served < 1 << 20
        return bytes(size)


def test_an_endless_stream_is_not_read_to_its_end():
    explained = explain(Zeros())
    assert [fault.code for fault in check(Zeros())] == ["not-gguf"]
    assert "a file of zeros" in str(explained.error)
    assert "a file of zeros" in explanation_text(explained)


def test_what_can_be_opened_may_be_odd():
    """A file of version 3 that says 1 has no pairs and a large tail; one tensor fewer than there are is padding."""
    data = built({"general.architecture": "llama", "llama.block_count": 1})
    version = explain(replaced(data, 4, struct.pack("<I", 1)))
    assert (version.error, version.causes) == (None, ["wrong version: the rest is laid out as in version 3, not 1"])
    assert {fault.code for fault in version.warnings} >= {"version-1", "tail-nonzero"}
    text = explanation_text(version)
    assert text.startswith("the file can be opened, but something is odd:\n- version at byte 4: version 1")
    fewer = explain(replaced(made(), 8, struct.pack("<Q", 1)))
    assert ("tensor_count", 8) in [(fault.path, fault.start) for fault in fewer.warnings]


def test_the_text():
    lines = explanation_text(explain(DAMAGED["huge length"][0])).splitlines()
    assert lines[0].startswith("metadata_kv[0].key.len at byte 24: 1152921504606846976 bytes declared, ")
    assert "          16            8  metadata_kv_count: 3" in lines
    assert "           8  02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00  ................" in lines
    assert "          24 [00 00 00 00 00 00 00 10 67 65 6e 65 72 61 6c 2e  ........general." in lines
    assert "expected there: uint64: Length in bytes, without a terminator" in lines


def test_a_place_after_the_end():
    data = built({"a.b": (gs.GGUFValueType.UINT64, 1)})[:-8]
    assert f"{len(data):>12} [the file ends here" in explanation_text(explain(data)).splitlines()


def test_long_lists_are_shortened():
    text = explanation_text(explain(DEMO[:-1000]))
    assert "more fields" in text
    assert len(text.splitlines()) < 40


@needs_corpus
@pytest.mark.parametrize("path", corpus_files("*.gguf"), ids=lambda path: path.name)
def test_truncated_vocabularies(path):
    data = path.read_bytes()[: path.stat().st_size // 2]
    explained = explain(data)
    assert explained.causes == [f"cut short: a download or a copy that was interrupted; the file has {len(data)} bytes"]


@pytest.mark.parametrize("seed", range(60))
def test_damaged_bytes(seed):
    """Whatever the bytes are: an explanation that agrees with `open`, or that there is nothing to explain."""
    chance = random.Random(seed)
    data = bytearray(DEMO[: chance.choice([100, 1000, 7000, len(DEMO)])])
    for _ in range(chance.randrange(1, 8)):
        data[chance.randrange(min(len(data), 2000))] = chance.randrange(256)
    explained = explain(bytes(data))
    assert str(explained.error) == str(refusal(bytes(data)))
    assert explanation_text(explained).replace("\n", "").isprintable()


def test_the_command(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    path.write_bytes(DEMO)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out == "nothing is wrong: the file can be opened\n"
    path.write_bytes(DEMO[:100])
    assert main(["explain", str(path)]) == 2
    assert "likely cause: cut short" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "missing")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_hostile_text_is_escaped(tmp_path, capsys):
    path = tmp_path / "hostile.gguf"
    gs.write(path, {"a\x1b[2J.b": "\x07‮"})
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["explain", str(path)]) == 2
    assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "‮"}


def test_the_field_that_was_damaged_is_named():
    """Of numbers with one bit turned: the field itself, by the error or as a cause, and hardly ever another one."""
    data = made()
    named = others = refused = 0
    for leaf in leaves(gs.open(data), everything):
        if not isinstance(leaf.value, int) or leaf.end == leaf.start or leaf.path == "version":
            continue
        for bit in range(0, 8 * (leaf.end - leaf.start), 7):
            number = int.from_bytes(data[leaf.start : leaf.end], "little") ^ (1 << bit)
            explained = explain(replaced(data, leaf.start, number.to_bytes(leaf.end - leaf.start, "little")))
            causes = "\n".join(explained.causes)
            refused += explained.error is not None
            if explained.error is not None and (explained.error.path == leaf.path or f"{leaf.path} at byte" in causes):
                named += 1
            elif " is wrong: with " in causes:
                others += 1
    assert refused > 100
    assert named > 0.75 * refused
    assert others < 0.05 * refused
