"""Kills processes that split and merge, at calls to the system and at random moments, and looks at what is left.

Run as a program, because it forks: `python -m tests.killed_shards FOLDER RANDOM`, with the number of random moments for
each scenario; prints counts as JSON, and fails where something is neither old nor new.
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
import pytest

import gguf_schema as gs
from gguf_schema.cli.streams import models_in
from gguf_schema.shards import merge, open_shards, split

CALLS = ("open", "fsync", "replace", "unlink", "link", "copy_file_range", "sendfile")
WRITE = os.write


def count_calls(pipe: int, last: int) -> None:
    """Tell of each call to the system by its first letter, and die before one of them."""
    made = 0

    def counted(name, original):
        def call(*args, **kwargs):
            nonlocal made
            made += 1
            if made == last:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args, **kwargs)
            WRITE(pipe, name[:1].encode())
            return result

        return call

    for name in CALLS:
        if hasattr(os, name):
            setattr(os, name, counted(name, getattr(os, name)))


def killed(action, last=0, delay=None):
    """Fork a process that does something, and kill it: the calls that it made, and whether it ended by itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        count_calls(writing, last)
        WRITE(writing, b".")
        action()
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


def model(path, value):
    tensors = {f"t.{number}": np.full(1 << 18, value + number, np.float32) for number in range(6)}
    gs.write(path, {"general.architecture": "llama", "x.value": value}, tensors)


def do_split(folder):
    with gs.open(folder / "in.gguf") as opened:
        split(opened, max_tensors=2).save(folder / "out" / "m")


def do_merge(folder):
    with open_shards(folder / "in-00001-of-00003.gguf") as opened:
        merge(opened).save(folder / "out" / "m.gguf")


def files(folder):
    """The models that somebody may find there."""
    return {Path(path).name: Path(path).read_bytes() for path in models_in(str(folder))}


def restore(folder, kept):
    for file in folder.iterdir():
        file.unlink()
    for name, data in kept.items():
        (folder / name).write_bytes(data)


def look(folder, old, new):
    """What is there is the old or the new, whole; or a set without its first shard, which nobody takes for a model."""
    found = files(folder)
    if found in (old, new):
        return "old" if found == old else "new"
    assert not any("-00001-of-" in name for name in found), "a set that looks whole, and is neither old nor new"
    assert all(data in (old.get(name), new.get(name)) for name, data in found.items()), "a third file"
    for name in found:
        with pytest.raises(gs.ShardError) as refused:
            gs.open(folder / name)
        assert refused.value.code == "shard-missing"
    return "incomplete"


def main(folder: str, moments: str) -> None:
    """Kill at each call, then at random; print what happened."""
    counts: Counter[str] = Counter()
    root = Path(folder)
    out = root / "out"
    out.mkdir(parents=True)
    model(root / "in.gguf", 1)
    with gs.open(root / "in.gguf") as opened:
        split(opened, max_tensors=2).save(root / "in")
    model(root / "other.gguf", 100)
    with gs.open(root / "other.gguf") as opened:
        split(opened, max_tensors=2).save(out / "m")
    old_set = files(out)
    scenarios = {
        "split": (do_split, {}),
        "split over a set": (do_split, old_set),
        "merge": (do_merge, {}),
        "merge over a file": (do_merge, {"m.gguf": (root / "other.gguf").read_bytes()}),
    }
    inputs = {name: (root / name).read_bytes() for name in os.listdir(root) if name.startswith("in")}
    for name, (action, old) in scenarios.items():
        restore(out, old)
        start = time.perf_counter()
        calls, done = killed(lambda action=action: action(root))
        taken = time.perf_counter() - start
        assert done
        new = files(out)
        assert new != old
        plans = [(last, None) for last in range(1, len(calls))]
        plans += [(0, random.random() * taken) for _ in range(int(moments))]
        for last, delay in plans:
            restore(out, old)
            made, ended = killed(lambda action=action: action(root), last, delay)
            counts["kills"] += not ended
            counts["between"] += not ended and bool(set(made) & set("cs")) and made.count("r") < calls.count("r")
            counts[f"{name}: {look(out, old, new)}"] += not ended
            assert {name: (root / name).read_bytes() for name in inputs} == inputs, "an input was touched"
        action(root)
        assert files(out) == new
        assert sorted(os.listdir(out)) == sorted(new), "temporary files are left"
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
