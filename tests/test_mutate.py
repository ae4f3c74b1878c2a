"""Mutants: the same each time, all kinds of them, and labelled as the validator judges them, which made no label."""

import hashlib
import io
import itertools
import re
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import policy, schema
from gguf_schema.generate import Seeded, files, valid_file
from gguf_schema.generate.files import LAYOUTS
from gguf_schema.mutate import OPERATIONS, histogram, mutant, mutants, plan, unknown_share
from gguf_schema.mutate.base import INDEX, KINDS
from gguf_schema.mutate.splice import operations as splices
from gguf_schema.tables.example import example_file, values_file
from gguf_schema.validate import PROFILES, RULES, check, verdict
from tools.fuzzing.exercise import agrees, exercise
from tools.fuzzing.mutants import numbers

from .test_generate import extended

T = gs.GGUFValueType
F32 = np.float32


def written(metadata, tensors=(), **layout):
    file = io.BytesIO()
    gs.write(file, metadata, dict(tensors), **layout)
    return file.getvalue()


def model(**layout):
    """A model with a vocabulary, whose parts must agree, and a tensor without elements."""
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 1,
        "llama.embedding_length": 4,
        "tokenizer.ggml.tokens": ["a", "b", "c"],
        "tokenizer.ggml.scores": [0.0, 1.0, 2.0],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.chat_template": "{{ x }}",
        "my.flags": [True, False],
        "my.longs": (gs.ArrayType(T.UINT64), [1, 2]),
        "my.double": (T.FLOAT64, 0.5),
    }
    tensors = {
        "token_embd.weight": np.ones((3, 4), F32),
        "blk.0.attn_q.weight": (gs.GGMLQuantizationType.Q8_0, np.ones((2, 34), np.uint8)),
        "none": np.ones((0, 2), F32),
    }
    return written(metadata, tensors, **layout)


def shard(number):
    split = {"split.no": (T.UINT16, number), "split.count": (T.UINT16, 2), "split.tensors.count": (T.INT32, 9)}
    return written({"general.architecture": "llama", **split}, {"blk.3.x": np.ones(4, F32)})


ENDS = ["abc", ["abc", "d"], [1, 2, 3], (T.UINT64, 7), "", (gs.ArrayType(T.STRING), []), (gs.ArrayType(T.UINT8), [])]
"""Last values of files without tensors, where readers differ most."""

MADE = {
    **{f"example {order}{version}": example_file(order, version) for order in "<>" for version in (1, 2, 3)},
    **{f"model {order}{version}": model(order=order, version=version) for order in "<>" for version in (1, 3)},
    **{f"end {end!r}": written({"general.architecture": "llama", "my.last": end}) for end in ENDS},
    "nested": values_file(),
    "alignment last 1": written({"general.architecture": "llama"}, alignment=4096, version=1),
    "alignment last, zeros": written({"general.architecture": "llama"}, alignment=64) + bytes(40),
    "with a tail": model() + bytes(7),
    "unpadded": example_file("<", 3)[:-20],
    "empty": written({}),
    "no metadata": written({}, {"a": np.ones((1, 2, 3, 4), F32), "b": np.ones(3, F32)}),
    "first shard": shard(0),
    "later shard": shard(1),
}
BASES = [*MADE.values(), *map(valid_file, range(56))]
EACH = 256
"""Mutants of each base that the validator judges: together more than 20,000."""


@cache
def planned(index):
    """The plan of a base, with the base before it as the other file."""
    return plan(BASES[index], BASES[index - 1])


def some(index):
    """Fixed and drawn mutants of a base."""
    made = planned(index)
    return [mutant(made, index, number) for number in numbers(made, EACH)]


def disagreements(mutants):
    """Mutants of which the validator says something else than their labels."""
    return [label for data, label in mutants if not agrees(label, exercise(data))]


# The same each time.


def test_a_stream_is_the_same_everywhere():
    digest = hashlib.sha256()
    count = 0
    for data, label in mutants(example_file("<", 3), 7, 4000, other=values_file()):
        digest.update(data + repr(label).encode())
        count += 1
    assert count == 4000
    assert digest.hexdigest() == "11be1c524ab924c9b9cc500f227a0a6e719dd47ef0964dcf730e6734cdae0926"


def test_a_mutant_is_found_by_its_number():
    data, other = model(), example_file("<", 3)
    made = plan(data, other)
    again = plan(data, other)
    end = len(made.fixed) + 50
    stream = list(mutants(data, 3, end, other))
    assert stream == [mutant(again, 3, number) for number in range(end)]
    assert stream[-60:] == list(mutants(data, 3, 60, other, start=end - 60))
    assert stream != list(mutants(data, 4, end, other))


