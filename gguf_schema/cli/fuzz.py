"""`gguf-schema fuzz`."""

import argparse
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from ..errors import GGUFError
from ..targets import ending_handlers
from .arguments import PROFILE_NAMES, Commands, UsageError, command, number_of_jobs, positive, seconds, whole, words
from .streams import INTERRUPTED, UNREADABLE, allow_many_files, models_in, say

COUNT = 1000

FILES = ("seed", "start", "count")
RUNS = ("against", "stdin", "error", "time", "jobs", "timeout", "memory", "profile", "json", "save")
GO_WITH: dict[str, tuple[str, ...]] = {"coverage": ("json",), "out": FILES, "stream": FILES, "export": ()}
"""What is done instead of running a command, and the options that go with it."""


def fuzz(args: argparse.Namespace) -> str | tuple[str, int] | Iterator[bytes]:
    """Try a reader on mutants of valid files: what crashes it, what it hangs on, what it judges wrongly."""
    _demand_sense(args)
    if args.coverage:
        return _coverage(args)
    if args.export is not None:
        return _export(*args.export)
    seed, start = args.seed or 0, args.start or 0
    count = COUNT if args.count is None and args.time is None else args.count
    if args.stream:
        from ..fuzz.stream import stream

        return stream(seed, start, count)
    if args.out is not None:
        from ..fuzz import folder

        folder.write(args.out, seed, start, count)
        files = "1 file" if count == 1 else f"{count} files"
        return f"{files}; what each is stands in {os.path.join(args.out, folder.LABELS)}"
    return _run(args, seed, start, count)


def _demand_sense(args: argparse.Namespace) -> None:
    """Refuse arguments that do not go together."""
    instead = next((name for name in GO_WITH if getattr(args, name)), None)
    if bool(args.command) != (instead in (None, "coverage")):
        raise UsageError("fuzz wants a command, behind --, or --out, --stream or --export, or files for --coverage")
    if instead is not None:
        for name in (*FILES, *RUNS):
            if getattr(args, name) is not None and name not in GO_WITH[instead]:
                raise UsageError(f"--{name} does not go with --{instead}")
    if args.stdin and any("{}" in argument for argument in (*args.command[1:], *(args.against or [])[1:])):
        raise UsageError("with --stdin there is no path to put in place of {}")


