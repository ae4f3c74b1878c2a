"""What is found, and what the same is told as."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .cases import Case
from .outcomes import Outcome

VERDICTS = ("accept", "reject")
"""What a run may come to that is no fault by itself."""

DISAGREEMENT = "disagreement"
WRONG = {"wrongly-accepted": "reject", "wrongly-rejected": "accept"}
"""Wrong verdicts, and the right ones."""

Signature = tuple[str, ...]
Base = tuple[str, str, tuple[int, ...]]
"""What a base shows: kind, detail, and which readers do it."""


class Finding(NamedTuple):
    """Something that a reader does wrong, or two do differently.

    Attributes:
        kind: crash, hang, memory, what a wrong verdict was (wrongly-accepted, wrongly-rejected), or disagreement.
        case: The first file that showed it.
        outcome: What came of that.
        seconds: After how many since the start.
        readers: Who does it: 0 is the reader, 1 the one that it is compared with.
    """

    kind: str
    case: Case
    outcome: Outcome
    seconds: float = 0.0
    readers: tuple[int, ...] = (0,)

    @property
    def signature(self) -> Signature:
        """What is the same of findings that are told once: where it was, or what was done to which kind of field.

        What two readers differ in is the rule that is broken, wherever that is.
        """
        other = ("against",) if self.readers == (1,) else ()
        label = self.case.label
        if self.outcome.is_located:
            return self.kind, self.outcome.detail, *other
        if self.kind == DISAGREEMENT and label.rule is not None:
            return self.kind, self.outcome.detail, label.rule
        kind_of_field = label.path.rpartition(".")[2].partition("[")[0]
        return self.kind, self.outcome.detail, label.operation, kind_of_field, *other


class Found(NamedTuple):
    """A finding as it is told.

    Attributes:
        finding: The finding.
        data: A file that shows it: its case's, or a smaller one.
        files: How many showed it.
    """

    finding: Finding
    data: bytes
    files: int


def merged(found: Iterable[Found]) -> list[Found]:
    """Findings that came to be the same when their files were made small are one, the first."""
    first: dict[tuple[str, str, tuple[int, ...], bytes], Found] = {}
    for one in found:
        same = (one.finding.kind, one.finding.outcome.detail, one.finding.readers, one.data)
        earlier = first.get(same)
        first[same] = one if earlier is None else earlier._replace(files=earlier.files + one.files)
    return list(first.values())


@dataclass
class Report:
    """What came of all runs.

    Attributes:
        seed: Of the cases.
        start: The index of the first.
        next: That of the first that was not run.
        outcomes: How many runs ended how.
        against: The same of the reader that this one is compared with.
        unchanged: How many of those on unchanged files, which are valid, ended how.
        unchanged_against: The same of the other reader.
        unjudged: How many were accepted or rejected where it is not known what is right.
        findings: One of each signature, in the order of the cases.
        counts: How many there were of each.
        seconds: How long it took.
        is_interrupted: Whether somebody wanted no more.
        trouble: What ended it before its time; empty if nothing did.
        of_base: What the last base shows itself, and the signatures of that.
        base_seed: Which one that is.
    """

    seed: int
    start: int
    next: int
    outcomes: Counter[str] = field(default_factory=Counter)
    against: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    unchanged_against: Counter[str] = field(default_factory=Counter)
    unjudged: int = 0
    findings: dict[Signature, Finding] = field(default_factory=dict)
    counts: Counter[Signature] = field(default_factory=Counter)
    seconds: float = 0.0
    is_interrupted: bool = False
    trouble: str = ""
    of_base: dict[Base, Signature] = field(default_factory=dict)
    base_seed: int = -1

    def note(self, case: Case, right: str | None, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Note what came of a case. One before the first, which is its base, counts as an unchanged file only.

        Args:
            case: The case.
            right: The right verdict on it, if that is known.
            outcomes: Of the reader, and of the one that it is compared with.
            seconds: When, since the start.
        """
        is_counted = case.index >= self.start
        if is_counted:
            self.next = case.index + 1
            _count(outcomes, self.outcomes, self.against)
            self.unjudged += right is None and outcomes[0].kind in VERDICTS
        if case.number is None:
            _count(outcomes, self.unchanged, self.unchanged_against)
        if case.base_seed != self.base_seed:
            self.base_seed, self.of_base = case.base_seed, {}
        for kind, outcome, readers in shown(right, outcomes):
            finding = Finding(kind, case, outcome, seconds, readers)
            signature = finding.signature
            shows = (kind, outcome.detail, readers)
            if case.number is None:
                self.of_base[shows] = signature
            elif not outcome.is_located:
                signature = self.of_base.get(shows, signature)  # then the change has nothing to do with it
            if is_counted:
                self.counts[signature] += 1
                self.findings.setdefault(signature, finding)

    def found(self) -> list[Found]:
        """The findings, each with its case's file."""
        return [Found(finding, finding.case.data, self.counts[key]) for key, finding in self.findings.items()]


def _count(outcomes: Sequence[Outcome], *counters: Counter[str]) -> None:
    """Count what came of each reader."""
    for counter, outcome in zip(counters, outcomes, strict=False):
        counter[outcome.kind] += 1


def shown(right: str | None, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Outcome, tuple[int, ...]]]:
    """What is wrong with these outcomes: its kind, what came of it, and who does it."""
    for index, outcome in enumerate(outcomes):
        if outcome.kind not in VERDICTS:
            yield outcome.kind, outcome, (index,)
    first = outcomes[0]
    if right is not None and first.kind in VERDICTS and first.kind != right:
        yield f"wrongly-{first.kind}ed", first, (0,)
    if {outcome.kind for outcome in outcomes} == set(VERDICTS):
        yield DISAGREEMENT, together(outcomes), tuple(range(len(outcomes)))


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several readers as one."""
    if len(outcomes) == 1:
        return outcomes[0]
    told = "\n".join(outcome.told for outcome in outcomes if outcome.told)
    return Outcome(DISAGREEMENT, ", ".join(outcome.kind for outcome in outcomes), told=told)
