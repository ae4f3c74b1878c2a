"""Every fault of a file, with path and bytes, and whether it will load: here, and in named readers.

`profiles` has the rules and the judges, as data. `unreadable`, `header`, `metadata`, `infos`, `data`, `meaning`,
`vocabulary`, `content` and `weights` have the rules of each family, and the functions that look for what breaks them in
a `subject`; `beyond` lets them look behind some faults that end the parse.
Those of `weights` read all tensor data, and only if that is asked for.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..errors import Finding
from ..file import any_source
from ..sources import Source
from . import beyond, unreadable, weights
from .profiles import BY_CODE, PROFILES, RULES, Profile
from .rule import SEVERITIES, Rule
from .subject import Progress, Subject

MOST = 1000
"""Findings of one code that are told of a file."""

ACCEPT, WARN, REJECT = "accept", "warn", "reject"


class Fault(NamedTuple):
    """One thing to say of a file.

    Attributes:
        code: The rule that is broken.
        severity: error, warning, or note.
        path: The schema path of the field at fault.
        start: Absolute offset of its first byte.
        end: Absolute offset after its last byte.
        message: What was found, and what is allowed.
    """

    code: str
    severity: str
    path: str
    start: int
    end: int
    message: str


WITHOUT_DATA = tuple(rule for rule in RULES if rule not in weights.RULES)
"""The rules that tensor data is not read for."""


def check(source: Any, data: bool = False, progress: Progress = lambda done, size: None) -> list[Fault]:
    """Everything that there is to say of a file, in the order of severity and of the bytes.

    Args:
        source: A path, a bytes-like object, or a binary file object.
        data: Read the tensor data, too, and look for numbers that are none. It is read in pieces, never mapped.
        progress: Called while tensor data is read, with the byte that was reached and the bytes of the file.

    Raises:
        GGUFError: The file shrinks while its data is read.
        OSError: The path cannot be read.
    """
    opened = any_source(source)
    try:
        return faults(opened, RULES if data else WITHOUT_DATA, progress)
    finally:
        opened.close()


def faults(source: Source, rules: tuple[Rule, ...], progress: Progress = lambda done, size: None) -> list[Fault]:
    """What breaks these rules; also behind faults that end our parse, and that some reader passes by."""
    subject = Subject(source, progress)
    passed: list[Finding] = []
    while len(passed) < beyond.MOST and (failure := next(unreadable.failure(subject), None)) is not None:
        patched = beyond.patched(subject, failure.code)
        if patched is None:
            break
        passed.append(failure)
        subject = Subject(patched, progress)
    written = {failure.path for failure in passed}
    findings = chain(passed, (finding for finding in _findings(subject, rules) if finding.path not in written))
    found = _some_of_each(findings, {rule.code for rule in rules})
    places = subject.places({finding.path for finding in found if finding.offset is None})
    made = [_fault(finding, places, subject.size) for finding in found]
    return sorted(made, key=lambda fault: (SEVERITIES.index(fault.severity), fault.start, fault.code))


def _findings(subject: Subject, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    """What the functions of the rules find, each called once."""
    for find in dict.fromkeys(rule.find for rule in rules):
        yield from find(subject)


def _some_of_each(findings: Iterator[Finding], codes: set[str]) -> list[Finding]:
    """The findings with these codes; of a code that has very many the first, the last of which tells how many more."""
    counts: Counter[str] = Counter()
    last: dict[str, int] = {}
    kept: list[Finding] = []
    for finding in findings:
        if finding.code in codes:
            counts[finding.code] += 1
            if counts[finding.code] <= MOST:
                last[finding.code] = len(kept)
                kept.append(finding)
    for code, count in counts.items():
        if count > MOST:
            finding = kept[last[code]]
            kept[last[code]] = finding._replace(message=f"{finding.message} (and {count - MOST} more of this kind)")
    return kept


def _fault(finding: Finding, places: dict[str, tuple[int, int]], size: int) -> Fault:
    start, end = places.get(finding.path, (0, size)) if finding.offset is None else (finding.offset, finding.end)
    severity = BY_CODE[finding.code].severity
    return Fault(finding.code, severity, finding.path, start, size if end is None else end, finding.message)


def verdict(found: list[Fault], profile: Profile) -> str:
    """What a profile says of a file with these faults: accept, warn or reject."""
    codes = {fault.code for fault in found}
    if codes & profile.refuses:
        return REJECT
    return WARN if codes & profile.warns else ACCEPT


__all__ = ["PROFILES", "RULES", "Fault", "Profile", "Rule", "check", "verdict"]
