"""What is found of readers: each once, as a small file, with how to see it again; nothing left over."""

import errno
import hashlib
import itertools
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

import gguf_schema as gs
from gguf_schema.cli import main
from gguf_schema.fuzz import Finding, Found, Outcome, Report, _at_stake, cases, fuzz, reader, smallest, wanted
from gguf_schema.fuzz.cases import BASES, EACH
from gguf_schema.fuzz.finding import merged
from gguf_schema.fuzz.folder import keep
from gguf_schema.fuzz.minimise import _infos, _pairs, _parts, built
from gguf_schema.fuzz.outcomes import outcome
from gguf_schema.generate import valid_file
from gguf_schema.terminal import printable
from gguf_schema.validate import PROFILES, check, verdict

from .fuzzing import GENEROUS, PYTHON, START, Ours, opens, posix

T = gs.GGUFValueType
pytestmark = pytest.mark.usefixtures("nothing_left")


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


def deepest(data):
    """Levels of arrays, as told by bytes that look like a type and the number of one inner array."""
    for order, version in itertools.product("<>", (1, 3)):
        layout = gs.structs(order, version)
        level = layout.value_type.build(T.ARRAY) + layout.length.build(1)
        yield max(
            (len(found) // len(level) for found in re.findall(b"(?:" + re.escape(level) + b")+", data)), default=0
        )


def rules(data):
    return {fault.code for fault in check(data)}


@pytest.mark.parametrize(
    ("operation", "holds", "most"),
    [
        ("nested-past-python", lambda data: max(deepest(data)) >= 40, 24 + 25 + 42 * 12),
        ("string-long", lambda data: re.search(rb"(\.x){200}", data), 24 + 50 + 400),
        ("key-too-long", lambda data: "key-long" in rules(data), 24 + 24 + 65_536),
        ("name-too-long", lambda data: "name-long" in rules(data), 24 + 50 + 65),
        ("dimensions-made-65", lambda data: "dimensions-too-many" in rules(data), 24 + 30 + 9 * 8),
    ],
)
def test_what_was_put_in_becomes_short(operation, holds, most):
    judge = Ours(lambda data: Outcome("crash", "SIGSEGV") if holds(data) else Outcome("accept"))
    found = [case for case in islice(cases(3), 80 * EACH) if case.label.operation == operation and holds(case.data)]
    assert found
    for case in found[:5]:
        small = smallest(judge, Finding("crash", case, Outcome("crash", "SIGSEGV")), None)
        assert holds(small)
        assert len(small) <= most


PLANTED = (
    "n = struct.unpack('<Q', n)[0] if len(n) == 8 and data[4:8] == bytes([3, 0, 0, 0]) else 0\n"
    "if n > 1 << 62: os.abort()\n"
    "if len(data) < 16: [][1]\n"
    "if data[:4] != b'GGUF': sys.exit(1)\n"
)


def assert_true_of(found, data):
    """What is told of a finding is true of its file, and of the case that it was made from."""
    faults = check(data)
    assert (found["size"], found["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert found["verdict"] == verdict(faults, PROFILES["default"])
    assert [(fault["code"], fault["path"], fault["start"]) for fault in found["faults"]] == [
        (fault.code, fault.path, fault.start) for fault in faults
    ]
    made = found["made_from"]
    place = 0 if made["number"] is None else 1
    case = next(
        case
        for case in islice(cases(made["base"] // BASES, made["base"] % BASES * EACH + place), EACH - place)
        if case.number == made["number"]
    )
    assert made["size"] == len(case.data)
    assert {name: made[name] for name in case.label._fields} == case.label._asdict()


@posix
def test_what_is_told_is_true_of_the_file(tmp_path, capsys):
    options = ["fuzz", "--profile", "llama.cpp", "--count", "70", "--seed", "3", "--timeout", "60"]
    for one in (["--save", str(tmp_path)], []):
        assert main([*options, *one, "--json", "--", "true"]) == 1
        found = json.loads(capsys.readouterr().out)["findings"]
        for finding in found:
            made = finding["made_from"]
            if "file" in finding:
                data = Path(finding["file"]).read_bytes()
            else:
                start = made["base"] % BASES * EACH
                data = next(case.data for case in islice(cases(3, start), EACH) if case.number == made["number"])
            assert_true_of(finding, data)
            codes = {fault["code"] for fault in finding["faults"]} & PROFILES["llama.cpp"].refuses
            assert finding["profile"] == {"name": "llama.cpp", "verdict": "reject", "codes": sorted(codes)}
            assert codes
    assert {finding["made_from"]["expected"] for finding in found} >= {"accept", "reject"}
    assert main([*options, "--", "true"]) == 1
    out = capsys.readouterr().out
    for finding in found:
        assert f"  profile llama.cpp: reject for {'; '.join(finding['profile']['codes'])}\n" in out


def test_what_became_the_same_is_one_finding_and_what_differs_has_another_name(tmp_path):
    first, *others = islice(cases(1), 4)
    crash = Finding("crash", first, Outcome("crash", "SIGABRT"))
    found = [
        Found(crash, b"GGUF", 2),
        Found(crash._replace(case=others[0]), b"GGUF", 3),
        Found(crash._replace(outcome=Outcome("crash", "f in a.c:1", True)), b"GGUF", 1),
        Found(crash._replace(readers=(1,)), b"GGUF", 1),
        Found(crash, b"GGU", 1),
        Found(crash._replace(kind="hang"), b"GGUF", 1),
    ]
    left = merged(found)
    assert left == [found[0]._replace(files=5), *found[2:]]
    with reader(["true"], GENEROUS) as one, reader(["false"], GENEROUS) as other:
        files = {keep(tmp_path, each, [one, other])["file"] for each in left}
        assert files.isdisjoint(keep(tmp_path, each, [other, one])["file"] for each in left)
    assert len(files) == len(left)


@posix
def test_findings_that_became_the_same_are_told_once(tmp_path, capsys):
    assert (
        main(["fuzz", "--count", "130", "--profile", "default", "--json", "--save", str(tmp_path), "--", "true"]) == 1
    )
    found = json.loads(capsys.readouterr().out)["findings"]
    assert len({finding["sha256"] for finding in found}) == len({finding["file"] for finding in found}) == len(found)
    assert len(list(tmp_path.iterdir())) == 3 * len(found)
    assert main(["fuzz", "--count", "130", "--profile", "default", "--json", "--", "true"]) == 1
    whole = json.loads(capsys.readouterr().out)["findings"]
    assert len(whole) > len(found)
    assert sum(finding["count"] for finding in found) == sum(finding["count"] for finding in whole)


def test_without_a_rule_one_of_the_codes_stays():
    """Else anything that is wrong with a file would do: the small ones would all be cut files."""
    found = [
        finding
        for finding in tried(lambda data: Outcome("accept"), profile="spec").findings.values()
        if finding.case.label.rule is None
    ]
    assert len(found) > 5
    for finding in found[:20]:
        small = smallest(Ours(lambda data: Outcome("accept")), finding, PROFILES["spec"])
        assert rules(small) & rules(finding.case.data) & PROFILES["spec"].refuses
    lost = next(case for case in cases(3) if case.label.operation == "info-lost" and "name-empty" in rules(case.data))
    at_stake = _at_stake(Finding("wrongly-rejected", lost, Outcome("reject")), PROFILES["default"])
    assert at_stake == ("accept", rules(lost.data) - rules(lost.base.data))  # what is told of the base is not of it


def test_a_run_from_the_middle_knows_what_its_base_shows():
    def rejects(data):
        return Outcome("reject")

    whole = fuzz(Ours(rejects), 1, start=EACH, count=EACH, jobs=2, profile=PROFILES["default"])
    report = fuzz(Ours(rejects), 1, start=EACH + 5, count=EACH - 5, jobs=2, profile=PROFILES["default"])
    assert list(report.findings) == list(whole.findings) == [("wrongly-rejected", "", "none", "")]
    assert (report.next, report.outcomes) == (2 * EACH, {"reject": EACH - 5})
    assert report.unchanged == whole.unchanged == {"reject": 1}
    assert report.findings["wrongly-rejected", "", "none", ""].case.index > EACH + 4


@posix
def test_a_reader_that_refuses_what_is_valid_is_told(capsys):
    assert main(["fuzz", "--count", "130", "--against", "false", "--json", "--", "true"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["unchanged"], found["unchanged_against"]) == ({"accept": 3}, {"reject": 3})
    told = "the other command refused 3 of 3 unchanged files: mutants of them tell little"
    assert err == f"gguf-schema: fuzz: {told}\n"
    assert main(["fuzz", "--count", "1", "--", "false"]) == 0
    out, err = capsys.readouterr()
    told = "refused 1 of 1 unchanged file: mutants of them tell little"
    assert f"\n{told}\n" in out
    assert err == f"gguf-schema: fuzz: {told}\n"
    assert main(["fuzz", "--count", "130", "--", "true"]) == 0
    assert capsys.readouterr().err == ""


@posix
def test_where_findings_cannot_be_saved(tmp_path, capsys, monkeypatch):
    mark = tmp_path / "file"
    mark.write_bytes(b"")
    assert main(["fuzz", "--save", str(mark), "--", "sh", "-c", f"rm -f {mark}"]) == 2
    assert capsys.readouterr().err == f"gguf-schema: fuzz: {mark}: File exists\n"
    assert mark.exists()

    def full(path, chunks):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("gguf_schema.fuzz.folder.save", full)
    command = ["fuzz", "--count", "70", "--profile", "default", "--json", "--save", str(tmp_path / "new"), "--", "true"]
    assert main(command) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert "No space left on device" in found["trouble"]
    assert "No space left on device" in err
    for finding in found["findings"]:
        assert finding["reproduce"].startswith("gguf-schema fuzz ")
        assert finding["size"] == finding["made_from"]["size"]


@posix
def test_why_verdicts_are_not_compared(capsys):
    assert main(["fuzz", "--count", "1", "--", "true"]) == 0
    assert "1 verdict not compared: no profile is given\n" in capsys.readouterr().out
    main(["fuzz", "--count", "200", "--profile", "default", "--", "true"])
    assert " not compared: it is not known what is right\n" in capsys.readouterr().out


@posix
def test_findings_are_saved_and_shown_again(tmp_path, capsys):
    command = [*PYTHON, START + PLANTED]
    saved = tmp_path / "saved"
    options = ["fuzz", "--seed", "8", "--count", "130", "--timeout", "60", "--memory", "0", "--json"]
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
        assert_true_of(finding, path.read_bytes())
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
        found = json.loads(capsys.readouterr().out)
        for finding in found["findings"]:
            assert finding.pop("seconds") > 0
        return found

    whole = findings("--count", "260")
    assert whole == findings("--count", "260", "--jobs", "5")
    for finding in whole["findings"]:
        again = shlex.split(finding["reproduce"])
        assert again[:2] == ["gguf-schema", "fuzz"]
        assert main([*again[1:]]) == 1
        assert finding["made_from"]["operation"] in capsys.readouterr().out


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

    with reader(["false"], GENEROUS) as made, reader(["false"], GENEROUS) as other:
        report = fuzz(made, 0, count=500, jobs=2, profile=PROFILES["default"], show=show, against=other)
        assert made.stop.is_set()
        assert other.stop.is_set()
    assert isinstance(report, Report)
    assert report.is_interrupted
    assert report.next == report.outcomes["reject"] == 100
    assert report.findings


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_from_outside(number, tmp_path):
    """As often as somebody likes; what was found is told, and nobody goes on."""
    mark = tmp_path / "mark"
    script = (
        START
        + f"mark = {str(mark)!r}\nif os.path.exists(mark): open(mark, 'w').write(f'{{os.getpid()}} '); time.sleep(600)"
    )
    command = [sys.executable, "-m", "gguf_schema", "fuzz", "--timeout", "600", "--save", str(tmp_path / "saved")]
    run = subprocess.Popen(
        [*command, "--jobs", "1", "--", *PYTHON, script + "\nopen(mark, 'w'); [][1]"], stdout=-1, stderr=-1
    )
    while not (mark.exists() and mark.read_text().endswith(" ")) and run.poll() is None:
        time.sleep(0.05)
    for _ in range(3):
        run.send_signal(number)
        time.sleep(0.01)
    out, err = run.communicate()
    assert (run.returncode, err) == (1, b"")
    assert b"crash: IndexError" in out
    assert b"\ninterrupted\n" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@posix
def test_interrupted_before_anything_was_found(tmp_path):
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


# Two readers.


def compared(one, other, count=10 * EACH, profile="default"):
    return fuzz(Ours(one), 1, count=count, jobs=2, profile=PROFILES[profile], against=Ours(other))


def lenient(data):
    """A reader that sees no unknown value type."""
    faults = [fault for fault in check(data) if fault.code != "value-type-unknown"]
    return Outcome(verdict(faults, PROFILES["default"]).replace("warn", "accept"))


def test_readers_that_do_the_same_do_not_disagree():
    report = compared(opens, opens)
    assert report.findings == {}
    assert report.against == report.outcomes
    assert report.outcomes.total() == 10 * EACH


def test_disagreements_are_folded_and_made_small():
    report = compared(opens, lenient)
    assert report.findings
    for signature, finding in report.findings.items():
        label = finding.case.label
        assert (finding.kind, finding.outcome.detail, finding.readers) == ("disagreement", "reject, accept", (0, 1))
        told = (label.rule,) if label.rule else (label.operation, label.path.rpartition(".")[2].partition("[")[0])
        assert signature == ("disagreement", "reject, accept", *told)
        small = smallest(Ours(opens), finding, None, Ours(lenient))
        assert len(small) <= 100
        assert {label.rule} - {None} <= {"value-type-unknown"} <= {fault.code for fault in check(small)}
        assert (opens(small).kind, lenient(small).kind) == ("reject", "accept")
        assert 0 < finding.seconds <= report.seconds


def test_a_verdict_is_compared_with_a_profile_for_the_first_reader_only():
    assert {finding.kind for finding in compared(opens, lenient).findings.values()} == {"disagreement"}
    kinds = {finding.kind for finding in compared(lenient, opens).findings.values()}
    assert kinds == {"disagreement", "wrongly-accepted"}


def test_who_crashes_is_told_and_no_disagreement():
    def crashes(data):
        return Outcome("crash", "f in a.c:1", True) if len(data) < 24 else opens(data)

    for one, other, who in ((crashes, opens, 0), (opens, crashes, 1)):
        (found,) = compared(one, other).findings.values()
        assert (found.kind, found.outcome.detail, found.readers) == ("crash", "f in a.c:1", (who,))
    found = list(compared(crashes, crashes).findings.values())
    assert sorted((finding.kind, finding.readers) for finding in found) == [("crash", (0,)), ("crash", (1,))]


def test_what_a_base_shows_is_not_told_of_its_mutants_of_two_readers():
    report = compared(opens, lambda data: Outcome("reject" if data[4:8] == b"\0\0\0\3" else opens(data).kind))
    assert report.counts["disagreement", "accept, reject", "none", ""] > 100
    assert len(report.findings) <= 10


@posix
def test_disagreements_are_saved_and_shown_again(tmp_path, capsys):
    one = [*PYTHON, START + PLANTED]
    other = [*PYTHON, "import sys; data = sys.stdin.buffer.read(); sys.exit(data[:4] != b'GGUF')"]
    both = ["--against", shlex.join(other), "--", *one]
    assert main(["fuzz", "--seed", "1", "--count", "60", "--timeout", "60", "--json", *both]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["outcomes_against"].keys() == {"reject"}  # nothing is on standard input
    one = [*PYTHON, START.replace("open(sys.argv[1], 'rb')", "sys.stdin.buffer") + PLANTED]
    both = ["--stdin", "--error", "IndexError", "--against", shlex.join(other), "--", *one]
    saved = tmp_path / "saved"
    options = ["fuzz", "--seed", "8", "--count", "130", "--timeout", "60"]
    assert main([*options, "--json", "--save", str(saved), *both]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {(finding["kind"], finding["detail"]) for finding in found} == {
        ("crash", "SIGABRT"),
        ("disagreement", "reject, accept"),
    }
    for finding in found:
        assert finding["command"] == shlex.join(one)
        is_both = finding["kind"] == "disagreement"
        lines = [finding["reproduce"], *([finding["reproduce_against"]] if is_both else [])]
        ends = [subprocess.run(["sh", "-c", line], capture_output=True, check=False) for line in lines]
        errors = ["IndexError"]
        kinds = [outcome(end.returncode, end.stderr.decode(), errors).kind for end in ends]
        assert ", ".join(kinds) == (finding["detail"] if is_both else "crash")
        assert finding["size"] <= 24
    assert main([*options, *both]) == 1
    text = capsys.readouterr().out
    assert printable(f"  by {shlex.join(one)}, and {shlex.join(other)}") + "\n" in text
    assert "the other command: " in text
    assert main([*options, "--json", *both]) == 1
    for finding in json.loads(capsys.readouterr().out)["findings"]:
        again = shlex.split(finding["reproduce"])
        assert again[:2] == ["gguf-schema", "fuzz"]
        assert main([again[1], "--json", *again[2:]]) == 1
        shown = json.loads(capsys.readouterr().out)["findings"]
        assert (finding["kind"], finding["detail"], finding["sha256"]) in {
            (one["kind"], one["detail"], one["sha256"]) for one in shown
        }
