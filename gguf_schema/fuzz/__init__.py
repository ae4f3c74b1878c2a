"""Any reader, tried on valid files and on mutants of them: what crashes it, what it hangs on, what it judges wrongly.

cases       the files, by seed and index
running     one run, within limits, and what came of it
minimise    small files that do the same
folder      labelled files, and findings, on disk
report      what was found, as text and as JSON
coverage    what of the format a corpus exercises
"""

import os
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event
from typing import NamedTuple

from ..mutate import Label
from ..validate import REJECT, Profile, check, verdict
from ..validate.profiles import BY_CODE
from .cases import Case, cases
from .minimise import minimised
from .running import Limits, Outcome, Stopped, run

OWN = ("default", "strict")
"""Profiles whose verdict is told from the label. That of the others is the validator's: it knows what they refuse."""

WAITING = 4
"""Cases a job that are begun before the first of them is looked at."""

MOST_RUNS = {"hang": 12}
MOST_RUNS_ELSE = 150
"""Runs that a finding may take to be minimised, by what it is: a hang takes as long as it may each time."""

Signature = tuple[str, ...]
Show = Callable[[int, int], None]


class Finding(NamedTuple):
    """Something that a reader does wrong.

    Attributes:
        kind: crash, hang, memory, or what a wrong verdict was: wrongly-accepted, wrongly-rejected.
        case: The first file that showed it.
        outcome: What came of that.
    """

    kind: str
    case: Case
    outcome: Outcome

    @property
    def signature(self) -> Signature:
        """What is the same of findings that are told once: where it was, or what was done to which kind of field."""
        if self.outcome.is_located:
            return self.kind, self.outcome.detail
        label = self.case.label
        return self.kind, self.outcome.detail, label.operation, label.path.rpartition(".")[2].partition("[")[0]


@dataclass
class Report:
    """What came of all runs.

    Attributes:
        seed: Of the cases.
        start: The index of the first.
        next: That of the first that was not run.
        outcomes: How many runs ended how.
        unjudged: How many were accepted or rejected where it is not known what is right.
        findings: One of each signature, in the order of the cases.
        counts: How many there were of each.
        seconds: How long it took.
        is_interrupted: Whether somebody wanted no more.
        of_base: Of the last base that had a finding itself: its seed, what was found, the detail, and the signature.
    """

    seed: int
    start: int
    next: int
    outcomes: Counter[str] = field(default_factory=Counter)
    unjudged: int = 0
    findings: dict[Signature, Finding] = field(default_factory=dict)
    counts: Counter[Signature] = field(default_factory=Counter)
    seconds: float = 0.0
    is_interrupted: bool = False
    of_base: tuple[int, str, str, Signature] = (-1, "", "", ())


