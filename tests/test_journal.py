"""Changes in place: whole or not at all, told to who looks, undone; nothing lost where they fail."""

import contextlib
import copy
import errno
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_schema import journal
from gguf_schema.errors import GGUFError
from gguf_schema.journal import BusyError, Change, patching, record
from gguf_schema.targets import bytes_piece, replacing, save, save_pieces, save_set
from tests.killing import killed, restore

OLD = bytes(range(256)) * 40
NEW = OLD[:100] + b"new" + OLD[103:5000] + b"also new" + OLD[5008:]
CHANGES = [Change(100, OLD[100:103], b"new"), Change(5000, OLD[5000:5008], b"also new")]

posix = pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.gguf"
    path.write_bytes(OLD)
    return path


def the_record():
    return journal.in_place(len(OLD), [Change(0, OLD[:6000], NEW[:6000])])


def change(path, **options):
    with journal.exclusive(str(path)) as handle:
        journal.apply(str(path), handle, the_record(), **options)


def recover(path):
    with journal.exclusive(str(path)) as handle:
        return journal.recover(str(path), handle)


def no_rewrite(record, naming):
    raise AssertionError("a change in place is undone in place")


def undo(path):
    journal.undo(str(path), no_rewrite)


REWRITE = the_record()._replace(replaced=())


def rewrite(path, record=REWRITE):
    with journal.exclusive(str(path)) as handle:
        save_pieces(str(path), [bytes_piece("new", NEW)], naming=journal.keeping(str(path), handle, record))


def undo_rewrite(path):
    def back(record, naming):
        save_pieces(str(path), [bytes_piece("old", OLD)], naming=naming)

    journal.undo(str(path), back)


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def contents(path):
    return {name: (path.parent / name).read_bytes() for name in names(path)}


def change_to_old(path):
    """Leave the old file, and the record of a change that made it of the new one."""
    path.write_bytes(NEW)
    with journal.exclusive(str(path)) as handle:
        journal.apply(str(path), handle, record.reverse(the_record())._replace(is_undo=False))


def nameless(monkeypatch, name):
    """Let no file get this name."""
    original = os.replace

    def replace(old, new):
        if os.path.basename(new) == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        original(old, new)

    monkeypatch.setattr(os, "replace", replace)


def torn(path, data):
    """Leave the journal of a change that was killed, and these bytes."""
    path.write_bytes(data)
    record.write_durably(journal.journal_of(path), journal.to_bytes(the_record()), str(path))


def test_a_change_and_its_undoing(path):
    change(path)
    assert path.read_bytes() == NEW
    assert names(path) == ["file.gguf", "file.gguf.undo"]
    journal.undo(str(path), no_rewrite)
    assert path.read_bytes() == OLD
    assert names(path) == ["file.gguf"]
    with pytest.raises(GGUFError, match="there is nothing to undo"):
        journal.undo(str(path), no_rewrite)


def test_differences_are_as_few_as_is_worth_it():
    assert the_record().changes() == CHANGES
    assert record.differences(Change(7, b"", b"")) == record.differences(Change(7, b"same", b"same")) == []
    near = Change(7, b"a" + b"-" * 32 + b"a", b"b" + b"-" * 32 + b"b")
    assert record.differences(near) == [near]
    far = Change(7, b"a" + b"-" * 33 + b"a", b"b" + b"-" * 33 + b"b")
    assert record.differences(far) == [Change(7, b"a", b"b"), Change(41, b"a", b"b")]


def test_differences_of_large_windows():
    """Those at the borders of the pieces that are compared are one; and there are not too many, which take memory."""
    old = bytes(4 * record.PIECE)
    new = bytearray(old)
    new[record.PIECE - 5 : record.PIECE + 5] = b"x" * 10
    new[2 * record.PIECE] = new[-1] = 1
    assert [(change.start, len(change.old)) for change in record.differences(Change(0, old, bytes(new)))] == [
        (record.PIECE - 5, 10),
        (2 * record.PIECE, 1),
        (len(old) - 1, 1),
    ]
    new[:: record.NEAR + 2] = b"x" * len(new[:: record.NEAR + 2])
    assert len(record.differences(Change(0, old, bytes(new)))) == 1
    for apart in 1000, 1100:
        new = bytearray(old)
        new[::apart] = b"x" * len(new[::apart])
        changes = record.differences(Change(0, old, bytes(new)))
        assert len(changes) <= record.MOST_CHANGES
        for change in changes:
            assert change.new == new[change.start : change.start + len(change.old)]
        assert sum(change.new.count(b"x") for change in changes) == new.count(b"x")


