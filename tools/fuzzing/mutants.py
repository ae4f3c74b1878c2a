"""Labelled mutants of seeded files through our reader: what escapes, hangs, takes too much, or contradicts its label.

The bases are those of `valid_file`, by their seeds. A run is divided into chunks of bases (see `chunks`), so that the
next one goes on with those that are not there, and the sums grow.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gguf_schema.generate import valid_file
from gguf_schema.mutate import OPERATIONS, Label, Mutant, Plan, mutant, plan
from gguf_schema.mutate.base import mapped
from gguf_schema.mutate.splice import operations as splices
from gguf_schema.schema import VERSIONS
from tools import chunks
from tools.fuzzing.exercise import escape, problem, watched
from tools.memory import peak_memory, reset_peak_memory

CHUNK = 25
"""Bases of a chunk."""

MEMORY = 64 << 20
"""Bytes by which the process may grow over the mutants of one base."""

DEEP = 32
"""Of so many mutants one is also mapped, explained, read whole and written anew."""

OTHER = "other"
"""The kind of fields that the schema does not have yet."""

KEPT = 20
"""Findings of a chunk that are told one by one."""


class Chunk(NamedTuple):
    """What came of a chunk of bases.

    Attributes:
        mutants: How many there were.
        deep: How many of them were put through everything.
        expected: How many were expected to be what.
        cells: How many there were of each kind of field and operation, written "kind operation".
        findings: What went wrong: the seed of the base, the number of the mutant (-1 if with the base as a whole), its
            label, and what it was.
        wrong: How many went wrong.
    """

    mutants: int
    deep: int
    expected: Counter[str]
    cells: Counter[str]
    findings: list[tuple[int, int, Label, str]]
    wrong: int


def planned(base: int) -> Plan:
    """The plan of the base with this seed; sections are taken from the file of the next one.

    Two kinds of files that `valid_file` does not make by itself are there as well: of eight bases one is of version 1,
    and one has zeros at its end.
    """
    data = valid_file(base, version=None if base % 8 else VERSIONS[0])
    return plan(data + bytes(base % 40) if base % 8 == 1 else data, valid_file(base + 1))


def _planned_with_kinds(base: int) -> tuple[Plan, dict[str, str]]:
    """The plan of a base, and the kind of each field by its path."""
    made = planned(base)
    return made, {field.path: field.kind for field in made.base.fields}


def numbers(made: Plan, each: int) -> list[int]:
    """The numbers of `each` mutants of a base: three of four are fixed changes, if there are so many."""
    fixed = min(len(made.fixed), each * 3 // 4)
    return [*range(fixed), *range(len(made.fixed), len(made.fixed) + each - fixed)]


def tried(made: Plan, base: int, number: int, is_deep: bool) -> tuple[Mutant, str]:
    """A mutant, and what goes wrong with it."""
    data, label = mutant(made, base, number)
    return Mutant(data, label), problem(data, label, is_deep)


def chunk(each: int, start: int) -> tuple[Chunk, list[bytes]]:
    """Try `each` mutants of every base of the chunk that starts with this seed. Gives the mutants' hashes, too."""
    hashes: list[bytes] = []
    expected: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    findings: list[tuple[int, int, Label, str]] = []
    deep = 0
    nothing = Label("", "any", None, "unknown")
    with watched() as restart:
        for base in range(start, start + CHUNK):
            restart()
            wrong, done_before = escape(_planned_with_kinds, base)
            if wrong:
                findings.append((base, -1, nothing, f"no plan: {wrong}"))
            if done_before is None:
                continue
            restart()  # what is between two files is no file's fault
            made, kinds = done_before
            reset_peak_memory()
            before = peak_memory()
            for number in numbers(made, each):
                restart()
                is_deep = len(hashes) % DEEP == 0
                wrong, done = escape(tried, made, base, number, is_deep)
                if done is None:
                    findings.append((base, number, nothing, f"no mutant: {wrong}"))
                    continue
                (data, label), wrong_with_it = done
                deep += is_deep
                hashes.append(chunks.hash_of(data))
                expected[label.expected] += 1
                cells[f"{kinds[label.path]} {label.operation}"] += 1
                if wrong_with_it or wrong:
                    findings.append((base, number, label, wrong_with_it or wrong))
            if (grown := peak_memory() - before) > MEMORY:
                findings.append((base, -1, nothing, f"memory: {grown >> 20} MiB more"))
    return Chunk(len(hashes), deep, expected, cells, findings[:KEPT], len(findings)), hashes