@dataclass(frozen=True)
class Reader:
    """A command, ready to be run on bytes.

    Attributes:
        command: The command and its arguments (see `running.arguments`).
        limits: What a run may take.
        folder: Where files are put for it.
        stop: Set to end all runs.
    """

    command: Sequence[str]
    limits: Limits
    folder: Path
    stop: Event

    def read(self, data: bytes) -> Outcome:
        """What it does with a file."""
        if self.stop.is_set():
            raise Stopped
        handle, path = tempfile.mkstemp(".gguf", dir=self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            return run(self.command, path, self.limits, self.stop)
        finally:
            os.unlink(path)


@contextmanager
def reader(command: Sequence[str], limits: Limits) -> Iterator[Reader]:
    """A reader with a folder for its files, which is gone afterwards, as are all runs."""
    with tempfile.TemporaryDirectory(prefix="gguf-fuzz-") as folder:
        made = Reader(command, limits, Path(folder), Event())
        try:
            yield made
        finally:
            made.stop.set()


def fuzz(
    reader: Reader,
    seed: int,
    start: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    profile: Profile | None = None,
    show: Show = lambda done, whole: None,
) -> Report:
    """Run a reader on cases, several at a time. KeyboardInterrupt ends it; what was found so far is returned.

    Args:
        reader: The reader.
        seed: Of the cases.
        start: The index of the first.
        count: How many; None is no end.
        seconds: How long to begin new ones; None is no end.
        jobs: Runs at a time.
        profile: What verdicts are compared with; without one they are not.
        show: Called with what is done and the whole.

    Raises:
        GGUFError: The reader cannot be run.
    """
    report = Report(seed, start, start)
    began = time.monotonic()

    def tried(case: Case) -> tuple[str | None, Outcome]:
        outcome = reader.read(case.data)
        return wanted(case.label, case.data, profile) if outcome.kind in ("accept", "reject") else None, outcome

    def take() -> None:
        case, future = waiting.popleft()
        right, outcome = future.result()
        _note(report, case, right, outcome)
        if seconds is None:
            show(case.index + 1 - start, count or 1)
        else:
            show(int(1000 * min(seconds, time.monotonic() - began)), int(1000 * seconds))

    waiting: deque[tuple[Case, Future[tuple[str | None, Outcome]]]] = deque()
    pool = ThreadPoolExecutor(jobs)
    try:
        for case in islice(cases(seed, start), count):
            if seconds is not None and time.monotonic() - began >= seconds:
                break
            waiting.append((case, pool.submit(tried, case)))
            if len(waiting) >= WAITING * jobs:
                take()
        while waiting:
            take()
    except KeyboardInterrupt:
        report.is_interrupted = True
        reader.stop.set()
    except BaseException:
        reader.stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    report.seconds = time.monotonic() - began
    return report


def wanted(label: Label, data: bytes, profile: Profile | None) -> str | None:
    """The right verdict on a file, accept or reject; None where it is not known.

    Args:
        label: Of the file.
        data: Its bytes.
        profile: Whose verdict.
    """
    if profile is None:
        return None
    if profile.name not in OWN:
        return _judged(data, profile)
    if label.expected in ("accept", "reject"):
        return label.expected
    if label.expected == "warn" and profile.name == "default":
        return "accept"
    if label.expected == "warn" and label.rule is not None and BY_CODE[label.rule].is_forbidden:
        return "reject"
    return None


def _judged(data: bytes, profile: Profile) -> str:
    return "reject" if verdict(check(data), profile) == REJECT else "accept"


def _note(report: Report, case: Case, right: str | None, outcome: Outcome) -> None:
    report.next = case.index + 1
    report.outcomes[outcome.kind] += 1
    if outcome.kind not in ("accept", "reject"):
        kind = outcome.kind
    elif right is None or right == outcome.kind:
        report.unjudged += right is None
        return
    else:
        kind = f"wrongly-{outcome.kind}ed"
    finding = Finding(kind, case, outcome)
    signature = finding.signature
    if case.number is None:
        report.of_base = (case.base_seed, kind, outcome.detail, signature)
    elif report.of_base[:-1] == (case.base_seed, kind, outcome.detail) and not outcome.is_located:
        signature = report.of_base[-1]  # the change has nothing to do with it
    report.counts[signature] += 1
    report.findings.setdefault(signature, finding)


def smallest_of_each(
    reader: Reader, report: Report, jobs: int = 1, profile: Profile | None = None, show: Show = lambda done, whole: None
) -> list[bytes]:
    """A small file for each finding (see `smallest`). After KeyboardInterrupt those that are not done stay as they are.

    Args:
        reader: The reader.
        report: What was found; whether it was interrupted is noted there.
        jobs: Runs at a time.
        profile: What verdicts were compared with.
        show: Called with what is done and the whole.

    Raises:
        GGUFError: The reader cannot be run.
    """
    findings = list(report.findings.values())
    made = [finding.case.data for finding in findings]
    pool = ThreadPoolExecutor(jobs)
    futures = [pool.submit(smallest, reader, finding, profile) for finding in findings]
    try:
        for index, future in enumerate(futures):
            with suppress(Stopped):
                made[index] = future.result()
            show(index + 1, len(findings))
    except KeyboardInterrupt:
        report.is_interrupted = True
    finally:
        reader.stop.set()
        pool.shutdown(cancel_futures=True)
    return made


def smallest(reader: Reader, finding: Finding, profile: Profile | None) -> bytes:
    """A small file that shows the same.

    A crash must be the same one. Of a wrong verdict the right one must stay as it is, and so must the rule that is
    broken: here the validator is asked, and where it does not agree with the label the file stays as it is.

    Args:
        reader: The reader.
        finding: The finding.
        profile: What verdicts were compared with.

    Raises:
        GGUFError: The reader cannot be run.
        Stopped: Runs were ended.
    """
    case, outcome = finding.case, finding.outcome
    right = "reject" if finding.kind == "wrongly-accepted" else "accept"
    rule = {case.label.rule} & {fault.code for fault in check(case.data)}

    def holds(data: bytes) -> bool:
        if finding.kind.startswith("wrongly") and profile is not None:
            codes = {fault.code for fault in check(data)}
            if not rule <= codes or right != ("reject" if codes & profile.refuses else "accept"):
                return False
        found = reader.read(data)
        return (found.kind, found.detail) == (outcome.kind, outcome.detail)

    return minimised(case, holds, MOST_RUNS.get(finding.kind, MOST_RUNS_ELSE))


__all__ = [
    "Case",
    "Finding",
    "Limits",
    "Outcome",
    "Reader",
    "Report",
    "cases",
    "fuzz",
    "reader",
    "smallest",
    "smallest_of_each",
    "wanted",
]
