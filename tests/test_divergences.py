"""Each row of the table of divergences is held against the labelled cases and the readers that are installed."""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.divergences import DIVERGENCES
from gguf_schema.reader_limits import LIMITS

from .node import run_node
from .older import unexplained
from .peers import gguf_py, llama_cpp_verdicts
from .shared import CASES, cases, needs_cases
from .test_generated_files import encode_head

UINT8, UINT32, STRING, ARRAY = 0, 4, 8, 9
I8 = 24


def file_of(pairs=(), infos=()):
    """A file of pairs (key, type, value) and tensors (name, dimensions, type), each in 32 bytes of data."""
    head = encode_head(
        {
            "order": "<",
            "version": 3,
            "metadata_kv": [{"key": key, "value_type": type, "value": value} for key, type, value in pairs],
            "tensor_infos": [
                {"name": name, "dimensions": dimensions, "type": type, "offset": 32 * index}
                for index, (name, dimensions, type) in enumerate(infos)
            ],
        }
    )
    return head + bytes(-len(head) % 32 + 32 * len(infos)) if infos else head


MADE = {
    **{f"made_key_{name}": file_of([(f"GGUF.{name}", UINT32, 1)]) for name in ("version", "tensor_count", "kv_count")},
    "made_tensor_name_duplicate": file_of(infos=[("a", [1], I8), ("a", [1], I8)]),
}
"""Files for rows that no labelled one shows."""

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


def one_by_one(read: Callable[[Path], object], fault: type[Exception]) -> Callable[[Iterable[Path]], dict[Path, str]]:
    """The verdicts of a reader in Python."""

    def verdict(path: Path) -> str:
        try:
            with warnings.catch_warnings(action="ignore"):
                read(path)
        except fault:
            return "refuses"
        return "reads"

    return lambda paths: {path: verdict(path) for path in paths}


READ_ALL = """
const { gguf } = require("@huggingface/gguf");
async function all() {
    const messages = {};
    for (const path of JSON.parse(require("fs").readFileSync(0))) {
        messages[path] = await gguf(path, { allowLocalFile: true }).then(() => null, (error) => error.message);
    }
    console.log(JSON.stringify(messages));
}
all();
"""


def messages_of_huggingface_js(paths: Iterable[Path]) -> dict[Path, str | None]:
    """What huggingface.js says to each file; None where it reads it."""
    printed = run_node("@huggingface/gguf", READ_ALL, given=json.dumps([*map(str, paths)]))
    return {Path(path): message for path, message in json.loads(printed).items()}


def huggingface_js(paths: Iterable[Path]) -> dict[Path, str]:
    """The verdicts of huggingface.js."""
    messages = messages_of_huggingface_js(paths)
    return {path: "reads" if message is None else "refuses" for path, message in messages.items()}


