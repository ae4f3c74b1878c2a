"""Trying readers: the same files each time, and every way to fail told from the others."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from gguf_schema.cli import _parser, main
from gguf_schema.fuzz import Limits, cases, reader
from gguf_schema.fuzz.cases import BASES, EACH
from gguf_schema.fuzz.outcomes import outcome
from gguf_schema.fuzz.running import KEPT, Stopped, arguments
from gguf_schema.generate import valid_file
from gguf_schema.mutate import mutant, plan

from .fuzzing import GENEROUS, PYTHON, SHORT, START, posix, ran

pytestmark = pytest.mark.usefixtures("nothing_left")

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


def test_where_the_path_goes():
    assert arguments(["a", "-x"], "f") == ["a", "-x", "f"]
    assert arguments(["a", "--in={}", "b"], "f") == ["a", "--in=f", "b"]
    assert arguments(["a{}", "-x"], "f") == ["a{}", "-x", "f"]


NODE = (
    "node:internal/buffer:86\n    throw new ERR_BUFFER_OUT_OF_BOUNDS();\n    ^\n\n"
    "RangeError [ERR_BUFFER_OUT_OF_BOUNDS]: Attempt to access memory\n  outside buffer bounds\n"
    "    at boundsError (node:internal/buffer:86:11)\n"
    "    at Object.read (/a/b.js:1:51)\n    at /a/c.js:2:1 {\n  code: 'ERR_BUFFER_OUT_OF_BOUNDS'\n}\n\n"
    "Node.js v20.20.2\n"
)
JAVA = (
    'Exception in thread "main" java.lang.{}: 5\nof 3\n'
    "\tat java.base/java.nio.Buffer.checkIndex(Buffer.java:743)\n\tat a.Reader.read(Reader.java:7)\n"
    "Caused by: a.Other\n\tat a.Reader.other(Reader.java:9)\n"
)
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
        (101, "thread 'main' panicked at src/main.rs:4:5:\nindex", "crash", "panicked src/main.rs:4:5"),
        (101, "thread 'main' panicked at 'a: b', src/main.rs:4:5\n", "crash", "panicked src/main.rs:4:5"),
        (
            2,
            "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.read(0x1)\n\t/a/b.go:3 +0x1\n",
            "crash",
            "panic in main.read",
        ),
        (2, "fatal error: stack overflow\n\nruntime stack:\n", "crash", "fatal error: stack overflow"),
        (2, "fatal error: out of memory\n\ngoroutine 1 [running]:\n", "memory", "fatal error: out of memory"),
        (1, "fatal error: no GGUF file\n", "reject", ""),
        (1, NODE, "crash", "RangeError in b.js:1 Object.read"),
        (1, NODE.replace("Object.read (/a/b.js:1:51)", "file:///a/b.mjs:1:51"), "crash", "RangeError in b.mjs:1"),
        (1, NODE + "and more", "reject", ""),
        (
            1,
            JAVA.format("IllegalStateException"),
            "crash",
            "java.lang.IllegalStateException in Reader.java:7 a.Reader.read",
        ),
        (1, JAVA.format("OutOfMemoryError"), "memory", "java.lang.OutOfMemoryError in Reader.java:7 a.Reader.read"),
        (128 + signal.SIGHUP, "", "reject", ""),
        (192, "", "reject", ""),
        (-signal.SIGHUP, "", "crash", "SIGHUP"),
        (1, "refused: out of memory, for cannot allocate memory for 2^60 pairs; MemoryError", "reject", ""),
        (134, "memory allocation of 5 bytes failed", "memory", "SIGABRT"),
        (1, "out of memory\n" + TRACEBACK.format("KeyError: 1"), "crash", "KeyError in c.py:7 <lambda>"),
        (1, TRACEBACK.format("numpy.ArrayMemoryError: x"), "memory", "numpy.ArrayMemoryError in c.py:7 <lambda>"),
        (
            1,
            "==1==ERROR: AddressSanitizer: allocation-size-too-big\n    #0 0x4 in malloc\n    #1 0x5 in gguf_read\n",
            "memory",
            "AddressSanitizer: allocation-size-too-big in gguf_read",
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
    while not is_gone(int(mark.read_text())):  # else it sleeps for minutes
        time.sleep(0.05)


def is_gone(pid):
    """Whether a process has ended: what is left of it nobody has asked for yet."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@posix
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_what_ends_takes_its_children_with_it(tmp_path):
    """And it has ended, though a child holds stderr."""
    mark = tmp_path / "mark"
    script = f"p = os.fork()\nif p: open({str(mark)!r}, 'w').write(str(p)); sys.exit(3)\ntime.sleep(600)"
    assert ran(script).kind == "reject"
    while not is_gone(int(mark.read_text())):  # else it sleeps for minutes
        time.sleep(0.05)
    mute = f"p = os.fork()\nif p: open({str(mark)!r}, 'w').write(str(p)); sys.exit(3)\nos.close(2); time.sleep(600)"
    assert ran(mute).kind == "reject"
    while not is_gone(int(mark.read_text())):
        time.sleep(0.05)