def test_a_record_is_read_as_it_was_written(path):
    for one in the_record(), record.reverse(the_record()):
        path.write_bytes(journal.to_bytes(one))
        assert record.load(str(path)) == one
    assert record.reverse(record.reverse(the_record())) == the_record()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (OLD, False),
        (NEW, True),
        (NEW[:3000] + OLD[3000:], False),
        (OLD[:101] + NEW[101:5003] + OLD[5003:], False),
        (OLD[:3000] + NEW[3000:], False),
    ],
    ids=["untouched", "done", "between", "torn", "backwards"],
)
def test_an_interrupted_change_is_undone_unless_it_is_complete(path, data, told):
    torn(path, data)
    assert "was interrupted" in journal.trouble(path)
    assert recover(path) is told
    assert path.read_bytes() == (NEW if told else OLD)
    assert names(path) == (["file.gguf", "file.gguf.undo"] if told else ["file.gguf"])
    assert recover(path) is None
    assert journal.trouble(path) is None


@pytest.mark.parametrize(
    "data",
    [OLD[:50] + b"!" + OLD[51:], OLD[:101] + b"!" + OLD[102:], OLD + b"!", OLD[:-1], b""],
    ids=["beside", "within", "longer", "shorter", "empty"],
)
def test_a_file_that_others_changed_is_left_alone(path, data):
    torn(path, data)
    with pytest.raises(GGUFError, match="remove the journal"):
        recover(path)
    assert path.read_bytes() == data
    os.unlink(journal.journal_of(path))
    path.write_bytes(OLD)
    change(path)
    path.write_bytes(data)
    with pytest.raises(GGUFError, match="changed since its last edit"):
        journal.undo(str(path), no_rewrite)
    path.write_bytes(data)
    with pytest.raises(GGUFError, match="changed since the edit was planned"):
        change(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("is_patch", [True, False])
def test_a_file_whose_data_others_changed_is_not_put_back(path, is_patch):
    """Where the edit did not look: only the time of the file tells."""

    def edit():
        change(path) if is_patch else rewrite(path)
        return os.stat(path).st_mtime_ns

    undone = []

    def note(record, naming):
        undone.append(record)

    time = edit()
    data = NEW[:-1] + b"!"
    path.write_bytes(data)
    os.utime(path, ns=(time, time + 1_000_000))
    with pytest.raises(GGUFError, match=r"changed since its last edit.*if it was only copied or touched, `touch -r"):
        journal.undo(str(path), note)
    assert (path.read_bytes(), undone) == (data, [])
    path.write_bytes(OLD)
    edit()
    journal.undo(str(path), note)
    assert len(undone) == (not is_patch)


@pytest.mark.parametrize("is_patch", [True, False])
@pytest.mark.parametrize("data", [b"!" + NEW[1:], NEW[:5999] + b"!" + NEW[6000:], NEW + b"!", NEW[:-1], OLD, b""])
def test_a_file_that_others_changed_is_not_put_back_though_its_time_is_the_same(path, is_patch, data):
    """As on a file system that tells no fractions of a second: what the edit looked at tells, and the size."""
    change(path) if is_patch else rewrite(path)
    kept = os.stat(journal.undo_of(path)).st_mtime_ns
    path.write_bytes(data)
    os.utime(path, ns=(kept, kept))
    undone = []
    with pytest.raises(GGUFError, match="has changed since its last edit"):
        journal.undo(str(path), lambda *given: undone.append(given))
    assert (path.read_bytes(), undone) == (data, [])
    assert names(path) == ["file.gguf", "file.gguf.undo"]


@pytest.mark.parametrize("cut", [0, 10, 80, 200, -1])
def test_a_damaged_journal_is_refused(path, cut):
    torn(path, OLD)
    place = journal.journal_of(path)
    with open(place, "r+b") as file:
        file.truncate(os.path.getsize(place) + cut if cut < 0 else cut)
    with pytest.raises(GGUFError, match="is damaged"):
        recover(path)
    assert path.read_bytes() == OLD


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]\n",
        b"{}\n",
        b"[" * 100_000,
        b"\xff\n",
        b'{"parts": [5], "in_place": true, "before": 1, "after": 2}\n',
        b'{"parts": [[0, 5]], "in_place": false, "before": [5, [], ""], "after": [4, [], ""]}\n',
        b'{"parts": [[-5, 5]], "in_place": false, "before": [5, [], ""], "after": [5, [], ""]}\n',
        b'{"parts": [["0", "5"]], "in_place": false, "before": [5, [], ""], "after": [5, [], ""]}\n',
        b'{"parts": [[0, 5]], "in_place": false, "before": [5, [[0, 6]], ""], "after": [5, [], ""]}\n',
        b'{"parts": [[0, 5]], "in_place": false, "before": [5, [], ""], "after": [5, [[1, 2.0]], ""]}\n',
        b'{"parts": [5], "in_place": false, "before": [5, [], ""], "after": [5, [], ""]}\nabc',
        b'{"parts": [[0, 1], 1, -1, 1], "in_place": true, "before": [2, [], ""], "after": [2, [], ""]}\naA',
        b'{"parts": [true], "in_place": true, "before": [1, [], ""], "after": [1, [], ""]}\naA',
        b'{"parts": [1.0], "in_place": true, "before": [1, [], ""], "after": [1, [], ""]}\naA',
        b'{"parts": [[false, 1]], "in_place": false, "before": [1, [], ""], "after": [1, [], ""]}\n',
        b'{"parts": [[0, 1]], "in_place": false, "before": [true, [], ""], "after": [1, [], ""]}\n',
        b'{"parts": [], "in_place": false, "before": [0, [], ""], "after": [-1, [], ""]}\n',
        b'{"parts": [[0, 1, 2]], "in_place": false, "before": [1, [], ""], "after": [1, [], ""]}\n',
        b'{"parts": [1], "in_place": true, "before": [1, [], ""], "after": [2, [], ""]}\naA',
    ],
)
def test_a_record_that_is_none_is_refused(path, body):
    """The checksum is right: somebody made it up."""
    import hashlib

    data = record.FIRST_LINE.format(hashlib.sha256(body).hexdigest()).encode() + body
    (path.parent / "file.gguf.journal").write_bytes(data)
    with pytest.raises(GGUFError, match="is no record of a change"):
        recover(path)


