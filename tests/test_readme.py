"""The README's own examples and options, as they stand."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.demo import demo_model

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "sys.stdin" not in block]
"""The examples, but for the harness, which reads a pipe and is run by the tests of that."""


def test_examples_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in "model.gguf", "llama.gguf":
        Path(name).write_bytes(demo_model())
    names = {}
    assert len(BLOCKS) == 13
    for block in BLOCKS:
        source = re.sub(r'(?<!\.)open\("new.gguf", "rb"\).read\(\)', 'Path("new.gguf").read_bytes()', block)
        lines_before = TEXT.count("\n", 0, TEXT.index(block))  # hypothesis looks up the source of what it runs
        exec(compile("\n" * lines_before + source, str(README), "exec"), names | {"Path": Path}, names)
    assert "general.architecture llama [64]" in capsys.readouterr().out
    assert Path("copy.gguf").read_bytes() == Path("new.gguf").read_bytes()
    assert Path("merged.gguf").read_bytes() == Path("new.gguf").read_bytes()
    for test in "test_a_reader", "test_with_parts_of_your_own":
        settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])(names[test])()
    with gs.open("changed.gguf") as model:
        assert model.metadata["llama.context_length"] == 4096
        assert model.metadata.type("llama.context_length") is gs.GGUFValueType.UINT32
    assert gs.open(names["changed"]).metadata["general.architecture"] == "qwen2"


def test_the_error_that_is_shown():
    data = gs.GGUF.build(
        {"metadata_kv": [{"key": "general.architecture", "value_type": 8, "value": "llama"}] * 2, "tensor_infos": []}
    )
    broken = data[:69] + b"\xff" * 8 + data[77 : 77 + 6]
    with pytest.raises(gs.TruncatedError) as caught:
        gs.open(broken)
    assert str(caught.value) in TEXT


def test_commands_that_are_named_exist(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    path.write_bytes(demo_model())
    named = re.findall(r"^- `gguf-schema (\w+) \[?FILE…?\]?`(.*?)(?=^- |\n\n)", TEXT, re.MULTILINE | re.DOTALL)
    assert [command for command, _ in named] == ["info", "dump", "map", "explain", "check", "hash"]
    manifest = tmp_path / "manifest"
    assert main(["hash", str(path), "--manifest", str(manifest)]) == 0
    values = {"N": "1", "OFFSET": "4", "PATH": "version", "OUT": "-", "P": "all", "CODE": "key-twice"}
    values["MANIFEST"] = str(manifest)
    for command, text in named:
        assert main([command, str(path)]) == 0
        assert capsys.readouterr().out
        options = re.findall(r"`(--[a-z-]+)(?: ([A-Za-z]+))?`", text)
        assert bool(options) == (command != "explain")
        for option, value in options:
            assert main([command, option, *([values.get(value, value)] if value else []), str(path)]) == 0
            assert capsys.readouterr().out


def test_tables_that_are_named_exist(capsys):
    (text,) = re.findall(r"^- `gguf-schema tables \[NAME\]`(.*?)(?=^- |\n\n)", TEXT, re.MULTILINE | re.DOTALL)
    (forms,) = re.findall(r"`--format ([a-z|]+)`", text)
    names = re.findall(r"`([a-z-]+)`", text)
    assert len(names) == 2
    for name in names:
        for form in forms.split("|"):
            assert main(["tables", name, "--format", form]) == 0
            assert capsys.readouterr().out


def test_the_suite_that_is_named_is_written(tmp_path, capsys):
    (link,) = re.findall(r"^- `gguf-schema suite DIR`.*?\]\((.*?)\)", TEXT, re.MULTILINE | re.DOTALL)
    assert main(["suite", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_bytes() == (README.parent / link).read_bytes()
    capsys.readouterr()


def test_all_that_fuzz_takes_is_named(capsys):
    (text,) = re.findall(r"^- `gguf-schema fuzz -- COMMAND {}`(.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)
    with pytest.raises(SystemExit):
        main(["fuzz", "--help"])
    offered = set(re.findall(r"^  (--[a-z]+)", capsys.readouterr().out, re.MULTILINE))
    assert set(re.findall(r"`(--[a-z]+)", text)) == offered
