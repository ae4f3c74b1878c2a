"""Models in, answers and complaints out."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from .. import shards
from ..errors import GGUFError, ShardError
from ..file import Model, open
from ..journal import trouble
from ..targets import JOURNAL, UNDO, save
from ..terminal import printable

UNREADABLE = 2
INTERRUPTED = 130
NOBODY_READS = 141


def model(args: argparse.Namespace) -> Model:
    """The file that the arguments name: a path, "-" for standard input, nothing for the demo model."""
    return opened(args.file, args.no_check)


def allow_many_files() -> None:
    """Let this process open as many files as the system lets it: some models are in a thousand shards."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def whole_model(args: argparse.Namespace) -> Model:
    """As `model`; of a shard all of its model, or where that cannot be had the file alone: stderr says why."""
    if args.file in (None, "-"):
        return model(args)
    allow_many_files()
    for file in files_of(args.file):
        _tell_of_edits(file)
    try:
        whole = shards.open(args.file, check=not args.no_check)
    except ShardError as error:
        say(args.file, f"{error}; this is about this file alone")
        whole = open(args.file, check=not args.no_check)
    for shard in whole.shards if args.no_check else ():
        for fault in shard.faults():
            say(shard.name, str(fault))
    return whole


def files_of(file: str) -> list[str]:
    """The files of the model that a file is a shard of, by its name; of any other file itself."""
    name = shards.ShardName.of(file)
    return [file] if name is None else list(map(str, name.all()))


def opened(file: str | None, no_check: bool) -> Model:
    """A file by its name: a path, "-" for standard input, None for the demo model; a refused one, too, if asked for."""
    if file is None:
        from ..demo import demo_model

        source: Any = demo_model()
    else:
        source = named(file)
    found = open(source, check=not no_check)
    found.name = "<demo>" if file is None else "<stdin>" if file == "-" else file
    for fault in found.faults() if no_check else ():
        say(file, str(fault))
    return found


def named(file: str) -> str | BinaryIO:
    """The path, or of "-" standard input. If an edit of the file is under way or was interrupted, stderr says so."""
    if file != "-":
        _tell_of_edits(file)
        return file
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer


def _tell_of_edits(file: str) -> None:
    """Say that an edit of a file is under way or was interrupted."""
    if told := trouble(file):
        say(file, told)


def demand_settled(files: Iterable[str]) -> None:
    """Refuse to make another file of one that may be half old and half new.

    Raises:
        GGUFError: An edit of it is under way, or was interrupted.
    """
    for file in files:
        if told := trouble(file):
            raise GGUFError(f"{file}: {told}")


def models_in(name: str) -> list[str]:
    """The file, or of a folder the models in it and below, in the order of their names."""
    if not os.path.isdir(name):
        return [name]
    found = []
    for folder, folders, files in os.walk(name):
        folders.sort()
        models = sorted(os.path.join(folder, file) for file in files if file.lower().endswith(".gguf"))
        found += [path for path in models if os.path.isfile(path)]  # a pipe would wait for whoever writes
    return found


def demand_free(target: str, force: bool, files: Sequence[str]) -> None:
    """Refuse to write where a file is, unless that is asked for; over what is read in any case.

    Args:
        target: A path.
        force: Whether a file that is there may be replaced.
        files: All that are read.

    Raises:
        GGUFError: A file is there, or the target is the record of an edit of a file that is read.
    """
    edited, suffix = os.path.splitext(os.path.realpath(target))
    if suffix in (JOURNAL, UNDO) and any(_is_read(file, edited) for file in files):
        raise GGUFError(f"{target} is the place of the record of an edit of the file that is read")
    if not os.path.isfile(target):
        return
    for file in files:
        if _is_read(file, target):
            raise GGUFError(f"{target} is {'the file' if len(files) == 1 else 'one of the files'} that is read")
    if not force:
        raise GGUFError(f"{target} is there already; --force replaces it")


def _is_read(file: str, target: str) -> bool:
    """Whether a path is that of the file that is read, perhaps as standard input."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # standard input may be no file, closed, or none
        read = os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
        return os.path.samestat(os.stat(target), read)
    return False


def put(target: str, chunks: Iterable[bytes], force: bool) -> None:
    """Write bytes to a path.

    Raises:
        GGUFError: A file is there that may not be replaced, or they cannot be written, or made.
    """
    try:
        save(target, chunks, overwrite=force)
    except OSError as error:
        raise GGUFError(f"cannot write {target}: {error.strerror or error}") from None


def reason(error: GGUFError | OSError) -> str:
    """What went wrong, in few words."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def say(file: str | None, message: str) -> None:
    """Say something of a file on stderr; None is the demo model."""
    name = "the demo model" if file is None else file
    if sys.stderr is not None:  # else print would take stdout
        with contextlib.suppress(OSError):  # nobody can be told
            print(f"gguf-schema: {printable(name)}: {printable(message)}", file=sys.stderr)


def tell(answer: str | Iterable[bytes]) -> int:
    """Print the answer, a text or pieces of bytes; the exit status says whether anybody took it."""
    if sys.stdout is None:
        say("standard output", "it is closed")
        return UNREADABLE
    if not isinstance(answer, str):
        return _pour(answer)
    try:
        print(answer, flush=True)
    except OSError as error:
        return _lost(error)
    return 0


def _pour(chunks: Iterable[bytes]) -> int:
    """Write bytes; what goes wrong where they come from is for the caller."""
    for chunk in chunks:
        try:
            save(sys.stdout.buffer, [chunk])  # unbuffered (python -u) it may take less than it is given
            sys.stdout.buffer.flush()
        except OSError as error:
            return _lost(error)
    return 0


def _lost(error: OSError) -> int:
    """The status where nobody took what was written."""
    # Python would complain once more when it flushes stdout at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # whoever reads has enough
        return NOBODY_READS
    say("standard output", error.strerror or str(error))
    return UNREADABLE
