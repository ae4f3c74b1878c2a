"""One file with values of every type, in arrays of every depth, comes through every operation bit by bit."""

import io
import json

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import ArrayType, edit
from gguf_schema import GGMLQuantizationType as Q
from gguf_schema import GGUFValueType as T
from gguf_schema.blocks import blocks
from gguf_schema.convert import convert
from gguf_schema.edit.values import loads
from gguf_schema.schema import ORDERS, VERSIONS
from gguf_schema.shards import merge, open_shards, split
from gguf_schema.values import MetadataKV, exact_json, to_wire

ALIGNMENT = "general.alignment"
NOT_FINITE = b"\0\0\0\x80\0\0\x80\xff\1\0\xa0\x7f\3\0\xc0\xff"
"""-0, -∞, a NaN that signals, and one that does not, with a sign; as FLOAT32."""

ELEMENTS = {
    T.UINT8: np.array([0, 255], np.uint8),
    T.INT8: np.array([-128, 127, 0], np.int8),
    T.UINT16: np.array([1, 65535], np.uint16),
    T.INT16: np.array([-32768, 32767], np.int16),
    T.UINT32: np.array([2**32 - 1], np.uint32),
    T.INT32: np.array([-(2**31), 2**31 - 1], np.int32),
    T.FLOAT32: np.frombuffer(NOT_FINITE + b"\1\0\0\0", "<f4"),
    T.BOOL: np.array([False, True, True]),
    T.STRING: ["", "ü☃🦙", "\udcff\udc80", "a\0b"],
    T.UINT64: np.array([2**64 - 1, 2**53 + 1], np.uint64),
    T.INT64: np.array([-(2**63), -(2**53) - 1], np.int64),
    T.FLOAT64: np.frombuffer(b"\1\2\3\4\5\6\xf0\x7f\0\0\0\0\0\0\0\x80\x9a\x99\x99\x99\x99\x99\xb9\x3f", "<f8"),
}
"""Type → some values of it."""


def nested(*typed):
    """An array of arrays, each with its type."""
    return ArrayType(T.ARRAY, tuple(type for type, _ in typed)), [value for _, value in typed]


def typed_values(elements):
    """Name → type and value: every type alone, in arrays, in arrays of them; empty ones; and all together."""
    arrays = {type: (ArrayType(type), values) for type, values in elements.items()}
    empty = {type: (ArrayType(type), values[:0]) for type, values in elements.items()}
    found = {}
    for type, values in elements.items():
        found |= {f"{type.name}.{index}": (type, value) for index, value in enumerate(values)}
        found[f"{type.name}.array"] = arrays[type]
        found[f"{type.name}.array.empty"] = empty[type]
        found[f"{type.name}.two"] = nested(arrays[type], empty[type], arrays[type])
        found[f"{type.name}.three"] = nested(nested(arrays[type]), nested(), nested(empty[type], arrays[type]))
    mixed = nested(*arrays.values(), *empty.values())
    return found | {
        "ARRAY.empty": nested(),
        "ARRAY.two.empty": nested(nested()),
        "ARRAY.three.empty": nested(nested(nested()), nested()),
        "ARRAY.mixed": mixed,
        "ARRAY.mixed.three": nested(mixed, nested(), arrays[T.STRING], nested(nested(), mixed)),
    }


PAIRS = [
    MetadataKV("general.architecture", T.STRING, "llama"),
    MetadataKV(ALIGNMENT, T.UINT32, 64),
    *(MetadataKV(f"a.{name}", *typed) for name, typed in typed_values(ELEMENTS).items()),
]
ODD_PAIRS = [
    *PAIRS[:2],
    *(
        MetadataKV(f"a.{name}", *typed)
        for name, typed in typed_values(ELEMENTS | {T.BOOL: np.array([0, 2, 255], np.uint8)}).items()
    ),
]
"""The same with BOOL bytes that no writer makes."""

TYPES = (Q.F32, Q.Q8_0, Q.Q4_K, Q.F16, Q.I64)


