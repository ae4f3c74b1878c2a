"""get, set, unset and edit on the command line."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema import edit, journal
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.edit import lists
from gguf_schema.edit.reserve import KEY
from gguf_schema.enums import ArrayType
from gguf_schema.enums import GGUFValueType as T

GGUF_SCHEMA = [sys.executable, "-m", "gguf_schema"]


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """model.gguf in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.gguf"
    path.write_bytes(demo_model())
    return path


def run(capsys, *arguments):
    """Status, stdout and stderr of a command."""
    try:
        status = main(list(arguments))
    except SystemExit as exit:
        status = exit.code
    return status, *capsys.readouterr()


def value(capsys, key, *options, file="model.gguf"):
    status, out, err = run(capsys, "get", file, key, *options)
    assert (status, err) == (0, "")
    return out.removesuffix("\n")


def test_get(capsys):
    assert value(capsys, "general.name") == "gguf_schema demo"
    assert value(capsys, "llama.context_length") == "128"
    assert value(capsys, "llama.attention.layer_norm_rms_epsilon") == "9.999999747378752e-06"
    assert json.loads(value(capsys, "tokenizer.ggml.tokens"))[-1] == "▁cat"
    assert value(capsys, "tokenizer.ggml.tokens", "--type") == "[STRING]"
    assert value(capsys, "llama.context_length", "--type") == "UINT32"
    assert json.loads(value(capsys, "llama.context_length", "--json")) == {
        "key": "llama.context_length",
        "type": "UINT32",
        "value": 128,
    }
    assert run(capsys, "get", "model.gguf", "no.key") == (
        1,
        "",
        "gguf-schema: model.gguf: there is no key 'no.key'\n",
    )


def test_where_the_record_for_undoing_is(path, capsys):
    status, _, err = run(capsys, "set", "-i", "model.gguf", "general.name=other")
    assert status == 0
    assert re.search(rf"{re.escape(journal.undo_of(path))} \(\d+ bytes\) is kept for `edit --undo`", err)
    assert "is kept" not in run(capsys, "set", "-i", "model.gguf", "general.name=other")[2]
    assert run(capsys, "edit", "-i", "--undo", "model.gguf")[0] == 0
    assert path.read_bytes() == demo_model()


def test_who_edits_a_later_shard_is_told(path, capsys):
    assert run(capsys, "split", "model.gguf", "m", "--max-tensors", "1")[0] == 0
    first, second = sorted(str(each) for each in Path().glob("m-*"))[:2]
    told = "it is not the first shard of a model"
    assert told not in run(capsys, "set", "-i", first, "general.name=other")[2]
    assert told in run(capsys, "set", "-i", second, "general.name:STRING=other")[2]
    assert told not in run(capsys, "set", second, "new.gguf", "general.alignment:UINT32=32")[2]


def test_usage_is_that_of_the_command(capsys):
    status, _, err = run(capsys, "set", "model.gguf")
    assert status == 2
    assert err.startswith("usage: gguf-schema set ")


VALUES = {
    "a.uint8": (T.UINT8, 255),
    "a.int8": (T.INT8, -128),
    "a.uint16": (T.UINT16, 65535),
    "a.int16": (T.INT16, -32768),
    "a.uint32": (T.UINT32, 2**32 - 1),
    "a.int32": (T.INT32, -(2**31)),
    "a.float32": (T.FLOAT32, float("-inf")),
    "a.bool": (T.BOOL, True),
    "a.string": (T.STRING, "line\r\nand \x1b[31m\udcff ☃ '\"@"),
    "a.at": (T.STRING, "@at"),
    "a.empty": (T.STRING, ""),
    "a.uint64": (T.UINT64, 2**64 - 1),
    "a.int64": (T.INT64, -(2**63)),
    "a.float64": (T.FLOAT64, 0.1),
    "a.strings": (ArrayType(T.STRING), ["\udc80", "", "a\0b"]),
    "a.numbers": (ArrayType(T.INT64), [2**63 - 1, -1]),
    "a.none": (ArrayType(T.FLOAT64), []),
    "a.nested": (ArrayType(T.ARRAY, (ArrayType(T.INT8), ArrayType(T.STRING))), [[1, 2], ["x"]]),
    "a.arrays": (ArrayType(T.ARRAY, (ArrayType(T.ARRAY, (ArrayType(T.BOOL),)),)), [[[True, False]]]),
    "a.nothing": (ArrayType(T.ARRAY), []),
}


def test_what_get_prints_set_takes(capsys):
    """All types: strings from the bytes of --raw in a file, others as printed."""
    gs.write("values.gguf", VALUES)
    words = []
    for key, (type, _) in VALUES.items():
        named = value(capsys, key, "--type", file="values.gguf")
        assert edit.type_named(named) == type
        if type is T.STRING:
            out = subprocess.run([*GGUF_SCHEMA, "get", "values.gguf", key, "--raw"], stdout=subprocess.PIPE, check=True)
            with open(key, "wb") as file:
                file.write(out.stdout)
            words.append(f"{key}:{named}=@{key}")
        else:
            words.append(f"{key}:{named}={value(capsys, key, file='values.gguf')}")
    gs.write("empty.gguf", {})
    assert run(capsys, "set", "empty.gguf", "again.gguf", *words)[0] == 0
    with open("again.gguf", "rb") as again, open("values.gguf", "rb") as values:
        assert again.read() == values.read()


