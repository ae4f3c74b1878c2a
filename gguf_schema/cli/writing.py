"""What commands that write a new file, or several, have in common."""

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from ..errors import GGUFError
from ..schema import MAGIC
from ..targets import Show
from ..write import Plan
from .arguments import Parser, UsageError
from .streams import demand_free, reason, say, tell

OUT_HELP = "the new file, which must not be there yet; '-' is standard output"


def add_options(added: Parser, what: str) -> None:
    """Add --force and --dry-run."""
    added.add_argument("--force", action="store_true", help=f"replace {what}, if there and GGUF")
    added.add_argument("--dry-run", action="store_true", help="only print what would be written")


def written(plan: Plan, out: str, force: bool) -> int:
    """Write a file; say what changed. The exit status.

    Raises:
        GGUFError: It is there, or cannot be written.
    """
    if out == "-":
        from ..targets import chunks_of

        status = tell(chunks_of(plan.pieces))
        name = "standard output"
    else:
        save(out, lambda show: plan.save(out, overwrite=force, show=show))
        status, name = 0, out
    if status == 0:
        for change in plan.changes:
            say(name, str(change))
        say(name, f"{plan.size} bytes written")
    return status


def demand_replaceable(out: str, force: bool, files: Sequence[str]) -> None:
    """As `demand_free`; what is no GGUF file is not replaced at all: it was hardly meant, as a list of edits is not.

    Raises:
        GGUFError: A file is there.
    """
    if out == "-":
        demand_no_terminal()
        return
    demand_free(out, force, files)
    if _start(out) not in (MAGIC, b""):
        raise GGUFError(f"{out} is no GGUF file: it is not overwritten; remove it if it is meant")


def demand_no_model(out: str, force: bool, files: Sequence[str]) -> None:
    """As `demand_free`, where no GGUF file is written: one is not replaced at all, it was hardly meant.

    Raises:
        GGUFError: A file is there.
    """
    if out == "-":
        return
    demand_free(out, force, files)
    if _start(out) == MAGIC:
        raise GGUFError(f"{out} is a GGUF file: it is not overwritten; remove it if it is meant")


def demand_no_terminal() -> None:
    """Refuse to write a binary file to standard output where that is a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("standard output is a terminal: name a file, or send it to another program")


def _start(out: str) -> bytes:
    """The first bytes of a file, where a magic would be; none where no file is."""
    start = b""
    if os.path.isfile(out):
        with contextlib.suppress(FileNotFoundError), open(out, "rb") as there:  # another writer may replace it just now
            start = there.read(len(MAGIC))
    return start


def save(out: str, do: Callable[[Show], None]) -> None:
    """Write what is called `out`, with progress.

    Raises:
        GGUFError: A file is there already, or it cannot be written.
    """
    from ..progress import progress

    try:
        with progress(out) as show:
            do(show)
    except FileExistsError as error:
        raise GGUFError(f"{os.fsdecode(error.filename)} is there already; --force replaces it") from None
    except OSError as error:
        raise GGUFError(f"cannot write {os.fsdecode(error.filename or out)}: {reason(error)}") from None
