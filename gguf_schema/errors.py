"""The exceptions of the package: whatever goes wrong with a GGUF file is a `GGUFError`.

Every error says where it happened, twice: `path` in the schema's field names (`metadata_kv[1].key.len`) and `offset`,
the absolute position in bytes of the wrong field, counted from the start of the GGUF file.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self


def shown(value: Any, most: int = 40) -> str:
    """A value in no more than so many characters, for a message; whatever it is."""
    try:
        text = repr(value)
    except Exception:  # Python writes no number of more than 4,300 digits, and classes may do anything
        text = "what cannot be shown"
    return text if len(text) <= most else f"{text[:most]}…"


class GGUFError(ValueError):
    """A GGUF file, or a value meant for one, is not as the format demands.

    Args:
        problem: What was expected and what was found, without the place.
        path: The schema path of the wrong field; may be empty.
        offset: Absolute byte offset of the wrong field, or None where there is no file yet (building).
        blame: The sibling field that is really at fault: a length that cannot be kept is the fault of `len`, not of
            the bytes that follow it. Resolved by the enclosing Struct.
    """

    def __init__(self, problem: str, path: str = "", offset: int | None = None, blame: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path
        self.offset = offset
        self.blame = blame

    def __str__(self) -> str:
        place = " at byte ".join(filter(None, (self.path, None if self.offset is None else str(self.offset))))
        return f"{place}: {self.problem}" if place else self.problem

    def __reduce__(self) -> tuple[type[Self], tuple[str], dict[str, Any]]:
        return type(self), (self.problem,), vars(self)

    def inside(self, name: str, offset: int | None, starts: Mapping[str, int | None] | None = None) -> Self:
        """Add the enclosing field's name (or `[index]`) to the path; settle the blame and the offset once."""
        if starts is not None and self.blame is not None and self.blame in starts:
            name, self.path, self.offset, self.blame = self.blame, "", starts[self.blame], None
        if self.offset is None:
            self.offset = offset
        separator = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{separator}{self.path}"
        return self


class ParseError(GGUFError):
    """The bytes cannot be read as GGUF any further."""


class FileKindError(ParseError):
    """The bytes are another kind of file, or empty."""


class TruncatedError(ParseError):
    """Something declares more bytes than there are.

    Attributes:
        declared: The bytes or items that were declared; 0 where it is a number of fixed size that is cut.
    """

    declared = 0

    @classmethod
    def of(cls, declared: int, problem: str, blame: str | None) -> Self:
        """An error of so many bytes or items."""
        error = cls(problem, blame=blame)
        error.declared = declared
        return error


class NestingError(ParseError):
    """Arrays are nested deeper than allowed."""


class BuildError(GGUFError):
    """A value does not fit where it should be written."""


class CheckError(GGUFError):
    """The file can be parsed, but has a fault that makes it ambiguous or unsafe.

    Raised by `gguf_schema.open` with the first fault found; `check=False` opens the file all the same, and then
    `Model.faults` lists them.

    Attributes:
        code: A stable name of the rule that is broken, for programs.
    """

    code = ""


class ShardError(GGUFError):
    """The files of a model in shards do not make one.

    Args:
        problem: Which file it is, and what is wrong with it.
        code: A stable name of what is wrong, for programs: shard-missing, shard-truncated, shard-unreadable,
            shard-name, shard-foreign, shard-twice, shard-tensor-twice, or shard-tensors.
    """

    def __init__(self, problem: str, code: str = "") -> None:
        super().__init__(problem)
        self.code = code


class Finding(NamedTuple):
    """One thing to say about a file.

    Attributes:
        code: A stable name of the rule, for programs.
        path: The schema path of the field at fault.
        message: What was expected and what was found.
        offset: Absolute byte offset where it is known already; None means that of the field at `path`.
        end: Absolute offset after the last byte at fault; None means the end of that field.
    """

    code: str
    path: str
    message: str
    offset: int | None = None
    end: int | None = None
