"""Changes in place survive that the power fails: then any of what was written since the last sync may be lost.

A disk is simulated: of every file it keeps what was synced, and any of the writes since; of the names in the folder as
they were when that was synced, and the first few of the changes since.
"""

import os
import random

import pytest

from gguf_schema import journal
from gguf_schema.errors import GGUFError

from .test_journal import NEW, OLD, no_rewrite, the_record

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX syncs folders")

SECTOR = 512


class Disk:
    """Notes what is done to the files of a folder, and makes what may be left of it."""

    def __init__(self, folder, monkeypatch, syncs=True):
        self.folder, self.syncs = str(folder), syncs
        self.files = [file.read_bytes() for file in folder.iterdir()]
        self.durable = {str(file): index for index, file in enumerate(folder.iterdir())}
        self.names = dict(self.durable)
        self.renamed, self.written, self.handles, self.moments = [], {}, {}, []
        self.real = {name: getattr(os, name) for name in ("open", "write", "lseek", "fsync", "replace", "unlink")}
        for name in self.real:
            monkeypatch.setattr(os, name, getattr(self, name))

    def note(self):
        """A moment at which the power may fail."""
        written = {file: list(writes) for file, writes in self.written.items()}
        self.moments.append((list(self.files), dict(self.durable), list(self.renamed), written))

    def open(self, path, flags, *args, **kwargs):
        handle = self.real["open"](path, flags, *args, **kwargs)
        if flags & os.O_CREAT:
            self.names[path] = len(self.files)
            self.files.append(b"")
            self.renamed.append((None, path, self.names[path]))
            self.note()
        self.handles[handle] = [self.names.get(path), 0]
        return handle

    def lseek(self, handle, position, whence):
        self.handles[handle][1] = position
        return self.real["lseek"](handle, position, whence)

    def write(self, handle, data):
        file, position = self.handles[handle]
        done = self.real["write"](handle, data)
        for start in range(0, done, SECTOR):
            piece = bytes(data[start : min(start + SECTOR, done)])
            self.written.setdefault(file, []).append((position + start, piece))
        self.handles[handle][1] += done
        self.note()
        return done

    def fsync(self, handle):
        file = self.handles[handle][0]
        if self.syncs and file is None:
            self.durable, self.renamed = dict(self.names), []
        elif self.syncs:
            self.files[file] = laid(self.files[file], self.written.pop(file, []))
        self.note()

    def replace(self, old, new):
        self.real["replace"](old, new)
        self.names[new] = self.names.pop(old)
        self.renamed.append((old, new, self.names[new]))
        self.note()

    def unlink(self, path):
        self.real["unlink"](path)
        self.renamed.append((path, None, self.names.pop(path)))
        self.note()

    def left(self, moment, choices):
        """Make in the folder what may be left after a moment."""
        files, names, renamed, written = moment
        names = dict(names)
        for old, new, file in renamed[: choices.randint(0, len(renamed))]:
            names.pop(old, None)
            if new is not None:
                names[new] = file
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        for name, file in names.items():
            kept = [write for write in written.get(file, []) if choices.random() < 0.5]
            with open(name, "wb") as target:
                target.write(laid(files[file], kept))


def laid(data, writes):
    """Bytes after writes."""
    new = bytearray(data)
    for position, piece in writes:
        new += bytes(max(0, position + len(piece) - len(new)))
        new[position : position + len(piece)] = piece
    return bytes(new)


def change(path):
    with journal.exclusive(path) as handle:
        journal.apply(path, handle, the_record())


def undo(path):
    journal.undo(path, no_rewrite)


def recover(path):
    with journal.exclusive(path) as handle:
        journal.recover(path, handle)


def interrupt(path):
    """Leave a file as the power left it in the middle of a change."""
    with open(path + ".journal", "wb") as file:
        file.write(journal.to_bytes(the_record()))
    with open(path, "r+b") as file:
        file.write(NEW[:3000])


ACTIONS = {"change": (lambda path: None, change), "undo": (change, undo), "recover": (interrupt, recover)}


def outcomes(folder, action, syncs=True):
    """What a file is after the power failed at any moment and it was mended; the last are those after the end."""
    path = str(folder / "file.gguf")
    with open(path, "wb") as file:
        file.write(OLD)
    before, done = ACTIONS[action]
    before(path)
    with pytest.MonkeyPatch.context() as patched:
        disk = Disk(folder, patched, syncs)
        disk.note()
        done(path)
    choices = random.Random(1)
    for moment in [*disk.moments, *[disk.moments[-1]] * 10]:
        found = set()
        for _ in range(12):
            disk.left(moment, choices)
            try:
                recover(path)
            except GGUFError as error:
                found.add(str(error))
                continue
            with open(path, "rb") as file:
                found.add({OLD: "old", NEW: "new"}.get(file.read(), "third"))
        yield found


@pytest.mark.parametrize(
    ("action", "begun", "ended"), [("change", "old", "new"), ("undo", "new", "old"), ("recover", "old", "old")]
)
def test_the_power_fails(tmp_path, action, begun, ended):
    found = list(outcomes(tmp_path, action))
    assert set().union(*found) == {begun, ended}
    assert found[0] == {begun}
    assert all(outcome == {ended} for outcome in found[-10:]), "what was done is lost"


@pytest.mark.parametrize("action", ["change", "undo"])
def test_without_syncs_it_would_be_seen(tmp_path, action):
    found = set().union(*outcomes(tmp_path, action, syncs=False))
    assert found - {"old", "new"}