READERS: dict[str, Callable[[Iterable[Path]], dict[Path, str]]] = {
    "gguf_schema": one_by_one(lambda path: gs.open(path).close(), gs.GGUFError),
    "llama_cpp": llama_cpp_verdicts,
    "gguf_py": one_by_one(lambda path: gguf_py().GGUFReader(path), Exception),
    "huggingface_js": huggingface_js,
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """All files by the names of their cases."""
    folder = tmp_path_factory.mktemp("made")
    for name, data in MADE.items():
        (folder / name).write_bytes(data)
    return {**{name: CASES / case["file"] for name, case in CASE.items()}, **{name: folder / name for name in MADE}}


def asked(reader, paths):
    """The verdicts of a reader by the names of cases, without those for which it would not end."""
    hanging = {name for name, case in CASE.items() if case["expected"].get(LABELS.get(reader)) == "hang"}
    verdicts = READERS[reader](path for name, path in paths.items() if name not in hanging)
    return {name: verdicts[path] for name, path in paths.items() if name not in hanging}


@pytest.fixture(scope="module", params=READERS)
def seen(request, paths):
    """A reader, and its verdicts."""
    return request.param, asked(request.param, paths)


def rows(*, made: bool) -> list:
    """The rows to test, those too of which all files are made."""
    made_only = [row for row in DIVERGENCES if MADE.keys() >= {*row.cases}]
    return [
        pytest.param(row, id=row.subject.replace(" ", "_"), marks=[] if row in made_only else needs_cases)
        for row in DIVERGENCES
        if made or row not in made_only
    ]


@pytest.mark.parametrize("row", rows(made=False))
@pytest.mark.parametrize("column", LABELS)
def test_labels(row, column):
    """What the row says of the specification and of readers is what the labels of its cases say."""
    labelled = [CASE[name]["expected"][LABELS[column]] for name in row.cases if name not in MADE]
    assert labelled
    assert {*labelled} <= VERDICTS[getattr(row, column)]


@pytest.mark.parametrize("row", rows(made=True))
def test_readers(row, seen, paths):
    """What the row says of a reader is what the installed one does; that llama.cpp's is older is known."""
    reader, verdicts = seen
    told = getattr(row, reader)
    if told == "hangs":
        read = f"import gguf; gguf.GGUFReader({str(CASES / CASE[row.cases[0]]['file'])!r})"
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-c", read], timeout=5)
        return
    others = {name: paths[name].read_bytes() for name in row.cases if verdicts[name] != told}
    assert not others or (reader == "llama_cpp" and unexplained("llama.cpp", others) == set()), others.keys()


@needs_cases
@pytest.mark.parametrize(("label", "with_data"), [("llama.cpp", False), ("llama.cpp_full", True)])
def test_llama_cpp_is_as_labelled_but_where_it_is_older(label, with_data, paths):
    verdicts = llama_cpp_verdicts(paths.values(), with_data)
    differ = {name for name, case in CASE.items() if case["expected"][label] not in VERDICTS[verdicts[paths[name]]]}
    assert differ
    profile = "llama.cpp-data" if with_data else "llama.cpp"
    assert unexplained(profile, {name: paths[name].read_bytes() for name in differ}) == set()


@needs_cases
def test_llama_cpp_with_data():
    """The remark is right that it refuses then what it reads without."""
    refused = [row for row in DIVERGENCES if row.remark == "llama.cpp refuses when it reads data, too"]
    assert len(refused) == 2
    files = {CASES / CASE[name]["file"] for row in refused for name in row.cases}
    assert {*llama_cpp_verdicts(files, with_data=True).values()} == {"refuses"}


MOST = {
    "Metadata pairs": lambda n: file_of([(str(index), UINT8, 0) for index in range(n)]),
    "Bytes of a string": lambda n: file_of([("a", STRING, "x" * n)]),
    "Elements of an array": lambda n: file_of([("a", ARRAY, {"type": UINT8, "array": np.zeros(n, np.uint8)})]),
    "Levels of arrays": lambda n: file_of([("a", ARRAY, nested(n))]),
    "Bytes of a tensor name": lambda n: file_of(infos=[("n" * n, [1], I8)]),
    "Dimensions of a tensor": lambda n: file_of(infos=[("a", [1] * n, I8)]),
    "Elements in a dimension": lambda n: file_of(infos=[("a", [0, n], I8)]),
    "Largest tensor type": lambda n: file_of(infos=[("a", [1], n)]),
}
"""Files with so much of what is limited."""
READ_FROM_CODE = {"llama_cpp": ["Metadata pairs", "Tensors", "Bytes of a string", "Elements of an array"]}
STATED = {"Tensors": "n_header_n_tensors_2p40", "Bytes of a tensor name": "n_tensor_name_len_max"}
"""Limits of huggingface.js that it states when it refuses a file, and that file."""
NUMBERED = [
    (reader, row.subject)
    for row in LIMITS
    for reader in READERS
    if getattr(row, reader)[-1].isdigit()
    and row.subject not in READ_FROM_CODE.get(reader, ())
    and not (reader == "huggingface_js" and row.subject in STATED)
]


def nested(levels):
    """An array of so many levels."""
    array = {"type": UINT8, "array": [1]}
    for _ in range(levels - 1):
        array = {"type": ARRAY, "array": [array]}
    return array


def limit_of(reader, subject):
    """The number in a cell of the table."""
    number, _, less = getattr(next(row for row in LIMITS if row.subject == subject), reader).partition(" - ")
    base, _, exponent = number.replace(",", "").partition("^")
    return int(base) ** int(exponent or 1) - int(less or 0)


@pytest.mark.parametrize(("reader", "subject"), NUMBERED)
def test_limits(reader, subject, tmp_path):
    """So much is read, and one more is not."""
    limit = limit_of(reader, subject)
    most, more = tmp_path / "most", tmp_path / "more"
    most.write_bytes(MOST[subject](limit))
    more.write_bytes(MOST[subject](limit + 1))
    assert READERS[reader]([most, more]) == {most: "reads", more: "refuses"}


@needs_cases
@pytest.mark.parametrize(("subject", "name"), STATED.items())
def test_limits_that_huggingface_js_states(subject, name):
    path = CASES / CASE[name]["file"]
    assert f"maximum allowed ({limit_of('huggingface_js', subject)})" in messages_of_huggingface_js([path])[path]


@pytest.mark.parametrize("reader", ["gguf_schema", "gguf_py"])
def test_no_limits(reader, tmp_path):
    """More is read than huggingface.js takes."""
    paths = []
    for subject in ("Metadata pairs", "Bytes of a string", "Bytes of a tensor name"):
        assert getattr(next(row for row in LIMITS if row.subject == subject), reader) == "none"
        paths.append(tmp_path / subject)
        paths[-1].write_bytes(MOST[subject](limit_of("huggingface_js", subject) + 1))
    assert {*READERS[reader](paths).values()} == {"reads"}


@needs_cases
def test_every_known_difference_has_a_row():
    """No labelled case on which specification or readers differ is left out, but for those that are named here."""
    assert not_told({}) == FORKS


@needs_cases
def test_every_difference_of_huggingface_js_has_a_row(paths):
    """Of it there are no labels."""
    assert not_told(asked("huggingface_js", paths)) == FORKS


def not_told(live):
    """The labelled cases that are in no row, though labels or the verdicts that are given differ."""
    told = {name for row in DIVERGENCES for name in row.cases}
    words = {"reads": "may be read", "refuses": "may not"}
    found = set()
    for name, case in CASE.items():
        verdicts = {_verdict(case["expected"][label]) for label in LABELS.values()} | {words.get(live.get(name))}
        if verdicts >= {*words.values()}:
            found.add(name)
    return found - told


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
