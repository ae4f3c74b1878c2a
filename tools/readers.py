"""Other readers of GGUF, each in a process of its own that reads one file after the other, fast. For Linux.

`running` starts a reader and gives what it makes of bytes. Its process (see `reading`) loads the reader once and forks;
the child reads files from memory until it dies of one, or hangs; then another goes on. What came of a file is an
`Outcome`, as of commands that `gguf-schema fuzz` runs, with one kind more: raised, where a Python reader raises what it
does not mean to (no ValueError, or an error in decoding), which is a fault of it, and a refusal, too.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.fuzz.outcomes import MEMORY, Outcome, located, outcome
from gguf_schema.fuzz.running import Limits
from tools import reading

LIMITS = Limits(2.0, 512)
"""What a file may take."""

FOLDERS = re.compile(r"\S*/")
"""Of the place of a crash in C: where the reader was compiled."""


class Reader(NamedTuple):
    """A reader that may be installed; its name is that of the profile that says what it should do.

    Attributes:
        package: The Python package that it is in.
    """

    package: str

    @property
    def is_installed(self) -> bool:
        """Whether it is, and can be run here."""
        return find_spec(self.package) is not None and hasattr(os, "memfd_create")


READERS = {"llama.cpp": Reader("ggml"), "llama.cpp-data": Reader("ggml"), "gguf-py": Reader("gguf")}
"""Name → reader."""


class Running:
    """A reader in its process. What it says on stderr is kept from people, and looked at where it dies."""

    def __init__(self, name: str, limits: Limits = LIMITS) -> None:
        command = [sys.executable, reading.__file__, name, json.dumps(limits)]
        settings = {**os.environ, "GGML_NO_BACKTRACE": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def read(self, data: bytes) -> Outcome:
        """What it does with a file; of one that it accepts `told` is what it sees, as JSON (see `reading.Seen`)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(len(data).to_bytes(reading.HEAD, "little") + data)
        self.process.stdin.flush()
        return _outcome(*json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End it, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def _outcome(word: str, what: Any, told: str = "") -> Outcome:
    """What a line of the process means."""
    if word == "accept":
        return Outcome("accept", told=json.dumps(what))
    if word == "reject":
        return Outcome("reject", told=what)
    if word == "raised":
        return Outcome("memory" if MEMORY.search(what) else "raised", located(what), True, what)
    if what == -signal.SIGALRM:
        raise TimeoutError("the reader does nothing")
    if what == -signal.SIGPROF:
        return Outcome("hang")
    made = outcome(what, told)
    return made._replace(detail=FOLDERS.sub("", made.detail))


@contextlib.contextmanager
def running(name: str, limits: Limits = LIMITS) -> Iterator[Running]:
    """A reader of READERS, started, and at the end gone.

    Args:
        name: Which.
        limits: What a file may take.
    """
    made = Running(name, limits)
    try:
        yield made
    finally:
        made.close()
