"""`dump` on hostile, broken and odd files: nothing of them is printed raw, JSON is strict, only GGUFError is raised."""

import json
import re
import struct

import numpy as np
import pytest

import gguf_schema
from gguf_schema import GGUF, GGUFError
from gguf_schema import GGUFValueType as T
from gguf_schema.constructs import Strings
from gguf_schema.dump import dump_json, dump_markdown, dump_text
from gguf_schema.terminal import printable

from .shared import cases, needs_cases

HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "newline": "a\nb",
    "line of its own": "x\n* Dumping 0 tensor(s)\n",
    "carriage return": "a\rb",
    "tab and NUL": "a\tb\0c",
    "C1": "\x9b31m",
    "DEL": "a\x7fb",
    "bidi override": "\u202etxt.exe\u202c",
    "bidi isolate": "\u2066x\u2069",
    "zero width": "a\u200bb\ufeff",
    "line separator": "a\u2028b\u2029c",
    "no UTF-8": "a\udcffb\udc80",
    "pipe": "a|b||c",
    "escaped pipe": "a\\|b",
    "backslash": "\\",
    "backtick": "a`b",
    "backticks": "``",
    "backticks within": "` ``` `",
    "HTML": '"><script>alert(1)</script>&lt;',
    "link": "[x](javascript:alert(1)) ![](y)",
    "emphasis": "**bold**",
    "empty": "",
}


def info(name: str, offset: int = 0, dimensions: tuple[int, ...] = (32,), type: int = 0) -> dict:
    return {"name": name, "dimensions": dimensions, "type": type, "offset": offset}


def array(type: T, items) -> dict:
    return {"type": type, "array": items}


def opened(*pairs, infos=(), data: bytes = b"", order: str = "<", version: int = 3):
    """The model of a file with these pairs (key, type, wire value) and tensor infos, faults and all."""
    kv = [{"key": key, "value_type": type, "value": value} for key, type, value in pairs]
    obj = {"order": order, "version": version, "metadata_kv": kv, "tensor_infos": list(infos), "tensor_data": data}
    return gguf_schema.open(GGUF.build(obj), check=False)


def hostile_model(text: str):
    """A file with the text wherever a file has text."""
    return opened(
        (text, T.UINT8, 1),
        ("string", T.STRING, text),
        ("strings", T.ARRAY, array(T.STRING, [text, "a", text])),
        ("nested", T.ARRAY, array(T.ARRAY, [array(T.STRING, [text])])),
        ("long", T.STRING, text * 61),
        infos=[info(text), info(f"blk.{text}.weight", 128), info(f"enc.blk.{text}", 256)],
        data=bytes(384),
    )


def strict(text: str):
    """Parse JSON, refusing what is no JSON and names that stand twice."""

    def refuse(constant: str):
        raise AssertionError(f"{constant} is no JSON")

    def unique(pairs: list) -> dict:
        assert len(dict(pairs)) == len(pairs), "a name stands twice"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def cells(row: str) -> list[str]:
    """The cells of a row of a Markdown table: what stands between bars that no backslash escapes."""
    parts = re.split(r"(?<!\\)\|", row)
    assert parts[0] == parts[-1] == ""
    return [part[1:-1] for part in parts[1:-1]]


def tables(markdown: str) -> list[list[list[str]]]:
    """All tables, each a list of rows, each a list of cells, without the row of dashes."""
    found: list[list[list[str]]] = []
    previous = ""
    for line in markdown.split("\n"):
        if line.startswith("|"):
            if not previous.startswith("|"):
                found.append([])
            if not line.startswith(("|--", "|:-")):
                found[-1].append(cells(line))
        previous = line
    return found


