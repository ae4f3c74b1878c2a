"""The fuzzing of our own reader: it sees what goes wrong, sums over runs, and finds nothing in a short one."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.demo import demo_model
from gguf_schema.generate import valid_file
from gguf_schema.mutate import Label, mutant
from gguf_schema.validate import Fault, check
from tools import chunks
from tools.fuzzing import exercise, generated, mutants
from tools.fuzzing.exercise import WrongError, agrees, described, escape, exercise_all, watched
from tools.fuzzing.planted import FAULTS, copy_of

EACH = 8
"""Mutants of each base."""

PROJECT = Path(__file__).parents[1]


def run(*arguments):
    """The loop, as somebody at a terminal runs it."""
    return subprocess.run([sys.executable, "tools/fuzz.py", *arguments], cwd=PROJECT, capture_output=True, text=True)


# What is seen.


def test_a_good_file_passes():
    assert {fault.severity for fault in exercise_all(demo_model())} <= {"note"}
    assert exercise_all(b"")[0].code == "not-gguf"


def test_an_escape_is_seen(monkeypatch):
    monkeypatch.setattr(gs.file, "errors", lambda parsed: {}["key"])
    problem, _ = escape(exercise_all, demo_model())
    assert problem.startswith("KeyError in file.py:")


def test_bytes_that_are_not_built_again_are_seen(monkeypatch):
    monkeypatch.setattr(type(gs.GGUF), "build", lambda self, parsed: demo_model()[:-1])
    with pytest.raises(WrongError, match="other bytes"):
        exercise.exercise(demo_model())


def test_a_reader_and_a_validator_that_differ_are_seen(monkeypatch):
    monkeypatch.setattr(exercise, "check", lambda data: [])
    with pytest.raises(WrongError, match="open refuses what check takes"):
        exercise.exercise(b"GGUF")


def test_a_gap_in_the_map_is_seen(monkeypatch):
    whole = exercise.entries
    monkeypatch.setattr(
        exercise, "entries", lambda model, enter: [e for e in whole(model, enter) if e.path != "version"]
    )
    with pytest.raises(WrongError, match="gap"):
        exercise_all(demo_model())


def test_another_model_is_seen(monkeypatch):
    monkeypatch.setattr(gs, "write", lambda target, *args, **more: target.write(valid_file(3)))
    with pytest.raises(WrongError, match="another one"):
        exercise_all(demo_model())


def spin(seconds):
    """Work for so many seconds of the processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        try:
            sum(range(1000))
        except Exception:
            pytest.fail("nobody may catch it")


def test_what_is_slow_or_stuck_is_seen(monkeypatch):
    monkeypatch.setattr(exercise, "SLOW", 0.01)
    assert escape(spin, 0.02)[0].startswith("hang")
    monkeypatch.setattr(exercise, "STUCK", 0.05)
    numbers = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    with watched() as restart:
        restart()
        assert escape(spin, 10)[0].startswith("hang, Stuck")
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_who_only_waits_does_not_hang(monkeypatch):
    """The machine is busy, or the process was stopped: that is nobody's fault, and no finding."""
    monkeypatch.setattr(exercise, "SLOW", 0.05)
    monkeypatch.setattr(exercise, "STUCK", 0.1)
    with watched() as restart:
        restart()
        assert escape(time.sleep, 0.3) == ("", None)
        monkeypatch.setattr(exercise, "STALLED", 0.2)
        restart()
        with pytest.raises(exercise.Stalled):
            escape(time.sleep, 10)


def test_a_label_and_a_validator_that_differ_are_seen():
    found = check(b"GGUF")
    rule = found[0].code
    assert agrees(Label("", "x", rule, "reject"), found)
    assert agrees(Label("", "x", None, "unknown"), found)
    assert not agrees(Label("", "x", None, "accept"), found)
    assert not agrees(Label("", "x", "key-twice", "reject"), found)


@pytest.mark.parametrize(
    ("fault", "changed", "is_possible"),
    [
        ("metadata_kv[1].key.len", "metadata_kv[1].key.string", True),
        ("metadata_kv[2].key.len", "metadata_kv[1].value", True),
        ("metadata_kv[1].key.len", "metadata_kv[2].value", False),
        ("metadata_kv[9].key.len", "tensor_infos[0].type", False),
        ("tensor_infos[0].offset", "tensor_infos[1].type", False),
        ("tensor_infos[0].offset", "tensor_data[1].padding", True),
        ("tensor_data", "tensor_infos[1].type", True),
        ("metadata_kv_count", "metadata_kv[3].value", True),
        ("metadata_kv", "metadata_kv[3].key.string", True),
        ("version", "", True),
    ],
)
def test_a_fault_comes_of_what_stands_before_it(fault, changed, is_possible):
    found = [Fault("a", "error", fault, 0, 1, "m")]
    assert agrees(Label(changed, "x", "a", "unknown"), found) is is_possible


def test_the_same_fault_has_one_name():
    def names():
        for data in (b"a", b"b"):
            try:
                raise ValueError(data)
            except ValueError as error:
                yield described(error)

    assert set(names()) == {"ValueError"}


# What is counted.


