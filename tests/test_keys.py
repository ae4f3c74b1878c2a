"""The tables of standard keys against gguf-py, its writer, real files, and the labelled cases."""

import inspect
import itertools
import logging

import pytest

import gguf_schema as gs
from gguf_schema import keys
from gguf_schema.keys import KEYS, Key, find

from . import peers
from .shared import cases, corpus_files, needs_cases, needs_corpus

T = gs.GGUFValueType
BY_TEMPLATE = {key.template: key for key in KEYS}
FILLED = {"{id}": "12", "{name}": "tool_use", "{dense}": "dense_2"}


def concrete(key, architecture):
    """A key as a file has it."""
    filled = key.of(architecture)
    for slot, word in FILLED.items():
        filled = filled.replace(slot, word)
    return filled


def takes(key, type):
    return type == key.type or type in key.also


def test_templates_are_unique():
    assert len(BY_TEMPLATE) == len(KEYS) > 400


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.template)
def test_rows_are_whole(key):
    assert key.docs
    assert not key.docs.endswith(".")
    assert key.type not in key.also
    assert len(set(key.also)) == len(key.also)
    for type in (key.type, *key.also):
        assert type is not T.ARRAY, "an ArrayType says of what"
        assert isinstance(type, T | gs.ArrayType)


def test_named_keys_are_rows():
    named = [value for value in vars(keys).values() if isinstance(value, Key)]
    assert len(named) == 23
    assert all(any(key is row for row in KEYS) for key in named)


# Types by hand, from the specification and from llama.cpp's readers.


INTS, UINTS = gs.ArrayType(T.INT32), gs.ArrayType(T.UINT32)


@pytest.mark.parametrize(
    ("template", "types"),
    [
        ("general.architecture", [T.STRING]),
        ("general.alignment", [T.UINT32]),
        ("general.quantization_version", [T.UINT32]),
        ("general.tags", [gs.ArrayType(T.STRING)]),
        ("{arch}.context_length", [T.UINT32, T.UINT64]),
        ("{arch}.attention.head_count_kv", [T.UINT32, T.UINT64, INTS, UINTS]),
        ("{arch}.feed_forward_length", [T.UINT32, T.UINT64, INTS, UINTS]),
        ("{arch}.attention.layer_norm_rms_epsilon", [T.FLOAT32]),
        ("{arch}.rope.freq_base", [T.FLOAT32]),
        ("tokenizer.ggml.tokens", [gs.ArrayType(T.STRING)]),
        ("tokenizer.ggml.token_type", [INTS]),
        ("tokenizer.ggml.bos_token_id", [T.UINT32, T.UINT64]),
        ("split.no", [T.UINT16]),
        ("split.count", [T.UINT16]),
        ("split.tensors.count", [T.INT32]),
        ("adapter.lora.alpha", [T.FLOAT32]),
        ("adapter.alora.invocation_tokens", [UINTS]),
        ("imatrix.datasets", [gs.ArrayType(T.STRING)]),
    ],
)
def test_types_by_hand(template, types):
    key = BY_TEMPLATE[template]
    assert [key.type, *key.also] == types


# find.


@pytest.mark.parametrize("architecture", ["llama", "command-r", "general", "clip", "a.b"])
def test_every_key_is_found(architecture):
    for key in KEYS:
        assert find(concrete(key, architecture), architecture) is key


@pytest.mark.parametrize("architecture", ["command", "r", "command-rr", ""])
def test_keys_of_another_architecture_are_not_found(architecture):
    for key in KEYS:
        if "{arch}" in key.template:
            assert find(concrete(key, "command-r"), architecture) is None


@pytest.mark.parametrize(
    "key",
    [
        *("", ".", "llama", "llama.", "llama.context_length.x", "llama.llama.context_length", "context_length"),
        *("{arch}.context_length", "general.base_model.{id}.name", "tokenizer.chat_template.{name}"),
        *("general.base_model..name", "general.base_model.x.name", "general.base_model.1x.name"),
        *("general.base_model.\u00b2.name", "general.base_model.0.1.name", "general.base_model.-1.name"),
        *("tokenizer.chat_template.", "tokenizer.chat_template.a.b", "llama.dense_x_feat_in", "llama._feat_in"),
        *("GENERAL.NAME", "general.name\n", "llama.context_length\n", "a." * 30_000, "." * 60_000),
    ],
)
def test_other_keys_are_not_found(key):
    assert find(key, "llama") is None


# gguf-py.


def templates(of):
    """The strings of gguf-py's tree of constants."""
    for name, value in vars(of).items():
        if isinstance(value, type):
            yield from templates(value)
        elif isinstance(value, str) and not name.startswith("_"):
            yield value


def test_gguf_py_knows_no_other_keys():
    theirs = set(templates(peers.gguf_py().constants.Keys))
    assert len(theirs) > 250
    assert theirs <= BY_TEMPLATE.keys()


