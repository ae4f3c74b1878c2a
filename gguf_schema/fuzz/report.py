"""What was found: for people, and as JSON with stable keys."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..terminal import printable
from .finding import WRONG, Finding, Report
from .folder import described
from .reader import Reader


def again(report: Report, finding: Finding, readers: Sequence[Reader], profile: str | None = None) -> str:
    """The command that shows a finding again, where its file was not saved."""
    only = ["gguf-schema", "fuzz", "--seed", str(report.seed), "--start", str(finding.case.index), "--count", "1"]
    reader, *against = [readers[index] for index in finding.readers]
    compared = ["--profile", profile] if profile and finding.kind in WRONG else []
    for other in against:
        compared += ["--against", shlex.join(other.command)]
    return shlex.join([*only, *reader.options(), *compared, "--", *reader.command])


def records(report: Report, readers: Sequence[Reader], profile: str | None = None) -> list[dict[str, Any]]:
    """The findings that were not saved, as those that were (see `folder.keep`).

    Args:
        report: What came of all runs.
        readers: The reader, and the one that it was compared with.
        profile: The name of the profile that verdicts were compared with.
    """
    return [
        described(finding, finding.case.data, readers, [again(report, finding, readers, profile)])
        for finding in report.findings.values()
    ]


def as_json(report: Report, found: list[dict[str, Any]]) -> str:
    """One object.

    Args:
        report: What came of all runs.
        found: A record of each finding.
    """
    counted = zip(found, report.findings, strict=True)
    return json.dumps(
        {
            "seed": report.seed,
            "start": report.start,
            "next": report.next,
            "interrupted": report.is_interrupted,
            "outcomes": dict(sorted(report.outcomes.items())),
            "outcomes_against": dict(sorted(report.against.items())),
            "unjudged": report.unjudged,
            "findings": [{"count": report.counts[signature], **one} for one, signature in counted],
        },
        indent=1,
    )


def as_text(report: Report, found: list[dict[str, Any]]) -> str:
    """Each finding with how to see it again, and at the end how many runs ended how."""
    lines = []
    for one, signature in zip(found, report.findings, strict=True):
        what = f"{one['kind']}: {one['detail']}" if one["detail"] else one["kind"]
        lines.append(printable(f"{what} ({report.counts[signature]} files, the first after {one['seconds']:.1f} s)"))
        if report.against:
            commands = [one[name] for name in ("command", "against") if name in one]
            lines.append(printable(f"  by {', and '.join(commands)}"))
        done = f"{one['operation']} at {one['path']}" if one["path"] else one["operation"]
        rule = f", rule {one['rule']}" if one["rule"] else ""
        lines.append(printable(f"  {done}{rule}, expected {one['expected']}; {one['size']} bytes"))
        lines += [printable(f"  {one[name]}") for name in ("reproduce", "reproduce_against") if name in one]
    runs = report.outcomes.total()
    counted = f" ({_counted(report.outcomes)})" if runs else ""
    rate = runs / report.seconds if report.seconds else 0.0
    lines.append(f"{runs} files{counted}, {len(found)} findings, {rate:.0f} files a second")
    if report.against:
        lines.append(f"the other command: {_counted(report.against)}")
    if report.unjudged:
        lines.append(
            f"{report.unjudged} verdicts were not compared: it is not known what is right, or no profile is given"
        )
    lines.append(f"seed {report.seed}: go on with --start {report.next}")
    return "\n".join(lines)


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(outcomes.items()))
