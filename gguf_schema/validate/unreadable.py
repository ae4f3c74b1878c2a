"""What ends the parse. What is behind it cannot be judged, but for what `beyond` passes by.

Readers differ in where they stop: gguf-py takes what is left of a number, a string or an array at the very end of a
file. So faults that some reader does not see have codes of their own.
"""

import re
from collections.abc import Iterator

from ..enums import GGUFValueType
from ..errors import FileKindError, Finding, NestingError, TruncatedError
from ..keys import ALIGNMENT
from ..limits import SLOWLY_COUNTED
from ..policy import SHOWN
from ..schema import structs
from ..walk import dtype, locate, minimum_size
from .metadata import VIRTUAL, is_utf8
from .rule import ERROR, Rule
from .subject import Subject

COUNTS = ("tensor_count", "metadata_kv_count")
PAIR = re.compile(r"metadata_kv\[(\d+)\]\.")
LAST_STRING = re.compile(r"\.value\.array\[(\d+)\]\.len$")

PYTHON_LEVELS = 980
"""Levels of arrays at which a reader that calls itself for each meets Python's limit of 1,000 calls."""


def failure(subject: Subject) -> Iterator[Finding]:
    """The fault that ended the parse."""
    error = subject.failure
    if error is not None:
        yield Finding(_code(subject), error.path, error.problem[: 4 * SHOWN], error.offset, _end(subject))


def _end(subject: Subject) -> int | None:
    """The end of the field at fault, if it was read; else it is cut off by the end of the file."""
    error = subject.failure
    assert error is not None
    node = subject.fields.get(error.path)
    if node is not None:
        return node.end
    field = locate((subject.layout or structs()).head, error.path)
    size = minimum_size(field) if field is not None else 0
    return min((error.offset or 0) + size, subject.size) if size else subject.size


def _code(subject: Subject) -> str:
    error = subject.failure
    assert error is not None
    path = error.path
    if isinstance(error, FileKindError):
        return "not-gguf"
    if isinstance(error, NestingError):
        return "nesting-python" if _levels(subject) > PYTHON_LEVELS else "nesting-depth"
    if isinstance(error, TruncatedError):
        if path in COUNTS and path in subject.fields:
            return "count-range"
        return "header-cut" if "[" not in path else _cut(subject, path)
    if path == "version":
        return "version-unknown"
    if path.endswith("value_type"):
        return "value-type-unknown"
    is_skipped = _is_empty_array(subject, path) and _is_usual_key(subject, f"{path.partition('.')[0]}.key")
    return "element-type-unknown-empty" if is_skipped else "element-type-unknown"


def _is_empty_array(subject: Subject, path: str) -> bool:
    """Whether the array whose type is at `path` is empty: its length was not read, but stands behind the type."""
    assert subject.layout is not None
    node = subject.fields.get(path)
    length = subject.layout.length
    if node is None:
        return False
    data = subject.source.read_at(node.end, length.sizeof())
    return len(data) == length.sizeof() and length.parse(data) == 0


def _cut(subject: Subject, path: str) -> str:
    """The code of a field of a pair or info that the file is too short for."""
    if path.endswith("n_dimensions") and path in subject.fields:
        return "dimensions-cut"
    if not path.endswith(".len") or path not in subject.fields:
        is_missing = subject.failure is not None and subject.failure.offset == subject.size
        return (
            "last-number-missing"
            if path.endswith(".value") and is_missing and _is_last(subject, path)
            else "number-cut"
        )
    array = path.removesuffix(".len")
    if f"{array}.type" in subject.fields:
        return "last-array-cut" if _is_clean_cut(subject, array) and _is_last(subject, path) else "array-cut"
    return "last-string-cut" if _is_last(subject, path) else "string-cut"


def _is_last(subject: Subject, path: str) -> bool:
    """Whether nothing has to be read after this value: it is, or ends, the last pair, and there are no tensors."""
    pair = PAIR.match(path)
    tensors, pairs = (subject.fields[count].value for count in COUNTS)
    if pair is None or tensors or int(pair[1]) != pairs - 1 or path.endswith(".key.len"):
        return False
    if not _is_usual_key(subject, f"{pair[0]}key"):
        return False
    item = LAST_STRING.search(path)
    length = subject.fields.get(f"{path[: item.start()]}.value.len") if item else None
    return path.count("[") == 1 + bool(item) and (
        item is None or (length is not None and int(item[1]) == length.value - 1)
    )


