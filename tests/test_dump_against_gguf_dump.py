"""`dump` against gguf-py's `gguf-dump`: the same text, JSON and Markdown, but for the differences written out here."""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import gguf_schema
from gguf_schema import GGMLQuantizationType, GGUFValueType
from gguf_schema.dump import dump_json, dump_markdown, dump_text

from .shared import CORPUS, needs_corpus

pytest.importorskip("gguf")
from gguf.scripts import gguf_dump

FORMS = {
    "text": ([], lambda model: dump_text(model) + "\n"),
    "text, no tensors": (["--no-tensors"], lambda model: dump_text(model, tensors=False) + "\n"),
    "json": (["--json"], dump_json),
    "json, arrays": (["--json", "--json-array"], lambda model: dump_json(model, arrays=True)),
    "json, no tensors": (["--json", "--no-tensors"], lambda model: dump_json(model, tensors=False)),
    "markdown": (["--markdown"], lambda model: dump_markdown(model) + "\n"),
    "markdown, no tensors": (["--markdown", "--no-tensors"], lambda model: dump_markdown(model, tensors=False) + "\n"),
}
"""Form → options of gguf-dump, our function. `print` ends gguf-dump's text and Markdown with a newline."""

FILES = (
    "ggml-vocab-bert-bge.gguf",
    "written/align4096.gguf",
    "written/all13.gguf",
    "written/bigendian.gguf",
    "written/bigendian_q8_0.gguf",
    "written/dims4.gguf",
    "written/dims5.gguf",
    "written/kvonly.gguf",
    "written/name64.gguf",
    "written/nested.gguf",
    "written/zero_dims.gguf",
    "written/zero_elems.gguf",
    "types/BF16.gguf",
    "types/IQ1_M.gguf",
    "types/MXFP4.gguf",
    "types/Q4_K.gguf",
    "types/Q8_1.gguf",
    "types/Q8_K.gguf",
    "types/TQ1_0.gguf",
    "shards/model-00001-of-00003.gguf",
)
"""Of the corpus. Not types/Q2_0.gguf: gguf-py 0.19.0 does not know the type and fails."""


class Difference(NamedTuple):
    """A tolerated difference: in these files and forms, gguf-dump prints `theirs` once where we print `ours`."""

    files: tuple[str, ...]
    forms: tuple[str, ...]
    theirs: str
    ours: str


ALL_13 = ("written/all13.gguf", "written/bigendian.gguf", "written/kvonly.gguf")
NESTED = ("written/nested.gguf",)
Q8_1 = ("types/Q8_1.gguf",)
TEXT = ("text", "text, no tensors")
ARRAYS = ("json, arrays",)
MARKDOWN = ("markdown", "markdown, no tensors")
TENSORS = ("markdown",)

DIFFERENCES = (
    # Infinity and NaN are no JSON: strict parsers refuse the whole document. Ours are strings.
    Difference(
        ALL_13,
        ARRAYS,
        "[0.5, Infinity, -Infinity, NaN, -0.0]",
        '[0.5, "Infinity", "-Infinity", "NaN", -0.0]',
    ),
    # A newline ends the row in the middle of the cell; NUL is no character of Markdown; two backticks are no code span.
    Difference(
        ALL_13,
        MARKDOWN,
        "[ `a`, ``, `ü`, `\0nul`, `\n` ]                 |",
        r"[ `a`, ` `, `ü`, `\x00nul`, `\n` ]            |",
    ),
    # gguf-dump flattens arrays of arrays: [[1, 2], [3]] cannot be told from [[1], [2, 3]].
    Difference(NESTED, TEXT, "n.two = [1, 2, 3]", "n.two = [[1, 2], [3]]"),
    Difference(NESTED, TEXT, "n.three = ['a', 'b', 'c']", "n.three = [[['a'], ['b', 'c']]]"),
    Difference(NESTED, ARRAYS, '"value": [1, 2, 3]', '"value": [[1, 2], [3]]'),
    Difference(NESTED, ARRAYS, '"value": ["a", "b", "c"]', '"value": [[["a"], ["b", "c"]]]'),
    # In Markdown it shows nothing of them; ours need a wider column.
    Difference(
        NESTED,
        MARKDOWN,
        "Value     |\n|----:|:-------------|------:|:---------------------|:----------|",
        "Value                         |\n"
        "|----:|:-------------|------:|:---------------------|:------------------------------|",
    ),
    Difference(NESTED, MARKDOWN, "GGUF.version         | 3         |", f"GGUF.version         | 3{' ' * 28} |"),
    Difference(NESTED, MARKDOWN, "GGUF.tensor_count    | 3         |", f"GGUF.tensor_count    | 3{' ' * 28} |"),
    Difference(NESTED, MARKDOWN, "GGUF.kv_count        | 3         |", f"GGUF.kv_count        | 3{' ' * 28} |"),
    Difference(NESTED, MARKDOWN, "| `llama`   |", f"| `llama`{' ' * 22} |"),
    Difference(
        NESTED,
        MARKDOWN,
        "n.two                | [ , ... ] |",
        f"n.two                | [ [ 1, 2 ], [ 3 ] ]{' ' * 10} |",
    ),
    Difference(
        NESTED,
        MARKDOWN,
        "n.three              | [ , ... ] |",
        "n.three              | [ [ [ `a` ], [ `b`, `c` ] ] ] |",
    ),
    # gguf-py takes a block of Q8_1 for 40 bytes; ggml's is 36 (two float16 and 32 int8).
    Difference(Q8_1, TENSORS, "           0x1400 |", "           0x1200 |"),
    Difference(
        Q8_1,
        TENSORS,
        "Human Friendly Tensor Layer Name      | Elements   | Shape           | Type |     BPW |",
        "Human Friendly Tensor Layer Name      | Elements   | Shape           | Type |    BPW |",
    ),
    Difference(Q8_1, TENSORS, ":-----|--------:|\n|    0 | blk", ":-----|-------:|\n|    0 | blk"),
    Difference(Q8_1, TENSORS, "Q8_1 | 10.0000 |", "Q8_1 | 9.0000 |"),
    Difference(Q8_1, TENSORS, "for blk.0: 10.0000 bits", "for blk.0: 9.0000 bits"),
    Difference(Q8_1, TENSORS, "for Q8_1.gguf: 12.4444 bits", "for Q8_1.gguf: 11.5556 bits"),
)