@pytest.mark.parametrize("number", [-1, -(10**30)])
def test_no_mutant_has_a_negative_number(number):
    made = plan(written({}))
    with pytest.raises(ValueError, match="numbered from 0 on"):
        mutant(made, 1, number)


def test_a_plan_is_shown_in_short():
    made = plan(model())
    assert repr(made.base) == f"<Base: {len(model())} bytes, 10 pairs, 3 tensors>"
    assert repr(made).startswith(f"<Plan: {len(made.fixed)} fixed changes, ")
    assert len(repr(made)) < 200


def test_without_a_count_each_fixed_change_is_made_once():
    data = model()
    assert len(list(mutants(data, 1))) == len(plan(data).fixed)
    assert {label for _, label in mutants(data, 1)} == {label for _, label in plan(data).fixed}


@pytest.mark.parametrize("index", [0, 6, 40, 41])
def test_fixed_changes_make_different_files(index):
    made = planned(index)
    files = {mutant(made, index, number).data for number in range(len(made.fixed))}
    assert len(files) == len(made.fixed)
    assert BASES[index] not in files


def test_few_mutants_stand_twice():
    files = [mutant.data for mutant in mutants(model(), 1, 4000)]
    assert len(set(files)) > 0.95 * len(files)


# All kinds of them.


def cells():
    """Which operations each field is offered: by its path without indices, and its kind."""
    found = defaultdict(set)
    for index in range(len(BASES)):
        made = planned(index)
        offered = [(label.path, label.operation) for _, label in made.fixed]
        offered += [(field.path, operation.name) for operation, field in made.drawn]
        kinds = {field.path: field.kind for field in made.base.fields}
        for path, operation in offered:
            found[INDEX.sub("[]", path), kinds[path]].add(operation)
    return found


UNHEARD = {"other"}
"""The kind of fields that the schema does not have yet."""


def test_every_operation_occurs():
    offered = defaultdict(set)
    for (_, kind), operations in cells().items():
        offered[kind] |= operations
    spliced = splices(plan(example_file("<", 3)).base)
    for kind, operations in OPERATIONS.items():
        wanted = {operation.name for operation in (*operations, *spliced.get(kind, ()))}
        assert kind in UNHEARD or offered[kind] == wanted, kind


def test_the_histogram_has_no_empty_cell():
    wanted = {(path, operation) for (path, _), operations in cells().items() for operation in operations}
    labels = []
    for index in range(len(BASES)):
        made = planned(index)
        labels += [mutant(made, index, number).label for number in range(len(made.fixed) + 400)]
    found = histogram(labels)
    assert wanted <= found.keys()
    assert sum(found.values()) == len(labels)


def test_every_field_of_a_file_is_mutated():
    """The first and the last item of each array, and all that is no item."""
    base = plan(model()).base
    paths = {label.path for _, label in plan(model()).fixed}
    for field in base.leaves:
        if field.end > field.start and "array[1]" not in field.path:
            assert field.path in paths


def test_a_field_that_nobody_has_heard_of_is_mutated(monkeypatch):
    monkeypatch.delitem(KINDS, "tensor_infos[].offset")
    labels = [label for _, label in mutants(example_file("<", 3), 1) if label.path == "tensor_infos[1].offset"]
    assert {label.operation for label in labels} > {"value+1", "value-max", "truncate-middle"}
    assert {label.expected for label in labels if label.operation.startswith("value")} == {"unknown"}


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_a_new_field_is_mutated(order, version, monkeypatch):
    """Nothing but the schema was touched, and fields of every kind are changed wherever they stand."""
    layout, names = extended(order, version)
    monkeypatch.setattr(schema, "_structs", lambda order, version: layout)
    done = defaultdict(set)
    for seed in range(6):
        data = layout.gguf.build(files.file(Seeded(seed), layout, pairs=(1, 2), tensors=(1, 2)))
        made = plan(data)
        for number in range(len(made.fixed) + 200):
            changed, label = mutant(made, seed, number)
            assert changed != data
            done[INDEX.sub("[]", label.path)].add(label.operation)
            if re.search(rf"[\].]({'|'.join(names)})\b", label.path) and not label.operation.startswith("truncate"):
                assert label.expected == "unknown", label
    for owner in "metadata_kv[]", "tensor_infos[]":
        for name in names:
            path_inside = re.compile(rf"{re.escape(owner)}\.{name}\b")
            operations = set().union(*(done[path] for path in done if path_inside.match(path)))
            assert operations >= {"value+1", "value-max", "truncate-start"}, (owner, name)
        assert done[f"{owner}.an_integer"] >= {"value+1", "value-1", "value-zero", "value-max", "value-any"}
        assert done[f"{owner}.three_bytes"] >= {"value+1", "value-max", "value-any", "truncate-middle"}


# Labelled rightly.


