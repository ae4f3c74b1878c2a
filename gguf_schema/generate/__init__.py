"""Valid files and values made up from the schema, by a seed or by any other source of choices.

`choices` says what a source of choices is, and has the one that a seed determines; `making` derives values from the
tree of constructs; `files` adds what makes a whole file valid.
"""

from ..schema import ORDERS, VERSIONS, structs
from . import files
from .choices import Choices, Seeded
from .making import Extent, make

CURRENT_VERSIONS = VERSIONS[1:]
"""Version 1 is warned of: few readers take it."""


def valid_file(seed: int, order: str | None = None, version: int | None = None) -> bytes:
    """A file that `open` takes, and of which `validate` says nothing worse than a note.

    Args:
        seed: Determines the file: the same bytes on every machine.
        order: Byte order, "<" or ">"; without it, either.
        version: 1, 2 or 3; without it, 2 or 3. Version 1 has a warning of its own, for being that.

    Raises:
        GGUFError: No such order or version.
    """
    choices = Seeded(seed)
    drawn = choices.one_of(ORDERS), choices.one_of(CURRENT_VERSIONS)
    layout = structs(drawn[0] if order is None else order, drawn[1] if version is None else version)
    data: bytes = layout.gguf.build(files.file(choices, layout))
    return data


__all__ = ["Choices", "Extent", "Seeded", "make", "valid_file"]