def file(order, version, pairs=PAIRS):
    """The file: with a tensor of each of some types, and one without elements."""
    tensors = {}
    for number, type in enumerate(TYPES):
        data = np.arange(7 * number, 7 * number + 6 * blocks(order)[type].type_size, dtype=np.uint32).astype(np.uint8)
        tensors[f"{number}.{type.name}"] = (type, data.reshape(2, -1))
    tensors["empty"] = np.zeros((0, 3), np.float32)
    out = io.BytesIO()
    gs.write(out, pairs, tensors, order=order, version=version)
    return out.getvalue()


@pytest.fixture(params=[(order, version) for version in VERSIONS for order in ORDERS], ids="{0[0]}{0[1]}".format)
def layout(request):
    return request.param


@pytest.fixture(params=[PAIRS, ODD_PAIRS], ids=["pairs", "odd BOOLs"])
def data(request, layout):
    return file(*layout, request.param)


def saved(plan):
    out = io.BytesIO()
    plan.save(out)
    return out.getvalue()


def pair_bytes(pair):
    return gs.structs().metadata_kv.build(pair)


def pairs_of(model, **fields):
    """Every pair but that of the alignment, bit by bit, whatever the layout; perhaps with other fields."""
    return [pair_bytes({**pair, **fields}) for pair in model.head.metadata_kv if pair["key"] != ALIGNMENT]


def numbers(tensor):
    """All of a tensor but its name; its data in little-endian."""
    data = tensor.data
    return tensor.type, tensor.dimensions, data.astype(data.dtype.newbyteorder("<")).tobytes()


def contents(data):
    with gs.open(data) as model:
        return pairs_of(model), [(tensor.name, *numbers(tensor)) for tensor in model.tensors.infos]


def values(data):
    """The contents without keys and names."""
    with gs.open(data) as model:
        return pairs_of(model, key=""), [numbers(tensor) for tensor in model.tensors.infos]


def edited(data, *edits):
    """A new file."""
    out = io.BytesIO()
    with gs.open(data) as model:
        edit.save(edit.plan(model, edits), out)
    return out.getvalue()


def converted(data, **options):
    with gs.open(data) as model:
        return saved(convert(model, **options))


def keys_and_names(data):
    with gs.open(data) as model:
        return [key for key in model.metadata if key != ALIGNMENT], list(model.tensors)


def test_the_file_holds_every_type_at_every_depth(data, layout, request):
    pairs = ODD_PAIRS if "odd" in request.node.name else PAIRS

    def depths(type, depth=0):
        is_array = isinstance(type, ArrayType)
        yield type.type if is_array else type, depth + is_array
        for item in type.items if is_array else ():
            yield from depths(item, depth + 1)

    held = {each for pair in pairs for each in depths(pair.type)}
    assert held >= {(type, depth) for type in T for depth in range(4)} - {(T.ARRAY, 0)}
    given = [pair_bytes(to_wire(pair)) for pair in pairs if pair.key != ALIGNMENT]
    assert contents(data)[0] == given
    assert len(given) > 80


def test_written_from_what_is_open(data, layout):
    for order in ORDERS:
        out = io.BytesIO()
        with gs.open(data) as model:
            gs.write(out, model.metadata, model.tensors, order=order, version=layout[1])
        assert contents(out.getvalue()) == contents(data)
        assert (out.getvalue() == data) == (order == layout[0])


def test_set_and_unset(layout):
    data = file(*layout)
    pairs, tensors = contents(data)
    with gs.open(data) as model:
        given = [pair._replace(key=f"new.{pair.key}") for pair in model.metadata.pairs]
    longer = edited(data, *(edit.Set(pair.key, pair.value, pair.type) for pair in given))
    new = [pair_bytes(to_wire(pair)) for pair in given]
    assert contents(longer) == ([*pairs, *new], tensors)
    assert edited(longer, *(edit.Unset(pair.key) for pair in given)) == data


def test_told_and_set_again(layout):
    """As JSON, with the type as text, over values of another type."""
    data = file(*layout)
    with gs.open(data) as model:
        told = [
            (pair.key, json.dumps(exact_json(pair.type, pair.value), allow_nan=False), edit.type_text(pair.type))
            for pair in model.metadata.pairs
        ]
    gone = edited(data, *(edit.Set(key, [["gone"]], "[[STRING]]") for key, _, _ in told if key != ALIGNMENT))
    assert not set(contents(gone)[0]) & set(contents(data)[0])
    assert edited(gone, *(edit.Set(key, loads(text), type) for key, text, type in told)) == data


