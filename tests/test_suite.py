"""The suite of files: whole, current, as our validator and the installed readers judge, and read as it says."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.file import any_source
from gguf_schema.schema import ORDER_NAMES
from gguf_schema.suite import PAIRS, folder, suite
from gguf_schema.suite.manifest import EXACT, LONGEST
from gguf_schema.validate import PROFILES, RULES, check, faults, verdict
from gguf_schema.validate.profiles import BY_CODE

from . import peers
from .older import unexplained

COMMITTED = Path(__file__).parent / "suite"
CASES = {case.name: case for case in suite()}
RECORDS = json.loads((COMMITTED / "suite.json").read_bytes())["cases"]
OF_CODE = {pair.code: pair for pair in PAIRS}
NEEDS_JINJA = {"template-syntax"}
"""Rules that find nothing without a package that is not always installed."""

each_case = pytest.mark.parametrize("name", CASES)
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def found_in(name):
    """What the validator says of a case."""
    if NEEDS_JINJA & set(CASES[name].rules):
        pytest.importorskip("jinja2")
    return check(CASES[name].made.data, data=True)


# It is whole and current.


def test_every_rule_has_a_file_and_a_twin():
    missing = [rule.code for rule in RULES if rule.code not in OF_CODE]
    assert not missing, (
        f"no file breaks {', '.join(missing)}: add a Pair to PAIRS in the module of its family in gguf_schema/suite "
        "(a good file, the one change that breaks the rule, the field at fault, and who refuses it), "
        "and run tools/regen.py"
    )
    assert [pair.code for pair in PAIRS if pair.code not in BY_CODE] == []
    assert len(OF_CODE) == len(PAIRS)


def test_features_are_complete():
    """A new value type or tensor type has its file."""
    values = {*gs.structs().numbers, gs.GGUFValueType.STRING}
    wanted = {f"{form}-{type.name.lower()}" for type in values for form in ("value", "array")}
    wanted |= {f"tensor-{type.name.lower()}" for type in gs.GGMLQuantizationType if type.name in peers.TYPES}
    assert {f"features/{name}" for name in wanted} <= CASES.keys()


def test_what_is_committed_is_what_is_made():
    """Byte by byte, and nothing else is in the folder."""
    committed = {
        path.relative_to(COMMITTED).as_posix(): path.read_bytes() for path in COMMITTED.rglob("*") if path.is_file()
    }
    assert committed == folder.files(), "run: python tools/regen.py (and remove what is no part of the suite any more)"


def test_it_is_the_same_every_time(tmp_path):
    """In another process, whose hashes of strings differ."""
    command = [sys.executable, "-m", "gguf_schema", "suite", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": "7"}, cwd=COMMITTED.parents[1])
    assert {name: (tmp_path / name).read_bytes() for name in folder.files()} == folder.files()


def test_names_are_clean():
    assert len(CASES) == len(suite()) == len(RECORDS)
    for case in suite():
        assert re.fullmatch(r"(rules|features|reports)/[a-z0-9._-]+", case.name)
        assert all((case.reason, case.source))
        assert set(case.rules) <= BY_CODE.keys()
        assert bool(case.path) == (case.offset is not None)
        assert len(set(case.rules)) == len(case.rules)


def test_it_is_small():
    assert sum(map(len, folder.files().values())) < 1 << 20


def test_the_manifest_describes_the_files():
    for record in RECORDS:
        data = (COMMITTED / record["file"]).read_bytes()
        assert (record["size"], record["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert record["expected"].keys() == PROFILES.keys(), "a profile has no verdicts: see Case.expected"
        assert (record["values"] is None) == (record["kind"] == "refuse")


# Our verdicts, and places.


@each_case
def test_it_breaks_just_the_rules_that_it_says(name):
    assert {fault.code for fault in found_in(name)} == set(CASES[name].rules)


@each_case
def test_verdicts(name):
    """Those declared are those of the validator; readers, which only read or refuse, do not warn."""
    found = found_in(name)
    assert CASES[name].expected() == {profile.name: verdict(found, profile) for profile in PROFILES.values()}


@pytest.mark.parametrize("name", [case.name for case in suite() if case.path])
def test_places(name):
    case = CASES[name]
    places = [(fault.path, fault.start) for fault in found_in(name) if fault.code == case.rules[0]]
    assert (case.path, case.offset) in places


@each_rule
def test_a_rule_and_nothing_else_makes_the_difference(rule):
    """The twin does not break it. Other rules that are broken with it are notes, or it is told why."""
    pair = OF_CODE[rule.code]
    bad, twin = pair.cases()
    assert rule.code not in twin.rules
    assert bad.made.data != twin.made.data
    others = [code for code in pair.also if BY_CODE[code].severity != "note"]
    assert bool(others) == bool(pair.why)


@each_rule
def test_without_a_rule_its_file_is_judged_otherwise(rule):
    """Mutation: a validator that lacks the rule says less of the file that breaks it."""
    if rule.code in NEEDS_JINJA:
        pytest.importorskip("jinja2")
    data = CASES[f"rules/{rule.code}"].made.data
    whole, without = (faults(any_source(data), rules) for rules in (RULES, [r for r in RULES if r is not rule]))
    assert [fault for fault in whole if fault.code != rule.code] == without != whole
    pair = OF_CODE[rule.code]
    if rule.severity != "note" and not pair.also and not pair.twin_rules:
        assert verdict(without, PROFILES["default"]) == "accept" != verdict(whole, PROFILES["default"])


# What is to be read.


def integer(label):
    return int(label) if isinstance(label, str) else label


def is_text(text, label):
    """Whether a string is the one that the manifest describes."""
    data = text.encode("utf-8", "surrogateescape")
    if isinstance(label, str):
        return text == label
    if "hex" in label:
        return data.hex() == label["hex"]
    return (len(data), hashlib.sha256(data).hexdigest()) == (label["length"], label["sha256"])


def assert_value(type, value, label):
    """One value of ours is the labelled one, floats by their bits."""
    if label["type"] == "ARRAY":
        assert type.type.name == label["elements"]
        assert len(value) == len(label["value"])
        for index, (item, wanted) in enumerate(zip(value, label["value"], strict=True)):
            inner = type.items[index] if label["elements"] == "ARRAY" else type.type
            record = {"type": "ARRAY", **wanted} if label["elements"] == "ARRAY" else {"value": wanted}
            assert_value(inner, item, {"type": label["elements"], **record})
        return
    assert type.name == label["type"]
    wanted = label["value"]
    if label["type"] == "STRING":
        assert is_text(value, wanted)
    elif label["type"].startswith("FLOAT"):
        assert gs.structs(">").numbers[type].build(value).hex() == wanted["bits"]
        assert repr(float(value)) == wanted["number"]
    elif isinstance(wanted, dict):
        assert int(value) == wanted["byte"]
    else:
        assert value == integer(wanted)
        assert (label["type"] == "BOOL") == isinstance(wanted, bool)


def assert_model(model, label):
    assert (ORDER_NAMES[model.order], model.version) == (label["order"], label["version"])
    assert (model.alignment, model.data_offset) == (label["alignment"], label["data_offset"])
    for pair, wanted in zip(model.metadata.pairs, label["pairs"], strict=True):
        assert is_text(pair.key, wanted["key"])
        assert_value(pair.type, pair.value, wanted)
    for tensor, wanted in zip(model.tensors.infos, label["tensors"], strict=True):
        assert is_text(tensor.name, wanted["name"])
        assert (int(tensor.type), tensor.offset) == (wanted["type"], wanted["offset"])
        assert list(tensor.dimensions) == list(map(integer, wanted["dimensions"]))
        if wanted["n_bytes"] is not None:
            assert tensor.n_bytes == wanted["n_bytes"]
            assert (
                hashlib.sha256(model.source.read_at(tensor.data_offset, tensor.n_bytes)).hexdigest() == wanted["sha256"]
            )


@pytest.mark.parametrize("record", [r for r in RECORDS if r["kind"] != "refuse"], ids=lambda record: record["name"])
def test_values(record):
    with gs.open(COMMITTED / record["file"]) as model:
        assert_model(model, record["values"])


def test_numbers_are_exact_and_strings_are_short():
    """What a JSON parser could round, or nobody wants to look at, is written otherwise."""

    def numbers(value):
        if isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from numbers(item)
        elif isinstance(value, str):
            assert len(value.encode()) <= LONGEST
        else:
            yield value

    assert max(abs(number) for record in RECORDS for number in numbers(record) if number is not None) <= EXACT


# Readers as installed.


FILES = {COMMITTED / case.file: case for case in suite()}


def differences(verdicts, profile):
    """The names of the cases for which a reader does otherwise than the manifest says."""
    words = {"reads": "accept", "refuses": "reject"}
    return {case.name for path, case in FILES.items() if words[verdicts[path]] != case.expected()[profile]}


def test_gguf_py_judges_as_its_profile_says():
    assert differences(peers.gguf_py_verdicts(FILES), "gguf-py") == set()


@pytest.mark.parametrize("with_data", [False, True])
def test_llama_cpp_judges_as_its_profile_says(with_data):
    """But for what is known of the installed one, which is older."""
    profile = "llama.cpp-data" if with_data else "llama.cpp"
    differ = differences(peers.llama_cpp_verdicts(FILES, with_data), profile)
    assert differ
    assert unexplained(profile, {name: CASES[name].made.data for name in differ}) == set()


def as_seen(label):
    """The labelled values as a reader shows them."""
    kinds = {type.name: int(type) for type in gs.GGUFValueType}

    def single(type, value):
        if isinstance(value, dict):
            return f"bits {int(value['bits'], 16):#x}"
        return value if type in ("STRING", "BOOL") else integer(value)

    pairs = []
    for pair in label["pairs"]:
        elements, value = pair.get("elements"), pair["value"]
        seen = [single(elements, item) for item in value] if elements else single(pair["type"], value)
        pairs.append(peers.Pair(pair["key"], kinds[pair["type"]], elements and kinds[elements], seen))
    tensors = [
        (tensor["name"], tensor["type"], tuple(map(integer, tensor["dimensions"])), tensor["offset"], tensor["sha256"])
        for tensor in label["tensors"]
    ]
    order = {name: order for order, name in ORDER_NAMES.items()}[label["order"]]
    return label["version"], order, label["alignment"], label["data_offset"], pairs, tensors


STALE = "gguf-py 0.19.0 takes a block of Q8_1 for 40 bytes; ggml has 36"
READ_OTHERWISE = {
    "features/tensor-q8_1": STALE,
    "rules/q8-1-short.twin": STALE,
    "rules/key-long.twin": "the manifest does not repeat its key",
}
"""What gguf-py does not read as the manifest says, and why."""


@pytest.mark.parametrize(
    "record",
    [
        record
        for record in RECORDS
        if record["kind"] == record["expected"]["gguf-py"] == "accept" and record["name"] not in READ_OTHERWISE
    ],
    ids=lambda record: record["name"],
)
def test_gguf_py_reads_the_values(record):
    peers.gguf_py()
    seen = peers.read_with_gguf_py((COMMITTED / record["file"]).read_bytes())
    tensors = [(*tensor[:4], hashlib.sha256(tensor.data).hexdigest()) for tensor in seen.tensors]
    assert (*seen[:4], seen.pairs, tensors) == as_seen(record["values"])


# The command, and the harness that goes with the files.


def test_the_command_writes_only_where_it_may(tmp_path, capsys):
    target = tmp_path / "new" / "suite"
    assert main(["suite", str(target)]) == 0
    assert f"{len(folder.files())} files" in capsys.readouterr().out
    (target / "rules" / "gone.gguf").write_bytes(b"of an older suite")
    (target / "rules" / "notes.txt").write_bytes(b"somebody's")
    (target / "rules" / "key-twice.gguf").write_bytes(b"edited")
    assert main(["suite", str(target)]) == 0
    written = {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert written == {**folder.files(), "rules/notes.txt": b"somebody's"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_bytes(b"")
    capsys.readouterr()
    assert main(["suite", str(other)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert main(["suite", str(other / "thesis.txt")]) == 2


@pytest.fixture
def small(tmp_path):
    """A suite of three files, so that the harness is fast."""
    names = "features/empty", "rules/key-twice", "rules/name-64"
    for name in "run.py", "suite.json", *(f"{name}.gguf" for name in names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((COMMITTED / name).read_bytes())
    manifest = json.loads((tmp_path / "suite.json").read_bytes())
    manifest["cases"] = [record for record in manifest["cases"] if record["name"] in names]
    (tmp_path / "suite.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.mark.parametrize(
    ("program", "arguments", "wrong"),
    [
        ("import sys; sys.exit('key-twice' in sys.argv[1])", [], []),
        (
            "import sys; sys.exit('key-twice' in sys.argv[1])",
            ["--profile", "llama.cpp"],
            ["accept  reject rules/name-64"],
        ),
        ("pass", [], ["accept  reject rules/key-twice"]),
        (
            "import sys; sys.exit('features' in sys.argv[1])",
            [],
            ["reject  accept features/empty", "accept  reject rules/key-twice"],
        ),
        (
            "import os, sys; 'name-64' in sys.argv[1] and os.abort(); sys.exit('key' in sys.argv[1])",
            [],
            ["crash   accept or reject rules/name-64"],
        ),
    ],
)
def test_harness(small, program, arguments, wrong):
    command = [sys.executable, str(small / "run.py"), *arguments, sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    *lines, last = run.stdout.splitlines()
    shown = [" ".join(line.partition(":")[0].split()) for line in lines]
    assert sorted(shown) == sorted(" ".join(line.split()) for line in wrong)
    assert last == f"{3 - len(wrong)} of 3 files right"
    assert run.returncode == bool(wrong), run.stderr


def test_the_fields_that_the_readme_describes_are_those_of_the_manifest():
    text = (COMMITTED / "README.md").read_text()
    described = {
        name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    values = next(record["values"] for record in RECORDS if record["values"] and record["values"]["tensors"])
    tables = [json.loads((COMMITTED / "suite.json").read_bytes()), RECORDS[0], values]
    assert described == {name for table in tables for name in table}
    for name in (*values["tensors"][0], "key", "value", "elements"):
        assert f"`{name}`" in text
