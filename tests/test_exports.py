"""The texts of the exports. That the committed files hold them is checked with all that is generated."""

import json

import pytest

from gguf_schema.description import the_format
from gguf_schema.export import EXPORTS
from gguf_schema.export.yaml import yaml


@pytest.mark.parametrize("name", EXPORTS)
def test_lines_are_clean(name):
    text = EXPORTS[name]()
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_the_json_is_the_description():
    assert json.loads(EXPORTS["gguf.schema.json"]()) == the_format()


def test_yaml():
    """Text stays text, prose is wrapped, and maps in lists begin on the line of their dash."""
    data = {
        "words": ["plain", "u4", "x: y", "it's", "yes", "1", "a\nb", ""],
        "others": [True, 1],
        0: {"-orig-id": "_a", "doc": "short"},
        "maps": [{"id": "a", "cases": {"e::a": "f(1, 2)"}}, {"id": "b"}],
        "doc": "first\n\n" + "word " * 20,
    }
    wrapped = " ".join(["word"] * 15), " ".join(["word"] * 5)
    assert (
        yaml(data)
        == f"""\
words:
  - plain
  - u4
  - 'x: y'
  - "it's"
  - 'yes'
  - '1'
  - "a\\nb"
  - ''
others:
  - true
  - 1
0:
  -orig-id: _a
  doc: short
maps:
  - id: a
    cases:
      'e::a': f(1, 2)
  - id: b
doc: |
  first

  {wrapped[0]}
  {wrapped[1]}
"""
    )