def edits_of(data):
    """Name → edits, and the values and the tensors after them."""
    keys, names = keys_and_names(data)
    pairs, tensors = values(data)
    several = [edit.Unset(keys[0]), edit.DeleteTensor(names[0]), edit.Align(8), edit.OrderTensors(names[2:3])]
    return {
        "a patch": ([edit.RenameKey(keys[5], f"b{keys[5][1:]}")], pairs, tensors),
        "rename keys": ([edit.RenameKey(key, f"longer.{key}") for key in keys], pairs, tensors),
        "rename tensors": ([edit.RenameTensor(name, f"longer.{name}") for name in names], pairs, tensors),
        "remove a key": ([edit.Unset(keys[0])], pairs[1:], tensors),
        "delete a tensor": ([edit.DeleteTensor(names[1])], pairs, [tensors[0], *tensors[2:]]),
        "order tensors": ([edit.OrderTensors(names[::-1])], pairs, tensors[::-1]),
        "align": ([edit.Align(4096)], pairs, tensors),
        "several": (several, pairs[1:], [tensors[2], tensors[1], *tensors[3:]]),
    }


@pytest.mark.parametrize("name", edits_of(file("<", 3)))
def test_edited_and_undone(data, name, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    edits, *expected = edits_of(data)[name]
    new = edited(data, *edits)
    assert new != data
    assert [*values(new)] == expected
    with gs.open(path) as model:
        plan = edit.plan(model, edits, in_place=True)
        edit.apply(plan)
    assert (plan.record is not None) == (name == "a patch")
    assert path.read_bytes() == new
    edit.undo(path)
    assert path.read_bytes() == data


def conversions(order, version):
    """Name → options, one conversion after the other, back to what there was."""
    other = "<" if order == ">" else ">"
    versions = [each for each in reversed(VERSIONS) if each != version]
    return {
        "order": [{"order": other}, {"order": order}],
        "versions": [{"version": each} for each in (*versions, version)],
        "a smaller alignment": [{"alignment": 8}, {"alignment": 64}],
        "a larger alignment": [{"alignment": 4096}, {"alignment": 64}],
        "all": [
            {"order": other, "version": versions[0], "alignment": 8},
            {"order": order, "version": version, "alignment": 64},
        ],
    }


@pytest.mark.parametrize("name", conversions("<", 3))
@pytest.mark.parametrize("canonical", [False, True])
def test_converted_there_and_back(layout, name, canonical):
    data = made = file(*layout, PAIRS if canonical else ODD_PAIRS)
    for options in conversions(*layout)[name]:
        before, made = made, converted(made, canonical=canonical, **options)
        assert made != before
        assert contents(made) == contents(data)
    assert made == data


def test_made_canonical(data, layout):
    """BOOL bytes become 0 or 1; all else stays."""
    clean = file(*layout)
    with gs.open(data + b"tail") as model:
        assert saved(gs.rewrite(model, canonical=True)) == clean
    assert converted(data + b"tail", canonical=True) == clean


SPLITS = [
    ({"max_tensors": 1}, 6),
    ({"max_tensors": 4}, 2),
    ({"max_tensors": 4, "no_tensor_first_split": True}, 3),
    ({"max_size": 600}, 3),
]
"""Options of `split`, and how many shards they make."""


@pytest.mark.parametrize(("options", "shards"), [({}, 1), *SPLITS], ids=str)
def test_split_and_merged(data, options, shards, tmp_path):
    with gs.open(data) as model:
        found = split(model, **options)
        found.save(tmp_path / "m")
    paths = found.paths(tmp_path / "m")
    assert len(paths) == shards
    with open_shards(paths[-1]) as model:
        assert saved(merge(model)) == data


@pytest.mark.parametrize(("options", "shards"), SPLITS, ids=str)
def test_written_from_shards(data, options, shards, tmp_path):
    with gs.open(data) as model:
        split(model, **options).save(tmp_path / "m")
    out = io.BytesIO()
    with gs.open(tmp_path / f"m-00001-of-{shards:05}.gguf") as model:
        assert len(model.shards) == shards
        gs.write(out, model.metadata, model.tensors, order=model.order, version=model.version)
    assert out.getvalue() == data
