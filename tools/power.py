#!/usr/bin/env python3
"""Does fuzzing find what is known to be wrong with the readers that are installed?

    python tools/power.py --time 600

No file with a fault is read: all are made from generated ones, by seed. Each reader is run on mutants until all classes
of faults that it is known for are found, or the time is over. Then a small file is made of each finding. A crash or a
hang is what happened; what is accepted wrongly is told from the mutant's label, and a tensor that nobody wrote from
how many there were before the change.

Exit status: 0 all classes are found, 1 one is not, 2 usage, or a reader is not installed, 130 interrupted.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.fuzz import Case, Finding, Limits, Outcome, cases, smallest, wanted
from gguf_schema.validate import PROFILES
from tools.readers import READERS, Running, running

LIMITS = Limits(1.0, 512)
OURS = PROFILES["default"]

NAMELESS = "a tensor without a name"


class Fault(NamedTuple):
    """A class of faults.

    Attributes:
        name: What the reader does.
        reader: The reader.
        is_shown: Whether a finding is of this class.
    """

    name: str
    reader: str
    is_shown: Callable[[Finding], bool]


def _crashes(finding: Finding, *texts: str) -> bool:
    """A crash of which this was said."""
    told = f"{finding.outcome.detail}\n{finding.outcome.told}"
    return finding.kind == "crash" and any(text in told for text in texts)


def _is_accepted(finding: Finding, *rules: str) -> bool:
    """A file that was accepted, and breaks one of these rules by its label."""
    return finding.kind == "wrongly-accepted" and finding.case.label.rule in rules


def _is(finding: Finding, kind: str) -> bool:
    return finding.kind == kind


def _raises(finding: Finding, name: str) -> bool:
    """An error of this class."""
    return finding.kind == "raised" and finding.outcome.detail.startswith(f"{name} ")


FAULTS = (
    Fault("aborts on an empty key", "llama.cpp", lambda found: _crashes(found, "GGML_ASSERT(!key.empty())")),
    Fault(
        "aborts on an alignment that is no UINT32",
        "llama.cpp",
        lambda found: _crashes(found, "type_to_gguf_type<T>::value == type", "get_ne() == 1"),
    ),
    Fault("divides by a dimension of 0", "llama.cpp", lambda found: _crashes(found, "SIGFPE")),
    Fault("hangs on large counts", "gguf-py", lambda found: _is(found, "hang")),
    Fault("wraps offsets near 2^64", "gguf-py", lambda found: _is_accepted(found, "offset-wraps")),
    Fault("returns short arrays", "gguf-py", lambda found: _is_accepted(found, "array-cut", "last-array-cut")),
    Fault("invents a tensor", "gguf-py", lambda found: _is(found, "invented")),
    *(
        Fault(f"raises {name}", "gguf-py", partial(_raises, name=name))
        for name in ("IndexError", "KeyError", "RecursionError", "UnicodeDecodeError")
    ),
)
"""What gguf 0.19.0 and ggml-python 0.0.45 are known for."""


class Watched:
    """A reader that also tells when it sees a tensor without a name."""

    def __init__(self, process: Running) -> None:
        self.process = process

    def read(self, data: bytes) -> Outcome:
        """As of `Running`."""
        outcome = self.process.read(data)
        return outcome._replace(detail=NAMELESS) if "" in _tensors(outcome) else outcome


def _tensors(outcome: Outcome) -> list[str]:
    """The names of the tensors that a reader sees."""
    return json.loads(outcome.told)["tensors"] if outcome.kind == "accept" else []


class Hit(NamedTuple):
    """The first finding of a class.

    Attributes:
        fault: The class.
        finding: The finding.
        seconds: After how long.
        files: After how many files, with this one.
        small: A small file that shows it.
    """

    fault: Fault
    finding: Finding
    seconds: float
    files: int
    small: bytes


def kind_of(case: Case, outcome: Outcome) -> str | None:
    """What a reader does wrong on a file; None if nothing, as far as is known."""
    if case.label.path == "tensor_count" and len(_tensors(outcome)) > len(case.base.infos):
        return "invented"
    if outcome.kind not in ("accept", "reject"):
        return outcome.kind
    right = wanted(case.label, case.data, OURS)
    return None if right in (None, outcome.kind) else f"wrongly-{outcome.kind}ed"


def hunt(name: str, seed: int, end: float, stop: Event) -> list[Hit]:
    """Run a reader until all of its faults are found, or until a time of `time.monotonic`; then make small files."""
    began = time.monotonic()
    left = [fault for fault in FAULTS if fault.reader == name]
    hits = []
    with running(name, LIMITS) as process:
        watched = Watched(process)
        for case in cases(seed):
            if not left or stop.is_set() or time.monotonic() >= end:
                break
            outcome = watched.read(case.data)
            kind = kind_of(case, outcome)
            finding = Finding(kind or "", case, outcome)
            for fault in [fault for fault in left if kind is not None and fault.is_shown(finding)]:
                left.remove(fault)
                hits.append(Hit(fault, finding, time.monotonic() - began, case.index + 1, case.data))
        return [hit if stop.is_set() else hit._replace(small=_small(watched, hit.finding)) for hit in hits]


def _small(watched: Watched, finding: Finding) -> bytes:
    return smallest(watched, finding, OURS)


def record(fault: Fault, hit: Hit | None) -> dict[str, Any]:
    """A class and what was found of it, for JSON."""
    found = {"fault": fault.name, "reader": fault.reader, "found": hit is not None}
    if hit is None:
        return found
    label = hit.finding.case.label
    return {
        **found,
        "seconds": round(hit.seconds, 2),
        "files": hit.files,
        "bytes": len(hit.finding.case.data),
        "smallest": len(hit.small),
        "small": hit.small.hex(),
        "operation": label.operation,
        "path": label.path,
        "outcome": f"{hit.finding.kind} {hit.finding.outcome.detail}".strip(),
    }


def as_text(records: Sequence[dict[str, Any]]) -> str:
    """A table, and the median size."""
    lines = [f"{'reader':10} {'fault':42} {'seconds':>8} {'files':>7} {'bytes':>6} {'small':>6}  found by"]
    for one in records:
        start = f"{one['reader']:10} {one['fault']:42}"
        if not one["found"]:
            lines.append(f"{start} not found")
            continue
        by = f"{one['operation']} at {one['path']}"
        lines.append(f"{start} {one['seconds']:8.2f} {one['files']:7} {one['bytes']:6} {one['smallest']:6}  {by}")
    sizes = [one["smallest"] for one in records if one["found"]]
    if sizes:
        lines.append(f"{len(sizes)} of {len(records)} found; median {statistics.median(sizes):g} bytes")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Hunt with all readers at the same time, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=600.0, metavar="SECONDS", help="how long to look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    names = list(dict.fromkeys(fault.reader for fault in FAULTS))
    missing = [READERS[name].package for name in names if not READERS[name].is_installed]
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        return 2
    stop, status = Event(), 0
    end = time.monotonic() + args.time
    with ThreadPoolExecutor(len(names)) as pool:
        futures = [pool.submit(hunt, name, args.seed, end, stop) for name in names]
        try:
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            stop.set()
            status = 130
    hits = {hit.fault: hit for future in futures for hit in future.result()}
    records = [record(fault, hits.get(fault)) for fault in FAULTS]
    print(json.dumps(records, indent=1) if args.json else as_text(records))
    return status or int(len(hits) < len(FAULTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
