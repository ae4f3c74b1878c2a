"""A Markdown document of tables."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..enums import ArrayType
from ..enums import GGUFValueType as T
from ..file import Model
from ..terminal import printable
from .contents import Field, Info, contents, endian, first

NUMBERS, STRINGS = 7, 5
LETTERS, ITEM_LETTERS = 60, 30
"""How much is shown of an array and of a string."""

WIDEST = 256
"""Letters up to which the columns of a Markdown table are padded, lest one long name lengthen every row."""

FIELD_COLUMNS = (">POS", "<TYPE", ">Count", "<Key", "<Value")
PLACE_COLUMNS = (">T_ID", "<Tensor Layer Name", ">Data Offset (B)", ">Data Size (B)")
TENSOR_COLUMNS = (
    ">T_ID",
    "<Tensor Layer Name",
    "<Human Friendly Tensor Layer Name",
    "<Elements",
    "<Shape",
    "<Type",
    ">BPW",
)

MARKUP = re.compile(r"[`*\[\]<>|&]|\\(?=[!-/:-@\[-`{-~]|$)")
"""What begins markup in Markdown or HTML, and backslashes that would be taken for escapes."""

SCALES = ((1e15, "Q"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))

WORDS = {
    "token_embd": "Token Embedding",
    "pos_embd": "Position Embedding",
    "output_norm": "Output Normalization",
    "attn_norm": "Attention Normalization",
    "attn_norm_2": "Attention Normalization",
    "attn_qkv": "Attention Query-Key-Value",
    "attn_q": "Attention Query",
    "attn_k": "Attention Key",
    "attn_v": "Attention Value",
    "attn_output": "Attention Output",
    "ffn_norm": "Feed-Forward Network Normalization",
    "ffn_up": 'Feed-Forward Network "Up"',
    "ffn_gate": 'Feed-Forward Network "Gate"',
    "ffn_down": 'Feed-Forward Network "Down"',
    "ffn_gate_inp": "Expert-Routing Layer For The Feed-Forward Network In Mixture Of Expert Models",
    "ffn_gate_exp": 'Feed-Forward Network "Gate" Layer Per Expert In Mixture Of Expert Models',
    "ffn_down_exp": 'Feed-Forward Network "Down" Layer Per Expert In Mixture Of Expert Models',
    "ffn_up_exp": 'Feed-Forward Network "Up" Layer Per Expert In Mixture Of Expert Models',
    "ssm_in": "State Space Model Input Projections",
    "ssm_conv1d": "State Space Model Rolling/Shift",
    "ssm_x": "State Space Model Selective Parametrization",
    "ssm_a": "State Space Model State Compression",
    "ssm_d": "State Space Model Skip Connection",
    "ssm_dt": "State Space Model Time Step",
    "ssm_out": "State Space Model Output Projection",
    "blk": "Block",
    "enc": "Encoder",
    "dec": "Decoder",
}
"""Segments of tensor names in words; others are their own."""


class Row(NamedTuple):
    """A tensor in the Markdown tables."""

    info: Info
    n_elements: int
    n_bytes: int | None
    data_offset: int


def dump_markdown(model: Model, tensors: bool = True) -> str:
    """A Markdown document: a table of the metadata, a table of where tensors are, and one for each group of tensors.

    Raises:
        GGUFError: The file is closed or has changed; or a tensor has too many dimensions to count its elements.
    """
    fields, infos = contents(model)
    name = os.fsdecode(model.name)
    rows = _rows(model, infos) if tensors else []
    lines = [
        f"# {_inert(name)} - GGUF Internal File Dump",
        "",
        f"- Endian: {endian(model)} endian",
        "",
        "## Key Value Metadata Store",
        "",
        f"There are {len(fields)} key-value pairs in this file",
        "",
        *_table(FIELD_COLUMNS, [_field_cells(n, field) for n, field in enumerate(fields, 1)]),
        "",
    ]
    if tensors:
        lines += _tensor_sections(rows)
    return "\n".join([*lines, f"Total BPW for {_inert(os.path.basename(name))}: {_density(rows)}"])


def _rows(model: Model, infos: list[Info]) -> list[Row]:
    return [
        Row(info, info.n_elements, tensor.n_bytes, tensor.data_offset)
        for info, tensor in zip(infos, model.tensors.infos, strict=True)
    ]


def _table(columns: Sequence[str], rows: list[list[str]]) -> Iterator[str]:
    titles = [column[1:] for column in columns]
    aligns = [column[0] for column in columns]
    widths = [min(WIDEST, max(map(len, cells))) for cells in zip(titles, *rows, strict=True)]
    dashes = [
        ":" + "-" * (width + 1) if align == "<" else "-" * (width + 1) + ":"
        for align, width in zip(aligns, widths, strict=True)
    ]
    for number, row in enumerate([titles, *rows]):
        cells = (f" {cell:{align}{width}} " for cell, align, width in zip(row, aligns, widths, strict=True))
        yield f"|{'|'.join(cells)}|"
        if number == 0:
            yield f"|{'|'.join(dashes)}|"


def _inert(text: str) -> str:
    """Text of the file that neither the terminal nor Markdown or HTML takes for more than text."""
    return MARKUP.sub(r"\\\g<0>", printable(text))


def _code(text: str, letters: int) -> str:
    """A string as a code span; of a long one its head and its tail."""
    if len(text) > letters:
        return f"{_code(text[: letters // 2], letters)}...{_code(text[-letters // 2 :], letters)}"
    text = printable(text).replace("|", "\\|") or " "
    marks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    if text.startswith("`") or text.endswith("`"):
        text = f" {text} "
    return f"{marks}{text}{marks}"


def _field_cells(n: int, field: Field) -> list[str]:
    return [str(n), field.pretty_type, str(field.n_values), _inert(field.name), _value(field)]


def _value(field: Field) -> str:
    if field.type is T.STRING:
        return _code(field.value, LETTERS)
    if field.type is T.FLOAT32:
        return str(np.float32(field.value))
    if not isinstance(field.type, ArrayType):
        return str(field.value)
    types = field.types
    if len(types) == 1:
        return ""
    limit = STRINGS if types[-1] == T.STRING.name else NUMBERS
    return _bracketed(first(field.value, limit, _items)[0])


def _items(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return [str(value) for value in values]
    return [_code(value, ITEM_LETTERS) for value in values]


def _bracketed(items: list[Any]) -> str:
    return f"[ {', '.join(_bracketed(item) if isinstance(item, list) else str(item) for item in items)} ]"


def _tensor_sections(rows: list[Row]) -> Iterator[str]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_group(row.info.name), []).append(row)
    total = _elements(rows)
    yield f"## Tensors Overview {_rounded(total)} Elements"
    yield ""
    yield f"Total number of elements in all tensors: {total} Elements"
    yield ""
    for name, members in groups.items():
        yield f"- [{_human(name)} Tensor Group - {_rounded(_elements(members))} Elements](#{_anchor(name)})"
    yield ""
    yield "### Tensor Data Offset"
    yield ""
    yield "This table contains the offset and data segment relative to start of file"
    yield ""
    yield from _table(PLACE_COLUMNS, [_place_cells(row) for row in rows])
    yield ""
    for name, members in groups.items():
        yield from _group_section(name, members, total)


def _group_section(name: str, rows: list[Row], total: int) -> Iterator[str]:
    count = _elements(rows)
    yield f'### <a name="{_anchor(name)}">{_human(name)} Tensor Group : {_rounded(count)} Elements</a>'
    yield ""
    yield from _table(TENSOR_COLUMNS, _tensor_cells(rows))
    yield ""
    yield f"- Total elements in {_inert(name)}: ({_rounded(count):>4}) {count}"
    yield f"- Percentage of total elements: {f'{count / total * 100:.2f}%' if total else 'undefined (no elements)'}"
    yield f"- Bits per Weight (BPW) for {_inert(name)}: {_density(rows)}"
    yield ""
    yield ""


def _place_cells(row: Row) -> list[str]:
    size = "?" if row.n_bytes is None else f"{row.n_bytes:#16x}"
    return [str(row.info.number), _inert(row.info.name), f"{row.data_offset:#16x}", size]


def _tensor_cells(rows: list[Row]) -> list[list[str]]:
    """The cells of a group's table, its counts and dimensions one below the other."""
    rounded_width = max(len(_rounded(row.n_elements)) for row in rows)
    count_width = max(len(str(row.n_elements)) for row in rows)
    widths: dict[int, int] = {}
    for row in rows:
        for axis, dimension in enumerate(row.info.padded):
            widths[axis] = max(widths.get(axis, 1), len(str(dimension)))
    return [
        [
            str(row.info.number),
            _inert(row.info.name),
            _human(row.info.name.replace(".weight", ".(W)").replace(".bias", ".(B)")),
            f"({_rounded(row.n_elements):>{rounded_width}}) {row.n_elements:>{count_width}}",
            " x ".join(f"{dimension:>{widths[axis]}}" for axis, dimension in enumerate(row.info.padded)),
            row.info.type,
            _bits_per_weight(row.n_bytes, row.n_elements),
        ]
        for row in rows
    ]


