"""Kills processes that edit a file, at every call to the system and at random moments, and looks at what is left.

Run as a program, because it forks: `python -m tests.killed FOLDER RANDOM`, with the number of random moments; prints
counts as JSON, and fails where a file is neither old nor new.
"""

import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import gguf_schema as gs
from gguf_schema import edit, journal
from gguf_schema.cli.streams import models_in

CALLS = ("open", "write", "fsync", "replace", "unlink", "link", "copy_file_range", "sendfile")
TEXT = "x" * 3000
EDITS = [edit.Set("general.name", "A longer name than before"), edit.Set("tokenizer.chat_template", TEXT)]


class Calls:
    """Counts calls to the system, and kills the process before one of them, or in the middle of a write."""

    def __init__(self, pipe: int, last: int, torn: bool) -> None:
        self.pipe, self.last, self.torn, self.count = pipe, last, torn, 0
        for name in CALLS:
            if hasattr(os, name):
                setattr(os, name, self.counted(name, getattr(os, name)))

    def counted(self, name, original):
        def call(*args, **kwargs):
            self.count += 1
            if self.count == self.last:
                if self.torn and name == "write":
                    original(args[0], memoryview(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args, **kwargs)
            WRITE(self.pipe, name[:1].encode())
            return result

        return call


WRITE = os.write


def model(path, size):
    """A model with a reserve, and so many bytes of data."""
    pairs = {
        "general.architecture": "llama",
        "general.name": "Old",
        "tokenizer.chat_template": "short",
        "llama.rope.freq_base": 1.5,
        "x.numbers": np.arange(500, dtype=np.int32),
    }
    tensors = {f"t.{i}": np.full((64, size // 2 // 256), i, np.float32) for i in range(2)}
    gs.write(path, pairs, tensors)
    with gs.open(path) as opened:
        edit.apply(edit.plan(opened, [], in_place=True, reserve=8000))
    os.unlink(journal.undo_of(path))


def patch(path):
    with gs.open(path) as opened:
        plan = edit.plan(opened, EDITS, in_place=True)
        assert plan.record is not None
        edit.apply(plan)


def rewrite(path):
    with gs.open(path) as opened:
        plan = edit.plan(opened, [*EDITS, edit.Set("x.long", TEXT * 9, gs.GGUFValueType.STRING)], in_place=True)
        assert plan.record is None
        edit.apply(plan)


def recover(path):
    with journal.exclusive(path) as handle:
        journal.recover(path, handle)


def interrupted(path):
    """Leave a file as a patch leaves it that is killed between two of its writes."""
    child = os.fork()
    if not child:
        Calls(os.open(os.devnull, os.O_WRONLY), last=8, torn=True)
        patch(path)
        os._exit(3)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert os.path.exists(journal.journal_of(path))


SCENARIOS = {
    "patch": (lambda path: None, patch),
    "rewrite": (lambda path: None, rewrite),
    "undo a patch": (patch, edit.undo),
    "undo a rewrite": (rewrite, edit.undo),
    "recover": (interrupted, recover),
}
"""Name → what is done before, and what is killed."""


def files(path):
    """What a scenario starts from, and what it makes of that."""
    return {name: file.read_bytes() for file in path.parent.iterdir() if (name := file.name)}


def restore(path, kept):
    for file in path.parent.iterdir():
        file.unlink()
    for name, data in kept.items():
        (path.parent / name).write_bytes(data)


def killed(path, action, last=0, torn=False, delay=None):
    """Fork a process that does something, and kill it: the calls that it made, and whether it ended by itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        Calls(writing, last, torn)
        WRITE(writing, b".")
        action(path)
        os._exit(0)
    os.close(writing)
    if delay is not None:
        select.select([reading], [], [])
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    calls = b""
    while more := os.read(reading, 4096):
        calls += more
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return calls.decode(), not os.WIFSIGNALED(status)


def look(path, old, new):
    """What is left is whole, at the latest after it was mended; nothing else is taken for a model."""
    assert models_in(str(path.parent)) == [str(path)]
    if journal.trouble(path) is None:
        assert path.read_bytes() in (old, new), "a third file, of which nobody is told"
    recover(path)
    assert journal.trouble(path) is None
    found = path.read_bytes()
    assert found in (old, new), "a third file"
    assert models_in(str(path.parent)) == [str(path)]
    return "old" if found == old else "new"


def main(folder: str, moments: str) -> None:
    """Kill at each call, then at random; print what happened."""
    counts: Counter[str] = Counter()
    path = Path(folder) / "model.gguf"
    path.parent.mkdir()
    for name, (before, action) in SCENARIOS.items():
        for size in (1 << 16, 1 << 22):
            restore(path, {})
            model(path, size)
            first = path.read_bytes()
            before(path)
            kept = files(path)
            old = first if name == "recover" else path.read_bytes()
            start = time.perf_counter()
            calls, done = killed(path, action)
            taken = time.perf_counter() - start
            assert done
            new = path.read_bytes()
            assert (new == first) == (name != "patch" and name != "rewrite")
            plans = [(last, torn, None) for last in range(1, len(calls)) for torn in (False, True)]
            plans += [(0, False, random.random() * taken) for _ in range(int(moments) // len(SCENARIOS) // 2)]
            for last, torn, delay in plans:
                restore(path, kept)
                made, ended = killed(path, action, last, torn, delay)
                counts["kills"] += not ended
                counts["random kills"] += not ended and delay is not None
                has_begun = bool(set(made) & set("wfcs")) or torn
                counts["between"] += not ended and has_begun and made.count("r") < calls.count("r")
                counts[f"{name}: {look(path, old, new)}"] += not ended
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
