"""Peers: shards, and models made of them, are those of llama.cpp's gguf-split, but for what is named here."""

import io
import shutil
import subprocess
from itertools import accumulate

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.generate import valid_file
from gguf_schema.layout import align_up
from gguf_schema.shards import ShardName
from gguf_schema.write import head_of

from .gguf_split import built

T = gs.GGUFValueType
Q = gs.GGMLQuantizationType


@pytest.fixture(scope="module")
def gguf_split(pytestconfig):
    """The program: given arguments, what came of the run."""
    program = built(pytestconfig.cache.mkdir("gguf-split"))

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, check=False)

    return run


def written(pairs, tensors, **options):
    out = io.BytesIO()
    gs.write(out, pairs, tensors, **options)
    return out.getvalue()


def model(tensors=10, shape=(3, 11), more=(), **options):
    """A model of so many tensors, F32, Q8_0 and Q4_K in turn."""
    pairs = {"general.architecture": "llama", "a.numbers": np.arange(50, dtype=np.int16), **dict(more)}
    data = {}
    for number in range(tensors):
        values = np.arange(number, number + 144).astype(np.uint8)
        data[f"blk.{number}.w"] = (
            np.full(shape, number, np.float32),
            (Q.Q8_0, values[:68]),
            (Q.Q4_K, values),
        )[number % 3]
    return written(pairs, data, **options)


def of_sizes(*sizes):
    """A model of tensors with so many bytes."""
    return written({"a": 1}, {f"t{n}": np.full(size, n, np.int8) for n, size in enumerate(sizes)})


SINGLE = {
    T.UINT8: 2**8 - 1,
    T.INT8: -(2**7),
    T.UINT16: 2**16 - 1,
    T.INT16: -(2**15),
    T.UINT32: 2**32 - 1,
    T.INT32: -(2**31),
    T.FLOAT32: np.float32(0.1),
    T.BOOL: True,
    T.STRING: "h\u00e9 \U0001f999",
    T.UINT64: 2**64 - 1,
    T.INT64: -(2**63),
    T.FLOAT64: 1e-300,
}
VALUES = {
    **{f"one.{type}": (type, value) for type, value in SINGLE.items()},
    **{f"two.{type}": (gs.ArrayType(type), [value, value]) for type, value in SINGLE.items()},
    **{f"none.{type}": (gs.ArrayType(type), []) for type in SINGLE},
}
TWOS = [
    {"key": "a", "value_type": T.BOOL, "value": 2},
    {"key": "b", "value_type": T.ARRAY, "value": {"type": T.BOOL, "array": [0, 1, 2]}},
]
OLD_KEYS = {"split.count": (T.UINT16, 0), "split.no": (T.UINT32, 7), "z.last": 1}
MEGABYTE = 1_000_000  # which is a multiple of 32

SAME = {
    "a shard": (model(), []),
    "shards": (model(), ["--max-tensors", "4"]),
    "shards of the same size": (model(), ["--max-tensors", "5"]),
    "shards of one": (model(), ["--max-tensors", "1"]),
    "one tensor": (model(1), []),
    "128 tensors": (model(128), []),
    "129 tensors": (model(129), []),
    "300 tensors": (model(300), []),
    "300 tensors in 7": (model(300), ["--max-tensors", "47"]),
    "values": (model(more=VALUES), ["--max-tensors", "4"]),
    "alignment of 32": (model(alignment=32), ["--max-tensors", "4"]),
    "old keys": (model(more=OLD_KEYS), ["--max-tensors", "4"]),
    "four dimensions": (model(shape=(2, 1, 3, 4)), ["--max-tensors", "4"]),
    "full": (of_sizes(MEGABYTE - 64, 1, 33, 31, 1), ["--max-size", "1M"]),
    "over by a byte": (of_sizes(MEGABYTE - 64, 33, 1, 31, 1), ["--max-size", "1M"]),
    "larger than the limit": (of_sizes(5, 2 * MEGABYTE, MEGABYTE + 1, MEGABYTE, 5), ["--max-size", "1M"]),
    "all": (of_sizes(MEGABYTE, MEGABYTE), ["--max-size", "2M"]),
    "a gigabyte": (of_sizes(MEGABYTE, MEGABYTE), ["--max-size", "1G"]),
}
FIRST = ["--no-tensor-first-split"]
DIFFERENT = {
    "alignment of 8": (model(alignment=8), ["--max-tensors", "4"]),
    "alignment of 64": (model(alignment=64), ["--max-tensors", "4"]),
    "alignment of 8, in later shards": (model(alignment=8), ["--max-tensors", "4", *FIRST]),
    "alignment of 64, in later shards": (model(alignment=64), ["--max-tensors", "4", *FIRST]),
    "sizes with an alignment": (model(300, alignment=4096), ["--max-size", "1M"]),
    "dimensions of 1 behind the others": (model(shape=(1, 1, 3)), ["--max-tensors", "4"]),
    "dimensions of 0 behind the others": (model(shape=(0, 3, 5)), ["--max-tensors", "4"]),
    "version 2": (model(version=2), ["--max-tensors", "4"]),
    "what follows a NUL": (model(more={"a": "b\0c", "d": ["e\0", "f"]}), []),
    "bools of 2": (gs.GGUF.build({"metadata_kv": TWOS, "tensor_infos": [], "tensor_data": b""}), []),
    "metadata alone": (model(more={"a": 1}), ["--max-tensors", "4", *FIRST]),
    "metadata alone, by size": (of_sizes(5, MEGABYTE, MEGABYTE), ["--max-size", "1M", *FIRST]),
    "no tensors": (model(0, more={"a": 1}), []),
    "no tensors, metadata alone": (model(0, more={"a": 1}), FIRST),
}
"""Models of which the shards are not the same; `as_gguf_split` says what differs."""