@pytest.mark.parametrize("text", ["@at", "@@", "{{ a }}\r\n\r\n{{ b }}\r", "\x1b[31m\\r", "☃ \x85"])
def test_strings_come_back_through_a_pipe(capsys, text):
    gs.write("values.gguf", {"a": text})
    command = [*GGUF_SCHEMA, "get", "values.gguf", "a"]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    assert out == text.encode() + b"\n"
    again = "@" * text.startswith("@") + out.decode().removesuffix("\n")
    assert run(capsys, "set", "values.gguf", "again.gguf", f"a={again}")[0] == 0
    with open("again.gguf", "rb") as again, open("values.gguf", "rb") as values:
        assert again.read() == values.read()


def test_get_prints_nothing_that_a_terminal_obeys(capsys, monkeypatch):
    gs.write("values.gguf", VALUES)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert value(capsys, "a.string", file="values.gguf") == "line\\r\nand \\x1b[31m\\udcff ☃ '\"@"
    assert "\x1b" not in value(capsys, "a.string", "--json", file="values.gguf")


def test_set_writes_a_new_file(capsys, path):
    status, out, err = run(capsys, "set", "model.gguf", "new.gguf", "general.name=New = name", "a.b:[UINT8]=[1,2]")
    assert (status, out) == (0, "")
    assert err.startswith("gguf-schema: new.gguf: a new file: ")
    assert value(capsys, "general.name", file="new.gguf") == "New = name"
    assert value(capsys, "a.b", file="new.gguf") == "[1, 2]"
    assert path.read_bytes() == demo_model()
    assert sorted(os.listdir()) == ["model.gguf", "new.gguf"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set", "model.gguf"], "OUT, the name of the new file, or --in-place is missing"),
        (["set", "model.gguf", "general.name=x"], "--in-place is missing: 'general.name=x' says what is to be edited"),
        (["set", "model.gguf", "a=@there", "b=1", "--reserve", "9"], "--in-place is missing: 'a=@there' says what"),
        (["set", "model.gguf", "new.gguf"], "say what is to be edited behind 'new.gguf', which is the new file; to"),
        (["unset", "model.gguf", "general.name", "llama.block_count"], "missing: 'general.name' is a key of the file"),
        (
            ["edit", "model.gguf", "ed.toml", "--force", "--reserve", "9"],
            "missing: 'ed.toml' says what is to be",
        ),
        (["set", "--in-place", "model.gguf"], "say what is to be edited"),
        (
            ["set", "--in-place", "model.gguf", "new.gguf", "a=b"],
            "expected KEY=VALUE or KEY:TYPE=VALUE, found 'new.gguf'",
        ),
        (["set", "--in-place", "model.gguf", "=b"], "expected KEY=VALUE"),
        (["set", "--in-place", "-", "general.name=x"], "standard input cannot be changed in place"),
        (["set", "--in-place", "model.gguf", "a:FLOAT=1"], "'FLOAT' is no type"),
        (["set", "--in-place", "model.gguf", "a=1"], "there is no key 'a'"),
        (["set", "--in-place", "model.gguf", "general.name=@missing"], "No such file"),
        (["set", "model.gguf", "model.gguf", "general.name=x"], "the file that is read"),
        (["set", "model.gguf", "model.gguf", "general.name=x", "--force"], "the file that is read"),
        (["set", "model.gguf", "there", "general.name=x"], "there is there already; --force replaces it"),
        (["set", "model.gguf", "there", "general.name=x", "--force"], "there is no GGUF file: it is not overwritten"),
        (["edit", "model.gguf", "there", "--force", "--reserve", "9"], "there is no GGUF file: it is not overwritten"),
        (["convert", "model.gguf", "there", "--force", "--order", "big"], "is no GGUF file: it is not overwritten"),
        (["set", "model.gguf", "no/where.gguf", "general.name=x"], "no/where.gguf: No such file"),
        (["set", "missing.gguf", "new.gguf", "general.name=x"], "missing.gguf: No such file"),
        (["unset", "--in-place", "model.gguf", "a"], "there is no key 'a'"),
        (["edit", "--in-place", "model.gguf", "--reserve", "9" * 4300 + "G"], "a reserve is of 0 to 8388608 bytes"),
        (["edit", "--in-place", "model.gguf"], "say what is to be edited"),
        (["edit", "--in-place", "model.gguf", "a", "b"], "expected one list of edits, found a b"),
        (["edit", "--in-place", "model.gguf", "there"], "no list of edits"),
        (["edit", "--undo", "model.gguf"], "there is nothing to undo"),
        (["edit", "--undo", "model.gguf", "there"], "go with a FILE alone"),
        (["edit", "--undo"], "error: the following arguments are required: FILE\n"),
        (["edit", "--recover", "--reserve", "5", "model.gguf"], "go with a FILE alone"),
    ],
)
def test_refusals(capsys, path, arguments, message):
    (path.parent / "there").write_bytes(b"precious")
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert path.read_bytes() == demo_model()
    assert (path.parent / "there").read_bytes() == b"precious"
    assert sorted(os.listdir()) == ["model.gguf", "there"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["set", "-i", "model.gguf", "general.name=@missing"], "gguf-schema: missing: No such file or directory"),
        (["set", "-i", "model.gguf", "general.name=@"], "gguf-schema set: error: 'general.name=@' names no file"),
        (["edit", "-i", "model.gguf", "no.json"], "gguf-schema: no.json: No such file or directory"),
        (["edit", "-i", "model.gguf", "wrong.json"], "gguf-schema edit: error: wrong.json: no list of edits"),
        (["edit", "-i", "model.gguf", "file.json"], "gguf-schema: missing: No such file or directory"),
        (["edit", "-i", "model.gguf", "none.json"], "error: none.json: edits[0].file: expected the name of a file"),
        (["get", "missing", "a"], "gguf-schema: missing: No such file or directory"),
    ],
)
def test_the_file_at_fault_is_named(capsys, path, arguments, told):
    for name, text in {
        "wrong.json": "{",
        "file.json": '[{"set": "a", "file": "missing"}]',
        "none.json": '[{"set": "a", "file": ""}]',
    }.items():
        path.with_name(name).write_text(text)
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert told in err
    assert "model.gguf" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "model.gguf", "-i", "my.u8:UINT8=1"],
        ["set", "model.gguf", "my.u8:UINT8=1", "-i"],
        ["set", "model.gguf", "--reserve", "0", "-i", "my.u8:UINT8=1"],
        ["set", "-i", "model.gguf", "--", "my.u8:UINT8=1"],
        ["set", "model.gguf", "-i", "general.name=x", "--no-check", "my.u8:UINT8=1"],
    ],
)
def test_options_stand_anywhere(capsys, path, arguments):
    assert run(capsys, *arguments)[0] == 0
    assert value(capsys, "my.u8") == "1"


