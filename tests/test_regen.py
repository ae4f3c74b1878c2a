"""What is generated is up to date, and a change of the schema that is not written down is found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_schema.tables import FORMS, table
from tools import regen

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path):
    """A copy of the project that may be broken."""
    for part in ("gguf_schema", "spec", "tools"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def run(directory, *arguments):
    """regen.py of a copy, with the package of that copy."""
    command = [sys.executable, str(directory / "tools/regen.py"), *arguments]
    environment = {"PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


def test_generated_files_are_current(capsys):
    assert regen.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("schema.py", '"UTF-8 of 1 to 63 bytes; unique"', '"UTF-8 of 1 to 64 bytes; unique"', "spec/gguf.md"),
        ("blocks.py", 'field("hmask", Array(32, u8)', 'field("hmask", Array(33, u8)', "spec/gguf.md"),
        ("enums.py", "    MOSTLY_Q1_0 = 40\n", "", "spec/gguf.md"),
        ("enums.py", "    MOSTLY_Q1_0 = 40\n", "", "spec/gguf.ksy"),
        ("blocks.py", 'field("hmask", Array(32, u8)', 'field("hmask", Array(33, u8)', "spec/gguf.h"),
        ("limits.py", "DEFAULT_ALIGNMENT = 32", "DEFAULT_ALIGNMENT = 64", "spec/gguf.schema.json"),
        ("enums.py", "    Q2_0 = 42\n", "    Q2_0 = 42\n    Q3_0 = 43\n", "spec/gguf.md"),
        ("keys/rope.py", "Base of the rotation's frequencies", "Base", "spec/gguf.md"),
        ("limits.py", "MAX_NESTING = 16", "MAX_NESTING = 8", "spec/gguf.md"),
    ],
)
def test_a_change_makes_files_stale(copy, file, old, new, stale):
    """A field's doc, a type's size, an enum member, a key's doc, a limit."""
    path = copy / "gguf_schema" / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    checked = run(copy, "--check")
    assert checked.returncode == 1, checked.stderr
    assert f"stale: {copy / stale}" in checked.stdout
    assert "run: python tools/regen.py\n" in checked.stdout
    assert run(copy).returncode == 0
    assert run(copy, "--check").returncode == 0


def test_a_generated_table_that_was_edited_is_stale(copy):
    path = copy / "spec/gguf.md"
    path.write_text(path.read_text("utf-8").replace("| 9 | `Q8_1` | 32 | 36 |", "| 9 | `Q8_1` | 32 | 40 |"), "utf-8")
    assert run(copy, "--check").returncode == 1
    assert run(copy).stdout == f"written: {path}\n"
    assert path.read_bytes() == (ROOT / "spec/gguf.md").read_bytes()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_foreign_markdown(tmp_path, newline, capsys):
    """Regions are filled, everything else stays as it is, line ends too."""
    path = tmp_path / "page.md"
    lines = [
        "# Ours",
        "<!-- gguf-schema: string -->",
        "old",
        "<!-- /gguf-schema -->",
        "text <!-- gguf-schema: no -->",
        "ö",
    ]
    path.write_bytes(newline.join(lines).encode())
    assert regen.main(["--check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [f"stale: {path}", f"run: python tools/regen.py {path}"]
    assert regen.main([str(path)]) == 0
    table_lines = FORMS["markdown"](table("string")).splitlines()
    assert path.read_bytes().decode().split(newline) == [*lines[:2], "", *table_lines, "", *lines[3:]]
    assert regen.main(["--check", str(path)]) == 0
    assert regen.main([str(path)]) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<!-- gguf-schema: string -->\n", "line 1: the region 'string' has no end"),
        (
            "\n<!-- gguf-schema: gguf -->\n<!-- gguf-schema: array -->\n<!-- /gguf-schema -->",
            "line 2: the region 'gguf' has no end",
        ),
        ("<!-- gguf-schema: nothing -->\n<!-- /gguf-schema -->\n", "no table 'nothing'"),
        ("\udcff", "can't decode byte 0xff"),
        ("<!-- /gguf-schema -->\n", "line 1: a region ends that does not begin"),
        ("# Nothing\n", "there is no region"),
        ("<!-- gguf-schema string -->\n", "line 1: this is no marker: <!-- gguf-schema string -->"),
        ("```\n<!-- gguf-schema: string -->\n<!-- /gguf-schema -->\n```\n", "there is no region"),
        (None, "No such file"),
    ],
)
def test_documents_that_cannot_be_filled(tmp_path, text, problem, capsys):
    path = tmp_path / "page.md"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert regen.main([str(path)]) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert str(path) in err
    assert text is None or path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_regions_in_lists_are_indented(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("- one\n\n  <!--gguf-schema:string-->\n  <!--/gguf-schema-->\n", "utf-8")
    assert regen.main([str(path)]) == 0
    lines = [f"  {line}" for line in FORMS["markdown"](table("string")).splitlines()]
    assert path.read_text("utf-8").splitlines() == [
        *("- one", "", "  <!--gguf-schema:string-->", ""),
        *(*lines, "", "  <!--/gguf-schema-->"),
    ]
    assert regen.main(["--check", str(path)]) == 0


def test_marks_of_byte_order_and_spaces_do_no_harm(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("\ufeff<!-- gguf-schema: string --> \n<!-- /gguf-schema -->\t\n", "utf-8")
    assert regen.main([str(path)]) == 0
    assert FORMS["markdown"](table("string")) in path.read_text("utf-8")


def test_a_file_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("<!-- gguf-schema: string -->\n<!-- /gguf-schema -->\n", "utf-8")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(regen, "save", refuse)
    assert regen.main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"regen: cannot write {path}: Permission denied\n")


def test_examples_in_code_stay_as_they_are(tmp_path):
    path = tmp_path / "page.md"
    example = "~~~\n<!-- gguf-schema: nothing -->\n~~~\n"
    path.write_text(f"{example}<!-- gguf-schema: string -->\n<!-- /gguf-schema -->\n{example}", "utf-8")
    assert regen.main([str(path)]) == 0
    text = path.read_text("utf-8")
    assert text.startswith(example)
    assert text.endswith(f"<!-- /gguf-schema -->\n{example}")
    assert FORMS["markdown"](table("string")) in text


def test_nothing_is_written_if_one_document_is_wrong(tmp_path):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("<!-- gguf-schema: string -->\n<!-- /gguf-schema -->\n")
    bad.write_text("<!-- gguf-schema: string -->\n")
    assert regen.main([str(good), str(bad)]) == 2
    assert good.read_text() == "<!-- gguf-schema: string -->\n<!-- /gguf-schema -->\n"
