"""Blocks of tensor data, drawn field by field."""

from itertools import groupby

from ..description import tensor_types
from .forms import Table

PLAIN = 1
"""The elements of a block that needs no drawing: it is one number."""


def draw(table: Table) -> str:
    """The table of blocks in Markdown: a drawing for each type, with offsets over the fields, and what they mean."""
    drawn = []
    for name, rows in groupby(table.records(), key=lambda record: record["tensor type"]):
        described = tensor_types()[name]
        if described["block_size"] == PLAIN:
            continue
        fields = list(rows)
        title = f"**{name}** ({described['id']}): {described['block_size']} elements in {described['type_size']} bytes"
        boxes = _boxes([(str(field["offset"]), field["field"], field["type"]) for field in fields])
        meanings = "\n".join(f"- `{field['field']}`: {field['meaning']}" for field in fields)
        drawn.append(f"{title}\n\n```text\n{boxes}{described['type_size']}\n```\n\n{meanings}")
    return "\n\n".join(drawn)


def _boxes(cells: list[tuple[str, str, str]]) -> str:
    """Boxes side by side, offsets in a line above them; what follows the last line is the offset of the end."""
    widths = [max(map(len, cell)) + 2 for cell in cells]
    edge = "+".join(["", *("-" * width for width in widths), ""])
    lines = [edge]
    for row in (1, 2):
        lines.append("|".join(["", *(f" {cell[row]}".ljust(w) for cell, w in zip(cells, widths, strict=True)), ""]))
    offsets = "".join(cell[0].ljust(width + 1) for cell, width in zip(cells, widths, strict=True))
    return "\n".join([*lines, edge, offsets])
