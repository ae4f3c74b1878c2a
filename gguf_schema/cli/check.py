"""`gguf-schema check`."""

import argparse

from ..errors import GGUFError
from .arguments import PROFILE_NAMES, Commands, UsageError, command
from .streams import UNREADABLE, models_in, named, reason, say

FAIL_ON_HELP = (
    "let the exit status be 1 also for this, whatever the verdict (default: only for a file that is rejected)"
)
PROFILE_HELP = f"for whom: {', '.join(PROFILE_NAMES)}"


def check(args: argparse.Namespace) -> tuple[str | None, int]:
    """Say whether files will load, here or in a named reader, and where they are wrong."""
    from ..progress import progress
    from ..validate import PROFILES, report
    from ..validate import check as checked

    if not args.files and args.explain is None:
        raise UsageError("check wants a file")
    if args.explain is not None:
        text = report.explained(args.explain)
        if text is None:
            raise GGUFError(f"there is no rule {args.explain!r}; `gguf-schema tables rules` lists them")
        return text, 0
    names = list(PROFILES) if args.profile == "all" else ["strict" if args.strict else args.profile]
    profiles = [PROFILES[name] for name in names]
    judged, is_unreadable = [], False
    for given in args.files:
        files = models_in(given)
        if not files:
            say(given, "there is no model in this folder")
            is_unreadable = True
        for name in files:
            try:
                with progress(name) as show:
                    found = checked(named(name), args.data, show)
            except (GGUFError, OSError) as error:
                say(name, reason(error))
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
        return text or None, UNREADABLE
    return text, int(report.is_refused(judged, profiles, args.fail_on))


def add(commands: Commands) -> None:
    """Add the command."""
    added = command(commands, check)
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