def test_an_assignment_is_no_new_file_but_a_path_is(capsys, path):
    assert run(capsys, "set", "model.gguf", "./a=b", "general.name=x")[0] == 0
    assert value(capsys, "general.name", file="a=b") == "x"


def test_options_stand_anywhere_in_other_commands(capsys, path):
    assert "+ k: " in run(capsys, "set", "model.gguf", "--dry-run", "n.gguf", "k:UINT8=1")[1]
    assert run(capsys, "unset", "model.gguf", "-i", "general.name")[0] == 0
    path.with_name("ed.json").write_text('[{"set": "a", "type": "UINT8", "value": 1}]')
    assert run(capsys, "edit", "model.gguf", "-i", "ed.json")[0] == 0
    assert run(capsys, "extract", "model.gguf", "--raw", "output_norm.weight", "out")[0] == 0
    assert run(capsys, "diff", "model.gguf", "--json", "model.gguf")[0] == 0
    status, _, err = run(capsys, "set", "model.gguf", "--no-such", "a=b")
    assert (status, "unrecognized arguments: --no-such" in err) == (2, True)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("a:BOOL=2", "a: BOOL expected, true or false, found 2"),
        ("a:BOOL=True", "a: BOOL expected, true or false, found 'True'"),
        ("a:[BOOL]=[true,2]", "a: BOOL expected, true or false, found 2"),
        ("a:FOO=1", "FLOAT64, or [TYPE] for an array, [[TYPE]] for one of arrays, [ARRAY] for one of no arrays"),
    ],
)
def test_what_is_valid_is_told(capsys, word, told):
    assert told in run(capsys, "set", "-i", "model.gguf", word)[2]


def test_sizes_of_the_reserve(capsys):
    assert run(capsys, "edit", "model.gguf", "new.gguf", "--reserve", "2K")[0] == 0
    with gs.open("new.gguf") as model:
        assert model.metadata[KEY].size == 2000
    status, _, err = run(capsys, "edit", "model.gguf", "other.gguf", "--reserve", "64X")
    assert (status, "'64X' is no size: give a number of bytes, or one with K, M or G" in err) == (2, True)


def test_another_type_is_told_of(capsys):
    told = "gguf-schema: model.gguf: the type of llama.block_count changes from UINT32 to UINT64\n"
    for options in ["--dry-run"], []:
        assert told in run(capsys, "set", "-i", "model.gguf", "llama.block_count:UINT64=2", *options)[2]
    assert value(capsys, "llama.block_count", "--type") == "UINT64"
    assert "changes from" not in run(capsys, "set", "-i", "model.gguf", "llama.block_count:UINT64=1", "a:BOOL=1")[2]
    assert run(capsys, "set", "-i", "model.gguf", "k:[[INT32]]=[]")[0] == 0
    assert value(capsys, "k", "--type") == "[ARRAY]"


