"""What the validator says of labelled files, for each judge; where it says it; and that it cries no wolf."""

import importlib.util
import io
import json
import os
import struct

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.cli.arguments import PROFILE_NAMES
from gguf_schema.demo import demo_model
from gguf_schema.validate import PROFILES, RULES, check, verdict
from gguf_schema.validate.rule import SEVERITIES

from . import peers
from .shared import CORPUS, cases, corpus_files, needs_corpus

each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
LABELS = {
    "default": "gguf_schema_default",
    "strict": "gguf_schema_strict",
    "llama.cpp": "llama.cpp",
    "llama.cpp-data": "llama.cpp_full",
    "gguf-py": "gguf-py_0.19.0",
    "gguf-py-head": "gguf-py_head",
}
READERS = {"abort": "reject", "hang": "reject", "accept-lazy-error": "accept"}
"""What a reader that does not answer comes to."""
UNPLACED = {
    "b058_i_plamo2_bad_byte_token": "a token that one tokenizer takes for a byte; no rule looks into tokens' texts",
}
"""Labelled places that are not told, and why. Their label is accept or warn."""


@each_case
@pytest.mark.parametrize("profile", LABELS)
def test_verdicts(case, profile):
    expected = case["expected"][LABELS[profile]]
    found = verdict(check(case["bytes"]), PROFILES[profile])
    assert found in READERS.get(expected, expected).split("|")


@each_case
def test_places(case):
    """The field at fault, or one inside it, by its path; and by its offset, if it is just this field."""
    if case["error_path"] is None or case["name"] in UNPLACED:
        return
    faults = [fault for fault in check(case["bytes"]) if fault.path.startswith(case["error_path"])]
    assert faults
    exact = [fault for fault in faults if fault.path == case["error_path"]]
    assert not exact or case["error_offset"] in [fault.start for fault in exact]


@each_case
def test_open_and_check_agree(case):
    """What `open` raises is among the errors, at the same place; and there is an error only where it raises."""
    errors = [fault for fault in check(case["bytes"]) if fault.severity == "error"]
    try:
        gs.open(case["bytes"]).close()
    except gs.GGUFError as error:
        raised = error.path, error.offset
    else:
        raised = None
    assert bool(errors) == (raised is not None)
    assert raised is None or raised in [(fault.path, fault.start) for fault in errors]


@each_case
def test_every_fault_is_in_the_file(case):
    for fault in check(case["bytes"]):
        assert 0 <= fault.start <= fault.end <= case["size"]
        assert fault.severity in SEVERITIES


@needs_corpus
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: str(path.relative_to(CORPUS)))
def test_no_false_alarm(path):
    """Real files, and what writers make, have no error; vocabularies nothing to warn of either."""
    faults = check(path)
    assert [fault for fault in faults if fault.severity == "error"] == []
    if path.name.startswith("ggml-vocab"):
        assert verdict(faults, PROFILES["strict"]) == verdict(faults, PROFILES["llama.cpp-data"]) == "accept"
    # gguf 0.19.0 is older than the type.
    assert verdict(faults, PROFILES["gguf-py"]) == ("reject" if path.stem == "Q2_0" else "accept")
    # The later one refuses what ggml has no room for.
    assert verdict(faults, PROFILES["gguf-py-head"]) == ("reject" if path.stem == "dims5" else "accept")


def test_the_demo_is_in_order():
    assert check(demo_model()) == []


def test_tensors_at_one_offset_one_of_them_of_unknown_size():
    infos = [{"name": name, "dimensions": [4], "type": type, "offset": 0} for name, type in (("a", 0), ("b", 99))]
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(32)})
    assert {fault.code for fault in check(data)} == {"tensor-type-unknown", "tensors-overlap", "offset-not-dense"}


QUANTISED_ROW = 2**63  # elements of IQ2_S, which are no more than 2^63 * 82 / 256 bytes


