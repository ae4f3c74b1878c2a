"""Mutants of a valid file, made by what is known of its fields: each is broken in one place, and says how.

base        the file, mapped once
verdicts    what must be said of places, shapes, and fields that are read elsewhere
numbers     what follows when a number is another one, by the kind of field
values texts head raw splice    the operations: on numbers, texts, pairs and infos, bytes, with another file
operations  which of them there are for which kind of field

What is expected of a mutant is told from the change alone. It is never asked of a reader, or of `validate`: those are
what mutants test.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from ..generate import Seeded
from .base import INDEX, Base, Field, mapped, spliced
from .change import Change, Operation
from .operations import OPERATIONS
from .splice import operations as splices
from .verdicts import Verdict


class Label(NamedTuple):
    """What a mutant is.

    Attributes:
        path: The schema path of the field that was changed; empty for the file as a whole.
        operation: What was done, as a stable word.
        rule: The code of the rule that is broken; None where none is, or where it cannot be told which.
        expected: The default verdict: accept, warn or reject; unknown where the change does not tell.
    """

    path: str
    operation: str
    rule: str | None
    expected: str


class Mutant(NamedTuple):
    """A changed file.

    Attributes:
        data: Its bytes.
        label: What was changed, and what is expected.
    """

    data: bytes
    label: Label


@dataclass(frozen=True)
class Plan:
    """A file and all that can be done to it.

    Attributes:
        base: The file, mapped.
        fixed: The changes that are always the same, each with its label; all of them make different files.
        drawn: The operations that do something else each time, with their fields.
    """

    base: Base
    fixed: list[tuple[Change, Label]]
    drawn: list[tuple[Operation, Field]]

    def __repr__(self) -> str:
        return f"<Plan: {len(self.fixed)} fixed changes, {len(self.drawn)} ways to draw others, of {self.base!r}>"


def plan(data: bytes, other: bytes | None = None) -> Plan:
    """Map a file, and list what can be done to it. This takes as long as some hundred mutants.

    Args:
        data: A file of which `validate` has nothing worse to say than a note; but it may be of version 1.
        other: A file that sections are taken from.

    Raises:
        GGUFError: A file cannot be opened.
    """
    base = mapped(data)
    offered = splices(mapped(other)) if other is not None else {}
    draw = Seeded(0)
    fixed, drawn = [], []
    seen = {data}
    for field in base.fields:
        for operation in (*OPERATIONS[field.kind], *offered.get(field.kind, ())):
            change = operation.make(base, field, draw)
            if change is None:
                continue
            if operation.is_drawn:
                drawn.append((operation, field))
            elif (made := spliced(data, change.edits)) not in seen:
                seen.add(made)
                fixed.append((change, _label(base, field, operation, change.verdict)))
    return Plan(base, fixed, drawn)


def _label(base: Base, field: Field, operation: Operation, verdict: Verdict) -> Label:
    """The label, in view of what is said of the base already."""
    expected = verdict.expected
    if base.has_nested and (expected == "accept" or verdict.is_mild):
        expected = "unknown"
    elif base.layout.version == 1 and (expected == "accept" or verdict.is_mild):
        expected = "warn"
    return Label(field.path, operation.name, verdict.rule, expected)


def mutant(plan: Plan, seed: int, number: int) -> Mutant:
    """One mutant; seed and number determine it, on every machine.

    The first `len(plan.fixed)` are the fixed changes, in an order by the seed; those behind them are drawn.

    Args:
        plan: Of the base file.
        seed: Any number.
        number: From 0 on.

    Raises:
        ValueError: The number is negative.
    """
    change, label = chosen(plan, seed, number)
    return Mutant(spliced(plan.base.data, change.edits), label)


def chosen(plan: Plan, seed: int, number: int) -> tuple[Change, Label]:
    """What is changed to make a mutant (see `mutant`), and its label."""
    if number < 0:
        raise ValueError(f"mutants are numbered from 0 on, not {number}")
    base = plan.base
    count = len(plan.fixed)
    if number < count:
        return plan.fixed[(number * _step(count, seed) + seed) % count]
    draw = Seeded(seed << 64 | number)
    while True:
        operation, field = draw.one_of(plan.drawn)
        drawn = operation.make(base, field, draw)
        if drawn is not None:
            return drawn, _label(base, field, operation, drawn.verdict)


def _step(count: int, seed: int) -> int:
    """A number that has no divisor in common with the count, so that its multiples reach everything."""
    step = max(1, int(count * 0.618) + seed % 64)
    while gcd(step, count) != 1:
        step += 1
    return step


def mutants(
    data: bytes, seed: int, count: int | None = None, other: bytes | None = None, start: int = 0
) -> Iterator[Mutant]:
    """Mutants of a file, one after the other.

    Args:
        data: A valid file (see `plan`).
        seed: Any number.
        count: How many; without it, each fixed change once.
        other: A file that sections are taken from.
        start: The number of the first, to go on where one stopped.

    Raises:
        GGUFError: A file cannot be opened.
    """
    planned = plan(data, other)
    end = len(planned.fixed) if count is None else start + count
    for number in range(start, end):
        yield mutant(planned, seed, number)


def histogram(labels: Iterable[Label]) -> dict[tuple[str, str], int]:
    """How many mutants there are of each field, as a schema path without indices, and operation."""
    return dict(Counter((INDEX.sub("[]", label.path), label.operation) for label in labels))


def unknown_share(labels: Iterable[Label]) -> float:
    """The share of mutants of which nothing is expected."""
    counts = Counter(label.expected for label in labels)
    return counts["unknown"] / max(1, counts.total())


__all__ = ["OPERATIONS", "Label", "Mutant", "Plan", "chosen", "histogram", "mutant", "mutants", "plan", "unknown_share"]
