"""What an operation is, and what it makes."""

from collections.abc import Callable
from typing import NamedTuple

from ..generate import Seeded
from .base import Base, Edit, Field
from .verdicts import Verdict


class Change(NamedTuple):
    """What an operation does to a field.

    Attributes:
        edits: The bytes that are replaced.
        verdict: What follows from it.
    """

    edits: tuple[Edit, ...]
    verdict: Verdict


Make = Callable[[Base, Field, Seeded], Change | None]
"""Makes a change of a field; None where the operation does not apply to it, or changes nothing."""


class Operation(NamedTuple):
    """One way to break a kind of field.

    Attributes:
        name: A stable word.
        make: What it does.
        is_drawn: Whether it draws what it does, so that it does something else each time.
    """

    name: str
    make: Make
    is_drawn: bool = False


def below(draw: Seeded, limit: int) -> int:
    """A number below the limit, each as likely as the others."""
    return int(draw.random() * limit)
