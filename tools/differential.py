#!/usr/bin/env python3
"""Mutants of generated files, through another reader: does it do what its profile says?

    python tools/differential.py llama.cpp --count 300000 --jobs 2 --state FOLDER
    python tools/differential.py gguf-py --seed 7 --start 20000 --count 20000

A disagreement is explained by a row of tools/differences.py, or it is told with an example. Mutants are run in blocks
of BLOCK, from the one that --start is in; a block that is in the state folder, with all explained, is not run again,
and all that are there count.

Exit status: 0 all is explained, 1 something is not, 2 usage, or the reader is not installed, 3 a process died, 130
interrupted, 141 nobody reads.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.cli.arguments import positive, whole
from gguf_schema.cli.streams import INTERRUPTED, tell
from gguf_schema.fuzz.cases import BASES, EACH, UNCHANGED
from gguf_schema.generate import valid_file
from gguf_schema.mutate import Label, mutant, plan
from gguf_schema.progress import progress
from gguf_schema.validate import check
from tools import chunks
from tools.differences import LLAMA_CPP, Judged, explanation
from tools.readers import READERS, running

BLOCK = 25 * EACH
"""Mutants of a block."""

OTHERS = 16
"""One base of so many may be big-endian, where the reader is llama.cpp, which refuses those at once."""


class Numbered(NamedTuple):
    """A mutant.

    Attributes:
        number: Which it is.
        data: Its bytes.
        label: What was done.
    """

    number: int
    data: bytes
    label: Label


def mutants(reader: str, seed: int, start: int, count: int) -> Iterator[Numbered]:
    """The mutants with these numbers: of each base first the base, then fixed and drawn changes in turn."""
    planned_for = -1
    for number in range(start, start + count):
        base, place = divmod(number, EACH)
        if base != planned_for:
            planned_for, base_seed = base, seed * BASES + base
            order = "<" if reader in LLAMA_CPP and base % OTHERS else None
            planned = plan(valid_file(base_seed, order), valid_file(base_seed + 1, order))
        if not place:
            yield Numbered(number, planned.base.data, UNCHANGED)
            continue
        turn, is_drawn = divmod(place, 2)
        yield Numbered(number, *mutant(planned, base_seed, turn + is_drawn * len(planned.fixed)))


class Result(NamedTuple):
    """What came of a block.

    Attributes:
        seen: How many files were wanted and seen so, as "accept reject".
        explained: How many disagreements each explanation covers.
        unexplained: For each kind of the others how many there are, and the first of them.
    """

    seen: dict[str, int]
    explained: dict[str, int]
    unexplained: dict[str, Any]


def run_block(reader: str, seed: int, folder: Path, start: int) -> None:
    """Run a block, and keep its result."""
    seen, explained = Counter[str](), Counter[str]()
    unexplained: dict[str, Any] = {}
    hashes = []
    with running(reader) as process:
        for case in mutants(reader, seed, start, BLOCK):
            judged = Judged(reader, case.data, check(case.data), process.read(case.data))
            seen[f"{judged.wanted} {judged.seen}"] += 1
            hashes.append(chunks.hash_of(case.data))
            if judged.wanted == judged.seen:
                continue
            name = explanation(judged)
            if name is not None:
                explained[name] += 1
                continue
            why = " ".join(sorted(judged.codes)) if judged.wanted == "reject" else case.label.operation
            what = f"wanted {judged.wanted}, seen {judged.seen} {judged.outcome.detail}: {why}"
            first = {"count": 0, "seed": seed, "number": case.number, **case.label._asdict(), "size": len(case.data)}
            unexplained.setdefault(what, first)["count"] += 1
    chunks.keep(block_path(folder, reader, seed, start), Result(seen, explained, unexplained)._asdict(), hashes)


def block_path(folder: Path, reader: str, seed: int, start: int) -> Path:
    """Where the result of a block is kept."""
    return chunks.path_of(folder, f"{reader}-{seed}", start, BLOCK)


def is_done(reader: str, seed: int, folder: Path, start: int) -> bool:
    """Whether a block was run, and nothing was left to explain."""
    kept = chunks.kept(block_path(folder, reader, seed, start))
    return kept is not None and not kept.record["unexplained"]


def run(reader: str, seed: int, start: int, count: int, jobs: int, folder: Path) -> None:
    """Run the blocks of a range that are not done."""
    starts = range(start // BLOCK * BLOCK, start + count, BLOCK)
    with progress("differential") as show:
        chunks.run(partial(run_block, reader, seed, folder), partial(is_done, reader, seed, folder), starts, jobs, show)


def summary(reader: str, folder: Path) -> dict[str, Any]:
    """All blocks of a reader that are in a folder, as one object."""
    kept = chunks.found(folder, rf"{re.escape(reader)}-\d+", BLOCK)
    seen, explained = Counter[str](), Counter[str]()
    unexplained: dict[str, Any] = {}
    for result in (Result(**one.record) for one in kept.kept.values()):
        seen.update(result.seen)
        explained.update(result.explained)
        for what, first in result.unexplained.items():
            known = unexplained.setdefault(what, {**first, "count": 0})
            known["count"] += first["count"]
    return {
        "reader": reader,
        "chunks": chunks.described(kept, BLOCK),
        "mutants": seen.total(),
        "distinct": chunks.distinct(kept),
        "bases": seen.total() // EACH,
        "seen": dict(seen.most_common()),
        "explained": dict(explained.most_common()),
        "unexplained": dict(sorted(unexplained.items(), key=lambda one: -one[1]["count"])),
    }


def as_text(found: dict[str, Any]) -> str:
    """The same for people."""
    lines = [*found["chunks"]]
    lines += [f"{found['reader']}: {found['mutants']} mutants of {found['bases']} files, {found['distinct']} distinct"]
    for title in "seen", "explained":
        lines += [f"{title}:", *(f"  {count:8} {name}" for name, count in found[title].items())]
    lines.append(f"unexplained: {sum(one['count'] for one in found['unexplained'].values())}")
    for what, one in found["unexplained"].items():
        done = f"seed {one['seed']}, number {one['number']}: {one['operation']} at {one['path']}, {one['size']} bytes"
        lines.append(f"  {one['count']:8} {what}\n           {done}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run blocks, and tell of all that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument("--start", type=whole, default=0, help="the first mutant")
    parser.add_argument("--count", type=positive, default=BLOCK, help="how many")
    parser.add_argument("--jobs", type=positive, default=1)
    parser.add_argument("--state", type=Path, help="a folder that keeps what is done")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    if not READERS[args.reader].is_installed:
        print(f"{READERS[args.reader].package} is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.state or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        status = 0
        try:
            run(args.reader, args.seed, args.start, args.count, args.jobs, folder)
        except KeyboardInterrupt:
            status = INTERRUPTED
        except chunks.WorkerError as error:
            print(f"{error}; the next run goes on from here", file=sys.stderr)
            status = chunks.DIED
        found = summary(args.reader, folder)
    told = tell(json.dumps(found, indent=1) if args.json else as_text(found))
    return told or status or int(bool(found["unexplained"]))


if __name__ == "__main__":
    chunks.end_on_sigterm()
    sys.exit(main(sys.argv[1:]))
