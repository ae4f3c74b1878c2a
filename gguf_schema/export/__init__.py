"""The format in other description languages, each made from `description` and nothing else."""

from collections.abc import Callable

from .kaitai import kaitai
from .schema_json import schema_json

EXPORTS: dict[str, Callable[[], str]] = {
    "gguf.ksy": kaitai,
    "gguf.schema.json": schema_json,
}
"""File name → what makes its text."""
