"""The format in other description languages, each made from `description` and nothing else."""

from collections.abc import Callable

from .c_header import c_header
from .kaitai import kaitai
from .schema_json import schema_json

EXPORTS: dict[str, Callable[[], str]] = {
    "gguf.h": c_header,
    "gguf.ksy": kaitai,
    "gguf.schema.json": schema_json,
}
"""File name → what makes its text."""