TABLES = '[[edit]]\nset = "general.name"\nvalue = "x"\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("-", TABLES),
        ("edits", TABLES),
        ("edits", '[{"set": "general.name", "value": "x"}]'),
        ("edits.json", '{"set": "general.name", "value": "x"}'),
        ("edits.toml", 'set = "general.name"\nvalue = "x"\n'),
    ],
)
def test_lists_need_no_name_and_one_edit_no_list(capsys, path, monkeypatch, name, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    path.with_name(name).write_text(text)
    assert run(capsys, "edit", "-i", "model.gguf", name)[0] == 0
    assert value(capsys, "general.name") == "x"


def test_what_is_neither_json_nor_toml(capsys, path, monkeypatch):
    path.with_name("ed").write_text("{")
    assert "ed: no list of edits: no JSON: " in (err := run(capsys, "edit", "-i", "model.gguf", "ed")[2])
    assert "; no TOML: " in err


def test_the_help_and_the_readme_show_a_list(capsys, path):
    """All of what the help shows can be done."""
    example = run(capsys, "edit", "--help")[1].partition("in TOML:\n\n")[2].partition("In JSON")[0]
    assert len(lists.edits_of(example.replace("template.jinja", str(path)).encode(), is_toml=True)) == 9
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    assert [line for line in shown.split("\n") if line and line not in map(str.strip, example.split("\n"))] == []
    assert len(lists.edits_of(shown.replace("template.jinja", str(path)).encode(), is_toml=True)) == 4


def test_a_file_that_a_list_names_is_what_an_argument_names(capsys, path):
    """Text for a STRING, JSON for others; from the folder of the list."""
    folder = path.parent / "folder"
    folder.mkdir()
    (folder / "values.json").write_text("[3, 4]")
    edits = [{"set": key, "type": type, "file": "values.json"} for key, type in (("a", "[INT32]"), ("b", "STRING"))]
    (folder / "edits.json").write_text(json.dumps(edits))
    assert run(capsys, "edit", "model.gguf", "by-list.gguf", "folder/edits.json")[0] == 0
    words = ["a:[INT32]=@folder/values.json", "b:STRING=@folder/values.json"]
    assert run(capsys, "set", "model.gguf", "by-words.gguf", *words)[0] == 0
    assert Path("by-list.gguf").read_bytes() == Path("by-words.gguf").read_bytes()
    assert (value(capsys, "a", file="by-list.gguf"), value(capsys, "b", file="by-list.gguf")) == ("[3, 4]", "[3, 4]")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "-i", "pipe", "a=1"], "'pipe' is no file, and cannot be changed in place"),
        (["edit", "--undo", "-"], "standard input cannot be mended"),
        (["split", "model.gguf", "-"], "shards are files"),
        (["split", "model-00001-of-00001.gguf", "new"], "gguf-schema: model-00001-of-00001.gguf: No such file"),
        (["edit", "--recover", "-"], "standard input cannot be mended"),
        (["edit", "-", "new.gguf", "-"], "standard input can be IN or the list of edits, not both"),
        (["set", "model.gguf", "a=b.gguf", "general.name=x"], "; ./a=b.gguf is a path"),
        (["set", "-i", "model.gguf", "llama.context_length=0x10"], "UINT32 expected, found '0x10'\n"),
    ],
)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_cannot_be_meant_is_said_at_once(capsys, words, message):
    os.mkfifo("pipe")
    status, _, err = run(capsys, *words)
    assert (status, message in err) == (2, True), err
    assert sorted(os.listdir()) == ["model.gguf", "pipe"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no such device")
def test_what_never_ends_is_no_value_and_no_list(capsys, monkeypatch):
    monkeypatch.setattr("gguf_schema.edit.values.LARGEST", 1000)
    monkeypatch.setattr("gguf_schema.cli.edit.LARGEST", 2000)
    Path("edits.json").write_text('[{"set": "general.name", "file": "/dev/zero"}]')
    for words, message in (
        (["set", "model.gguf", "new.gguf", "general.name=@/dev/zero"], "/dev/zero has more than 1000 bytes"),
        (["edit", "model.gguf", "new.gguf", "edits.json"], "/dev/zero has more than 1000 bytes"),
        (["edit", "model.gguf", "new.gguf", "/dev/zero"], "/dev/zero: no list of edits: it has more than 2000 bytes"),
    ):
        status, _, err = run(capsys, *words)
        assert (status, message in err) == (2, True), err
    Path("value").write_bytes(b"x" * 1000)
    assert run(capsys, "set", "model.gguf", "new.gguf", "general.name=@value")[0] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_that_may_not_be_written_to_has_no_edit_to_undo(capsys, no_root):
    os.mkfifo("pipe", 0o444)
    for option in "--undo", "--recover":
        status, _, err = run(capsys, "edit", option, "pipe")
        assert (status, "to undo" in err or "no edit of it was interrupted" in err) in ((2, True), (0, True))


def test_no_manifest_is_made_of_a_half_edited_file(capsys, path):
    assert run(capsys, "set", "-i", "model.gguf", "llama.context_length=5")[0] == 0
    os.rename("model.gguf.undo", "model.gguf.journal")
    status, _, err = run(capsys, "hash", "model.gguf", "--manifest", "new")
    assert (status, "was interrupted" in err, err.count("model.gguf")) == (2, True, 1)
    assert sorted(os.listdir()) == ["model.gguf", "model.gguf.journal"]


def test_a_plan_is_told_before_it_is_done(capsys, path, monkeypatch):
    def apply(plan, show):
        assert str(plan) in capsys.readouterr().err

    monkeypatch.setattr(edit, "apply", apply)
    assert run(capsys, "set", "-i", "model.gguf", "llama.context_length=5")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "model.gguf", "OUT", "--order", "big"],
        ["set", "model.gguf", "OUT", "general.name=x"],
        ["split", "model.gguf", "OUT"],
    ],
)
def test_a_dry_run_says_what_would_be_refused(capsys, words):
    Path("there").write_bytes(demo_model())
    Path("there-00001-of-00001.gguf").write_bytes(demo_model())
    words = ["there" if word == "OUT" else word for word in words]
    for options in [], ["--dry-run"]:
        status, out, err = run(capsys, *words, *options)
        assert (status, out, "is there already; --force replaces it" in err) == (2, "", True)
    assert run(capsys, *words, "--dry-run", "--force")[0] == 0


