"""Valid files and values made up from the schema, by a seed or by any other source of choices.

`choices` says what a source of choices is, and has the one that a seed determines; `making` derives values from the
tree of constructs; `files` adds what makes a whole file valid.
"""

from ..schema import structs
from . import files
from .choices import Choices, Seeded
from .making import Extent, make


def valid_file(seed: int, order: str | None = None, version: int | None = None) -> bytes:
    """A file that `open` takes, and of which `validate` says nothing worse than a note.

    Args:
        seed: Determines the file: the same bytes on every machine and with every Python; another version of the package
            may make others.
        order: Byte order, "<" or ">"; without it, either.
        version: 1, 2 or 3; without it, 2 or 3. Version 1 has a warning of its own, for being that.

    Raises:
        GGUFError: No such order or version.
    """
    choices = Seeded(seed)
    drawn_order, drawn_version = choices.one_of(files.CURRENT)
    layout = structs(drawn_order if order is None else order, drawn_version if version is None else version)
    data: bytes = layout.gguf.build(files.file(choices, layout))
    return data


__all__ = ["Choices", "Extent", "Seeded", "make", "valid_file"]
