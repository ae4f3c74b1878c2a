"""Lists of edits in JSON and TOML: tables, each with the name of what is done and what it is done to.

    [[edit]]
    set = "general.name"
    value = "New name"

    [[edit]]
    set = "my.list"
    type = "[INT32]"
    value = [1, 2, 3]

    [[edit]]
    set = "tokenizer.chat_template"
    file = "template.jinja"  # the text of a file, from the folder of this list; of other types it is JSON

    [[edit]]
    unset = "general.url"

    [[edit]]
    rename = "tokenizer.ggml.seperator_token_id"
    to = "tokenizer.ggml.separator_token_id"

    [[edit]]
    rename_tensor = "output_norm"
    to = "output_norm.weight"

    [[edit]]
    delete_tensor = "rope_freqs.weight"

    [[edit]]
    order_tensors = ["token_embd.weight"]  # first; the others follow as they were

    [[edit]]
    align = 64

In JSON the same tables in a list, or in an object as its `edit`; of a single edit the table alone.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import GGUFError, shown
from .edits import Align, DeleteTensor, Edit, OrderTensors, RenameKey, RenameTensor, Set, Unset
from .types import type_named
from .values import Text, finite, loads, text_of

EXAMPLE = (__doc__ or "").partition("\n\n")[2]
"""What a list looks like."""


def edits_of(data: bytes, is_toml: bool | None, folder: str | os.PathLike[str] = ".") -> list[Edit]:
    """The edits of a list.

    Args:
        data: The list.
        is_toml: Whether it is TOML; else it is JSON. None where that is to be found out.
        folder: What the names of files are relative to.

    Raises:
        GGUFError: It is no such list.
        OSError: A file that it names cannot be read.
    """
    given = _loads(data, is_toml)
    tables = given.get("edit") if isinstance(given, dict) and set(given) == {"edit"} else given
    if isinstance(tables, dict) and set(tables) & set(VERBS):
        tables = [tables]
    if not isinstance(tables, list):
        kinds = ", ".join(VERBS)
        raise GGUFError(
            f"no list of edits: expected tables named `edit`, or in JSON a list, or a table with one of {kinds}"
        )
    edits = []
    for index, table in enumerate(tables):
        try:
            edits.append(_edit(table, folder))
        except GGUFError as error:
            raise error.inside(f"edits[{index}]", None) from None
    return edits


def _loads(data: bytes, is_toml: bool | None) -> Any:
    """The tables."""
    problems = []
    for read in [_toml] if is_toml else [loads] if is_toml is not None else [loads, _toml]:
        try:
            return read(data)
        except (RecursionError, ValueError) as error:
            problems.append(getattr(error, "problem", str(error)))
    raise GGUFError(f"no list of edits: {'; '.join(problems)}")


MOST_DOTS = 100
"""In a key of TOML, each of which is a level: the time that it takes to read one grows with the square of them."""

DEEP = re.compile(rf"""(?:\.[ \t]*+(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+){{{MOST_DOTS + 1}}}""")


def _toml(data: bytes) -> Any:
    try:
        text = data.decode()
        if DEEP.search(text):
            raise GGUFError(f"no TOML: a key has more than {MOST_DOTS} dots")
        return tomllib.loads(text, parse_float=finite)
    except ValueError as error:
        raise GGUFError(f"no TOML: {error}") from None


def _edit(table: Any, folder: str | os.PathLike[str]) -> Edit:
    verbs = [verb for verb in VERBS if isinstance(table, dict) and verb in table]
    if len(verbs) != 1:
        raise GGUFError(f"expected a table with one of {', '.join(VERBS)}, found {shown(table, 100)}")
    make, others = VERBS[verbs[0]]
    unknown = set(table) - {verbs[0]} - others
    if unknown:
        raise GGUFError(f"{verbs[0]} does not go with {', '.join(map(repr, sorted(unknown)))}")
    return make(table, folder)


def _set(table: Mapping[str, Any], folder: str | os.PathLike[str]) -> Edit:
    if ("value" in table) == ("file" in table):
        raise GGUFError("set goes with a value, or with a file that has it")
    type = type_named(_text(table, "type")) if "type" in table else None
    return Set(_text(table, "set"), _in_file(table, folder) if "file" in table else table["value"], type)


def _in_file(table: Mapping[str, Any], folder: str | os.PathLike[str]) -> Text:
    name = _text(table, "file")
    if not name:
        raise GGUFError("expected the name of a file, found ''", "file")
    try:
        return Text(text_of(os.path.join(folder, name)))
    except GGUFError as error:
        raise error.inside("file", None) from None


def _text(table: Mapping[str, Any], field: str) -> str:
    value = table.get(field)
    if not isinstance(value, str):
        raise GGUFError(f"expected a string, found {shown(value, 100)}" if field in table else "is missing", field)
    return value


def _order(table: Mapping[str, Any], folder: str | os.PathLike[str]) -> Edit:
    names = table["order_tensors"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise GGUFError("expected a list of names", "order_tensors")
    return OrderTensors(names)


VERBS: dict[str, tuple[Callable[[Mapping[str, Any], str | os.PathLike[str]], Edit], set[str]]] = {
    "set": (_set, {"value", "file", "type"}),
    "unset": (lambda table, folder: Unset(_text(table, "unset")), set()),
    "rename": (lambda table, folder: RenameKey(_text(table, "rename"), _text(table, "to")), {"to"}),
    "rename_tensor": (lambda table, folder: RenameTensor(_text(table, "rename_tensor"), _text(table, "to")), {"to"}),
    "delete_tensor": (lambda table, folder: DeleteTensor(_text(table, "delete_tensor")), set()),
    "order_tensors": (_order, set()),
    "align": (lambda table, folder: Align(table["align"]), set()),
}
"""Name of what is done → the function that makes the edit, and what else its table may hold."""
