"""Edits of generated files do what they do to a plain model of the file: lists of pairs and of tensors."""

import io
import json
import os
from typing import NamedTuple

import pytest

pytest.importorskip("hypothesis")

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gguf_schema as gs
from gguf_schema import edit
from gguf_schema import strategies as gguf
from gguf_schema.edit.reserve import KEY
from gguf_schema.edit.values import from_json, loads
from gguf_schema.enums import ArrayType
from gguf_schema.enums import GGUFValueType as T
from gguf_schema.generate import Extent
from gguf_schema.layout import place
from gguf_schema.values import MetadataKV, exact_json, plain_pairs, to_wire

ALIGNMENT = "general.alignment"
ODD = Extent(valid=False, levels=3)


@pytest.fixture(autouse=True, scope="module")
def no_sync():
    """What is written need not survive a power failure."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: None)
        yield


def files():
    """Files; every other one with bytes behind its end, so that it is large enough for a patch to be worth it."""
    return st.builds(bytes.__add__, gguf.files(), st.sampled_from([b"", bytes(1 << 14)]))


class Plain(NamedTuple):
    """A file as anybody would write it down.

    Attributes:
        pairs: (key, bytes of type and value).
        tensors: (name, type, dimensions, data, offset, index in the file).
        alignment: In bytes.
    """

    pairs: list
    tensors: list
    alignment: int


def value_bytes(pair):
    """Type and value of a pair in the wire form, bit by bit, whatever the layout."""
    return gs.structs().metadata_kv.build({**pair, "key": ""})


def plain(model):
    pairs = [(pair["key"], value_bytes(pair)) for pair in model.head.metadata_kv]
    tensors = [
        (tensor.name, tensor.type, tensor.dimensions, tensor.data.tobytes(), tensor.offset, index)
        for index, tensor in enumerate(model.tensors.infos)
    ]
    return Plain(pairs, tensors, model.alignment)


def wire(type, value):
    return value_bytes(to_wire(MetadataKV("", type, value)))


@st.composite
def edits(draw, file):
    """Some edits of a file, and the plain model of what they make of it."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        options = [new_key]
        if any(key != ALIGNMENT for key, _ in file.pairs):
            options += [old_key, without_key, renamed_key]
        options += [renamed_tensor, without_tensor, ordered] if file.tensors else []
        step, file = draw(st.sampled_from([*options, aligned]))(draw, file)
        found.append(step)
    return found, file


def own(draw, file):
    """A key of the file but that of the alignment, and its index."""
    index = draw(st.sampled_from([i for i, (key, _) in enumerate(file.pairs) if key != ALIGNMENT]))
    return file.pairs[index][0], index


def drawn_value(draw, type):
    """A pair with a value of a type, perhaps an odd one that can be set, as it is read from a file."""
    values = gguf.values(type, extent=ODD)
    return draw(values.map(lambda value: read({"key": "", "value_type": type, "value": value})).filter(can_be_set))


def can_be_set(pair):
    """Whether no BOOL is neither true nor false."""
    if isinstance(pair.type, ArrayType):
        types = pair.type.items if pair.type.type is T.ARRAY else [pair.type.type] * len(pair.value)
        return all(can_be_set(MetadataKV("", *item)) for item in zip(types, pair.value, strict=True))
    return pair.type is not T.BOOL or pair.value in (0, 1)


def read(pair):
    metadata_kv = gs.structs().metadata_kv
    return plain_pairs([metadata_kv.parse(metadata_kv.build(pair))])[0]


def replaced(items, index, *others):
    return [*items[:index], *others, *items[index + 1 :]]


def new_name(draw, start, taken):
    """A name that nothing has yet: hypothesis likes to draw the same number again."""
    return draw(st.integers(0, 10**9).map(lambda number: f"{start}.{number}").filter(lambda name: name not in taken))


def new_key(draw, file):
    key = f"new.{draw(st.integers(0, 10**9))}"
    pair = drawn_value(draw, draw(st.sampled_from(list(T))))
    if any(key == other for other, _ in file.pairs):
        return edit.Unset(key), file._replace(pairs=[pair for pair in file.pairs if pair[0] != key])
    return edit.Set(key, pair.value, pair.type), file._replace(pairs=[*file.pairs, (key, wire(*pair[1:]))])


def old_key(draw, file):
    """The type stays, or another one is given; the value comes as JSON."""
    key, index = own(draw, file)
    held = gs.structs().metadata_kv.parse(file.pairs[index][1])["value_type"]
    type = draw(st.sampled_from(list(T)) | st.just(held))
    pair = drawn_value(draw, type)
    text = json.dumps(exact_json(pair.type, pair.value), allow_nan=False)
    given_type = pair.type if type is not held or type is T.ARRAY else None
    value = loads(text) if type is T.STRING else edit.Text(text)
    return edit.Set(key, value, given_type), file._replace(
        pairs=replaced(file.pairs, index, (key, wire(pair.type, pair.value)))
    )


def without_key(draw, file):
    key, index = own(draw, file)
    return edit.Unset(key), file._replace(pairs=replaced(file.pairs, index))


def renamed_key(draw, file):
    key, index = own(draw, file)
    to = new_name(draw, "renamed", [key for key, _ in file.pairs])
    return edit.RenameKey(key, to), file._replace(pairs=replaced(file.pairs, index, (to, file.pairs[index][1])))


def a_tensor(draw, file):
    index = draw(st.integers(0, len(file.tensors) - 1))
    return file.tensors[index], index


