"""The command `gguf-schema`: one function a subcommand. stdout is the answer, stderr is talk.

A subcommand imports what it needs itself, so that the others do not wait for it.

Exit status: 0 fine; 1 the answer is no; 2 usage, or a file that cannot be read; 130 interrupted; 141 nobody reads.
"""

import argparse
import contextlib
import io
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

from .errors import GGUFError
from .file import Model, open
from .terminal import printable
from .version import __version__

UNREADABLE = 2
INTERRUPTED = 130
FUZZ_COUNT = 1000
PROFILE_NAMES = ("default", "strict", "spec", "llama.cpp", "llama.cpp-data", "gguf-py", "gguf-py-head", "all")
FAIL_ON_HELP = (
    "let the exit status be 1 also for this, whatever the verdict (default: only for a file that is rejected)"
)
PROFILE_HELP = f"for whom: {', '.join(PROFILE_NAMES)}"


def info(args: argparse.Namespace) -> str:
    """Print what is in a file."""
    from .summary import summary_json, summary_text

    with _model(args) as model:
        return summary_json(model) if args.json else summary_text(model)


def dump(args: argparse.Namespace) -> str:
    """Print all metadata and tensor infos of a file."""
    from .dump import dump_json, dump_markdown, dump_text

    with _model(args) as model:
        tensors = not args.no_tensors
        if args.data_offset:
            return str(model.data_offset)
        if args.data_alignment:
            return str(model.alignment)
        if args.json or args.json_array:
            return dump_json(model, arrays=args.json_array, tensors=tensors)
        if args.markdown:
            return dump_markdown(model, tensors=tensors)
        return dump_text(model, tensors=tensors)


def map(args: argparse.Namespace) -> str | None:
    """Print which field every byte of a file belongs to."""
    from . import annotate

    with _model(args) as model:
        if args.at is not None:
            mapped, wanted = annotate.at(model, args.at), f"byte {args.at}: it ends at byte {model.size}"
        elif args.where is not None:
            mapped, wanted = annotate.where(model, args.where), f"field {args.where}"
        else:
            mapped, wanted = annotate.entries(model, annotate.everything if args.all else annotate.short), "bytes"
        if not mapped:
            raise GGUFError(f"the file has no {wanted}")
        if args.html is not None:
            from .page import map_html

            return _saved(args.file, args.html, map_html(model, mapped))
        if args.json:
            return annotate.map_json(model, mapped)
        return annotate.map_text(model.source, mapped, depth=args.depth, with_hex=args.hex)


def explain(args: argparse.Namespace) -> str | tuple[str, int]:
    """Print why a file cannot be read: how far it can, what stands there, what should, and a likely cause."""
    from .explain import explain as explained
    from .explain.text import explanation_text

    found = explained(_standard_input() if args.file == "-" else args.file)
    return explanation_text(found), 0 if found.error is None else UNREADABLE


def check(args: argparse.Namespace) -> tuple[str, int]:
    """Say whether files will load, here or in a named reader, and where they are wrong."""
    from .progress import progress
    from .validate import PROFILES, report
    from .validate import check as checked

    if args.explain is not None:
        text = report.explained(args.explain)
        if text is None:
            raise GGUFError(f"there is no rule {args.explain!r}; `gguf-schema tables rules` lists them")
        return text, 0
    names = list(PROFILES) if args.profile == "all" else ["strict" if args.strict else args.profile]
    profiles = [PROFILES[name] for name in names]
    judged, is_unreadable = [], False
    for given in args.files:
        files = _files(given)
        if not files:
            _say(given, "there is no model in this folder")
            is_unreadable = True
        for name in files:
            try:
                with progress(name) as show:
                    found = checked(_standard_input() if name == "-" else name, args.data, show)
            except (GGUFError, OSError) as error:
                _say(name, _reason(error))
                is_unreadable = True
                continue
            judged.append(report.Judged(name, found))
    if args.json:
        text = report.as_json(judged, profiles)
    elif args.profile == "all":
        text = report.for_readers(judged)
    else:
        text = report.as_text(judged, profiles[0])
    if is_unreadable:
        return text, UNREADABLE
    return text, int(report.is_refused(judged, profiles, args.fail_on))


def _files(name: str) -> list[str]:
    """The file, or of a folder the models in it and below, in the order of their names."""
    if not os.path.isdir(name):
        return [name]
    found = []
    for folder, folders, files in os.walk(name):
        folders.sort()
        models = sorted(os.path.join(folder, file) for file in files if file.lower().endswith(".gguf"))
        found += [model for model in models if os.path.isfile(model)]  # a pipe would wait for whoever writes
    return found


def tables(args: argparse.Namespace) -> str:
    """Print a table of the specification, made from the schema."""
    from .tables import FORMS, contents, table

    return FORMS[args.format](contents() if args.name is None else table(args.name))


