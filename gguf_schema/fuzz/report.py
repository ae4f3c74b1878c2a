"""What was found: for people, and as JSON with stable keys."""

import json
import shlex
from collections.abc import Sequence
from typing import Any

from ..terminal import printable
from . import Finding, Report
from .folder import record


def again(report: Report, finding: Finding, command: Sequence[str]) -> str:
    """The command that shows a finding again, where its file was not saved."""
    only = ["gguf-schema", "fuzz", "--seed", str(report.seed), "--start", str(finding.case.index), "--count", "1"]
    return shlex.join([*only, "--", *command])


def records(report: Report, command: Sequence[str]) -> list[dict[str, Any]]:
    """The findings that were not saved, as those that were (see `folder.keep`)."""
    return [
        {
            "kind": finding.kind,
            "detail": finding.outcome.detail,
            "reproduce": again(report, finding, command),
            **record(finding.case, finding.case.data),
            "stderr": finding.outcome.told,
        }
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
        lines.append(printable(f"{what} ({report.counts[signature]} files)"))
        done = f"{one['operation']} at {one['path']}" if one["path"] else one["operation"]
        rule = f", rule {one['rule']}" if one["rule"] else ""
        lines.append(printable(f"  {done}{rule}, expected {one['expected']}; {one['size']} bytes"))
        lines.append(printable(f"  {one['reproduce']}"))
    runs = report.outcomes.total()
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(report.outcomes.items()))
    rate = runs / report.seconds if report.seconds else 0.0
    lines.append(f"{runs} files{f' ({counted})' if counted else ''}, {len(found)} findings, {rate:.0f} files a second")
    if report.unjudged:
        lines.append(
            f"{report.unjudged} verdicts were not compared: it is not known what is right, or no profile is given"
        )
    lines.append(f"seed {report.seed}: go on with --start {report.next}")
    return "\n".join(lines)
