#!/usr/bin/env python3
"""Write everything that is generated from the schema: whole files, and the regions between markers in Markdown.

python tools/regen.py                  our own files
python tools/regen.py --check          exit 1 if one of them is stale, and say which
python tools/regen.py [--check] FILE…  Markdown files of yours

A region is what stands between two comments of their own lines; NAME is one that `gguf-schema tables` lists:

<!-- gguf-schema: NAME -->
<!-- /gguf-schema -->
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from gguf_schema.errors import GGUFError
from gguf_schema.export import EXPORTS
from gguf_schema.tables import FORMS, table
from gguf_schema.targets import save

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "spec/gguf.md")
"""Our files with regions."""
FOLDER = ROOT / "spec"
"""Where the exports are."""

START = re.compile(r"^<!-- gguf-schema: (?P<name>\S+) -->(?=\r?$)", re.MULTILINE)
END = re.compile(r"^<!-- /gguf-schema -->(?=\r?$)", re.MULTILINE)


def spliced(text: str) -> str:
    """A Markdown text with all its regions filled.

    Raises:
        GGUFError: A region has no end, or no table is called as it is.
    """
    pieces: list[str] = []
    position = 0
    while start := START.search(text, position):
        end = END.search(text, start.end())
        following = START.search(text, start.end())
        if end is None or (following is not None and following.start() < end.start()):
            line = text.count("\n", 0, start.start()) + 1
            raise GGUFError(f"line {line}: the region {start['name']!r} has no end")
        filling = f"\n\n{FORMS['markdown'](table(start['name']))}\n\n"
        pieces += text[position : start.end()], filling.replace("\n", "\r\n" if "\r\n" in text else "\n")
        position = end.start()
    return "".join(pieces) + text[position:]


def generated(documents: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each generated file, and what it must hold.

    Raises:
        GGUFError: A document's regions cannot be filled.
    """
    for document in documents:
        with document.open(encoding="utf-8", newline="") as file:
            text = file.read()
        try:
            yield document, spliced(text)
        except GGUFError as error:
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
    except (GGUFError, OSError, UnicodeDecodeError) as error:
        print(f"regen: {error}", file=sys.stderr)
        return 2
    stale = [(path, text) for path, text in wanted if not is_current(path, text)]
    for path, text in stale:
        print(f"{'stale' if args.check else 'written'}: {path}")
        if not args.check:
            save(path, [text.encode()])
    if args.check and stale:
        print(f"run: python tools/regen.py {' '.join(map(str, args.files))}".rstrip())
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