def suite(args: argparse.Namespace) -> str:
    """Write a suite of small files, each with one fault or one feature, and what a reader should make of it."""
    from .suite.folder import files, write

    write(args.folder)
    return f"{len(files())} files; {os.path.join(args.folder, 'README.md')} says how to use them"


def fuzz(args: argparse.Namespace) -> str | tuple[str, int]:
    """Try a reader on mutants of valid files: what crashes it, what it hangs on, what it judges wrongly."""
    from .fuzz import Limits, folder, fuzz, reader, report, smallest_of_each
    from .progress import progress
    from .validate import PROFILES

    if args.coverage:
        return _coverage(args)
    count = FUZZ_COUNT if args.count is None and args.time is None else args.count
    if args.out is not None:
        folder.write(args.out, args.seed, args.start, count)
        return f"{count} files; what each is stands in {os.path.join(args.out, folder.LABELS)}"
    if os.name != "posix":
        raise GGUFError("readers can be run on POSIX systems only; --out writes files anywhere")
    if shutil.which(args.command[0]) is None:
        raise GGUFError(f"there is no command {args.command[0]!r}")
    profile = PROFILES[args.profile] if args.profile else None
    with reader(args.command, Limits(args.timeout, args.memory)) as tried:
        with progress("fuzz") as show:
            done = fuzz(tried, args.seed, args.start, count, args.time, args.jobs, profile, show)
        found = report.records(done, args.command)
        if args.save is not None:
            with progress("minimise") as show:
                small = smallest_of_each(tried, done, args.jobs, profile, show)
            kept = zip(done.findings.values(), small, strict=True)
            found = [folder.keep(args.save, finding, data, args.command) for finding, data in kept]
    text = report.as_json(done, found) if args.json else report.as_text(done, found)
    return text, 1 if found else INTERRUPTED if done.is_interrupted else 0


def _coverage(args: argparse.Namespace) -> str:
    """What of the format the files exercise, that stand where else the command does."""
    from .fuzz.coverage import coverage, coverage_json, coverage_text, exercised

    files = {name: exercised(name) for given in args.command for name in _files(given)}
    found = coverage(files)
    return coverage_json(found) if args.json else coverage_text(found, list(files))


def _model(args: argparse.Namespace) -> Model:
    """The file that the arguments name: a path, "-" for standard input, nothing for the demo model."""
    if args.file is None:
        from .demo import demo_model

        source: Any = demo_model()
    else:
        source = _standard_input() if args.file == "-" else args.file
    model = open(source, check=not args.no_check)
    model.name = {None: "<demo>", "-": "<stdin>"}.get(args.file, args.file)
    for fault in model.faults() if args.no_check else ():
        _say(args.file, str(fault))
    return model


def _saved(file: str | None, target: str, text: str) -> str | None:
    """Write a text about a file elsewhere; what is left to print: all of it if the target is "-", else nothing."""
    from .targets import save

    if target == "-":
        return text
    try:
        if not _may_be_replaced(target):
            raise GGUFError(f"{target} is there, and is no page; it is not overwritten")
        save(target, [text.encode()])
    except OSError as error:
        raise GGUFError(f"cannot write {target}: {error.strerror or error}") from None
    _say(file, f"the page is {target}, {len(text)} bytes")
    return None


def _may_be_replaced(path: str) -> bool:
    """Whether nothing is there, or a page: not the model that is read, nor anything else that was named by mistake."""
    from .page import START

    if not os.path.isfile(path):
        return True
    with io.open(path, "rb") as file:  # noqa: UP020 (`open` is ours)
        return file.read(len(START)) in (b"", START)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer


