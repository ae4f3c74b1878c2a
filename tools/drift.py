#!/usr/bin/env python3
"""Compare the schema with the outside world: what others say of the format and we do not, or the other way round.

    python tools/drift.py            with gguf-py and ggml-python, where they are installed
    python tools/drift.py TREE...    with the headers, constants.py and gguf.md in a source tree of llama.cpp or ggml

Differences that are known are in tools/drifting/known.toml, with the reason; those of one entry are printed as one row.
An entry that is about a source but not seen in it is stale: a note, no fault, for the world has come nearer to us. It
can go when nobody needs the older peer. Compared with an older tree, all that is newer than the tree is new.

Exit status: 0 nothing new, 1 new differences, 2 usage, or nothing to compare in a tree. No peer installed is no fault.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from gguf_schema.terminal import printable
from tools.drifting.facts import Facts, Source, family, ours
from tools.drifting.sources import FILES, installed, tree

KNOWN = Path(__file__).parent / "drifting" / "known.toml"
ABSENT = "absent"


class Difference(NamedTuple):
    """A fact that is not the same; `absent` is the text of a value that is not there."""

    source: str
    subject: str
    theirs: str
    ours: str


class Known(NamedTuple):
    """Regular expressions for each column of a Difference, of the source for its last path segment, and the reason."""

    source: str
    subject: str
    theirs: str
    ours: str
    reason: str

    def is_about(self, source: Source) -> bool:
        """Whether it says that a source differs."""
        return _matches(self.source, source.name) and family(self.subject) in source.families

    def covers(self, difference: Difference) -> bool:
        """Whether it is this difference that is known."""
        return _matches(self.source, difference.source) and all(
            re.fullmatch(pattern, text) for pattern, text in zip(self[1:4], difference[1:], strict=True)
        )


def _matches(pattern: str, source: str) -> bool:
    return re.fullmatch(pattern, PurePath(source).name) is not None


def known() -> list[Known]:
    """The differences that are known."""
    return [Known(**entry) for entry in tomllib.loads(KNOWN.read_text("utf-8"))["known"]]


def differences(source: Source, mine: Facts) -> list[Difference]:
    """Where a source and we differ in the families that it speaks of."""
    spoken = {subject: value for subject, value in mine.items() if family(subject) in source.families}
    return [
        Difference(source.name, subject, str(source.facts.get(subject, ABSENT)), str(mine.get(subject, ABSENT)))
        for subject in sorted(spoken | source.facts)
        if source.facts.get(subject) != mine.get(subject)
    ]


def report(sources: Iterable[Source]) -> int:
    """Print what differs; 1 if any of it is new."""
    mine, expected, is_new = ours(), known(), False
    for source in sources:
        found = differences(source, mine)
        reasons = {each: next((entry for entry in expected if entry.covers(each)), None) for each in found}
        times = Counter(reasons.values())
        new = times[None]
        print(f"{printable(source.name)}: {len(source.facts)} facts, {len(found) - new} known, {new} new")
        for difference, entry in reasons.items():
            if entry is None:
                _print_row(difference, "NEW")
        for entry in expected:
            if times[entry]:
                first = next(each for each, reason in reasons.items() if reason is entry)
                _print_row(first, entry.reason, times[entry] - 1)
            elif entry.is_about(source):
                print(f"  stale: {entry.subject}: {entry.reason}")
        is_new |= new > 0
    return int(is_new)


def _print_row(difference: Difference, why: str, more: int = 0) -> None:
    subject = f"{difference.subject} and {more} more" if more else difference.subject
    print(printable(f"  {subject:<44}  theirs {difference.theirs:<8}  ours {difference.ours:<8}  {why}"))


def main(arguments: list[str]) -> int:
    """Compare with the trees that are named, or with what is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="*", type=Path)
    trees = parser.parse_args(arguments).tree
    if not trees:
        peers = list(installed())
        if not peers:
            print("neither gguf nor ggml-python is installed: nothing to compare with")
        return report(peers)
    status = 0
    for root in trees:
        try:
            sources = list(tree(root))
        except (OSError, ValueError) as error:
            print(printable(str(error)), file=sys.stderr)
            return 2
        if not sources:
            print(f"{printable(str(root))}: none of {', '.join(FILES)} is below it", file=sys.stderr)
            return 2
        status |= report(sources)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
