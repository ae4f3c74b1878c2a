"""The files that a reader is tried on: valid ones, and mutants of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from ..generate import valid_file
from ..mutate import Label, Plan, chosen, plan
from ..mutate.base import Base, Edit, spliced

EACH = 64
"""Files of each base: itself, then mutants of it."""

DRAWN = 4
"""One of so many is a drawn change; there are many more fixed ones than are taken."""

BASES = 10**6
"""Bases of a seed; those of the next seed are others."""

UNCHANGED = Label("", "none", None, "accept")
"""What a base is, other than its mutants."""


@dataclass(frozen=True)
class Case:
    """A file with its label.

    Attributes:
        index: Its number among the cases of a seed.
        base: The valid file that it was.
        base_seed: What `valid_file` made that of.
        number: Of the mutant (see `mutate.mutant`, with `base_seed` as the seed); None for the base itself.
        edits: What was changed.
        label: The same in words, and what is expected.
    """

    index: int
    base: Base
    base_seed: int
    number: int | None
    edits: tuple[Edit, ...]
    label: Label

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file."""
        return spliced(self.base.data, self.edits)


def cases(seed: int, start: int = 0) -> Iterator[Case]:
    """Cases without end; seed and index determine each.

    Args:
        seed: Any number from 0 on.
        start: The index of the first, to go on where one stopped.
    """
    index = start
    while True:
        base_seed = seed * BASES + index // EACH
        planned = plan(valid_file(base_seed), valid_file(base_seed + 1))
        for place in range(index % EACH, EACH):
            yield _case(planned, base_seed, index, place)
            index += 1


def cases_behind_base(seed: int, start: int) -> Iterator[Case]:
    """As `cases`; if the first is a mutant, its base comes before it: what that shows is not the mutants' doing."""
    base = start - start % EACH
    return chain(islice(cases(seed, base), start > base), cases(seed, start))


def _case(planned: Plan, base_seed: int, index: int, place: int) -> Case:
    if not place:
        return Case(index, planned.base, base_seed, None, (), UNCHANGED)
    number = place - 1 if place % DRAWN else len(planned.fixed) + place
    change, label = chosen(planned, base_seed, number)
    return Case(index, planned.base, base_seed, number, change.edits, label)