def _reason(error: GGUFError | OSError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _say(file: str | None, message: str) -> None:
    """Say something of a file on stderr."""
    name = "the demo model" if file is None else file
    if sys.stderr is not None:  # else print would take stdout
        with contextlib.suppress(OSError):  # nobody can be told
            print(f"gguf-schema: {printable(name)}: {printable(message)}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that repeats no terminal commands: arguments may be names of files from strangers."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def byte_offset(text: str) -> int:
    """A number of bytes, in decimal or with 0x in hexadecimal."""
    return int(text, 0)


def positive(text: str) -> int:
    """A number from 1 on."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def whole(text: str) -> int:
    """A number from 0 on."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def seconds(text: str) -> float:
    """A number of seconds."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gguf-schema", description="Look into GGUF files.")
    parser.add_argument("--version", action="version", version=f"gguf-schema {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=parser.prog)

    def command(function: object, name: str, file_help: str, file_nargs: str | None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        added.add_argument("file", metavar="FILE", nargs=file_nargs, help=file_help)
        added.add_argument("--no-check", action="store_true", help="read a refused file, too; say on stderr why it was")
        added.set_defaults(function=function)
        return added

    added = command(info, "info", "a GGUF file; '-' is standard input; without one, a built-in demo model", "?")
    added.add_argument("--json", action="store_true", help="as one JSON document")

    added = command(dump, "dump", "a GGUF file; '-' is standard input", None)
    added.add_argument("--no-tensors", action="store_true", help="leave the tensors out")
    form = added.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as one JSON document, arrays left out")
    form.add_argument("--markdown", action="store_true", help="as a Markdown page")
    form.add_argument("--data-offset", action="store_true", help="only the byte where the tensor data starts")
    form.add_argument("--data-alignment", action="store_true", help="only the alignment in bytes")
    added.add_argument("--json-array", action="store_true", help="as one JSON document, arrays included")

    added = command(map, "map", "a GGUF file; '-' is standard input; without one, a built-in demo model", "?")
    added.add_argument("--json", action="store_true", help="as one JSON document: a record for each leaf")
    added.add_argument("--depth", type=positive, metavar="N", help="levels of the tree that are shown")
    added.add_argument("--hex", action="store_true", help="show the first bytes of each field")
    added.add_argument("--all", action="store_true", help="divide long arrays, too")
    one = added.add_mutually_exclusive_group()
    one.add_argument(
        "--at", type=byte_offset, metavar="OFFSET", help="only the fields that this byte belongs to; 0x… is hex"
    )
    one.add_argument(
        "--where", metavar="PATH", help="only the field at this path, or of this key or tensor, and what is inside it"
    )
    one.add_argument("--html", metavar="OUT", help="as one HTML page, written to this file; '-' is standard output")

    added = commands.add_parser("explain", help=explain.__doc__, description=explain.__doc__)
    added.add_argument("file", metavar="FILE", help="a GGUF file; '-' is standard input")
    added.set_defaults(function=explain)

    added = commands.add_parser("check", help=check.__doc__, description=check.__doc__)
    added.add_argument(
        "files", metavar="FILE", nargs="*", help="GGUF files, or folders with some; '-' is standard input"
    )
    judge = added.add_mutually_exclusive_group()
    judge.add_argument("--profile", metavar="P", default="default", choices=PROFILE_NAMES, help=PROFILE_HELP)
    judge.add_argument("--strict", action="store_true", help="the same as --profile strict")
    added.add_argument(
        "--data", action="store_true", help="read the tensor data, too: NaN, infinities, impossible scales"
    )
    added.add_argument("--fail-on", choices=("error", "warning", "note"), default="error", help=FAIL_ON_HELP)
    added.add_argument("--json", action="store_true", help="as one JSON document")
    added.add_argument("--explain", metavar="CODE", help="say what a rule is about")
    added.set_defaults(function=check, file="check")

    added = commands.add_parser("tables", help=tables.__doc__, description=tables.__doc__)
    added.add_argument("name", metavar="NAME", nargs="?", help="the table; without one, a list of all")
    added.add_argument("--format", choices=("markdown", "json", "csv"), default="markdown", help="default: markdown")
    added.set_defaults(function=tables, file="tables")  # messages begin with it

    added = commands.add_parser("suite", help=suite.__doc__, description=suite.__doc__)
    added.add_argument("folder", metavar="DIR", help="a folder that is empty, not there, or holds an older suite")
    added.set_defaults(function=suite, file="suite")

    added = commands.add_parser("fuzz", help=fuzz.__doc__, description=fuzz.__doc__)
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
    added.add_argument("--seed", type=whole, default=0, metavar="S", help="which files; default: 0")
    added.add_argument("--start", type=whole, default=0, metavar="I", help="the first of them; default: 0")
    end = added.add_mutually_exclusive_group()
    end.add_argument("--count", type=positive, metavar="N", help=f"how many; default: {FUZZ_COUNT}")
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
    added.set_defaults(function=fuzz, file="fuzz")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process); returns the exit status."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.function is dump and args.json_array and (args.markdown or args.data_offset or args.data_alignment):
        parser.error("--json-array goes with no other form than --json")
    if args.function is map and args.html is not None and (args.json or args.hex or args.depth is not None):
        parser.error("--html goes with no other option than --all and --no-check")
    if args.function is fuzz and bool(args.command) == (args.out is not None):
        parser.error("fuzz wants a command, behind --, or --out, or files for --coverage")
    if args.function is fuzz and args.out is not None and args.time is not None:
        parser.error("--out goes with --count, not with --time")
    if args.function is check and not args.files and args.explain is None:
        parser.error("check wants a file")
    if args.function is map and args.json and (args.hex or args.depth is not None):
        parser.error("--json has all leaves, with neither --depth nor --hex")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        answer = args.function(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (GGUFError, OSError) as error:
        _say(args.file, _reason(error))
        return UNREADABLE
    except MemoryError:
        _say(args.file, "there is not enough memory")
        return UNREADABLE
    if answer is None:
        return 0
    text, status = answer if isinstance(answer, tuple) else (answer, 0)
    return _print(text) or status


def _print(answer: str) -> int:
    """Print the answer; the exit status says whether anybody took it."""
    if sys.stdout is None:
        _say("standard output", "it is closed")
        return 2
    try:
        print(answer, flush=True)
    except OSError as error:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever reads has enough
            return 141
        _say("standard output", error.strerror or str(error))
        return 2
    return 0
