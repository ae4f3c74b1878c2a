"""Changes of a file in place that are whole or not at all, and can be undone. Knows no GGUF.

Beside `model.gguf` stand `model.gguf.journal`, while it is changed, and `model.gguf.undo` afterwards: one record, which
is on the disk before the file is touched, and renamed when the file is on the disk. Its time is then that of the file.

record      what a file was, in terms of what it is; on disk and back
locking     one editor at a time
patching    differences, changes, recovery, undoing
"""

from ..targets import BusyError
from .locking import exclusive, is_writable
from .patching import apply, journal_of, keeping, recover, trouble, undo, undo_of
from .record import (
    LARGEST,
    MOST_PARTS,
    Change,
    Identity,
    Part,
    Record,
    Span,
    identity,
    in_place,
    size_of,
    size_on_disk,
    to_bytes,
)

__all__ = [
    "LARGEST",
    "MOST_PARTS",
    "BusyError",
    "Change",
    "Identity",
    "Part",
    "Span",
    "Record",
    "apply",
    "exclusive",
    "identity",
    "in_place",
    "is_writable",
    "journal_of",
    "keeping",
    "recover",
    "size_of",
    "size_on_disk",
    "to_bytes",
    "trouble",
    "undo",
    "undo_of",
]
