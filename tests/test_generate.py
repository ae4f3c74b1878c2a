"""Values and files made up from the schema by a seed."""

import hashlib
import math
import struct

import numpy as np
import pytest
from construct import len_, this

import gguf_schema as gs
from gguf_schema import GGUFValueType as T
from gguf_schema.blocks import blocks
from gguf_schema.constructs import (
    Array,
    Bool,
    Bytes,
    Const,
    Default,
    EnumAdapter,
    Float,
    Guarded,
    Integer,
    NumberArray,
    Rebuild,
    RecordArray,
    Struct,
    Switch,
    field,
)
from gguf_schema.description import KINDS
from gguf_schema.generate import Extent, Seeded, files, make, valid_file
from gguf_schema.generate.choices import edges
from gguf_schema.generate.making import MAKERS, maker
from gguf_schema.schema import GGUFStructs
from gguf_schema.validate import check
from gguf_schema.walk import is_construct

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]
SEEDS = range(2000)
ODD = Extent(levels=4, valid=False)


def worse_than_notes(data: bytes) -> list[str]:
    """The codes of warnings and errors."""
    return [fault.code for fault in check(data, data=True) if fault.severity != "note"]


def test_every_file_is_valid_and_comes_back():
    for seed in SEEDS:
        data = valid_file(seed)
        gs.open(data)
        assert worse_than_notes(data) == [], seed
        assert gs.GGUF.build(gs.GGUF.parse(data)) == data, seed


@pytest.mark.parametrize(
    ("arguments", "sha256"),
    [
        ((0,), "02488601d6336c96cfcc32a5ecdd0988e26d2a6287cd14d17fe1cb7c358a3e87"),
        ((1,), "4c2bc6d8711660ed63f65131303558378b39d2bd7b27f7791a41877ca586f87d"),
        ((2026, "<", 3), "1900622d61f86c547e1563a8c30ae4d680674cdfa1e6eaf6866418aa9aa5d062"),
        ((2026, ">", 2), "a131ec229a6f676f2a4b94013bb466ea62c3244b9b7442a8b4cde173bdb01e26"),
        ((7, "<", 1), "3dc6b5812c37585e01a2fb80f60a7c6e64c3b93554cc7ff5145fcc9e0f6c44f9"),
        ((18446744073709551615,), "3b53a34b5a77c239f6530b09504edc04b58992d07036598383a789bc0030c9e4"),
    ],
)
def test_a_seed_gives_the_same_bytes_everywhere(arguments, sha256):
    """Whoever changes what is generated changes these, too, and says so in the changelog."""
    assert hashlib.sha256(valid_file(*arguments)).hexdigest() == sha256


def test_seeds_put_together_of_two_numbers_are_others():
    seeds = [high << 32 | low for high in range(40) for low in range(40)]
    assert len({Seeded(seed).octets(16) for seed in [*seeds, -1]}) == 1601


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_order_and_version_as_asked(order, version):
    for seed in range(200):
        data = valid_file(seed, order, version)
        with gs.open(data) as model:
            assert (model.order, model.version) == (order, version)
        assert worse_than_notes(data) == (["version-1"] if version == 1 else [])


def test_no_such_layout():
    with pytest.raises(gs.GGUFError, match="unknown byte order"):
        valid_file(0, "=")
    with pytest.raises(gs.GGUFError, match="unknown version"):
        valid_file(0, "<", 4)


def test_every_alternative_turns_up():
    seen = set()
    for seed in SEEDS:
        with gs.open(valid_file(seed)) as model:
            seen.add(("layout", model.order, model.version))
            seen.add(("alignment", model.alignment))
            seen.add(("tensors", len(model.tensors)))
            for pair in model.metadata.pairs:
                seen.add(("type", pair.type if isinstance(pair.type, T) else ("array", pair.type.type)))
            for tensor in model.tensors.infos:
                seen.add(("tensor", tensor.type))
                seen.add(("dimensions", len(tensor.dimensions)))
                seen.add(("elements", bool(tensor.n_elements)))
    wanted = {("layout", order, version) for order in "<>" for version in (2, 3)}
    wanted |= {("alignment", 1 << bit) for bit in range(3, 13)}
    wanted |= {("tensors", count) for count in range(5)} | {("dimensions", count) for count in range(1, 5)}
    wanted |= {("elements", False), ("elements", True)} | {("tensor", type) for type in blocks("<")}
    flat = set(T) - {T.ARRAY}
    wanted |= {("type", type) for type in flat} | {("type", ("array", type)) for type in flat}
    assert seen == wanted


