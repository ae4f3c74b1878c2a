#!/usr/bin/env python3
"""Fuzz our own reader.

python tools/fuzz.py mutants --bases 12500 --jobs 2 --folder DIR     mutants, 400 of each base; goes on where it was
python tools/fuzz.py one BASE NUMBER                                 one of them again, with its traceback
python tools/fuzz.py hypothesis --count 100000                       files that hypothesis makes

Exit status: 0 nothing is wrong, 1 something is, 2 usage, or what is not installed, 3 a process died, 130 interrupted,
141 nobody reads.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.cli.arguments import positive, whole
from gguf_schema.cli.streams import INTERRUPTED, tell
from gguf_schema.fuzz import export
from gguf_schema.mutate import mutant
from gguf_schema.progress import progress
from tools import chunks
from tools.fuzzing import mutants, planted
from tools.fuzzing.exercise import exercise_all

ROOT = Path(__file__).parents[1]

LIMITS = ["-timeout=5", "-rss_limit_mb=1024", "-max_len=4096"]
"""Of libFuzzer: seconds a file, memory of the process, and bytes of a file."""


def run_mutants(args: argparse.Namespace) -> int:
    """Mutants of seeded files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        status = 0
        try:
            with progress("mutants") as show:
                mutants.run(folder, args.first, args.bases, args.each, args.jobs, show)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            status = INTERRUPTED
        except chunks.WorkerError as error:
            print(f"{error}; the next run goes on from here", file=sys.stderr)
            status = chunks.DIED
        found = mutants.total(folder, args.each)
    return tell(mutants.text(found)) or status or int(bool(found.wrong))


def run_hypothesis(args: argparse.Namespace) -> int:
    """Files that hypothesis makes."""
    from tools.fuzzing import generated  # processes that try mutants import this module, too

    with progress("hypothesis") as show:
        found = generated.run(args.count, args.seed, show)
    return tell(generated.text(found)) or int(bool(found.wrong))


def run_planted(args: argparse.Namespace) -> int:
    """Faults that are planted in copies of the package: whether they are found, and when."""
    missed = 0
    for fault in planted.FAULTS:
        seconds, finding = planted.hunt(fault, args.count, args.seed)
        missed += not finding
        told = f"file {finding['files']}: {finding['problem']}" if finding else "not found"
        if status := tell(f"{seconds:5.1f} s  {fault.name}: {told}"):
            return status
    return int(bool(missed))


def run_atheris(args: argparse.Namespace) -> int:
    """Files that atheris makes, led by what code they reach."""
    if importlib.util.find_spec("atheris") is None:
        print("not installed: pip install '.[atheris]'", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        seeds = folder / "seeds"
        export.libfuzzer(seeds)
        for name in ("corpus", "findings"):
            (folder / name).mkdir(exist_ok=True)
        options = [f"-max_total_time={args.time}", f"-seed={args.seed}", f"-dict={seeds / export.DICTIONARY}", *LIMITS]
        folders = [f"-artifact_prefix={folder / 'findings'}/", str(folder / "corpus"), str(seeds / export.SEEDS)]
        target = [sys.executable, "-m", "tools.fuzzing.atheris_target", *options, *folders]
        return subprocess.run(target, cwd=ROOT, check=False).returncode


def run_one(args: argparse.Namespace) -> int:
    """One mutant."""
    data, label = mutant(mutants.planned(args.base), args.base, args.number)
    lines = [
        f"{fault.severity}: {fault.code} at {fault.path}, byte {fault.start}: {fault.message}"
        for fault in exercise_all(data)
    ]
    return tell("\n".join([str(label), *lines]))


def main() -> int:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    loops = parser.add_subparsers(required=True)

    added = loops.add_parser("mutants", help=run_mutants.__doc__)
    added.add_argument("--first", type=whole, default=0, help="seed of the first base")
    added.add_argument("--bases", type=positive, default=100)
    added.add_argument("--each", type=positive, default=400, help="mutants of each base")
    added.add_argument("--jobs", type=positive, default=1)
    added.add_argument("--folder", type=Path, help="where what came of it is kept, to go on later")
    added.set_defaults(run=run_mutants)

    added = loops.add_parser("one", help=run_one.__doc__)
    added.add_argument("base", type=whole)
    added.add_argument("number", type=whole)
    added.set_defaults(run=run_one)

    added = loops.add_parser("hypothesis", help=run_hypothesis.__doc__)
    added.add_argument("--count", type=positive, default=10_000)
    added.add_argument("--seed", type=whole, default=0)
    added.set_defaults(run=run_hypothesis)

    added = loops.add_parser("planted", help=run_planted.__doc__)
    added.add_argument("--count", type=positive, default=30_000, help="files to look for each in")
    added.add_argument("--seed", type=whole, default=0)
    added.set_defaults(run=run_planted)

    added = loops.add_parser("atheris", help=run_atheris.__doc__)
    added.add_argument("--time", type=positive, default=60, help="seconds")
    added.add_argument("--seed", type=whole, default=1)
    added.add_argument("--folder", type=Path, help="where files that reach new code are kept, and findings")
    added.set_defaults(run=run_atheris)

    args = parser.parse_args()
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


if __name__ == "__main__":
    chunks.end_on_sigterm()
    sys.exit(main())
