"""What a rule is. The rules themselves are rows of tables, beside the functions that look for what breaks them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..errors import Finding
from .subject import Subject

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)

GGUF_CPP = "llama.cpp gguf.cpp"
"""A source of many rules: the loader's own checks."""


class Rule(NamedTuple):
    """One rule.

    Attributes:
        code: Its stable name.
        severity: error: the file cannot be read in one way only, or not safely; warning: a reader or a person may trip;
            note: anything else worth saying.
        title: What is wrong, in one line.
        path: The schema path that it speaks about; without indices.
        source: The clause, the thread or the reader that it comes from.
        mend: How to mend a file that breaks it.
        find: Yields a finding with this code (perhaps others, too) for each fault.
        is_forbidden: Whether the specification forbids it, so that strict refuses the file.
    """

    code: str
    severity: str
    title: str
    path: str
    source: str
    mend: str
    find: Callable[[Subject], Iterator[Finding]]
    is_forbidden: bool = False
