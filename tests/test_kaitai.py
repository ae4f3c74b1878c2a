"""The .ksy, compiled by Kaitai's own compiler to Python, reads every file as the schema does, value by value."""

import contextlib
import importlib.util
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import gguf_schema as gs
from gguf_schema import GGUFValueType as T
from gguf_schema.demo import demo_model
from gguf_schema.export import EXPORTS

from .node import run_node
from .shared import cases, corpus_files, needs_cases, needs_corpus
from .test_generated_files import LAYOUTS, files

COMPILE = """
const compiler = require("kaitai-struct-compiler");
const text = require("fs").readFileSync(0, "utf8");
const ksy = () => require("js-yaml").load(text);
async function all() {
    const made = {};
    for (const language of compiler.languages) {
        try {
            made[language] = Object.values(await compiler.compile(language, ksy(), null, false)).join("");
        } catch (error) {
            made[language] = null;
        }
    }
    console.log(JSON.stringify(made));
}
all();
"""
WITHOUT_MIXED_SWITCHES = {
    "cpp_stl",  # C++ has no type for a value that is a number or a struct
    "construct",  # an experiment; see the compiler's README
}
"""What the compiler makes nothing for."""
NOT_EXPRESSED = {
    "y_kv_f32_snan_payload": "the runtime reads float32 with struct.unpack, which makes a signalling NaN quiet",
}
"""Labelled files of which the generated parser gives other values, and why."""
SMALL = 3_000_000
SIGNALLING = 0x7F800001
"""A signalling NaN of 32 bits."""


@pytest.fixture(scope="session")
def compiled() -> dict[str, str | None]:
    """Language → the source of its parser; None where the compiler fails."""
    return json.loads(run_node("kaitai-struct-compiler", COMPILE, given=EXPORTS["gguf.ksy"]()))


