"""A reader: a command that is run on files."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol

from ..errors import GGUFError
from .outcomes import Outcome, outcome
from .running import Ended, Limits, Stopped, arguments, demand_limit, run

NOT_RUN = (126, 127)
"""What a shell exits with, and the dynamic loader, where a command cannot be run; but any program may."""

NO_SHADOW = "ReserveShadowMemoryRange failed"
"""What AddressSanitizer says where it cannot even begin."""


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
        has_run: Set when it is known that it can be run.
    """

    command: Sequence[str]
    limits: Limits
    folder: Path
    stop: Event
    by_stdin: bool = False
    errors: Collection[str] = ()
    has_run: Event = field(default_factory=Event)

    def read(self, data: bytes) -> Outcome:
        """What it does with a file.

        Raises:
            GGUFError: It cannot be run.
            OSError: The file cannot be written, or no process made.
            Stopped: It was ended.
        """
        if self.stop.is_set():
            raise Stopped
        handle, path = tempfile.mkstemp(".gguf", dir=self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            ended = run(self.command, path, self.limits, self.stop, self.by_stdin)
        finally:
            with suppress(OSError):  # readers may do anything with it
                os.unlink(path)
        self._demand_run(ended)
        if ended.status is None:
            return Outcome("hang", told=ended.told)
        return outcome(ended.status, ended.told, self.errors)

    def _demand_run(self, ended: Ended) -> None:
        """Refuse a command that could not be run; of one that could before, a status alone does not say so."""
        is_new = not self.has_run.is_set()
        if ended.status in NOT_RUN and (is_new or shutil.which(self.command[0]) is None):
            raise GGUFError(f"{self.command[0]} cannot be run: {ended.told.strip()}")
        if is_new and NO_SHADOW in ended.told:
            raise GGUFError(f"{self.command[0]} is built with AddressSanitizer, which wants --memory 0")
        self.has_run.set()

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
    command: Sequence[str],
    limits: Limits,
    by_stdin: bool = False,
    errors: Collection[str] = (),
    stop: Event | None = None,
) -> Iterator[Reader]:
    """A reader with a folder for its files, which is gone afterwards, as are all runs.

    Args:
        command: See `Reader`, as for the others.
        limits: What a run may take.
        by_stdin: Whether it reads a file from standard input.
        errors: The Python exceptions that it refuses files with.
        stop: Set to end all runs; by default one of its own.

    Raises:
        GGUFError: The system does not set such a limit.
        OSError: There is no room for the folder.
    """
    demand_limit(limits.memory)
    with tempfile.TemporaryDirectory(prefix="gguf-fuzz-", ignore_cleanup_errors=True) as folder:
        made = Reader(command, limits, Path(folder), stop or Event(), by_stdin, errors)
        try:
            yield made
        finally:
            made.stop.set()
