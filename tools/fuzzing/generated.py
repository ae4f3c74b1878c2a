"""Files that hypothesis makes through our reader: valid ones, and odd ones of everything that the format can hold."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gguf_schema import strategies
from gguf_schema.generate import Extent
from gguf_schema.generate.files import VALID
from gguf_schema.validate import PROFILES, Fault, verdict
from tools.chunks import hash_of
from tools.fuzzing.exercise import WrongError, escape, exercise_all, watched

PART = 2500
"""Files that are made from one seed."""

ODD = Extent(items=(0, 6), levels=4, valid=False)
EXTENTS = {"valid": VALID, "odd": ODD}


class Generated(NamedTuple):
    """What came of the files.

    Attributes:
        files: How many there were.
        distinct: How many different ones.
        size: Bytes of all together.
        largest: Bytes of the largest.
        verdicts: How many of them are accepted, warned of, refused.
        wrong: What went wrong, and the first bytes of a file of each.
    """

    files: int
    distinct: int
    size: int
    largest: int
    verdicts: Counter[str]
    wrong: dict[str, str]


def run(count: int, first: int, show: Callable[[int, int], None]) -> Generated:
    """Make and try files.

    Args:
        count: How many.
        first: The first seed; every `PART` files have one.
        show: Called with the files that are done, and all.
    """
    hashes: set[bytes] = set()
    verdicts: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    sizes: list[int] = []

    def tried(made: tuple[str, bytes]) -> None:
        kind, data = made
        restart()
        problem, found = escape(exercise_all, data)
        if not problem:
            problem, _ = escape(_as_meant, kind, found)
        if problem:
            wrong.setdefault(problem, f"{len(data)} bytes: {data[:200].hex()}")
        else:
            verdicts[verdict(found, PROFILES["default"])] += 1
        hashes.add(hash_of(data))
        sizes.append(len(data))
        show(len(sizes), count)

    files = st.one_of(*(st.tuples(st.just(kind), strategies.files(extent=extent)) for kind, extent in EXTENTS.items()))
    with watched() as restart:
        for number, start in enumerate(range(0, count, PART)):
            limits = settings(
                max_examples=min(PART, count - start),
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            seed(first + number)(limits(given(files)(tried)))()
    return Generated(len(sizes), len(hashes), sum(sizes), max(sizes), verdicts, wrong)


def _as_meant(kind: str, found: list[Fault]) -> None:
    """A valid file has no fault that is worse than a note."""
    if kind == "valid" and (worse := {fault.code for fault in found if fault.severity != "note"}):
        raise WrongError(f"a valid file has {sorted(worse)}")


def text(found: Generated) -> str:
    """What came of it, for people."""
    verdicts = ", ".join(f"{name} {count}" for name, count in sorted(found.verdicts.items()))
    return "\n".join(
        [
            f"{found.files} files, {found.distinct} distinct; {found.size // found.files} bytes on average,"
            f" the largest {found.largest}; {verdicts}",
            f"{len(found.wrong)} kinds of faults",
            *(f"  {problem}: {example}" for problem, example in found.wrong.items()),
        ]
    )
