"""Labelled files on a pipe, for a harness in any language."""

import json
from collections.abc import Iterator
from itertools import islice

from .cases import cases
from .folder import record


def stream(seed: int, start: int, count: int | None = None) -> Iterator[bytes]:
    """Cases, each as one line of JSON, whose `size` says how many bytes follow it, and those bytes.

    Args:
        seed: Of the cases.
        start: The index of the first.
        count: How many; None is no end.
    """
    for case in islice(cases(seed, start), count):
        data = case.data
        yield json.dumps({"index": case.index, **record(case)}).encode() + b"\n" + data
