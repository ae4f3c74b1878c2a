#!/usr/bin/env python3
"""Tables of ratios: this package beside gguf-py, llama.cpp's loader, the plain schema and hand-written floors.

    python tools/bench.py                    all tables, on files that it makes
    python tools/bench.py open strings       some tables (see --help)
    python tools/bench.py --rounds 15 open FILE...
    python tools/bench.py --megabytes 1024 data

In each round every contender runs once, in turn, in the same process; a figure is the median over the rounds of each
round's ratio, with the lowest and the highest beside it. Every run also uses what it claims to have read, so that being
lazy hides no work. gguf-py and the plain schema take seconds: they run in fewer rounds, which the table says.
"""

import argparse
import contextlib
import io
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

import gguf_schema as gs
from gguf_schema import annotate, mutate, strategies
from gguf_schema.constructs import Strings
from gguf_schema.generate import valid_file
from gguf_schema.validate import check
from gguf_schema.validate.weights import CHUNK
from tools.benchmarks.contenders import gguf_py, gguf_py_writer, llama_cpp, open_ours, open_plain
from tools.benchmarks.files import lying_files, number_file, pair_file, string_file, tensor_file, weight_file
from tools.benchmarks.floors import floor_records, floor_text
from tools.benchmarks.measure import SLOW_ROUNDS, Run, compare, seconds

ROOT = Path(__file__).parents[1]


def table_open(files: list[Path], folder: Path, rounds: int) -> None:
    """Metadata, types, lengths, infos."""
    for path in files or [string_file(folder / "strings.gguf", 300_000)]:
        size = path.stat().st_size / 1e6
        others = {**llama_cpp(path), **gguf_py(path), **open_plain(path)}
        compare(f"open {path.name} ({size:.1f} MB)", open_ours(path), rounds, **others)


def table_strings(files: list[Path], folder: Path, rounds: int) -> None:
    """Open, then every string of every array as str."""
    for path in files or [string_file(folder / "strings.gguf", 300_000)]:

        def run(path: Path = path) -> int:
            with gs.open(path) as model:
                arrays = [value.tolist() for _, _, value in model.metadata.pairs if isinstance(value, Strings)]
            return sum(map(len, arrays))

        with gs.open(path) as model:
            floor = floor_text(model)
        compare(f"open {path.name} and decode all strings", run, rounds, **{"floor: decode, split": floor})


def table_map(files: list[Path], folder: Path, rounds: int) -> None:
    """The folded byte map of an open file as JSON, beside opening it."""
    for path in files or [string_file(folder / "strings.gguf", 300_000)]:
        with gs.open(path) as model:
            compare(
                f"map of {path.name} as JSON",
                lambda model=model: annotate.map_json(model, annotate.entries(model)),  # type: ignore[misc]
                rounds,
                open=open_ours(path),
            )


def table_numbers(files: list[Path], folder: Path, rounds: int) -> None:
    """A large array of numbers: no copy. In new processes, where the memory is in the same state for both."""
    path = number_file(folder / "numbers.gguf", 4_000_000)
    runs = [(in_process(NUMBERS, path, "open"), in_process(NUMBERS, path, "read")) for _ in range(rounds)]
    beyond = sorted(ours["milliseconds"] - floor["milliseconds"] for ours, floor in runs)
    opened = sorted(ours["milliseconds"] for ours, _ in runs)
    print("\nopen 4,000,000 int32, beyond reading the bytes, in new processes")
    spread = f"({beyond[0]:.2f} to {beyond[-1]:.2f})"
    print(f"  {statistics.median(beyond):.2f} ms, median {spread}; opened in {opened[0]:.1f} ms at best")
    with gs.open(path) as model:
        array = model.metadata["x.numbers"]
    print(f"  the array owns its memory: {array.flags.owndata} (False: it looks into the bytes that were read)")


def table_tensors(files: list[Path], folder: Path, rounds: int) -> None:
    """Many tensors: name, type, dimensions, offset of each."""
    for count in 300, 2_000, 20_000:
        path = tensor_file(folder / f"tensors{count}.gguf", count)
        assert open_ours(path)() == floor_records(path)()
        others = {"floor: hand-written loop": floor_records(path), **llama_cpp(path)}
        compare(f"open {count:,} tensors and 30 pairs", open_ours(path), rounds, **others)


def table_pairs(files: list[Path], folder: Path, rounds: int) -> None:
    """Many scalar pairs, each read."""
    path = pair_file(folder / "pairs.gguf", 20_000)
    assert open_ours(path)() == floor_records(path)()
    others = {"floor: hand-written loop": floor_records(path), **llama_cpp(path)}
    compare("open 20,000 scalar pairs", open_ours(path), rounds, **others)


