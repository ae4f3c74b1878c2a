"""Each row of the table of divergences is held against the labelled cases and the readers that are installed."""

import json
import subprocess
import sys
import warnings

import pytest

import gguf_schema as gs
from gguf_schema.divergences import DIVERGENCES, LIMITS

from .node import run_node
from .shared import CASES, cases, needs_cases

CASE = {case["name"]: case for case in cases()}
VERDICTS = {
    "allows": {"accept"},
    "forbids": {"reject"},
    "silent": {"undefined"},
    "reads": {"accept", "accept-lazy-error", "warn"},
    "refuses": {"reject", "abort"},
    "hangs": {"hang"},
}
LABELS = {
    "specification": "spec",
    "llama_cpp": "llama.cpp",
    "gguf_py": "gguf-py_0.19.0",
    "gguf_schema": "gguf_schema_default",
}
each_row = pytest.mark.parametrize("row", DIVERGENCES, ids=[row.subject.replace(" ", "_") for row in DIVERGENCES])


@needs_cases
@each_row
@pytest.mark.parametrize("column", LABELS)
def test_labels(row, column):
    """What the row says of the specification and of readers is what the labels of its cases say."""
    found = {CASE[name]["expected"][LABELS[column]] for name in row.cases}
    assert found <= VERDICTS[getattr(row, column)]
    assert row.cases


@needs_cases
@each_row
def test_ours(row):
    """What the row says of `open` is what it does."""
    for name in row.cases:
        try:
            with gs.open(CASE[name]["bytes"]):
                verdict = "reads"
        except gs.GGUFError:
            verdict = "refuses"
        assert verdict == row.gguf_schema, name


@needs_cases
@each_row
def test_gguf_py(row):
    """What the row says of gguf-py is what the installed one does."""
    gguf = pytest.importorskip("gguf")
    if row.gguf_py == "hangs":
        read = f"import gguf; gguf.GGUFReader({str(CASES / CASE[row.cases[0]]['file'])!r})"
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-c", read], timeout=5)
        return
    for name in row.cases:
        try:
            with warnings.catch_warnings(action="ignore"):
                gguf.GGUFReader(CASES / CASE[name]["file"])
            verdict = "reads"
        except Exception:
            verdict = "refuses"
        assert verdict == row.gguf_py, name


READ_ALL = """
const { gguf } = require("@huggingface/gguf");
async function all() {
    const verdicts = {};
    for (const path of process.argv.slice(1)) {
        verdicts[path] = await gguf(path, { allowLocalFile: true }).then(() => null, (error) => error.message);
    }
    console.log(JSON.stringify(verdicts));
}
all();
"""


@pytest.fixture(scope="module")
def huggingface_js():
    """What huggingface.js says to each case: path → message, or None where it reads the file."""
    paths = [str(CASES / case["file"]) for case in CASE.values()]
    return json.loads(run_node("@huggingface/gguf", READ_ALL, *paths))


@needs_cases
@each_row
def test_huggingface_js(row, huggingface_js):
    """What the row says of huggingface.js is what the installed one does."""
    for name in row.cases:
        message = huggingface_js[str(CASES / CASE[name]["file"])]
        assert ("reads" if message is None else "refuses") == row.huggingface_js, name


@needs_cases
@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("Metadata pairs", "n_header_n_kv_2p32"),
        ("Tensors", "n_header_n_tensors_2p40"),
        ("Bytes of a string", "n_kv_str_len_1gib"),
        ("Elements of an array", "n_array_u8_count_1gib"),
        ("Levels of arrays", "i_array_depth_64"),
        ("Bytes of a tensor name", "n_tensor_name_len_max"),
        ("Dimensions of a tensor", "n_tensor_n_dims_9"),
        ("Elements in a dimension", "n_tensor_dims_2p40_x_2p40"),
    ],
)
def test_limits_of_huggingface_js(subject, name, huggingface_js):
    """It names its limits when it refuses a file."""
    limit = next(row for row in LIMITS if row.subject == subject).huggingface_js
    number = 2 ** int(limit[2:]) if limit.startswith("2^") else int(limit.replace(",", ""))
    assert f"maximum allowed ({number})" in huggingface_js[str(CASES / CASE[name]["file"])]


@needs_cases
@pytest.mark.parametrize(
    ("subject", "name"), [("Levels of arrays", "i_array_depth_64"), ("Dimensions of a tensor", "n_tensor_n_dims_9")]
)
def test_our_limits(subject, name):
    """And so do we."""
    limit = next(row for row in LIMITS if row.subject == subject).gguf_schema
    with pytest.raises(gs.GGUFError, match=rf"\b{limit}\b"):
        gs.open(CASE[name]["bytes"])


@needs_cases
def test_every_known_difference_has_a_row():
    """No labelled case on which specification or readers differ is left out, but for those that are named here."""
    told = {name for row in DIVERGENCES for name in row.cases}
    verdicts = {name: {_verdict(case["expected"][label]) for label in LABELS.values()} for name, case in CASE.items()}
    assert {name for name, found in verdicts.items() if found >= {"may be read", "may not"}} - told == FORKS


def _verdict(label):
    """A label as a verdict, whoever gave it."""
    words = {"accept": "may be read", "accept-lazy-error": "may be read", "warn": "may be read", "undefined": "silent"}
    return words.get(label.split("|")[0], "may not")


FORKS = {"b013_i_be_tensor_not_swapped", "b081_i_type_42_other_fork"}
"""Big-endian again, with a fault that no reader sees; and a type id that a fork uses for something else."""


def test_subjects_are_told_once():
    for table in (DIVERGENCES, LIMITS):
        subjects = [row.subject for row in table]
        assert len(set(subjects)) == len(subjects)