def test_edits_on_the_command_line_have_no_number(capsys):
    assert run(capsys, "unset", "-i", "model.gguf", "a")[2] == "gguf-schema: model.gguf: there is no key 'a'\n"
    assert "model.gguf: a: UINT8 expected" in run(capsys, "set", "-i", "model.gguf", "a:UINT8=x")[2]


def test_force_replaces_another_file(capsys, path):
    for old in demo_model(), b"GGUF", b"":
        (path.parent / "there").write_bytes(old)
        assert run(capsys, "unset", "model.gguf", "there", "general.name", "--force")[0] == 0
        assert "general.name" not in gs.open((path.parent / "there").read_bytes()).metadata


def test_what_is_lost_around_the_tensors_is_told(capsys, path):
    infos = [{"name": "a", "dimensions": [8], "type": 0, "offset": 0}]
    fields = {"metadata_kv": [], "tensor_infos": infos, "tensor_data": bytes(32)}
    size = len(gs.GGUF.parse(gs.GGUF.build(fields)).padding)
    path.write_bytes(gs.GGUF.build({**fields, "padding": b"x" * size}))
    told = f"changed: padding: {size} bytes of padding, from byte {path.stat().st_size - 32 - size} on, become zeros\n"
    assert told in run(capsys, "set", "-i", "model.gguf", "a:UINT8=1", "--dry-run")[1]
    assert f"gguf-schema: new.gguf: {told}" in run(capsys, "set", "model.gguf", "new.gguf", "a:UINT8=1")[2]
    assert f"gguf-schema: model.gguf: {told}" in run(capsys, "set", "-i", "model.gguf", "a:UINT8=1")[2]
    assert "changed" not in run(capsys, "set", "-i", "model.gguf", "a:UINT8=2")[2]


def test_a_worked_example(capsys, path):
    """A reserve once, then patches; each is undone, and the file is as it was."""
    status, _, err = run(capsys, "edit", "--in-place", "model.gguf", "--reserve", "4096")
    assert status == 0
    assert "a new file in the place of the old one (metadata and tensor infos grow by 4139 bytes" in err
    reserved = path.read_bytes()
    (path.parent / "template.jinja").write_text("{{ messages }}\n" * 20)
    arguments = ["set", "-i", "model.gguf", "tokenizer.chat_template:STRING=@template.jinja"]
    status, out, err = run(capsys, *arguments, "--dry-run")
    assert (status, err) == (0, "")
    assert "+ tokenizer.chat_template: STRING = '{{ messages }}" in out
    assert "a patch in place: " in out
    assert path.read_bytes() == reserved
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (0, "")
    assert "the reserve goes from 4096 to 3753 bytes" in err
    assert value(capsys, "tokenizer.chat_template") == "{{ messages }}\n" * 20
    assert run(capsys, "set", "-i", "model.gguf", "tokenizer.ggml.bos_token_id=2")[0] == 0
    assert value(capsys, "tokenizer.ggml.bos_token_id") == "2"
    assert run(capsys, "edit", "--undo", "model.gguf")[0] == 0
    assert value(capsys, "tokenizer.ggml.bos_token_id") == "1"
    assert run(capsys, "unset", "-i", "model.gguf", "tokenizer.chat_template")[0] == 0
    assert path.read_bytes() == reserved
    status, _, err = run(capsys, "unset", "-i", "model.gguf", KEY)
    assert path.read_bytes() == demo_model()


