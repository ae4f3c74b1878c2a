"""Trying readers: the same files each time, every way to fail told from the others, small files, nothing left over."""

import hashlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.fuzz import Limits, Outcome, Report, cases, fuzz, reader, smallest, wanted
from gguf_schema.fuzz.cases import BASES, EACH
from gguf_schema.fuzz.coverage import exercised
from gguf_schema.fuzz.folder import byte_map
from gguf_schema.fuzz.minimise import _infos, _pairs, _parts, built
from gguf_schema.fuzz.running import KEPT, Stopped, arguments, outcome
from gguf_schema.generate import valid_file
from gguf_schema.mutate import mutant, plan
from gguf_schema.validate import PROFILES, check, verdict

posix = pytest.mark.skipif(os.name != "posix", reason="readers are run on POSIX systems only")

PYTHON = [sys.executable, "-S", "-E", "-c"]
"""Starts soon, and reads no settings."""

START = "import os, sys, struct, time; data = open(sys.argv[1], 'rb').read(); n = data[16:24];"
READERS = {
    "accept": "pass",
    "reject": "sys.exit(1)",
    "refusal by another status": "sys.exit(3)",
    "abort": "os.abort()",
    "hang": "\nwhile True: pass",
    "hang without stderr": "sys.stderr.flush(); os.close(2); time.sleep(60)",
    "memory": "x = bytearray(1 << 36)",
    "traceback": "[][1]",
}
GENEROUS, SHORT = Limits(60, 512), Limits(0.3, 512)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path_factory, monkeypatch):
    """Temporary files are made in a folder of their own, which is empty again after the test."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield
    assert list(folder.iterdir()) == []


class Ours:
    """A reader in this process: `read` as of `Reader`."""

    def __init__(self, judge):
        self.judge = judge
        self.runs = 0
        self.stop = None

    def read(self, data):
        self.runs += 1
        return self.judge(data)


def opens(data):
    try:
        gs.open(data).close()
    except gs.GGUFError:
        return Outcome("reject")
    return Outcome("accept")


def ran(script, data=b"GGUF", limits=GENEROUS):
    with reader([*PYTHON, START + script], limits) as made:
        return made.read(data)


def test_seed_and_index_determine_a_case():
    first = list(islice(cases(3), 2 * EACH + 2))
    assert [case.index for case in first] == list(range(2 * EACH + 2))
    for start in 1, EACH - 1, EACH, EACH + 7:
        for case, same in zip(islice(cases(3, start), 5), first[start:], strict=False):
            assert (case.index, case.data, case.label) == (same.index, same.data, same.label)
    assert not {case.data for case in first} & {case.data for case in islice(cases(4), EACH)}
    assert len({case.data for case in first}) == len(first)


def test_a_case_is_made_as_its_label_says():
    for case in islice(cases(2, EACH), EACH):
        assert case.base_seed == 2 * BASES + 1
        if case.number is None:
            assert case.data == valid_file(case.base_seed)
            assert (case.label.operation, case.label.expected) == ("none", "accept")
        else:
            planned = plan(valid_file(case.base_seed), valid_file(case.base_seed + 1))
            assert (case.data, case.label) == mutant(planned, case.base_seed, case.number)


def test_out_writes_the_same_files_each_time(tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["fuzz", "--out", str(one), "--count", "90", "--seed", "5"]) == 0
    assert main(["fuzz", "--out", str(two), "--count", "100", "--seed", "6"]) == 0
    assert main(["fuzz", "--out", str(two), "--count", "90", "--seed", "5"]) == 0
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in two.iterdir()
    }
    labels = json.loads((one / "labels.json").read_text())
    assert len(labels["files"]) == 90 == len(list(one.iterdir())) - 1
    for file, case in zip(labels["files"], cases(5), strict=False):
        data = (one / file["file"]).read_bytes()
        assert data == case.data
        assert (file["sha256"], file["size"]) == (hashlib.sha256(data).hexdigest(), len(data))
        assert [file[name] for name in case.label._fields] == list(case.label)
        assert (file["base"], file["number"]) == (case.base_seed, case.number)
    assert "90 files" in capsys.readouterr().out


def test_out_leaves_what_is_not_its_own(tmp_path, capsys):
    (tmp_path / "0000000.gguf").write_bytes(b"mine")
    assert main(["fuzz", "--out", str(tmp_path), "--count", "1"]) == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]
    assert "labels.json" in capsys.readouterr().err


def test_where_the_path_goes():
    assert arguments(["a", "-x"], "f") == ["a", "-x", "f"]
    assert arguments(["a", "--in={}", "b"], "f") == ["a", "--in=f", "b"]


TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/a/b.py", line 3, in f\n    g()\n'
    '  File "/a/c.py", line 7, in <lambda>\n    x[1]\n    ~^^^\n'
    "{}\n"
)


@pytest.mark.parametrize(
    ("status", "told", "kind", "detail"),
    [
        (0, "", "accept", ""),
        (1, "bad file", "reject", ""),
        (3, "", "reject", ""),
        (255, "", "reject", ""),
        (-signal.SIGSEGV, "", "crash", "SIGSEGV"),
        (128 + signal.SIGABRT, "", "crash", "SIGABRT"),
        (1, TRACEBACK.format("IndexError: list index out of range"), "crash", "IndexError in c.py:7 <lambda>"),
        (1, TRACEBACK.format("a.b.Error"), "crash", "a.b.Error in c.py:7 <lambda>"),
        (1, TRACEBACK.format("MemoryError"), "memory", "MemoryError in c.py:7 <lambda>"),
        (0, "MemoryError, but I can do without", "accept", ""),
        (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'", "memory", "SIGABRT"),
        (
            1,
            "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602\n"
            "READ of size 8\n    #0 0x4f in __asan_memcpy (a.out)\n    #1 0x50 in gguf_read a.c:3\n",
            "crash",
            "AddressSanitizer: heap-buffer-overflow in gguf_read",
        ),
        (0, "a.c:3:7: runtime error: signed integer overflow: 2147483647 + 1", "crash", "a.c:3 runtime error"),
        (101, "thread 'main' panicked at src/main.rs:4:5:\nindex", "crash", "panicked src/main.rs:4:5:"),
        (
            2,
            "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.read(0x1)\n\t/a/b.go:3 +0x1\n",
            "crash",
            "panic in main.read",
        ),
        (-signal.SIGABRT, "ggml.c:21: GGML_ASSERT(n > 0) failed", "crash", "ggml.c:21 GGML_ASSERT"),
        (-signal.SIGABRT, "a.out: b.c:4: main: Assertion `x' failed.", "crash", "b.c:4 Assertion"),
    ],
)
def test_what_statuses_and_words_mean(status, told, kind, detail):
    found = outcome(status, told)
    assert (found.kind, found.detail) == (kind, detail)
    assert found.is_located == (" " in detail)


@posix
@pytest.mark.parametrize(
    ("name", "kind", "detail"),
    [
        ("accept", "accept", ""),
        ("reject", "reject", ""),
        ("refusal by another status", "reject", ""),
        ("abort", "crash", "SIGABRT"),
        ("hang", "hang", ""),
        ("hang without stderr", "hang", ""),
        ("traceback", "crash", "IndexError in <string>:1 <module>"),
    ],
)
def test_runs(name, kind, detail):
    found = ran(READERS[name], limits=SHORT if "hang" in name else GENEROUS)
    assert (found.kind, found.detail) == (kind, detail)


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS limits no memory")
def test_memory_is_limited():
    assert ran(READERS["memory"]).kind == "memory"
    assert ran("x = bytes(1 << 29); sys.exit(4)", limits=Limits(60, 0)).kind == "reject"


@posix
def test_what_is_said_does_not_pile_up():
    found = ran("sys.stderr.write('x' * 10**7 + data.decode() + sys.argv[1]); sys.exit(1)")
    assert found.kind == "reject"
    assert len(found.told) < KEPT
    assert found.told.endswith("xGGUF{}")


@posix
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_what_is_ended_takes_its_children_with_it(tmp_path):
    mark = tmp_path / "mark"
    script = f"p = os.fork()\nif p: open({str(mark)!r}, 'w').write(f'{{p}} ')\ntime.sleep(600)"
    with reader([*PYTHON, START + script], Limits(600, 512)) as made, ThreadPoolExecutor(1) as pool:
        run = pool.submit(made.read, b"")
        while not (mark.exists() and mark.read_text().endswith(" ")) and not run.done():
            time.sleep(0.05)
        made.stop.set()
        with pytest.raises(Stopped):
            run.result()
    status = Path(f"/proc/{int(mark.read_text())}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":  # else it sleeps for minutes
        time.sleep(0.05)


@posix
def test_what_cannot_be_run(tmp_path, capsys):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert main(["fuzz", "--count", "2", "--", str(script)]) == 2
    assert "cannot be run" in capsys.readouterr().err
    assert main(["fuzz", "--count", "2", "--", "no-such-command"]) == 2
    assert "no command" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--out", "x", "--", "true"],
        ["--out", "x", "--time", "1"],
        ["--coverage"],
        ["--coverage", "--out", "x"],
        ["--time", "1", "--count", "1", "--", "true"],
        ["--seed", "-1", "--", "true"],
        ["--time", "nan", "--", "true"],
    ],
)
def test_usage(wrong, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fuzz", *wrong])
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def tried(judge, count=10 * EACH, profile="default", seed=1):
    return fuzz(Ours(judge), seed, count=count, jobs=2, profile=PROFILES[profile])


def test_our_own_reader_does_nothing_wrong():
    report = tried(opens)
    assert report.findings == {}
    assert report.outcomes.total() == report.next == 10 * EACH
    assert 0 < report.unjudged < 0.1 * report.next
    assert {"accept", "reject"} == set(report.outcomes)


@pytest.mark.parametrize("name", ["default", "strict"])
def test_what_is_right_agrees_with_the_validator(name):
    profile = PROFILES[name]
    compared = 0
    for case in islice(cases(7), 6 * EACH):
        right = wanted(case.label, case.data, profile)
        if right is not None:
            compared += 1
            assert (right == "reject") == (verdict(check(case.data), profile) == "reject"), case.label
    assert compared > 5 * EACH


def test_other_profiles_are_asked_of_the_validator():
    case = next(cases(0))
    big = valid_file(1, order=">")
    assert wanted(case.label, big, PROFILES["llama.cpp"]) == "reject"
    assert wanted(case.label, big, PROFILES["gguf-py"]) == "accept"
    assert wanted(case.label, big, None) is None


def test_wrong_verdicts_are_found_folded_and_made_small():
    report = tried(lambda data: Outcome("accept"))
    assert {finding.kind for finding in report.findings.values()} == {"wrongly-accepted"}
    assert report.counts.total() > len(report.findings) > 100
    assert report.counts.total() + report.unjudged < report.outcomes.total()
    sizes = []
    for finding in list(report.findings.values())[:60]:
        ours = Ours(lambda data: Outcome("accept"))
        small = smallest(ours, finding, PROFILES["default"])
        assert ours.runs <= 150
        assert len(small) <= len(finding.case.data)
        assert verdict(check(small), PROFILES["default"]) == "reject"
        assert finding.case.label.rule in {None, *(fault.code for fault in check(small))}
        sizes.append(len(small))
    assert sorted(sizes)[len(sizes) // 2] <= 200
    rejected = tried(lambda data: Outcome("reject"))
    assert list(rejected.findings) == [("wrongly-rejected", "", "none", "")]
    first = next(iter(rejected.findings.values()))
    small = smallest(Ours(lambda data: Outcome("reject")), first, PROFILES["default"])
    assert verdict(check(small), PROFILES["default"]) != "reject"
    assert len(small) <= 24


def test_what_a_base_shows_itself_is_not_told_of_its_mutants():
    big = tried(lambda data: Outcome("reject" if data[4:8] in (b"\0\0\0\3", b"\0\0\0\2") else opens(data).kind))
    rejected = [signature for signature in big.findings if signature[0] == "wrongly-rejected"]
    assert big.counts["wrongly-rejected", "", "none", ""] > 100
    assert len(rejected) <= 5  # those that make a file big-endian
    located = Outcome("crash", "f in a.c:1", True)
    assert list(tried(lambda data: located).findings) == [("crash", "f in a.c:1")]
    assert list(tried(lambda data: Outcome("crash", "SIGFPE")).findings) == [("crash", "SIGFPE", "none", "")]


def test_what_is_left_out_leaves_a_good_file():
    """Of a valid file any pairs and tensors can go: what is left is as it was."""
    draw = random.Random(1)
    dropped = 0
    for case in islice(cases(9), 0, 60 * EACH, EACH):
        offered = (*_infos(case.base), *_pairs(case.base))
        parts = [part for part in offered if not part.alignment and draw.random() < 0.5]  # offsets go by the alignment
        starts = {part.edit[0] for part in parts}
        dropped += len(parts)
        data = built(case, parts)
        assert not [fault for fault in check(data) if fault.severity == "error"]
        with gs.open(data) as left, gs.open(case.data) as whole:
            keys = [pair.key for pair in case.base.pairs if pair.field.start not in starts]
            names = [info.name for info in case.base.infos if info.field.start not in starts]
            assert list(left.metadata) == keys
            assert list(left.tensors) == names
            for name in names:
                assert left.tensors[name].data.tobytes() == whole.tensors[name].data.tobytes()
        small = built(case, [part for kind in list(_parts(case))[1:] for part in kind])
        assert len(small) == 24
        gs.open(small).close()
    assert dropped > 100


def test_arrays_and_texts_become_short():
    for case in islice(cases(9), 0, 40 * EACH, EACH):
        *_, arrays, texts = _parts(case)
        with gs.open(built(case, [*arrays, *texts]), check=False) as model:
            assert len(model.metadata.pairs) == len(case.base.pairs)
            for pair in model.metadata.pairs:
                assert len(pair.key.encode()) <= 2 or pair.key in {
                    one.key for one in case.base.pairs if len(one.key) < 3
                }
                assert not isinstance(pair.type, gs.ArrayType) or len(pair.value) == 0


PLANTED = (
    "n = struct.unpack('<Q', n)[0] if len(n) == 8 and data[4:8] == bytes([3, 0, 0, 0]) else 0\n"
    "if n > 1 << 62: os.abort()\n"
    "if len(data) < 16: [][1]\n"
    "if data[:4] != b'GGUF': sys.exit(1)\n"
)


@posix
def test_findings_are_saved_and_shown_again(tmp_path, capsys):
    command = [*PYTHON, START + PLANTED]
    saved = tmp_path / "saved"
    options = ["fuzz", "--seed", "1", "--count", "130", "--timeout", "60", "--memory", "0", "--json"]
    assert main([*options, "--save", str(saved), "--", *command, "{}"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["outcomes"].keys() == {"accept", "crash", "reject"}
    assert (found["next"], found["interrupted"]) == (130, False)
    details = {finding["detail"] for finding in found["findings"]}
    assert details == {"SIGABRT", "IndexError in <string>:3 <module>"}
    assert sum(finding["count"] for finding in found["findings"]) == found["outcomes"]["crash"]
    for finding in found["findings"]:
        path = Path(finding["file"])
        assert path.stat().st_size == finding["size"] <= (24 if finding["detail"] == "SIGABRT" else 3)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == finding["sha256"]
        kept = json.loads(path.with_suffix(".json").read_text())
        assert kept.items() <= finding.items()
        assert (
            path.with_suffix(".txt")
            .read_text()
            .splitlines()[-1]
            .startswith("metadata_kv_count at byte 16" if finding["detail"] == "SIGABRT" else "magic at byte 0")
        )
        again = subprocess.run(shlex.split(kept["reproduce"]), capture_output=True, check=False)
        assert outcome(again.returncode, again.stderr.decode()).detail == finding["detail"]
    assert len(os.listdir(saved)) == 3 * len({finding["file"] for finding in found["findings"]})


@posix
def test_the_same_report_with_any_number_of_jobs_and_from_the_middle(capsys):
    def findings(*options):
        assert main(["fuzz", "--json", "--seed", "1", "--timeout", "60", *options, "--", *PYTHON, START + PLANTED]) == 1
        return capsys.readouterr().out

    assert findings("--count", "130") == findings("--count", "130", "--jobs", "5")
    whole = json.loads(findings("--count", "130"))
    for finding in whole["findings"]:
        again = shlex.split(finding["reproduce"])
        assert again[:2] == ["gguf-schema", "fuzz"]
        assert main([*again[1:]]) == 1
        assert finding["operation"] in capsys.readouterr().out


@posix
def test_nothing_found_is_status_0(capsys):
    assert main(["fuzz", "--count", "5", "--", "true", "{}"]) == 0
    assert "5 files (5 accept), 0 findings" in capsys.readouterr().out
    assert main(["fuzz", "--time", "0.2", "--json", "--", "true"]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert sum(timed["outcomes"].values()) == timed["next"]


@posix
def test_interrupted_it_tells_what_was_found():
    def show(done, whole):
        if done == 100:
            raise KeyboardInterrupt

    with reader(["false"], GENEROUS) as made:
        report = fuzz(made, 0, count=500, jobs=2, profile=PROFILES["default"], show=show)
        assert made.stop.is_set()
    assert isinstance(report, Report)
    assert report.is_interrupted
    assert report.next == report.outcomes["reject"] == 100
    assert report.findings


@posix
def test_interrupted_from_outside(tmp_path):
    mark = tmp_path / "mark"
    script = START + f"open({str(mark)!r}, 'w').close(); time.sleep(600)"
    command = [sys.executable, "-m", "gguf_schema", "fuzz", "--timeout", "600", "--json", "--", *PYTHON, script]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not mark.exists() and run.poll() is None:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate()
    assert (run.returncode, err) == (130, b"")
    assert json.loads(out)["interrupted"] is True


def test_maps_of_what_cannot_be_read():
    assert byte_map(b"") == "magic at byte 0: expected b'GGUF', found b'': an empty file"
    for case in islice(cases(11), 3 * EACH):
        lines = byte_map(case.data).splitlines()
        assert lines[0].startswith("           0            4") or lines[0].startswith(("magic", "version"))


def test_what_a_file_exercises():
    assert exercised(b"GGUF") == {("rules", fault.code) for fault in check(b"GGUF")} != set()
    data = valid_file(3, order=">", version=2)
    found = exercised(data)
    with gs.open(data) as model:
        assert {("versions", "2"), ("orders", "big")} < found
        assert {name for kind, name in found if kind == "tensor types"} == {
            tensor.type.name for tensor in model.tensors.values()
        }
        types = [pair.type for pair in model.metadata.pairs]
    arrays = {type.type.name for type in types if isinstance(type, gs.ArrayType)}
    scalars = {type.name for type in types if not isinstance(type, gs.ArrayType)}
    assert {name for kind, name in found if kind == "element types"} == arrays
    assert {name for kind, name in found if kind == "value types"} == scalars | ({"ARRAY"} if arrays else set())


def test_coverage_of_the_suite_is_whole_and_a_few_files_do_as_much(capsys):
    suite = Path(__file__).parent / "suite"
    assert main(["fuzz", "--coverage", "--json", str(suite)]) == 0
    whole = json.loads(capsys.readouterr().out)
    for kind in "versions", "orders", "value types", "element types", "tensor types", "rules":
        assert whole["missing"][kind] == [], kind
    assert 0 < len(whole["subset"]) < len(list(suite.rglob("*.gguf")))
    assert main(["fuzz", "--coverage", "--json", *whole["subset"]]) == 0
    assert json.loads(capsys.readouterr().out)["covered"] == whole["covered"]


def test_coverage_tells_what_is_missing(tmp_path, capsys):
    for version in 2, 3:
        (tmp_path / f"{version}.gguf").write_bytes(valid_file(1, order="<", version=version))
    assert main(["fuzz", "--coverage", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["versions: 2 of 3", "  not 1", "orders: 1 of 2", "  not big"]
    assert "2 of 2 files have as much as all:" in lines
