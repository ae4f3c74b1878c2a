"""The command line: exit status, stdout, stderr, JSON."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.terminal import perhaps

GGUF_SCHEMA = [sys.executable, "-m", "gguf_schema"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_bytes(demo_model())
    return path


def one_tensor_file():
    """The file of worked example 17: Q8_0 [64, 4], with no padding after its last tensor."""
    metadata = {"general.architecture": "llama", "llama.embedding_length": 64, "general.file_type": 7}
    rows = np.zeros((4, 68), np.uint8)
    written = io.BytesIO()
    gs.write(written, metadata, {"token_embd.weight": (gs.GGMLQuantizationType.Q8_0, rows)})
    padding = 16
    return written.getvalue()[:-padding]


def test_info_of_the_one_tensor_file(tmp_path, capsys):
    path = tmp_path / "one.gguf"
    path.write_bytes(one_tensor_file())
    assert main(["info", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "GGUF v3, 3 KV pairs, 1 tensors, alignment 32, data at byte 224"
    assert "file type: MOSTLY_Q8_0" in lines
    assert lines[-2].split() == ["Q8_0", "1", "256", "272", "100.0", "%"]
    assert lines[-1] == "256 params, 272 bytes, 8.50 bpw, file 496"


def test_info_json_says_the_same(tmp_path, capsys):
    path = tmp_path / "one.gguf"
    path.write_bytes(one_tensor_file())
    assert main(["info", "--json", str(path)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["file"] == str(path)
    assert (summary["parameters"], summary["bytes"], summary["size"]) == (256, 272, 496)
    assert summary["bits_per_weight"] == 8.5
    assert summary["file_type"] == "MOSTLY_Q8_0"
    assert summary["order"] == "little"
    assert summary["vocabulary"] is None


def test_info_without_a_file_shows_the_demo(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("GGUF v3, 18 KV pairs, 11 tensors, alignment 32, data at byte 7168\narchitecture: llama\n")
    assert "vocabulary: llama, 261 tokens (2 NORMAL, 1 UNKNOWN, 2 CONTROL, 256 BYTE)\n" in out


def test_demo_is_the_same_every_time_and_opens():
    assert demo_model() == demo_model()
    with gs.open(demo_model()) as model:
        assert gs.hyperparameters(model.metadata).queries_per_kv_head == 2


@pytest.mark.parametrize("command", ["info", "dump"])
def test_standard_input(command):
    run = subprocess.run([*GGUF_SCHEMA, command, "-"], input=demo_model(), capture_output=True, check=False)
    assert run.returncode == 0
    assert b"token_embd.weight" in run.stdout or b"token" in run.stdout
    assert run.stderr == b""


def test_dump_numbers(path, capsys):
    assert main(["dump", "--data-offset", str(path)]) == 0
    assert main(["dump", "--data-alignment", str(path)]) == 0
    assert capsys.readouterr().out == "7168\n32\n"


def test_dump_forms(path, capsys):
    assert main(["dump", "--json", str(path)]) == 0
    without = json.loads(capsys.readouterr().out)
    assert main(["dump", "--json-array", "--no-tensors", str(path)]) == 0
    arrays = json.loads(capsys.readouterr().out)
    assert "value" not in without["metadata"]["tokenizer.ggml.tokens"]
    assert len(arrays["metadata"]["tokenizer.ggml.tokens"]["value"]) == 261
    assert len(without["tensors"]) == 11
    assert arrays["tensors"] == {}
    assert main(["dump", "--markdown", str(path)]) == 0
    assert capsys.readouterr().out.startswith("# ")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "magic at byte 0: expected b'GGUF', found b'': an empty file"),
        (b"FUGG\0\0\0\3", "a GGUF file with its magic reversed"),
        (b"lmgg\1\0\0\0", "a GGML file"),
        (b"tjgg\1\0\0\0", "a GGJT file"),
        (b"GGJT\1\0\0\0", "a GGJT file"),
        (b'\x40\0\0\0\0\0\0\0{"__metadata__":{}}', "a safetensors file"),
        (b"PK\3\4", "a zip archive"),
        (b"\x80\2}q\0.", "a Python pickle"),
        (b"\x1f\x8b\x08", "a gzip file"),
        (b"\n<!DOCTYPE html>", "an HTML or XML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"\0" * 64, "a file of zeros"),
        (b"GGUF\4\0\0\0", "version at byte 4: unknown version 4; 1 to 3 are known"),
        (b"GGUF\0\0\0\4", "version at byte 4: unknown version 4; 1 to 3 are known"),
        (b"GG", "magic at byte 0: expected b'GGUF', the file ends after b'GG'"),
    ],
)
def test_other_kinds_of_files_are_named(data, told, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(data)
    assert main(["info", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.startswith(f"gguf-schema: {path}: ")


def test_a_file_that_ends_early_is_told_what_explains_it(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(demo_model()[:700])
    assert main(["info", str(path)]) == 2
    assert "`gguf-schema explain` shows the bytes" in capsys.readouterr().err
    path.write_bytes(demo_model()[:-700])
    for command in "hash", "split":
        assert main([command, str(path), "new"][: 2 + (command == "split")]) == 2
        assert "`gguf-schema explain` shows the bytes" in capsys.readouterr().err
    path.write_bytes(b"PK\3\4" + bytes(99))
    assert main(["info", str(path)]) == 2
    assert "explain" not in capsys.readouterr().err


def test_files_that_cannot_be_read(tmp_path, capsys):
    assert main(["info", str(tmp_path / "nothing")]) == 2
    assert main(["info", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "No such file or directory" in err
    assert "Is a directory" in err


def test_usage_is_status_2(capsys):
    for arguments in ([], ["nothing"], ["dump"], ["info", "--nothing"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage: gguf-schema" in capsys.readouterr().err


def test_refused_file_and_no_check(tmp_path, capsys):
    path = tmp_path / "twice.gguf"
    pair = {"key": "a.b", "value_type": gs.GGUFValueType.UINT8, "value": 1}
    path.write_bytes(gs.GGUF.build({"metadata_kv": [pair, pair], "tensor_infos": []}))
    assert main(["dump", str(path)]) == 2
    err = capsys.readouterr().err
    assert "metadata_kv[1].key.len at byte 40: the key 'a.b' stands in metadata_kv[0] already" in err
    assert "--no-check reads" in err
    assert main(["dump", "--no-check", str(path)]) == 0
    assert capsys.readouterr().out.count("a.b") == 2


def test_hostile_text_is_escaped(tmp_path, capsys):
    path = tmp_path / "hostile.gguf"
    gs.write(path, {"general.architecture": "lla\x1b[2Jma", "general.name": "one\ntwo\u202e", "a\x1b.b": "\x07"})
    for arguments in (["info"], ["dump"], ["dump", "--markdown"], ["dump", "--json"], ["info", "--json"]):
        assert main([*arguments, str(path)]) == 0
        out = capsys.readouterr().out
        assert not set(out) & {"\x1b", "\x07", "\u202e"}
    assert main(["info", str(path)]) == 0
    assert "architecture: lla\\x1b[2Jma\nname: one\\ntwo\\u202e\n" in capsys.readouterr().out


def test_nobody_reads():
    """The reader of a pipe goes away: no traceback."""
    program = f"{' '.join(GGUF_SCHEMA)} dump --json-array - | head -c 10; exit ${{PIPESTATUS[0]}}"
    tokens = io.BytesIO()
    gs.write(tokens, {"a.b": ["x" * 100] * 10_000})
    run = subprocess.run(["bash", "-c", program], input=tokens.getvalue(), capture_output=True, check=False)
    assert run.returncode == 141
    assert run.stdout == b'{"filename'
    assert run.stderr == b""


def test_a_full_disk_is_the_fault_of_the_output():
    with open("/dev/full", "wb") as full:
        run = subprocess.run([*GGUF_SCHEMA, "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "gguf-schema: standard output: No space left on device\n"


def test_interrupted(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("gguf_schema.cli.streams.open", interrupt)
    assert main(["info"]) == 130


def test_interrupted_before_it_began(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("gguf_schema.cli.import_module", interrupt)
    assert main(["info"]) == 130


def test_what_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_bytes(b"")
    assert main(["suite", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"gguf-schema: suite: {tmp_path / 'file'}: File exists\n"


def test_no_model_is_no_answer(tmp_path, capsys):
    assert main(["check", str(tmp_path / "nothing"), str(tmp_path)]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["extract", "FILE", "output_norm.weight", "-"],
        ["convert", "FILE", "-", "--canonical"],
        ["set", "FILE", "-", "general.name=x"],
    ],
)
def test_no_binary_file_goes_to_a_terminal(words, path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit) as caught:
        main([str(path) if word == "FILE" else word for word in words])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert (out, "standard output is a terminal" in err) == ("", True)


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"gguf-schema {gs.__version__}\n"


def test_json_array_goes_with_json_only(path):
    for other in "--markdown", "--data-offset", "--data-alignment":
        with pytest.raises(SystemExit) as caught:
            main(["dump", "--json-array", other, str(path)])
        assert caught.value.code == 2
    assert main(["dump", "--json-array", "--json", str(path)]) == 0


def test_module_and_script_are_the_same():
    run = subprocess.run([*GGUF_SCHEMA, "info"], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert run.stdout.startswith("GGUF v3")


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        ("general.nane", ["general.type", "general.name"], "general.name"),
        ("llama.context_lenght", ["llama.context_length"], "llama.context_length"),
        ("output_norm.wait", ["output_norm.weight", "output.weight"], "output_norm.weight"),
        ("blk.0.attn_k", ["blk.1.attn_k", "blk.0.attn_kv"], "blk.0.attn_kv"),
        ("abab", ["ababab", "abaab"], "abaab"),
        ("tokenizer.chat_template", ["tokenizer.ggml.tokens", "chat_template"], None),
        ("general.name", ["general.architecture"], None),
        ("a", ["b", ""], None),
        ("", ["a"], None),
        ("x" * 99, [], None),
    ],
)
def test_names_that_may_be_meant(name, names, meant):
    assert perhaps(name, names) == ("" if meant is None else f"; is '{meant}' meant?")
    assert perhaps(name, names[::-1]) == perhaps(name, names)


def test_hostile_names_are_looked_through_once():
    """What compares all letters of two names with each other, as difflib does, takes a quarter of an hour for these."""
    names = [f"{'aabb' * 50}{number:06}" for number in range(20_000)]
    assert perhaps("ab" * 99, names) == ""
    assert perhaps("aabb" * 50 + "x00000", names) == f"; is {names[0]!r} meant?"
