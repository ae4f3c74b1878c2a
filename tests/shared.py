"""Files that are not part of the project, labelled cases and real vocabularies. Tests that need them skip without."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("GGUF_SCHEMA_SHARED", Path(__file__).parents[2] / "shared"))
CORPUS = ROOT / "corpus"
CASES = ROOT / "cases"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real files is not here")
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the labelled cases are not here")


def corpus_files(pattern: str = "**/*.gguf") -> list[Path]:
    """Files of the corpus, by a glob pattern."""
    return sorted(CORPUS.glob(pattern))


def cases() -> list[dict[str, Any]]:
    """The labelled cases, each with its `bytes`; none where they are not here."""
    if not CASES.is_dir():
        return []
    listed = json.loads((CASES / "cases.json").read_text())["cases"]
    return [{**case, "bytes": (CASES / case["file"]).read_bytes()} for case in listed]
