"""What was found: for people, and as JSON with stable keys."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..terminal import printable
from ..validate import Profile
from .finding import WRONG, Finding, Found, Report
from .folder import described, keep
from .reader import Reader


def again(report: Report, finding: Finding, readers: Sequence[Reader], profile: Profile | None = None) -> str:
    """The command that shows a finding again, where its file was not saved."""
    only = ["gguf-schema", "fuzz", "--seed", str(report.seed), "--start", str(finding.case.index), "--count", "1"]
    reader, *against = [readers[index] for index in finding.readers]
    compared = ["--profile", profile.name] if profile and finding.kind in WRONG else []
    for other in against:
        compared += ["--against", shlex.join(other.command)]
    return shlex.join([*only, *reader.options(), *compared, "--", *reader.command])


def records(
    report: Report,
    found: Sequence[Found],
    readers: Sequence[Reader],
    profile: Profile | None = None,
    folder: str | None = None,
) -> list[dict[str, Any]]:
    """The findings, for JSON; they are saved if there is a folder for that (see `folder.keep`).

    Args:
        report: What came of all runs; if a finding cannot be saved, that is noted there.
        found: The findings.
        readers: The reader, and the one that it was compared with.
        profile: What verdicts were compared with.
        folder: Where they are saved.
    """
    made = []
    for one in found:
        if folder is not None:
            try:
                made.append(keep(folder, one, readers, profile))
                continue
            except OSError as error:
                report.trouble = str(error)
        whole = one._replace(data=one.finding.case.data)  # which is the file that the command shows
        made.append(described(whole, readers, [again(report, one.finding, readers, profile)], profile))
    return made


def refusals(report: Report) -> Iterator[str]:
    """For each reader that refuses unchanged files, which are valid, how many those are."""
    for who, unchanged in (("", report.unchanged), ("the other command ", report.unchanged_against)):
        if unchanged["reject"]:
            yield (
                f"{who}refused {unchanged['reject']} of {_counted(unchanged.total(), 'unchanged file')}: "
                "mutants of them tell little"
            )


def as_json(report: Report, found: list[dict[str, Any]]) -> str:
    """One object.

    Args:
        report: What came of all runs.
        found: A record of each finding.
    """
    return json.dumps(
        {
            "seed": report.seed,
            "start": report.start,
            "next": report.next,
            "interrupted": report.is_interrupted,
            "trouble": report.trouble,
            "outcomes": dict(sorted(report.outcomes.items())),
            "outcomes_against": dict(sorted(report.against.items())),
            "unchanged": dict(sorted(report.unchanged.items())),
            "unchanged_against": dict(sorted(report.unchanged_against.items())),
            "unjudged": report.unjudged,
            "findings": found,
        },
        indent=1,
    )


def as_text(report: Report, found: list[dict[str, Any]], profile: Profile | None = None) -> str:
    """Each finding with how to see it again, and at the end how many runs ended how."""
    lines = [printable(line) for one in found for line in _finding(one, bool(report.against))]
    runs = report.outcomes.total()
    ends = f" ({_each(report.outcomes)})" if runs else ""
    rate = runs / report.seconds if report.seconds else 0.0
    lines.append(f"{_counted(runs, 'file')}{ends}, {_counted(len(found), 'finding')}, {rate:.0f} files a second")
    if report.against:
        lines.append(f"the other command: {_each(report.against)}")
    lines += refusals(report)
    if report.unjudged:
        why = "no profile is given" if profile is None else "it is not known what is right"
        lines.append(f"{_counted(report.unjudged, 'verdict')} not compared: {why}")
    if report.is_interrupted:
        lines.append("interrupted")
    if report.trouble:
        lines.append(printable(f"trouble: {report.trouble}"))
    lines.append(f"seed {report.seed}: go on with --start {report.next}")
    return "\n".join(lines)


def _finding(one: dict[str, Any], are_two: bool) -> Iterator[str]:
    """What to say of a record."""
    what = f"{one['kind']}: {one['detail']}" if one["detail"] else one["kind"]
    yield f"{what} ({_counted(one['count'], 'file')}, the first after {one['seconds']:.1f} s)"
    if are_two:
        yield f"  by {', and '.join(one[name] for name in ('command', 'against') if name in one)}"
    if judged := one.get("profile"):
        yield f"  profile {judged['name']}: {_for(judged['verdict'], judged['codes'])}"
    faults = [f"{fault['code']} at {fault['path'] or 'the file'}, byte {fault['start']}" for fault in one["faults"]]
    rest = [f"{len(faults) - 1} more"] if len(faults) > 1 else []
    yield f"  the file: {_counted(one['size'], 'byte')}; by default {_for(one['verdict'], [*faults[:1], *rest])}"
    made = one["made_from"]
    done = f"{made['operation']} at {made['path']}" if made["path"] else made["operation"]
    rule = f", rule {made['rule']}" if made["rule"] else ""
    yield f"  made from {_counted(made['size'], 'byte')}: {done}{rule}, by default expected {made['expected']}"
    yield from (f"  {one[name]}" for name in ("reproduce", "reproduce_against") if name in one)


def _for(word: str, reasons: Sequence[str]) -> str:
    return f"{word} for {'; '.join(reasons)}" if reasons else word


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _each(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(outcomes.items()))
