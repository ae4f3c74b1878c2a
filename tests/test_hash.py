"""Hashes and manifests: those that llama.cpp published, gguf-py's, and what changes them and what does not."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gguf_schema as gs
from gguf_schema import strategies, tensor_data
from gguf_schema.cli import main
from gguf_schema.cli.hash import KINDS
from gguf_schema.demo import demo_model
from gguf_schema.hashing import Hash, hashes, manifest, metadata_hash
from gguf_schema.hashing.algorithms import ALGORITHMS, METADATA, NAMESPACE

from .shared import corpus_files

# From the README of llama.cpp's examples/gguf-hash: what gguf-hash --all prints of a file with ten tensors. Their data
# is 100.0, 101.0, … as often as SIZES says (found by trying: the SHA-256 are right for these and no other sizes).
SIZES = (1344, 420, 80, 147, 2, 8, 3, 192, 9, 320)
PUBLISHED = """\
xxh64     f66e9cd66a4396a0  test.gguf:tensor_0
sha1      59f79ecefd8125a996fdf419239051a7e99e5f20  test.gguf:tensor_0
sha256    c0510d38fa060c46265e0160a85c7243096b01dd31c2f355bdbb5516b20de1bd  test.gguf:tensor_0
xxh64     7d3a1f9ac04d0537  test.gguf:tensor_1
sha1      4765f592eacf096df4628ba59476af94d767080a  test.gguf:tensor_1
sha256    8514cbcc73692a2c56bd7a33a022edd5ff819614bd23b19915d7224387f397a7  test.gguf:tensor_1
xxh64     a0af5d700049693b  test.gguf:tensor_2
sha1      25cbfbad4513cc348e2c95ebdee69d6ff2fd8753  test.gguf:tensor_2
sha256    947e6b36e20f2cc95e1d2ce1c1669d813d574657ac6b5ac5196158d454d35180  test.gguf:tensor_2
xxh64     e83fddf559d7b6a6  test.gguf:tensor_3
sha1      a9cba73e2d90f2ee3dae2548caa42bef3fe6a96c  test.gguf:tensor_3
sha256    423b044e016d8ac73c39f23f60bf01bedef5ecb03c0230accd824c91fe86f1a1  test.gguf:tensor_3
xxh64     1257733306b7992d  test.gguf:tensor_4
sha1      d7bc61db93bb685ce9d598da89717c66729b7543  test.gguf:tensor_4
sha256    79737cb3912d4201384cf7f16a1a37ff7823f23ea796cb205b6ca361ab9e3ebf  test.gguf:tensor_4
xxh64     d238d16ba4711e58  test.gguf:tensor_5
sha1      0706566c198fe1072f37e0a5135b4b5f23654c52  test.gguf:tensor_5
sha256    60949be8298eced0ecdde64487643d018407bd261691e061d9e9c3dbc9fd358b  test.gguf:tensor_5
xxh64     3fbc3b65ab8c7f39  test.gguf:tensor_6
sha1      73922a0727226a409049f6fc3172a52219ca6f00  test.gguf:tensor_6
sha256    574f4c46ff384a3b9a225eb955d2a871847a2e8b3fa59387a8252832e92ef7b0  test.gguf:tensor_6
xxh64     c22021c29854f093  test.gguf:tensor_7
sha1      efc39cece6a951188fc41e354c73bbfe6813d447  test.gguf:tensor_7
sha256    4c0410cd3c500f078ae5b21e8dc9eb79e29112713b2ab58a882f82a3868d4d75  test.gguf:tensor_7
xxh64     936df61f5d64261f  test.gguf:tensor_8
sha1      c2490296d789a4f34398a337fed8377d943d9f06  test.gguf:tensor_8
sha256    c4401313feeba0261275c3b25bd2d8fe40ce04e0f440c2980ed0e9674c30ff01  test.gguf:tensor_8
xxh64     93fd20c64421c081  test.gguf:tensor_9
sha1      7047ce1e78437a6884337a3751c7ee0421918a65  test.gguf:tensor_9
sha256    23d57cf0d7a6e90b0b3616b41300e0cd354781e812add854a5f95aa55f2bc514  test.gguf:tensor_9
xxh64     5a54d3aad816f302  test.gguf
sha1      d15be52c4ff213e823cb6dd13af7ee2f978e7042  test.gguf
sha256    7dd641b32f59b60dbd4b5420c4b0f6321ccf48f58f6ae201a3dbc4a58a27c6e4  test.gguf
"""

# From gguf-tools' gguf-checksum: the SHA-256 of the pair general.architecture = "llama".
PUBLISHED_PAIR = "60319eb94a7e6ccb90415531d683e4602ea9bc2b9b737458a88a831bd7b898d3"


def written(metadata, tensors=(), **layout):
    file = io.BytesIO()
    gs.write(file, metadata, tensors, **layout)
    return file.getvalue()


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The file of the published manifest, in the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    tensors = {f"tensor_{i}": np.full(size, 100 + i, np.float32) for i, size in enumerate(SIZES)}
    gs.write("test.gguf", {"general.architecture": "llama"}, tensors)
    return "test.gguf"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.gguf").write_bytes(demo_model())
    return "demo.gguf"


def test_what_llama_cpp_published(published, capsys):
    """The same text, where the package xxhash is; without it but for those lines."""
    kinds = ["sha1", "sha256"]
    with contextlib.suppress(ImportError):
        import xxhash  # noqa: F401

        kinds.append("xxh64")
    assert main(["hash", *(f"--{kind}" for kind in kinds), published]) == 0
    lines = [line for line in PUBLISHED.splitlines() if line.split()[0] in kinds]
    assert capsys.readouterr().out.splitlines() == lines


def test_a_manifest_of_llama_cpp_is_checked(published, tmp_path, capsys):
    pytest.importorskip("xxhash")
    (tmp_path / "m").write_text(PUBLISHED)
    assert main(["hash", published, "--check", "m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [f"{line}  -  OK" for line in PUBLISHED.splitlines()]
    assert lines[-1] == "33 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"


def test_sha256_is_the_default(published, capsys):
    assert main(["hash", published]) == 0
    lines = [line for line in PUBLISHED.splitlines() if line.startswith("sha256")]
    assert capsys.readouterr().out.splitlines() == lines


def test_the_namespace():
    """llama.cpp spells it out."""
    assert str(NAMESPACE) == "ef001206-dadc-5f6d-a15f-3359e577d4e5"


def test_xxh3_is_that_of_xxhash():
    """The reference value of no bytes at all (xxHash's own tests: XXH3_64bits, seed 0)."""
    pytest.importorskip("xxhash")
    model = gs.open(written({}, {"none": np.zeros(0, np.float32)}))
    found = {hash.algorithm: hash.value for hash in hashes(model, (), ["xxh64", "xxh3"])}
    assert found == {"xxh64": "ef46db3751d8e999", "xxh3": "2d06800538d394c2"}


STALE = ("Q2_0", "Q8_1")
"""Types that gguf-py 0.19 does not know, or takes for 40 bytes a block."""


@pytest.mark.parametrize(
    "path", [path for path in corpus_files("*/*.gguf") if path.stem not in STALE], ids=lambda path: path.stem
)
def test_gguf_py_says_the_same(path, capsys):
    """sha1, sha256 and the UUID, of real files of every type and of shards."""
    script = pytest.importorskip("gguf.scripts.gguf_hash")
    script.gguf_hash(pytest.importorskip("gguf").GGUFReader(path), str(path), True, False)
    theirs = capsys.readouterr().out.splitlines()
    assert main(["hash", "--sha1", "--sha256", "--uuid", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == theirs


def test_gguf_py_says_the_same_of_the_demo(demo, capsys):
    script = pytest.importorskip("gguf.scripts.gguf_hash")
    script.gguf_hash(pytest.importorskip("gguf").GGUFReader(demo), demo, True, False)
    theirs = capsys.readouterr().out.splitlines()
    assert len(theirs) == 2 * 11 + 3
    assert main(["hash", "--sha1", "--sha256", "--uuid", demo]) == 0
    assert capsys.readouterr().out.splitlines() == theirs


def test_algorithms_that_can_be_gone_through_once():
    with gs.open(demo_model()) as model:
        assert list(hashes(model, iter(["sha1"]), iter(["sha1"]))) == list(hashes(model, ["sha1"], ["sha1"]))


@pytest.mark.parametrize("path", ["tensors", "whole"])
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["md5"], "there is no algorithm 'md5'; there are xxh64, xxh3, sha1, sha256, uuid"),
        (["sha1", ["sha1"]], r"there is no algorithm \['sha1'\]; there are "),
        ([10**5000], "there is no algorithm what cannot be shown; there are "),
        ("sha1", "expected a list of algorithms, found 'sha1'"),
        (None, "expected a list of algorithms, found None"),
        (np.array(5), "expected a list of algorithms, found array"),
    ],
    ids="abcdef",
)
def test_what_is_no_algorithm(path, names, told):
    model = gs.open(demo_model())
    with pytest.raises(gs.GGUFError, match=f"^{path}: {told}"):
        next(hashes(model, **{path: names}))


