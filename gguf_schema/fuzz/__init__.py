"""Any reader, tried on valid files and on mutants of them: what crashes it, what it hangs on, what it judges wrongly.

cases       the files, by seed and index
running     one run, within limits
outcomes    what came of it
reader      a command, ready to be run
finding     what is found, and what the same is told as
minimise    small files that do the same
folder      labelled files, and findings, on disk
stream      labelled files on a pipe
report      what was found, as text and as JSON
coverage    what of the format a corpus exercises
seeds       a few small files that exercise as much as many
dictionary  words of the format
export      those two as a folder for other fuzzers
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from ..errors import GGUFError
from ..mutate import Label
from ..validate import PROFILES, REJECT, Fault, Profile, check, verdict
from ..validate.profiles import BY_CODE
from .cases import Case, cases, cases_behind_base
from .finding import DISAGREEMENT, VERDICTS, WRONG, Finding, Found, Report, merged, together
from .minimise import minimised
from .outcomes import Outcome
from .reader import Reader, Reads, reader
from .running import Limits, Stopped

OWN = ("default", "strict")
"""Profiles whose verdict is told from the label. That of the others is the validator's: it knows what they refuse."""

WAITING = 4
"""Cases a job that are begun before the first of them is looked at."""

MOST_RUNS, MOST_HANGS = 150, 12
"""Runs that a finding may take to be minimised: a hang takes as long as it may each time."""

Show = Callable[[int, int], None]
Tried = tuple[str | None, list[Outcome], float]
"""The right verdict, if it is known; what came of each reader; and when."""


def fuzz(
    reader: Reader,
    seed: int,
    start: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    profile: Profile | None = None,
    show: Show = lambda done, whole: None,
    against: Reader | None = None,
) -> Report:
    """Run a reader on cases, several at a time, but the first alone, which tells whether it can be run.

    KeyboardInterrupt ends it, and so does what stops the readers, or any trouble behind the first case: what was found
    so far is returned.

    Args:
        reader: The reader.
        seed: Of the cases.
        start: The index of the first.
        count: How many; None is no end.
        seconds: How long to begin new ones; None is no end.
        jobs: Runs at a time.
        profile: What verdicts are compared with; without one they are not.
        show: Called with what is done and the whole.
        against: Another reader, that should do the same.

    Raises:
        GGUFError: A reader cannot be run.
        OSError: Not even one file can be tried.
    """
    report = Report(seed, start, start)
    readers = _both(reader, against)
    began = time.monotonic()

    def tried(case: Case) -> Tried:
        outcomes = [one.read(case.data) for one in readers]
        right = wanted(case.label, case.data, profile) if outcomes[0].kind in VERDICTS else None
        return right, outcomes, time.monotonic() - began

    def take() -> None:
        case, future = waiting.popleft()
        report.note(case, *future.result())
        if seconds is None:
            show(report.next - start, count or 1)
        else:
            show(int(1000 * min(seconds, time.monotonic() - began)), int(1000 * seconds))

    waiting: deque[tuple[Case, Future[Tried]]] = deque()
    pool = ThreadPoolExecutor(jobs)
    try:
        for case in cases_behind_base(seed, start):
            is_over = seconds is not None and time.monotonic() - began >= seconds
            if is_over or (count is not None and case.index >= start + count):
                break
            waiting.append((case, pool.submit(tried, case)))
            if len(waiting) >= (WAITING * jobs if report.unchanged else 1):
                take()
        while waiting:
            take()
    except BaseException as error:
        _stop(readers)
        if isinstance(error, KeyboardInterrupt | Stopped):
            report.is_interrupted = True
        elif isinstance(error, GGUFError | OSError) and report.unchanged:
            report.trouble = str(error)
        else:
            raise
    finally:
        pool.shutdown(cancel_futures=True)
    report.seconds = time.monotonic() - began
    return report