@pytest.mark.parametrize(
    ("infos", "left", "verdicts"),
    [
        # Dense, and the second, which is empty, begins where the padding of the first would end.
        ([("a", [4], 0), ("b", [0], 0)], 16, {"llama.cpp": "accept", "llama.cpp-data": "reject"}),
        ([("a", [4], 0), ("b", [0], 0)], 32, {"llama.cpp": "accept", "llama.cpp-data": "accept"}),
        # gguf-py sees rows in bytes, and of an empty tensor each dimension but the zeros.
        ([("a", [QUANTISED_ROW, 0], 22)], 0, {"gguf-py": "accept", "gguf-py-head": "accept", "llama.cpp": "reject"}),
        ([("a", [QUANTISED_ROW, 0, 4], 22)], 0, {"gguf-py": "reject"}),
        ([("a", [0, 2**63], 22)], 0, {"gguf-py": "reject"}),
        ([("a", [0, 2**63 - 1], 22)], 0, {"gguf-py": "accept"}),
        ([("a", [0, 2**61], 0)], 0, {"gguf-py": "reject"}),
        ([("a", [0, 2**61 - 1], 0)], 0, {"gguf-py": "accept"}),
        ([("a", [2**63, 0], 30)], 0, {"gguf-py": "reject"}),
        ([("a", [0, 2**63 - 1], 30)], 0, {"gguf-py": "accept"}),
    ],
)
def test_readers_of_tensors_without_data(infos, left, verdicts, tmp_path):
    """What the profiles say, and where it is installed, gguf-py does."""
    infos = [{"name": name, "dimensions": dims, "type": type} for name, dims, type in infos]
    for index, info in enumerate(infos):
        info["offset"] = 32 * index
    data = gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(left)})
    found = check(data)
    assert {name: verdict(found, PROFILES[name]) for name in verdicts} == verdicts
    if "gguf-py" in verdicts and importlib.util.find_spec("gguf"):
        path = tmp_path / "file.gguf"
        path.write_bytes(data)
        assert peers.gguf_py_verdicts([path]) == {path: {"accept": "reads", "reject": "refuses"}[verdicts["gguf-py"]]}


def test_rules_are_well_formed():
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    for rule in RULES:
        assert rule.severity in SEVERITIES
        assert all((rule.title, rule.path, rule.source, rule.mend))
        assert not rule.is_forbidden or rule.severity != "note"
    for profile in PROFILES.values():
        assert profile.refuses | profile.warns <= set(codes)


# The command.


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_bytes(demo_model())
    return path


def test_profiles_of_the_command_are_those_that_exist():
    assert (*PROFILES, "all") == PROFILE_NAMES


def test_exit_status(path, tmp_path, capsys):
    warned, refused = tmp_path / "warned.gguf", tmp_path / "refused.gguf"
    gs.write(warned, {"general.architecture": "llama", "nodot": 1})
    refused.write_bytes(demo_model()[:1000])
    for arguments, status in (
        ([path], 0),
        ([warned], 0),
        (["--fail-on", "warning", warned], 1),
        (["--strict", warned], 0),
        ([refused], 1),
        ([path, warned, refused], 1),
        ([tmp_path], 1),
        ([tmp_path / "missing.gguf"], 2),
        ([refused, tmp_path / "missing.gguf"], 2),
        (["--explain", "key-twice"], 0),
        (["--explain", "nothing"], 2),
    ):
        assert main(["check", *map(str, arguments)]) == status, arguments
    capsys.readouterr()
    for wrong in ([], ["--profile", "nobody", str(path)]):
        with pytest.raises(SystemExit) as ended:
            main(["check", *wrong])
        assert ended.value.code == 2


