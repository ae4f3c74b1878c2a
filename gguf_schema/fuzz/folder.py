"""Labelled files for those who run their readers themselves, and findings: as folders."""

import hashlib
import json
import os
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..annotate import Entry, entries, map_text, readable, shallow
from ..errors import GGUFError
from ..file import open
from ..mutate import unknown_share
from ..schema import sniff
from ..sources import MemorySource
from ..sources import Reader as SourceReader
from ..targets import own_folder, save
from .cases import Case, cases
from .finding import Finding
from .reader import Reader

LABELS = "labels.json"


def record(case: Case, data: bytes) -> dict[str, Any]:
    """What is known of a case, for JSON.

    Args:
        case: The case.
        data: Its bytes, or those that they were minimised to.
    """
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "base": case.base_seed,
        "number": case.number,
        **case.label._asdict(),
    }


def write(folder: str | os.PathLike[str], seed: int, start: int, count: int) -> None:
    """Write cases as files, and `labels.json`, into a folder, which is made if it is not there.

    Of files that were written there before nothing is left.

    Args:
        folder: The folder.
        seed: Of the cases.
        start: The index of the first.
        count: How many.

    Raises:
        GGUFError: The folder holds something else.
        OSError: It cannot be written.
    """
    root = own_folder(folder, LABELS)
    made, labels = [], []
    save(root / LABELS, [b"{}\n"])  # so that one that was left half done may be written over
    for case in islice(cases(seed, start), count):
        name = f"{case.index:07}.gguf"
        (root / name).write_bytes(case.data)
        made.append({"file": name, **record(case, case.data)})
        labels.append(case.label)
    for stale in {path.name for path in root.glob("[0-9]" * 7 + ".gguf")} - {one["file"] for one in made}:
        (root / stale).unlink()
    text = json.dumps({"seed": seed, "unknown_share": round(unknown_share(labels), 4), "files": made}, indent=1)
    save(root / LABELS, [text.encode() + b"\n"])


def keep(folder: str | os.PathLike[str], finding: Finding, data: bytes, readers: Sequence[Reader]) -> dict[str, Any]:
    """Save a finding: the file, what it is, and its map, under one name with three endings.

    Args:
        folder: Where; it is made if it is not there.
        finding: The finding.
        data: The file, minimised.
        readers: The reader, and the one that it was compared with.

    Returns:
        What is saved of it as JSON.

    Raises:
        OSError: It cannot be written.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{finding.kind}-{hashlib.sha256(data).hexdigest()[:12]}.gguf"
    lines = [readers[index].line(os.path.abspath(path)) for index in finding.readers]
    saved = {**described(finding, data, readers, lines), "unminimised_size": len(finding.case.data)}
    save(path, [data])
    save(path.with_suffix(".json"), [json.dumps(saved, indent=1).encode() + b"\n"])
    save(path.with_suffix(".txt"), [byte_map(data).encode("utf-8", "backslashreplace") + b"\n"])
    return {"file": str(path), **saved}


def described(finding: Finding, data: bytes, readers: Sequence[Reader], lines: Sequence[str]) -> dict[str, Any]:
    """What there is to say of a finding, for JSON.

    Args:
        finding: The finding.
        data: The file.
        readers: The reader, and the one that it was compared with.
        lines: What to type to see it again: for each reader that has to do with it, or for both.
    """
    commands = [shlex.join(readers[index].command) for index in finding.readers]
    return {
        "kind": finding.kind,
        "detail": finding.outcome.detail,
        **dict(zip(("command", "against"), commands, strict=False)),
        **dict(zip(("reproduce", "reproduce_against"), lines, strict=False)),
        **record(finding.case, data),
        "seconds": round(finding.seconds, 3),
        "stderr": finding.outcome.told,
    }


def byte_map(data: bytes) -> str:
    """The byte map of a file; of one that cannot be read as far as it can, and then why it cannot be read further."""
    source = MemorySource(data)
    try:
        with open(data, check=False) as model:
            return map_text(source, entries(model, shallow), with_hex=True)
    except GGUFError as error:
        found = map_text(source, _head(source), with_hex=True)
        return f"{found}\n{error}" if found else str(error)


def _head(source: MemorySource) -> list[Entry]:
    """The fields up to the end of the infos that can be read."""
    try:
        layout = sniff(SourceReader(source))
    except GGUFError:
        return []
    return readable(source, layout)
