"""The texts of the exports. That the committed files hold them is checked with all that is generated."""

import json

import pytest

from gguf_schema.description import the_format
from gguf_schema.export import EXPORTS


@pytest.mark.parametrize("name", EXPORTS)
def test_lines_are_clean(name):
    text = EXPORTS[name]()
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_the_json_is_the_description():
    assert json.loads(EXPORTS["gguf.schema.json"]()) == the_format()