REFUSED = {
    "version 1": (model(version=1), []),
    "big-endian": (model(order=">"), []),
    "arrays of arrays": (model(more={"a": [[1], [2]]}), []),
    "types that nobody knows": (written({}, [gs.NewTensor("t", 4242, (8,), bytes(64))]), []),
    "long names": (written({}, {"n" * 64: np.zeros(1, np.int8)}), []),
    "a first tensor that is larger than the limit": (of_sizes(MEGABYTE + 1, 5), ["--max-size", "1M"]),
    "one behind metadata alone": (of_sizes(MEGABYTE + 1, 5), ["--max-size", "1M", *FIRST]),
}
"""Models that gguf-split does not divide."""


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def divide(gguf_split, folder, data, options):
    """Shards of a model by both, in the folders `ours` and `theirs`, with the exit status of gguf-split."""
    for name in "ours", "theirs":
        (folder / name).mkdir()
    source = folder / "in.gguf"
    source.write_bytes(data)
    assert main(["split", str(source), str(folder / "ours" / "m"), *options]) == 0
    named = [option.replace("--max", "--split-max") for option in options]
    return gguf_split("--split", *named, source, folder / "theirs" / "m").returncode


def first_of(folder):
    return next(path for path in folder.iterdir() if ShardName.of(path).number == 0)


def merged(path):
    """The model of a set, by ours."""
    out = path.parent / "merged.gguf"
    assert main(["merge", str(path), str(out)]) == 0
    return out.read_bytes()


def as_gguf_split(opened, *, is_later):
    """The file that gguf-split would make of what is in a file of ours.

    It writes version 3, strings up to a NUL, a BOOL as 0 or 1, dimensions up to the last that is more than 1; tensors
    at multiples of 32, whatever the alignment, which only the first shard tells; and padding without tensors, too.
    """
    pairs = [as_read(pair) for pair in opened.head.metadata_kv]
    pairs = [pair for pair in pairs if not (is_later and pair["key"] == "general.alignment")]
    data = [tensor.data.tobytes() for tensor in opened.tensors.infos]
    offsets = accumulate((align_up(len(each), 32) for each in data), initial=0)
    infos = [
        {**info, "dimensions": trimmed(list(info["dimensions"])), "offset": offset}
        for info, offset in zip(opened.head.tensor_infos, offsets, strict=False)
    ]
    parts = [head_of(gs.structs("<", 3), pairs, infos), *data]
    return b"".join(part.ljust(align_up(len(part), 32), b"\0") for part in parts)


READ = {T.STRING: lambda text: text.partition("\0")[0], T.BOOL: lambda value: int(value != 0)}
"""Type → a value as llama.cpp reads it."""


def as_read(pair):
    type, value = pair["value_type"], pair["value"]
    if type in READ:
        return {**pair, "value": READ[type](value)}
    if type == T.ARRAY and value["type"] in READ:
        return {**pair, "value": {**value, "array": list(map(READ[value["type"]], value["array"]))}}
    return pair


def trimmed(dimensions):
    while len(dimensions) > 1 and dimensions[-1] <= 1:
        dimensions.pop()
    return dimensions


def ours_as_theirs(folder):
    """Our shards as gguf-split would have made them."""
    expected = {}
    for path in sorted(folder.iterdir()):
        with gs.open(path, shards=False) as opened:
            expected[path.name] = as_gguf_split(opened, is_later=ShardName.of(path).number > 0)
    return expected


# Splitting.


@pytest.mark.parametrize("name", SAME)
def test_shards_are_the_same(gguf_split, tmp_path, name):
    data, options = SAME[name]
    assert divide(gguf_split, tmp_path, data, options) == 0
    ours, theirs = files(tmp_path / "ours"), files(tmp_path / "theirs")
    assert ours == theirs == ours_as_theirs(tmp_path / "ours")


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_named(gguf_split, tmp_path, name):
    data, options = DIFFERENT[name]
    assert divide(gguf_split, tmp_path, data, options) == 0
    theirs = files(tmp_path / "theirs")
    assert files(tmp_path / "ours") != theirs
    assert ours_as_theirs(tmp_path / "ours") == theirs


