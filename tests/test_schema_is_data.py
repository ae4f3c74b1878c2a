"""The schema is data: a tree that holds no code, every field of which is named and documented, once."""

import ast
import copy
import io
import pickle
from enum import IntEnum
from pathlib import Path

import construct
import numpy as np
import pytest
from construct import len_, this

import gguf_schema as gs
from gguf_schema import GGUFValueType as T
from gguf_schema import constructs, layout
from gguf_schema.blocks import Block, blocks
from gguf_schema.constructs import Array, Bytes, Integer, Rebuild, Struct, field
from gguf_schema.walk import callables, children, every, minimum_size

from .test_generated_files import same, widened

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]
TREES = {f"gguf {order} {version}": gs.structs(order, version).gguf for order, version in LAYOUTS}
TREES |= {f"head {order} {version}": gs.structs(order, version).head for order, version in LAYOUTS}
TREES |= {f"preamble {order} {version}": gs.structs(order, version).preamble for order, version in LAYOUTS}
BLOCK_TREES = {f"{type.name} {order}": block for order in "<>" for type, block in blocks(order).items()}
ALL_TREES = TREES | BLOCK_TREES

FIELDS = {
    # The C structs of the GGUF specification.
    *("magic", "version", "tensor_count", "metadata_kv_count", "metadata_kv", "key", "value_type", "value"),
    *("type", "len", "string", "array", "name", "n_dimensions", "dimensions", "offset", "tensor_infos"),
    *("tensor_data", "tail", "padding"),
    # Takes no bytes: what the metadata declares.
    "alignment",
}

ALLOWED = {
    *(getattr(constructs, name) for name in constructs.__all__),
    *(layout.Alignment, layout.AlignmentPadding, layout.Placed, layout.TensorData),
    Block,
    type(construct.Error),
} - {constructs.field, constructs.Guarded, constructs.Strings}
"""Classes of constructs that may stand in the tree. construct's own Enum, Flag, PascalString, Padding, Aligned,
LazyBound, Float32l and the like lose something, each in its way."""

each_tree = pytest.mark.parametrize("tree", ALL_TREES.values(), ids=ALL_TREES)


def code_in(con):
    """Every callable in a tree."""
    return [(type(node).__name__, name) for node in every(con) for name, _ in callables(node)]


def foreign_classes(con):
    """The classes in a tree that are not allowed there."""
    return {type(node).__name__ for node in every(con) if type(node) not in ALLOWED}


def doubly_named(con):
    """Names around names."""
    named = [node for node in every(con) if isinstance(node, construct.Renamed)]
    return [node.name for node in named if isinstance(node.subcon, construct.Renamed)]


def fields_of(con):
    """Every field of every Struct in a tree."""
    return [child for node in every(con) if isinstance(node, construct.Struct) for child in node.subcons]


@each_tree
def test_holds_no_code(tree):
    assert code_in(tree) == []


@pytest.mark.parametrize(
    "con",
    [
        Struct(field("len", Integer("<", "H")), field("items", Array(lambda context: context.len, Integer("<", "H")))),
        Struct(field("len", Rebuild(Integer("<", "H"), lambda context: 1))),
        Struct(field("data", Bytes(lambda context: 3))),
        Struct(field("x", construct.Computed(lambda context: 3))),
        Struct(field("x", construct.If(lambda context: True, construct.Byte))),
        Struct(field("x", construct.Switch(lambda context: 1, {1: construct.Byte}))),
        Struct(field("x", construct.Switch(this.y, {1: Struct(field("z", Array(len, Integer("<", "H"))))}))),
        Struct(field("x", construct.ExprAdapter(construct.Byte, lambda obj, context: obj, lambda obj, context: obj))),
        Struct(construct.Renamed(construct.Byte, newname="x", newparsed=print)),
    ],
)
def test_code_would_be_found(con):
    assert code_in(con)


def test_expressions_are_no_code():
    assert not code_in(Struct(field("len", Rebuild(Integer("<", "H"), len_(this.x))), field("x", Bytes(this.len + 1))))


def test_the_walk_reaches_the_whole_tree():
    """`every` visits what Structs, Switches and the recursion hold, so that the tests here look at all of it."""
    for order, version in LAYOUTS:
        of = gs.structs(order, version)
        reached = {id(node) for node in every(of.gguf)}
        parts = [of.metadata_kv, of.tensor_info, of.array, of.string, of.value_type, of.bool, of.count, of.length]
        for part in [*parts, *of.numbers.values(), of.string.subcon, *of.head.subcons]:
            assert id(part) in reached
        held = {
            id(value)
            for node in every(of.gguf)
            for attribute in vars(node).values()
            for value in values_in(attribute)
            if isinstance(value, construct.Construct)
        }
        assert held <= reached, "a construct that `children` does not know of"


