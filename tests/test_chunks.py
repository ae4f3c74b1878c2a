"""Long runs in chunks: what is kept is whole or tried again, and what dies ends the run, not what was done."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tools import chunks
from tools.fuzzing import mutants

PROJECT = Path(__file__).parents[1]
SIZE = 10
RECORD = {"tried": 3}
HASHES = [chunks.hash_of(data) for data in (b"a", b"b", b"a")]


def path_of(folder, start, series="a"):
    return chunks.path_of(folder, series, start, SIZE)


def keep(folder, start, series="a"):
    path = path_of(folder, start, series)
    chunks.keep(path, RECORD, HASHES)
    return path


def work(folder, start):
    """Keep a chunk; but some end otherwise."""
    if start == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    if start == 20:
        raise KeyboardInterrupt
    if start == 30:
        time.sleep(1)
    keep(folder, start)


def run(folder, starts, jobs=2):
    shown = []
    done = lambda start: chunks.kept(path_of(folder, start)) is not None  # noqa: E731
    chunks.run(partial(work, folder), done, starts, jobs, lambda *counts: shown.append(counts))
    return shown


# What is kept.


def test_what_is_kept_is_there_again(tmp_path):
    kept = chunks.kept(keep(tmp_path, 0))
    assert (kept.record, kept.made_by) == (RECORD, chunks.MADE_BY)
    assert sorted(kept.hashes.tobytes()[at : at + 8] for at in (0, 8)) == sorted(HASHES[:2])
    assert chunks.kept(path_of(tmp_path, 10)) is None


@pytest.mark.parametrize("cut", [0, 1, 64, 65, 70, 120, -16, -8, -1])
def test_what_is_cut_short_is_damaged(cut, tmp_path):
    path = keep(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:cut])
    assert chunks.kept(path) is None
    assert chunks.found(tmp_path, "a", SIZE) == ({}, [path.name])


def test_what_is_edited_copied_or_another_s_is_damaged(tmp_path):
    path = keep(tmp_path, 0)
    data = path.read_bytes()
    path_of(tmp_path, 10).write_bytes(data)
    path_of(tmp_path, 20).write_bytes(data.replace(b'"tried": 3', b'"tried": 4'))
    path_of(tmp_path, 30).write_bytes(b"{}")
    found = chunks.found(tmp_path, "a", SIZE)
    assert list(found.kept) == [("a", 0)]
    assert len(found.damaged) == 3
    assert chunks.described(found, SIZE)[-1].startswith("damaged, not counted: a-000000010-000000020.chunk")


def test_only_chunks_of_a_series_and_a_size_count(tmp_path):
    for start, series in ((0, "a"), (10, "a"), (30, "a"), (0, "b"), (0, "a-1")):
        keep(tmp_path, start, series)
    keep(tmp_path, 5)
    chunks.keep(chunks.path_of(tmp_path, "a", 0, 20), RECORD, HASHES)
    (tmp_path / "a-000000040-000000050.json").write_text("{}")
    found = chunks.found(tmp_path, "a", SIZE)
    assert list(found.kept) == [("a", 0), ("a", 10), ("a", 30)]
    assert chunks.distinct(found) == 2
    assert chunks.described(found, SIZE) == ["a: 0 to 19, 30 to 39"]


def test_nothing_is_distinct_in_nothing(tmp_path):
    found = chunks.found(tmp_path, "a", SIZE)
    assert chunks.distinct(found) == 0
    assert chunks.described(found, SIZE) == []


def test_chunks_of_another_version_are_told(tmp_path, monkeypatch):
    keep(tmp_path, 0)
    monkeypatch.setattr(chunks, "MADE_BY", "another")
    keep(tmp_path, 10)
    told = chunks.described(chunks.found(tmp_path, "a", SIZE), SIZE)
    assert told[1] == "1 of 2 chunks were made by another version of the package or the tools"


def test_the_source_tells_the_version(tmp_path, monkeypatch):
    for name in ("gguf_schema", "tools"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(chunks, "ROOT", tmp_path)
    versions = {chunks._made_by()}
    for place, text in (("gguf_schema/a.py", "1"), ("gguf_schema/a.py", "2"), ("tools/a.py", "2")):
        (tmp_path / place).write_text(text)
        versions.add(chunks._made_by())
    assert len(versions) == 4


# Who tries them.


def test_a_run_does_what_is_left(tmp_path):
    keep(tmp_path, 0)
    assert run(tmp_path, [0, 50, 60]) == [(2, 3), (3, 3)]
    assert run(tmp_path, [0, 50, 60]) == []


@pytest.mark.parametrize(("start", "status"), [(10, "SIGKILL"), (20, "status 1")])
def test_a_process_that_dies_ends_the_run(start, status, tmp_path, capfd):
    with pytest.raises(chunks.WorkerError, match=f"from {start} on ended with {status}"):
        run(tmp_path, [0, start, 30, 50, 60])
    kept = [start for _, start in chunks.found(tmp_path, "a", SIZE).kept]
    assert kept[0] == 0
    assert 60 not in kept
    assert run(tmp_path, [0, 30, 50]) == [(done, 3) for done in range(len({*kept} & {0, 30, 50}) + 1, 4)]


def started(*arguments):
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(pid):
    """The processes that a process has started, and theirs."""
    found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [inner for one in found for inner in children(one)]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True)])
def test_a_run_that_is_ended_leaves_nothing(number, to_all, tmp_path):
    """As `kill` ends it, and as who presses Ctrl-C at a terminal, which interrupts all processes of the run."""
    process = started("tools/fuzz.py", "mutants", "--bases", "100", "--jobs", "2", "--folder", str(tmp_path))
    wait_for(lambda: len(children(process.pid)) >= 2)
    time.sleep(1)
    begun = children(process.pid)
    (os.killpg if to_all else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert "Traceback" not in errors
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in begun))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_run_says_what_died_and_the_next_goes_on(tmp_path):
    arguments = ("tools/fuzz.py", "mutants", "--bases", "50", "--each", "4", "--folder", str(tmp_path))
    process = started(*arguments)
    wait_for(lambda: mutants.path_of(tmp_path, 4, 0).exists())
    first = mutants.path_of(tmp_path, 4, 0).stat().st_mtime_ns

    def at_work():
        found = [pid for pid in children(process.pid) if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
        return found[0] if found else None

    wait_for(lambda: at_work() or mutants.path_of(tmp_path, 4, 25).exists())
    if (pid := at_work()) is not None:
        os.kill(pid, signal.SIGKILL)
    told, errors = process.communicate(timeout=60)
    assert process.returncode == 3, (told, errors)
    assert "ended with SIGKILL; the next run goes on from here" in errors
    assert "100 mutants of 25 bases" in told
    again = subprocess.run([sys.executable, *arguments], cwd=PROJECT, capture_output=True, text=True)
    assert again.returncode == 0
    assert "200 mutants of 50 bases" in again.stdout
    assert mutants.path_of(tmp_path, 4, 0).stat().st_mtime_ns == first
