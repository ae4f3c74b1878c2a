#!/usr/bin/env python3
"""Write everything that is generated from the schema: whole files, and the regions between markers in Markdown.

python tools/regen.py                  our own files
python tools/regen.py --check          exit 1 if one of them is stale, and say which
python tools/regen.py [--check] FILE…  Markdown files of yours

A region is what stands between two comments on lines of their own; NAME is one that `gguf-schema tables` lists. What is
in the region is indented as its first marker is.

<!-- gguf-schema: NAME -->
<!-- /gguf-schema -->
"""

import argparse
import io
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gguf_schema.errors import GGUFError
from gguf_schema.export import EXPORTS
from gguf_schema.tables import FORMS, table
from gguf_schema.targets import save

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("spec/gguf.md", "spec/rules.md")
"""Our files with regions."""
FOLDER = ROOT / "spec"
"""Where the exports are."""

START = re.compile(r"([ \t]*)<!--\s*gguf-schema:\s*(\S+)\s*-->\s*")
END = re.compile(r"[ \t]*<!--\s*/gguf-schema\s*-->\s*")
LIKE_A_MARKER = re.compile(r"\s*<!--\s*/?\s*gguf[-_]schema")
FENCE = re.compile(r"\s*(```|~~~)")


def spliced(text: str) -> str:
    """A Markdown text with all its regions filled. Markers in fenced code are examples, and stay as they are.

    Raises:
        GGUFError: There is no region, one has no end or no beginning, or no table is called as it is.
    """
    kept: list[str] = []
    start: tuple[int, str] | None = None
    is_code = False
    regions = 0
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        opens, closes = START.fullmatch(line.removeprefix("\ufeff")), END.fullmatch(line)
        if not (opens or closes or is_code) and LIKE_A_MARKER.match(line):
            raise GGUFError(f"line {number}: this is no marker: {line.strip()}")
        is_code ^= FENCE.match(line) is not None and start is None
        if is_code or not (opens or closes):
            if start is None:
                kept.append(line)
        elif opens and start is None:
            start = number, opens[2]
            newline = line[len(line.rstrip("\r\n")) :] or "\n"
            kept += line, newline, *_indented(_markdown(opens[2]), opens[1], newline), newline
        elif closes and start is not None:
            kept.append(line)
            start = None
            regions += 1
        else:
            problem = f"the region {start[1]!r} has no end" if start else "a region ends that does not begin"
            raise GGUFError(f"line {start[0] if start else number}: {problem}")
    if start is not None:
        raise GGUFError(f"line {start[0]}: the region {start[1]!r} has no end")
    if not regions:
        raise GGUFError("there is no region: see --help for how one is marked")
    return "".join(kept)


@cache
def _markdown(name: str) -> str:
    """A table as Markdown."""
    return FORMS["markdown"](table(name))


def _indented(text: str, indent: str, newline: str) -> Iterator[str]:
    """The lines of a text."""
    for line in text.split("\n"):
        yield f"{indent if line else ''}{line}{newline}"


def generated(documents: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each generated file, and what it must hold.

    Raises:
        GGUFError: A document's regions cannot be filled.
    """
    for document in documents:
        try:
            yield document, spliced(document.read_bytes().decode())
        except (GGUFError, UnicodeDecodeError) as error:
            raise GGUFError(f"{document}: {error}") from None


def ours() -> Iterator[tuple[Path, str]]:
    """Each of our own generated files, and what it must hold."""
    yield from generated([ROOT / name for name in DOCUMENTS])
    yield from ((FOLDER / name, text()) for name, text in EXPORTS.items())


def is_current(path: Path, text: str) -> bool:
    """Whether a file holds these bytes."""
    return path.exists() and path.read_bytes() == text.encode()


def main(arguments: list[str]) -> int:
    """Write or check files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="Markdown files with markers")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    args = parser.parse_args(arguments)
    try:
        wanted = list(generated(args.files) if args.files else ours())
    except (GGUFError, OSError) as error:
        print(f"regen: {error}", file=sys.stderr)
        return 2
    stale = [(path, text) for path, text in wanted if not is_current(path, text)]
    for path, text in stale:
        if not args.check:
            try:
                save(path, [text.encode()])
            except OSError as error:
                print(f"regen: cannot write {path}: {error.strerror}", file=sys.stderr)
                return 2
        print(f"{'stale' if args.check else 'written'}: {path}")
    if args.check and stale:
        print(f"run: python tools/regen.py {' '.join(map(str, args.files))}".rstrip())
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