def values_in(attribute):
    """What an attribute holds."""
    if isinstance(attribute, dict):
        return list(attribute.values())
    return list(attribute) if isinstance(attribute, list | tuple) else [attribute]


@each_tree
def test_classes_are_the_allowed_ones(tree):
    assert foreign_classes(tree) == set()


@pytest.mark.parametrize(
    "con",
    [
        construct.Enum(construct.Byte, a=1),
        construct.Flag,
        construct.PascalString(construct.Byte, "utf8"),
        construct.Padding(3),
        construct.Aligned(4, construct.Byte),
        construct.LazyBound(lambda: construct.Byte),
        construct.Float32l,
        construct.Switch(this.x, {1: Integer("<", "H")}),
        construct.Array(2, Integer("<", "H")),
        construct.Struct(),
        construct.Bytes(2),
    ],
)
def test_foreign_classes_would_be_found(con):
    assert foreign_classes(Struct(field("x", con)))


@each_tree
def test_every_field_is_named_and_documented_once(tree):
    for child in fields_of(tree):
        assert type(child) is constructs.Renamed
        assert child.name, child
        assert isinstance(child.docs, str), child.name
        assert child.docs.strip(), f"{child.name} says nothing"
        assert child.docs == child.docs.strip(), child.name
    assert doubly_named(tree) == []
    assert sum(isinstance(node, construct.Renamed) for node in every(tree)) == len({id(c) for c in fields_of(tree)})


@each_tree
def test_sizes_are_fixed_or_there_is_none(tree):
    """Two ways to the size agree: construct's, and the smallest that there can be. Only our errors are raised."""
    guarded = [con for con in every(tree) if con is not construct.Error]
    assert all(isinstance(con, constructs.Guarded) for con in guarded)
    assert all(con.sizeof() == minimum_size(con) for con in guarded if has_size(con))
    varying = {type(con) for con in guarded if not has_size(con)}
    assert not varying & {constructs.Integer, constructs.Float, constructs.Bool, constructs.EnumAdapter, Block}


def has_size(con):
    try:
        con.sizeof()
    except gs.GGUFError:
        return False
    return True


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_the_smallest_sizes(order, version):
    of = gs.structs(order, version)
    prefix = 4 if version == 1 else 8
    sizes = {
        "string": prefix,
        "array": 4 + prefix,
        "metadata_kv": prefix + 4 + 1,  # no letters in the key, and one byte of value
        "tensor_info": prefix + 4 + 4 + 8,  # no dimensions
        "gguf": 8 + 2 * prefix,
    }
    assert {name: minimum_size(getattr(of, name)) for name in sizes} == sizes
    empty = {"order": order, "version": version, "metadata_kv": [], "tensor_infos": []}
    assert len(gs.GGUF.build(empty)) == sizes["gguf"]


def test_structs_are_shown_by_their_fields():
    assert repr(gs.structs().array) == "<Struct: type, len, array>"
    assert repr(blocks(">")[gs.GGMLQuantizationType.Q4_1]) == "<Block: d, m, qs>"


def test_double_names_would_be_found():
    twice = Struct("x" / Integer("<", "H") * "docs")
    assert doubly_named(twice) == ["x"]
    assert doubly_named(Struct(field("x", Integer("<", "H"), "docs"))) == []


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_field_names_are_those_of_the_specification(order, version):
    of = gs.structs(order, version)
    assert {child.name for child in fields_of(of.gguf)} == FIELDS

    def names(con):
        return [child.name for child in con.subcons]

    assert names(of.gguf) == [
        *("magic", "version", "tensor_count", "metadata_kv_count", "metadata_kv", "alignment", "tensor_infos"),
        *("padding", "tensor_data", "tail"),
    ]
    assert names(of.metadata_kv) == ["key", "value_type", "value"]
    assert names(of.array) == ["type", "len", "array"]
    assert names(of.string.subcon) == ["len", "string"]
    assert names(of.tensor_info) == ["name", "n_dimensions", "dimensions", "type", "offset"]
    assert names(of.head) == names(of.gguf)[:7]
    assert names(of.preamble) == ["magic", "version"]


def test_no_name_is_one_that_containers_hide():
    """Attribute access gives dict's methods for such names, and `==` ignores those with an underscore."""
    hidden = set(dir(construct.Container())) - {"len"}
    for name, tree in ALL_TREES.items():
        for child in fields_of(tree):
            assert child.name not in hidden, f"{name}: {child.name}"
            assert not child.name.startswith("_"), f"{name}: {child.name}"


