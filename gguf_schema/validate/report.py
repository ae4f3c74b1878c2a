"""What is said of files: for people, and as JSON with stable keys."""

import json
from collections import Counter
from typing import NamedTuple

from ..terminal import printable
from . import REJECT, Fault, verdict
from .profiles import BY_CODE, PROFILES, Profile
from .rule import ERROR, SEVERITIES

WIDTH = 78
"""Columns of the explanation of a rule."""


class Judged(NamedTuple):
    """A file and all that there is to say of it.

    Attributes:
        name: Its path, as it was given.
        faults: What was found.
    """

    name: str
    faults: list[Fault]


def as_json(files: list[Judged], profiles: list[Profile]) -> str:
    """One object: `files`, with a record for each file and profile."""
    records = [
        {
            "file": file.name,
            "profile": profile.name,
            "verdict": verdict(file.faults, profile),
            "findings": [fault._asdict() for fault in file.faults],
        }
        for file in files
        for profile in profiles
    ]
    return json.dumps({"files": records}, indent=1)


def as_text(files: list[Judged], profile: Profile) -> str:
    """Each file with its verdict and what was found; at the end, of several files, how many have which verdict."""
    lines = []
    verdicts = Counter(verdict(file.faults, profile) for file in files)
    for file in files:
        lines.append(f"{printable(file.name)}: {verdict(file.faults, profile)} ({profile.name})")
        lines += [f"  {_line(fault, profile)}" for fault in file.faults]
    if len(files) > 1:
        counted = ", ".join(f"{count} {word}" for word, count in sorted(verdicts.items()))
        lines.append(f"{len(files)} files: {counted}")
    return "\n".join(lines)


def _line(fault: Fault, profile: Profile) -> str:
    """A fault; where the profile judges it otherwise than its severity says, with a word on that."""
    is_refused, is_error = fault.code in profile.refuses, fault.severity == ERROR
    word = "" if is_refused == is_error else " (refused)" if is_refused else f" ({profile.name} does not mind)"
    place = f"{fault.path} at bytes {fault.start} to {fault.end}"
    return printable(f"{fault.severity}{word}: {place}: {fault.message} [{fault.code}]")


def for_readers(files: list[Judged]) -> str:
    """For each file a line a profile: whether it loads there, and if not, why; then what there is to say of it."""
    lines = []
    for file in files:
        lines.append(f"{printable(file.name)}:")
        for profile in PROFILES.values():
            reasons = [fault for fault in file.faults if fault.code in profile.refuses]
            if reasons:
                first = reasons[0]
                why = printable(f"{first.path} at byte {first.start}: {first.message} [{first.code}]")
                lines.append(f"  refused by {profile.name} because {why}")
            else:
                lines.append(f"  loads in {profile.name} ({profile.describes})")
        lines += [f"  {_line(fault, PROFILES['default'])}" for fault in file.faults]
    return "\n".join(lines)


def explained(code: str) -> str | None:
    """What a rule is about, in words; None if there is none of that code."""
    rule = BY_CODE.get(code)
    if rule is None:
        return None
    refused = ", ".join(profile.name for profile in PROFILES.values() if code in profile.refuses)
    return "\n".join(
        [
            f"{rule.code} ({rule.severity}{', forbidden by the specification' if rule.is_forbidden else ''})",
            f"  {rule.title}.",
            f"  Field: {rule.path}",
            f"  Source: {rule.source}",
            f"  To mend it: {rule.mend}.",
            f"  Refused by: {refused or 'nobody'}",
        ]
    )


def is_refused(files: list[Judged], profiles: list[Profile], fail_on: str) -> bool:
    """Whether a profile rejects a file, or it has a fault as severe as this, a warning or a note."""
    verdicts = {verdict(file.faults, profile) for file in files for profile in profiles}
    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != ERROR else ()
    return REJECT in verdicts or any(fault.severity in counted for file in files for fault in file.faults)