@pytest.fixture(scope="session")
def parser(compiled, tmp_path_factory) -> Any:
    """The generated class."""
    pytest.importorskip("kaitaistruct")
    path = tmp_path_factory.mktemp("kaitai") / "gguf.py"
    path.write_text(compiled["python"], "utf-8")
    spec = importlib.util.spec_from_file_location("gguf_by_kaitai", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Gguf


# Everything in a file as plain data: strings as bytes, booleans as their byte, floats as their bits.


def float_bits(value: float, width: int) -> int:
    """The bits of a float that `struct` has read."""
    return int.from_bytes(struct.pack({4: ">f", 8: ">d"}[width], value), "big")


def quieted(bits: int) -> int:
    """The bits of a float32 as they are after `struct` has read them."""
    return float_bits(struct.unpack(">f", struct.pack(">I", bits))[0], 4)


FLOATS = {T.FLOAT32: 4, T.FLOAT64: 8}


def our_value(type, value, layout, quiet: bool):
    """A value of the wire form."""
    if type == T.STRING:
        return value.encode("utf-8", "surrogateescape")
    if type == T.ARRAY:
        items = value["array"]
        if value["type"] in layout.numbers:
            raw = items.view(np.uint8) if items.dtype == bool else items
            is_float = value["type"] in FLOATS
            plain = (raw.view(raw.dtype.str.replace("f", "u")) if is_float else raw).tolist()
            quiet_items = map(quieted, plain) if quiet and value["type"] == T.FLOAT32 else plain
            return int(value["type"]), value["len"], list(quiet_items)
        return int(value["type"]), value["len"], [our_value(value["type"], item, layout, quiet) for item in items]
    if type in FLOATS:
        raw = layout.numbers[type].build(value)
        bits = int.from_bytes(raw, {"<": "little", ">": "big"}[layout.order])
        return quieted(bits) if quiet and type == T.FLOAT32 else bits
    return int(value)


def ours(data: bytes, quiet: bool = False) -> dict[str, Any]:
    """What the schema reads.

    Args:
        data: The file.
        quiet: Make signalling NaNs of 32 bits quiet.
    """
    file = gs.GGUF.parse(data)
    layout = gs.structs(file.order, file.version)
    with gs.open(data, check=False) as model:
        return {
            **{name: file[name] for name in ("version", "order", "tensor_count", "metadata_kv_count", "alignment")},
            "data_offset": model.data_offset,
            "pairs": [
                (text(pair.key), int(pair.value_type), our_value(pair.value_type, pair.value, layout, quiet))
                for pair in file.metadata_kv
            ],
            "infos": [
                (text(info.name), info.n_dimensions, list(info.dimensions), int(info.type), info.offset)
                for info in file.tensor_infos
            ],
            "sizes": [(tensor.n_elements, tensor.n_bytes, tensor.data_offset) for tensor in model.tensors.infos],
            "data": [
                # Of nothing we say that it is not there where the file ends before it; Kaitai reads it.
                b"" if tensor.n_bytes == 0 else data_of(lambda tensor=tensor: tensor.data.tobytes())
                for tensor in model.tensors.infos
            ],
            **{name: file[name] for name in ("padding", "tensor_data", "tail")},
        }


def text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def data_of(read) -> bytes | None:
    """The data of a tensor; None where the file ends before it does."""
    with contextlib.suppress(gs.GGUFError, EOFError):
        return read()
    return None


def their_value(type, value):
    """A value of the generated parser."""
    if type == T.STRING:
        assert value.len == len(value.string)
        return value.string
    if type == T.ARRAY:
        return int(value.type), value.len, [their_value(value.type, item) for item in value.array]
    return float_bits(value, FLOATS[type]) if type in FLOATS else value


def theirs(parser, data: bytes) -> dict[str, Any]:
    """What the generated parser reads."""
    file = parser.from_bytes(data)
    body = file.body
    assert file.magic == b"GGUF"
    return {
        "version": file.version,
        "order": ">" if file.version_low_half == 0 else "<",
        **{name: getattr(body, name) for name in ("tensor_count", "metadata_kv_count", "alignment", "data_offset")},
        "pairs": [
            (their_value(T.STRING, pair.key), int(pair.value_type), their_value(pair.value_type, pair.value))
            for pair in body.metadata_kv
        ],
        "infos": [
            (their_value(T.STRING, info.name), info.n_dimensions, info.dimensions, int(info.type), info.offset)
            for info in body.tensor_infos
        ],
        "sizes": [(info.n_elements, info.n_bytes, info.data_offset) for info in body.tensor_infos],
        "data": [data_of(lambda info=info: info.data) for info in body.tensor_infos],
        **{name: getattr(body, name) for name in ("padding", "tensor_data", "tail")},
    }


# Tests.


def test_other_languages(compiled):
    assert {language for language, source in compiled.items() if source is None} == WITHOUT_MIXED_SWITCHES


def test_the_demo_model(parser):
    assert theirs(parser, demo_model()) == ours(demo_model())


def test_what_nobody_knows_is_refused(parser):
    known = struct.pack("<4sIQQ Q1sIB", b"GGUF", 3, 0, 1, 1, b"k", 0, 1)
    assert parser.from_bytes(known).body.metadata_kv[0].value == 1
    refused = pytest.importorskip("kaitaistruct").KaitaiStructError
    for position, byte, place in [(0, 0, "/seq/0:"), (4, 4, "/seq/1:"), (33, 13, "/types/gguf_metadata_kv/seq/1:")]:
        with pytest.raises(refused, match=place):
            parser.from_bytes(known[:position] + bytes([byte]) + known[position + 1 :])


@needs_corpus
@pytest.mark.parametrize(
    "path", [path for path in corpus_files() if path.stat().st_size < SMALL], ids=lambda path: path.stem
)
def test_real_files(parser, path):
    data = path.read_bytes()
    assert theirs(parser, data) == ours(data)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_generated_files(parser, layout):
    @settings(max_examples=10, deadline=None, derandomize=True, database=None)
    @given(files(layouts=(layout,)))
    def compare(obj):
        data = gs.GGUF.build(obj)
        assert theirs(parser, data) == ours(data, quiet=True)

    compare()


@needs_cases
def test_labelled_files(parser):
    differ = set()
    for case in (case for case in cases() if case["kind"] == "y"):
        read = theirs(parser, case["bytes"])
        assert read == ours(case["bytes"], quiet=True), case["name"]
        if read != ours(case["bytes"]):
            differ.add(case["name"])
    later_python = quieted(SIGNALLING) == SIGNALLING
    assert differ == (set() if later_python else NOT_EXPRESSED.keys())