def test_lists_of_edits(capsys, path, monkeypatch):
    folder = path.parent / "edits"
    folder.mkdir()
    (folder / "text").write_bytes(b"from a file")
    (folder / "edits.toml").write_text('[[edit]]\nset = "general.name"\nfile = "text"\n[[edit]]\nalign = 64\n')
    assert run(capsys, "edit", "model.gguf", "new.gguf", "edits/edits.toml")[0] == 0
    with gs.open("new.gguf") as model:
        assert (model.metadata["general.name"], model.alignment) == ("from a file", 64)
    (folder / "edits.json").write_text('[{"unset": "general.alignment"}, {"set": "general.name", "value": "x"}]')
    assert run(capsys, "edit", "-i", "new.gguf", "edits/edits.json")[0] == 0
    with gs.open("new.gguf") as model:
        assert (model.metadata["general.name"], model.alignment) == ("x", 32)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"set": "general.name", "value": "stdin"}]')))
    assert run(capsys, "edit", "-i", "new.gguf", "-")[0] == 0
    assert value(capsys, "general.name", file="new.gguf") == "stdin"


def test_standard_input_and_output():
    command = [*GGUF_SCHEMA, "set", "-", "-", "general.name=piped"]
    piped = subprocess.run(command, input=demo_model(), capture_output=True, check=True)
    assert gs.open(piped.stdout).metadata["general.name"] == "piped"
    assert piped.stderr.startswith(b"gguf-schema: -: a new file: ")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes it")
def test_standard_input_that_is_closed(path):
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *GGUF_SCHEMA, "edit", "model.gguf", "new.gguf", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "gguf-schema: model.gguf: standard input is closed\n")


def test_what_was_refused_is_edited_if_asked_for(capsys, path):
    pair = {"key": "a", "value_type": T.UINT8, "value": 1}
    path.write_bytes(gs.GGUF.build({"metadata_kv": [pair, pair], "tensor_infos": []}))
    assert run(capsys, "set", "model.gguf", "new.gguf", "b:UINT8=1")[0] == 2
    status, _, err = run(capsys, "set", "model.gguf", "new.gguf", "b:UINT8=1", "--no-check")
    assert status == 0
    assert "the key 'a' stands in metadata_kv[0] already" in err


def interrupted(path, *edits):
    """Leave a file as a killed editor leaves it."""
    with gs.open(path) as model:
        record = edit.plan(model, edits, in_place=True).record
    (path.parent / "model.gguf.journal").write_bytes(journal.to_bytes(record))
    change = record.changes()[0]
    with open(path, "r+b") as file:
        file.seek(change.start)
        file.write(change.new)


def test_commands_tell_of_an_interrupted_edit(capsys, path):
    interrupted(path, edit.Set("llama.context_length", 5), edit.Set("tokenizer.ggml.bos_token_id", 5))
    told = "gguf-schema: model.gguf: an edit of it was interrupted"
    for command in (
        ["info", "model.gguf"],
        ["dump", "model.gguf"],
        ["get", "model.gguf", "general.name"],
        ["check", "model.gguf"],
        ["explain", "model.gguf"],
        ["diff", "model.gguf", "model.gguf"],
    ):
        status, _, err = run(capsys, *command)
        assert status == 0
        assert told in err
    for command in ["set", "model.gguf", "new.gguf", "general.name=x"], ["set", "-i", "model.gguf", "a=b", "--dry-run"]:
        status, out, err = run(capsys, *command)
        assert (status, out) == (2, "")
        assert told in err
    status, _, err = run(capsys, "edit", "--recover", "model.gguf")
    assert status == 0
    assert "an edit had been interrupted: the file is as it was before" in err
    assert path.read_bytes() == demo_model()
    status, _, err = run(capsys, "edit", "--recover", "model.gguf")
    assert (status, err) == (
        0,
        "gguf-schema: model.gguf: no edit of it was interrupted that had begun to write to it\n",
    )


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "model.gguf", "new.gguf", "--order", "big"],
        ["split", "model.gguf", "new", "--max-tensors", "1"],
        ["merge", "model-00001-of-00002.gguf", "new.gguf"],
    ],
    ids=lambda command: command[0],
)
def test_no_other_file_is_made_of_one_whose_edit_was_interrupted(capsys, path, command):
    assert run(capsys, "split", "model.gguf", "model", "--max-tensors", "6")[0] == 0
    for file in path, path.with_name("model-00002-of-00002.gguf"):
        Path(journal.journal_of(file)).write_bytes(b"")
    before = set(os.listdir())
    status, out, err = run(capsys, *command)
    assert (status, out) == (2, "")
    assert "an edit of it was interrupted" in err
    assert set(os.listdir()) == before


def test_a_shard_stands_for_its_model_where_a_value_is_asked_for_and_is_edited_alone(capsys, path):
    assert run(capsys, "split", "model.gguf", "model", "--max-tensors", "6")[0] == 0
    later = "model-00002-of-00002.gguf"
    assert run(capsys, "get", later, "general.architecture")[:2] == (0, "llama\n")
    with gs.open(later) as whole, pytest.raises(gs.GGUFError, match="the model is in 2 files"):
        edit.plan(whole, [edit.Set("general.name", "x", gs.GGUFValueType.STRING)])
    assert run(capsys, "set", "-i", later, "a.b:STRING=x")[0] == 0
    with gs.open(later, shards=False) as alone:
        assert alone.metadata["a.b"] == "x"


