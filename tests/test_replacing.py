"""Files take their place at once or not at all: full disks, read-only folders, killed and rival writers."""

import contextlib
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import journal
from gguf_schema.targets import JOURNAL, UNDO, BusyError, bytes_piece, lock, locking, replacement, save, save_set

OLD = b"the old file"
ONES = np.ones(1 << 20, np.float32)
TEMPORARY = re.compile(r"\.model\.gguf\.gguf_schema-\d+\.tmp")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(OLD)
    return path


def assert_untouched(path):
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


@pytest.fixture
def disk(tmp_path):
    """A disk of 1 MiB with an old file on it, and a function to mount it anew with other options."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(["size=1m", *options]), "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"no disk can be mounted: {error}")
        if done.returncode:
            pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")

    mount()
    try:
        (folder / "model.gguf").write_bytes(OLD)
        yield folder / "model.gguf", mount
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_what_has_no_room_is_not_begun(disk, monkeypatch):
    path, _ = disk
    begun = []
    tensors = [gs.NewTensor("t", gs.GGMLQuantizationType.F32, ONES.shape, lambda: begun.append(1) or ONES)]
    with pytest.raises(OSError, match=rf"No space left on device: \d+ bytes needed, \d+ free: '{path}'$") as caught:
        gs.write(path, {}, tensors)
    assert caught.value.errno == errno.ENOSPC
    assert begun == []
    assert_untouched(path)


@pytest.mark.parametrize("from_file", [True, False])
def test_a_disk_that_becomes_full_leaves_the_old_file(disk, tmp_path, monkeypatch, from_file):
    """The real thing, where the system did not say how much room there is."""
    path, _ = disk
    monkeypatch.delattr(os, "fstatvfs")
    (tmp_path / "raw").write_bytes(ONES)
    data = gs.FileRange(tmp_path / "raw") if from_file else ONES
    with pytest.raises(OSError, match=rf"No space left on device: '{path}'$"):
        gs.write(path, {}, [gs.NewTensor("t", gs.GGMLQuantizationType.F32, ONES.shape, data)])
    assert_untouched(path)


def test_a_write_that_fails_names_the_file(path, monkeypatch):
    def full(*args):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"{os.strerror(errno.EDQUOT)}: '{path}'$"):
        gs.write(path, {}, {"t": ONES})
    assert_untouched(path)


def test_a_disk_that_is_read_only(disk):
    path, mount = disk
    mount("remount", "ro")
    with pytest.raises(OSError, match=rf"Read-only file system: '{path}'$"):
        gs.write(path, {}, {})
    assert_untouched(path)


def test_a_folder_that_is_read_only(no_root):
    path = no_root / "folder" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.parent.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=rf"'{path}'$"):
            gs.write(path, {}, {})
        assert_untouched(path)
    finally:
        path.parent.chmod(0o700)


def test_a_file_is_not_overwritten_where_that_is_said(path, tmp_path):
    for write in (lambda p: gs.write(p, {}, overwrite=False), lambda p: save(p, [b"new"], overwrite=False)):
        for target in path, tmp_path:
            with pytest.raises(OSError, match=f"(File exists|Is a directory): '{target}'$"):
                write(target)
        assert_untouched(path)
        write(tmp_path / "new.gguf")
        assert (tmp_path / "new.gguf").read_bytes() != OLD
        (tmp_path / "new.gguf").unlink()


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_overwritten(path, monkeypatch, links):
    def no_links(*args):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    new = path.parent / "new.gguf"

    def give():
        new.write_bytes(OLD)
        return ONES

    tensors = [gs.NewTensor("t", gs.GGMLQuantizationType.F32, ONES.shape, give)]
    with pytest.raises(FileExistsError, match=f"'{new}'$"):
        gs.write(new, {}, tensors, overwrite=False)
    assert new.read_bytes() == OLD
    new.unlink()
    gs.write(new, {}, {"t": ONES}, overwrite=False)
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(path.stat().st_mode)
    assert new.stat().st_nlink == 1
    assert sorted(os.listdir(path.parent)) == ["model.gguf", "new.gguf"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_is_kept(path):
    os.chown(path, 1234, 2345)
    path.chmod(0o2640)
    gs.write(path, {"a.b": 1})
    state = path.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (1234, 2345, 0o2640)


def test_extended_attributes_are_kept(path):
    try:
        os.setxattr(path, "user.first", b"\x001")
        os.setxattr(path, "user.second", b"")
    except (AttributeError, OSError) as error:
        pytest.skip(f"this file system has no extended attributes: {error}")
    gs.write(path, {"a.b": 1})
    assert path.read_bytes() != OLD
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == {
        "user.first": b"\x001",
        "user.second": b"",
    }


def test_a_link_to_nothing_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "models" / "new.gguf")
    (tmp_path / "models").mkdir()
    gs.write(tmp_path / "link", {"a.b": 1})
    assert (tmp_path / "link").is_symlink()
    assert gs.open((tmp_path / "models" / "new.gguf").read_bytes()).metadata["a.b"] == 1


# Temporary files.


def test_a_temporary_file_is_not_taken_for_a_model(path):
    seen = []

    def give():
        seen.extend(set(os.listdir(path.parent)) - {path.name})
        return b"1234"

    gs.write(path, {}, [gs.NewTensor("t", gs.GGMLQuantizationType.F32, (1,), give)])
    (name,) = seen
    assert TEMPORARY.fullmatch(name)
    assert os.listdir(path.parent) == [path.name]


WRITER = """
import sys, time
import gguf_schema as gs
def slow():
    yield bytes(1 << 20)
    print("writing", flush=True)
    sys.stdin.read()