def _group(name: str) -> str:
    """The group of a tensor: its block, its encoder or decoder (with the block), or "base"."""
    parts = name.split(".")
    if parts[0] in ("enc", "dec"):
        return ".".join(parts[:3] if parts[1:2] == ["blk"] else parts[:1])
    return ".".join(parts[:2]) if parts[0] == "blk" else "base"


def _human(name: str) -> str:
    return _inert(" ".join(WORDS.get(part.strip().lower(), part.title()) for part in name.split(".")))


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name)


def _rounded(count: int) -> str:
    for scale, letter in SCALES:
        if count > scale:
            return f"~{round(count * (1 / scale))}{letter}"
    return str(count)


def _elements(rows: list[Row]) -> int:
    return sum(row.n_elements for row in rows)


def _bits_per_weight(n_bytes: int | None, n_elements: int) -> str:
    if n_bytes is None:
        return "?"
    return f"{8 * n_bytes / n_elements:.4f}" if n_elements else "nan"


def _density(rows: list[Row]) -> str:
    """The bits per weight of some tensors, in words where there is no such number."""
    n_elements = _elements(rows)
    if not n_elements:
        return "undefined (no elements)"
    if any(row.n_bytes is None for row in rows):
        return "undefined (the size of a tensor is not known)"
    return f"{_bits_per_weight(sum(row.n_bytes or 0 for row in rows), n_elements)} bits"
