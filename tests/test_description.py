"""The format as plain data says what the trees say."""

import json

import gguf_schema as gs
from gguf_schema import description
from gguf_schema.blocks import blocks


def parts(described):
    """Every description in a description."""
    if isinstance(described, dict):
        if "kind" in described:
            yield described
        for value in described.values():
            yield from parts(value)
    elif isinstance(described, list):
        for value in described:
            yield from parts(value)


def test_is_json():
    described = description.the_format()
    assert json.loads(json.dumps(described)) == described


def test_every_kind_is_explained_and_none_besides():
    described = description.the_format()
    assert {part["kind"] for part in parts(described)} == set(described["kinds"])


def test_explanations_name_what_the_kinds_have():
    for part in parts(description.the_format()):
        for argument in part.keys() - {"kind"}:
            explained = description.KINDS[part["kind"]]
            assert f"`{argument}`" in explained or argument in ("construct_name", "data", "tensor_infos"), part


def test_both_byte_orders_are_described_alike(monkeypatch):
    little = description.types()
    monkeypatch.setattr(description, "structs", lambda version: gs.structs(">", version))
    assert description.types() == little


def test_what_differs_between_versions():
    """Version 2 widened counts, lengths and dimensions; nothing else but the version itself differs."""
    described = description.types()
    sizes = {"by_version": {"1": 4, "2": 8, "3": 8}}
    for name in ("count", "length", "dimension"):
        assert described[name] == {"kind": "integer", "bytes": sizes, "signed": False}
    assert json.dumps(described).count("by_version") == 3 + 2  # the constant stands in head and gguf
    assert described["gguf"]["fields"][1]["type"]["value"] == {"by_version": {"1": 1, "2": 2, "3": 3}}


def test_names_stand_for_constructs():
    described = description.types()
    assert [field["type"] for field in described["metadata_kv"]["fields"][:2]] == ["string", "value_type"]
    assert described["tensor_info"]["fields"][2]["type"] == {
        "kind": "array",
        "count": "n_dimensions",
        "items": "dimension",
    }
    elements = described["array"]["fields"][2]["type"]["cases"]
    assert set(elements) == {type.name for type in gs.GGUFValueType}
    assert elements["ARRAY"]["items"]["type"] == "array"


def test_every_named_construct_and_every_field_is_there():
    layout = gs.structs("<", 3)
    described = description.types()
    for name in ("uint8", "string", "array", "metadata_kv", "tensor_info", "gguf"):
        assert name in described
    for name in ("array", "metadata_kv", "tensor_info", "gguf"):
        fields = getattr(layout, name).subcons
        assert [field["name"] for field in described[name]["fields"]] == [field.name for field in fields]
        assert [field["doc"] for field in described[name]["fields"]] == [field.docs for field in fields]


def test_blocks_are_laid_out():
    described = description.tensor_types()
    assert {type.name for type in blocks("<")} == set(described)
    # block_q4_1 of ggml-common.h: two ggml_half, then QK4_1 / 2 bytes.
    assert described["Q4_1"]["block_size"] == 32
    assert [(field["name"], field["offset"], field["bytes"]) for field in described["Q4_1"]["fields"]] == [
        ("d", 0, 2),
        ("m", 2, 2),
        ("qs", 4, 16),
    ]
    for one in described.values():
        ends = [field["offset"] + field["bytes"] for field in one["fields"]]
        assert [field["offset"] for field in one["fields"]] == [0, *ends[:-1]]
        assert ends[-1] == one["type_size"]


def test_alignment_is_what_the_schema_reads():
    """gguf.h: GGUF_KEY_GENERAL_ALIGNMENT, GGUF_DEFAULT_ALIGNMENT; read as an uint32."""
    assert description.alignment() == {"key": "general.alignment", "value_type": "UINT32", "default": 32}


def test_merging_keeps_what_is_alike():
    assert description.merge({1: {"a": 1, "b": [1, 2]}, 2: {"a": 1, "b": [1, 3]}}) == {
        "a": 1,
        "b": [1, {"by_version": {"1": 2, "2": 3}}],
    }
    assert description.merge({1: [1], 2: [1, 2]}) == {"by_version": {"1": [1], "2": [1, 2]}}
