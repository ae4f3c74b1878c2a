"""The schema without its fast forms: within `plain_schema` each is the plain Array that it wraps."""

import contextlib
from collections.abc import Iterator
from typing import Any

from gguf_schema.constructs import NumberArray, RecordArray, StringArray

BULK: tuple[Any, ...] = (NumberArray, StringArray, RecordArray)


@contextlib.contextmanager
def plain_schema() -> Iterator[None]:
    """Parse and build by the plain Arrays alone."""
    kept = {con: (con._parse, con._build) for con in BULK}
    for con in BULK:
        con._parse = lambda self, *args: self.subcon._parse(*args)
        con._build = lambda self, *args: self.subcon._build(*args)
    try:
        yield
    finally:
        for con, methods in kept.items():
            con._parse, con._build = methods
