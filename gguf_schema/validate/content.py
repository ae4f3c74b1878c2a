"""Chat templates: programs in a file, which engines run. Here they are looked at, and parsed, but never rendered."""

import re
from collections.abc import Iterator

from ..enums import GGUFValueType as T
from ..errors import Finding
from .metadata import shown
from .rule import NOTE, WARNING, Rule
from .subject import Subject

TEMPLATE = re.compile(r"tokenizer\.chat_template(\.[^.]+)?")
CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})")
JOINED = re.compile(r"""(['"])\s*[~+]?\s*\1""")
DUNDER = re.compile(r"(?<![A-Za-z0-9_])__[A-Za-z]\w*__(?!\w)")
"""Attributes through which a template gets from any object to the interpreter."""

LONGEST = 1 << 15
"""Characters of templates, of one file together, that are looked at; those of real models have half of that."""


def _templates(subject: Subject) -> Iterator[tuple[str, str]]:
    """Path and text of each chat template, as many as are looked at."""
    left = LONGEST
    for index, pair in enumerate(subject.metadata_kv):
        if pair["value_type"] == T.STRING and TEMPLATE.fullmatch(pair["key"]):
            left -= len(pair["value"])
            if left >= 0:
                yield f"metadata_kv[{index}].value.string", pair["value"]


def interpreter(subject: Subject) -> Iterator[Finding]:
    """Templates whose code reaches into the interpreter, also where strings are escaped or put together."""
    for path, text in _templates(subject):
        for code in CODE.finditer(text):
            plain = JOINED.sub("", ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), code[0]))
            if match := DUNDER.search(plain):
                problem = f"{shown(match[0])}, in the code at character {code.start()}, leads out of a sandbox"
                yield Finding("template-interpreter", path, problem)
                break


def syntax(subject: Subject) -> Iterator[Finding]:
    """Templates that Jinja cannot parse; nothing is said where Jinja is not installed."""
    templates = list(_templates(subject))
    if not templates:  # Jinja takes as long to be imported as the rest of a check
        return
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import SandboxedEnvironment
    except ImportError:
        return
    environment = SandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    for path, text in templates:
        try:
            environment.parse(text)
        except (TemplateError, RecursionError, ValueError, OverflowError) as error:
            if not GENERATION.search(str(error)):
                yield Finding("template-syntax", path, f"{type(error).__name__}: {shown(str(error))}")


GENERATION = re.compile(r"unknown tag '(end)?generation'")
"""A tag that transformers adds to Jinja."""

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
        "transformers and llama.cpp use it; looked for where jinja2 is installed",
        "Mend the template",
        syntax,
    ),
)
