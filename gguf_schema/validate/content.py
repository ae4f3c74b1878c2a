"""Chat templates: programs in a file, which engines run. Here they are looked at, and parsed, but never rendered."""

import re
from collections.abc import Iterator

from ..enums import GGUFValueType as T
from ..errors import Finding
from .metadata import shown
from .rule import NOTE, WARNING, Rule
from .subject import Subject

TEMPLATE = re.compile(r"tokenizer\.chat_template(\.[^.]+)?")
DUNDER = re.compile(r"__[a-zA-Z]\w*__")
"""Attributes through which a template gets from any object to the interpreter."""


def _templates(subject: Subject) -> Iterator[tuple[str, str]]:
    """Path and text of each chat template."""
    for index, pair in enumerate(subject.metadata_kv):
        if pair["value_type"] == T.STRING and TEMPLATE.fullmatch(pair["key"]):
            yield f"metadata_kv[{index}].value.string", pair["value"]


def interpreter(subject: Subject) -> Iterator[Finding]:
    """Templates that reach into the interpreter."""
    for path, text in _templates(subject):
        if match := DUNDER.search(text):
            yield Finding(
                "template-interpreter", path, f"{shown(match[0])} at character {match.start()} leads out of a sandbox"
            )


def syntax(subject: Subject) -> Iterator[Finding]:
    """Templates that Jinja cannot parse; nothing is said where Jinja is not installed."""
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import SandboxedEnvironment
    except ImportError:
        return
    environment = SandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    for path, text in _templates(subject):
        if len(text) > LONGEST:
            yield Finding("template-syntax", path, f"{len(text)} characters; more than {LONGEST} are not parsed")
            continue
        try:
            environment.parse(text)
        except TemplateError as error:
            yield Finding("template-syntax", path, f"{shown(str(error))}")
        except RecursionError:
            yield Finding("template-syntax", path, "nested deeper than Python's stack allows")


LONGEST = 1 << 18
"""Characters of a template that are parsed."""

RULES = (
    Rule(
        "template-interpreter",
        WARNING,
        "A chat template that reaches into the interpreter",
        "metadata_kv.value.string",
        "CVE-2024-34359 and others: Jinja without a sandbox runs it",
        "Replace the template",
        interpreter,
    ),
    Rule(
        "template-syntax",
        NOTE,
        "A chat template that Jinja cannot parse",
        "metadata_kv.value.string",
        "transformers and llama.cpp use it",
        "Mend the template",
        syntax,
    ),
)
