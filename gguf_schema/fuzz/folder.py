"""Labelled files for those who run their readers themselves, and findings: as folders."""

import hashlib
import json
import os
import shlex
import tempfile
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
from ..validate import PROFILES, Profile, check, verdict
from .cases import Case, cases
from .finding import WRONG, Found
from .reader import Reader

LABELS = "labels.json"


def record(case: Case) -> dict[str, Any]:
    """What is known of a case, for JSON."""
    return {**_file(case.data), **_made(case)}


def _file(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _made(case: Case) -> dict[str, Any]:
    """How a case is made, and what is expected of it."""
    return {"base": case.base_seed, "number": case.number, **case.label._asdict()}


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
        made.append({"file": name, **record(case)})
        labels.append(case.label)
    for stale in {path.name for path in root.glob("[0-9]" * 7 + ".gguf")} - {one["file"] for one in made}:
        (root / stale).unlink()
    text = json.dumps({"seed": seed, "unknown_share": round(unknown_share(labels), 4), "files": made}, indent=1)
    save(root / LABELS, [text.encode() + b"\n"])


def prepare(folder: str | os.PathLike[str]) -> None:
    """Make a folder for findings if it is not there, and try whether it can be written to.

    Raises:
        OSError: It cannot.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def keep(
    folder: str | os.PathLike[str], found: Found, readers: Sequence[Reader], profile: Profile | None = None
) -> dict[str, Any]:
    """Save a finding: the file, what it is, and its map, under one name with three endings.

    Args:
        folder: Where; it is there.
        found: The finding.
        readers: The reader, and the one that it was compared with.
        profile: What verdicts were compared with.

    Returns:
        What is saved of it as JSON.

    Raises:
        OSError: It cannot be written.
    """
    path = Path(folder) / f"{_name(found, readers)}.gguf"
    lines = [readers[index].line(os.path.abspath(path)) for index in found.finding.readers]
    saved = described(found, readers, lines, profile)
    save(path, [found.data])
    save(path.with_suffix(".json"), [json.dumps(saved, indent=1).encode() + b"\n"])
    save(path.with_suffix(".txt"), [byte_map(found.data).encode("utf-8", "backslashreplace") + b"\n"])
    return {"file": str(path), **saved}


def _name(found: Found, readers: Sequence[Reader]) -> str:
    """Another for each kind, detail, reader, command and bytes."""
    finding = found.finding
    what = [finding.outcome.detail, finding.readers, _commands(found, readers), found.data.hex()]
    return f"{finding.kind}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"


def _commands(found: Found, readers: Sequence[Reader]) -> list[str]:
    return [shlex.join(readers[index].command) for index in found.finding.readers]


def described(
    found: Found, readers: Sequence[Reader], lines: Sequence[str], profile: Profile | None = None
) -> dict[str, Any]:
    """What there is to say of a finding, for JSON: of its file, and apart from that of the case that showed it first.

    Args:
        found: The finding.
        readers: The reader, and the one that it was compared with.
        lines: What to type to see it again: for each reader that has to do with it, or for both.
        profile: What verdicts were compared with.
    """
    finding, case = found.finding, found.finding.case
    faults = check(found.data)
    judged = {}
    if profile is not None and finding.kind in WRONG:
        codes = sorted({fault.code for fault in faults} & profile.refuses)
        judged["profile"] = {"name": profile.name, "verdict": WRONG[finding.kind], "codes": codes}
    return {
        "kind": finding.kind,
        "detail": finding.outcome.detail,
        "count": found.files,
        "seconds": round(finding.seconds, 3),
        **dict(zip(("command", "against"), _commands(found, readers), strict=False)),
        **dict(zip(("reproduce", "reproduce_against"), lines, strict=False)),
        **_file(found.data),
        "verdict": verdict(faults, PROFILES["default"]),
        "faults": [{"code": fault.code, "path": fault.path, "start": fault.start} for fault in faults],
        **judged,
        "made_from": {**_made(case), "size": len(case.data), "stderr": finding.outcome.told},
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
