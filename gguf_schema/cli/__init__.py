"""The command `gguf-schema`: a module for each subcommand. stdout is the answer, stderr is talk.

A subcommand is a module of its name, listed in `COMMANDS`. It has a function of that name, which takes the arguments
and gives what is to be printed (a text, or pieces of bytes; None for nothing; with an exit status, both as a pair),
and `add`, which says what arguments there are. Only the module that is asked for is imported, and that imports what it
needs itself.

arguments   how arguments are declared
streams     models and texts in, answers and complaints out
editing     what `set`, `unset` and `edit` have in common
writing     what commands that write a new file, or several, have in common

Exit status: 0 fine; 1 the answer is no; 2 usage, or what cannot be read, written or done; 130 interrupted, 129 and 143
by SIGHUP and SIGTERM; 141 nobody reads.
"""

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NoReturn

from ..errors import CheckError, FileKindError, GGUFError, ParseError
from ..shards import CUT
from ..targets import ending_handlers
from ..version import __version__
from .arguments import Parser, UsageError
from .streams import INTERRUPTED, UNREADABLE, reason, say, tell

COMMANDS = (
    *("info", "dump", "map", "explain", "check", "tables", "suite", "fuzz", "diff", "hash", "extract"),
    *("get", "set", "unset", "edit"),
    *("convert", "split", "merge"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process); returns the exit status."""
    try:
        return _main(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, so that no half-written file is left."""

    def end(number: int, frame: object) -> NoReturn:
        sys.exit(128 + number)

    ours = [number for number, handler in ending_handlers().items() if handler is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, end)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _main(given: Sequence[str]) -> int:
    parser = _parser(given)
    args = parser.parse_args(given)
    about = vars(args).get("file", args.function.__name__)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _ended_by_signals():
            answer = args.function(args)
            text, status = answer if isinstance(answer, tuple) else (answer, 0)
            return status if text is None else tell(text) or status
    except UsageError as error:
        command: Parser = args.parser
        command.error(str(error))
    except (GGUFError, OSError) as error:
        path = _at_fault(error)
        told = reason(error) if path is None or "file" in args else f"{path}: {reason(error)}"
        told = told.removeprefix(f"{about}: ")  # as errors of shards begin
        say(path if path and "file" in args else about, f"{told}{_hint(error, args)}")
        return UNREADABLE
    except MemoryError:
        say(about, "there is not enough memory")
        return UNREADABLE


def _at_fault(error: GGUFError | OSError) -> str | None:
    """The file that could not be opened, which may be another than that which the command is about."""
    name = error.filename if isinstance(error, OSError) else None
    return os.fsdecode(name) if isinstance(name, str | bytes) else None


def _hint(error: GGUFError | OSError, args: argparse.Namespace) -> str:
    """What tells more, or helps on, as words behind the error."""
    is_cut = isinstance(error, CheckError) and error.code in CUT
    if is_cut or (isinstance(error, ParseError) and not isinstance(error, FileKindError)):
        return " (`gguf-schema explain` shows the bytes, and a likely cause)"
    if isinstance(error, CheckError) and "no_check" in args:
        return " (--no-check reads the file all the same)"
    return ""


def _parser(arguments: Sequence[str]) -> Parser:
    """The parser for these arguments: it knows the one subcommand that they name, or else all."""
    parser = Parser(prog="gguf-schema", description="Look into GGUF files.")
    parser.add_argument("--version", action="version", version=f"gguf-schema {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=parser.prog)
    for name in [name for name in COMMANDS if name in arguments[:1]] or COMMANDS:
        import_module(f".{name}", __name__).add(commands)
    return parser