def _run(args: argparse.Namespace, seed: int, start: int, count: int | None) -> tuple[str, int]:
    """What the reader does wrong."""
    from ..fuzz import Limits, folder, fuzz, reader, report, smallest_of_each
    from ..progress import progress
    from ..validate import PROFILES

    if os.name != "posix":
        raise GGUFError("readers can be run on POSIX systems only; --out writes files anywhere")
    for given in (args.command, args.against):
        if given and shutil.which(given[0]) is None:
            raise GGUFError(f"there is no command {given[0]!r}")
    if args.save is not None:
        folder.prepare(args.save)
    allow_many_files()
    profile = PROFILES[args.profile] if args.profile else None
    jobs = args.jobs or os.cpu_count() or 1
    limits = Limits(**{name: given for name in Limits._fields if (given := getattr(args, name)) is not None})
    with ExitStack() as stack:
        stop = stack.enter_context(_stopped_by_signals())
        how = limits, bool(args.stdin), args.error or [], stop
        tried = stack.enter_context(reader(args.command, *how))
        against = stack.enter_context(reader(args.against, *how)) if args.against else None
        readers = [tried] if against is None else [tried, against]
        with progress("fuzz") as show:
            done = fuzz(tried, seed, start, count, args.time, jobs, profile, show, against)
        found = done.found()
        if args.save is not None:
            with progress("minimise") as show:
                found = smallest_of_each(tried, done, jobs, profile, show, against)
        told = report.records(done, found, readers, profile, args.save)
    for line in (*report.refusals(done), *([done.trouble] if done.trouble else [])):
        say("fuzz", line)
    text = report.as_json(done, told) if args.json else report.as_text(done, told, profile)
    return text, 1 if told else UNREADABLE if done.trouble else INTERRUPTED if done.is_interrupted else 0


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """What is set, as often as they come, by the signals that else would end the process, and leave readers running."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    usual = ending_handlers()
    try:
        for number in usual:
            signal.signal(number, end)
        yield stop
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _coverage(args: argparse.Namespace) -> str:
    """What of the format the files exercise, that stand where else the command does."""
    from ..fuzz.coverage import coverage, coverage_json, coverage_text, exercised

    files = {}
    for given in args.command:
        models = models_in(given)
        if not models:
            raise GGUFError(f"there is no model in {given}")
        files.update({name: exercised(name) for name in models})
    found = coverage(files)
    return coverage_json(found) if args.json else coverage_text(found, list(files))


def _export(form: str, folder: str) -> str:
    """Seeds and a dictionary for other fuzzers."""
    if form != "libfuzzer":
        raise UsageError(f"--export knows libfuzzer, not {form!r}")
    from ..fuzz.export import DICTIONARY, SEEDS, libfuzzer

    sizes, words = libfuzzer(folder)
    seeds, dictionary = (os.path.join(folder, name) for name in (SEEDS, DICTIONARY))
    return (
        f"{len(sizes)} files of {sizes[0]} to {sizes[-1]} bytes, {sum(sizes)} in all, in {seeds}\n"
        f"{words} words in {dictionary}"
    )


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, fuzz)
    added.add_argument(
        "command",
        metavar="COMMAND",
        nargs="*",
        help="behind '--': the reader, with {} where the file goes, or at the end",
    )
    other = added.add_mutually_exclusive_group()
    other.add_argument(
        "--coverage",
        action="store_true",
        help="run nothing: say what of the format files, or folders of models, exercise; they stand for the command",
    )
    other.add_argument("--out", metavar="DIR", help="run nothing: write the files, and labels.json, into this folder")
    other.add_argument(
        "--stream", action="store_true", help="run nothing: print each file behind a line of JSON that says its size"
    )
    other.add_argument(
        "--export",
        nargs=2,
        metavar=("libfuzzer", "DIR"),
        help="run nothing: write seeds and a dictionary, for libFuzzer and AFL++, into this folder",
    )
    added.add_argument(
        "--against", type=words, metavar="COMMAND2", help="another reader, in one string: tell where the two differ"
    )
    added.add_argument(
        "--stdin", action="store_true", default=None, help="readers get the file on standard input, not its path"
    )
    added.add_argument(
        "--error",
        action="append",
        metavar="NAME",
        help="the Python exception that a reader refuses files with: its traceback is no crash; may be repeated",
    )
    added.add_argument("--seed", type=whole, metavar="S", help="which files; default: 0")
    added.add_argument("--start", type=whole, metavar="I", help="the first of them; default: 0")
    end = added.add_mutually_exclusive_group()
    end.add_argument("--count", type=positive, metavar="N", help=f"how many; default: {COUNT}")
    end.add_argument("--time", type=seconds, metavar="SECONDS", help="as many as can be run in this time")
    added.add_argument(
        "--jobs", type=number_of_jobs, metavar="J", help=f"runs at a time; default: {os.cpu_count() or 1}"
    )
    added.add_argument("--timeout", type=seconds, metavar="T", help="seconds that a run may take; default: 5")
    added.add_argument("--memory", type=whole, metavar="MIB", help="that a run may take; default: 2048; 0 is no limit")
    added.add_argument(
        "--profile", metavar="P", choices=PROFILE_NAMES[:-1], help="compare verdicts with this profile's"
    )
    added.add_argument("--json", action="store_true", default=None, help="as one JSON document")
    added.add_argument("--save", metavar="DIR", help="make each finding small, and save it with its label and map")
