"""Manifests: lines of algorithm, hash and what it is of, as llama.cpp's gguf-hash and gguf-py's write them.

    sha256    c0510d38fa060c46265e0160a85c7243096b01dd31c2f355bdbb5516b20de1bd  test.gguf:tensor_0

Without the colon it is the whole model. gguf-hash passes over lines whose first word it does not know, such as ours of
the metadata. Names are escaped where a line would not be one.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

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


def line(file: str, hash: Hash) -> str:
    """A line of a manifest.

    Args:
        file: Name of the file, as it was given.
        hash: The hash.
    """
    name = printable(file if hash.tensor is None else f"{file}:{hash.tensor}")
    return f"{printable(hash.algorithm):8}  {printable(hash.value)}  {name}"


def parse(text: str, file: str) -> list[Hash]:
    """The lines of a manifest that are about a file, whatever folder they have it in. Names are escaped.

    Empty lines, and those that begin with #, are passed over.

    Raises:
        GGUFError: A line is none, or none is about the file.
    """
    base = re.split(r"[/\\]", printable(file))[-1]
    about = re.compile(rf"(?:.*?[/\\])??{re.escape(base)}(?::(.*))?")
    found = []
    for number, each in enumerate(text.split("\n"), 1):
        if not each.strip() or each.startswith("#"):
            continue
        parts = each.removesuffix("\r").split(maxsplit=2)
        if len(parts) < 3:
            raise GGUFError(f"line {number} of the manifest is not 'algorithm hash name': {each[:100]!r}")
        if named := about.fullmatch(printable(parts[2])):
            found.append(Hash(parts[0], parts[1].lower(), named[1]))
    if not found:
        raise GGUFError(f"no line of the manifest is about {base}")
    return found


def check(model: Model, wanted: Iterable[Hash], show: Callable[[int, int], None] = lambda done, whole: None) -> Report:
    """Compare hashes from a manifest with those of a model, of which only those are computed.

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
    held = list(hashes(model, tensors, whole, show))
    if (METADATA, True) in named:
        held.append(metadata_hash(model))
    held = [hash._replace(tensor=hash.tensor and printable(hash.tensor)) for hash in held]
    right, there = set(held), {(hash.algorithm, hash.tensor) for hash in held}

    def status(hash: Hash) -> str:
        if hash in right:
            return OK
        if (hash.algorithm, hash.tensor) in there:
            return FAILED
        return MISSING if hash.algorithm in ALGORITHMS else UNKNOWN

    listed = {hash.tensor for hash in wanted}
    names = [] if whole else [tensor.name for tensor in model.tensors.infos]
    unlisted = [name for name in names if printable(name) not in listed]
    return Report([Checked(hash, status(hash)) for hash in wanted], unlisted)


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
