"""How far something is, told to who waits at a terminal: one line on stderr, written over and at the end cleared."""

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator

from .terminal import printable

PAUSE = 0.1
"""Seconds between two looks at the line."""


@contextlib.contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far something is, in percent, where stderr is a terminal; else nothing.

    Args:
        name: What is worked on.

    Yields:
        A function to call, often, with what is done and the whole.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda done, whole: None
        return
    width = max(1, shutil.get_terminal_size().columns - len(" 100 % "))
    shown, due = printable(name)[-width:], time.monotonic() + PAUSE
    line = ""

    def write(text: str) -> None:
        with contextlib.suppress(OSError):  # nobody can be told
            stream.write(text)
            stream.flush()

    def show(done: int, whole: int) -> None:
        nonlocal due, line
        if time.monotonic() >= due:
            due = time.monotonic() + PAUSE
            line = f"{shown} {100 * done // whole:3} %"
            write(f"\r{line}")

    try:
        yield show
    finally:
        if line:
            write(f"\r{' ' * len(line)}\r")
