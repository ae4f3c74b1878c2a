"""`gguf-schema fuzz`."""

import argparse
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack

from ..errors import GGUFError
from .arguments import PROFILE_NAMES, Commands, UsageError, command, positive, seconds, whole, words
from .streams import INTERRUPTED, models_in

COUNT = 1000


def fuzz(args: argparse.Namespace) -> str | tuple[str, int] | Iterator[bytes]:
    """Try a reader on mutants of valid files: what crashes it, what it hangs on, what it judges wrongly."""
    is_run = args.out is None and args.export is None and not args.stream
    if bool(args.command) != is_run:
        raise UsageError("fuzz wants a command, behind --, or --out, --stream or --export, or files for --coverage")
    if args.time is not None and not is_run:
        raise UsageError("--time goes with a command")
    if args.coverage:
        return _coverage(args)
    if args.export is not None:
        return _export(*args.export)
    count = COUNT if args.count is None and args.time is None else args.count
    if args.stream:
        from ..fuzz.stream import stream

        return stream(args.seed, args.start, count)
    if args.out is not None:
        from ..fuzz import folder

        folder.write(args.out, args.seed, args.start, count)
        return f"{count} files; what each is stands in {os.path.join(args.out, folder.LABELS)}"
    return _run(args, count)


def _run(args: argparse.Namespace, count: int | None) -> tuple[str, int]:
    """What the reader does wrong."""
    from ..fuzz import Limits, folder, fuzz, reader, report, smallest_of_each
    from ..progress import progress
    from ..validate import PROFILES

    if os.name != "posix":
        raise GGUFError("readers can be run on POSIX systems only; --out writes files anywhere")
    for given in (args.command, args.against):
        if given and shutil.which(given[0]) is None:
            raise GGUFError(f"there is no command {given[0]!r}")
    profile = PROFILES[args.profile] if args.profile else None
    how = Limits(args.timeout, args.memory), args.stdin, args.error
    with ExitStack() as stack:
        tried = stack.enter_context(reader(args.command, *how))
        against = stack.enter_context(reader(args.against, *how)) if args.against else None
        readers = [tried] if against is None else [tried, against]
        with progress("fuzz") as show:
            done = fuzz(tried, args.seed, args.start, count, args.time, args.jobs, profile, show, against)
        found = report.records(done, readers, args.profile)
        if args.save is not None:
            with progress("minimise") as show:
                small = smallest_of_each(tried, done, args.jobs, profile, show, against)
            kept = zip(done.findings.values(), small, strict=True)
            found = [folder.keep(args.save, finding, data, readers) for finding, data in kept]
    text = report.as_json(done, found) if args.json else report.as_text(done, found)
    return text, 1 if found else INTERRUPTED if done.is_interrupted else 0


def _coverage(args: argparse.Namespace) -> str:
    """What of the format the files exercise, that stand where else the command does."""
    from ..fuzz.coverage import coverage, coverage_json, coverage_text, exercised

    files = {name: exercised(name) for given in args.command for name in models_in(given)}
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
    added.add_argument("--stdin", action="store_true", help="readers get the file on standard input, not its path")
    added.add_argument(
        "--error",
        action="append",
        default=[],
        metavar="NAME",
        help="the Python exception that a reader refuses files with: its traceback is no crash; may be repeated",
    )
    added.add_argument("--seed", type=whole, default=0, metavar="S", help="which files; default: 0")
    added.add_argument("--start", type=whole, default=0, metavar="I", help="the first of them; default: 0")
    end = added.add_mutually_exclusive_group()
    end.add_argument("--count", type=positive, metavar="N", help=f"how many; default: {COUNT}")
    end.add_argument("--time", type=seconds, metavar="SECONDS", help="as many as can be run in this time")
    jobs = os.cpu_count() or 1
    added.add_argument("--jobs", type=positive, default=jobs, metavar="J", help=f"runs at a time; default: {jobs}")
    added.add_argument(
        "--timeout", type=seconds, default=5.0, metavar="T", help="seconds that a run may take; default: 5"
    )
    added.add_argument(
        "--memory", type=whole, default=2048, metavar="MIB", help="that a run may take; default: 2048; 0 is no limit"
    )
    added.add_argument(
        "--profile", metavar="P", choices=PROFILE_NAMES[:-1], help="compare verdicts with this profile's"
    )
    added.add_argument("--json", action="store_true", help="as one JSON document")
    added.add_argument("--save", metavar="DIR", help="make each finding small, and save it with its label and map")
