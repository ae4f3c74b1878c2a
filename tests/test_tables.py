"""The tables of the specification: what is in them, their three forms, and the command that prints them."""

import csv
import io
import json

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.enums import TokenType
from gguf_schema.keys import KEYS
from gguf_schema.tables import FORMS, TABLES, Table, contents, table
from gguf_schema.tables.example import example_file, values_file

from .peers import TYPES

each_table = pytest.mark.parametrize("name", TABLES)


def records(name):
    """The rows of a table, found by what is in their first column."""
    return {next(iter(record.values())): record for record in table(name).records()}


@each_table
def test_rows_are_as_long_as_the_columns(name):
    made = table(name)
    assert made.rows
    assert {len(row) for row in made.rows} == {len(made.columns)}
    assert set(made.code) <= set(made.columns)
    assert {type(value) for row in made.rows for value in row} <= {str, int, type(None)}


@each_table
def test_forms_say_the_same(name):
    made = table(name)
    assert json.loads(FORMS["json"](made)) == made.records()
    header, *rows = csv.reader(io.StringIO(FORMS["csv"](made), newline=""))
    assert header == list(made.columns)
    assert rows == [["" if value is None else str(value) for value in row] for row in made.rows]
    if made.as_markdown is None:
        lines = FORMS["markdown"](made).splitlines()
        assert len(lines) == len(made.rows) + 2
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_markdown_is_escaped():
    made = Table(("a", "b"), [("x|y*", "<b>\n"), (None, 0)], code=("a",))
    assert FORMS["markdown"](made).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| `x\\|y*` | &lt;b>  |",
        "|  | 0 |",
    ]


def test_fields_of_a_file():
    """The header of worked examples: 24 bytes, in version 1 16."""
    fields = records("gguf")
    assert list(fields)[:5] == ["magic", "version", "tensor_count", "metadata_kv_count", "metadata_kv"]
    assert fields["metadata_kv_count"]["offset"] == "16 (12 in version 1)"
    assert fields["metadata_kv"]["offset"] == "24 (16 in version 1)"
    assert fields["metadata_kv"]["bytes"] is None
    assert fields["tensor_infos"]["offset"] is None
    assert records("tensor_info")["type"]["bytes"] == "4"
    assert records("string")["string"]["type"] == "byte[len]"


def test_what_differs_between_versions():
    assert {name: list(row.values())[1:4] for name, row in records("versions").items()} == {
        name: ["uint32", "uint64", "uint64"] for name in ("count", "length", "dimension")
    }
    assert records("versions")["dimension"]["used by"] == "tensor_info.dimensions"


def test_value_types():
    rows = records("value-types")
    assert {number: row["name"] for number, row in rows.items()} == {int(type): type.name for type in gs.GGUFValueType}
    # gguf.h: gguf_type_size
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 8: None, 9: None, 10: 8, 11: 8, 12: 8}
    assert {number: row["bytes"] for number, row in rows.items()} == sizes


def test_tensor_types():
    rows = table("tensor-types").records()
    assert {row["name"]: (row["number"], row["block_size"], row["type_size"]) for row in rows} == {
        name: known[:3] for name, known in TYPES.items()
    }
    numbers = {row["number"] for row in rows} | records("removed-tensor-types").keys()
    assert numbers == set(map(int, gs.GGMLQuantizationType))


def test_blocks_are_drawn_field_by_field():
    drawn = FORMS["markdown"](table("blocks"))
    assert (
        "**Q4_1** (3): 32 elements in 20 bytes\n\n```text\n"
        "+---------+---------+-----------+\n"
        "| d       | m       | qs        |\n"
        "| float16 | float16 | uint8[16] |\n"
        "+---------+---------+-----------+\n"
        "0         2         4           20\n```\n"
    ) in drawn
    quantised = [name for name, (_, block_size, _, _) in TYPES.items() if block_size > 1]
    assert [line.split("**")[1] for line in drawn.splitlines() if line.startswith("**")] == sorted(
        quantised, key=lambda name: TYPES[name][0]
    )


def test_enumerations_and_keys():
    assert len(table("file-types").rows) == len(gs.LlamaFileType)
    assert table("token-types").rows == [(int(member), member.name) for member in TokenType]
    assert len(table("keys").rows) == len(KEYS)
    families = [row for name in TABLES if name.startswith("keys-") for row in table(name).rows]
    assert sorted(families) == sorted(table("keys").rows)
    assert records("keys")["general.alignment"]["type"] == "UINT32"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("example", example_file("<", 3)),
        ("example-big-endian", example_file(">", 3)),
        ("example-version-1", example_file("<", 1)),
        ("example-values", values_file()),
    ],
)
def test_an_example_has_every_byte(name, data):
    position = 0
    for row in table(name).records():
        assert row["at"] == position
        position += len(bytes.fromhex(row["bytes"]))
    assert b"".join(bytes.fromhex(row["bytes"]) for row in table(name).records()) == data


def test_values_of_the_example():
    fields = {row["field"]: (row["at"], row["value"]) for row in table("example").records()}
    # Header 24 bytes; the pair of general.architecture takes 45.
    assert fields["metadata_kv[0].key.len"] == (24, "20")
    assert fields["metadata_kv[0].value_type"] == (52, "8 (STRING)")
    assert fields["metadata_kv[1].key.len"] == (69, "28")
    assert fields["tensor_data[1][0].d"][1] == "0.5"
    assert fields["tensor_data[1][1].d"][1] == "-2.0"
    assert fields["tensor_data[0][2].value"][1] == "0.5"


def test_unknown_tables_are_named(capsys):
    with pytest.raises(gs.GGUFError, match=r"no table \[\]; there are gguf"):
        table([])
    with pytest.raises(gs.GGUFError, match="no table 'nothing'; there are gguf, metadata_kv"):
        table("nothing")
    assert main(["tables", "nothing"]) == 2
    assert "no table 'nothing'" in capsys.readouterr().err


def test_the_command(capsys):
    assert main(["tables"]) == 0
    assert capsys.readouterr().out == FORMS["markdown"](contents()) + "\n"
    for form in FORMS:
        assert main(["tables", "tensor_info", "--format", form]) == 0
        assert capsys.readouterr().out == FORMS[form](table("tensor_info")) + "\n"
