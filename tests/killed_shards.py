"""Kills processes that split and merge, at calls to the system and at random moments, and looks at what is left.

Run as a program, because it forks: `python -m tests.killed_shards FOLDER RANDOM`, with the number of random moments for
each scenario; prints counts as JSON, and fails where something is neither old nor new.
"""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.cli.streams import models_in
from gguf_schema.shards import merge, open_shards, split
from tests.killing import at_random, killed, restore


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


def kills(root, name, action, old, moments):
    """Kill something that is done to a folder at each call, then at random; what is counted.

    Args:
        root: Where the inputs are, and the folder.
        name: What it is called in the counts.
        action: What is done.
        old: The files that are in the folder before.
        moments: The number of random moments.
    """
    out = root / "out"
    inputs = {name: (root / name).read_bytes() for name in os.listdir(root) if name.startswith("in")}
    restore(out, old)
    start = time.perf_counter()
    calls, done = killed(lambda: action(root))
    taken = time.perf_counter() - start
    assert done
    new = files(out)
    assert new != old

    def kill(delay=None, last=0):
        restore(out, old)
        made, ended = killed(lambda: action(root), last, delay=delay)
        found = look(out, old, new)
        assert {name: (root / name).read_bytes() for name in inputs} == inputs, "an input was touched"
        is_between = bool(set(made) & set("wcs")) and made.count("r") < calls.count("r")
        return Counter() if ended else Counter({"kills": 1, "between": is_between, f"{name}: {found}": 1})

    counts: Counter[str] = Counter()
    for last in range(1, len(calls)):
        counts += kill(last=last)
    for counted in at_random(kill, taken, moments):
        counts += counted
    action(root)
    assert files(out) == new
    assert sorted(os.listdir(out)) == sorted(new), "temporary files are left"
    return counts


def main(folder: str, moments: str) -> None:
    """Make the models, kill what is done to them, and print what happened."""
    root = Path(folder)
    out = root / "out"
    out.mkdir(parents=True)
    model(root / "in.gguf", 1)
    with gs.open(root / "in.gguf") as opened:
        split(opened, max_tensors=2).save(root / "in")
    model(root / "other.gguf", 100)
    with gs.open(root / "other.gguf") as opened:
        split(opened, max_tensors=2).save(out / "m")
    scenarios = {
        "split": (do_split, {}),
        "split over a set": (do_split, files(out)),
        "merge": (do_merge, {}),
        "merge over a file": (do_merge, {"m.gguf": (root / "other.gguf").read_bytes()}),
    }
    counts: Counter[str] = Counter()
    for name, (action, old) in scenarios.items():
        counts += kills(root, name, action, old, int(moments))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
