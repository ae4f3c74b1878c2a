"""Long runs in chunks: a process tries a chunk, and keeps what came of it in one file, which tells whether it is whole.

A chunk is a range of numbers of a series. A run may end at any time: the next one goes on with the chunks that are not
kept. All that are kept of a series count, with which version of the package they were made.

A file holds the SHA-256 of all that follows, in hexadecimal; a record, as a line of JSON; and a hash of 64 bits of each
different file that was tried.
"""

import hashlib
import json
import multiprocessing
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gguf_schema.targets import save
from gguf_schema.version import __version__

ROOT = Path(__file__).parents[1]
HASH = np.dtype("<u8")

SUFFIX = ".chunk"


def _made_by() -> str:
    """The version of the package, and a hash of its source and that of the tools."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in ("gguf_schema", "tools") for path in (ROOT / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return f"{__version__} {digest.hexdigest()[:16]}"


MADE_BY = _made_by()
"""What makes chunks now: found out at once, because the source may be changed while a chunk is tried."""


class Kept(NamedTuple):
    """What is kept of a chunk.

    Attributes:
        record: What came of it, as was given to `keep`.
        hashes: Of its files, sorted; doubles are left out.
        made_by: Which version of the package made it.
    """

    record: dict[str, Any]
    hashes: Any
    made_by: str


class Found(NamedTuple):
    """The chunks of some series in a folder.

    Attributes:
        kept: By the name of their series, and their first number.
        damaged: Names of files that are not whole, or are of something else than their names say.
    """

    kept: dict[tuple[str, int], Kept]
    damaged: list[str]


def hash_of(data: bytes) -> bytes:
    """The hash of a file that was tried."""
    return hashlib.blake2b(data, digest_size=HASH.itemsize).digest()


def path_of(folder: Path, series: str, start: int, size: int) -> Path:
    """Where the chunk of so many numbers from a first one is kept."""
    return folder / f"{series}-{start:09}-{start + size:09}{SUFFIX}"


def keep(path: Path, record: dict[str, Any], hashes: Iterable[bytes]) -> None:
    """Keep what came of a chunk."""
    head = {"name": path.name, "made_by": MADE_BY, "record": record}
    different = np.unique(np.frombuffer(b"".join(hashes), HASH))
    body = json.dumps(head).encode() + b"\n" + different.tobytes()
    save(path, [hashlib.sha256(body).hexdigest().encode() + b"\n", body])


def kept(path: Path) -> Kept | None:
    """What is kept of a chunk; None if there is nothing, or the file is damaged, or was another's."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    line, _, hashes = body.partition(b"\n")
    head = json.loads(line)
    return Kept(head["record"], np.frombuffer(hashes, HASH), head["made_by"]) if head["name"] == path.name else None


def found(folder: Path, series: str, size: int) -> Found:
    """All chunks of this size that a folder holds.

    Args:
        folder: The folder.
        series: A regular expression for the names of series.
        size: Numbers of a chunk.
    """
    good, damaged = {}, []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        named = re.fullmatch(rf"({series})-(\d+)-\d+", path.stem)
        if named is None or path != path_of(folder, named[1], int(named[2]), size) or int(named[2]) % size:
            continue
        if (chunk := kept(path)) is None:
            damaged.append(path.name)
        else:
            good[named[1], int(named[2])] = chunk
    return Found(good, damaged)


def distinct(chunks: Found) -> int:
    """How many different files were tried in all of them."""
    hashes = [chunk.hashes for chunk in chunks.kept.values()]
    return len(np.unique(np.concatenate(hashes))) if hashes else 0


def described(chunks: Found, size: int) -> list[str]:
    """Which there are, and what must be known of them, as lines for people."""
    lines: list[str] = []
    ends: dict[str, list[list[int]]] = {}
    for series, start in chunks.kept:
        ranges = ends.setdefault(series, [])
        if ranges and ranges[-1][1] == start:
            ranges[-1][1] += size
        else:
            ranges.append([start, start + size])
    for series, ranges in ends.items():
        lines.append(f"{series}: {', '.join(f'{start} to {end - 1}' for start, end in ranges)}")
    if others := sum(chunk.made_by != MADE_BY for chunk in chunks.kept.values()):
        lines.append(f"{others} of {len(chunks.kept)} chunks were made by another version of the package or the tools")
    if chunks.damaged:
        lines.append(f"damaged, not counted: {', '.join(chunks.damaged)}")
    return lines


DIED = 3
"""The exit status where a process died."""


class WorkerError(Exception):
    """A process that tried a chunk ended before it was done."""


def run(
    work: Callable[[int], None],
    is_done: Callable[[int], bool],
    starts: Sequence[int],
    jobs: int,
    show: Callable[[int, int], None],
) -> None:
    """Try chunks, each in a process of its own. Whatever ends this, no process is left.

    Args:
        work: Tries the chunk with this first number, and keeps what comes of it.
        is_done: Whether a chunk need not be tried.
        starts: The first numbers of all.
        jobs: Processes at a time.
        show: Called with the chunks that are done, and all.

    Raises:
        WorkerError: A process died. Those beside it were waited for.
    """
    context = multiprocessing.get_context("spawn")
    left = [start for start in starts if not is_done(start)]
    done, died = len(starts) - len(left), ""
    running: dict[Any, tuple[int, SpawnProcess]] = {}
    try:
        while running or (left and not died):
            while left and not died and len(running) < jobs:
                start = left.pop(0)
                process = context.Process(target=work, args=(start,))
                _begin(process)
                running[process.sentinel] = start, process
            for sentinel in wait(running):
                start, process = running.pop(sentinel)
                process.join()
                if process.exitcode:
                    died = f"the process of the chunk from {start} on ended with {_status(process.exitcode)}"
                else:
                    done += 1
                    show(done, len(starts))
    finally:
        for _, process in running.values():
            process.kill()
            process.join()
    if died:
        raise WorkerError(died)


def _begin(process: SpawnProcess) -> None:
    """Start a process that passes over interrupts, from its first moment on: Ctrl-C at a terminal is for all, but the
    run ends its processes itself.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _status(code: int) -> str:
    """An exit status in words; a negative one is that of a signal."""
    return signal.Signals(-code).name if code < 0 else f"status {code}"


def end_on_sigterm() -> None:
    """Let SIGTERM end this process as an error does, with all that is to be done at the end."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
