#!/usr/bin/env python3
"""How fast the page of a byte map opens and answers in Chromium, and how large it is.

    python tools/page_times.py                 the demo model, 2,000 tensors, 20 GiB of tensor data, a vocabulary
    python tools/page_times.py FILE...

Milliseconds, median of the rounds (each in a new tab) and the slowest: from the start of the navigation until the
script had run and until something was seen; from a click on a byte, and on the last section, until its field was
selected and until the second frame after that.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import gguf_schema as gs
from gguf_schema.annotate import entries
from gguf_schema.demo import demo_model
from gguf_schema.page import map_html
from tests.browser import CLICK_TIMES, OPEN_TIMES, chromium
from tools.benchmarks.files import large_file, string_file, tensor_file

BYTE = ".bytes [data-offset='30']"
LAST = "#bar .piece:last-child"
COLUMNS = ("interactive", "seen", "byte", "… painted", "section", "… painted")


def made_files(folder: Path) -> list[Path]:
    """Files of the kinds that are hard for a page."""
    demo = folder / "demo.gguf"
    demo.write_bytes(demo_model())
    return [
        demo,
        tensor_file(folder / "2000-tensors.gguf", 2000),
        large_file(folder / "20-GiB.gguf"),
        string_file(folder / "300000-tokens.gguf", 300_000),
    ]


def times(browser: Any, page_file: Path) -> list[float]:
    """One round: a value for each of the columns."""
    page = browser.new_page()
    page.goto(page_file.as_uri())
    found = [*page.evaluate(OPEN_TIMES), *page.evaluate(CLICK_TIMES, BYTE), *page.evaluate(CLICK_TIMES, LAST)]
    page.close()
    return found


def main() -> int:
    """Print a line for each file."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--rounds", type=int, default=9, help="rounds for each file (default 9)")
    cli.add_argument("files", nargs="*", type=Path, metavar="FILE", help="GGUF files")
    args = cli.parse_args()
    print(f"{'file':30}{'page KB':>9}" + "".join(f"{column:>18}" for column in COLUMNS))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for file in args.files or made_files(Path(folder)):
            page_file = Path(folder) / "page.html"
            with gs.open(file, check=False) as model:
                page_file.write_text(map_html(model, entries(model)))
            rounds = [times(browser, page_file) for _ in range(args.rounds)]
            cells = (f"{statistics.median(column):10.0f} ({max(column):4.0f})" for column in zip(*rounds, strict=True))
            size = page_file.stat().st_size / 1000
            print(f"{file.name:30}{size:9.0f}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
