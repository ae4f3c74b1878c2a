"""The hypothesis strategies: what they make is what they say, and what fails shrinks to next to nothing."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import gguf_schema as gs
from gguf_schema import ArrayType, strategies
from gguf_schema import GGMLQuantizationType as Q
from gguf_schema import GGUFValueType as T
from gguf_schema import blocks as tensor_types
from gguf_schema.generate import Extent
from gguf_schema.validate import check
from tests.test_generate import extended

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]
few = settings(max_examples=100, deadline=None)
steady = settings(
    max_examples=2000, deadline=None, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink]
)


def smallest(strategy, condition):
    """What a failure would be shrunk to."""
    return find(strategy, condition, settings=steady)


# What they make.


@settings(max_examples=300, deadline=None)
@given(strategies.files())
def test_files_are_valid(data):
    gs.open(data)
    assert [fault.code for fault in check(data) if fault.severity != "note"] == []
    assert gs.GGUF.build(gs.GGUF.parse(data)) == data


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_files_of_one_layout(order, version, data):
    with gs.open(data.draw(strategies.files(gs.structs(order, version)))) as model:
        assert (model.order, model.version) == (order, version)


@few
@given(
    strategies.files(
        pairs=strategies.metadata_pairs(keys=st.sampled_from(["a.a", "a.b"]), types=[T.INT8], values=st.just(-1)),
        infos=strategies.tensor_infos(names=st.sampled_from("xyz"), types=[Q.Q8_0, Q.Q4_K]),
        alignments=[64],
        metadata=(1, 3),
        tensors=(2, 5),
    )
)
def test_parts_of_files_are_arguments(data):
    with gs.open(data) as model:
        own = {pair.key: (pair.type, pair.value) for pair in model.metadata.pairs if pair.key.startswith("a.")}
        assert own
        assert own.keys() <= {"a.a", "a.b"}
        assert set(own.values()) == {(T.INT8, -1)}
        assert model.alignment in (32, 64)
        assert 1 <= len(model.tensors) <= 3
        assert {tensor.type for tensor in model.tensors.infos} <= {Q.Q8_0, Q.Q4_K}
        assert set(model.tensors) <= set("xyz")


@few
@given(strategies.files(extent=Extent(levels=3, valid=False)))
def test_odd_files_come_back(data):
    gs.open(data, check=False)
    assert gs.GGUF.build(gs.GGUF.parse(data)) == data


def test_odd_files_are_odd():
    codes = set()

    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    @given(strategies.files(extent=Extent(levels=3, valid=False)))
    def look(data):
        codes.update(fault.code for fault in check(data))

    look()
    wanted = {"key-empty", "key-utf8", "string-utf8", "bool-byte", "array-nested", "dimensions-none", "tail-nonzero"}
    assert wanted <= codes


@pytest.mark.parametrize("type", list(T))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_values_have_their_type(type, data):
    value = data.draw(strategies.values(type))
    layout = gs.structs()
    pair = {"key": "a", "value_type": type, "value": value}
    parsed = layout.metadata_kv.parse(layout.metadata_kv.build(pair))
    assert repr(parsed.value) == repr(gs.structs().metadata_kv.parse(layout.metadata_kv.build(parsed)).value)
    kinds = {T.BOOL: bool, T.STRING: str, T.ARRAY: dict, T.FLOAT32: float, T.FLOAT64: float}
    assert isinstance(value, kinds.get(type, int))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("type", sorted(set(T) - {T.ARRAY}))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_arrays_of_a_type(type, order, data):
    layout = gs.structs(order, 2)
    array = data.draw(strategies.values(ArrayType(type), layout, extent=Extent(items=(1, 3))))
    assert array["type"] is type
    assert 1 <= len(array["array"]) <= 3
    parsed = layout.array.parse(layout.array.build(array)).array
    if type is T.STRING:
        assert parsed == array["array"]
    else:
        assert (parsed.dtype, parsed.tobytes()) == (array["array"].dtype, array["array"].tobytes())


@few
@given(strategies.arrays(T.INT16, elements=st.integers(-1, 1), extent=Extent(items=(2, 3))))
def test_elements_are_arguments(array):
    assert array["type"] is T.INT16
    assert 2 <= len(array["array"]) <= 3
    assert set(array["array"]) <= {-1, 0, 1}
    assert gs.structs().array.parse(gs.structs().array.build(array)).array.tolist() == array["array"]


def test_elements_and_values_need_their_type():
    with pytest.raises(ValueError, match="type"):
        strategies.arrays(elements=st.integers(0, 1))
    with pytest.raises(ValueError, match="types"):
        strategies.metadata_pairs(keys=st.just("a.b"), values=st.integers(0, 1))


@few
@given(strategies.metadata_pairs(types=[T.BOOL, T.INT8]), strategies.metadata_pairs(keys=st.just("a.b")))
def test_keys_and_types_are_arguments(typed, named):
    assert typed["value_type"] in (T.BOOL, T.INT8)
    assert "." in typed["key"]
    assert named["key"] == "a.b"


@few
@given(strategies.metadata_pairs(architecture="gemma", extent=Extent(levels=1)))
def test_pairs_are_valid(pair):
    architecture = {"key": "general.architecture", "value_type": T.STRING, "value": "gemma"}
    data = gs.GGUF.build({"metadata_kv": [architecture, pair], "tensor_infos": []})
    assert [fault.code for fault in check(data) if fault.severity != "note"] == []


@few
@given(strategies.tensor_infos())
def test_infos_are_small_and_whole(info):
    block_size, type_size = tensor_types.block_sizes()[info["type"]]
    assert 1 <= len(info["dimensions"]) <= 4
    assert info["dimensions"][0] % block_size == 0
    assert np.prod(info["dimensions"]) // block_size * type_size <= 512
    assert 1 <= len(info["name"].encode()) <= 63


@pytest.mark.parametrize("order", "<>")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_blocks(order, data):
    type = data.draw(st.sampled_from(sorted(tensor_types.blocks("<"))))
    block = tensor_types.block(type, order)
    wire = block.build(data.draw(strategies.blocks(type, order)))
    assert len(wire) == block.type_size
    assert block.build(block.parse(wire)) == wire


def test_no_block():
    with pytest.raises(gs.GGUFError, match="Q4_2 has no known block"):
        strategies.blocks(Q.Q4_2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: strategies.values(99),
        lambda: strategies.values(ArrayType(99)),
        lambda: strategies.arrays(99),
        lambda: strategies.metadata_pairs(types=[T.INT8, 99]),
        lambda: strategies.tensor_infos(types=[99]),
        lambda: strategies.tensor_infos(types=[Q.Q4_2]),
    ],
)
def test_no_type(make):
    """It is told where the strategy is made, not where it is drawn from."""
    with pytest.raises(gs.GGUFError, match="is not known"):
        make()


def test_no_types_at_all():
    for make in strategies.metadata_pairs, strategies.tensor_infos:
        with pytest.raises(ValueError, match="type is given"):
            make(types=[])


@few
@given(
    strategies.files(
        pairs=strategies.metadata_pairs(types=iter([T.INT8, T.BOOL])),
        infos=strategies.tensor_infos(types=iter([Q.F16])),
        alignments=iter([64]),
        tensors=(1, 2),
    )
)
def test_options_may_be_given_one_by_one(data):
    with gs.open(data) as model:
        assert {tensor.type for tensor in model.tensors.infos} == {Q.F16}
        assert model.alignment in (32, 64)


@pytest.mark.parametrize("argument", ["metadata", "tensors"])
@pytest.mark.parametrize("bounds", [5, (1,), (1, 2, 3)])
def test_bounds_are_two(argument, bounds):
    with pytest.raises(TypeError, match=f"{argument}: expected the fewest and the most"):
        strategies.files(**{argument: bounds})


@few
@given(
    strategies.files(
        pairs=strategies.metadata_pairs(keys=st.just("general.alignment"), types=[T.UINT32, T.INT32]),
        alignments=[8, 16],
        tensors=(1, 2),
    )
)
def test_alignments_are_possible_ones(data):
    with gs.open(data) as model:
        assert model.alignment in (8, 16, 32)
    assert [fault.code for fault in check(data) if fault.severity != "note"] == []


@pytest.mark.parametrize(("order", "version"), [("<", 3), (">", 1)])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_new_field_is_generated(order, version, data):
    layout, names = extended(order, version)
    made = data.draw(strategies.wire_files(layout, metadata=(1, 2), tensors=(1, 1)))
    parsed = layout.gguf.parse(layout.gguf.build(made))
    for owner in parsed, parsed.metadata_kv[0], parsed.tensor_infos[0]:
        assert owner.keys() >= set(names)
    pair, info = data.draw(strategies.metadata_pairs(layout)), data.draw(strategies.tensor_infos(layout))
    assert pair.keys() & info.keys() >= set(names) - {"rebuilt"}


# What they shrink to.


def pairs(data):
    """The pairs of a file, but for its architecture."""
    return [pair for pair in gs.open(data).metadata.pairs if pair.key != "general.architecture"]


@pytest.mark.parametrize(
    ("most", "condition"),
    [
        pytest.param(24, lambda data: True, id="any file"),
        pytest.param(96, lambda data: gs.open(data).tensors, id="a tensor"),
        pytest.param(224, lambda data: Q.Q4_K in {t.type for t in gs.open(data).tensors.infos}, id="a type"),
        pytest.param(160, lambda data: len(gs.open(data).tensors) > 1, id="two tensors"),
        pytest.param(110, lambda data: gs.open(data).alignment == 64, id="an alignment"),
        pytest.param(
            110, lambda data: any(len(p.value) == 2 for p in pairs(data) if p.type is T.STRING), id="a string"
        ),
        pytest.param(110, lambda data: any("z" in p.key for p in pairs(data)), id="a key"),
        pytest.param(110, lambda data: any(p.type is T.UINT64 and p.value > 300 for p in pairs(data)), id="a number"),
        pytest.param(
            110, lambda data: any(p.type is T.FLOAT32 and p.value != p.value for p in pairs(data)), id="a NaN"
        ),
        pytest.param(
            140,
            lambda data: any(p.type == ArrayType(T.STRING) and len(p.value) == 2 for p in pairs(data)),
            id="an array",
        ),
        pytest.param(24, lambda data: gs.open(data).order == ">", id="an order"),
    ],
)
def test_a_failing_file_shrinks(most, condition):
    assert len(smallest(strategies.files(), condition)) <= most


def test_failing_parts_shrink():
    assert smallest(strategies.values(T.INT64), lambda value: value > 1000) == 1001
    assert smallest(strategies.values(T.FLOAT64), lambda value: value > 1.5) == 2.0
    assert smallest(strategies.values(T.STRING), lambda value: len(value.encode()) > 2) == "0\x80"
    assert smallest(strategies.blocks(Q.Q8_0), lambda block: min(block["qs"]) < -5)["qs"] == [0] * 31 + [-6]
    nested = smallest(strategies.arrays(), lambda array: array["type"] is T.ARRAY and array["array"])
    assert [inner["type"] for inner in nested["array"]] == [T.UINT8]
    assert len(nested["array"][0]["array"]) == 0
    info = smallest(strategies.tensor_infos(), lambda info: len(info["dimensions"]) == 3)
    assert (info["dimensions"], info["type"], len(info["name"])) == ([1, 1, 1], Q.F32, 1)


# Hypothesis is needed by nothing else.


def test_nothing_else_needs_hypothesis():
    program = """
import sys
sys.modules["hypothesis"] = None
import gguf_schema, gguf_schema.cli
from gguf_schema.generate import valid_file
gguf_schema.open(valid_file(1))
try:
    import gguf_schema.strategies
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "strategies need hypothesis: pip install 'gguf_schema[fuzz]'\n", run.stderr