gs.write(sys.argv[1], {}, [gs.NewTensor("t", gs.GGMLQuantizationType.I8, (1 << 20,), slow())])
"""


@pytest.fixture
def writer(path):
    """A process that has begun to write to `path`, and goes on when its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def temporaries(path):
    return sorted(name for name in os.listdir(path.parent) if TEMPORARY.fullmatch(name))


def test_what_a_killed_process_left_is_removed_by_the_next(path, writer):
    assert len(temporaries(path)) == 1
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert path.read_bytes() == OLD
    assert len(temporaries(path)) == 1
    gs.write(path.parent / "other.gguf", {})
    assert len(temporaries(path)) == 1
    gs.write(path, {"a.b": 1})
    assert sorted(os.listdir(path.parent)) == ["model.gguf", "other.gguf"]


def test_a_file_in_work_is_left_alone(path, writer):
    gs.write(path, {"a.b": 1})
    assert gs.open(path.read_bytes()).metadata["a.b"] == 1
    assert len(temporaries(path)) == 1
    writer.stdin.close()
    assert writer.wait() == 0
    with gs.open(path) as model:  # the last one to end wins, with a whole file
        assert model.tensors["t"].n_bytes == 1 << 20
    assert os.listdir(path.parent) == [path.name]


def test_several_leftovers_are_removed(path):
    for number in range(3):
        (path.parent / f".model.gguf.gguf_schema-{number}.tmp").write_bytes(b"left over")
    (path.parent / ".model.gguf.other.tmp").write_bytes(b"another program's")
    gs.write(path, {})
    assert sorted(os.listdir(path.parent)) == [".model.gguf.other.tmp", "model.gguf"]


def test_a_leftover_that_may_not_be_written_to_is_removed(no_root):
    (no_root / "model.gguf").write_bytes(OLD)
    leftover = no_root / ".model.gguf.gguf_schema-0.tmp"
    leftover.write_bytes(b"left")
    leftover.chmod(0o444)
    save("model.gguf", [b"new"])
    assert os.listdir() == ["model.gguf"]


