"""gguf.schema.json: the whole description as it is, for tools that make something of it."""

import json

from ..description import the_format


def schema_json() -> str:
    """The description of the format (`description.the_format`) as indented JSON."""
    return json.dumps(the_format(), indent=2, ensure_ascii=False) + "\n"