def failing(monkeypatch, name, after, error):
    """Let a call to the system fail, but the first ones."""
    original, count = getattr(os, name), 0

    def call(*args, **kwargs):
        nonlocal count
        count += 1
        if count == after + 1:
            raise error
        return original(*args, **kwargs)

    monkeypatch.setattr(os, name, call)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize(
    ("name", "after"),
    [("write", 0), ("fsync", 0), ("replace", 0), ("write", 1), ("write", 2), ("fsync", 2), ("replace", 1)],
)
def test_where_it_fails_the_file_is_as_it_was(path, monkeypatch, name, after, error):
    with monkeypatch.context() as patched:
        failing(patched, name, after, error)
        with pytest.raises(type(error)):
            change(path)
    assert path.read_bytes() == OLD
    assert names(path) == ["file.gguf"]


def test_where_it_cannot_be_put_back_the_journal_stays(path, monkeypatch):
    """The disk goes away after the first change."""
    original, is_broken = os.write, False

    def write(handle, data):
        nonlocal is_broken
        if is_broken:
            raise OSError(errno.EIO, "Input/output error")
        is_broken = bytes(data) == b"new"
        return original(handle, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(OSError, match="Input/output"):
            change(path)
    assert path.read_bytes() == OLD[:100] + b"new" + OLD[103:]
    assert recover(path) is False
    assert path.read_bytes() == OLD


ONLY_READ = ("_demand_places", "_is_ours", "_is", "_is_between")

open_files = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of what was interrupted


def interrupted(action, first, second=0):
    """Do something that an interrupt ends before an instruction of the module, and perhaps another one behind a call
    to the system that follows; whether there were so many instructions."""
    count = calls = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename != patching.__file__ or frame.f_code.co_name in ONLY_READ:
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        if event == "opcode" and count == first:
            raise KeyboardInterrupt
        return trace

    def behind(original):
        def call(*args, **kwargs):
            nonlocal calls
            done = original(*args, **kwargs)
            calls += count >= first
            if count >= first and calls == second:
                raise KeyboardInterrupt
            return done

        return call

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: None)
        for name in ("write", "fsync", "utime", "replace", "unlink"):
            patched.setattr(os, name, behind(getattr(os, name)))
        old = sys.gettrace()
        sys.settrace(trace)
        try:
            action()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(old)
    return False


