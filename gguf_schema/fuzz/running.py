"""One run of a reader on one file, within limits. For POSIX systems.

The limits are set by a shell that the reader then takes the place of: between fork and exec no Python runs, which is
not safe where there are threads.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from threading import Event
from typing import NamedTuple

from ..errors import GGUFError

SHELL = 'ulimit -c 0 2>/dev/null; ulimit -v "$1" 2>/dev/null; shift; exec "$@"'
"""Sets no limit that the system does not have: macOS has none on memory."""

LIMIT = 'ulimit -v "$1" && test "$(ulimit -v)" = "$1"'
"""Whether such a limit can be set: of a number that is too large some shells make another."""

KEPT = 1 << 16
"""Bytes kept of the end of what a reader says on stderr."""

TICK = 0.1
"""Seconds between two looks at whether to stop, or whether a reader has ended whose children still hold stderr."""

SOON = 0.001
"""Seconds until the first look whether a reader that has closed stderr has ended, too."""

KIB = 1024
"""Of a MiB; the shell counts in KiB."""


class Limits(NamedTuple):
    """What a run may take.

    Attributes:
        timeout: Seconds.
        memory: MiB of address space; 0 is no limit.
    """

    timeout: float = 5.0
    memory: int = 2048


class Ended(NamedTuple):
    """How a run ended.

    Attributes:
        status: As `subprocess` has it; None where its time was over.
        told: The end of what was said on stderr.
    """

    status: int | None
    told: str


class Stopped(Exception):  # noqa: N818 (no error)
    """The run was ended because all are."""


def arguments(command: Sequence[str], path: str) -> list[str]:
    """The command for a file: its path in place of each `{}` of the arguments, or where there is none, at the end."""
    program, *given = command
    filled = [argument.replace("{}", path) for argument in given]
    return [program, *filled] if has_place(command) else [program, *filled, path]


def has_place(command: Sequence[str]) -> bool:
    """Whether a command says where the path goes."""
    return any("{}" in argument for argument in command[1:])


def demand_limit(memory: int) -> None:
    """Refuse a limit that the system would not set.

    Args:
        memory: MiB; 0 is no limit.

    Raises:
        GGUFError: It is too large, or there is a smaller one already.
    """
    if sys.platform == "darwin":
        return
    asking = ["/bin/sh", "-c", LIMIT, "sh", _kib(memory)]
    if subprocess.run(asking, stderr=subprocess.DEVNULL, check=False).returncode:
        raise GGUFError(f"the system sets no such limit on memory: {_kib(memory)} KiB")


def _kib(memory: int) -> str:
    """As the shell takes it."""
    return str(memory * KIB) if memory else "unlimited"


def run(command: Sequence[str], path: str, limits: Limits, stop: Event, by_stdin: bool = False) -> Ended:
    """Run a reader on a file. What it leaves running in its process group is ended, too.

    Args:
        command: The reader (see `arguments`).
        path: The file.
        limits: What it may take.
        stop: Set to end it.
        by_stdin: Whether it gets the file on standard input, and not the path.

    Raises:
        OSError: The file or the shell is gone, or there are too many files or processes.
        Stopped: It was ended.
    """
    given = command if by_stdin else arguments(command, path)
    with open(path if by_stdin else os.devnull, "rb") as stdin:
        process = subprocess.Popen(
            ["/bin/sh", "-c", SHELL, "sh", _kib(limits.memory), *given],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    assert process.stderr is not None
    with process.stderr as pipe:
        try:
            told, is_over = _watched(process, pipe.fileno(), time.monotonic() + limits.timeout, stop)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS forbids it where nobody is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = told.decode("utf-8", "replace").replace(path, "{}")  # which is another one each time
    return Ended(None if is_over else process.returncode, text)


def _watched(process: subprocess.Popen[bytes], pipe: int, end: float, stop: Event) -> tuple[bytes, bool]:
    """The end of what a reader says until it has ended, and whether its time was over before."""
    ready = select.poll()  # which, unlike select.select, takes any number of open files
    ready.register(pipe, select.POLLIN)
    told, is_open, pause = b"", True, SOON
    while True:
        has_ended = _has_ended(process)
        left = end - time.monotonic()
        if stop.is_set():
            raise Stopped
        if left <= 0:
            return told, not has_ended
        if is_open and ready.poll(0 if has_ended else 1000 * min(left, TICK)):
            said = os.read(pipe, KEPT)
            told = (told + said)[-KEPT:]
            is_open = bool(said)
        elif has_ended:
            return told, False
        elif not is_open:
            time.sleep(min(left, pause))
            pause = min(2 * pause, TICK)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a reader has; its number, which is its group's, stays taken, where the system can tell without that."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None
