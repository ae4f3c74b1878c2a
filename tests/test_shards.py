"""Models in shards: opened as one, made of one, made into one; and sets that are none."""

import io
import itertools
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import shards
from gguf_schema.cli import main
from gguf_schema.diff import differences, is_note
from gguf_schema.dump import dump_text
from gguf_schema.generate import valid_file
from gguf_schema.hashing import hashes
from gguf_schema.shards import ShardName, merge, open_shards, split
from gguf_schema.summary import summarize
from tests import peers
from tests.killing import counts_of
from tests.shared import CORPUS, needs_corpus

Q = gs.GGMLQuantizationType
T = gs.GGUFValueType
ROOT = Path(__file__).parents[1]
SPLIT_TYPES = {"split.no": T.UINT16, "split.count": T.UINT16, "split.tensors.count": T.INT32}


def saved(plan):
    out = io.BytesIO()
    plan.save(out)
    return out.getvalue()


def model(tensors=10, **options):
    """A model of so many tensors, F32 and Q8_0 in turn."""
    pairs = {"general.architecture": "llama", "general.name": "test", "a.numbers": np.arange(50, dtype=np.int16)}
    data = {}
    for number in range(tensors):
        values = np.arange(number, number + 68, dtype=np.uint8)
        data[f"blk.{number}.w"] = (Q.Q8_0, values) if number % 2 else np.full((3, 11), number, np.float32)
    out = io.BytesIO()
    gs.write(out, pairs, data, **options)
    return out.getvalue()


def divided(data, prefix, **options):
    """Split a model, given by its bytes; what splitting says."""
    with gs.open(data) as opened:
        found = split(opened, **options)
        found.save(prefix)
        return found


@pytest.fixture
def prefix(tmp_path):
    """The shards of `model()`, three of them."""
    divided(model(), tmp_path / "m", max_tensors=4)
    return tmp_path / "m"


def path_of(prefix, number, of=3):
    return Path(f"{prefix}-{number:05}-of-{of:05}.gguf")


def placed(path):
    """The keys that tell a shard's place, with their types."""
    with gs.open(path, shards=False) as opened:
        return {pair.key: (pair.type, pair.value) for pair in opened.metadata.pairs if pair.key in SPLIT_TYPES}


def with_value(path, key, value):
    """Change a value of a shard, or leave the pair out."""
    with gs.open(path, shards=False) as opened:
        pairs = [pair._replace(value=value) if pair.key == key else pair for pair in opened.metadata.pairs]
        pairs = [pair for pair in pairs if pair.value is not None]
        out = io.BytesIO()
        gs.write(out, pairs, opened.tensors, order=opened.order)
    path.write_bytes(out.getvalue())


# Opening.


@pytest.mark.parametrize("number", [1, 2, 3])
def test_any_name_opens_the_whole_model(prefix, number):
    with gs.open(model()) as whole, gs.open(path_of(prefix, number)) as opened:
        assert opened.name == str(path_of(prefix, 1))
        assert list(opened.tensors) == list(whole.tensors)
        assert [tensor.shard for tensor in opened.tensors.values()] == [0] * 4 + [1] * 4 + [2] * 2
        assert [shard.name for shard in opened.shards] == [str(path_of(prefix, each)) for each in (1, 2, 3)]
        assert opened.metadata["general.name"] == "test"
        assert opened.metadata.keys() == whole.metadata.keys()
        for name, tensor in opened.tensors.items():
            assert tensor.data.tobytes() == whole.tensors[name].data.tobytes()
            held = Path(opened.shards[tensor.shard].name).read_bytes()
            assert held[tensor.data_offset : tensor.data_offset + tensor.n_bytes] == tensor.data.tobytes()
            assert tensor.file is opened.shards[tensor.shard]
        data = opened.tensors["blk.9.w"].data
    assert data.tobytes() == bytes(range(9, 77))
    with pytest.raises(gs.GGUFError, match="closed"):
        _ = opened.tensors["blk.9.w"].data


def test_one_file_where_that_is_said(prefix):
    with gs.open(path_of(prefix, 2), shards=False) as opened:
        assert list(opened.tensors) == [f"blk.{number}.w" for number in range(4, 8)]
        assert [tensor.shard for tensor in opened.tensors.values()] == [1] * 4
        assert opened.shards == (opened,)
        assert "general.name" not in opened.metadata


@pytest.mark.parametrize("source", ["bytes", "file object", "another name", "no form"])
def test_what_tells_no_siblings_is_opened_alone(prefix, source, tmp_path):
    path = path_of(prefix, 2)
    other = tmp_path / ("blob" if source == "no form" else "m-2-of-3.gguf")
    shutil.copy(path, other)
    given = {"bytes": path.read_bytes(), "file object": io.BytesIO(path.read_bytes())}.get(source, other)
    with gs.open(given) as opened:
        assert len(opened.tensors) == 4
        assert opened.shard == 1


def test_a_name_alone_makes_no_shard(tmp_path):
    path = path_of(tmp_path / "whole", 1)
    path.write_bytes(model())
    with gs.open(path) as opened:
        assert len(opened.tensors) == 10
    for count in 0, 1:  # gguf-split leaves a count of 0 where it merges
        gs.write(path, {"split.no": (T.UINT16, 0), "split.count": (T.UINT16, count)})
        with gs.open(path) as opened:
            assert opened.later == ()