@posix
def test_a_child_that_says_ever_more_is_no_hang_of_its_parent():
    says = "os.setsid()\nend = time.time() + 3\nwhile time.time() < end: os.write(2, b'x' * 4096)"
    script = f"p = os.fork()\nif p: sys.exit(0)\n{says}"
    assert ran(script, limits=Limits(1.5, 512)).kind == "accept"


@posix
def test_any_number_of_files_may_be_open():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("the system allows too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]  # select takes numbers below 1024
    try:
        assert ran("sys.exit(1)").kind == "reject"
    finally:
        for number in opened:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


ODD = {
    "exits as what cannot be run": "sys.exit(127 if data[:4] != b'GGUF' else 0)",
    "deletes its file": "os.unlink(sys.argv[1])",
    "makes its file a folder": "os.unlink(sys.argv[1]); os.mkdir(sys.argv[1])",
}


@posix
@pytest.mark.parametrize("name", ODD)
def test_what_a_reader_does_does_not_end_a_run(name, capsys):
    assert main(["fuzz", "--count", "70", "--timeout", "60", "--", *PYTHON, START + ODD[name]]) == 0
    assert "70 files" in capsys.readouterr().out


@posix
def test_a_reader_that_is_gone_ends_a_run_with_its_report(tmp_path, capsys):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n[ -e {tmp_path}/ran ] && rm -f {script}\n: > {tmp_path}/ran\n")
    script.chmod(0o755)
    assert main(["fuzz", "--count", "70", "--jobs", "1", "--json", "--", str(script)]) == 2
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["outcomes"], found["next"]) == ({"accept": 2}, 2)
    assert "cannot be run" in found["trouble"]
    assert "cannot be run" in err


@posix
def test_a_temporary_folder_that_is_gone_ends_a_run_with_its_report(capsys):
    script = START + "import shutil\nif data[:4] != b'GGUF': shutil.rmtree(os.path.dirname(sys.argv[1]))\n[][1]"
    assert main(["fuzz", "--timeout", "60", "--", *PYTHON, script]) == 1
    out, err = capsys.readouterr()
    assert "crash: IndexError" in out
    assert "\ntrouble: [Errno 2]" in out
    assert "gguf-schema: fuzz: [Errno 2]" in err


@posix
def test_a_sanitizer_that_wants_all_memory(capsys):
    script = "import os; os.write(2, b'==1==ReserveShadowMemoryRange failed while trying to map 0xdfff'); os.abort()"
    assert main(["fuzz", "--count", "2", "--", *PYTHON, script]) == 2
    assert "--memory 0" in capsys.readouterr().err


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS limits no memory")
def test_limits_that_the_system_does_not_set(capsys):
    assert main(["fuzz", "--count", "2", "--memory", "9" * 20, "--", "true"]) == 2
    assert "sets no such limit on memory: 1023" in capsys.readouterr().err


