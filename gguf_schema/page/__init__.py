"""The byte map as one HTML page for people, which needs nothing but a browser.

Names and values come from strangers. They are in the page as JSON in which no character means anything to HTML, and
the script beside it writes text, never markup. The page's policy lets nothing run but that script and reaches nothing.
"""

import base64
import hashlib
import html
import json
import os
from collections.abc import Iterable, Iterator
from importlib.resources import files
from string import Template
from typing import Any

from ..annotate import Entry, value_text
from ..errors import GGUFError
from ..file import Model
from ..schema import ORDER_NAMES
from ..terminal import printable
from ..walk import is_inside

SCRIPTS = ("entries.js", "list.js", "tree.js", "hex.js", "bar.js", "page.js")
"""The parts of the script, in the order in which they need each other."""

START = b"<!doctype html>"
"""The first bytes of a page."""

LETTERS = 2000
"""Letters shown of a value."""

PART = 4096
"""Bytes that are in the page of the start, and of the end, of what is longer than both."""


def map_html(model: Model, mapped: list[Entry]) -> str:
    """The entries of a file as an HTML page in ASCII. Tensor data is drawn, but not read.

    Args:
        model: The open file.
        mapped: All its entries.

    Raises:
        GGUFError: The file is closed, or has changed.
    """
    style = _part("page.css")
    script = "".join(map(_part, SCRIPTS))
    policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    name = printable(os.path.basename(os.fsdecode(model.name)))
    page = Template(_part("page.html")).substitute(
        policy="; ".join(f"{directive} {value}" for directive, value in policy.items()),
        title=html.escape(name),
        style=style,
        script=script,
        data=_inert(_contents(model, mapped, name)),
    )
    return page.encode("ascii", "xmlcharrefreplace").decode()


def _part(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a Content Security Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inert(value: Any) -> str:
    """JSON, in ASCII, that may stand in HTML: nothing in it ends an element or begins a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _contents(model: Model, mapped: list[Entry], name: str) -> dict[str, Any]:
    """What the page holds. Columns have an item for each entry; no starts are needed, because leaves tile the file."""
    parents = list(_parents(mapped))
    names = [
        entry.path[len(mapped[parent].path) if parent >= 0 else 0 :].removeprefix(".")
        for entry, parent in zip(mapped, parents, strict=True)
    ]
    return {
        "file": name,
        "size": model.size,
        "version": model.version,
        "order": ORDER_NAMES[model.order],
        "up": [index - parent for index, parent in enumerate(parents)],
        "sizes": [entry.end - entry.start for entry in mapped],
        "names": _column(names),
        "types": _column(entry.type for entry in mapped),
        "values": _column(value_text(entry, LETTERS) for entry in mapped),
        "docs": _column(entry.doc for entry in mapped),
        "bytes": [[start, base64.b64encode(_read(model, start, end)).decode()] for start, end in _ranges(mapped)],
    }


def _parents(mapped: list[Entry]) -> Iterator[int]:
    """For each entry the index of the one that it lies in; -1 for the outermost."""
    outer: list[int] = []
    for index, entry in enumerate(mapped):
        while outer and not is_inside(entry.path, mapped[outer[-1]].path):
            outer.pop()
        yield outer[-1] if outer else -1
        if not entry.is_leaf:
            outer.append(index)


def _column(texts: Iterable[str]) -> dict[str, list[Any]]:
    """A column of texts, most of which recur: the different ones, and for each entry which of them it has."""
    numbers: dict[str, int] = {}
    of = [numbers.setdefault(text, len(numbers)) for text in texts]
    return {"texts": list(numbers), "of": of}


def _ranges(mapped: list[Entry]) -> list[list[int]]:
    """The bytes that are in the page: nothing of the tensor data, and of a long leaf its start and its end."""
    ranges: list[list[int]] = []
    for entry in mapped:
        if not entry.is_leaf or is_inside(entry.path, "tensor_data"):
            continue
        whole = entry.end - entry.start <= 2 * PART
        pieces = [entry[1:3]] if whole else [(entry.start, entry.start + PART), (entry.end - PART, entry.end)]
        for start, end in pieces:
            if ranges and ranges[-1][1] == start:
                ranges[-1][1] = end
            elif end > start:
                ranges.append([start, end])
    return ranges


def _read(model: Model, start: int, end: int) -> bytes:
    data = model.source.read_at(start, end - start)
    if len(data) < end - start:
        raise GGUFError("the file has changed since it was opened")
    return data