def test_data_is_read_in_pieces(monkeypatch):
    monkeypatch.setattr(tensor_data, "CHUNK", 100)
    model = gs.open(demo_model())
    shown = []
    found = list(hashes(model, show=lambda done, whole: shown.append((done, whole))))
    together = hashlib.sha256()
    for hash, tensor in zip(found, model.tensors.infos, strict=False):
        data = tensor.data.tobytes()
        assert hash == Hash("sha256", hashlib.sha256(data).hexdigest(), tensor.name)
        together.update(data)
    assert found[-1] == Hash("sha256", together.hexdigest())
    assert shown[-1][0] == shown[-1][1] == sum(tensor.n_bytes for tensor in model.tensors.infos)
    assert len(shown) > shown[-1][1] // 100


def test_memory_is_bounded(tmp_path):
    """64 MiB in one tensor, in less than 4 MiB."""
    path = tmp_path / "big.gguf"
    gs.write(path, {}, {"big": np.zeros(1 << 24, np.float32)})
    with gs.open(path) as model:
        tracemalloc.start()
        list(hashes(model))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 << 20


# Metadata


def test_one_pair_is_hashed_as_others_do(published, capsys):
    assert main(["hash", "--metadata", published]) == 0
    assert capsys.readouterr().out == f"metadata  {PUBLISHED_PAIR}  test.gguf\n"