def code(cell: str) -> str:
    """The content of a code span that fills a cell, by CommonMark's rules."""
    match = re.fullmatch(r"(`+)(?!`)(.+?)(?<!`)\1", cell.strip())
    assert match, f"no single code span: {cell!r}"
    content = match[2].replace("\\|", "|")
    assert "`" * len(match[1]) not in re.findall("`+", content), "ends early"
    if content.startswith(" ") and content.endswith(" ") and content.strip():
        content = content[1:-1]
    return content


def is_safe(text: str) -> bool:
    return all(letter.isprintable() for letter in text.replace("\n", ""))


@pytest.mark.parametrize("name", HOSTILE)
def test_printable_shows_what_python_shows(name):
    text = HOSTILE[name]
    shown = printable(text)
    assert shown.isprintable()
    assert shown == repr("'" + text + '"')[1:-1].replace("\\\\", "\\").replace("\\'", "'")[1:-1]


def test_printable_leaves_text_alone():
    for text in ("tokenizer.ggml.tokens", "héllo 🦙 世界", "a\\b", "'\"", ""):
        assert printable(text) is text


@pytest.mark.parametrize("name", HOSTILE)
def test_text(name):
    text = HOSTILE[name]
    model = hostile_model(text)
    output = dump_text(model)
    assert is_safe(output)
    lines = output.split("\n")
    assert len(lines) == 2 + 3 + 5 + 1 + 3
    assert lines[5] == f"      4: UINT8      |        1 | {printable(text)} = 1"
    assert lines[6].endswith(f"| string = {text!r}")
    assert lines[7].endswith(f"| strings = {[text, 'a', text]!r}")
    assert lines[8].endswith(f"| nested = {[[text]]!r}")
    assert lines[11].endswith(f"| F32     | {printable(text)}")


@pytest.mark.parametrize("name", HOSTILE)
def test_json(name):
    text = HOSTILE[name]
    output = dump_json(hostile_model(text), arrays=True)
    assert output.isascii()
    assert output.isprintable()
    document = strict(output)
    metadata = document["metadata"]
    assert metadata[text]["value"] == 1
    assert metadata["string"]["value"] == text
    assert metadata["strings"]["value"] == [text, "a", text]
    assert metadata["nested"]["value"] == [[text]]
    assert list(document["tensors"]) == [text, f"blk.{text}.weight", f"enc.blk.{text}"]


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown(name):
    text = HOSTILE[name]
    output = dump_markdown(hostile_model(text))
    assert is_safe(output)
    found = tables(output)
    metadata, places, *groups = found
    assert [len(row) for row in metadata] == [5] * 9
    assert [len(row) for row in places] == [4] * 4
    assert all(len(row) == 7 for group in groups for row in group)
    assert sum(len(group) - 1 for group in groups) == 3
    assert output.count("\n### <a name=") == len(groups)
    by_key = {row[3].strip(): row[4] for row in metadata}
    assert code(by_key["string"]) == (printable(text) or " ")
    for free in (metadata[4][3], places[1][1], places[2][1], *(row[2] for group in groups for row in group[1:])):
        without_escapes = re.sub(r"\\[`*\[\]<>|&\\]", "", free)
        assert not re.search(r"[`*\[\]<>|&]", without_escapes)
    for anchor in re.findall(r'name="(.*?)">', output) + re.findall(r"\]\(#(.*?)\)\n", output):
        assert re.fullmatch(r"[\w-]+", anchor)


def test_markdown_code_spans_cannot_be_turned_inside_out():
    """With an empty string shown as two backticks, `` would begin a span that ends before the script."""
    model = opened(("strings", T.ARRAY, array(T.STRING, ["", "``<script>"])))
    value = tables(dump_markdown(model))[0][4][4]
    assert value.strip() == "[ ` `, ``` ``<script> ``` ]"


