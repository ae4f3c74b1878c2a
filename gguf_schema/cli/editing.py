"""What `set`, `unset` and `edit` have in common: IN and OUT, or a file that is changed in place."""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import GGUFError
from .arguments import Commands, Parser, UsageError, model_command, size
from .streams import files_of, model, say, tell
from .writing import demand_replaceable, save

if TYPE_CHECKING:
    from ..edit import Edit, Plan
    from ..file import Model

OUT_HELP = "the new file, which must not be there yet; '-' is standard output; left out with --in-place"


NO_OUT = "OUT, the name of the new file, or --in-place is missing"


def run(
    args: argparse.Namespace,
    edits_of: Callable[[Sequence[str]], "Sequence[Edit]"],
    is_edit: Callable[[str], object] = lambda word: False,
    *,
    is_list: bool = False,
) -> tuple[str | None, int]:
    """Do edits, or say what they would do.

    Args:
        args: Those of `add_command`.
        edits_of: Called with the arguments behind OUT.
        is_edit: Whether an argument is one of those by its looks, and no OUT.
        is_list: Whether they name a list, so that the number of an edit says something.
    """
    from .. import edit

    if args.in_place and args.file == "-":
        raise UsageError("standard input cannot be changed in place")
    if args.in_place and os.path.exists(args.file) and not os.path.isfile(args.file):
        raise UsageError(f"{args.file!r} is no file, and cannot be changed in place")
    if not args.in_place and not args.words:
        raise UsageError(NO_OUT)
    if not args.in_place and is_edit(args.words[0]):
        path = os.path.join(os.curdir, args.words[0])
        hint = "" if is_edit(path) else f"; {path} is a path"
        raise UsageError(f"{NO_OUT}: {args.words[0]!r} says what is to be edited{hint}")
    out, words = (None, args.words) if args.in_place else (args.words[0], args.words[1:])
    edits = edits_of(words)
    if not words and args.reserve is None:
        missing = "" if out is None else f" behind {out!r}, which is the new file; to edit {args.file!r} say --in-place"
        raise UsageError(f"say what is to be edited{missing}")
    if out is not None:
        demand_replaceable(out, args.force, files_of(args.file))
    _demand_whole(args)
    with model(args) as opened:
        if out is not None and out in opened.metadata:
            raise UsageError(f"{NO_OUT}: {out!r} is a key of the file")
        try:
            plan = edit.plan(opened, edits, in_place=args.in_place, reserve=args.reserve)
        except GGUFError as error:
            if not is_list and error.path.startswith("edits["):
                raise GGUFError(error.problem) from None
            raise
        if args.in_place:
            _tell_of_links(args.file, plan)
        _tell_of_shards(args.file, opened, edits)
        _tell_of_types(args.file, opened, edits)
        if args.dry_run:
            from ..edit.preview import preview

            return preview(plan, args.file), 0
        for told in *plan.changes, plan:
            say(args.file if out in (None, "-") else out, str(told))
        if out is None:
            _apply(args.file, plan)
        elif out == "-":
            return None, tell(edit.chunks(plan))
        else:
            save(out, lambda show: edit.save(plan, out, overwrite=args.force, show=show))
    return None, 0


def _demand_whole(args: argparse.Namespace) -> None:
    """Mend a file that is to be changed in place, if an edit of it was interrupted; refuse to read it otherwise."""
    from .. import journal

    trouble = None if args.file == "-" else journal.trouble(args.file)
    if trouble is None:
        return
    if args.dry_run or not args.in_place:
        raise GGUFError(trouble)
    mend(args.file)


@contextlib.contextmanager
def in_its_folder(file: str) -> Iterator[None]:
    """Say what is wrong where a change in place may not write to the folder of a file."""
    try:
        yield
    except PermissionError:
        folder = os.path.dirname(os.path.realpath(file))
        if os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise
        problem = f"the folder {folder} may not be written to, and a change in place needs that; say OUT for a new file"
        raise GGUFError(problem) from None


def mend(file: str) -> None:
    """Mend a file, an edit of which was interrupted; say what was done."""
    from .. import edit

    told = {
        None: "no edit of it was interrupted that had begun to write to it",
        True: "an edit had been interrupted when it was all but done: the file is as edited",
        False: "an edit had been interrupted: the file is as it was before",
    }
    with in_its_folder(file):
        recovered = edit.recover(file)
    say(file, told[recovered])


def _tell_of_links(file: str, plan: "Plan") -> None:
    """Say what a change in place does to other names of a file."""
    if os.path.islink(file):
        say(file, f"it is a symbolic link; {os.path.realpath(file)} is what is changed")
    if os.stat(file).st_nlink > 1:
        others = "what they name stays as it was" if plan.record is None else "what they name changes, too"
        say(file, f"it has other names (hard links): {others}")


def _tell_of_shards(file: str, opened: "Model", edits: "Sequence[Edit]") -> None:
    """Say that an edit of metadata will not be seen: readers take that of a set's first file."""
    from .. import edit, keys

    number = opened.metadata.get(keys.SPLIT_NO.template, 0)
    own = (*keys.SPLIT_KEYS, keys.ALIGNMENT.template)
    if number and any(isinstance(one, edit.Set | edit.Unset | edit.RenameKey) and one.key not in own for one in edits):
        say(file, "it is not the first shard of a model, whose metadata is what readers take")


def _tell_of_types(file: str, opened: "Model", edits: "Sequence[Edit]") -> None:
    """Say which keys that are there get another type."""
    from .. import edit

    given = [(one.key, one.type) for one in edits if isinstance(one, edit.Set) and one.type is not None]
    types = {pair.key: pair.type for pair in opened.metadata.pairs} if given else {}
    for key, type in given:
        if key in types:
            old, new = edit.type_text(types[key]), edit.type_text(type)
            if old != new:
                say(file, f"the type of {key} changes from {old} to {new}")


def _apply(file: str, plan: "Plan") -> None:
    from .. import edit, journal
    from ..progress import progress

    with progress(file) as show, in_its_folder(file):
        edit.apply(plan, show)
    kept = journal.undo_of(file)
    if not plan.changes_nothing and os.path.exists(kept):
        say(file, f"{kept} ({os.path.getsize(kept)} bytes) is kept for `edit --undo`")


def add_command(commands: Commands, function: Callable[..., object], metavar: str, words_help: str) -> Parser:
    """Add a subcommand that edits.

    Args:
        commands: What it is added to.
        function: What does it.
        metavar: What stands behind OUT.
        words_help: What that is.
    """
    added = model_command(commands, function, "the file; '-' is standard input")
    added.add_argument(
        "words", metavar=f"[OUT] {metavar}", nargs="*", default=[], help=f"OUT: {OUT_HELP}. {words_help}"
    )
    added.add_argument(
        "-i",
        "--in-place",
        action="store_true",
        help="change the file itself: whole or not at all, and `edit --undo` undoes it",
    )
    added.add_argument("--force", action="store_true", help="replace OUT, if there and GGUF")
    added.add_argument(
        "--reserve",
        type=size,
        metavar="N[K|M|G]",
        help="leave so many bytes, or up to 4 KiB more, that later edits in place move no data; 0 for none; K is "
        "1,000; 8388608 are the most",
    )
    added.add_argument("--dry-run", action="store_true", help="only print what would change, and how it would be done")
    return added
