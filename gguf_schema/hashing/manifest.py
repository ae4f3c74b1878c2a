r"""Manifests: lines of algorithm, hash and what it is of, as llama.cpp's gguf-hash and gguf-py's write them.

    sha256    c0510d38fa060c46265e0160a85c7243096b01dd31c2f355bdbb5516b20de1bd  test.gguf:tensor_0

Without the colon it is the whole model. gguf-hash passes over lines whose first word it does not know, such as ours of
the metadata. A name is written as it is, as gguf-hash does, where that is printable and can be read in one way only.
Else the line begins with a backslash, as sha256sum's do, and in the name stand `\\`, `\n`, `\r`, `\t`, or numbers of
characters: `\x20`, `\u202e`, `\U0001f600`. In such a line the first colon ends the name of the file.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from ..errors import GGUFError
from ..file import Model
from ..terminal import printable
from . import Hash, hashes, metadata_hash
from .algorithms import ALGORITHMS, METADATA

STATUSES = OK, FAILED, MISSING, UNKNOWN = "OK", "FAILED", "MISSING", "UNKNOWN"
"""What becomes of a line: the hash is right, or it is not; the model has no such tensor; an algorithm nobody knows."""


class Checked(NamedTuple):
    """A line of a manifest that is about the model, and what became of it."""

    hash: Hash
    status: str


class Report(NamedTuple):
    """What a manifest says of a model.

    Attributes:
        lines: Those that are about it.
        unlisted: Names of tensors whose data no line is about, where none is about that of the whole model either.
    """

    lines: list[Checked]
    unlisted: list[str]

    @property
    def is_good(self) -> bool:
        """Whether there are lines, every one is right, and they leave out no tensor."""
        return bool(self.lines) and not self.unlisted and all(line.status == OK for line in self.lines)


ESCAPED = "\\"
"""What begins a line with escapes, and an escape."""

ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U00[0-9a-f]{6}|.|$)")
LETTERS = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}

LONGEST = 1 << 20
"""Bytes of a line. Names of tensors have 64."""


def line(file: str, hash: Hash) -> str:
    """A line of a manifest.

    Args:
        file: Name of the file, as it was given.
        hash: The hash.
    """
    name = file if hash.tensor is None else f"{file}:{hash.tensor}"
    mark = ""
    if not name.isprintable() or name != name.strip() or _is_ambiguous(file, hash.tensor or ""):
        mark = ESCAPED
        name = _escaped(file, ":") if hash.tensor is None else f"{_escaped(file, ':')}:{_escaped(hash.tensor)}"
    return f"{mark + printable(hash.algorithm):8}  {printable(hash.value)}  {name}"


def _is_ambiguous(file: str, tensor: str) -> bool:
    """Whether the line might be taken for one about another file: the file ends at a colon, a folder at a slash."""
    return ":" in os.path.splitdrive(file)[1] or bool(set("/\\") & set(tensor))


def _escaped(name: str, others: str = "") -> str:
    """A name in printable characters, without these others, nor spaces at its ends."""
    inner = range(len(name) - len(name.lstrip()), len(name.rstrip()))
    return "".join(
        letter if letter.isprintable() and letter not in (ESCAPED, *others) and index in inner else _escape(letter)
        for index, letter in enumerate(name)
    )


def _escape(letter: str) -> str:
    escape = repr(letter)[1:-1]
    return escape if escape != letter else rf"\x{ord(letter):02x}"


def parse(lines: Iterable[str], file: str) -> list[Hash]:
    """What the lines of a manifest that are about a file say, whatever folder they have it in.

    Empty lines, and those that begin with #, are passed over.

    Raises:
        GGUFError: A line is none, or none is about the file.
    """
    base = _base(file)
    about = re.compile(rf"(?:.*?[/\\])??{re.escape(base)}(?::(.*))?", re.DOTALL)
    found = []
    first = ""
    for number, each in enumerate(lines, 1):
        if not each.strip() or each.startswith("#"):
            continue
        parts = each.removesuffix("\r").split(maxsplit=2)
        if len(parts) < 3:
            raise _wrong(number, "not 'algorithm hash name'", each)
        algorithm, value, name = parts
        first = first or name
        if algorithm.startswith(ESCAPED):
            try:
                path, tensor = _unescaped(name)
            except ValueError:
                raise _wrong(number, "no escaped name", each) from None
            if _base(path) == base:
                found.append(Hash(algorithm.removeprefix(ESCAPED), value.lower(), tensor))
        elif ":" not in base and (named := about.fullmatch(name)):
            found.append(Hash(algorithm, value.lower(), named[1]))
    if not found:
        hint = f"; the first is about {printable(first)}: give the file, or a link, that name" if first else ""
        raise GGUFError(f"no line of the manifest is about {base}{hint}")
    return found


def lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a manifest, read one by one.

    Raises:
        GGUFError: One is longer than a line is, so that it is no manifest.
        OSError: It cannot be read.
    """
    number = 0
    while data := file.readline(LONGEST):
        number += 1
        if len(data) == LONGEST:
            raise _wrong(number, f"longer than {LONGEST} bytes", "")
        yield data.decode("utf-8", "surrogateescape").removesuffix("\n")