def run(folder: Path, first: int, bases: int, each: int, jobs: int, show: Callable[[int, int], None]) -> None:
    """Try mutants of the bases with these seeds, a chunk after the other; those in the folder already are not tried.

    Args:
        folder: Where what came of each chunk is kept.
        first: Seed of the first base, rounded down to a chunk.
        bases: How many, rounded up to chunks.
        each: Mutants of each base.
        jobs: Chunks at a time.
        show: Called with the chunks that are done, and all.

    Raises:
        WorkerError: A process died (see `chunks.run`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(first - first % CHUNK, first + bases, CHUNK)
    chunks.run(partial(_kept, folder, each), partial(_is_done, folder, each), starts, jobs, show)


def series(each: int) -> str:
    """The name of the chunks with so many mutants of each base."""
    return f"mutants-x{each}"


def path_of(folder: Path, each: int, start: int) -> Path:
    """Where what came of a chunk is kept."""
    return chunks.path_of(folder, series(each), start, CHUNK)


def _is_done(folder: Path, each: int, start: int) -> bool:
    return chunks.kept(path_of(folder, each, start)) is not None


def _kept(folder: Path, each: int, start: int) -> None:
    """Try a chunk, and keep what came of it."""
    made, hashes = chunk(each, start)
    chunks.keep(path_of(folder, each, start), made._asdict(), hashes)


class Sum(NamedTuple):
    """What came of all chunks of a series in a folder.

    Attributes:
        mutants: How many there were.
        distinct: How many different ones, by hash.
        bases: Of how many bases.
        deep: How many of them were put through everything.
        expected: How many were expected to be what.
        cells: How many there were of each kind of field and operation.
        empty: The kinds and operations of which there was none.
        wrong: How many went wrong.
        findings: Some of them.
        chunks: Which chunks there are, as lines for people.
    """

    mutants: int
    distinct: int
    bases: int
    deep: int
    expected: dict[str, int]
    cells: dict[str, int]
    empty: list[str]
    wrong: int
    findings: list[Any]
    chunks: list[str]


def total(folder: Path, each: int) -> Sum:
    """The sum of what a folder holds of runs with so many mutants of each base."""
    kept = chunks.found(folder, series(each), CHUNK)
    records = [one.record for one in kept.kept.values()]
    expected: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    for record in records:
        expected.update(record["expected"])
        cells.update(record["cells"])
    return Sum(
        sum(record["mutants"] for record in records),
        chunks.distinct(kept),
        CHUNK * len(records),
        sum(record["deep"] for record in records),
        dict(expected),
        dict(sorted(cells.items())),
        sorted(set(_cells()) - cells.keys()),
        sum(record["wrong"] for record in records),
        [finding for record in records for finding in record["findings"]],
        chunks.described(kept, CHUNK),
    )


def _cells() -> Iterator[str]:
    """Every kind of field that the schema has, with each of its operations, those with another file too."""
    offered = splices(mapped(valid_file(0)))
    for kind, operations in OPERATIONS.items():
        if kind != OTHER:
            for operation in (*operations, *offered.get(kind, ())):
                yield f"{kind} {operation.name}"


def text(found: Sum) -> str:
    """The sum, for people."""
    share = {name: f"{count / max(1, found.mutants):.1%}" for name, count in sorted(found.expected.items())}
    lines = [
        *found.chunks,
        f"{found.mutants} mutants of {found.bases} bases, {found.distinct} distinct",
        f"{found.deep} of them through everything",
        f"expected: {', '.join(f'{name} {part}' for name, part in share.items())}",
        f"kinds of field x operations: {len(found.cells)}, the rarest {min(found.cells.values(), default=0)} times;"
        f" never: {', '.join(found.empty) or 'none'}",
        f"{found.wrong} went wrong",
    ]
    for base, number, label, wrong in found.findings:
        lines.append(f"  {re.sub(r'[^ -~]', '?', wrong)}: base {base}, mutant {number}, {label[1]} at {label[0]}")
    return "\n".join(lines)