def test_numbers_that_json_does_not_know():
    floats = [float("nan"), float("inf"), float("-inf"), 0.5, -0.0]
    model = opened(
        *((f"f64.{n}", T.FLOAT64, value) for n, value in enumerate(floats)),
        ("f32", T.FLOAT32, float("-inf")),
        ("array", T.ARRAY, array(T.FLOAT32, np.array(floats, "<f4"))),
        ("nested", T.ARRAY, array(T.ARRAY, [array(T.FLOAT64, floats)])),
        ("u64", T.UINT64, 2**64 - 1),
        ("u64s", T.ARRAY, array(T.UINT64, [2**53 + 1, 2**64 - 1])),
    )
    metadata = strict(dump_json(model, arrays=True))["metadata"]
    expected = ["NaN", "Infinity", "-Infinity", 0.5, -0.0]
    assert [metadata[f"f64.{n}"]["value"] for n in range(5)] == expected
    assert metadata["f32"]["value"] == "-Infinity"
    assert metadata["array"]["value"] == expected
    assert metadata["nested"]["value"] == [expected]
    assert metadata["u64"]["value"] == 2**64 - 1
    assert metadata["u64s"]["value"] == [2**53 + 1, 2**64 - 1]
    assert "array = [nan, inf, -inf, 0.5, -0.0]" in dump_text(model)
    assert "| [ nan, inf, -inf, 0.5, -0.0 ] " in dump_markdown(model)


def test_signalling_nan_and_odd_bools():
    data = bytearray(GGUF.build({"metadata_kv": [
        {"key": "nan", "value_type": T.FLOAT32, "value": float("nan")},
        {"key": "bool", "value_type": T.BOOL, "value": True},
        {"key": "bools", "value_type": T.ARRAY, "value": array(T.BOOL, [False, True, True])},
    ], "tensor_infos": []}))  # fmt: skip
    at = data.index(b"nan") + 7
    data[at : at + 4] = struct.pack("<L", 0x7F800001)
    data[data.index(b"bool") + 8] = 2
    data[data.index(b"bools") + 5 + 4 + 4 + 8 + 1] = 255
    model = gguf_schema.open(bytes(data), check=False)
    metadata = strict(dump_json(model, arrays=True))["metadata"]
    assert metadata["nan"]["value"] == "NaN"
    assert metadata["bool"]["value"] is True
    assert metadata["bools"]["value"] == [False, True, True]
    assert "bools = [False, True, True]" in dump_text(model)
    assert "| [ False, True, True ]" in dump_markdown(model)
    assert "| nan " in dump_markdown(model)


def test_duplicates_and_names_of_the_header():
    pairs = [("a", T.UINT8, 1), ("a", T.UINT8, 2), ("GGUF.version", T.UINT8, 9), ("a@42", T.UINT8, 3)]
    model = opened(*pairs, infos=[info("t"), info("t", 128)], data=bytes(256))
    document = strict(dump_json(model))
    values = {name: entry["value"] for name, entry in document["metadata"].items()}
    assert values == {
        "GGUF.version": 3, "GGUF.tensor_count": 2, "GGUF.kv_count": 4,
        "a": 1, "a@38": 2, "GGUF.version@52": 9, "a@42": 3,
    }  # fmt: skip
    assert [entry["offset"] for entry in document["tensors"].values()] == [94, 127]
    assert list(document["tensors"]) == ["t", "t@127"]
    assert len(re.findall(r" \| a = ", dump_text(model))) == 2
    assert dump_text(model).count("F32     | t") == 2
    assert "  1 | t " in dump_markdown(model)