def _base(path: str) -> str:
    """The name of a file without its folders."""
    return re.split(r"[/\\]", path)[-1]


def _unescaped(name: str) -> tuple[str, str | None]:
    """The file and the tensor of a name with escapes.

    Raises:
        ValueError: One is none.
    """
    path, *tensor = name.split(":", 1)
    return ESCAPE.sub(_letter, path), ESCAPE.sub(_letter, tensor[0]) if tensor else None


def _letter(escape: re.Match[str]) -> str:
    return LETTERS.get(escape[1]) or chr(int(escape[1][1:], 16))


def _wrong(number: int, problem: str, line: str) -> GGUFError:
    return GGUFError(f"line {number} of the manifest is {problem}: {line[:100]!r}")


def check(model: Model, wanted: Iterable[Hash], show: Callable[[int, int], None] = lambda done, whole: None) -> Report:
    """Compare hashes from a manifest with those of a model, of which only those are computed.

    Where several tensors have one name, the first line of that name is about the first, the next about the next.

    Args:
        model: An open model.
        wanted: From `parse`.
        show: As for `hashes`.

    Raises:
        GGUFError: As `hashes` does.
    """
    wanted = list(wanted)
    named = {(hash.algorithm, hash.tensor is None) for hash in wanted}
    tensors, whole = ([name for name in ALGORITHMS if (name, is_whole) in named] for is_whole in (False, True))
    held: dict[tuple[str, str | None], list[str]] = {}
    for hash in (*hashes(model, tensors, whole, show), *([metadata_hash(model)] if (METADATA, True) in named else ())):
        held.setdefault((hash.algorithm, hash.tensor), []).append(hash.value)
    seen: Counter[tuple[str, str | None]] = Counter()

    def status(hash: Hash) -> str:
        kind = hash.algorithm, hash.tensor
        if kind not in held:
            return MISSING if hash.algorithm in ALGORITHMS else UNKNOWN
        value = held[kind][seen[kind] % len(held[kind])]
        seen[kind] += 1
        return OK if hash.value == value else FAILED

    checked = [Checked(hash, status(hash)) for hash in wanted]
    names = Counter() if whole else Counter(tensor.name for tensor in model.tensors.infos)
    unlisted = [name for name, count in names.items() if max((seen[each, name] for each in tensors), default=0) < count]
    return Report(checked, unlisted)


def report_text(file: str, report: Report) -> str:
    """Each line with what became of it, and how many are right."""
    lines = [f"{line(file, each.hash)}  -  {each.status}" for each in report.lines]
    counts = ", ".join(f"{sum(each.status == status for each in report.lines)} {status}" for status in STATUSES)
    rest = f"; {len(report.unlisted)} tensors are in no line" if report.unlisted else ""
    rest += "" if report.lines else "; nothing was checked"
    return "\n".join([*lines, counts + rest])


def report_json(file: str, report: Report) -> str:
    """One JSON object: `file`, `good`, `lines` (`status`, `algorithm`, `value`, `tensor`), `unlisted`."""
    lines = [{"status": each.status, **each.hash._asdict()} for each in report.lines]
    document = {"file": file, "good": report.is_good, "lines": lines, "unlisted": report.unlisted}
    return json.dumps(document, indent=2)


def hashes_json(file: str, found: Iterable[Hash]) -> str:
    """One JSON object: `file`, and in `hashes` `algorithm`, `value`, `tensor` (null: the whole model) of each."""
    return json.dumps({"file": file, "hashes": [each._asdict() for each in found]}, indent=2)
