"""Plain data as YAML in block style, as Kaitai's style guide wants it."""

import json
import re
import textwrap
from typing import Any

PLAIN = re.compile(r"-?[A-Za-z_][\w./(), +*%-]*")
"""Scalars that need no quotes, but for words that YAML takes for other things than text."""
RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
WIDTH = 80


def yaml(value: Any) -> str:
    """Dicts, lists, strings, ints and bools as YAML, with a newline at the end; long prose under `doc` is wrapped."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any, indent: str = "") -> list[str]:
    """The lines of a dict or a list."""
    lines = []
    if isinstance(value, list):
        for item in value:
            first, *rest = _lines(item, indent + "  ") if isinstance(item, dict) else [_scalar(item)]
            lines += [f"{indent}- {first.strip()}", *rest]
        return lines
    for key, item in value.items():
        name = f"{indent}{_scalar(key)}:"
        if isinstance(item, dict | list):
            lines += [name, *_lines(item, indent + "  ")]
        elif key == "doc" and ("\n" in item or len(name) + len(item) >= WIDTH):
            paragraphs = [_wrapped(paragraph, indent + "  ") for paragraph in item.split("\n")]
            lines += [f"{name} |", *(line for paragraph in paragraphs for line in paragraph)]
        else:
            lines.append(f"{name} {_scalar(item)}")
    return lines


def _wrapped(paragraph: str, indent: str) -> list[str]:
    lines = textwrap.wrap(paragraph, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return lines or [""]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if isinstance(value, int) or (PLAIN.fullmatch(text) and text.lower() not in RESERVED):
        return text
    return f"'{text}'" if text.isprintable() and "'" not in text else json.dumps(text, ensure_ascii=False)
