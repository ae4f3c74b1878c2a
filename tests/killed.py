"""Kills processes that edit a file, at every call to the system and at random moments, and looks at what is left.

Run as a program, because it forks: `python -m tests.killed FOLDER RANDOM`, with the number of random moments; prints
counts as JSON, and fails where a file is neither old nor new.
"""

import itertools
import json
import os
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

import gguf_schema as gs
from gguf_schema import edit, journal
from gguf_schema.cli.streams import models_in
from tests.killing import at_random, killed, restore

TEXT = "x" * 3000
EDITS = [edit.Set("general.name", "A longer name than before"), edit.Set("tokenizer.chat_template", TEXT)]


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
    """Leave a file as a patch leaves it that is killed in the middle of its first write to it."""
    kept, old = files(path), path.read_bytes()
    for last in itertools.count(1):
        restore(path.parent, kept)
        killed(lambda: patch(path), last, torn=True)
        if path.read_bytes() != old:
            break
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


def changes(calls):
    """How many of some calls change a file, or the name of one."""
    return sum(map(calls.count, "wcsrul"))


class Scenario:
    """Something that is done to a file again and again, and killed.

    Args:
        path: The file.
        name: Which of `SCENARIOS`.
        size: Bytes of its data.
    """

    def __init__(self, path: Path, name: str, size: int) -> None:
        self.path, self.name = path, name
        before, self.action = SCENARIOS[name]
        restore(path.parent, {})
        model(path, size)
        first = path.read_bytes()
        before(path)
        self.kept = files(path)
        self.old = first if name == "recover" else path.read_bytes()
        start = time.perf_counter()
        self.calls, ended = killed(lambda: self.action(path))
        self.seconds = time.perf_counter() - start
        self.new = path.read_bytes()
        assert ended
        assert (self.new == first) == (name not in ("patch", "rewrite"))

    def kill(self, last=0, torn=False, delay=None):
        """Kill it once, and look at what is left; what is counted of that: nothing if it ended before."""
        restore(self.path.parent, self.kept)
        made, ended = killed(lambda: self.action(self.path), last, torn, delay)
        found = look(self.path, self.old, self.new)
        if ended:
            return Counter()
        has_begun = bool(set(made) & set("wfcs")) or torn
        is_between = has_begun and changes(made) < changes(self.calls)
        return Counter({"kills": 1, "random": delay is not None, "between": is_between, f"{self.name}: {found}": 1})


def main(folder: str, moments: str) -> None:
    """Kill a small file's editors at each call, and a large one's at random; print what happened."""
    counts: Counter[str] = Counter()
    path = Path(folder) / "model.gguf"
    path.parent.mkdir()
    for name in SCENARIOS:
        small = Scenario(path, name, 1 << 16)
        for last in range(1, len(small.calls)):
            counts += small.kill(last) + small.kill(last, torn=True)
        large = Scenario(path, name, 1 << 22)
        for found in at_random(partial(large.kill, 0, False), large.seconds, int(moments) // len(SCENARIOS)):
            counts += found
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