def test_what_only_looks_left_over_stays(path, tmp_path):
    """A link and a folder of such a name are not ours."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".model.gguf.gguf_schema-0.tmp").symlink_to(path)
    (tmp_path / ".model.gguf.gguf_schema-1.tmp").mkdir()
    gs.write(path, {"a.b": 1})
    assert gs.open(path.read_bytes()).metadata["a.b"] == 1
    assert temporaries(path) == [".model.gguf.gguf_schema-0.tmp", ".model.gguf.gguf_schema-1.tmp"]


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(path, monkeypatch):
    """Another writer takes it for left over in the moment between."""
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    original, removed = fcntl.flock, []

    def first(handle, operation):
        monkeypatch.setattr(fcntl, "flock", original)
        (name,) = temporaries(path)
        assert replacement._remove_stale(str(path.parent / name))
        removed.append(name)
        return original(handle, operation)

    monkeypatch.setattr(fcntl, "flock", first)
    gs.write(path, {"a.b": 1})
    assert len(removed) == 1
    assert gs.open(path.read_bytes()).metadata["a.b"] == 1
    assert os.listdir(path.parent) == [path.name]


def test_without_locks_nothing_is_removed(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")

    def unable(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unable)
    (path.parent / ".model.gguf.gguf_schema-0.tmp").write_bytes(b"perhaps in work")
    gs.write(path, {"a.b": 1})
    assert gs.open(path.read_bytes()).metadata["a.b"] == 1
    assert temporaries(path) == [".model.gguf.gguf_schema-0.tmp"]


def test_two_writers_that_hurry(path):
    """Whatever their order, each file is whole and nothing is left."""
    program = f"""
import numpy as np, gguf_schema as gs, sys
for number in range(40):
    gs.write({str(path)!r}, {{"a.b": number}}, {{"t": np.full(1 << 12, int(sys.argv[1]), np.int8)}})
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(n)]) for n in (1, 2)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.read_bytes() != OLD:
            with gs.open(path) as model:
                data = model.tensors["t"].data
                assert (data == data[0]).all()
                seen.add(int(data[0]))
        time.sleep(0.001)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen
    assert os.listdir(path.parent) == [path.name]


def test_long_and_odd_names(tmp_path):
    for name in "x" * 250, "ü" * 120, os.fsdecode(b"\xff" * 200), "line\nbreak":
        gs.write(tmp_path / name, {"a.b": 1})
        assert gs.open((tmp_path / name).read_bytes()).metadata["a.b"] == 1
    assert len(os.listdir(tmp_path)) == 4
    with replacement.replacing(str(tmp_path / ("x" * 250)), True, 0):
        (left,) = (name for name in os.listdir(tmp_path) if replacement.MARK in name)
    (tmp_path / left).write_bytes(b"left over")
    gs.write(tmp_path / ("x" * 249), {})  # not its leftover
    assert left in os.listdir(tmp_path)
    gs.write(tmp_path / ("x" * 250), {})
    assert left not in os.listdir(tmp_path)


# A name belongs to whoever has the file of that name locked.