@pytest.mark.parametrize("arguments", [["edit", "--recover", "model.gguf"], ["set", "-i", "model.gguf", "a:BOOL=1"]])
@pytest.mark.parametrize("data", [b"", b"of another program", "rewrite"])
def test_a_foreign_journal_says_what_to_do(capsys, path, arguments, data):
    if data == "rewrite":
        none = journal.identity(0, ())
        data = journal.to_bytes(journal.Record(none, none, ()))
    (place := Path(journal.journal_of(path))).write_bytes(data)
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert f"{place} is " in err
    assert "make sure that the file beside it is whole, then remove it" in err
    assert (path.read_bytes(), place.read_bytes()) == (demo_model(), data)


def test_the_next_edit_in_place_mends_the_file_first(capsys, path):
    interrupted(path, edit.Set("llama.context_length", 5), edit.Set("tokenizer.ggml.bos_token_id", 5))
    status, _, err = run(capsys, "set", "-i", "model.gguf", "llama.block_count=2")
    assert status == 0
    assert "the file is as it was before" in err
    with gs.open(path) as model:
        assert model.metadata["llama.context_length"] == 128
        assert model.metadata["llama.block_count"] == 2


def test_an_edit_that_was_all_but_done_stays(capsys, path):
    interrupted(path, edit.Set("llama.context_length", 5))
    status, _, err = run(capsys, "edit", "--recover", "model.gguf")
    assert status == 0
    assert "all but done: the file is as edited" in err
    assert value(capsys, "llama.context_length") == "5"
    assert run(capsys, "edit", "--undo", "model.gguf")[0] == 0
    assert path.read_bytes() == demo_model()


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")
def test_two_editors_at_once(capsys, path):
    with journal.exclusive(str(path)):
        status, _, err = run(capsys, "set", "-i", "model.gguf", "llama.block_count=2")
    assert status == 2
    assert "another process is editing the file" in err
    assert path.read_bytes() == demo_model()


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")
@pytest.mark.parametrize(
    "command",
    [["set", "model.gguf", "there.gguf", "a:BOOL=1"], ["convert", "model.gguf", "there.gguf", "--order", "big"]],
)
def test_what_another_edits_is_not_replaced(capsys, path, command):
    there = path.with_name("there.gguf")
    there.write_bytes(demo_model())
    with journal.exclusive(str(there)):
        status, _, err = run(capsys, *command, "--force")
    assert status == 2
    assert f"another process is editing {there}: it is not replaced" in err
    assert there.read_bytes() == demo_model()
    assert run(capsys, *command, "--force")[0] == 0
    assert there.read_bytes() != demo_model()


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")
def test_links_are_told_of(capsys, path):
    os.symlink("model.gguf", "link.gguf")
    os.link("model.gguf", "hard.gguf")
    for options in ["--dry-run"], []:
        status, _, err = run(capsys, "set", "-i", "link.gguf", "general.name=" + "x" * 99, *options)
        assert status == 0
        assert f"it is a symbolic link; {path} is what is changed" in err
        assert "it has other names (hard links): what they name stays as it was" in err
    assert os.path.islink("link.gguf")
    assert value(capsys, "general.name") == "x" * 99
    assert value(capsys, "general.name", file="hard.gguf") == "gguf_schema demo"


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")
def test_other_names_of_what_is_patched_are_told_of(capsys, path):
    os.link("model.gguf", "hard.gguf")
    status, _, err = run(capsys, "set", "-i", "model.gguf", "llama.context_length=7")
    assert status == 0
    assert "it has other names (hard links): what they name changes, too" in err
    assert run(capsys, "get", "hard.gguf", "llama.context_length")[1] == "7\n"


def limited(*command):
    """Run a command that can write no file of more than 20,000 bytes."""
    code = (
        "import resource, sys; from gguf_schema.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")
def test_no_room(path):
    """New files and journals that are too large leave all as it was."""
    for command in (
        ["set", "model.gguf", "new.gguf", "general.name=x"],
        ["set", "-i", "model.gguf", "general.name=" + "x" * 99],
    ):
        done = limited(*command)
        assert done.returncode == 2
        assert "File too large" in done.stderr
        assert path.read_bytes() == demo_model()
        assert os.listdir() == ["model.gguf"]
    with gs.open(path) as model:
        big = edit.plan(model, [edit.Set("big", bytes(9000), T.STRING)], in_place=True, reserve=20000)
        edit.apply(big)
    os.unlink("model.gguf.undo")
    before = path.read_bytes()
    done = limited("set", "-i", "model.gguf", "big=" + "y" * 9000 + "y" * 2000)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert path.read_bytes() == before
    assert os.listdir() == ["model.gguf"]