def test_the_metadata_in_bytes():
    """Two pairs, by hand: key, type, value; in the order of the keys."""
    a = b"\1\0\0\0\0\0\0\0a" + b"\4\0\0\0" + b"\7\0\0\0"  # UINT32 7
    b = b"\1\0\0\0\0\0\0\0b" + b"\x08\0\0\0" + b"\2\0\0\0\0\0\0\0hi"  # STRING "hi"
    long = b"\2\0\0\0\0\0\0\0aa" + b"\7\0\0\0" + b"\1"  # BOOL true
    model = gs.open(written({"b": "hi", "aa": True, "a": 7}, order=">", version=2))
    assert metadata_hash(model).value == hashlib.sha256(a + long + b).hexdigest()


@settings(deadline=None, max_examples=100)
@given(strategies.files(), st.randoms(use_true_random=False))
def test_what_does_not_change_the_metadata(data, random):
    model = gs.open(data)
    pairs = list(model.metadata.pairs)
    random.shuffle(pairs)
    for order, version in ("<", 3), (">", 2), (">", 1):
        other = written(pairs, {"other": np.zeros(3, np.float32)}, order=order, version=version)
        assert metadata_hash(gs.open(other)) == metadata_hash(model)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_what_changes_the_metadata(data):
    model = gs.open(data.draw(strategies.files()))
    pairs = [pair for pair in model.metadata.pairs if pair.key != "general.alignment"]
    if not pairs:
        return
    before = metadata_hash(gs.open(written(pairs)))
    index = data.draw(st.integers(0, len(pairs) - 1))
    key = pairs[index].key
    for changed in (
        [*pairs[:index], *pairs[index + 1 :]],
        [*pairs[:index], pairs[index]._replace(key=f"{key}'"), *pairs[index + 1 :]],
        [*pairs[:index], gs.MetadataKV(key, gs.GGUFValueType.STRING, "quite another value"), *pairs[index + 1 :]],
    ):
        assert metadata_hash(gs.open(written(changed))) != before