def test_what_fails_is_removed_while_it_is_locked(path, monkeypatch):
    """Else another writer could take the name between the closing and the removing."""
    pytest.importorskip("fcntl", reason="this system has no such locks")
    original, seen = os.unlink, []

    def unlink(name):
        handle = os.open(name, os.O_RDWR)
        seen.append(lock(handle, alone=True))
        os.close(handle)
        original(name)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(ValueError, match="source"), replacement.replacing(str(path), True, 0):
        raise ValueError("source")
    assert seen == [False]
    assert_untouched(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no open file")
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_another_file_that_has_the_name_is_neither_removed_nor_renamed(path, fails, overwrite):
    target = path if overwrite else path.parent / "new.gguf"
    expected = (ValueError, "source") if fails else (FileNotFoundError, f"temporary file was removed: '{target}'$")

    def chunks():
        yield b"mine"
        (name,) = set(os.listdir(path.parent)) - {path.name}
        os.unlink(path.parent / name)
        (path.parent / name).write_bytes(b"another writer's")
        if fails:
            raise ValueError("source")

    with pytest.raises(expected[0], match=expected[1]):
        save(target, chunks(), overwrite=overwrite)
    assert path.read_bytes() == OLD
    (name,) = set(os.listdir(path.parent)) - {path.name}
    assert (path.parent / name).read_bytes() == b"another writer's"


# Editors.


def test_a_file_that_was_replaced_meanwhile_and_is_edited_now_is_not_replaced(path):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    with contextlib.ExitStack() as stack:

        def chunks():
            save(path, [b"another writer's"])
            stack.enter_context(journal.exclusive(str(path)))
            yield b"mine"

        with pytest.raises(BusyError, match="another process is editing"):
            save(path, chunks())
        assert path.read_bytes() == b"another writer's"
        assert os.listdir(path.parent) == [path.name]
    save(path, [b"new"])
    assert path.read_bytes() == b"new"


def test_a_file_that_is_replaced_while_it_is_locked_is_locked_again(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    original = fcntl.flock

    def flock(handle, operation):
        monkeypatch.setattr(fcntl, "flock", original)
        save(path, [b"another writer's"])
        return original(handle, operation)

    with replacement.replacing(str(path), True, 0):
        pass
    monkeypatch.setattr(fcntl, "flock", flock)
    with locking.unedited(str(path)), pytest.raises(BusyError), journal.exclusive(str(path)):
        pass
    assert path.read_bytes() == b"another writer's"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("write", ["write", "save", "set"])
def test_a_file_whose_edit_was_interrupted_is_not_replaced(path, is_there, write):
    """What mends the old file could take the new one for it."""
    record = path.parent / "model.gguf.journal"
    record.write_bytes(b"a record")
    if not is_there:
        path.unlink()
    before = set(os.listdir(path.parent))
    do = {
        "write": lambda: gs.write(path, {}, overwrite=is_there),
        "save": lambda: save(path, [b"new"]),
        "set": lambda: save_set({str(path.parent / "first"): [], str(path): []}),
    }[write]
    with pytest.raises(gs.GGUFError, match=rf"was interrupted: .* or remove {record}$"):
        do()
    assert set(os.listdir(path.parent)) == before
    record.unlink()
    do()


def test_a_file_whose_edit_is_interrupted_meanwhile_is_not_replaced(path):
    def chunks():
        (path.parent / "model.gguf.journal").write_bytes(b"a record")
        yield b"new"

    with pytest.raises(gs.GGUFError, match="was interrupted"):
        save(path, chunks())
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(path.parent)) == ["model.gguf", "model.gguf.journal"]


def test_the_names_of_records_are_those_of_the_journal(path):
    assert journal.journal_of(path) == f"{path}.journal" == f"{path}{JOURNAL}"
    assert journal.undo_of(path) == f"{path}.undo" == f"{path}{UNDO}"


def test_who_looks_for_leftovers_is_not_taken_for_an_editor(path):
    """A file may be locked for a moment when it has just got its name."""
    pytest.importorskip("fcntl", reason="this system has no such locks")
    handle = os.open(path, os.O_RDWR)
    assert lock(handle, alone=True)
    timer = threading.Timer(0.003, os.close, [handle])
    timer.start()
    save(path, [b"new"])
    timer.join()
    assert path.read_bytes() == b"new"


def test_permissions_of_new_files_are_those_that_the_process_gives(tmp_path, monkeypatch):
    """Which is asked for nowhere: asking changes it, for all threads."""
    old = os.umask(0o027)
    monkeypatch.setattr(os, "umask", None)
    try:
        save(tmp_path / "new", [b"new"])
    finally:
        monkeypatch.undo()
        os.umask(old)
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o640


def test_a_name_that_is_too_long_is_told_before_anything_is_written(tmp_path):
    chunks = iter([b"new"])
    with pytest.raises(OSError, match=rf"File name too long: '{tmp_path}/x+'$"):
        save(tmp_path / ("x" * 256), chunks)
    assert list(chunks) == [b"new"]


@pytest.mark.parametrize("number", [0, -1, 4])
def test_a_file_that_says_it_took_what_cannot_be_is_an_error(number):
    class Odd:
        def write(self, data):
            return number

    with pytest.raises(OSError, match=rf"took {number} of 3 bytes"):
        save(Odd(), [b"new"])


OLD_SET = {f"m-0000{number}-of-00003.gguf": f"old {number}".encode() for number in (1, 2, 3)}
NEW_SET = {name: data.replace(b"old", b"new") for name, data in OLD_SET.items()}


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """A set of files in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, data in OLD_SET.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def save_new_set():
    save_set({name: [bytes_piece("bytes", data)] for name, data in NEW_SET.items()})


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", OLD_SET)
@pytest.mark.parametrize("error", [PermissionError(errno.EPERM, "Operation not permitted"), KeyboardInterrupt()])
def test_a_set_that_cannot_be_replaced_is_as_it_was_or_has_no_first_file(shards, monkeypatch, name, error):
    """As it was where it is the last one, which is replaced first."""
    original = os.replace

    def replace(old, new):
        if os.path.basename(new) == name:
            raise error
        original(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(type(error)):
            save_new_set()
    first, *others = OLD_SET
    replaced = others[others.index(name) + 1 :] if name in others else others
    expected = {**OLD_SET, **{each: NEW_SET[each] for each in replaced}}
    if replaced:
        del expected[first]
    assert files(shards) == expected
    save_new_set()
    assert files(shards) == NEW_SET


def test_what_cannot_come_back_stays_under_its_other_name(shards, monkeypatch):
    """Until the next set is written there."""

    def fails(old, new):
        raise PermissionError(errno.EPERM, "Operation not permitted", old, None, new)

    original = os.replace
    with monkeypatch.context() as patched:
        patched.setattr(
            os, "replace", lambda old, new: original(old, new) if new.endswith("-old.tmp") else fails(old, new)
        )
        patched.setattr(os, "rename", fails)
        with pytest.raises(PermissionError):
            save_new_set()
    first, *others = OLD_SET
    kept = f".{first}.gguf_schema-old.tmp"
    assert files(shards) == {kept: OLD_SET[first], **{name: OLD_SET[name] for name in others}}
    save_new_set()
    assert files(shards) == NEW_SET


def test_a_file_of_a_set_that_cannot_be_replaced_is_named(shards, monkeypatch):
    def replace(old, new):
        if ".gguf_schema-0" in old:
            raise PermissionError(errno.EPERM, "Operation not permitted", old, None, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError, match=rf"Operation not permitted: '{shards}/m-00003-of-00003.gguf'$"):
        save_new_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_all_files_of_a_set_have_their_names(shards, monkeypatch, number):
    original = os.replace

    def end(number, frame):
        raise KeyboardInterrupt

    def replace(old, new):
        signal.raise_signal(number)
        original(old, new)

    old = signal.signal(number, end)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", replace)
            with pytest.raises(KeyboardInterrupt):
                save_new_set()
        assert files(shards) == NEW_SET
        assert signal.getsignal(number) is end
        signal.signal(number, signal.SIG_IGN)
        save_new_set()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, old)


def test_another_thread_takes_no_signals_over(shards):
    other = threading.Thread(target=save_new_set)
    other.start()
    other.join()
    assert files(shards) == NEW_SET


def test_writers_of_one_set_leave_the_set_of_one_of_them(shards):
    """Three at once, again and again: each has its names alone, and takes no other's file for a leftover."""
    pytest.importorskip("fcntl", reason="this system has no such locks")
    code = (
        "import sys; from gguf_schema.targets import bytes_piece, save_set\n"
        f"names = {list(OLD_SET)}\n"
        "for number in range(60):\n"
        "    save_set({name: [bytes_piece('bytes', f'{sys.argv[1]} {number}'.encode())] for name in names})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    found = files(shards)
    assert sorted(found) == list(OLD_SET)
    assert len(set(found.values())) == 1


def test_a_folder_that_stays_locked_is_told(shards, monkeypatch):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    monkeypatch.setattr(locking, "LONG", 0.02)
    with locking.naming_alone(str(shards)), pytest.raises(BusyError, match="has locked the folder"):
        save_new_set()
    assert files(shards) == OLD_SET
    new = {f"n-{name}": [bytes_piece("bytes", b"ab")] for name in OLD_SET}
    with locking.naming_alone(str(shards)):
        save_set(new, overwrite=False)
    assert set(files(shards)) == {*OLD_SET, *new}


def test_leftovers_beyond_names_that_are_free_are_removed(path):
    for number in 1, 3, 8:
        (path.parent / f".model.gguf.gguf_schema-{number}.tmp").write_bytes(b"left over")
    save(path, [b"new"])
    assert os.listdir(path.parent) == ["model.gguf"]


def test_two_sets_do_not_get_their_names_at_once(shards):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    with locking.naming_alone(str(shards)):
        other = threading.Thread(target=save_new_set)
        other.start()
        other.join(0.3)
        assert other.is_alive()
        assert {name: data for name, data in files(shards).items() if name.startswith("m-")} == OLD_SET
    other.join()
    assert files(shards) == NEW_SET