@pytest.mark.parametrize(("version", "order"), [(1, "<"), (1, ">"), (2, "<"), (3, "<"), (3, ">")])
def test_versions_and_orders(version, order):
    model = opened(
        ("k", T.ARRAY, array(T.INT16, [1, -2])), infos=[info("t")], data=bytes(128), order=order, version=version
    )
    document = strict(dump_json(model, arrays=True))
    count, length = (4, 4) if version == 1 else (8, 8)
    assert document["endian"] == {"<": "LITTLE", ">": "BIG"}[order]
    entries = list(document["metadata"].items())
    kind = "UINT32" if version == 1 else "UINT64"
    assert entries == [
        ("GGUF.version", {"index": 0, "type": "UINT32", "offset": 4, "value": version}),
        ("GGUF.tensor_count", {"index": 1, "type": kind, "offset": 8, "value": 1}),
        ("GGUF.kv_count", {"index": 2, "type": kind, "offset": 8 + count, "value": 1}),
        (
            "k",
            {"index": 3, "type": "ARRAY", "offset": 8 + 2 * count, "array_types": ["INT16"], "value": [1, -2]},
        ),
    ]
    start = 8 + 2 * count + (length + 1) + 4 + 4 + length + 2 * 2
    assert document["tensors"] == {"t": {"index": 0, "shape": [32], "type": "F32", "offset": start}}
    assert f"* File is {document['endian']} endian" in dump_text(model)
    assert f"- Endian: {document['endian']} endian" in dump_markdown(model)


def test_offsets_count_from_the_start_of_the_file_object(tmp_path):
    path = tmp_path / "shifted"
    model = opened(("k", T.UINT8, 1), infos=[info("t")], data=bytes(128))
    path.write_bytes(b"before" + model.source.read_at(0, model.size))
    with path.open("rb") as file:
        file.seek(6)
        with gguf_schema.open(file) as shifted:
            document = strict(dump_json(shifted))
    assert document == {**strict(dump_json(model)), "filename": str(path)}


def test_tensors_of_unknown_types_and_sizes():
    infos = [info("unknown", 0, (5,), 999), info("removed", 64, (32,), 4), info("last", 96, (7, 3), 2**31 - 1)]
    model = opened(infos=infos, data=bytes(160))
    text = dump_text(model)
    assert "          5 |     5,     1,     1,     1 | 999     | unknown" in text
    assert "| Q4_2    | removed" in text
    assert "| 2147483647 | last" in text
    assert [tensor["type"] for tensor in strict(dump_json(model))["tensors"].values()] == ["999", "Q4_2", "2147483647"]
    _, places, group = tables(dump_markdown(model))
    assert [row[3].strip() for row in places[1:]] == ["0x40", "0x20", "?"]
    assert [row[6].strip() for row in group[1:]] == ["102.4000", "8.0000", "?"]
    assert dump_markdown(model).endswith("undefined (the size of a tensor is not known)")


def test_no_elements_at_all():
    model = opened(infos=[info("z", 0, (0, 4)), info("blk", 0, (0,)), info("enc", 0, (0,)), info("", 0, (0,))])
    markdown = dump_markdown(model)
    assert markdown.count("- Percentage of total elements: undefined (no elements)") == 3
    assert markdown.endswith("undefined (no elements)")
    assert "          0 |     0,     4,     1,     1 | F32     | z" in dump_text(model)


@pytest.mark.parametrize("dimensions", [(2**64 - 1,) * 4, (2**63,) * 8])
def test_elements_are_counted_exactly(dimensions):
    model = opened(infos=[info("t", 0, dimensions)])
    n_elements = np.prod(np.array(dimensions, object))
    assert f" {n_elements} | " in dump_text(model)
    assert f"Total number of elements in all tensors: {n_elements} Elements" in dump_markdown(model)
    assert strict(dump_json(model))["tensors"]["t"]["shape"] == list(dimensions)


@pytest.mark.parametrize("dimensions", [(2**64 - 1,) * 200_000, (2**64 - 1,) * 200_000 + (0,)])
def test_more_elements_than_can_be_counted_are_refused(dimensions):
    model = opened(infos=[info("t", 0, dimensions)])
    for dump in (dump_text, dump_markdown):
        with pytest.raises(GGUFError, match=r"tensor_infos\[0\].n_dimensions: .* are not counted"):
            dump(model)
    assert len(strict(dump_json(model))["tensors"]["t"]["shape"]) == len(dimensions)