@pytest.mark.parametrize("first", range(4))
def test_labels_are_what_the_validator_finds(first):
    """A difference is a fault of a label or of the validator; and nothing but GGUFError leaves the package."""
    for index in range(first, len(BASES), 4):
        made = some(index)
        assert len(made) == EACH
        assert disagreements(made) == []


def aligned_files():
    """Files that declare their alignment in every place, of all layouts."""
    for (order, version), place in itertools.product(LAYOUTS, range(3)):
        pairs = [{"key": "general.architecture", "value_type": T.STRING, "value": "llama"}]
        pairs += [{"key": "a.b", "value_type": T.UINT32, "value": 7}]
        pairs.insert(place, {"key": "general.alignment", "value_type": T.UINT32, "value": 64})
        infos = [{"name": name, "dimensions": [4], "type": 0, "offset": None} for name in "ab"]
        data = (b"\1" * 16 + bytes(48)) * 2
        file = {"order": order, "metadata_kv": pairs, "tensor_infos": infos, "tensor_data": data}
        yield gs.structs(order, version).gguf.build(file)


PAIR_FIELDS = ("metadata_kv_count", "metadata_kv[")


@pytest.mark.parametrize("data", [*aligned_files(), valid_file(5000008), valid_file(900002, version=2)])
def test_labels_of_files_whose_alignment_is_no_longer_read(data):
    """Whatever drops, renames, or shifts a pair, offsets are judged by the alignment that is then in force."""
    made = [mutant for mutant in mutants(data, 1) if mutant.label.path.startswith(PAIR_FIELDS)]
    assert disagreements(made) == []


@pytest.mark.parametrize("order", "<>")
def test_labels_of_a_first_version_that_says_nothing(order):
    """Nothing but its version is there to be said."""
    base = gs.structs(order, 1).gguf.build({"order": order, "metadata_kv": [], "tensor_infos": []})
    made = list(mutants(base, 1))
    assert {label.expected for _, label in made if label.operation == "version-swap-order"} == {"warn"}
    assert disagreements(made) == []


def test_there_are_enough_of_them():
    assert EACH * len(BASES) >= 20_000
    assert len(BASES) >= 50


def test_the_bases_are_in_order():
    for name, data in MADE.items():
        expected = "warn" if name == "nested" or name.endswith("1") else "accept"
        assert verdict(check(data), PROFILES["default"]) == expected, name


def test_faults_of_the_validator_would_be_found(monkeypatch):
    made = some(list(MADE).index("model <3"))
    assert disagreements(made) == []
    monkeypatch.setattr(policy, "SURELY_COUNTABLE", 1 << 80)
    missed = {label.rule for label in disagreements(made)}
    assert "dimension-range" in missed
    assert missed <= {"dimension-range", "tensor-elements-range"}


def test_little_is_unknown():
    labels = [mutant.label for index in range(len(BASES)) for mutant in some(index)]
    assert unknown_share(labels) < 0.1
    assert {label.expected for label in labels} == {"accept", "warn", "reject", "unknown"}
    assert unknown_share([]) == 0


def test_labels_name_rules_that_exist():
    codes = {rule.code for rule in RULES}
    broken = Counter(label.rule for index in range(len(BASES)) for _, label in planned(index).fixed)
    assert broken.keys() - {None} <= codes
    assert len(broken) > 50


# With another file.


def test_sections_of_another_file_are_taken():
    data, other = model(), example_file("<", 3)
    made = {label.operation: mutant for mutant, label in mutants(data, 1, other=other) if "splice" in label.operation}
    assert made.keys() == {"splice-metadata", "splice-metadata-uncounted", "splice-infos", "splice-data"}
    with gs.open(made["splice-metadata"], check=False) as mixed, gs.open(other) as whole:
        assert list(mixed.metadata) == list(whole.metadata)
        assert list(mixed.tensors) == ["token_embd.weight", "blk.0.attn_q.weight", "none"]
    with gs.open(made["splice-infos"], check=False) as mixed:
        assert list(mixed.tensors) == ["output_norm.weight", "token_embd.weight"]
    with gs.open(other) as whole:
        assert made["splice-data"].endswith(other[whole.data_offset :])


def test_a_file_of_another_layout_can_be_taken():
    data, other = example_file("<", 3), example_file(">", 1)
    labels = [label for _, label in mutants(data, 1, 3000, other=other) if label.operation == "splice-metadata"]
    assert [label.expected for label in labels] == ["unknown"]


@pytest.mark.parametrize(("data", "other"), [(b"", None), (model()[:-40], None), (model(), b"GGUF")])
def test_what_cannot_be_opened_is_refused(data, other):
    with pytest.raises(gs.GGUFError):
        plan(data, other)


def test_numbers_go_on_for_ever():
    made = plan(written({}))
    numbers = itertools.islice(itertools.count(10**12), 20)
    assert len({mutant(made, 2**70, number).data for number in numbers}) > 1