def _is_usual_key(subject: Subject, path: str) -> bool:
    """Whether gguf-py has no objection to the key of the pair in which the parse ended, nor a use for its value."""
    node = subject.fields.get(path)
    if node is None or node.value in subject.pairs or node.value in (ALIGNMENT.template, *VIRTUAL):
        return False
    return is_utf8(node.value)


def _is_clean_cut(subject: Subject, array: str) -> bool:
    """Whether an array of numbers ends after one of them, and has not more than can be counted."""
    assert subject.layout is not None
    number = subject.layout.numbers.get(subject.fields[f"{array}.type"].value)
    length = subject.fields[f"{array}.len"]
    if number is None or length.value > SLOWLY_COUNTED:
        return False
    return (subject.size - length.end) % dtype(number).itemsize == 0


def _levels(subject: Subject) -> int:
    """How deep arrays are nested, if the first element of each is an array: counted without nesting ourselves."""
    assert subject.failure is not None
    assert subject.layout is not None
    value_type, length = subject.layout.value_type, subject.layout.length
    position = subject.failure.offset or 0
    size = value_type.sizeof() + length.sizeof()
    levels = 0
    while levels <= PYTHON_LEVELS:
        data = subject.source.read_at(position, size)
        if len(data) < size or value_type.parse(data[: value_type.sizeof()]) != GGUFValueType.ARRAY:
            break
        levels += 1
        position += size
    return levels + 1


def _rule(code: str, title: str, path: str, mend: str, is_forbidden: bool = True) -> Rule:
    return Rule(
        code,
        ERROR,
        title,
        path,
        "a file must hold what it declares (specification, File structure)",
        mend,
        failure,
        is_forbidden,
    )


DOWNLOAD = "Fetch the file again; it was cut short, or a length in it is damaged (see `gguf-schema explain`)"
DAMAGED = "The number is damaged, or the file was made by a newer program; see `gguf-schema explain`"

RULES = (
    _rule("not-gguf", "It is no GGUF file", "magic", "Convert it, or fetch the right file"),
    _rule("header-cut", "The file ends within its header", "metadata_kv_count", DOWNLOAD),
    _rule("version-unknown", "A version other than 1, 2 and 3", "version", DAMAGED),
    _rule("count-range", "A count of more than the file can hold", "tensor_count", DAMAGED),
    _rule("value-type-unknown", "A value of a type that does not exist", "metadata_kv.value_type", DAMAGED),
    _rule(
        "element-type-unknown", "An array of elements of a type that does not exist", "metadata_kv.value.type", DAMAGED
    ),
    _rule(
        "element-type-unknown-empty",
        "An empty array of elements of a type that does not exist",
        "metadata_kv.value.type",
        "Write the array with the type that its elements would have",
    ),
    _rule(
        "nesting-depth",
        "Arrays nested deeper than 16 levels",
        "metadata_kv.value.type",
        "Flatten the arrays",
        is_forbidden=False,
    ),
    _rule(
        "nesting-python",
        "Arrays nested so deep that Python readers fail",
        "metadata_kv.value.type",
        "Flatten the arrays",
        is_forbidden=False,
    ),
    _rule("number-cut", "The file ends within, or before, a number", "metadata_kv.value", DOWNLOAD),
    _rule("last-number-missing", "The last value is not there", "metadata_kv.value", DOWNLOAD),
    _rule("string-cut", "A string longer than the rest of the file", "metadata_kv.key.len", DOWNLOAD),
    _rule("last-string-cut", "The last string is longer than the rest of the file", "metadata_kv.value.len", DOWNLOAD),
    _rule("array-cut", "An array larger than the rest of the file", "metadata_kv.value.len", DOWNLOAD),
    _rule("last-array-cut", "The last array is larger than the rest of the file", "metadata_kv.value.len", DOWNLOAD),
    _rule("dimensions-cut", "More dimensions than the file can hold", "tensor_infos.n_dimensions", DAMAGED),
)