def table_build(files: list[Path], folder: Path, rounds: int) -> None:
    """The metadata of a file, built from what was read."""
    for path in files or [string_file(folder / "strings.gguf", 300_000)]:
        with gs.open(path) as model:
            metadata, version, order = model.metadata, model.version, model.order

        def run(metadata: gs.Metadata = metadata, version: int = version, order: str = order) -> bytes:
            out = io.BytesIO()
            gs.write(out, metadata, version=version, order=order)
            return out.getvalue()

        data = path.read_bytes()
        print(f"\nbytes of {path.name} identical: {run() == data[: model.infos_end]}")
        compare(f"build the metadata of {path.name}", run, rounds, **gguf_py_writer(metadata, folder))


def installed() -> dict[str, str]:
    """An environment in which Python keeps its bytecode, as it does for what pip installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "gguf_schema-bytecode")}


def in_process(program: str, *args: Any) -> dict[str, float]:
    """What a program prints as `name value` lines, run in a new process."""
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=installed(),
    )
    return {name: float(value) for name, value in (line.split() for line in run.stdout.splitlines())}


NUMBERS = """
import sys, time
import gguf_schema as gs
pair = {"key": "a", "value_type": 9, "value": {"type": 5, "array": [1]}}
with open(sys.argv[1] + ".small", "wb") as file:
    gs.GGUF.build_stream({"metadata_kv": [pair], "tensor_infos": []}, file)
gs.open(sys.argv[1] + ".small").metadata
start = time.perf_counter()
if sys.argv[2] == "open":
    kept = gs.open(sys.argv[1]).metadata["x.numbers"]
else:
    with open(sys.argv[1], "rb") as file:
        kept = file.read()
print("milliseconds", 1e3 * (time.perf_counter() - start))
"""
MEMORY = """
import sys, time
import gguf_schema as gs
from tools.benchmarks.contenders import check
from tools.memory import peak_memory, reset_peak_memory
reset_peak_memory()
before, start = peak_memory(), time.perf_counter()
model = gs.open(sys.argv[1])
check(model)
print("milliseconds", 1e3 * (time.perf_counter() - start))
print("over_import", (peak_memory() - before) / 2**20)
print("metadata", model.infos_end / 2**20)
"""
IMPORT = """
import time
import numpy, construct
start = time.perf_counter()
import gguf_schema
print("milliseconds", 1e3 * (time.perf_counter() - start))
"""


def table_memory(files: list[Path], folder: Path, rounds: int) -> None:
    """Peak memory over the import, in MiB, and its ratio to the metadata's size."""
    sparse = tensor_file(folder / "sparse.gguf", 2_000)
    os.truncate(sparse, 20 << 30)
    print(f"\npeak memory over the import ({'MiB':>3})")
    for path in [*(files or [string_file(folder / "strings.gguf", 300_000)]), sparse]:
        runs = [in_process(MEMORY, path) for _ in range(SLOW_ROUNDS)]
        over = statistics.median(run["over_import"] for run in runs)
        took = min(run["milliseconds"] for run in runs)
        metadata = runs[0]["metadata"]
        print(
            f"  {path.name:34} file {path.stat().st_size / 2**20:10.1f}   metadata {metadata:7.2f}   "
            f"peak {over:6.1f} ({over / metadata:.1f} x metadata)   first open {took:.1f} ms"
        )


def table_import(files: list[Path], folder: Path, rounds: int) -> None:
    """The import beyond numpy and construct; `info` as a whole process."""
    in_process(IMPORT)  # writes the bytecode
    took = sorted(in_process(IMPORT)["milliseconds"] for _ in range(rounds))
    print(
        f"\nimport gguf_schema after numpy and construct: min {took[0]:.1f} ms, median {statistics.median(took):.1f} ms"
    )
    path = (files or [string_file(folder / "strings.gguf", 300_000)])[0]

    def process(*args: Any) -> Run:
        return lambda: subprocess.run(
            [sys.executable, *map(str, args)], check=True, stdout=subprocess.DEVNULL, cwd=ROOT
        )

    opened = min(seconds(open_ours(path)) for _ in range(rounds))
    imports = process("-c", "import numpy, construct")
    process("-m", "gguf_schema", "info", path)()  # writes the bytecode
    print(f"(one open takes {1e3 * opened:.1f} ms)")
    compare(f"gguf-schema info {path.name}", process("-m", "gguf_schema", "info", path), rounds, imports=imports)


def table_hostile(files: list[Path], folder: Path, rounds: int) -> None:
    """Files whose counts and lengths lie: milliseconds until they are refused."""
    print("\nhostile counts: refused after")
    for name, data in lying_files().items():

        def run(data: bytes = data) -> None:
            with contextlib.suppress(gs.GGUFError):
                gs.open(data)
                raise AssertionError("opened")

        took = [1e3 * seconds(run) for _ in range(rounds)]
        print(f"  {name:38} min {min(took):6.2f} ms, median {statistics.median(took):6.2f} ms")