@posix
def test_what_cannot_be_run(tmp_path, capsys):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert main(["fuzz", "--count", "2", "--", str(script)]) == 2
    assert "cannot be run" in capsys.readouterr().err
    for command in (["--", "no-such-command"], ["--against", "no-such-command x", "--", "true"]):
        assert main(["fuzz", "--count", "2", *command]) == 2
        assert "no command 'no-such-command'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--out", "x", "--", "true"],
        ["--out", "x", "--time", "1"],
        ["--coverage"],
        ["--coverage", "--out", "x"],
        ["--stream", "--", "true"],
        ["--stream", "--time", "1"],
        ["--export", "libfuzzer", "x", "--", "true"],
        ["--export", "libfuzzer"],
        ["--against", "", "--", "true"],
        ["--against", "'", "--", "true"],
        ["--time", "1", "--count", "1", "--", "true"],
        ["--stream", "--save", "x"],
        ["--stream", "--timeout", "5"],
        ["--stream", "--memory", "2048"],
        ["--stream", "--json"],
        ["--out", "x", "--jobs", "1"],
        ["--out", "x", "--stdin"],
        ["--out", "x", "--against", "true"],
        ["--export", "libfuzzer", "x", "--seed", "0"],
        ["--export", "libfuzzer", "x", "--count", "1"],
        ["--coverage", "--error", "E", "x"],
        ["--coverage", "--profile", "spec", "x"],
        ["--stdin", "--", "true", "{}"],
        ["--stdin", "--against", "true --in={}", "--", "true"],
        ["--seed", "-1", "--", "true"],
        ["--time", "nan", "--", "true"],
    ],
)
def test_usage(wrong, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["fuzz", *wrong])
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


OWN = TRACEBACK.format("a.b.Error: no GGUF file")


@pytest.mark.parametrize(
    ("status", "told", "kind"),
    [
        (1, OWN, "reject"),
        (1, TRACEBACK.format("Error"), "reject"),
        (1, TRACEBACK.format("c.Error: its last part is the same"), "reject"),
        (1, TRACEBACK.format("a.b.OtherError"), "crash"),
        (1, OWN + "\nDuring handling of it:\n\n" + TRACEBACK.format("KeyError: 1"), "crash"),
        (1, TRACEBACK.format("KeyError: 1") + "\nThe above exception was the direct cause\n\n" + OWN, "reject"),
        (1, TRACEBACK.format("Error: cannot allocate memory for so many pairs"), "reject"),
        (-signal.SIGSEGV, OWN, "crash"),
        (1, "Error: no traceback", "reject"),
        (0, OWN, "reject"),
        (0, TRACEBACK.format("KeyError: 1"), "crash"),
    ],
)
def test_a_reader_refuses_with_its_own_errors(status, told, kind):
    assert outcome(status, told, ["Error"]).kind == kind
    assert outcome(status, OWN, ["a.b.Error"]).kind == ("reject" if status >= 0 else "crash")
    assert outcome(status, OWN, ["b.Error", "rror"]).kind == "crash"


@posix
def test_a_reader_of_standard_input():
    script = "import sys; data = sys.stdin.buffer.read(); sys.exit(len(sys.argv) == 1 and data != b'GGUF')"
    with reader([*PYTHON, script], GENEROUS, by_stdin=True) as made:
        assert made.read(b"GGUF").kind == "accept"
        assert made.read(b"GGUF" * 100_000).kind == "reject"
        again = subprocess.run(["sh", "-c", made.line("/dev/null")], check=False)
        assert again.returncode == 1
    with reader(["false"], GENEROUS, by_stdin=True) as made:
        assert made.read(b"GGUF" * 100_000).kind == "reject"  # which reads nothing


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["--against", "'"], '"\'" is not a command in one string'),
        (["--jobs", "0"], "'0' is not a number from 1 to 1000"),
        (["--jobs", "1001"], "'1001' is not a number from 1 to 1000"),
        (["--seed", "x"], "'x' is not a number from 0 on"),
        (["--timeout", "inf"], "'inf' is not a number of seconds"),
    ],
)
def test_what_an_option_wants_is_told(wrong, told, capsys):
    with pytest.raises(SystemExit):
        main(["fuzz", *wrong, "--", "true"])
    assert told in capsys.readouterr().err


def test_limits_are_told_again_where_they_are_not_the_usual_ones(capsys):
    with pytest.raises(SystemExit):
        main(["fuzz", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    usual = Limits()
    assert f"seconds that a run may take; default: {usual.timeout:g} " in told
    assert f"that a run may take; default: {usual.memory};" in told
    with reader(["true"], Limits(), False, []) as made:
        assert made.options() == []
    with reader(["true"], Limits(0.5, 12345678), True, ["a.B", "C"]) as made:
        told = made.options()
        assert told == ["--stdin", "--error", "a.B", "--error", "C", "--timeout", "0.5", "--memory", "12345678"]
        again = _parser(["fuzz"]).parse_args(["fuzz", *told, "--", "true"])
    assert (again.stdin, again.error, again.timeout, again.memory) == (True, ["a.B", "C"], 0.5, 12345678)