def test_a_file_that_is_closed():
    model = opened(("k", T.UINT8, 1))
    model.close()
    for dump in (dump_text, dump_json, dump_markdown):
        with pytest.raises(GGUFError, match="closed"):
            dump(model)


def test_nested_arrays_show_their_first_values():
    ints = [array(T.INT32, list(range(start, start + 4))) for start in range(0, 400, 4)]
    empty = [array(T.STRING, [])] * 100
    deep = array(T.INT8, [1, 2])
    for _ in range(14):
        deep = array(T.ARRAY, [deep])
    model = opened(
        ("ints", T.ARRAY, array(T.ARRAY, ints)),
        ("empty", T.ARRAY, array(T.ARRAY, empty)),
        ("mixed", T.ARRAY, array(T.ARRAY, [array(T.STRING, ["a"]), array(T.BOOL, [True])])),
        ("deep", T.ARRAY, deep),
        ("none", T.ARRAY, array(T.FLOAT32, [])),
        ("hollow", T.ARRAY, array(T.ARRAY, [array(T.ARRAY, [])] * 100)),
    )
    lines = dump_text(model).split("\n")
    assert lines[5] == "      4: [[INT32]]  |      400 | ints = [[0, 1, 2, 3], [4, 5, ...], ...]"
    assert lines[6] == "      5: [ARRAY]    |        0 | empty = [[], [], [], [], [], [], ...]"
    assert lines[7] == "      6: [[STRING]] |        2 | mixed = [['a'], [True]]"
    assert lines[8].endswith("deep = " + "[" * 15 + "1, 2" + "]" * 15)
    assert lines[9] == "      8: ARRAY      |        0 | none = []"
    assert lines[10].endswith("hollow = [[], [], [], [], [], [], ...]")
    values = [row[4].strip() for row in tables(dump_markdown(model))[0][4:]]
    assert values[0] == "[ [ 0, 1, 2, 3 ], [ 4, 5, 6, ... ], ... ]"
    assert values[2] == "[ [ `a` ], [ True ] ]"
    metadata = strict(dump_json(model, arrays=True))["metadata"]
    assert metadata["ints"]["value"] == [list(range(start, start + 4)) for start in range(0, 400, 4)]
    assert metadata["mixed"]["value"] == [["a"], [True]]


def test_vocabularies_are_not_decoded(monkeypatch):
    decoded = []

    def get(strings: Strings, index):
        if isinstance(index, slice):
            return [get(strings, i) for i in range(*index.indices(len(strings)))]
        decoded.append(index)
        return strings.wire[strings.starts[index] : strings.ends[index]].decode()

    model = opened(("tokens", T.ARRAY, array(T.STRING, ["token"] * 100_000)))
    monkeypatch.setattr(Strings, "__getitem__", get)
    monkeypatch.setattr(Strings, "__iter__", lambda _: pytest.fail("decodes all"))
    dump_text(model)
    dump_json(model)
    dump_markdown(model)
    assert len(decoded) < 20


def test_output_grows_no_faster_than_the_file():
    """One long name among many: padding every row to it would make the square of the file."""
    infos = [info("n" * 100_000), *(info(f"t{n}") for n in range(5000))]
    pairs = [("k" * 100_000, T.UINT8, 1), *((f"k{n}", T.UINT8, n % 256) for n in range(5000))]
    model = opened(*pairs, infos=infos)
    for dump in (dump_text, dump_json, dump_markdown):
        assert len(dump(model)) < 20 * model.size


@needs_cases
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_labelled_cases(case):
    try:
        model = gguf_schema.open(case["bytes"], check=False)
    except GGUFError:
        return
    for dump in (dump_text, dump_json, dump_markdown):
        try:
            output = dump(model)
        except GGUFError:
            output = "{}"
        assert is_safe(output)
        if dump is dump_json:
            strict(output)
            strict(dump_json(model, arrays=True))