def test_a_folder_that_cannot_be_written_to(capsys, path, monkeypatch):
    """Neither a journal nor a new file can be made there."""
    original = os.open

    def denied(name, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", name)
        return original(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", denied)
    for word in "llama.context_length=5", "general.name=" + "x" * 99:
        status, _, err = run(capsys, "set", "-i", "model.gguf", word)
        assert status == 2
        assert "Permission denied" in err
    assert path.read_bytes() == demo_model()
    assert os.listdir() == ["model.gguf"]


def test_a_file_that_is_read_only_is_replaced(capsys, no_root):
    """As `sed -i` does: the folder may be written to. Undone, it is as it was, and still read-only."""
    old = no_root / "model.gguf"
    old.write_bytes(demo_model())
    old.chmod(0o444)
    status, _, err = run(capsys, "set", "-i", "model.gguf", "llama.context_length=5")
    assert (status, "a new file in the place of the old one (it may not be written to)" in err) == (0, True)
    assert old.stat().st_mode & 0o777 == 0o444
    with gs.open(old) as model:
        assert model.metadata["llama.context_length"] == 5
    assert run(capsys, "edit", "--undo", "model.gguf")[0] == 0
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (demo_model(), 0o444)


def test_a_patch_of_a_file_that_became_read_only_is_not_begun(capsys, no_root):
    """Nor is an interrupted one mended; what was done is undone by a new file."""
    old = no_root / "model.gguf"
    old.write_bytes(demo_model())
    with gs.open(old) as model:
        plan = edit.plan(model, [edit.Set("llama.context_length", 5)], in_place=True)
        old.chmod(0o444)
        with pytest.raises(PermissionError):
            edit.apply(plan)
        old.chmod(0o644)
        edit.apply(plan)
    edited = old.read_bytes()
    old.chmod(0o444)
    os.rename("model.gguf.undo", "model.gguf.journal")
    status, _, err = run(capsys, "edit", "--undo", "model.gguf")
    assert (status, "Permission denied: the file may not be written to" in err) == (2, True)
    assert old.read_bytes() == edited
    os.rename("model.gguf.journal", "model.gguf.undo")
    assert run(capsys, "edit", "--undo", "model.gguf")[0] == 0
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (demo_model(), 0o444)
    assert os.listdir() == ["model.gguf"]


def test_a_folder_that_is_read_only(capsys, no_root):
    folder = no_root / "folder"
    folder.mkdir()
    (folder / "model.gguf").write_bytes(demo_model())
    name = str(folder / "model.gguf")
    assert run(capsys, "set", "-i", name, "llama.context_length=5")[0] == 0
    edited = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.chmod(0o500)
    try:
        for arguments in (
            ["set", "-i", name, "llama.context_length=6"],
            ["edit", "-i", name, "--reserve", "100"],
            ["edit", "--undo", name],
        ):
            status, _, err = run(capsys, *arguments)
            assert (status, f"the folder {folder} may not be written to" in err) == (2, True)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == edited
    finally:
        folder.chmod(0o700)


SLOW = """
import sys, time
from gguf_schema import targets
from gguf_schema.cli import main

def fill(file, *_):
    file.write(b"GGUF")
    file.flush()
    print("now", flush=True)
    time.sleep(60)

targets._fill = fill
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_signal_leaves_no_temporary_file(capsys, path, name):
    """But SIGKILL, of which nobody is told: `--recover` removes what it left."""
    number = getattr(signal, name)
    for arguments in (
        ["edit", "-i", "model.gguf", "--reserve", "100"],
        ["convert", "model.gguf", "new.gguf", "--canonical"],
    ):
        with subprocess.Popen(
            [sys.executable, "-c", SLOW, *arguments], stdout=subprocess.PIPE, cwd=path.parent
        ) as run_:
            assert run_.stdout.readline() == b"now\n"
            assert len(os.listdir()) == 2
            run_.send_signal(number)
            assert run_.wait(30) == (-number if name == "SIGKILL" else 128 + number)
        if name == "SIGKILL" and arguments[0] == "edit":
            assert run(capsys, "edit", "--recover", "model.gguf")[0] == 0
        elif name == "SIGKILL":
            assert run(capsys, *arguments)[0] == 0
            os.unlink("new.gguf")
        assert os.listdir() == ["model.gguf"]
        assert path.read_bytes() == demo_model()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_a_signal_that_is_ignored_stays_so(monkeypatch):
    """As `nohup` has it; and what a program that calls `main` has said of signals holds again afterwards."""
    seen = []
    monkeypatch.setattr("gguf_schema.cli.tell", lambda answer: seen.append(signal.getsignal(signal.SIGHUP)) or 0)
    old = signal.getsignal(signal.SIGHUP)
    try:
        for handler in signal.SIG_IGN, signal.SIG_DFL, lambda *_: None:
            signal.signal(signal.SIGHUP, handler)
            assert main(["info"]) == 0
            assert signal.getsignal(signal.SIGHUP) is handler
            assert (seen.pop() is handler) is (handler is not signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, old)