SAMPLES = {
    "bool": [True],
    "int": [64],
    "float": [0.5],
    "str": ["x"],
    "bytes": [b"x"],
    "Sequence[bool]": [[True]],
    "Sequence[int]": [[64]],
    "Sequence[float]": [[0.5]],
    "Sequence[str]": [["x"]],
    "Sequence[Mapping[str, str]]": [[{"name": "default", "template": "x"}, {"name": "rag", "template": "x"}]],
    "Sequence[bytes]": [],
    "Sequence[bytearray]": [],
    "Sequence[TokenType]": [],
    "PoolingType": ["MEAN"],
    "RopeScalingType": ["YARN"],
    "ExpertGatingFuncType": ["SIGMOID"],
}
"""Annotations in gguf-py's writer → values for a parameter that has them; of an enumeration a member."""

NO_KEYS = {"add_tensor", "add_tensor_info", "add_key_value", "add_shard_kv_data"}


def written_by(gguf, method):
    """The pairs that a method of GGUFWriter writes, with every choice of arguments."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    choices = [
        [getattr(gguf, kind)[value] if hasattr(gguf, kind) else value for kind in kinds for value in SAMPLES[kind]]
        for kinds in (parameter.annotation.split(" | ") for parameter in parameters)
    ]
    for arguments in itertools.product(*choices):
        writer = gguf.GGUFWriter(None, "command-r")
        if arguments:  # all but add_architecture, which has been called
            writer.kv_data[0].clear()
            method(writer, *arguments)
        yield from writer.kv_data[0].items()


def type_of(gguf, value):
    """The type that gguf-py would write a value with."""
    if value.type.name != "ARRAY":
        return T[value.type.name]
    if isinstance(value.value, bytes):
        return gs.ArrayType(T.UINT8)
    return gs.ArrayType(T[(value.sub_type or gguf.GGUFValueType.get_type(value.value[0])).name])


def test_gguf_py_writes_these_types(caplog):
    gguf = peers.gguf_py()
    caplog.set_level(logging.ERROR)
    found = {}
    for name, method in inspect.getmembers(gguf.GGUFWriter, inspect.isfunction):
        takes_key = "key" in inspect.signature(method).parameters
        if name.startswith("add_") and name not in NO_KEYS and not takes_key:
            for written, value in written_by(gguf, method):
                key = find(written.replace(".x_", ".dense_2_"), "command-r")
                assert key, f"{name} writes {written}"
                found.setdefault(key.template, []).append(type_of(gguf, value))
    assert len(found) > 240
    for template, types in found.items():
        key = BY_TEMPLATE[template]
        assert key.type in types, template
        assert all(takes(key, type) for type in types), (template, types)


@pytest.mark.parametrize(("prefix", "attribute"), [("base_model", "base_models"), ("dataset", "datasets")])
def test_gguf_py_numbers_from_0(prefix, attribute):
    """As the documentation of the count says."""
    gguf = peers.gguf_py()
    writer = gguf.GGUFWriter(None, "llama")
    gguf.Metadata(name="of all", **{attribute: [{"name": "first"}, {"name": "second"}]}).set_gguf_meta_model(writer)
    written = {key: value.value for key, value in writer.kv_data[0].items() if f".{prefix}." in key}
    start = f"general.{prefix}"
    assert written == {f"{start}.count": 2, f"{start}.0.name": "first", f"{start}.1.name": "second"}
    assert "`{id}` numbers them from 0" in BY_TEMPLATE[f"{start}.count"].docs


# Files.


def standard(model):
    """The standard keys of a file, each with whether its type is right."""
    architecture = model.metadata.get(keys.ARCHITECTURE.template)
    found = [(find(pair.key, str(architecture)), pair.type) for pair in model.metadata.pairs]
    return {key: takes(key, type) for key, type in found if key}


@needs_corpus
def test_real_files_have_these_types():
    found = {}
    for path in corpus_files():
        with gs.open(path) as model:
            found |= (here := standard(model))
            assert all(here.values()), (path, here)
    assert len(found) > 30


@needs_corpus
@pytest.mark.parametrize("path", corpus_files("*.gguf"), ids=lambda path: path.stem)
def test_all_keys_of_real_vocabularies_are_standard(path):
    with gs.open(path) as model:
        assert len(standard(model)) == len(model.metadata.pairs) > 10


@needs_cases
@pytest.mark.parametrize(
    "name",
    [
        *("i_kv_architecture_u32", "i_kv_block_count_str", "n_alignment_type_i32", "b030_n_alignment_u64"),
        *("b019_y_architecture_last_64bit", "b027_i_expert_used_count_i32", "b036_i_tokens_as_ints"),
    ],
)
def test_wrong_types_are_told(name):
    (case,) = [case for case in cases() if case["name"] == name]
    assert False in standard(gs.open(case["bytes"], check=False)).values()


@needs_cases
def test_good_files_have_these_types():
    good = [case for case in cases() if case["expected"]["gguf_schema_strict"] == "accept"]
    found = [standard(gs.open(case["bytes"])) for case in good]
    assert all(all(here.values()) for here in found)
    assert sum(map(len, found)) > len(good) > 100
