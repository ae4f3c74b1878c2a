"""What came of a run: what an exit status, and what was said on stderr, mean."""

import os
import re
import signal
from collections.abc import Collection
from typing import NamedTuple


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


SIGNALS = {int(known): known.name for known in signal.Signals}
CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGSYS", "SIGTRAP"}
"""Signals that programs die of. A status above 128 is the number of one where a shell stands between, but any program
may exit with it."""

SANITIZER = re.compile(r"(?:ERROR|WARNING): (\w+Sanitizer: [\w-]+)")
SANITIZER_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in (?!__|_?malloc|_?free|operator )(\S+)", re.MULTILINE)
PYTHON = "Traceback (most recent call last):"
PYTHON_FRAME = re.compile(r'^ +File "(.*)", line (\d+), in (.*)$', re.MULTILINE)
PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$", re.MULTILINE)
NODE = re.compile(r"^Node\.js v[\d.]+\s*\Z", re.MULTILINE)
NODE_ERROR = re.compile(r"\n\n([A-Za-z_$][\w$.]*)[^\n]*\n(?:(?! {4}at )[^\n]*\n){0,99}(?= {4}at )")
NODE_FRAME = re.compile(
    r"^ {4}at (?:(?!node:)(.{1,300}) \()?(?!node:)(?:[^\s()]*/)?([^\s()/]{1,300}?:\d+):\d+\)?", re.MULTILINE
)
JAVA = re.compile(r'^Exception in thread "[^"\n]{0,100}" ([\w$.]+)', re.MULTILINE)
JAVA_FRAME = re.compile(r"^\tat (?!java\.base/)(\S{1,300})\(([^\s()]{1,300})\)", re.MULTILINE)
LINES = (
    re.compile(r"(?<!\S)(\S{1,300}:\d+):\d+: (runtime error): "),
    re.compile(r"thread '[^'\n]{0,100}' (?:\(\d+\) )?(panicked) at (?:'.{0,300}', )?(\S{1,300}:\d+:\d+)"),
    re.compile(r"(?<!\S)(\S{1,300}:\d+): (?:\S{1,300}: )?(GGML_ASSERT|Assertion)\b"),
    re.compile(r"^(fatal error: .{1,100})\n\n(?:runtime stack:|goroutine )", re.MULTILINE),
)
"""What else tells where a crash was: UndefinedBehaviorSanitizer, Rust, assertions in C, what Go does not recover from.
All is bounded: a reader may say anything, and a long word must not take long."""

PANIC = re.compile(r"^panic: .*\n(?:.*\n){0,9}?goroutine .*\n(?:panic\(.*\n.*\n)*(\S{1,300})\(", re.MULTILINE)
"""Go: the function where it was."""

MEMORY = re.compile(
    r"MemoryError\b|bad_alloc|memory allocation of \d+ bytes failed|out.of.memory|Cannot allocate memory"
    r"|allocation-size-too-big|Unable to allocate",
    re.IGNORECASE,
)


def outcome(status: int, told: str, errors: Collection[str] = ()) -> Outcome:
    """What an exit status and what was said on stderr mean.

    Status 0 is accept, any other reject; but a signal, a sanitizer's report, a traceback or a panic is a crash, and if
    that is for want of memory, it is called so.

    Args:
        status: As `subprocess` has it: negative for signals.
        told: What was said.
        errors: Python exceptions, with or without their modules, whose traceback is no crash, but a refusal.
    """
    place = located(told)
    name = _signal(status)
    if not name and _is_own(told, errors):
        return Outcome("reject", told=told)
    if not (place or name):
        return Outcome("reject" if status else "accept", told=told)
    kind = "memory" if status and MEMORY.search(place or told) else "crash"
    return Outcome(kind, place or name, bool(place), told)


def _signal(status: int) -> str:
    """The signal that a run ended by; empty if by none."""
    if status < 0:
        return SIGNALS.get(-status, f"signal {-status}")
    name = SIGNALS.get(status - 128, "")
    return name if name in CRASHES else ""


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
    if NODE.search(told):
        error = NODE_ERROR.search(told)
        frame = NODE_FRAME.search(told, error.end() if error else 0)
        place = f" in {frame[2]} {frame[1] or ''}".rstrip() if frame else ""
        return f"{error[1] if error else 'uncaught'}{place}"
    if uncaught := JAVA.search(told):
        frame = JAVA_FRAME.search(told, uncaught.end())
        return f"{uncaught[1]} in {frame[2]} {frame[1]}" if frame else uncaught[1]
    if panic := PANIC.search(told):
        return f"panic in {panic[1]}"
    for pattern in LINES:
        if line := pattern.search(told):
            return " ".join(line.groups())
    return ""