def table_growth(files: list[Path], folder: Path, rounds: int) -> None:
    """Sizes doubled; nanoseconds for each thing must not grow."""
    print("\ngrowth: nanoseconds for each, minimum of the rounds")
    kinds: dict[str, tuple[Callable[[Path, int], Path], Iterable[int]]] = {
        "strings": (string_file, (100_000 << k for k in range(6))),
        "tensors": (tensor_file, (1_000 << k for k in range(7))),
        "pairs": (pair_file, (1_000 << k for k in range(7))),
    }
    for kind, (make, counts) in kinds.items():
        for count in [*counts, *([4_000_000] if kind == "strings" else [])]:
            path = make(folder / "growth.gguf", count)
            data = path.read_bytes() if kind != "tensors" else b""
            took = {"open": min(seconds(open_ours(path)) for _ in range(SLOW_ROUNDS))}
            if data:
                parsed = gs.GGUF.parse(data)
                took["build"] = min(seconds(partial(gs.GGUF.build, parsed)) for _ in range(SLOW_ROUNDS))
            if kind == "strings":
                strings = parsed.metadata_kv[1].value.array
                took["decode"] = min(seconds(strings.tolist) for _ in range(SLOW_ROUNDS))
            each = ", ".join(f"{name} {1e9 * value / count:8.1f}" for name, value in took.items())
            print(f"  {count:>10,} {kind:8} {each}", flush=True)


def table_data(files: list[Path], folder: Path, rounds: int, megabytes: int = 256) -> None:
    """All rules and those on weights, beside reading the file into memory that begins with a page."""
    for path in files or [weight_file(folder / "weights.gguf", megabytes << 20)]:
        memory = mmap.mmap(-1, CHUNK)

        def read(path: Path = path, memory: mmap.mmap = memory) -> None:
            with path.open("rb", buffering=0) as file:
                while file.readinto(memory):
                    pass

        title = f"check {path.name} ({path.stat().st_size / 1e6:.1f} MB) with its data"
        compare(title, partial(check, path, data=True), rounds, **{f"readinto, {CHUNK >> 10} KiB each": read})


def table_mutants(files: list[Path], folder: Path, rounds: int) -> None:
    """Labelled mutants a second of this process's own time, the plans of their files included."""
    bases = [path.read_bytes() for path in files] or [valid_file(seed) for seed in range(100)]
    size = statistics.mean(map(len, bases))
    print(f"\nmutants a second, of {len(bases)} files of {size:.0f} bytes on average")
    for each in None, 5_000:
        rates, made = [], 0
        for _ in range(min(rounds, SLOW_ROUNDS)):
            start = time.process_time()
            made = sum(1 for seed, data in enumerate(bases) for _ in mutate.mutants(data, seed, each))
            rates.append(made / (time.process_time() - start))
        what = "fixed" if each is None else "fixed, then drawn"
        print(f"  {what:18} {made / len(bases):7.0f} of each   median {statistics.median(rates):10,.0f}")


def table_generate(files: list[Path], folder: Path, rounds: int) -> None:
    """Valid files by seed, a thousand a run, beside parsing them; and those that hypothesis makes."""
    made = [valid_file(seed) for seed in range(1000)]

    def generate() -> None:
        for seed in range(len(made)):
            valid_file(seed)

    def parse() -> None:
        for data in made:
            gs.GGUF.parse(data)

    drawn: list[int] = []

    @settings(max_examples=500, deadline=None, database=None, phases=[Phase.generate])
    @given(strategies.files())
    def draw(data: bytes) -> None:
        drawn.append(len(data))

    fastest = min(seconds(generate) for _ in range(rounds))
    sizes = f"{statistics.mean(map(len, made)):.0f} bytes each, median {statistics.median(map(len, made)):.0f}"
    print(f"\nvalid files by seed: {len(made) / fastest:,.0f} a second at best, {sizes}")
    took = seconds(draw)
    print(f"files by hypothesis: {len(drawn) / took:,.0f} a second, {statistics.mean(drawn):.0f} bytes each")
    compare(f"make {len(made):,} valid files", generate, rounds, **{"parse them": parse})


TABLES: dict[str, Callable[..., None]] = {
    "open": table_open,
    "strings": table_strings,
    "map": table_map,
    "numbers": table_numbers,
    "tensors": table_tensors,
    "pairs": table_pairs,
    "build": table_build,
    "memory": table_memory,
    "import": table_import,
    "hostile": table_hostile,
    "growth": table_growth,
    "data": table_data,
    "mutants": table_mutants,
    "generate": table_generate,
}


def main() -> int:
    """Print the tables that the arguments name."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--rounds", type=int, default=9, help="rounds of each comparison (default 9)")
    cli.add_argument("names", nargs="*", metavar="TABLE|FILE", help=f"{', '.join(TABLES)}; or GGUF files for them")
    cli.add_argument("--megabytes", type=int, default=256, help="size of the file that data makes (default 256)")
    args = cli.parse_intermixed_args()
    tables: dict[str, Callable[..., None]] = {**TABLES, "data": partial(table_data, megabytes=args.megabytes)}
    names = [name for name in args.names if name in tables]
    files = [Path(name) for name in args.names if name not in tables]
    with tempfile.TemporaryDirectory() as folder:
        for name in names or tables:
            tables[name](files, Path(folder), args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