def test_small_files():
    sizes = sorted(len(valid_file(seed)) for seed in range(1000))
    assert 300 < sizes[500] < 2000
    assert sizes[-1] < 1 << 16


def test_edges_of_numbers_turn_up():
    """Of every width the ends, zero, and powers of two with what is beside them."""
    assert {0, 1, 2, 127, 128, 129, 2**31 - 1, 2**32 - 1, 2**32 - 2} <= set(edges(0, 2**32 - 1))
    assert {-(2**63), -(2**63) + 1, -129, -1, 0, 2**63 - 1} <= set(edges(-(2**63), 2**63 - 1))
    choices = Seeded(0)
    for letter in "BbHhLlQq":
        con = Integer("<", letter)
        bounds = np.iinfo(letter)
        made = [make(con, choices, Extent()) for _ in range(4000)]
        low, high = (
            (0, 256**con.length - 1) if letter.isupper() else (-(256**con.length) // 2, 256**con.length // 2 - 1)
        )
        assert min(made) == low
        assert max(made) == high
        assert {0, 1, 64} <= set(made), bounds
        assert len(set(made)) > 200, "not edges alone"


@pytest.mark.parametrize(("letter", "mantissa"), [("e", 10), ("f", 23), ("d", 52)])
@pytest.mark.parametrize("order", "<>")
def test_floats_of_every_kind(letter, mantissa, order):
    con = Float(order, letter)
    choices = Seeded(1)
    made = [make(con, choices, Extent()) for _ in range(2000)]
    raw = {int.from_bytes(con.build(number), "big" if order == ">" else "little") for number in made}
    exponent = 2 ** (8 * con.length - 1) - 2**mantissa
    nans = {bits for bits in raw if bits & exponent == exponent and bits % 2**mantissa}
    assert {bool(bits & 2 ** (mantissa - 1)) for bits in nans} == {True, False}, "quiet and signalling"
    assert len(nans) > 10
    assert {math.inf, -math.inf, 0.0, 1.0, -1.0} <= set(made)
    assert 2.0 ** (2 - 2 ** (8 * con.length - mantissa - 2)) in map(abs, made), "the smallest normal number"


def named(order: str, version: int):
    """The named constructs of a layout, but those that are whole files."""
    layout = gs.structs(order, version)
    return {name: con for name, con in vars(layout).items() if is_construct(con)}


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
@pytest.mark.parametrize("extent", [Extent(), ODD], ids=["valid", "odd"])
def test_values_of_every_construct_come_back(order, version, extent):
    for name, con in named(order, version).items():
        choices = Seeded(5)
        built = set()
        for _ in range(60):
            data = con.build(make(con, choices, extent))
            assert con.build(con.parse(data)) == data, name
            built.add(data)
        assert len(built) > (1 if name in ("preamble", "bool") else 10), name


@pytest.mark.parametrize("order", "<>")
def test_values_of_every_block_come_back(order):
    for type, con in blocks(order).items():
        choices = Seeded(int(type))
        made = [make(con, choices, Extent()) for _ in range(5)]
        data = [con.build(value) for value in made]
        assert all(len(one) == con.type_size for one in data)
        assert len(set(data)) > 1
        assert [con.build(con.parse(one)) for one in data] == data


def test_odd_values_are_odd():
    layout = gs.structs()
    choices = Seeded(3)
    texts = [make(layout.string, choices, ODD) for _ in range(100)]
    assert any("\udc80" <= letter <= "\udcff" for text in texts for letter in text), "no UTF-8"
    bools = {make(layout.bool, choices, ODD) for _ in range(100)}
    assert bools > {False, True}
    for extent in ODD, Extent(levels=4):
        assert {depth(make(layout.array, choices, extent)) for _ in range(400)} == {1, 2, 3, 4, 5}


def depth(array) -> int:
    """Levels of arrays."""
    inner = array["array"] if array["type"] == T.ARRAY else []
    return 1 + max(map(depth, inner), default=0)


def test_sizes_are_kept():
    layout = gs.structs()
    choices = Seeded(4)
    extent = Extent(items=(2, 3), letters=(5, 6), levels=0)
    arrays = [make(layout.array, choices, extent) for _ in range(200)]
    assert {len(array["array"]) for array in arrays} == {2, 3}
    assert all(array["type"] is not T.ARRAY for array in arrays)
    assert {len(make(layout.string, choices, extent)) for _ in range(50)} == {5, 6}


# A schema with more fields.


class Answer(T.__mro__[1]):
    """An enumeration that the format does not have."""

    YES = 17
    NO = 19


def extra_fields(layout: GGUFStructs):
    """A field of every kind that is generated, besides those that are computed."""
    order = layout.order
    u16 = Integer(order, "H")
    inner = Struct(field("a", u16), field("b", layout.string))
    return (
        field("an_integer", Integer(order, "q")),
        field("a_float", Float(order, "d")),
        field("a_bool", Bool(Integer(order, "B"))),
        field("an_enum", EnumAdapter(u16, Answer)),
        field("a_string", layout.string),
        field("three_bytes", Bytes(3)),
        field("four_numbers", Array(4, u16)),
        field("a_struct", inner),
        field("a_value", layout.array),
        field("a_constant", Const(b"!", Bytes(1))),
        field("a_default", Default(u16, 7)),
        field("rebuilt", Rebuild(u16, len_(this.structs))),
        field("structs", RecordArray(Array(this.rebuilt, inner))),
        field("plain_count", u16),
        field("numbers", NumberArray(Array(this.plain_count, Float(order, "f")))),
        field("plain_size", u16),
        field("octets", Bytes(this.plain_size)),
        field("choice", u16),
        field("chosen", Switch(this.choice, {3: u16, 5: layout.string, 7: inner})),
    )


def extended(order: str, version: int) -> tuple[GGUFStructs, list[str]]:
    """A layout in which pairs, infos and the file itself have more fields, and the names of those."""
    layout = GGUFStructs(order, version)
    extra = extra_fields(layout)
    layout.metadata_kv.subcons.extend(extra)
    layout.tensor_info.subcons.extend(extra)
    names = [con.name for con in layout.gguf.subcons]
    where = names.index("tensor_infos") + 1
    layout.gguf.subcons[where:where] = extra
    return layout, [con.name for con in extra]


def as_plain(value):
    """A value as what can be compared: numpy arrays by their bytes, NaNs by their bits."""
    if isinstance(value, dict):
        return {name: as_plain(one) for name, one in value.items() if name not in ("len", "_io")}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    if isinstance(value, float):
        return struct.pack("<d", value)
    return [as_plain(one) for one in value] if isinstance(value, list | tuple) or hasattr(value, "tolist") else value


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_a_new_field_is_generated(order, version):
    """Nothing but the schema was touched, and files have the fields everywhere."""
    layout, names = extended(order, version)
    choices = Seeded(6)
    values = {name: [] for name in names}
    for _ in range(40):
        made = files.file(choices, layout)
        data = layout.gguf.build(made)
        parsed = layout.gguf.parse(data)
        assert layout.gguf.build(parsed) == data
        owners = [(made, parsed)]
        for array in "metadata_kv", "tensor_infos":
            owners += zip(made[array], parsed[array], strict=True)
        for one, other in owners:
            for name in names:
                if name != "rebuilt":
                    assert as_plain(one[name]) == as_plain(other[name]), name
                values[name].append(str(other[name]))
    assert {name for name, found in values.items() if len(set(found)) == 1} == {"a_constant"}
    assert {"3", "5", "7"} == set(values["choice"])


def test_all_kinds_are_known():
    """Placed adds offsets to an array on build, so what it holds is made."""
    assert set(KINDS) - set(MAKERS) == {"placed"}


def test_a_kind_that_nobody_knows_is_named():
    class Riddle(Guarded):
        """A construct without a maker."""

    with pytest.raises(LookupError, match="no entry for riddle"):
        maker(Struct(field("a", Riddle())))
