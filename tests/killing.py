"""Processes that are killed at a call to the system, in the middle of a write, or at a random moment."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from gguf_schema import targets

CALLS = ("open", "write", "fsync", "replace", "unlink", "link", "copy_file_range", "sendfile")
WRITE = os.write


class Calls:
    """Counts calls to the system, and kills the process before one of them, or in the middle of a write."""

    def __init__(self, pipe: int, last: int, torn: bool) -> None:
        self.pipe, self.last, self.torn, self.count = pipe, last, torn, 0
        for name in CALLS:
            if hasattr(os, name):
                setattr(os, name, self.counted(name, getattr(os, name)))
        targets._write_all = self.counted("write to a file object", targets._write_all)

    def counted(self, name, original):
        def call(*args, **kwargs):
            self.count += 1
            if self.count == self.last:
                if self.torn and name == "write":
                    original(args[0], memoryview(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return original(*args, **kwargs)
            finally:
                WRITE(self.pipe, name[:1].encode())

        return call


def killed(action, last=0, torn=False, delay=None):
    """Fork a process that does something, and kill it.

    Args:
        action: What is done.
        last: The number of the call that it does not live to see.
        torn: Let it do half of that, if it is a write.
        delay: Or kill it so many seconds after its start.

    Returns:
        The calls that it made, each by its first letter, and whether it ended by itself.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        Calls(writing, last, torn)
        WRITE(writing, b".")
        action()
        os._exit(0)
    os.close(writing)
    if delay is not None:
        select.select([reading], [], [])
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    calls = b""
    while more := os.read(reading, 4096):
        calls += more
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return calls.decode(), not os.WIFSIGNALED(status)


MOST_LATE = 100
"""Kills in a row that may come too late."""


def at_random(kill, seconds, wanted):
    """Kill something at random moments, until enough kills came before its end.

    Args:
        kill: Does it and kills it, so many seconds after its start; gives something true where that was in time.
        seconds: How long it took once. That may be long: what comes too late lets the moments be earlier from then on.
        wanted: How many kills shall be in time.

    Yields:
        What each of those gave.

    Raises:
        RuntimeError: Too many in a row come too late.
    """
    late = 0
    while wanted:
        found = kill((0.25 + 0.75 * random.random()) * seconds)
        if found:
            yield found
            wanted, late = wanted - 1, 0
            continue
        late, seconds = late + 1, 0.9 * seconds
        if late > MOST_LATE:
            raise RuntimeError(f"{late} kills in a row came too late")


def restore(folder, kept):
    """Make a folder hold these files and nothing else, all of one time, as a record and what it is of."""
    now = time.time_ns()
    for file in folder.iterdir():
        file.unlink()
    for name, data in kept.items():
        (folder / name).write_bytes(data)
        os.utime(folder / name, ns=(now, now))


def counts_of(module, *arguments):
    """Run one of the programs that kill, which fail where something is neither old nor new: what they counted."""
    command = [sys.executable, "-m", f"tests.{module}", *arguments]
    run = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    print(counts)
    return counts