@pytest.fixture
def theirs(monkeypatch, capsys):
    """Runs gguf-dump with arguments; gives what it prints."""

    def run(path: Path, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["gguf-dump", str(path), *options])
        capsys.readouterr()
        gguf_dump.main()
        return capsys.readouterr().out

    return run


@needs_corpus
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", FILES)
def test_corpus(file, form, theirs):
    options, ours = FORMS[form]
    expected = theirs(CORPUS / file, *options)
    for difference in DIFFERENCES:
        if file in difference.files and form in difference.forms:
            assert expected.count(difference.theirs) == 1, f"gguf-dump no longer prints {difference.theirs!r}"
            expected = expected.replace(difference.theirs, difference.ours)
    with gguf_schema.open(CORPUS / file, shards=False) as model:
        assert ours(model) == expected


def q8_0(values: np.ndarray) -> np.ndarray:
    """Blocks of Q8_0 as ggml's reference makes them."""
    rows = values.astype(np.float32).reshape(*values.shape[:-1], -1, 32)
    scale = np.abs(rows).max(axis=-1, keepdims=True) / np.float32(127)
    scaled = rows * (np.float32(1) / scale)
    block = np.dtype([("d", "<f2"), ("qs", "i1", 32)])
    blocks = np.empty(rows.shape[:-1], block)
    blocks["d"] = scale[..., 0]
    blocks["qs"] = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    return blocks


@pytest.fixture
def worked_example(tmp_path) -> Path:
    """The whole file of a public lesson on the format."""
    path = tmp_path / "lesson.gguf"
    metadata = {
        "general.architecture": "llama",
        "general.name": "java-written",
        "llama.embedding_length": (GGUFValueType.UINT32, 64),
        "llama.attention.layer_norm_rms_epsilon": (GGUFValueType.FLOAT32, 1e-5),
        "tokenizer.ggml.tokens": ["<s>", "hello", "world"],
    }
    embedding = (np.sin(0.1 * np.arange(192)) * 0.05).reshape(3, 64)
    tensors = {
        "output_norm.weight": np.ones(64, np.float32),
        "token_embd.weight": (GGMLQuantizationType.Q8_0, q8_0(embedding)),
    }
    gguf_schema.write(path, metadata, tensors)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_worked_example(worked_example, form, theirs):
    options, ours = FORMS[form]
    assert worked_example.stat().st_size == 896
    with gguf_schema.open(worked_example) as model:
        assert model.data_offset == 416
        assert ours(model) == theirs(worked_example, *options)


def test_worked_example_prints_what_the_lesson_says(worked_example):
    with gguf_schema.open(worked_example) as model:
        lines = dump_text(model).splitlines()
    assert lines[8] == "      7: FLOAT32    |        1 | llama.attention.layer_norm_rms_epsilon = 9.999999747378752e-06"
    assert lines[9] == "      8: [STRING]   |        3 | tokenizer.ggml.tokens = ['<s>', 'hello', 'world']"
    assert lines[12] == "      2:        192 |    64,     3,     1,     1 | Q8_0    | token_embd.weight"


NAMES = (
    "enc.blk.0.attn_q.weight",
    "enc.output_norm.weight",
    "dec.blk.11.ffn_gate_exp.weight",
    "dec.output.bias",
    "blk.0.ffn_gate_inp.weight",
    "blk.0.ssm_conv1d.bias",
    "blk.10.attn_norm_2.weight",
    "pos_embd.weight",
    "v.patch-embd.weight",
)


@pytest.mark.parametrize("form", FORMS)
def test_groups_and_long_values(tmp_path, form, theirs):
    """Every kind of group, the words for names, counts beyond a thousand and a million, and where values are cut."""
    options, ours = FORMS[form]
    path = tmp_path / "groups.gguf"
    metadata = {
        "general.architecture": "t5",
        "general.description": "x" * 61,
        "general.version": "x" * 60,
        "general.license": "`quoted` \\ " + "'\"",
        "tokenizer.chat_template": "{%- for `message` in messages -%}" * 9,
        "ints": list(range(8)),
        "exactly.six": list(range(6)),
        "exactly.seven": [0.1, 0.2, 1e10, 1e-10, 3.0, 123456.789, -0.0],
        "strings": ["s" * 31, "`", "``x", "ü" * 30, "e", "f", "g"],
        "empty": (gguf_schema.ArrayType(GGUFValueType.INT32), []),
        "u64": (GGUFValueType.UINT64, 2**64 - 1),
        "f64": (GGUFValueType.FLOAT64, 1e300),
    }
    sizes = (1, 999, 1000, 1001, 1500, 2500, 1_000_001, 3, 4)
    tensors = {name: np.zeros(size, np.int8) for name, size in zip(NAMES, sizes, strict=True)}
    gguf_schema.write(path, metadata, tensors)
    with gguf_schema.open(path) as model:
        assert ours(model) == theirs(path, *options)