def test_a_run_goes_on_where_one_stopped(tmp_path):
    mutants.run(tmp_path, 0, 25, EACH, 1, lambda done, whole: None)
    first = mutants.total(tmp_path, EACH)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    shown = []
    mutants.run(tmp_path, 0, 50, EACH, 1, lambda done, whole: shown.append((done, whole)))
    both = mutants.total(tmp_path, EACH)
    assert shown == [(2, 2)]
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert (first.mutants, both.mutants) == (200, 400)
    assert (first.bases, both.bases) == (25, 50)
    assert first.distinct < both.distinct <= 400
    assert both.deep == 14
    assert sum(both.cells.values()) == sum(both.expected.values()) == 400
    assert both.wrong == 0, both.findings


def test_doubles_count_once(tmp_path):
    mutants.run(tmp_path, 0, 25, EACH, 1, lambda done, whole: None)
    once = mutants.total(tmp_path, EACH)
    record, hashes, _ = chunks.kept(mutants.path_of(tmp_path, EACH, 0))
    chunks.keep(mutants.path_of(tmp_path, EACH, 25), record, [one.tobytes() for one in hashes])
    twice = mutants.total(tmp_path, EACH)
    assert (twice.mutants, twice.distinct) == (2 * once.mutants, once.distinct)


def test_what_went_wrong_is_told(tmp_path):
    wrong = [[7, 3, ["version", "version+1", None, "reject"], "KeyError in x\x1b"]]
    record = {"mutants": 200, "deep": 1, "expected": {}, "cells": {}, "findings": wrong, "wrong": 1}
    chunks.keep(mutants.path_of(tmp_path, EACH, 0), record, [])
    told = run("mutants", "--bases", "25", "--each", str(EACH), "--folder", str(tmp_path))
    assert told.returncode == 1
    assert "1 went wrong" in told.stdout
    assert "KeyError in x?: base 7, mutant 3, version+1 at version" in told.stdout


@pytest.mark.parametrize("name", ["planned", "mutant"])
def test_what_goes_wrong_before_there_is_a_mutant_is_told(name, monkeypatch):
    monkeypatch.setattr(exercise, "STUCK", 0.25)  # more than a plan takes, also where others work, too
    monkeypatch.setattr(mutants, name, lambda *arguments: spin(10))
    made, hashes = mutants.chunk(1, 0)
    assert (made.mutants, made.wrong, hashes) == (0, 25, [])
    assert all("hang, Stuck" in finding[3] for finding in made.findings)


def test_cells_that_stay_empty_are_told(tmp_path):
    """A field that has a tail is rare: of few mutants none is one of it."""
    mutants.run(tmp_path, 0, 25, EACH, 1, lambda done, whole: None)
    found = mutants.total(tmp_path, EACH)
    assert "tail truncate-middle" in found.empty
    assert not set(found.empty) & found.cells.keys()
    assert "never: " in mutants.text(found)


def test_one_mutant_is_made_again():
    told = run("one", "3", "5")
    assert told.returncode == 0
    assert told.stdout.startswith("Label(path=")


def test_files_by_hypothesis():
    found = generated.run(40, 1, lambda done, whole: None)
    assert found.files == 40
    assert found.wrong == {}
    assert sum(found.verdicts.values()) == 40
    assert run("hypothesis", "--count", "3").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    ["hypothesis --count 0", "mutants --first -1", "mutants --bases 0", "mutants --jobs 0", "one -1 3", "one 3 -1"],
)
def test_arguments_that_make_no_sense(arguments):
    told = run(*arguments.split())
    assert (told.returncode, told.stdout) == (2, "")
    assert "usage:" in told.stderr


def test_nobody_needs_to_read():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "tools/fuzz.py", "one", "3", "5"]
    told = subprocess.run(command, cwd=PROJECT, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (told.returncode, told.stderr) == (141, "")


# Led by what code a file reaches.


def atheris(tmp_path, seconds, root=PROJECT):
    pytest.importorskip("atheris", reason="could not import atheris: pip install '.[atheris]'")
    arguments = [sys.executable, "tools/fuzz.py", "atheris", "--time", str(seconds), "--folder", str(tmp_path)]
    return subprocess.run(arguments, cwd=root, capture_output=True, text=True)


def test_a_short_run_of_atheris_finds_nothing(tmp_path):
    told = atheris(tmp_path, 20)
    assert told.returncode == 0, told.stderr[-3000:]
    assert int(re.search(r"Done (\d+) runs", told.stderr)[1]) > 20
    assert list((tmp_path / "corpus").iterdir())
    assert not list((tmp_path / "findings").iterdir())


def test_a_fault_is_found_by_atheris(tmp_path):
    fault = next(fault for fault in FAULTS if fault.module == "constructs/numbers.py")
    with copy_of(fault) as root:
        told = atheris(tmp_path, 60, root)
    assert told.returncode != 0
    assert "build makes other bytes than were parsed" in told.stdout
    assert list((tmp_path / "findings").iterdir())


def test_a_tensor_whose_size_nobody_knows_may_be_written_last():
    """Its size was told by the tensor behind it, which now stands before it."""
    data, label = mutant(mutants.planned(539), 539, 192)
    with gs.open(data, check=False) as model:
        assert model.tensors.infos[-1].block is None
        assert model.tensors.infos[-1].n_bytes is not None
    assert exercise.problem(data, label, is_deep=True) == ""