@open_files
@pytest.mark.parametrize("second", [0, 1, 3])
def test_an_interrupt_between_any_two_instructions_leaves_what_can_be_mended(path, second):
    """And so does another one while the first one is answered."""
    ends = Counter()
    for first in itertools.count(1):
        restore(path.parent, {"file.gguf": OLD})
        if not interrupted(lambda: change(path), first, second):
            break
        if not os.path.exists(journal.journal_of(path)):
            assert path.read_bytes() == (NEW if os.path.exists(journal.undo_of(path)) else OLD)
        recover(path)
        ends[path.read_bytes()] += 1
        if path.read_bytes() == NEW:
            undo(path)
            assert path.read_bytes() == OLD
    assert set(ends) == {OLD, NEW}


@open_files
@pytest.mark.parametrize("second", [0, 1, 3])
def test_an_undoing_that_was_interrupted_between_any_two_instructions_can_be_done_again(path, second):
    change(path)
    kept = contents(path)
    ends = Counter()
    for first in itertools.count(1):
        restore(path.parent, kept)
        if not interrupted(lambda: undo(path), first, second):
            break
        ends[path.read_bytes()] += 1
        if len(names(path)) > 1:
            undo(path)
        assert path.read_bytes() == OLD
        assert names(path) == ["file.gguf"]
    assert ends[OLD] > 0 < ends[NEW]


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize(
    ("name", "after"), [("write", 0), ("fsync", 0), ("fsync", 1), ("fsync", 2), ("unlink", 0), ("unlink", 1)]
)
def test_an_undoing_that_failed_can_be_done_again(path, monkeypatch, name, after, error):
    change(path)
    with monkeypatch.context() as patched:
        failing(patched, name, after, error)
        with contextlib.suppress(type(error)):
            undo(path)
    assert path.read_bytes() in (OLD, NEW)
    if len(names(path)) > 1:
        undo(path)
    assert path.read_bytes() == OLD
    assert names(path) == ["file.gguf"]


SPOILT = st.sampled_from([-(2**70), -1, 0, 8, 100, len(OLD), 2**70, True, None, 1.5, "a", [], {}, [0, 8], [8, -8]])


