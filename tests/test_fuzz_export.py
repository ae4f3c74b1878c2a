"""Seeds and a dictionary for fuzzers that know nothing of the format."""

import re
import zipfile
from functools import cache

import pytest

import gguf_schema as gs
from gguf_schema import keys
from gguf_schema.cli import main
from gguf_schema.fuzz.coverage import KINDS, coverage, exercised
from gguf_schema.fuzz.dictionary import dictionary, words
from gguf_schema.fuzz.seeds import seeds
from gguf_schema.generate import valid_file
from gguf_schema.generate.files import LAYOUTS
from gguf_schema.mutate import plan
from gguf_schema.validate import PROFILES, check, verdict

T, Q = gs.GGUFValueType, gs.GGMLQuantizationType
LINE = re.compile(r'[A-Za-z0-9_]+="((?:[ !#-\[\]-~]|\\\\|\\"|\\x[0-9A-Fa-f]{2})+)"')
"""A line that libFuzzer and AFL++ read: AFL++ takes no other characters in a name, and neither takes other escapes."""
ESCAPE = re.compile(rb'\\(?:x([0-9A-Fa-f]{2})|(["\\]))')


def read(text):
    """The words of a dictionary."""
    found = []
    for line in text.splitlines():
        raw = LINE.fullmatch(line)[1].encode("ascii")
        found.append(ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else match[2], raw))
    return found


@cache
def some_seeds():
    return seeds()


def test_a_dictionary_is_read_as_it_was_meant():
    assert read(dictionary()) == list(words().values())
    assert read('a="\\\\\\"\\x00\\xfFx"\n_1=" "') == [b'\\"\0\xffx', b" "]
    for wrong in 'a="', 'a=""', 'a-b="c"', 'a="\\n"', 'a="\\x0"', 'a="é"', "a='b'":
        assert not LINE.fullmatch(wrong), wrong


def test_words_are_different_and_not_too_long():
    found = list(words().values())
    assert len(set(found)) == len(found)
    assert {len(word) <= 64 for word in found} == {True}  # the longest that libFuzzer takes; AFL++ takes 128 bytes


def test_every_word_is_what_the_schema_builds():
    """Files with all types and keys, and the changes that mutants are made by, of either byte order."""
    texts = [key.of("llama") for key in keys.KEYS]
    built = []
    for order, version in LAYOUTS:
        layout = gs.structs(order, version)
        pairs = [layout.metadata_kv.build({"key": text, "value_type": T.UINT8, "value": 0}) for text in texts]
        pairs.append(layout.metadata_kv.build({"key": "a.b", "value_type": T.STRING, "value": "llama"}))
        types = [layout.array.build({"type": type, "array": []}) for type in T]
        infos = [
            layout.tensor_info.build({"name": "", "dimensions": [], "type": type, "offset": 0}) for type in [*Q, 0, 1]
        ]
        built += [*pairs, *types, *infos, layout.gguf.build({"metadata_kv": [], "tensor_infos": []})]
    built.append(gs.schema.MAGIC[::-1])
    changes = {
        edit[2]
        for order, version in LAYOUTS
        for seed in range(8)
        for change, _ in plan(valid_file(seed, order, version)).fixed
        for edit in change.edits[:1]
        if 0 < len(edit[2]) <= 8
    }
    whole = b"".join(built)
    numbers = {name: word for name, word in words().items() if word not in whole}
    assert set(numbers.values()) <= changes
    assert len(numbers) < 60


def test_words_are_of_every_kind():
    found = set(words().values())
    for order in "<>":
        layout = gs.structs(order)
        assert {layout.value_type.build(type) for type in T} <= found
        assert {layout.uint32.build(type) for type in Q} <= found
        assert {layout.uint32.build(version) for version in (1, 2, 3)} <= found
        edges = (0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
        assert {layout.uint64.build(number) for number in edges} <= found
    assert {b"GGUF", b"FUGG"} <= found
    string = gs.structs().string
    standard = [key for key in keys.KEYS if "{" not in key.template.replace("{arch}", "")]
    assert {string.build(key.of("llama")) for key in standard} <= found


def test_a_new_key_is_a_word(monkeypatch):
    monkeypatch.setattr(keys, "KEYS", (*keys.KEYS, keys.Key("{arch}.new", T.UINT8, "")))
    assert words()["key_llama__new"] == gs.structs().string.build("llama.new")


def test_seeds_are_good_small_and_exercise_everything():
    made = some_seeds()
    assert made == sorted(made, key=len)
    assert len(made) <= 40
    assert len(made[-1]) <= 600
    for data in made:
        assert verdict(check(data), PROFILES["default"]) != "reject"
        gs.open(data).close()
    found = coverage({data: exercised(data) for data in made})
    assert {kind: missing for kind, missing in found.missing.items() if kind != "rules"} == {
        kind: [] for kind in KINDS if kind != "rules"
    }
    assert sorted(found.subset) == sorted(made)  # none can be spared
    assert len(found.covered["rules"]) >= 15


def test_the_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gguf_schema.fuzz.export.seeds", some_seeds)
    folder = tmp_path / "new" / "folder"
    assert main(["fuzz", "--export", "libfuzzer", str(folder)]) == 0
    sizes = list(map(len, some_seeds()))
    assert f"{len(sizes)} files of {sizes[0]} to {sizes[-1]} bytes, {sum(sizes)} in all" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"gguf.dict", "gguf_seed_corpus", "gguf_seed_corpus.zip"}
    assert (folder / "gguf.dict").read_text("ascii") == dictionary()
    corpus = {path.name: path.read_bytes() for path in (folder / "gguf_seed_corpus").iterdir()}
    assert [corpus[name] for name in sorted(corpus)] == some_seeds()
    with zipfile.ZipFile(folder / "gguf_seed_corpus.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == corpus
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "gguf_seed_corpus" / "999.gguf").write_bytes(b"of an older one")
    (folder / "gguf_seed_corpus" / "mine").write_bytes(b"")
    assert main(["fuzz", "--export", "libfuzzer", str(folder)]) == 0
    (folder / "gguf_seed_corpus" / "mine").unlink()
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder_of_somebody_else(tmp_path, capsys):
    (tmp_path / "mine").write_bytes(b"mine")
    assert main(["fuzz", "--export", "libfuzzer", str(tmp_path)]) == 2
    assert "gguf.dict" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(SystemExit):
        main(["fuzz", "--export", "honggfuzz", str(tmp_path / "new")])
    assert "honggfuzz" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
