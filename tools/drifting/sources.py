"""What others say: the packages that are installed, and files of a source tree. Nothing in a tree is executed."""

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .c_headers import Header
from .constants_py import constants_py
from .facts import (
    COUNTS,
    FILE_TYPE,
    GGML,
    GGUF,
    TENSOR_TYPE,
    TOKEN_TYPE,
    VALUE_TYPE,
    Facts,
    Source,
    keys,
    numbered,
    sizes,
)


def counted(header: Header, enum: str, prefix: str, family: str) -> Facts:
    """The members of an enumeration, and its COUNT apart."""
    members = header.enum(enum, prefix)
    count = {f"{prefix}COUNT": members.pop("COUNT")} if "COUNT" in members else {}
    return {**numbered(family, members), **count}


def ggml_h(text: str) -> Facts:
    """ggml.h: the tensor types."""
    header = Header(text)
    return {**counted(header, "ggml_type", "GGML_TYPE_", TENSOR_TYPE), **header.constants(GGML)}


def gguf_h(text: str) -> Facts:
    """gguf.h: the value types."""
    header = Header(text)
    return {**counted(header, "gguf_type", "GGUF_TYPE_", VALUE_TYPE), **header.constants(GGUF)}


def ggml_common_h(text: str) -> Facts:
    """ggml-common.h: the blocks."""
    return {f"block {name}": layout for name, layout in Header(text).blocks().items()}


def llama_h(text: str) -> Facts:
    """llama.h: the types of files and of tokens."""
    header = Header(text)
    return {
        **numbered(FILE_TYPE, header.enum("llama_ftype", "LLAMA_FTYPE_")),
        **numbered(TOKEN_TYPE, header.enum("llama_token_type", "LLAMA_TOKEN_TYPE_")),
    }


_CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LISTED_KEY = re.compile(r"^ *- (?:\*\*)?`((?:\[llm\]|[a-z][a-z0-9_]*)(?:\.[a-z0-9_{}]+)+)[ `:]", re.MULTILINE)
_LISTED_FILE_TYPE = re.compile(r"^ *- `((?:ALL|MOSTLY)_\w+) = (\d+)`", re.MULTILINE)
_NO_ARCHITECTURE = ("general", "tokenizer")
"""First segments of the documented keys that every architecture shares."""


def gguf_md(text: str) -> Facts:
    """docs/gguf.md: its enumerations, and the keys that begin the items of its lists, one architecture's as all's."""
    header = Header("\n".join(_CODE.findall(text)))
    listed = (key.partition(".") for key in _LISTED_KEY.findall(text))
    return {
        **keys(f"{owner if owner in _NO_ARCHITECTURE else '{arch}'}.{rest}" for owner, _, rest in listed),
        **counted(header, "ggml_type", "GGML_TYPE_", TENSOR_TYPE),
        **numbered(VALUE_TYPE, header.enum("gguf_metadata_value_type", "GGUF_METADATA_VALUE_TYPE_")),
        **numbered(FILE_TYPE, {name: int(number) for name, number in _LISTED_FILE_TYPE.findall(text)}),
    }


class Reader(NamedTuple):
    """How a file is read, and the families of facts that it should have."""

    read: Callable[[str], Facts]
    families: frozenset[str]


def _reader(read: Callable[[str], Facts], *families: str) -> Reader:
    return Reader(read, frozenset(families))


CONSTANTS_PY = _reader(
    constants_py, *GGUF, VALUE_TYPE, TENSOR_TYPE, FILE_TYPE, TOKEN_TYPE, "block_size", "type_size", "key"
)
FILES = {
    "ggml.h": _reader(ggml_h, TENSOR_TYPE, "GGML_TYPE_COUNT", *GGML),
    "gguf.h": _reader(gguf_h, VALUE_TYPE, "GGUF_TYPE_COUNT", *GGUF),
    "ggml-common.h": _reader(ggml_common_h, "block"),
    "llama.h": _reader(llama_h, FILE_TYPE, TOKEN_TYPE),
    "constants.py": CONSTANTS_PY,
    "gguf.md": _reader(gguf_md, "key", TENSOR_TYPE, "GGML_TYPE_COUNT", VALUE_TYPE, FILE_TYPE),
}


LARGEST = 1 << 20
"""Bytes of a file that is read; the largest that is meant has a quarter of it."""


def tree(root: Path) -> Iterator[Source]:
    """The files of these names below a folder.

    Raises:
        ValueError: One of them cannot be read.
    """
    for name, (read, families) in FILES.items():
        for path in sorted(path for path in root.rglob(name) if path.is_file()):
            try:
                if path.stat().st_size > LARGEST:
                    raise ValueError(f"more than {LARGEST} bytes")
                facts = read(path.read_text("utf-8"))
            except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
                raise ValueError(f"{path}: {error or type(error).__name__}") from error
            yield Source(path.relative_to(root).as_posix(), families, facts)


def installed() -> Iterator[Source]:
    """gguf-py and ggml-python, where they are installed."""
    gguf = importlib.util.find_spec("gguf")
    if gguf and gguf.origin:
        text = Path(gguf.origin).with_name("constants.py").read_text("utf-8")
        yield Source(_versioned("gguf"), CONSTANTS_PY.families, CONSTANTS_PY.read(text))
    if importlib.util.find_spec("ggml"):
        families = frozenset((TENSOR_TYPE, VALUE_TYPE, "block_size", "type_size", *COUNTS, *GGUF, *GGML))
        yield Source(_versioned("ggml-python"), families, ggml_python())


def _versioned(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


def ggml_python() -> Facts:
    """What ggml's own code answers, and the constants of ggml-python. ggml prints names in lower case."""
    ggml = importlib.import_module("ggml")
    live = [id for id in range(ggml.GGML_TYPE_COUNT) if ggml.ggml_blck_size(id)]  # it is 0 of removed types
    names = {ggml.ggml_type_name(id).decode().upper(): id for id in live}
    prefix = "GGUF_TYPE_"
    values = {name.removeprefix(prefix): value for name, value in vars(ggml).items() if name.startswith(prefix)}
    del values["COUNT"]
    return {
        **numbered(TENSOR_TYPE, names),
        **numbered(VALUE_TYPE, values),
        **sizes({name: (ggml.ggml_blck_size(id), ggml.ggml_type_size(id)) for name, id in names.items()}),
        **{name: vars(ggml)[name] for name in (*COUNTS, *GGUF, *GGML) if name in vars(ggml)},
    }