@given(st.data())
def test_nothing_but_errors_of_ours_come_from_a_journal_that_somebody_made_up(tmp_path_factory, data):
    """Its checksum is right, and its fields are those of a sound one, but for one or two."""
    path = tmp_path_factory.mktemp("spoilt") / "file.gguf"
    path.write_bytes(OLD)
    line, _, payload = journal.to_bytes(the_record()).partition(b"\n")[2].partition(b"\n")
    fields = json.loads(line)
    for _ in range(data.draw(st.integers(1, 2))):
        place = fields
        key = data.draw(st.sampled_from(sorted(place)))
        while isinstance(place[key], list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            key = data.draw(st.integers(0, len(place) - 1))
        place[key] = copy.deepcopy(data.draw(SPOILT))  # the next turn may spoil what is in it
    body = json.dumps(fields).encode() + b"\n" + payload
    first = record.FIRST_LINE.format(hashlib.sha256(body).hexdigest()).encode()
    for place in journal.journal_of(path), journal.undo_of(path):
        with open(place, "wb") as file:
            file.write(first + body)
        os.utime(place, ns=(0, os.stat(path).st_mtime_ns))
    assert "was interrupted" in journal.trouble(path)
    for mend in recover, undo:
        with contextlib.suppress(GGUFError, OSError):
            mend(path)
        if os.path.exists(journal.journal_of(path)):
            os.unlink(journal.journal_of(path))
    assert path.read_bytes() in (OLD, NEW)


# A new file in the place of the old one.


def test_a_rewrite_and_its_undoing(path):
    rewrite(path)
    assert path.read_bytes() == NEW
    assert names(path) == ["file.gguf", "file.gguf.undo"]
    assert os.stat(journal.undo_of(path)).st_mtime_ns == os.stat(path).st_mtime_ns
    undo_rewrite(path)
    assert path.read_bytes() == OLD
    assert names(path) == ["file.gguf"]
    change(path)
    rewrite(path, None)
    assert names(path) == ["file.gguf"]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_cannot_get_its_name_leaves_the_old_file(path, monkeypatch, is_first):
    """An edit that is told as failed has not happened, and what was done before can be undone."""
    if not is_first:
        change_to_old(path)
    before = contents(path)
    with monkeypatch.context() as patched:
        nameless(patched, "file.gguf")
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            rewrite(path)
    assert contents(path) == before
    if not is_first:
        undo(path)
        assert path.read_bytes() == NEW


@pytest.mark.parametrize("is_first", [True, False])
def test_a_rewrite_whose_record_cannot_get_its_name_is_done(path, monkeypatch, is_first):
    """It cannot be undone, and no other record says that it can."""
    if not is_first:
        rewrite(path)
        path.write_bytes(OLD)
    before = names(path)
    with monkeypatch.context() as patched:
        nameless(patched, "file.gguf.undo")
        rewrite(path)
    assert (path.read_bytes(), names(path)) == (NEW, before)
    with pytest.raises(GGUFError, match="there is nothing to undo" if is_first else "it has another time than"):
        undo_rewrite(path)


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize("is_undone", [True, False])
def test_a_change_that_failed_leaves_the_one_before_to_be_undone(path, monkeypatch, error, is_undone):
    change_to_old(path)
    if not is_undone:
        os.utime(path, ns=(0, 0))
    before = contents(path)
    with monkeypatch.context() as patched:
        failing(patched, "write", 1, error)
        with pytest.raises(type(error)):
            change(path)
    assert contents(path) == before
    if is_undone:
        undo(path)
        assert path.read_bytes() == NEW
    else:
        with pytest.raises(GGUFError, match="it has another time than"):
            undo(path)


@posix
@pytest.mark.parametrize(
    ("action", "place", "name"),
    [
        (rewrite, os, "fsync"),
        (lambda path: rewrite(path, None), os, "fsync"),
        (undo_rewrite, os, "fsync"),
        (change, journal.patching, "_is"),
    ],
)
def test_what_others_put_in_the_place_of_a_file_stays(path, monkeypatch, action, place, name):
    """Who puts a file there by renaming asks for no lock; of long work there is time enough for it."""
    if action is undo_rewrite:
        rewrite(path)
    original = getattr(place, name)

    def call(*args):
        (path.parent / "download").write_bytes(b"a download")
        os.rename(path.parent / "download", path)
        monkeypatch.setattr(place, name, original)
        return original(*args)

    monkeypatch.setattr(place, name, call)
    before = names(path)
    with pytest.raises(BusyError, match="just replaced"):
        action(path)
    assert (path.read_bytes(), names(path)) == (b"a download", before)


@posix
@pytest.mark.parametrize("action", [rewrite, lambda path: rewrite(path, None), undo_rewrite])
def test_nobody_edits_a_new_file_before_its_record_stands(path, monkeypatch, action):
    """From the moment when it has its name."""
    rewrite(path)
    if action is not undo_rewrite:
        path.write_bytes(OLD)
    stood = []

    def noting(original):
        def call(*args):
            original(*args)
            is_new = os.stat(path).st_ino != old
            if is_new and args[-1] in (str(path), journal.undo_of(path)):
                with pytest.raises(BusyError), journal.exclusive(str(path)):
                    pass
                stood.append(names(path))

        return call

    old = os.stat(path).st_ino
    monkeypatch.setattr(os, "replace", noting(os.replace))
    monkeypatch.setattr(os, "unlink", noting(os.unlink))
    action(path)
    last = ["file.gguf", "file.gguf.undo"] if action is rewrite else ["file.gguf"]
    assert stood[-1] == last == names(path)


@posix
def test_a_rewrite_that_was_killed_anywhere_is_undone_or_told(path):
    ends = Counter()
    for last in itertools.count(1):
        restore(path.parent, {"file.gguf": OLD})
        if killed(lambda: rewrite(path), last)[1]:
            break
        found = path.read_bytes()
        assert found in (OLD, NEW)
        told = ""
        try:
            undo_rewrite(path)
        except GGUFError as error:
            told = str(error)
        assert path.read_bytes() == (found if told else OLD)
        assert told.startswith(("there is nothing to undo", "the file has changed since")) or (
            found == NEW and not told
        )
        ends[bool(told), found] += 1
    assert ends[False, NEW] > 0 < ends[True, OLD]
    assert 0 < ends[True, NEW] < 10


@pytest.mark.parametrize("action", [change, rewrite])
def test_a_name_that_is_too_long_for_a_record_is_told_first(path, action):
    long = path.with_name("x" * 248)
    path.rename(long)
    with pytest.raises(
        GGUFError, match=f"{long}.journal, which a change in place needs, cannot be made: File name too"
    ):
        action(long)
    assert (long.read_bytes(), names(long)) == (OLD, [long.name])


@pytest.mark.parametrize("action", [(change, undo), (rewrite, undo_rewrite)])
def test_a_name_is_as_long_as_that_of_a_record_lets_it(path, action):
    long = path.with_name("x" * 247)
    path.rename(long)
    do, back = action
    do(long)
    assert (long.read_bytes(), names(long)) == (NEW, [long.name, f"{long.name}.undo"])
    back(long)
    assert (long.read_bytes(), names(long)) == (OLD, [long.name])


@posix
def test_the_second_editor_is_told(path):
    code = (
        "import sys; from gguf_schema import journal\n"
        "with journal.exclusive(sys.argv[1]): print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(BusyError, match="another process is editing"):
            change(path)
        assert journal.trouble(path) is None
        record.write_durably(journal.journal_of(path), b"", str(path))
        assert "just being edited" in journal.trouble(path)
        other.send_signal(signal.SIGKILL)
    assert "was interrupted" in journal.trouble(path)


@posix
def test_what_is_edited_is_not_replaced_and_what_is_replaced_not_edited(path):
    """Several may replace it at once: the last one wins, with a whole file."""
    with journal.exclusive(str(path)):
        with pytest.raises(BusyError, match=f"another process is editing {path}: it is not replaced"):
            save(path, [NEW])
        with pytest.raises(BusyError):
            save_set({str(path): [bytes_piece("new", NEW)]})
    assert (path.read_bytes(), names(path)) == (OLD, ["file.gguf"])

    def chunks():
        save(path, [b"first"])
        with replacing(str(path), True, 0) as other:
            other.write(b"second")
            with pytest.raises(BusyError), journal.exclusive(str(path)):
                pass
        yield NEW

    save(path, chunks())
    assert (path.read_bytes(), names(path)) == (NEW, ["file.gguf"])
    change_back = journal.in_place(len(NEW), [Change(0, NEW[:6000], OLD[:6000])])
    with journal.exclusive(str(path)) as handle:
        journal.apply(str(path), handle, change_back)
    assert path.read_bytes() == OLD


@posix
def test_a_file_that_was_replaced_is_not_taken_for_it(path, monkeypatch):
    original = os.open

    def replaced(name, *args, **kwargs):
        handle = original(name, *args, **kwargs)
        if name == str(path):
            other = path.with_suffix(".new")
            other.write_bytes(OLD)
            os.rename(other, path)
        return handle

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(BusyError, match="just replaced"):
        change(path)


@posix
def test_links_lead_to_the_file(path, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "link.gguf"
    link.symlink_to(path)
    assert journal.journal_of(link) == str(path) + ".journal"
    torn(path, OLD)
    assert "was interrupted" in journal.trouble(link)


@posix
def test_the_records_are_no_more_readable_than_the_file(path):
    path.chmod(0o600)
    change(path)
    assert os.stat(journal.undo_of(path)).st_mode & 0o777 == 0o600


# An undoing that is interrupted.


@posix
def test_an_undoing_that_was_killed_anywhere_is_never_turned_round(path):
    """Undone again, or mended, the file is the old one or, mended, the one that can still be undone."""
    change(path)
    kept = contents(path)
    calls, _ = killed(lambda: undo(path))
    ends = Counter()
    for last in range(1, len(calls)):
        for is_torn in (False, True):
            for is_mended in (False, True):
                restore(path.parent, kept)
                killed(lambda: undo(path), last, is_torn)
                if is_mended:
                    found = recover(path)
                    assert path.read_bytes() == (NEW if found else OLD) or found is None
                if os.path.exists(journal.undo_of(path)) or os.path.exists(journal.journal_of(path)):
                    undo(path)
                    ends["again"] += 1
                else:
                    with pytest.raises(GGUFError, match="there is nothing to undo"):
                        undo(path)
                    ends["undone"] += 1
                assert path.read_bytes() == OLD
                assert names(path) == ["file.gguf"]
    assert ends["undone"] > 0 < ends["again"]


def test_an_undoing_of_an_interrupted_change_undoes_no_earlier_one(path):
    change(path)
    later = journal.in_place(len(NEW), [Change(200, NEW[200:204], b"more")])
    record.write_durably(journal.journal_of(path), journal.to_bytes(later), str(path))
    path.write_bytes(NEW[:200] + b"mo" + NEW[202:])
    undo(path)
    assert path.read_bytes() == NEW


# What is no record.


@pytest.mark.parametrize("make", ["notes", "folder"])
def test_what_is_no_record_is_not_overwritten(path, make):
    place = path.with_name("file.gguf.undo")
    place.write_text("my notes") if make == "notes" else place.mkdir()
    with pytest.raises(GGUFError, match="is not overwritten"):
        change(path)
    with pytest.raises(GGUFError, match="is not overwritten"):
        rewrite(path)
    assert path.read_bytes() == OLD
    assert names(path) == ["file.gguf", "file.gguf.undo"]


def test_a_record_that_lacks_bytes_is_none(path):
    body = journal.to_bytes(the_record()).partition(b"\n")[2][:-1]
    first = record.FIRST_LINE.format(hashlib.sha256(body).hexdigest()).encode()
    path.with_name("file.gguf.journal").write_bytes(first + body)
    with pytest.raises(GGUFError, match="is no record of a change"):
        recover(path)
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("name", ["journal", "undo"])
def test_what_is_larger_than_any_record_is_not_read(path, name):
    place = path.with_name(f"file.gguf.{name}")
    place.write_bytes(record.START)
    os.truncate(place, record.LARGEST + 1)
    os.utime(place, ns=(0, os.stat(path).st_mtime_ns))
    tracemalloc.start()
    with pytest.raises(GGUFError, match=r"is damaged, or no record"):
        undo(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_record_that_could_not_be_read_again_stops_the_change(path, monkeypatch):
    monkeypatch.setattr(record, "LARGEST", 100)
    for action in change, rewrite:
        with pytest.raises(GGUFError, match="the record of the change would be of"):
            action(path)
    assert (path.read_bytes(), names(path)) == (OLD, ["file.gguf"])


def test_a_record_that_lets_all_of_a_large_file_be_read_is_none(path):
    size = record.LARGEST + 1
    known = journal.Identity(size, (journal.Span(0, size),), "")
    os.truncate(path, size)
    path.with_name("file.gguf.undo").write_bytes(
        journal.to_bytes(journal.Record(known, known, (journal.Span(0, size),)))
    )
    with pytest.raises(GGUFError, match="is no record of a change"):
        undo(path)


@pytest.mark.parametrize(
    ("size", "parts", "checked"),
    [
        (2 * len(OLD), [[0, len(OLD)]] * 2, []),
        (len(OLD), [[0, 0]] * record.MOST_PARTS + [[0, len(OLD)]], []),
        (len(OLD), [[0, len(OLD)]], [[0, 0]] * (record.LARGEST_LINE // 5)),
    ],
    ids=["what there is twice", "very many parts", "very many ranges"],
)
def test_a_small_record_of_something_large_is_none(path, size, parts, checked):
    fields = {
        "before": [size, [], ""],
        "after": [len(OLD), checked, hashlib.sha256(b"").hexdigest()],
        "parts": parts,
        "in_place": False,
        "undo": False,
    }
    body = json.dumps(fields).encode() + b"\n"
    place = path.with_name("file.gguf.undo")
    place.write_bytes(record.FIRST_LINE.format(hashlib.sha256(body).hexdigest()).encode() + body)
    os.utime(place, ns=(0, os.stat(path).st_mtime_ns))
    with pytest.raises(GGUFError, match="no record of a change"):
        undo_rewrite(path)
    assert path.read_bytes() == OLD


@posix
@pytest.mark.parametrize("name", ["journal", "undo"])
def test_nobody_waits_for_a_pipe(path, name):
    os.mkfifo(path.with_name(f"file.gguf.{name}"))
    with pytest.raises(GGUFError, match="is no file"):
        undo(path)
