"""A reader: a command that is run on files."""

import os
import shlex
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol

from .running import Limits, Outcome, Stopped, arguments, run


class Reads(Protocol):
    """Whatever can be tried on a file."""

    def read(self, data: bytes) -> Outcome:
        """What it does with a file."""


@dataclass(frozen=True)
class Reader:
    """A command, ready to be run on bytes.

    Attributes:
        command: The command and its arguments (see `running.arguments`).
        limits: What a run may take.
        folder: Where files are put for it.
        stop: Set to end all runs.
        by_stdin: Whether it reads a file from standard input; else it gets the path.
        errors: The Python exceptions that it refuses files with.
    """

    command: Sequence[str]
    limits: Limits
    folder: Path
    stop: Event
    by_stdin: bool = False
    errors: Collection[str] = ()

    def read(self, data: bytes) -> Outcome:
        """What it does with a file."""
        if self.stop.is_set():
            raise Stopped
        handle, path = tempfile.mkstemp(".gguf", dir=self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            return run(self.command, path, self.limits, self.stop, self.by_stdin, self.errors)
        finally:
            os.unlink(path)

    def line(self, path: str) -> str:
        """What to type to see what it does with a file."""
        if self.by_stdin:
            return f"{shlex.join(self.command)} < {shlex.quote(path)}"
        return shlex.join(arguments(self.command, path))

    def options(self) -> list[str]:
        """How `gguf-schema fuzz` is told to run it like this, as far as it would not by itself."""
        usual = Limits()
        told = ["--stdin"] if self.by_stdin else []
        for error in self.errors:
            told += ["--error", error]
        for name, value in self.limits._asdict().items():
            if value != getattr(usual, name):
                told += [f"--{name}", str(value)]
        return told


@contextmanager
def reader(
    command: Sequence[str], limits: Limits, by_stdin: bool = False, errors: Collection[str] = ()
) -> Iterator[Reader]:
    """A reader with a folder for its files, which is gone afterwards, as are all runs."""
    with tempfile.TemporaryDirectory(prefix="gguf-fuzz-") as folder:
        made = Reader(command, limits, Path(folder), Event(), by_stdin, errors)
        try:
            yield made
        finally:
            made.stop.set()
