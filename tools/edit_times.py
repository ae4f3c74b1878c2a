#!/usr/bin/env python3
"""What an edit in place of a large file costs: bytes written, and time beyond that of starting the command.

    python tools/edit_times.py                        4 GiB, in a temporary folder
    python tools/edit_times.py --gib 1 --rounds 9 --folder DIR --vocabulary FILE

The file has 300 tensors, a reserve, and a chat template with 12 KB of noise behind it, so that all of that moves; with
--vocabulary the metadata of another file stands before them. Each round edits the template twice: by a patch, beside a
command that only prints its help, in turns; and by a new file, where the reserve does not suffice, beside a plain copy
(`shutil.copyfile` and fsync) that takes the place of an older one, too: letting go of a large file takes time. They
change turns. Figures are medians over the rounds. It needs room for four files.

    written    bytes that the process gives to the system during a patch, as Linux counts them
    beyond     milliseconds of the command that patches, less those of the one that prints its help
    within     milliseconds from opening the file to the end of the patch, in a process that runs already
    new file   the plain copy's time by that of the edit: 1 is as fast, less is slower
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import gguf_schema as gs
from gguf_schema import edit

ROOT = Path(__file__).parents[1]
TENSORS = 300
KEY = "tokenizer.chat_template"
RESERVE = 1 << 16


def make(path: Path, size: int, vocabulary: str | None) -> None:
    """The file; its data is noise, the same in each tensor."""
    rng = np.random.default_rng(0)
    strings, octets = gs.GGUFValueType.STRING, gs.ArrayType(gs.GGUFValueType.UINT8)
    pairs = [gs.MetadataKV("general.architecture", strings, "llama")]
    if vocabulary is not None:
        with gs.open(vocabulary) as model:
            pairs += [pair for pair in model.metadata.pairs if pair.key != "general.architecture"]
    pairs.append(gs.MetadataKV(KEY, strings, "{{ message }}"))
    pairs.append(gs.MetadataKV("noise", octets, rng.integers(0, 256, 12_000, np.uint8)))
    noise = rng.integers(-128, 128, size // TENSORS, np.int8)
    tensors = {f"blk.{n // 10}.{n % 10}.weight": noise for n in range(TENSORS)}
    whole = path.with_suffix(".whole")
    gs.write(whole, pairs, tensors)
    with gs.open(whole) as model:
        edit.save(edit.plan(model, [], reserve=RESERVE), path)
    whole.unlink()


def taken(do: Callable[[], object]) -> float:
    """Seconds that something takes."""
    os.sync()
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def command(*arguments: str | Path) -> None:
    """Run the command."""
    subprocess.run(
        [sys.executable, "-m", "gguf_schema", *map(str, arguments)], check=True, capture_output=True, cwd=ROOT
    )


def edited(path: Path, text: str, *, is_patch: bool) -> int:
    """Edit the template; the bytes that were written."""
    before = bytes_written()
    with gs.open(path) as model:
        plan = edit.plan(model, [edit.Set(KEY, text)], in_place=True)
        if (plan.record is not None) != is_patch:
            raise SystemExit(f"expected another plan than {plan}")
        edit.apply(plan)
    return bytes_written() - before


def bytes_written() -> int:
    """Bytes that this process has given to the system."""
    return int(Path("/proc/self/io").read_text().partition("wchar: ")[2].partition("\n")[0])


def copied(path: Path, target: Path) -> None:
    """A plain copy in the place of an older one."""
    new = target.with_suffix(".new")
    shutil.copyfile(path, new)
    with open(new, "rb+") as file:
        os.fsync(file)
    new.replace(target)


def measured(path: Path, target: Path, number: int) -> tuple[float, float, float, int]:
    """One round: seconds beyond start-up, seconds within a process, speed of a new file, bytes of a patch."""
    commands = [("set", "--help"), ("set", "--in-place", path, f"{KEY}={'x' * number}")]
    took = [taken(partial(command, *each)) for each in (commands if number % 2 else commands[::-1])]
    beyond = (took[1] - took[0]) * (1 if number % 2 else -1)
    written: list[int] = []
    within = taken(lambda: written.append(edited(path, "y" * (100 + number), is_patch=True)))
    ways = [lambda: copied(path, target), lambda: edited(path, "z" * 2 * RESERVE, is_patch=False)]
    seconds = {}
    for way in (0, 1) if number % 2 else (1, 0):
        seconds[way] = taken(ways[way])
    edit.undo(path)
    return beyond, within, seconds[0] / seconds[1], written[0]


def main() -> int:
    """Print the figures."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--gib", type=float, default=4, help="tensor data, in GiB (default 4)")
    cli.add_argument("--rounds", type=int, default=7, help="rounds (default 7)")
    cli.add_argument("--folder", help="where (default: the system's folder for temporary files)")
    cli.add_argument("--vocabulary", help="a GGUF file whose metadata stands before the template")
    args = cli.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path, target = Path(folder, "model.gguf"), Path(folder, "copy.gguf")
        make(path, int(args.gib * 2**30), args.vocabulary)
        copied(path, target)
        rounds = [measured(path, target, number) for number in range(args.rounds)]
        size = path.stat().st_size / 2**30
    beyond, within, speeds, written = zip(*rounds, strict=True)
    print(f"{size:.2f} GiB in {TENSORS} tensors, {args.rounds} rounds")
    print(
        f"  patch     {1000 * statistics.median(beyond):.0f} ms beyond start-up, at most {max(written)} bytes written"
    )
    print(f"            {1000 * statistics.median(within):.0f} ms within a process")
    print(
        f"  new file  {statistics.median(speeds):.3f} of a plain copy's speed ({min(speeds):.3f} to {max(speeds):.3f})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
