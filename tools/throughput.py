#!/usr/bin/env python3
"""How fast large files are written, beside a plain copy of as many bytes in the same run, and how much memory it takes.

    python tools/throughput.py                        4 GiB, in a temporary folder
    python tools/throughput.py --gib 2 --rounds 9 --folder DIR

A plain copy is `shutil.copyfile` and fsync. Each run is a new process, which says how long it took and its peak memory
beyond the import. Disks change their mind, so each run is paired with a plain copy right before or after it, in turn; a
figure is the median over the pairs of the plain copy's time by the run's: 1 is as fast, less is slower. The
processor's time is told, too, which others that work at the same time disturb less. It needs room for two files.

    maps        write from memory maps of 64 tensors
    tensors     copy the tensors of another GGUF file, with other metadata
    rewrite     write a file again with another string in its metadata, all data kept
    tensors, no kernel    as `tensors`, where the system can copy no ranges: reads and writes
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import gguf_schema as gs

ROOT = Path(__file__).parents[1]
TENSORS = 64

CHILD = """
import json, os, shutil, sys, time
import numpy as np
import gguf_schema as gs
from tools.memory import peak_memory, reset_peak_memory
way, source, target, tensors = *sys.argv[1:4], int(sys.argv[4])

def plain():
    shutil.copyfile(source, target)
    with open(target, "rb+") as file:
        os.fsync(file)

def maps():
    data = np.memmap(source, np.float32, "r", offset=os.path.getsize(source) % 4096)
    data = data[: data.size // tensors * tensors].reshape(tensors, -1)
    gs.write(target, {"general.architecture": "llama"}, {f"blk.{n}.ffn_up.weight": row for n, row in enumerate(data)})

def copied():
    with gs.open(source) as model:
        gs.write(target, {**model.metadata, "general.name": "copied"}, model.tensors)

def no_kernel():
    del os.copy_file_range, os.sendfile
    copied()

def rewrite():
    with gs.open(source) as model:
        pairs = [*model.head.metadata_kv, {"key": "general.version", "value_type": 8, "value": "other"}]
        gs.rewrite(model, {"metadata_kv": pairs, "tensor_infos": model.head.tensor_infos}).save(target)

run = {"plain": plain, "maps": maps, "tensors": copied, "tensors, no kernel": no_kernel, "rewrite": rewrite}[way]
reset_peak_memory()
before, start, used = peak_memory(), time.perf_counter(), time.process_time()
run()
print(json.dumps([time.perf_counter() - start, time.process_time() - used, peak_memory() - before]))
"""
WAYS = ("maps", "tensors", "rewrite", "tensors, no kernel")


def make(path: Path, size: int) -> None:
    """A file of so many bytes of tensor data, which no disk can press together."""
    rng = np.random.default_rng(0)
    block = rng.bytes(1 << 20)

    def data(number: int) -> Any:
        for piece in range(size // TENSORS >> 20):
            yield (piece + number).to_bytes(16, "little") + block[16:]

    tensors = [
        gs.NewTensor(f"blk.{n}.ffn_up.weight", gs.GGMLQuantizationType.F32, (size // TENSORS // 4,), data(n))
        for n in range(TENSORS)
    ]
    gs.write(path, {"general.architecture": "llama", "general.name": "throughput"}, tensors)


class Run(NamedTuple):
    """What one run took.

    Attributes:
        seconds: By the clock.
        processor: Seconds of the processor's time.
        memory: The peak in MiB, beyond the import.
    """

    seconds: float
    processor: float
    memory: float


def run(way: str, source: Path, target: Path) -> Run:
    """Write the target one way."""
    child = [sys.executable, "-c", CHILD, way, source, target, TENSORS]
    done = subprocess.run([str(arg) for arg in child], capture_output=True, text=True, check=True, cwd=ROOT)
    seconds, processor, memory = json.loads(done.stdout)
    return Run(seconds, processor, memory / 2**20)


def report(way: str, plain: list[Run], ours: list[Run]) -> str:
    """What a way is beside the plain copies that ran with it."""
    pairs = list(zip(plain, ours, strict=True))
    speeds = sorted(copy.seconds / other.seconds for copy, other in pairs)
    effort = statistics.median(other.processor / copy.processor for copy, other in pairs)
    seconds = (statistics.median(run.seconds for run in runs) for runs in (ours, plain))
    return (
        f"  {way:20} {statistics.median(speeds):.3f} of a plain copy's throughput "
        f"({speeds[0]:.3f} to {speeds[-1]:.3f}), {' s beside '.join(f'{each:.2f}' for each in seconds)} s, "
        f"with {effort:.2f} of its processor time; peak memory {max(run.memory for run in ours):.1f} MiB"
    )


def main() -> int:
    """Print the table."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--gib", type=float, default=4, help="tensor data, in GiB (default 4)")
    cli.add_argument("--rounds", type=int, default=9, help="pairs (default 9)")
    cli.add_argument("--folder", help="where (default: the system's folder for temporary files)")
    cli.add_argument("ways", nargs="*", choices=[*WAYS, []], help=f"of {', '.join(WAYS)} (default: all)")
    args = cli.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        source, target = Path(folder, "source.gguf"), Path(folder, "target.gguf")
        make(source, int(args.gib * 2**30) // (TENSORS << 20) * (TENSORS << 20))
        print(f"{source.stat().st_size / 2**30:.2f} GiB in {TENSORS} tensors, {args.rounds} pairs each")
        for way in args.ways or WAYS:
            plain: list[Run] = []
            ours: list[Run] = []
            for number in range(args.rounds):
                for each in ("plain", way) if number % 2 else (way, "plain"):
                    target.unlink(missing_ok=True)
                    os.sync()
                    (plain if each == "plain" else ours).append(run(each, source, target))
            print(report(way, plain, ours), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