def renamed_tensor(draw, file):
    tensor, index = a_tensor(draw, file)
    to = new_name(draw, "renamed", [name for name, *_ in file.tensors])
    tensors = replaced(file.tensors, index, (to, *tensor[1:]))
    return edit.RenameTensor(tensor[0], to), file._replace(tensors=tensors)


def without_tensor(draw, file):
    tensor, index = a_tensor(draw, file)
    return edit.DeleteTensor(tensor[0]), file._replace(tensors=replaced(file.tensors, index))


def ordered(draw, file):
    first = draw(st.permutations(file.tensors))[: draw(st.integers(1, 3))]
    tensors = [*first, *(tensor for tensor in file.tensors if tensor not in first)]
    return edit.OrderTensors([tensor[0] for tensor in first]), file._replace(tensors=tensors)


def aligned(draw, file):
    alignment = 1 << draw(st.integers(3, 8))
    index = next((i for i, (key, _) in enumerate(file.pairs) if key == ALIGNMENT), len(file.pairs))
    pairs = replaced(file.pairs, index, (ALIGNMENT, wire(T.UINT32, alignment)))
    return edit.Align(alignment), file._replace(pairs=pairs, alignment=alignment)


def assert_is(found, expected, old):
    """What was found is what the plain model says, which came from an old one."""
    assert found.pairs == expected.pairs
    assert [tensor[:4] for tensor in found.tensors] == [tensor[:4] for tensor in expected.tensors]
    if old.alignment != expected.alignment or [t[5] for t in old.tensors] != [t[5] for t in expected.tensors]:
        offsets = place([len(tensor[3]) for tensor in found.tensors], expected.alignment)
    else:
        offsets = [tensor[4] for tensor in old.tensors]
    assert [tensor[4] for tensor in found.tensors] == offsets


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_edits_are_those_of_a_plain_model(tmp_path_factory, data):
    original = data.draw(files())
    with gs.open(original) as model:
        old = plain(model)
        given_edits, expected = data.draw(edits(old))
        plan = edit.plan(model, given_edits)
        target = io.BytesIO()
        edit.save(plan, target)
        edited = target.getvalue()
        assert len(edited) == plan.size
    with gs.open(edited) as model:
        assert_is(plain(model), expected, old)
    path = tmp_path_factory.getbasetemp() / "edited.gguf"
    path.write_bytes(original)
    with gs.open(path) as model:
        plan = edit.plan(model, given_edits, in_place=True)
        edit.apply(plan)
    assert path.read_bytes() == edited
    if not plan.changes_nothing:
        edit.undo(path)
        assert path.read_bytes() == original


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_reserve_changes_nothing_but_itself(tmp_path_factory, data):
    """What fits is patched, and the data stays where it is; undone, the bytes are those that were there before."""
    path = tmp_path_factory.getbasetemp() / "reserved.gguf"
    path.write_bytes(data.draw(files()))
    with gs.open(path) as model:
        edit.apply(edit.plan(model, [], in_place=True, reserve=data.draw(st.integers(1, 600))))
    original = path.read_bytes()
    with gs.open(path) as model:
        old = plain(model)
        given_edits, expected = data.draw(edits(old._replace(pairs=old.pairs[:-1])))
        plan = edit.plan(model, given_edits, in_place=True)
        edit.apply(plan)
    with gs.open(path) as new:
        assert new.metadata.pairs[-1].key == KEY
        assert not new.metadata[KEY].any()
        found = plain(new)
        assert_is(found._replace(pairs=found.pairs[:-1]), expected, old)
        room = model.metadata[KEY].size - new.metadata[KEY].size
        if plan.record is not None:
            assert new.size == model.size
            assert new.data_offset == model.data_offset or not model.tensors
            assert new.infos_end == model.infos_end or not len(new.metadata[KEY])
        elif plan.why_not != "less is written so":
            assert room == 0
    if not plan.changes_nothing:
        edit.undo(path)
        assert path.read_bytes() == original


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_odd_files_are_edited_too(data):
    """What `open` refuses: only what is named changes, and it may be refused for what it was refused for only."""
    wire_file = data.draw(gguf.wire_files(extent=ODD))
    original = gs.GGUF.build(wire_file)
    with gs.open(original, check=False) as model:
        before = {fault.code for fault in model.faults()}
        old = [(pair["key"], value_bytes(pair)) for pair in model.head.metadata_kv]
        target = io.BytesIO()
        edit.save(edit.plan(model, [edit.Set("new.key", [[1], ["a"]], edit.type_named("[[uint8], [string]]"))]), target)
    with gs.open(target.getvalue(), check=False) as model:
        assert [(pair["key"], value_bytes(pair)) for pair in model.head.metadata_kv[:-1]] == old
        assert {fault.code for fault in model.faults()} <= before
        target_again = io.BytesIO()
        edit.save(edit.plan(model, [edit.Unset("new.key")]), target_again)
    assert target_again.getvalue() == original


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(list(T)).flatmap(lambda kind: st.tuples(st.just(kind), gguf.values(kind, extent=ODD))))
def test_values_survive_as_json(typed):
    """What `get` prints, `set` takes back, bit by bit; but no BOOL that is neither true nor false."""
    type, value = typed
    pair = read({"key": "", "value_type": type, "value": value})
    assume(can_be_set(pair))
    text = json.dumps(exact_json(pair.type, pair.value), allow_nan=False)
    again = from_json(edit.type_named(edit.type_text(pair.type)), loads(text))
    assert wire(*again) == wire(pair.type, pair.value)
