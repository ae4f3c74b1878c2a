"""One run of a reader on one file, within limits, and what came of it. For POSIX systems.

The limits are set by a shell that the reader then takes the place of: between fork and exec no Python runs, which is
not safe where there are threads.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from threading import Event
from typing import NamedTuple

from ..errors import GGUFError

SHELL = 'ulimit -c 0 2>/dev/null; ulimit -v "$1" 2>/dev/null; shift; exec "$@"'
"""Sets no limit that the system does not have: macOS has none on memory."""

KEPT = 1 << 16
"""Bytes kept of the end of what a reader says on stderr."""

TICK = 0.1
"""Seconds between two looks at whether to stop."""

KIB = 1024
"""Of a MiB; the shell counts in KiB."""


SIGNALS = {int(known): known.name for known in signal.Signals}

NOT_RUN = (126, 127)
"""What a shell exits with, and the dynamic loader, where a command cannot be run."""


class Limits(NamedTuple):
    """What a run may take.

    Attributes:
        timeout: Seconds.
        memory: MiB of address space; 0 is no limit.
    """

    timeout: float = 5.0
    memory: int = 2048


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        kind: accept, reject, crash, hang or memory.
        detail: Of a crash, or a fault in getting memory, where it happened or what it was: the place in the code, or
            the signal.
        is_located: Whether that is a place in the reader's code.
        told: The end of what was said on stderr.
    """

    kind: str
    detail: str = ""
    is_located: bool = False
    told: str = ""


class Stopped(Exception):  # noqa: N818 (no error)
    """The run was ended because all are."""


SANITIZER = re.compile(r"(?:ERROR|WARNING): (\w+Sanitizer: [\w-]+)")
SANITIZER_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in (?!__|_?malloc|_?free|operator )(\S+)", re.MULTILINE)
PYTHON = "Traceback (most recent call last):"
PYTHON_FRAME = re.compile(r'^ +File "(.*)", line (\d+), in (.*)$', re.MULTILINE)
PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$", re.MULTILINE)
LINES = (
    re.compile(r"(?<!\S)(\S{1,300}:\d+):\d+: (runtime error): "),
    re.compile(r"thread '[^'\n]{0,100}' (?:\(\d+\) )?(panicked) at (\S{1,300})"),
    re.compile(r"(?<!\S)(\S{1,300}:\d+): (?:\S{1,300}: )?(GGML_ASSERT|Assertion)\b"),
)
"""What else tells where a crash was: UndefinedBehaviorSanitizer, Rust, assertions in C. All is bounded: a reader may
say anything, and a long word must not take long."""

PANIC = re.compile(r"^panic: .*\n(?:.*\n){0,9}?goroutine .*\n(?:panic\(.*\n.*\n)*(\S{1,300})\(", re.MULTILINE)
"""Go: the function where it was."""

MEMORY = re.compile(
    r"\bMemoryError\b|bad_alloc|memory allocation of \d+ bytes failed|out of memory|Cannot allocate memory"
    r"|allocation-size-too-big|Unable to allocate",
    re.IGNORECASE,
)


def arguments(command: Sequence[str], path: str) -> list[str]:
    """The command for a file: its path in place of each `{}`, or where there is none, at the end."""
    filled = [argument.replace("{}", path) for argument in command]
    return filled if any("{}" in argument for argument in command) else [*filled, path]


def run(
    command: Sequence[str],
    path: str,
    limits: Limits,
    stop: Event,
    by_stdin: bool = False,
    errors: Collection[str] = (),
) -> Outcome:
    """Run a reader on a file.

    Args:
        command: The reader (see `arguments`).
        path: The file.
        limits: What it may take.
        stop: Set to end it.
        by_stdin: Whether it gets the file on standard input, and not the path.
        errors: The Python exceptions that it refuses files with (see `outcome`).

    Raises:
        GGUFError: It cannot be run.
        OSError: There is no shell.
        Stopped: It was ended.
    """
    memory = str(limits.memory * KIB) if limits.memory else "unlimited"
    given = command if by_stdin else arguments(command, path)
    with open(path if by_stdin else os.devnull, "rb") as stdin:
        process = subprocess.Popen(
            ["/bin/sh", "-c", SHELL, "sh", memory, *given],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    end = time.monotonic() + limits.timeout
    told = b""
    assert process.stderr is not None
    try:
        with process.stderr as pipe:
            is_open = True
            while is_open or process.poll() is None:
                left = min(end - time.monotonic(), TICK)
                if stop.is_set():
                    raise Stopped
                if left <= 0:
                    return Outcome("hang", told=_text(told, path))
                if not is_open:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(left)
                elif select.select([pipe], [], [], left)[0]:
                    said = os.read(pipe.fileno(), KEPT)
                    told = (told + said)[-KEPT:]
                    is_open = bool(said)
    finally:
        if process.returncode is None:  # not waited for yet: the number of its group is still its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = _text(told, path)
    if process.returncode in NOT_RUN:
        raise GGUFError(f"{command[0]} cannot be run: {text.strip()}")
    return outcome(process.returncode, text, errors)


def _text(told: bytes, path: str) -> str:
    """What was said; in place of the file's path, which is another each time, stands {}."""
    return told.decode("utf-8", "replace").replace(path, "{}")


def outcome(status: int, told: str, errors: Collection[str] = ()) -> Outcome:
    """What an exit status and what was said on stderr mean.

    Status 0 is accept, any other reject; but a signal, a sanitizer's report, a traceback or a panic is a crash.

    Args:
        status: As `subprocess` has it: negative for signals.
        told: What was said.
        errors: Python exceptions, with or without their modules, whose traceback is no crash, but a refusal.
    """
    place = located(told)
    number = -status if status < 0 else status - 128  # the second is how a shell says that its command got a signal
    name = SIGNALS.get(number, "")
    if status and not name and errors and _is_own(told, errors):
        return Outcome("reject", told=told)
    if status and MEMORY.search(told):
        return Outcome("memory", place or name, bool(place), told)
    if place or name:
        return Outcome("crash", place or name, bool(place), told)
    return Outcome("reject" if status else "accept", told=told)


def _is_own(told: str, errors: Collection[str]) -> bool:
    """Whether what was said ends in a traceback of one of these exceptions."""
    _, found, traceback = told.rpartition(PYTHON)
    error = _error(traceback) if found else ""
    return error in errors or error.rpartition(".")[2] in errors


def _error(traceback: str) -> str:
    """The exception that a traceback is of."""
    frames = list(PYTHON_FRAME.finditer(traceback))
    error = PYTHON_ERROR.search(traceback, frames[-1].end() if frames else 0)
    return error[1] if error else "error"


def located(told: str) -> str:
    """Where a crash was, from what was said of it; empty if nothing was."""
    if report := SANITIZER.search(told):
        frame = SANITIZER_FRAME.search(told, report.end())
        return f"{report[1]} in {frame[1]}" if frame else report[1]
    _, found, traceback = told.rpartition(PYTHON)
    if found:
        frames = PYTHON_FRAME.findall(traceback)
        if not frames:
            return _error(traceback)
        file, line, function = frames[-1]
        return f"{_error(traceback)} in {os.path.basename(file)}:{line} {function}"
    if panic := PANIC.search(told):
        return f"panic in {panic[1]}"
    for pattern in LINES:
        if line := pattern.search(told):
            return " ".join(line.groups())
    return ""
