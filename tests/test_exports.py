"""The exports that are committed are what the description makes today."""

import json
from pathlib import Path

import pytest

from gguf_schema.description import the_format
from gguf_schema.export import EXPORTS

SPEC = Path(__file__).parents[1] / "spec"
REWRITE = """\
{name} is not what the description makes. Write all exports anew, and look at the difference:
python -c "from gguf_schema.export import EXPORTS; \
[open(f'spec/{{name}}', 'w', encoding='utf-8', newline='').write(text()) for name, text in EXPORTS.items()]"
"""


@pytest.mark.parametrize("name", EXPORTS)
def test_the_committed_file_is_up_to_date(name):
    assert (SPEC / name).read_bytes() == EXPORTS[name]().encode(), REWRITE.format(name=name)


@pytest.mark.parametrize("name", EXPORTS)
def test_lines_are_clean(name):
    text = EXPORTS[name]()
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_the_json_is_the_description():
    assert json.loads(EXPORTS["gguf.schema.json"]()) == the_format()