def _both(reader: Reader, against: Reader | None) -> list[Reader]:
    return [reader] if against is None else [reader, against]


def _stop(readers: list[Reader]) -> None:
    for one in readers:
        one.stop.set()


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
        return _said(check(data), profile)
    if label.expected in ("accept", "reject"):
        return label.expected
    if label.expected == "warn" and profile.name == "default":
        return "accept"
    if label.expected == "warn" and label.rule is not None and BY_CODE[label.rule].is_forbidden:
        return "reject"
    return None


def _said(faults: list[Fault], profile: Profile) -> str:
    return "reject" if verdict(faults, profile) == REJECT else "accept"


def smallest_of_each(
    reader: Reader,
    report: Report,
    jobs: int = 1,
    profile: Profile | None = None,
    show: Show = lambda done, whole: None,
    against: Reader | None = None,
) -> list[Found]:
    """The findings with a small file for each (see `smallest`).

    Where it is interrupted, or there is trouble, those that are not done stay as they are.

    Args:
        reader: The reader.
        report: What was found; whether this was interrupted, or what trouble there was, is noted there.
        jobs: Runs at a time.
        profile: What verdicts were compared with.
        show: Called with what is done and the whole.
        against: The reader that it was compared with.
    """
    found = report.found()
    pool = ThreadPoolExecutor(jobs)
    futures = [pool.submit(smallest, reader, one.finding, profile, against) for one in found]
    try:
        for index, future in enumerate(futures):
            try:
                found[index] = found[index]._replace(data=future.result())
            except Stopped:
                report.is_interrupted = True
            except (GGUFError, OSError) as error:
                report.trouble = str(error)
            show(index + 1, len(found))
    except KeyboardInterrupt:
        report.is_interrupted = True
    finally:
        _stop(_both(reader, against))
        pool.shutdown(cancel_futures=True)
    return merged(found)


def smallest(reader: Reads, finding: Finding, profile: Profile | None, against: Reads | None = None) -> bytes:
    """A small file that shows the same.

    A crash must be the same one. Of a wrong verdict, or two that differ, the right one must stay as it is, and so must
    the rule that is broken, or where the label tells none, one of those that the validator tells: where it does not
    agree with the label the file stays as it is.

    Args:
        reader: The reader.
        finding: The finding.
        profile: What verdicts were compared with.
        against: The reader that it was compared with.

    Raises:
        GGUFError: The reader cannot be run.
        OSError: A file cannot be tried.
        Stopped: Runs were ended.
    """
    case, outcome = finding.case, finding.outcome
    both = (reader, against)
    readers = [one for index in finding.readers if (one := both[index]) is not None]
    judge = PROFILES["default"] if finding.kind == DISAGREEMENT else profile if finding.kind in WRONG else None
    right, kept = _at_stake(finding, judge) if judge is not None else ("", set())

    def holds(data: bytes) -> bool:
        if judge is not None:
            left = check(data)
            if right != _said(left, judge) or (kept and not kept & _codes(left)):
                return False
        found = together([one.read(data) for one in readers])
        return (found.kind, found.detail) == (outcome.kind, outcome.detail)

    return minimised(case, holds, MOST_HANGS if finding.kind == "hang" else MOST_RUNS)


def _at_stake(finding: Finding, judge: Profile) -> tuple[str, set[str]]:
    """What a small file must keep: the right verdict, and one of these rules that are broken, if there are any.

    They are those that a file is refused for; of one that is not refused, those that its base does not break.
    """
    case = finding.case
    faults = check(case.data)
    codes = _codes(faults)
    right = WRONG.get(finding.kind) or _said(faults, judge)
    reasons = codes & judge.refuses if right == REJECT else codes - _codes(check(case.base.data))
    return right, ({case.label.rule or ""} & reasons) or reasons


def _codes(faults: list[Fault]) -> set[str]:
    return {fault.code for fault in faults}


__all__ = [
    "Case",
    "Finding",
    "Found",
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
