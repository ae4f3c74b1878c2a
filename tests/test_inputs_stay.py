"""No command replaces the file that it reads, however that is named, nor any other that is there, unless it is told."""

import io
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.sources import FileSource
from gguf_schema.targets import bytes_piece, save, save_pieces, save_set

TENSOR = "token_embd.weight"
COMMANDS = {
    "convert": (["convert", "IN", "OUT", "--order", "big"], ["--force"]),
    "set": (["set", "IN", "OUT", "general.name=X"], ["--force"]),
    "unset": (["unset", "IN", "OUT", "general.name"], ["--force"]),
    "extract": (["extract", "IN", TENSOR, "OUT"], ["--force"]),
    "hash": (["hash", "IN", "--manifest", "OUT"], ["--force"]),
    "map": (["map", "IN", "--html", "OUT"], []),
}
"""Name → the command, and what lets it replace a file."""


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """m.gguf in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.gguf"
    path.write_bytes(demo_model())
    return path


def filled(name, source, target, force=False):
    words, options = COMMANDS[name]
    return [{"IN": source, "OUT": target}.get(word, word) for word in words] + (options if force else [])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("target", ["m.gguf/", "m.gguf/.", "./m.gguf//", "link", "hard", "m.gguf"])
def test_not_by_another_name(name, target, path, capsys):
    os.symlink("m.gguf", "link")
    os.link("m.gguf", "hard")
    before = set(os.listdir())
    assert main(filled(name, "m.gguf", target, force=True)) == 2
    assert path.read_bytes() == demo_model()
    assert set(os.listdir()) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_not_by_standard_input(name, path, monkeypatch, capsys):
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file, fileno=file.fileno))
        assert main(filled(name, "-", "m.gguf", force=True)) == 2
    assert path.read_bytes() == demo_model()


@pytest.fixture
def shards(path, capsys):
    """The model in three files, of which the last has been edited."""
    assert main(["split", "m.gguf", "s", "--max-tensors", "5"]) == 0
    names = [f"s-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    assert main(["set", "--in-place", names[2], "a.b:BOOL=true"]) == 0
    return names


@pytest.mark.parametrize("name", [*COMMANDS, "merge"])
@pytest.mark.parametrize("target", [1, 2, "link"])
def test_not_another_file_of_the_model(name, target, shards, capsys):
    os.symlink(shards[1], "link")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    target = target if target == "link" else shards[target]
    command = ["merge", shards[0], target, "--force"] if name == "merge" else filled(name, shards[0], target, True)
    assert main(command) == 2
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before
    told = "is no page" if name == "map" else "is one of the files that is read"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "map"])
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("suffix", [".undo", ".journal"])
def test_not_the_record_of_an_edit(name, number, suffix, shards, capsys):
    """Also where it is not there yet: it would be taken for one."""
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    assert main(filled(name, shards[0], shards[number] + suffix, force=True)) == 2
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before
    assert "is the place of the record of an edit" in capsys.readouterr().err
    assert main(filled(name, shards[0], "other.gguf" + suffix)) == 0


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("target", ["notes", "notes/"])
def test_nothing_else_without_being_told(name, target, path, capsys):
    (path.parent / "notes").write_text("keep")
    assert main(filled(name, "m.gguf", target)) == 2
    assert (path.parent / "notes").read_text() == "keep"


@pytest.mark.parametrize("name", [name for name, (_, options) in COMMANDS.items() if options])
def test_what_is_hardly_meant_is_not_replaced(name, path, capsys):
    """A model by what is none, and what is no model by one."""
    old = demo_model()[:-1] if name in ("extract", "hash") else b"list of edits"
    (path.parent / "old").write_bytes(old)
    assert main(filled(name, "m.gguf", "old", force=True)) == 2
    assert "it is not overwritten; remove it if it is meant" in capsys.readouterr().err
    assert (path.parent / "old").read_bytes() == old


@pytest.mark.parametrize("name", ["extract", "hash"])
def test_nothing_that_appears_meanwhile(name, path, monkeypatch, capsys):
    def appears(*_):
        (path.parent / "late").write_text("keep")

    monkeypatch.setattr(f"gguf_schema.cli.{name}.demand_no_model", appears)
    assert main(filled(name, "m.gguf", "late")) == 2
    assert (path.parent / "late").read_text() == "keep"


def test_the_path_of_a_folder_is_none_of_a_file(path):
    piece = bytes_piece("bytes", b"ab")
    for write in (
        lambda target: save(target, [b"ab"]),
        lambda target: save_pieces(target, [piece]),
        lambda target: save_set({target: [piece]}),
        lambda target: gs.write(target, {}),
    ):
        for target in "m.gguf/", "new/", ".":
            with pytest.raises(OSError, match=r"directory"):
                write(target)
    assert os.listdir() == ["m.gguf"]
    assert path.read_bytes() == demo_model()


def test_two_names_of_one_file_are_no_set(path):
    os.symlink("one", "a")
    os.symlink("one", "b")
    piece = bytes_piece("bytes", b"ab")
    with pytest.raises(gs.GGUFError, match="links to one file"):
        save_set({"a": [piece], "b": [piece]})
    assert set(os.listdir()) == {"m.gguf", "a", "b"}


def test_a_file_object_may_be_anything():
    file = io.BytesIO()
    save(file, [b"ab"])
    assert file.getvalue() == b"ab"


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "m.gguf", "-", "--order", "big"],
        ["set", "m.gguf", "-", "general.name=X"],
        ["extract", "m.gguf", TENSOR, "-", "--raw"],
        ["extract", "m.gguf", TENSOR, "out.npy"],
        ["hash", "m.gguf"],
        ["diff", "m.gguf", "other.gguf"],
    ],
    ids=lambda command: " ".join(command[::2]),
)
def test_a_file_that_changes_while_it_is_read_is_told(command, path, monkeypatch, capfdbinary):
    """Else what comes of it is neither of the old file nor of the new one."""
    (path.parent / "other.gguf").write_bytes(demo_model())
    read_at = FileSource.read_at

    def changing(self, position, size):
        data = read_at(self, position, size)
        os.utime(path, (1, 1))
        return data

    assert main(command) == 0
    if os.path.exists("out.npy"):
        os.unlink("out.npy")
    monkeypatch.setattr(FileSource, "read_at", changing)
    assert main(command) == 2
    assert b"has changed" in capfdbinary.readouterr().err
    assert not os.path.exists("out.npy")