def test_no_tensor_is_read_for_the_metadata(demo, reads, capsys):
    with gs.open(demo) as model:
        end = model.data_offset
    reads.clear()
    assert main(["hash", "--metadata", demo]) == 0
    assert max(position for position, _ in reads) < end
    assert len(capsys.readouterr().out.splitlines()) == 1


# Manifests


def test_there_and_back(demo, capsys):
    assert main(["hash", demo, "--manifest", "m", "--sha1", "--sha256", "--uuid", "--metadata"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"gguf-schema: {demo}: the manifest is m, 26 lines\n"
    assert main(["hash", demo, "--check", "m"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "26 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"
    assert main(["hash", demo, "--check", "m", "--uuid"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"


def test_a_bit_that_turned(demo, tmp_path, capsys):
    assert main(["hash", demo, "--manifest", "m"]) == 0
    with gs.open(demo) as model:
        place = model.tensors["output_norm.weight"].data_offset
    data = bytearray((tmp_path / demo).read_bytes())
    data[place] ^= 1
    (tmp_path / demo).write_bytes(data)
    capsys.readouterr()
    assert main(["hash", demo, "--check", "m"]) == 1
    out = capsys.readouterr().out
    failed = [line.split()[2] for line in out.splitlines() if line.endswith("FAILED")]
    assert failed == ["demo.gguf:output_norm.weight", "demo.gguf"]
    assert out.splitlines()[-1] == "10 OK, 2 FAILED, 0 MISSING, 0 UNKNOWN"
    assert main(["hash", demo, "--check", "m", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["good"]
    assert [line["tensor"] for line in report["lines"] if line["status"] == "FAILED"] == ["output_norm.weight", None]


def test_lines_of_all_kinds(demo, tmp_path, capsys):
    """Other folders, other files, comments, capitals, a tensor that is not there, an algorithm that nobody knows."""
    with gs.open(demo) as model:
        *_, norm, _ = hashes(model)
    good = f"sha256  {norm.value.upper()}  C:\\models\\demo.gguf:{norm.tensor}"
    lines = [
        "# a comment",
        "",
        good,
        f"sha256    {norm.value}  /far/away/demo.gguf:gone.weight",
        f"sha256    {norm.value}  other.gguf:{norm.tensor}",
        f"blake3    {norm.value}  demo.gguf:{norm.tensor}",
    ]
    (tmp_path / "m").write_text("\n".join(lines))
    assert main(["hash", demo, "--check", "m"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.rpartition("  -  ")[2] for line in out[:-1]] == ["OK", "MISSING", "UNKNOWN"]
    assert out[-1] == "1 OK, 0 FAILED, 1 MISSING, 1 UNKNOWN; 10 tensors are in no line"
    (tmp_path / "m").write_text(good)
    assert main(["hash", demo, "--check", "m"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN; 10 tensors are in no line"
    )


@pytest.mark.parametrize(
    ("made", "asked", "status", "rest"),
    [
        (["--sha256"], [], 0, ""),
        (["--sha256"], ["--sha1"], 1, "; 11 tensors are in no line; nothing was checked"),
        (["--sha256", "--metadata"], ["--metadata"], 0, ""),
        (["--sha256"], ["--metadata"], 1, "; nothing was checked"),
        (["--metadata"], [], 1, "; 11 tensors are in no line"),
        (["--metadata", "--uuid"], [], 0, ""),
    ],
)
def test_what_is_in_no_line_is_not_right(demo, capsys, made, asked, status, rest):
    assert main(["hash", demo, "--manifest", "m", *made]) == 0
    assert main(["hash", demo, "--check", "m", *asked]) == status
    assert capsys.readouterr().out.splitlines()[-1].partition(" UNKNOWN")[2] == rest
    assert main(["hash", demo, "--check", "m", "--json", *asked]) == status
    assert json.loads(capsys.readouterr().out)["good"] == (not status)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sha256  00  other.gguf\n", "no line of the manifest is about demo.gguf"),
        ("", "no line of the manifest is about demo.gguf"),
        ("sha256  00  xdemo.gguf\n", "no line of the manifest is about demo.gguf"),
        ("sha256  \x1b[2J\n", "line 1 of the manifest is not 'algorithm hash name'"),
    ],
)
def test_what_is_no_manifest(demo, tmp_path, text, told, capsys):
    (tmp_path / "m").write_text(text)
    assert main(["hash", demo, "--check", "m"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "\x1b" not in err


def test_names_cannot_make_lines(tmp_path, monkeypatch, capsys):
    """A tensor's name may hold whatever it likes: it stays one line, and is checked."""
    monkeypatch.chdir(tmp_path)
    evil = "a\nsha256    00  evil.gguf:b\x1b \udcff:c d"
    gs.write("evil.gguf", {}, {evil: np.zeros(3, np.float32), "a b:c": np.ones(3, np.float32)})
    assert main(["hash", "evil.gguf", "--manifest", "m"]) == 0
    lines = (tmp_path / "m").read_text().splitlines()
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    capsys.readouterr()
    assert main(["hash", "evil.gguf", "--check", "m"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"


NAMES = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=())),
    st.text(st.sampled_from("ab:/\\ \n\r\t\x1b\udcff\u202e☃😀n0x")),
)
FILES = NAMES.filter(lambda name: name and not re.search(r"[/\\\0]", name))


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(["", "folder/", "a:b/", "C:\\"]), FILES, st.none() | NAMES)
def test_any_line_is_read_back(folder, file, tensor):
    """It is one printable line, which begins with a backslash where it holds escapes."""
    hash = Hash("sha256", "00", tensor)
    line = manifest.line(folder + file, hash)
    assert line.isprintable()
    assert line.startswith("\\") or line.endswith(file if tensor is None else f"{file}:{tensor}")
    assert list(manifest.lines(io.BytesIO(line.encode() + b"\n"))) == [line]
    assert manifest.parse([line], file) == manifest.parse([f"{line}\r"], file) == [hash]


@settings(deadline=None, max_examples=500)
@given(FILES, st.none() | NAMES, FILES)
def test_no_line_is_about_another_file(file, tensor, other):
    line = manifest.line(file, Hash("sha256", "00", tensor))
    if file != other:
        with pytest.raises(gs.GGUFError, match="no line of the manifest is about"):
            manifest.parse([line], other)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a b", "x.gguf:a b"),
        ("a\\nb", r"x.gguf:a\\nb"),
        ("a\nb", r"x.gguf:a\nb"),
        (" a ", r"x.gguf:\x20a\x20"),
        ("a/x.gguf", "x.gguf:a/x.gguf"),
        ("\u202e\x1b\udcff😀", r"x.gguf:\u202e\x1b\udcff😀"),
    ],
)
def test_lines_in_bytes(name, written):
    """Those with escapes are marked as sha256sum marks them."""
    mark = "" if name == "a b" else "\\"
    assert manifest.line("x.gguf", Hash("sha1", "00", name)) == f"{mark}sha1".ljust(8) + f"  00  {written}"


@pytest.mark.parametrize("escape", ["\\q", "\\", "\\x1", "\\U00110000", "\\u12g4", "\\Uffffffff"])
def test_what_is_no_escape(escape):
    with pytest.raises(gs.GGUFError, match="line 2 of the manifest is no escaped name"):
        manifest.parse(["sha256 00 x", f"\\sha256 00 x:{escape}"], "x")


LIKE = [
    "a\nb",
    "a\\nb",
    "a\\\nb",
    "a",
    " a",
    "a ",
    "a\r",
    "\ta",
    "x.gguf",
    "x.gguf:a",
    "/x.gguf",
    "a\\x20",
    "\udcff",
    "\\udcff",
]
"""Names that may be confused with each other."""


def test_names_that_look_alike_are_told_apart(tmp_path, monkeypatch, capsys):
    """The data of any two of them changes places: both are wrong."""
    monkeypatch.chdir(tmp_path)
    tensors = {name: np.full(3, number, np.float32) for number, name in enumerate(LIKE)}
    gs.write("x.gguf", {}, tensors)
    assert main(["hash", "x.gguf", "--manifest", "m"]) == 0
    assert main(["hash", "x.gguf", "--check", "m"]) == 0
    for first, second in itertools.combinations(LIKE, 2):
        gs.write("x.gguf", {}, {**tensors, first: tensors[second], second: tensors[first]})
        capsys.readouterr()
        assert main(["hash", "x.gguf", "--check", "m", "--json"]) == 1
        lines = json.loads(capsys.readouterr().out)["lines"]
        assert {line["tensor"] for line in lines if line["status"] == "FAILED"} == {first, second, None}
    gs.write("x.gguf", {}, {name: tensors[name] for name in LIKE[1:]})
    assert main(["hash", "x.gguf", "--check", "m", "--json"]) == 1
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert [line["tensor"] for line in lines if line["status"] == "MISSING"] == [LIKE[0]]


def test_a_name_that_is_there_twice(tmp_path, monkeypatch, capsys):
    """Each of the tensors is told by a line of its own, in their order; all lines may be there again."""
    monkeypatch.chdir(tmp_path)
    infos = [{"name": "t", "dimensions": [32], "type": 24, "offset": 32 * number} for number in range(2)]
    model = {"metadata_kv": [], "tensor_infos": infos}
    (tmp_path / "x.gguf").write_bytes(gs.GGUF.build({**model, "tensor_data": b"a" * 32 + b"b" * 32}))
    first, second = (f"sha256  {hashlib.sha256(letter * 32).hexdigest()}  x.gguf:t" for letter in (b"a", b"b"))
    for lines, told in (
        ([first, second], "2 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"),
        ([first, second, first, second], "4 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"),
        ([first], "1 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN; 1 tensors are in no line"),
        ([second, first], "0 OK, 2 FAILED, 0 MISSING, 0 UNKNOWN"),
        ([first, first], "1 OK, 1 FAILED, 0 MISSING, 0 UNKNOWN"),
    ):
        (tmp_path / "m").write_text("\n".join(lines))
        assert main(["hash", "--no-check", "x.gguf", "--check", "m"]) == int(
            told[0] == "0" or ";" in told or "1 F" in told
        )
        assert capsys.readouterr().out.splitlines()[-1] == told


def test_a_manifest_of_any_size_is_read_in_little_memory(demo, tmp_path, capsys):
    """4 GiB of zeros are no line, and lines about other files are not kept."""
    assert main(["hash", demo, "--manifest", "long"]) == 0
    with open("long", "ab") as long, open("sparse", "wb") as sparse:
        long.write(b"sha256  00  other.gguf:a\n" * (1 << 18))
        sparse.truncate(1 << 32)
    tracemalloc.start()
    assert main(["hash", demo, "--check", "sparse"]) == 2
    assert main(["hash", demo, "--check", "long"]) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "line 1 of the manifest is longer than" in capsys.readouterr().err
    assert peak < 5 << 20


@pytest.mark.parametrize("name", ["a\u00a0b", "a\u2028b", "a\x85b", "a\x0bb", "trailing ", "a:b/c d"])
def test_names_that_others_do_not_escape(name, tmp_path, monkeypatch, capsys):
    """gguf-hash writes names as they are."""
    monkeypatch.chdir(tmp_path)
    gs.write("x.gguf", {}, {name: np.zeros(3, np.float32)})
    value = hashlib.sha256(bytes(12)).hexdigest()
    (tmp_path / "m").write_bytes(f"sha256    {value}  x.gguf:{name}\r\n".encode())
    assert main(["hash", "x.gguf", "--check", "m"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 OK, 0 FAILED, 0 MISSING, 0 UNKNOWN"


def test_the_command_knows_all_kinds():
    assert set(KINDS) == {*ALGORITHMS, METADATA}


def test_files_are_not_overwritten(demo, tmp_path, capsys):
    (tmp_path / "m").write_text("mine")
    assert main(["hash", demo, "--manifest", "m"]) == 2
    assert "m is there already; --force replaces it" in capsys.readouterr().err
    assert (tmp_path / "m").read_text() == "mine"
    assert main(["hash", demo, "--manifest", demo, "--force"]) == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert (tmp_path / demo).read_bytes() == demo_model()
    assert main(["hash", demo, "--manifest", "m", "--force"]) == 0
    assert (tmp_path / "m").read_text().startswith("sha256")
    assert main(["hash", demo, "--manifest", "gone/m"]) == 2
    assert "cannot write gone/m" in capsys.readouterr().err


def test_json(demo, capsys):
    assert main(["hash", "--json", "--metadata", "--sha256", demo]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == demo
    assert [hash["algorithm"] for hash in document["hashes"]] == [*["sha256"] * 12, "metadata"]
    assert document["hashes"][-1]["tensor"] is None


def test_without_xxhash(demo, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    assert main(["hash", "--xxh64", demo]) == 2
    assert "xxh64 wants the package xxhash: pip install 'gguf_schema[hash]'" in capsys.readouterr().err


def test_data_that_is_not_there(tmp_path, capsys):
    path = tmp_path / "cut.gguf"
    path.write_bytes(demo_model()[:-300])
    assert main(["hash", "--no-check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "tensor 'blk.0.ffn_norm.weight': 256 bytes expected" in err


INTERRUPTED = """
import os, signal, sys
from gguf_schema import tensor_data
from gguf_schema.cli import main

read, calls = tensor_data.read_exactly, iter(range(100))

def interrupted(*args):
    if next(calls) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return read(*args)

tensor_data.read_exactly = interrupted
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupted(tmp_path):
    """Ctrl-C while it reads: no traceback, no manifest, status 130."""
    big = tmp_path / "big.gguf"
    gs.write(big, {}, {"a": np.zeros(4 << 20, np.float32)})
    command = [sys.executable, "-c", INTERRUPTED, "hash", str(big), "--manifest", str(tmp_path / "m")]
    run = subprocess.run(command, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, b"", b"")
    assert os.listdir(tmp_path) == ["big.gguf"]


def test_types_that_nobody_knows():
    """Their data is what stands up to the next tensor, or to the end."""
    infos = [{"name": name, "dimensions": [4], "type": 200, "offset": offset} for name, offset in (("a", 0), ("b", 64))]
    data = random.Random(1).randbytes(100)
    model = gs.open(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos, "tensor_data": data}))
    found = [hash.value for hash in hashes(model)]
    assert found == [hashlib.sha256(part).hexdigest() for part in (data[:64], data[64:], data)]


def test_a_manifest_of_a_stranger_moves_no_cursor(tmp_path, capsys):
    (tmp_path / "m.gguf").write_bytes(demo_model())
    (tmp_path / "manifest").write_text("sha256  \x1b[31mzz  m.gguf\nsh\x1b[31ma  zz  m.gguf\n")
    assert main(["hash", str(tmp_path / "m.gguf"), "--check", str(tmp_path / "manifest")]) == 1
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert told.count("[31m") == 2
