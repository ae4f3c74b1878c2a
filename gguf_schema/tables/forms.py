"""A table, and the forms that it can take."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Table(NamedTuple):
    """A table.

    Attributes:
        columns: What each column is called.
        rows: Of plain values: numbers, text, None where there is nothing to say.
        code: Columns whose values are words of the format, not of a language.
        as_markdown: How the table is written in Markdown, where a grid is not the best.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    code: tuple[str, ...] = ()
    as_markdown: "Callable[[Table], str] | None" = None

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    if table.as_markdown is not None:
        return table.as_markdown(table)
    lines = [_line(table.columns), _line(["---"] * len(table.columns))]
    for record in table.records():
        lines.append(_line([_cell(value, column in table.code) for column, value in record.items()]))
    return "\n".join(lines)


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any, is_code: bool) -> str:
    if value is None or value == "":
        return ""
    text = str(value).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if is_code else text.replace("<", "&lt;").replace("*", "\\*")


def to_json(table: Table) -> str:
    """The table as a list of objects."""
    return json.dumps(table.records(), indent=1, ensure_ascii=False)


def to_csv(table: Table) -> str:
    """The table as comma-separated values, with a line of columns first (RFC 4180)."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return written.getvalue().removesuffix("\n")


FORMS = {"markdown": markdown, "json": to_json, "csv": to_csv}
"""The name of a form → a table in that form."""