# Never compiled.

PACKAGE = Path(gs.__file__).parent


def compile_calls(source: str) -> list[int]:
    """Lines on which something's `compile` is used, other than re's."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr == "compile"
        and not (isinstance(node.value, ast.Name) and node.value.id == "re")
    ]


def test_nothing_is_compiled():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 15
    assert {file.name: compile_calls(file.read_text("utf-8")) for file in files} == {file.name: [] for file in files}


def test_compiling_would_be_found():
    assert compile_calls("import re\nx = re.compile('a')\ny = structs().gguf.compile()\n") == [3]
    assert compile_calls("f = con.compile") == [1]


# Parsed objects are values.


def parsed_sample(order, version):
    """A file with one of everything."""
    nested = {
        "type": T.ARRAY,
        "array": [
            {"type": T.FLOAT32, "array": [1.5, widened(0x7FA00001, "f")]},
            {"type": T.STRING, "array": ["a", "\udcff"]},
            {"type": T.ARRAY, "array": []},
            {"type": T.BOOL, "array": [True, 2]},
        ],
    }
    obj = {
        "order": order,
        "version": version,
        "metadata_kv": [
            {"key": "n", "value_type": T.UINT32, "value": 1},
            {"key": "f", "value_type": T.FLOAT64, "value": float("inf")},
            {"key": "s", "value_type": T.STRING, "value": "text"},
            {"key": "a", "value_type": T.ARRAY, "value": nested},
        ],
        "tensor_infos": [{"name": "t", "dimensions": [2, 3], "type": 0}, {"name": "u", "dimensions": [], "type": 24}],
        "tensor_data": bytes(range(25)),
    }
    return gs.GGUF.build(obj)


def in_native_order(value):
    """A parsed object with all arrays in this computer's byte order."""
    if isinstance(value, dict):
        return {name: in_native_order(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return value if value.dtype.isnative else value.byteswap().view(value.dtype.newbyteorder("="))
    return [in_native_order(item) for item in value] if type(value) is construct.ListContainer else value


def held(value, seen=None):
    """Everything that a parsed object holds, through attributes and items."""
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value
        has_attributes = hasattr(value, "__dict__") and not isinstance(value, type | IntEnum)
        inner = list(vars(value).values()) if has_attributes else []
        if isinstance(value, dict):
            inner += [*dict.keys(value), *dict.values(value)]
        elif isinstance(value, list | tuple):
            inner += list(value)
        elif isinstance(value, np.ndarray):
            inner += [value.base]
        for item in inner:
            held(item, seen)
    return seen.values()


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_parsed_objects_are_copied_pickled_and_hold_no_stream(order, version, tmp_path):
    data = parsed_sample(order, version)
    path = tmp_path / "sample.gguf"
    path.write_bytes(data)
    for parsed in gs.GGUF.parse(data), gs.GGUF.parse_file(str(path)), gs.GGUF.parse_stream(io.BytesIO(data)):
        for value in held(parsed):
            assert not isinstance(value, io.IOBase), value
            assert not isinstance(value, memoryview) or isinstance(value.obj, bytes), value
            assert not isinstance(value, construct.Construct), value
        for clone in copy.copy(parsed), copy.deepcopy(parsed):
            assert same(clone, parsed)
            assert gs.GGUF.build(clone) == data
        # numpy pickles an array in this computer's byte order.
        clone = pickle.loads(pickle.dumps(parsed))
        assert same(in_native_order(clone), in_native_order(parsed))
        assert gs.GGUF.build(clone) == data
        clone = copy.deepcopy(parsed)
        clone.metadata_kv[0].value = 2
        assert parsed.metadata_kv[0].value == 1, "a deep copy is a copy"
        assert gs.GGUF.build(clone) != data


def test_what_is_held_would_be_found():
    stream = io.BytesIO()
    container = construct.Container(a=construct.ListContainer([construct.Container(_io=stream)]))
    assert any(value is stream for value in held(container))
    parsed = construct.Struct("x" / construct.Struct("y" / construct.Byte)).parse(b"1")
    assert any(isinstance(value, io.IOBase) for value in held(parsed)), "construct's own Structs do hold one"


# Versions.


def flat(con, path="gguf", above=()):
    """Every construct by its place in the tree: its class and the data that it has of its own."""
    if id(con) in above:
        return {path: ("again",)}
    own = {
        name: value
        for name, value in vars(con).items()
        if name not in ("_subcons", "packer", "item_minimum", "dtype", "prefix")
        and not any(isinstance(inner, construct.Construct) for inner in values_in(value))
    }
    places = {path: (type(con).__name__, sorted((name, repr(value)) for name, value in own.items()))}
    for index, child in enumerate(children(con)):
        label = child.name if isinstance(child, construct.Renamed) else f"({index})"
        places |= flat(child, f"{path}.{label}", (*above, id(con)))
    return places


def differences(one, other):
    """The places where two trees differ."""
    first, second = flat(one), flat(other)
    return {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}


def attributes_that_differ(one, other, path):
    """The names of the attributes that differ at one place."""
    first, second = (dict(flat(tree)[path][1]) for tree in (one, other))
    return {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}


WIDENED = {
    "gguf.tensor_count.(0).(0)": "count",
    "gguf.metadata_kv_count.(0).(0)": "count",
    "gguf.metadata_kv.(0).(0).(0).key.(0).(0).len.(0).(0)": "length",
    "gguf.metadata_kv.(0).(0).(0).value.(0).(11).(0).len.(0).(0)": "length",
    "gguf.metadata_kv.(0).(0).(0).value.(0).(12).(0).len.(0).(0)": "length",
    "gguf.metadata_kv.(0).(0).(0).value.(0).(12).(0).array.(0).(11).(0).(0).(0).len.(0).(0)": "length",
    "gguf.tensor_infos.(0).(0).(0).(0).name.(0).(0).len.(0).(0)": "length",
    "gguf.tensor_infos.(0).(0).(0).(0).dimensions.(0).(0)": "dimension",
}
"""The places of the numbers that version 2 made wider, by their names in the layout."""
VERSION_CONSTANT = "gguf.version.(0)"


@pytest.mark.parametrize("order", "<>")
def test_version_2_widened_counts_lengths_and_dimensions_and_nothing_else(order):
    one, two = gs.structs(order, 1), gs.structs(order, 2)
    assert differences(one.gguf, two.gguf) == {*WIDENED, VERSION_CONSTANT}
    for path in WIDENED:
        assert attributes_that_differ(one.gguf, two.gguf, path) == {"fmtstr", "length"}
        assert dict(flat(one.gguf)[path][1])["fmtstr"] == repr(order + "L")
        assert dict(flat(two.gguf)[path][1])["fmtstr"] == repr(order + "Q")
    assert attributes_that_differ(one.gguf, two.gguf, VERSION_CONSTANT) == {"value"}


@pytest.mark.parametrize("order", "<>")
def test_the_names_of_what_was_widened(order):
    """The numbers at those places are the layout's `count`, `length` and `dimension`."""
    for version in 1, 2, 3:
        of = gs.structs(order, version)
        found = {}

        def locate(con, path="gguf", above=(), found=found):
            if id(con) not in above:
                found[path] = con
                for index, child in enumerate(children(con)):
                    label = child.name if isinstance(child, construct.Renamed) else f"({index})"
                    locate(child, f"{path}.{label}", (*above, id(con)))

        locate(of.gguf)
        for path, name in WIDENED.items():
            assert found[path] is getattr(of, name), path


@pytest.mark.parametrize("order", "<>")
def test_version_3_is_version_2_by_another_number(order):
    two, three = gs.structs(order, 2), gs.structs(order, 3)
    assert differences(two.gguf, three.gguf) == {VERSION_CONSTANT}
    assert attributes_that_differ(two.gguf, three.gguf, VERSION_CONSTANT) == {"value"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_byte_orders_differ_in_the_byte_order_alone(version):
    little, big = gs.structs("<", version).gguf, gs.structs(">", version).gguf
    places = differences(little, big)
    assert places
    for path in places:
        assert attributes_that_differ(little, big, path) == {"fmtstr"}
        one, other = (dict(flat(tree)[path][1])["fmtstr"] for tree in (little, big))
        assert one == other.replace(">", "<")


def test_differences_would_be_found():
    one = Struct(field("x", Array(this.n, Integer("<", "H")), "docs"))
    for other in (
        Struct(field("x", Array(this.n, Integer("<", "L")), "docs")),
        Struct(field("x", Array(this.m, Integer("<", "H")), "docs")),
        Struct(field("x", Array(this.n, Integer("<", "H")), "other docs")),
        Struct(field("y", Array(this.n, Integer("<", "H")), "docs")),
        Struct(field("x", Rebuild(Array(this.n, Integer("<", "H")), 1), "docs")),
    ):
        assert differences(one, other)
    assert not differences(one, Struct(field("x", Array(this.n, Integer("<", "H")), "docs")))