def test_text(path, tmp_path, capsys):
    (tmp_path / "bad.gguf").write_bytes(demo_model()[:-1])
    assert main(["check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path}/bad.gguf: reject (default)"
    assert lines[1].startswith("  error: tensor_data at bytes 58335 to 58335: ")
    assert lines[1].endswith("[data-missing]")
    assert lines[-2:] == [f"{path}: accept (default)", "2 files: 1 accept, 1 reject"]


def test_json(path, capsys):
    assert main(["check", "--json", "--strict", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"files": [{"file": str(path), "profile": "strict", "verdict": "accept", "findings": []}]}
    path.write_bytes(demo_model()[:-1])
    assert main(["check", "--json", "--profile", "all", str(path)]) == 1
    files = json.loads(capsys.readouterr().out)["files"]
    assert {file["profile"]: file["verdict"] for file in files}["llama.cpp"] == "accept"
    assert {file["profile"]: file["verdict"] for file in files}["llama.cpp-data"] == "reject"
    assert list(files[0]["findings"][0]) == ["code", "severity", "path", "start", "end", "message"]


def test_readers_are_named(path, capsys):
    path.write_bytes(demo_model()[:-1])
    assert main(["check", "--profile", "all", str(path)]) == 1
    out = capsys.readouterr().out
    assert "  loads in llama.cpp (" in out
    assert "  refused by gguf-py because tensor_data at byte 58335: " in out


def test_hostile_text_is_escaped(tmp_path, capsys):
    path = tmp_path / "hostile.gguf"
    gs.write(path, {"general.architecture": "\x1b[2J", "A\x07‮": "x"})
    for form in [], ["--json"], ["--profile", "all"]:
        main(["check", *form, str(path)])
        assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "‮"}


SEVERITIES_BY_POLICY = {
    ("error", True): "not-gguf header-cut version-unknown count-range value-type-unknown element-type-unknown "
    "element-type-unknown-empty number-cut last-number-missing string-cut last-string-cut array-cut last-array-cut "
    "dimensions-cut",
    (
        "error",
        False,
    ): "nesting-depth nesting-python alignment-type alignment-value key-empty key-twice tensor-name-twice "
    "dimensions-too-many dimension-range tensor-elements-range tensor-bytes-range tensor-type-range row-not-blocks "
    "offset-unaligned offset-wraps offset-past-end data-start-missing data-missing",
    (
        "warning",
        True,
    ): "version-1 alignment-small key-utf8 key-nul key-characters key-segment-empty key-long string-utf8 "
    "bool-byte architecture-missing architecture-characters name-utf8 name-nul name-nul-twice name-long "
    "dimensions-many tensor-type-removed tensor-type-unknown tensors-overlap padding-nonzero key-type",
    (
        "warning",
        False,
    ): "alignment-multiple alignment-large key-no-dot key-segment-digit array-nested name-empty name-64 "
    "dimensions-none offset-order offset-first offset-gap tail-nonzero block-count token-arrays-length token-twice "
    "token-id-range shard-number shard-whole template-interpreter",
}
"""Severity, and whether the specification forbids it → codes: typed from what was decided, not from the rows."""


def test_severities_are_those_that_were_decided():
    """What is not decided is a note."""
    for (severity, is_forbidden), codes in SEVERITIES_BY_POLICY.items():
        found = {rule.code for rule in RULES if (rule.severity, rule.is_forbidden) == (severity, is_forbidden)}
        assert found == set(codes.split())
    decided = {code for codes in SEVERITIES_BY_POLICY.values() for code in codes.split()}
    assert {rule.severity for rule in RULES if rule.code not in decided} == {"note"}


@pytest.mark.parametrize(
    ("template", "codes"),
    [
        ("{{ x.__class__ }}", ["template-interpreter"]),
        ("{% set a = x['__globals__'] %}", ["template-interpreter"]),
        (r"{{ x['\x5f\x5fclass\x5f\x5f'] }}", ["template-interpreter"]),
        ("{{ x|attr('__cl' ~ 'ass__') }}", ["template-interpreter"]),
        ("Write an __init__ method. {{ a__b__ }} {# __class__ #}", []),
        ("{% generation %}{{ x }}{% endgeneration %}", []),
        ("{{ m.content }", ["template-syntax"]),
        ("{{ " + "9" * 5000 + " }}", ["template-syntax"]),
        ("{{ " + "(" * 5000, ["template-syntax"]),
        ("{{ x.__class__ }}" + " " * (1 << 16), []),
    ],
)
def test_templates(template, codes):
    """Looked at and parsed, never rendered; very long ones are left alone."""
    pytest.importorskip("jinja2")
    file = io.BytesIO()
    gs.write(file, {"general.architecture": "llama", "tokenizer.chat_template": template})
    assert [fault.code for fault in check(file.getvalue())] == codes


def test_very_many_faults_are_counted():
    file = io.BytesIO()
    gs.write(file, {"general.architecture": "llama", **{f"a.K{index}": 1 for index in range(1500)}})
    found = check(file.getvalue())
    assert len(found) == 1000
    assert found[-1].message.endswith("(and 500 more of this kind)")


def test_a_cut_is_placed_in_the_field_that_is_cut():
    """The count is right if the whole file could hold it: a download that ends within a pair blames that."""
    file = io.BytesIO()
    gs.write(file, {f"a.k{index}": index for index in range(10)})
    for size, path in (
        (200, "metadata_kv[8].value"),
        (140, "metadata_kv[5].value"),
    ):  # of 10 pairs 116 bytes are too few
        (fault,) = [fault for fault in check(file.getvalue()[:size]) if fault.severity == "error"]
        assert (fault.path, fault.start) == (path, size)


def test_a_folder_without_models(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert "there is no model in this folder" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe.gguf")
    assert main(["check", str(tmp_path)]) == 2
    (tmp_path / "MODEL.GGUF").write_bytes(demo_model())
    assert main(["check", str(tmp_path)]) == 0


# Behind faults that end the parse.


def pair(key, type, value):
    return {"key": key, "value_type": type, "value": value}


def head(type, count):
    """An array's type and length."""
    return struct.pack("<IQ", type, count)


def nested(levels):
    """Arrays so deep, the innermost with numbers, and strings beside each other one."""
    value = head(4, 2) + bytes(8)
    strings = head(8, 2) + struct.pack("<Qs", 1, b"a") + struct.pack("<Q2s", 2, b"bc")
    for _ in range(levels - 1):
        value = head(9, 2) + value + strings
    return value


def deep(key, *more):
    """A file with such arrays, and after them these pairs: more levels than can be built."""
    return built(pair(key, 9, {"type": 0, "array": [7, 7, 7]}), *more).replace(head(0, 3) + b"\7\7\7", nested(40))


def built(*pairs, tensors=(), tail=b""):
    return gs.GGUF.build({"metadata_kv": list(pairs), "tensor_infos": list(tensors), "tensor_data": tail})


def with_unknown_type(*more):
    """A file with empty arrays of type 13, and after them these pairs."""
    arrays = [pair(f"a.b{index}", 9, {"type": 0, "array": []}) for index in range(2)]
    data = bytearray(built(pair("general.architecture", 8, "llama"), *arrays, *more))
    for index in range(2):
        start = data.index(b"a.b%d" % index) + 8
        data[start : start + 4] = (13).to_bytes(4, "little")
    return bytes(data)


ALIGNED = pair("general.alignment", 4, 32)


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (with_unknown_type(), []),
        (with_unknown_type(ALIGNED), []),
        (with_unknown_type(pair("general.alignment", 4, 3)), ["alignment-value"]),
        (with_unknown_type(pair("a.b0", 4, 3)), ["key-twice"]),
        (with_unknown_type(ALIGNED)[:-2], ["number-cut"]),
        (deep("a.b", ALIGNED), []),
        (deep("a.b", ALIGNED)[:-2], ["number-cut"]),
        (deep("a.b", pair("a.b", 4, 1)), ["key-twice"]),
        (deep("general.alignment"), ["alignment-type"]),
    ],
)
def test_faults_behind_what_ends_the_parse(data, codes):
    """What is behind an array that gguf-py passes by is judged, in its place; what is written over it is not."""
    faults = check(data)
    passed = {"nesting-depth", "element-type-unknown-empty"}
    assert passed & {fault.code for fault in faults}
    assert [fault.code for fault in faults if fault.severity == "error" and fault.code not in passed] == codes
    assert all(fault.end <= len(data) for fault in faults)
    assert (verdict(faults, PROFILES["gguf-py"]) == "reject") == bool(codes)


def test_not_all_that_ends_the_parse_is_passed_by():
    """Each costs another parse."""
    data = bytearray(built(*[pair(f"a.b{index:02}", 9, {"type": 0, "array": []}) for index in range(40)]))
    for index in range(40):
        start = data.index(b"a.b%02d" % index) + 9
        data[start : start + 4] = (13).to_bytes(4, "little")
    assert [fault.code for fault in check(bytes(data))].count("element-type-unknown-empty") == 9