@pytest.mark.parametrize("seed", range(60))
def test_shards_of_any_model(gguf_split, tmp_path, seed):
    with gs.open(valid_file(seed, "<")) as opened:
        gs.rewrite(opened, canonical=True).save(tmp_path / "in.gguf")
    options = ([], ["--max-tensors", "1"], ["--max-tensors", "2", *FIRST])[seed % 3]
    assert divide(gguf_split, tmp_path, (tmp_path / "in.gguf").read_bytes(), options) == 0
    assert ours_as_theirs(tmp_path / "ours") == files(tmp_path / "theirs")


@pytest.mark.parametrize("name", REFUSED)
def test_what_gguf_split_refuses_is_divided(gguf_split, tmp_path, name):
    data, options = REFUSED[name]
    assert divide(gguf_split, tmp_path, data, options) != 0
    assert files(tmp_path / "theirs") == {}
    assert merged(first_of(tmp_path / "ours")) == data


# Opening and merging.


@pytest.mark.parametrize("name", SAME)
def test_a_set_of_gguf_split_is_the_model(gguf_split, tmp_path, name):
    data, options = SAME[name]
    assert divide(gguf_split, tmp_path, data, options) == 0
    first = first_of(tmp_path / "theirs")
    with gs.open(data) as whole, gs.open(first) as opened:
        assert list(opened.tensors) == list(whole.tensors)
        for tensor, other in zip(whole.tensors.infos, opened.tensors.infos, strict=True):
            assert (tensor.type, tensor.dimensions) == (other.type, other.dimensions)
            assert tensor.data.tobytes() == other.data.tobytes()
        pairs = [pair for pair in whole.metadata.pairs if pair.key not in OLD_KEYS or pair.key == "z.last"]
        found = [pair for pair in opened.metadata.pairs if not pair.key.startswith("split.")]
        assert written(found, {}) == written(pairs, {})
        assert merged(first) == written(pairs, whole.tensors)


@pytest.mark.parametrize("name", SAME)
def test_gguf_split_merges_ours(gguf_split, tmp_path, name):
    """What it makes is the model, with `split.*` behind its metadata."""
    data, options = SAME[name]
    divide(gguf_split, tmp_path, data, options)
    out = tmp_path / "out.gguf"
    assert gguf_split("--merge", first_of(tmp_path / "ours"), out).returncode == 0
    with gs.open(data) as whole:
        left = [
            gs.MetadataKV("split.no", T.UINT16, 0),
            gs.MetadataKV("split.tensors.count", T.INT32, len(whole.tensors)),
            gs.MetadataKV("split.count", T.UINT16, 0),
        ]
        pairs = [pair for pair in whole.metadata.pairs if pair.key not in ("split.no", "split.count")]
        assert out.read_bytes() == written([*pairs, *left], whole.tensors)
    with gs.open(out) as opened:
        assert opened.later == ()


@pytest.mark.parametrize("alignment", [8, 64])
def test_other_alignments_are_only_kept_by_ours(gguf_split, tmp_path, alignment):
    """A first shard of gguf-split says one alignment and has another; so does what it merges."""
    data = model(alignment=alignment)
    divide(gguf_split, tmp_path, data, ["--max-tensors", "4"])
    first = first_of(tmp_path / "theirs")
    run = gguf_split("--merge", first, tmp_path / "again.gguf")
    assert run.returncode != 0
    assert b"has offset 160, expected" in run.stderr
    assert not (tmp_path / "again.gguf").exists()
    out = tmp_path / "out.gguf"
    assert gguf_split("--merge", first_of(tmp_path / "ours"), out).returncode == 0
    assert gguf_split(out, tmp_path / "once more").returncode != 0
    assert merged(first_of(tmp_path / "ours")) == data


@pytest.mark.parametrize(
    "name", [name for name in DIFFERENT if "later" in name or "alone" in name or name == "no tensors"]
)
def test_shards_that_differ_in_padding_or_alignment_are_the_same_model(gguf_split, tmp_path, name):
    data, options = DIFFERENT[name]
    divide(gguf_split, tmp_path, data, options)
    assert merged(first_of(tmp_path / "theirs")) == data


def swapped(second, third):
    kept = second.read_bytes()
    shutil.copy(third, second)
    third.write_bytes(kept)


def cut(second, third):
    third.write_bytes(third.read_bytes()[:-100])


@pytest.mark.parametrize("spoil", [swapped, cut])
def test_gguf_split_merges_what_is_no_model(gguf_split, tmp_path, spoil):
    data = model()
    divide(gguf_split, tmp_path, data, ["--max-tensors", "4"])
    first, *later = sorted((tmp_path / "ours").iterdir())
    spoil(*later)
    assert gguf_split("--merge", first, tmp_path / "out.gguf").returncode == 0
    with gs.open(data) as whole, gs.open(tmp_path / "out.gguf") as opened:
        contents = [[(tensor.name, tensor.data.tobytes()) for tensor in each.tensors.infos] for each in (whole, opened)]
    assert contents[0] != contents[1]
    assert main(["merge", str(first), str(tmp_path / "none.gguf")]) == 2