def test_links_to_shards_are_followed_by_their_own_names(prefix, tmp_path):
    """As in the cache of Hugging Face's hub, whose files are called by their hashes."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    for number in 1, 2, 3:
        path_of(prefix, number).rename(tmp_path / "blobs" / f"{number}")
        path_of(tmp_path / "snapshot" / "x", number).symlink_to(tmp_path / "blobs" / f"{number}")
    with gs.open(path_of(tmp_path / "snapshot" / "x", 3)) as opened:
        assert len(opened.tensors) == 10


def missing(prefix):
    path_of(prefix, 2).unlink()


def first_missing(prefix):
    path_of(prefix, 1).unlink()


def doubled(prefix):
    shutil.copy(path_of(prefix, 2), path_of(prefix, 3))


def doubled_before(prefix):
    shutil.copy(path_of(prefix, 3), path_of(prefix, 2))


def swapped(prefix):
    path_of(prefix, 2).rename(prefix)
    path_of(prefix, 3).rename(path_of(prefix, 2))
    prefix.rename(path_of(prefix, 3))


def wrong_number(prefix):
    with_value(path_of(prefix, 3), "split.no", 7)


def no_number(prefix):
    with_value(path_of(prefix, 3), "split.no", None)


def wrong_count(prefix):
    with_value(path_of(prefix, 3), "split.count", 4)


def no_shard(prefix):
    with_value(path_of(prefix, 3), "split.count", None)


def foreign(prefix):
    with_value(path_of(prefix, 3), "split.tensors.count", 11)


def wrong_total(prefix):
    for number in 1, 2, 3:
        with_value(path_of(prefix, number), "split.tensors.count", 11)


def no_total(prefix):
    with_value(path_of(prefix, 1), "split.tensors.count", None)


def big_endian(prefix):
    with gs.open(path_of(prefix, 3), shards=False) as opened:
        data = saved(gs.rewrite(opened, layout=gs.structs(">", 3)))
    path_of(prefix, 3).write_bytes(data)


def cut_data(prefix):
    os.truncate(path_of(prefix, 2), path_of(prefix, 2).stat().st_size - 30)


def cut_head(prefix):
    os.truncate(path_of(prefix, 2), 60)


def no_model(prefix):
    path_of(prefix, 2).write_bytes(b"<html>not found</html>")


def same_tensor(prefix):
    with gs.open(path_of(prefix, 3), shards=False) as opened:
        head = {**opened.head, "tensor_infos": [dict(info) for info in opened.head.tensor_infos]}
        head["tensor_infos"][0]["name"] = "blk.0.w"
        data = saved(gs.rewrite(opened, head))
    path_of(prefix, 3).write_bytes(data)


FAULTS = [
    (missing, "shard-missing", "1 of 3 shards missing: .*m-00002-of-00003.gguf$"),
    (first_missing, "shard-missing", "m-00001-of-00003.gguf$"),
    (doubled, "shard-twice", "m-00003-of-00003.gguf is the same shard as .*m-00002-of-00003.gguf$"),
    (doubled_before, "shard-twice", "m-00002-of-00003.gguf is the same shard as .*m-00003-of-00003.gguf$"),
    (swapped, "shard-name", "m-00002-of-00003.gguf is not called as it should be: it is shard 3$"),
    (wrong_number, "shard-name", "m-00003-of-00003.gguf is not called as it should be: it is shard 8$"),
    (no_number, "shard-name", "m-00003-of-00003.gguf is not called as it should be: it says no number$"),
    (wrong_count, "shard-foreign", "m-00003-of-00003.gguf is of another set: 4 shards, 10 tensors; 3 and 10"),
    (no_shard, "shard-foreign", "m-00003-of-00003.gguf is no shard: it has no split.count$"),
    (foreign, "shard-foreign", "m-00003-of-00003.gguf is of another set: 3 shards, 11 tensors"),
    (wrong_total, "shard-tensors", "have 10 tensors; 11 are expected$"),
    (no_total, "shard-tensors", "m-00001-of-00003.gguf has no split.tensors.count$"),
    (big_endian, "shard-foreign", "is of another set: it is big-endian, the first shard is little-endian$"),
    (cut_data, "shard-truncated", "m-00002-of-00003.gguf cannot be read: tensor_data at byte"),
    (cut_head, "shard-truncated", "m-00002-of-00003.gguf cannot be read: metadata_kv"),
    (no_model, "shard-unreadable", "m-00002-of-00003.gguf cannot be read: magic at byte 0: .*HTML"),
    (
        same_tensor,
        "shard-tensor-twice",
        "m-00003-of-00003.gguf has a tensor 'blk.0.w', as .*m-00001-of-00003.gguf has$",
    ),
]


@pytest.mark.parametrize(("spoil", "code", "message"), FAULTS, ids=lambda part: getattr(part, "__name__", ""))
def test_sets_that_are_none_are_named(prefix, spoil, code, message, capsys):
    spoil(prefix)
    named = path_of(prefix, 3 if spoil is first_missing else 1)
    for opener in gs.open, open_shards:
        with pytest.raises(gs.ShardError, match=message) as caught:
            opener(named)
        assert caught.value.code == code
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), code)
    with gs.open(named, shards=False) as alone:
        assert alone.later == ()
    out = prefix.parent / "out.gguf"
    assert main(["merge", str(named), str(out)]) == 2
    assert re.search(message.rstrip("$"), capsys.readouterr().err)
    assert not out.exists()
    # To look at, the file is there.
    for command in "info", "map", "dump", "check":
        assert main([command, str(named)]) == 0, command
    told = capsys.readouterr()
    assert "this is about this file alone" in told.err
    assert "4 tensors" in told.out or spoil is first_missing


def test_a_set_whose_first_name_is_wrong(prefix, tmp_path):
    for number in 1, 2, 3:
        path_of(prefix, number).rename(path_of(prefix, number, of=4))
    with pytest.raises(gs.ShardError, match="is not called as it should be: it is one of 3 shards") as caught:
        gs.open(path_of(prefix, 1, of=4))
    assert caught.value.code == "shard-name"


def test_a_shard_that_is_no_file(prefix):
    path_of(prefix, 2).unlink()
    path_of(prefix, 2).mkdir()
    with pytest.raises(gs.ShardError, match=r"m-00002-of-00003.gguf cannot be read: it is no file$") as caught:
        gs.open(path_of(prefix, 1))
    assert caught.value.code == "shard-unreadable"


def test_what_opening_a_broken_set_opened_is_closed(prefix):
    wrong_total(prefix)
    held = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else pytest.skip("no list of open files")
    with pytest.raises(gs.ShardError):
        gs.open(path_of(prefix, 1))
    assert len(os.listdir("/proc/self/fd")) == held


def test_merge_wants_a_shard(prefix, tmp_path):
    with pytest.raises(gs.ShardError, match="is not called like a shard"):
        open_shards(tmp_path / "whole.gguf")
    path_of(tmp_path / "w", 1).write_bytes(model())
    with pytest.raises(gs.ShardError, match=r"is no shard: it has no split\.count"):
        open_shards(path_of(tmp_path / "w", 1))
    with pytest.raises(FileNotFoundError):
        open_shards(path_of(tmp_path / "nothing", 1))


def test_what_needs_one_file_says_so(prefix):
    with gs.open(path_of(prefix, 1)) as opened:
        for function in gs.rewrite, dump_text:
            with pytest.raises(
                gs.GGUFError, match="the model is in 3 files: open one with shards=False, or merge them"
            ):
                function(opened)


def test_what_takes_models_takes_those_in_shards(prefix):
    with gs.open(model()) as whole, gs.open(path_of(prefix, 2)) as opened:
        assert list(hashes(opened)) == list(hashes(whole))
        assert not list(differences(whole, opened))
        assert gs.quant_mix(opened.tensors.infos) == gs.quant_mix(whole.tensors.infos)
        assert not opened.faults()


def test_the_command_tells_of_the_whole_model(prefix, tmp_path, capsys):
    assert main(["info", str(path_of(prefix, 2)), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["shards"], summary["tensor_count"]) == (3, 10)
    assert summary["size"] == sum(path_of(prefix, number).stat().st_size for number in (1, 2, 3))
    assert main(["info", str(path_of(prefix, 2))]) == 0
    assert "shards: 3\n" in capsys.readouterr().out
    assert main(["extract", str(path_of(prefix, 1)), "blk.9.w", str(tmp_path / "raw"), "--raw"]) == 0
    assert (tmp_path / "raw").read_bytes() == bytes(range(9, 77))
    capsys.readouterr()
    assert main(["dump", str(path_of(prefix, 2))]) == 0
    assert "4 tensor(s)" in capsys.readouterr().out


# Splitting and merging.


def test_shards_are_those_of_gguf_split(prefix):
    """Names, keys with types, and where the tensors are: as gguf-split.cpp writes them."""
    assert sorted(os.listdir(prefix.parent)) == [path_of(prefix, number).name for number in (1, 2, 3)]
    for number in 1, 2, 3:
        with gs.open(path_of(prefix, number), shards=False) as opened:
            own = opened.metadata.pairs[-3:]
            assert [pair.key for pair in own] == ["split.no", "split.tensors.count", "split.count"]
            assert {pair.key: pair.type for pair in own} == SPLIT_TYPES
            assert [pair.value for pair in own] == [number - 1, 10, 3]
            assert len(opened.metadata) == (6 if number == 1 else 3)
            assert saved(gs.rewrite(opened, canonical=True)) == path_of(prefix, number).read_bytes()


@pytest.mark.parametrize(
    "limits",
    [
        *({"max_tensors": limit} for limit in (0, -1, 2.5, True, "1", -(10**5000))),
        *({"max_size": limit} for limit in (0, -5, "2G", 10.0)),
        {"max_tensors": 1, "max_size": 600},
    ],
)
def test_what_is_no_limit_of_a_shard(limits):
    with gs.open(model()) as opened, pytest.raises(gs.BuildError, match=rf"^{list(limits)[-1]}: "):
        split(opened, **limits)


def test_shards_as_text():
    with gs.open(model()) as opened:
        assert str(split(opened, max_tensors=9)).splitlines()[0].startswith("…-00001-of-00002.gguf: 9 tensors, ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_shard_that_is_a_pipe_is_not_waited_for(prefix):
    path_of(prefix, 2).unlink()
    os.mkfifo(path_of(prefix, 2))
    with pytest.raises(gs.ShardError, match=r"00002-of-00003.gguf cannot be read: it is no file") as refused:
        gs.open(path_of(prefix, 1))
    assert refused.value.code == "shard-unreadable"


def count_of(data):
    with gs.open(data) as opened:
        return len(opened.tensors)


SEVERAL = list(itertools.islice((seed for seed in itertools.count() if count_of(valid_file(seed)) > 1), 60))
"""Seeds of files with more than one tensor."""


@pytest.mark.parametrize(
    "options",
    [{"max_tensors": 1}, {"max_tensors": 2, "no_tensor_first_split": True}, {"max_size": 600}],
    ids=str,
)
@pytest.mark.parametrize("seed", SEVERAL)
def test_splitting_and_merging_gives_the_original_bytes(seed, options, tmp_path):
    data = valid_file(seed)
    with gs.open(data) as opened:
        data = saved(gs.rewrite(opened, canonical=True))
        count = len(opened.tensors)
        size = sum(-(-tensor.n_bytes // 32) * 32 for tensor in opened.tensors.values())
    found = divided(data, tmp_path / "m", **options)
    assert not found.changes
    assert sum(found.tensors) == count >= 2
    with_tensors = sum(map(bool, found.tensors))
    if "max_size" in options:
        assert (with_tensors > 1) == (size > 600)
    else:
        assert with_tensors == math.ceil(count / options["max_tensors"])
    with open_shards(found.paths(tmp_path / "m")[-1]) as opened:
        plan = merge(opened)
        assert not plan.changes
        assert saved(plan) == data
        # Divided anew, and merged again.
        split(opened, max_tensors=3).save(tmp_path / "n")
    with open_shards(sorted(tmp_path.glob("n-*"))[0]) as opened:
        assert saved(merge(opened)) == data


@pytest.mark.parametrize("seed", range(20))
def test_what_merging_does_not_give_back_is_told(seed, tmp_path):
    data = valid_file(seed)
    found = divided(data, tmp_path / "m", max_tensors=1)
    with open_shards(found.paths(tmp_path / "m")[0]) as opened:
        merged = saved(merge(opened))
    assert (merged == data) == (not found.changes)
    with gs.open(data) as old, gs.open(merged) as new:
        assert all(map(is_note, differences(old, new)))


def test_names_that_stand_twice_are_not_divided():
    with gs.open(model(2)) as opened:
        infos = [{**info, "name": "t"} for info in opened.head.tensor_infos]
        data = gs.GGUF.build({**opened.head, "tensor_infos": infos})
    with gs.open(data, check=False) as twice, pytest.raises(gs.BuildError, match="'t' stands more than once"):
        split(twice)


@pytest.mark.parametrize("prefix", ["", "folder/"])
def test_a_beginning_of_names_is_one(prefix, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "whole.gguf").write_bytes(model())
    for options in [], ["--dry-run"]:
        assert main(["split", "whole.gguf", prefix, *options]) == 2
        assert f"{prefix!r} is no beginning of the names of files" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["folder", "whole.gguf"]
    assert not os.listdir(tmp_path / "folder")


def test_gaps_tails_and_old_keys_are_told(tmp_path):
    infos = [{"name": "t", "dimensions": [2], "type": 0, "offset": 32}]
    pairs = [{"key": "split.count", "value_type": T.UINT16, "value": 0}]
    data = gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": infos, "tensor_data": b"gap!" * 16, "tail": b"tail"})
    found = divided(data, tmp_path / "m")
    told = found.text(tmp_path / "m")
    for part in "split.count is replaced", "between tensors", "tail", "32 becomes 0":
        assert part in told
    assert placed(path_of(tmp_path / "m", 1, of=1))["split.count"] == (T.UINT16, 1)
    with open_shards(path_of(tmp_path / "m", 1, of=1)) as opened:
        assert gs.open(saved(merge(opened))).metadata.pairs == []


@pytest.mark.parametrize("first_without", [False, True])
@pytest.mark.parametrize("form", [lambda metadata: metadata, lambda metadata: metadata.pairs])
def test_what_is_written_of_a_set_is_no_shard(tmp_path, form, first_without):
    with gs.open(model()) as whole:
        split(whole, max_tensors=99 if first_without else 4, no_tensor_first_split=first_without).save(tmp_path / "m")
    with gs.open(path_of(tmp_path / "m", 1, of=2 if first_without else 3)) as opened:
        assert opened.later
        gs.write(tmp_path / "one.gguf", form(opened.metadata), opened.tensors)
        assert (tmp_path / "one.gguf").read_bytes() == saved(merge(opened)) == model()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_place_of_a_shard_is_that_of_the_file_that_is_named(prefix, number, capsys):
    """All else that `get` tells is of the model."""
    for key, value in {
        "split.no": number - 1,
        "split.count": 3,
        "split.tensors.count": 10,
        "general.name": "test",
    }.items():
        assert main(["get", str(path_of(prefix, number)), key]) == 0
        assert capsys.readouterr().out == f"{value}\n"


@pytest.mark.parametrize("command", ["info", "extract", "get"])
@pytest.mark.parametrize("spoil", [None, missing, cut_head])
@pytest.mark.parametrize("edited", [1, 2, 3])
def test_an_interrupted_edit_of_any_shard_is_told(prefix, command, edited, spoil, tmp_path, capsys):
    """Once, also where the shards make no set, perhaps because of it."""
    arguments = {"info": [], "extract": ["blk.0.w", str(tmp_path / "out")], "get": ["general.name"]}[command]
    Path(f"{path_of(prefix, edited)}.journal").write_bytes(b"")
    if spoil:
        spoil(prefix)
    assert main([command, str(path_of(prefix, 1)), *arguments]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "an edit of it was interrupted" in line]
    assert len(told) == 1
    assert str(path_of(prefix, edited)) in told[0]


@pytest.mark.parametrize("spoil", [None, cut_head])
@pytest.mark.parametrize("edited", [1, 2, 3])
def test_merge_refuses_shards_an_edit_of_which_was_interrupted(prefix, edited, spoil, tmp_path, capsys):
    Path(f"{path_of(prefix, edited)}.journal").write_bytes(b"")
    if spoil:
        spoil(prefix)
    assert main(["merge", str(path_of(prefix, 1)), str(tmp_path / "out")]) == 2
    assert f"{path_of(prefix, edited)}: an edit of it was interrupted" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_shard_that_is_opened_alone_is_written_as_one(prefix):
    with gs.open(path_of(prefix, 2), shards=False) as opened:
        gs.write(prefix, opened.metadata, opened.tensors)
    assert Path(prefix).read_bytes() == path_of(prefix, 2).read_bytes()


def test_info_of_a_shard_that_is_called_otherwise(prefix, capsys):
    path_of(prefix, 2).rename(prefix)
    assert main(["info", str(prefix)]) == 0
    assert "shard: 2 of 3" in capsys.readouterr().out.splitlines()
    assert main(["info", "--json", str(prefix)]) == 0
    assert json.loads(capsys.readouterr().out)["shard"] == {"number": 2, "count": 3}


@pytest.mark.parametrize("count", [(T.UINT16, 1), (T.UINT16, 0), (T.UINT32, 3), "3", [3]])
def test_info_of_what_is_no_shard(tmp_path, count):
    gs.write(tmp_path / "m", {"split.no": (T.UINT16, 1), "split.count": count})
    with gs.open(tmp_path / "m") as opened:
        assert summarize(opened)["shard"] is None


def test_pairs_of_later_shards_that_are_left_out_are_told(prefix):
    with gs.open(path_of(prefix, 2), shards=False) as opened:
        pairs = [*opened.metadata.pairs, gs.MetadataKV("an.other", T.UINT8, 3)]
        out = io.BytesIO()
        gs.write(out, pairs, opened.tensors)
    path_of(prefix, 2).write_bytes(out.getvalue())
    with open_shards(path_of(prefix, 1)) as opened:
        expected = [(f"metadata_kv[{len(pairs) - 1}]", f"in {path_of(prefix, 2)} an.other is left out")]
        assert merge(opened).changes == split(opened).changes == expected


def with_tail(path):
    path.write_bytes(path.read_bytes() + b"tail")


def with_odd_padding(path):
    data = bytearray(path.read_bytes())
    with gs.open(path, shards=False) as opened:
        data[opened.infos_end] = 1
    path.write_bytes(data)


def with_odd_bytes_behind_a_tensor(path):
    data = bytearray(path.read_bytes())
    with gs.open(path, shards=False) as opened:
        tensor = opened.tensors.infos[0]
        data[tensor.data_offset + tensor.n_bytes + 1] = 1
    path.write_bytes(data)


def with_a_cut_end(path):
    with gs.open(path, shards=False) as opened:
        last = opened.tensors.infos[-1]
    os.truncate(path, last.data_offset + last.n_bytes)


def laid_out(path, offsets):
    """Make a shard whose tensors stand at these offsets."""
    with gs.open(path, shards=False) as opened:
        infos = [dict(info) for info in opened.head.tensor_infos]
        ends = [offset + tensor.n_bytes for offset, tensor in zip(offsets, opened.tensors.infos, strict=True)]
        data = bytearray(-(-max(ends) // 32) * 32)
        for info, tensor, offset in zip(infos, opened.tensors.infos, offsets, strict=True):
            info["offset"] = offset
            data[offset : offset + tensor.n_bytes] = tensor.data.tobytes()
        file = {"metadata_kv": opened.head.metadata_kv, "tensor_infos": infos, "tensor_data": bytes(data)}
    path.write_bytes(gs.GGUF.build(file))


def with_gaps(path):
    with gs.open(path, shards=False) as opened:
        laid_out(path, [2 * tensor.offset for tensor in opened.tensors.infos])


def in_another_order(path):
    """The first and the third are of one size, and so are the second and the fourth."""
    with gs.open(path, shards=False) as opened:
        first, second, *others = (tensor.offset for tensor in opened.tensors.infos)
    laid_out(path, [others[0], second, first, *others[1:]])


def of_another_version(path):
    with gs.open(path, shards=False) as opened:
        data = saved(gs.rewrite(opened, layout=gs.structs("<", 2)))
    path.write_bytes(data)


def of_another_alignment(path):
    with gs.open(path, shards=False) as opened:
        data = io.BytesIO()
        gs.write(data, opened.metadata, opened.tensors, alignment=64)
    path.write_bytes(data.getvalue())


ODDITIES = [
    ("123", with_tail, {"tail": "4 bytes after the last tensor are left out"}),
    ("12", with_odd_padding, {"padding": "1 bytes of padding, from byte "}),
    ("123", with_odd_bytes_behind_a_tensor, {"tensor_data": "1 bytes of padding, from byte "}),
    ("123", with_a_cut_end, {"tensor_data": "28 zeros are added after the last tensor"}),
    (
        "123",
        with_gaps,
        {"tensor_data": "bytes between tensors, from byte ", "tensor_infos": "do not follow each other"},
    ),
    ("12", in_another_order, {"tensor_infos": "do not follow each other in the order of the infos"}),
    ("23", of_another_version, {"version": " becomes "}),
    ("23", of_another_alignment, {"alignment": "64 becomes 32", "metadata_kv[3]": "general.alignment is left out"}),
]


@pytest.mark.parametrize(
    ("number", "spoil", "told"),
    [(int(number), spoil, told) for numbers, spoil, told in ODDITIES for number in numbers],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_what_is_lost_of_any_shard_is_told(prefix, number, spoil, told, tmp_path, capsys):
    """By both commands, and by their --dry-run; and nothing else is."""
    path = path_of(prefix, number)
    with gs.open(path) as before:
        data = {tensor.name: tensor.data.tobytes() for tensor in before.tensors.infos}
    spoil(path)
    with gs.open(path) as opened:
        changes = merge(opened).changes
        assert split(opened, max_tensors=3).changes == changes
        assert {change.path for change in changes} == set(told)
        for change in changes:
            assert change.message.startswith(f"in {path} ")
            assert told[change.path] in change.message
        merge(opened).save(tmp_path / "merged.gguf")
    with gs.open(tmp_path / "merged.gguf") as merged:
        assert {tensor.name: tensor.data.tobytes() for tensor in merged.tensors.infos} == data
    for command, word in (
        (["merge", str(path), str(tmp_path / "out.gguf")], "changed"),
        (
            ["split", str(path), str(tmp_path / "n")],
            "not kept",
        ),
    ):
        expected = {f"{word}: {change.path}: {change.message}" for change in changes}
        assert main([*command, "--dry-run"]) == 0
        assert expected <= set(capsys.readouterr().out.splitlines())
        assert main(command) == 0
        assert expected <= {line.split(": ", 2)[2] for line in capsys.readouterr().err.splitlines()}


@pytest.mark.parametrize("alignment", [8, 64, 4096])
@pytest.mark.parametrize("layout", [("<", 3), (">", 3), ("<", 1)])
def test_every_shard_has_the_models_layout_and_alignment(tmp_path, alignment, layout):
    order, version = layout
    data = model(order=order, version=version, alignment=alignment)
    found = divided(data, tmp_path / "m", max_tensors=4)
    for path in found.paths(tmp_path / "m"):
        with gs.open(path, shards=False) as opened:
            assert (opened.order, opened.version, opened.alignment) == (order, version, alignment)
            assert all(tensor.data_offset % alignment == 0 for tensor in opened.tensors.infos)
            held = [tensor.data.tobytes() for tensor in opened.tensors.infos]
        for read in (peers.read_with_llama_cpp, peers.read_with_gguf_py)[: 2 * (layout == ("<", 3))]:
            seen = read(Path(path).read_bytes())
            assert seen.alignment == alignment
            assert [tensor.data for tensor in seen.tensors] == held
    with open_shards(found.paths(tmp_path / "m")[0]) as opened:
        assert saved(merge(opened)) == data


def test_types_that_nobody_knows_survive(tmp_path):
    """Their data goes up to the next tensor, or the end of the file."""
    out = io.BytesIO()
    tensors = [gs.NewTensor(f"t{n}", 4242, (8,), bytes([n]) * 64) for n in range(5)]
    gs.write(out, {}, tensors)
    found = divided(out.getvalue(), tmp_path / "m", max_tensors=2)
    assert not found.changes
    with open_shards(found.paths(tmp_path / "m")[0]) as opened:
        assert saved(merge(opened)) == out.getvalue()


def test_sizes_are_counted_as_gguf_split_does(tmp_path):
    """Only tensors, each up to a multiple of 32; one that is larger has a shard of its own."""
    tensors = {f"t{n}": np.zeros(size, np.int8) for n, size in enumerate([33, 32, 31, 200, 1, 1, 1])}
    out = io.BytesIO()
    gs.write(out, {}, tensors)
    with gs.open(out.getvalue()) as opened:
        assert list(split(opened, max_size=96).tensors) == [2, 1, 1, 3]
        assert list(split(opened, max_size=95).tensors) == [1, 2, 1, 2, 1]
        assert list(split(opened, max_size=1).tensors) == [1] * 7
        assert list(split(opened, max_size=10**9).tensors) == [7]
        assert list(split(opened, max_tensors=3).tensors) == [3, 3, 1]
        assert list(split(opened, max_tensors=3, no_tensor_first_split=True).tensors) == [0, 3, 3, 1]
        assert list(split(opened).tensors) == [7]


def test_without_tensors_there_is_one_shard_and_the_one_that_is_asked_for():
    for options, tensors in ({}, [0]), ({"max_size": 5}, [0]), ({"no_tensor_first_split": True}, [0, 0]):
        with gs.open(model(0)) as opened:
            assert list(split(opened, **options).tensors) == tensors


def test_more_shards_than_can_be_counted(monkeypatch):
    monkeypatch.setattr("gguf_schema.shards.splitting.MAX_SHARDS", 9)
    with gs.open(model()) as opened, pytest.raises(gs.BuildError, match=r"split\.count: 10 shards; 9 can be counted"):
        split(opened, max_tensors=1)


def test_names():
    name = ShardName.of("a/b-00001-of-00002-00002-of-00003.gguf")
    assert name == ("a/b-00001-of-00002", 1, 3)
    assert str(name) == "a/b-00001-of-00002-00002-of-00003.gguf"
    assert [str(each)[-20:] for each in name.all()] == [f"-{n:05}-of-00003.gguf" for n in (1, 2, 3)]
    for other in "a-1-of-3.gguf", "a-00001-of-00003.GGUF", "-00001-of-00003.gguf", "a-00001-of-00003.gguf.tmp":
        assert ShardName.of(other) is None


# Peers.


@needs_corpus
@pytest.mark.parametrize("name", ["model", "smallfirst"])
def test_shards_of_gguf_py(name, tmp_path):
    """Merged, and split again: the same tensors in files of the same names, with the same keys and types."""
    first = CORPUS / "shards" / f"{name}-00001-of-00003.gguf"
    with gs.open(first) as opened:
        data = saved(merge(opened))
        assert [tensor.name for tensor in opened.tensors.infos] == [f"blk.{n}.w" for n in range(10)]
        held = {tensor.name: tensor.data.tobytes() for tensor in opened.tensors.infos}
    is_first_empty = name == "smallfirst"
    divided(data, tmp_path / name, max_tensors=5 if is_first_empty else 4, no_tensor_first_split=is_first_empty)
    assert sorted(os.listdir(tmp_path)) == [path_of(name, number).name for number in (1, 2, 3)]
    for number in 1, 2, 3:
        ours, theirs = path_of(tmp_path / name, number), path_of(first.parent / name, number)
        assert placed(ours) == placed(theirs)
        old, new = (peers.read_with_gguf_py(path.read_bytes()) for path in (theirs, ours))
        assert {pair.key: pair for pair in new.pairs} == {pair.key: pair for pair in old.pairs}
        assert new.tensors == old.tensors
        loaded = peers.read_with_llama_cpp(ours.read_bytes())
        assert {pair.key: pair.type for pair in loaded.pairs if pair.key in SPLIT_TYPES} == SPLIT_TYPES
        assert {tensor.name: tensor.data for tensor in loaded.tensors} == {
            tensor.name: held[tensor.name] for tensor in loaded.tensors
        }


# Writing.


def tree(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_commands(tmp_path, capsys):
    source = tmp_path / "in.gguf"
    source.write_bytes(model())
    prefix = tmp_path / "m"
    command = ["split", str(source), str(prefix), "--max-tensors", "4"]
    assert main([*command, "--dry-run"]) == 0
    assert f"{path_of(prefix, 2)}: 4 tensors, " in capsys.readouterr().out
    assert os.listdir(tmp_path) == ["in.gguf"]
    assert main(command) == 0
    assert "2 tensors" in capsys.readouterr().err
    kept = tree(tmp_path)
    assert len(kept) == 4
    assert main(command) == 2
    assert "is there already; --force replaces it" in capsys.readouterr().err
    assert tree(tmp_path) == kept
    assert main([*command, "--force"]) == 0
    assert tree(tmp_path) == kept
    # A set is divided anew beside itself, not into itself.
    assert main(["split", str(path_of(prefix, 2)), str(prefix), "--max-tensors", "5"]) == 0
    capsys.readouterr()
    assert main(["split", str(path_of(prefix, 2)), str(prefix), "--max-tensors", "4", "--force"]) == 2
    assert "is one of the files that is read" in capsys.readouterr().err
    out = tmp_path / "out.gguf"
    assert main(["merge", str(path_of(prefix, 3)), str(out), "--dry-run"]) == 0
    assert "bytes in all" in capsys.readouterr().out
    assert not out.exists()
    assert main(["merge", str(path_of(prefix, 3)), str(out)]) == 0
    assert out.read_bytes() == source.read_bytes()
    assert main(["merge", str(path_of(prefix, 3)), str(out)]) == 2
    assert main(["merge", str(path_of(prefix, 3)), str(out), "--force"]) == 0
    kept = tree(tmp_path)
    assert main(["merge", str(path_of(prefix, 3)), str(path_of(prefix, 2)), "--force"]) == 2
    assert "is one of the files that is read" in capsys.readouterr().err
    assert tree(tmp_path) == kept


def test_sizes_on_the_command_line(tmp_path, capsys):
    source = tmp_path / "in.gguf"
    source.write_bytes(model())
    for text in "2G", "1M", "4096", "2K":
        assert main(["split", str(source), str(tmp_path / "m"), "--max-size", text, "--dry-run"]) == 0
    for text in "2g", "0", "1.5G", "-1", "", "2k", "0K":
        with pytest.raises(SystemExit):
            main(["split", str(source), str(tmp_path / "m"), "--max-size", text])
    assert capsys.readouterr().out.count("m-00001-of-00001.gguf: 10 tensors") == 4


def test_split_of_standard_input(tmp_path):
    command = [sys.executable, "-m", "gguf_schema", "split", "-", str(tmp_path / "m"), "--max-tensors", "4"]
    subprocess.run(command, cwd=ROOT, input=model(), check=True)
    with open_shards(path_of(tmp_path / "m", 2)) as opened:
        assert saved(merge(opened)) == model()


def test_merge_to_standard_output(prefix):
    command = [sys.executable, "-m", "gguf_schema", "merge", str(path_of(prefix, 2)), "-"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert run.stdout == model()


def test_more_files_than_a_process_usually_opens(tmp_path):
    """The command raises the limit as far as the system lets it."""
    (tmp_path / "in.gguf").write_bytes(model(60))
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "from gguf_schema.cli import main\n"
        "sys.exit(main(['split', 'in.gguf', 'm', '--max-tensors', '1'])\n"
        "    or main(['info', 'm-00007-of-00060.gguf'])\n"
        "    or main(['merge', 'm-00007-of-00060.gguf', 'out.gguf']))\n"
    )
    pytest.importorskip("resource", reason="this system has no such limit")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False)
    assert run.returncode == 0
    assert (tmp_path / "out.gguf").read_bytes() == (tmp_path / "in.gguf").read_bytes()


def test_a_folder_that_is_missing(tmp_path, capsys):
    (tmp_path / "in.gguf").write_bytes(model())
    assert main(["split", str(tmp_path / "in.gguf"), str(tmp_path / "nowhere" / "m")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_an_old_set_stays_where_a_folder_is_in_the_way(prefix, tmp_path, capsys):
    """It cannot be replaced, which is known before the first shard of the old set is removed."""
    path_of(prefix, 2).unlink()
    path_of(prefix, 2).mkdir()
    kept = {number: path_of(prefix, number).read_bytes() for number in (1, 3)}
    (tmp_path / "in.gguf").write_bytes(model(9))
    command = ["split", str(tmp_path / "in.gguf"), str(prefix), "--max-tensors", "3", "--force"]
    assert main(command) == 2
    assert f"cannot write {path_of(prefix, 2)}: Is a directory" in capsys.readouterr().err
    assert {number: path_of(prefix, number).read_bytes() for number in (1, 3)} == kept
    assert len(os.listdir(tmp_path)) == 4


def test_an_old_set_of_another_count_stays_whole(prefix, tmp_path):
    """Its names are others, which its files agree with: neither set is taken for the other, nor for a mixture."""
    before = tree(tmp_path)
    with gs.open(model(6)) as opened:
        split(opened, max_tensors=3).save(prefix)
    assert {name: data for name, data in tree(tmp_path).items() if name in before} == before
    for path, count in (path_of(prefix, 2, of=3), 10), (path_of(prefix, 2, of=2), 6):
        with gs.open(path) as opened:
            assert len(opened.tensors) == count


def test_nothing_appears_where_a_tensor_cannot_be_read(prefix, tmp_path):
    with gs.open(path_of(prefix, 1)) as opened:
        found = split(opened, max_tensors=5)
        plan = merge(opened)
        os.truncate(path_of(prefix, 3), path_of(prefix, 3).stat().st_size - 64)
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(gs.GGUFError, match=r"tensor 'blk\.9\.w'"):
            found.save(tmp_path / "n")
        with pytest.raises(gs.GGUFError, match=r"tensor 'blk\.9\.w'"):
            plan.save(tmp_path / "out.gguf")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_shard_that_changes_meanwhile_is_noticed(prefix, tmp_path):
    with gs.open(path_of(prefix, 1)) as opened:
        plan = merge(opened)
        os.utime(path_of(prefix, 2), (1, 1))
        with pytest.raises(gs.GGUFError, match=r"m-00002-of-00003\.gguf has changed since it was opened"):
            plan.save(tmp_path / "out.gguf")


@pytest.mark.parametrize("number", ["00000", "00004", "0000\u0661"])
def test_a_number_that_no_shard_has_is_no_shard(prefix, tmp_path, number):
    other = f"{prefix}-{number}-of-00003.gguf"
    shutil.copy(path_of(prefix, 2), other)
    assert ShardName.of(other) is None
    with gs.open(other) as alone:
        assert alone.name == other
        assert not alone.later
    with pytest.raises(gs.ShardError, match="not called like a shard"):
        open_shards(other)
    before = Path(other).read_bytes()
    assert main(["merge", other, other, "--force"]) == 2
    assert Path(other).read_bytes() == before


def test_exports():
    assert gs.open is shards.open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_killed_at_any_moment(tmp_path):
    """At every call to the system, and at random moments: the old or the new is there, or no set that looks whole."""
    counts = counts_of("killed_shards", str(tmp_path / "folder"), "12")
    assert counts["kills"] >= 80
    assert counts["between"] >= counts["kills"] / 2
    for name in "split", "split over a set", "merge", "merge over a file":
        assert counts[f"{name}: old"] >= 5
        assert counts.get(f"{name}: new", 0) + counts.get(f"{name}: incomplete", 0) >= 1
