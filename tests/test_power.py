"""tools/power.py: what is known to be wrong with the installed readers is found, and told from what is not."""

import json
import time
from itertools import islice
from threading import Event

import pytest

from gguf_schema.fuzz import Finding, Outcome, cases
from tools import power
from tools.readers import READERS, running

needs = {
    name: pytest.mark.skipif(not reader.is_installed, reason=f"could not import {reader.package}")
    for name, reader in READERS.items()
}
FAULTS = {fault.name: fault for fault in power.FAULTS}
SECONDS = 6


def found(reader):
    """The names of the classes that are found in a few seconds."""
    hits = power.hunt(reader, 0, time.monotonic() + SECONDS, Event())
    for hit in hits:
        assert hit.fault.reader == reader
        assert hit.fault.is_shown(hit.finding)
        assert 0 < hit.seconds <= 2 * SECONDS
        assert 4 <= len(hit.small) <= len(hit.finding.case.data)
    return {hit.fault.name for hit in hits}


@needs["llama.cpp"]
def test_all_faults_of_llama_cpp_are_found_at_once():
    assert found("llama.cpp") == {fault.name for fault in power.FAULTS if fault.reader == "llama.cpp"}


@needs["gguf-py"]
def test_errors_of_gguf_py_are_found_at_once(monkeypatch):
    monkeypatch.setattr(power, "smallest", lambda reader, finding, profile: finding.case.data)
    assert found("gguf-py") >= {f"raises {name}" for name in ("IndexError", "KeyError", "RecursionError")}


RARE = {
    "hangs on large counts": lambda label: label.operation == "count=2^32",
    "wraps offsets near 2^64": lambda label: label.rule == "offset-wraps",
    "returns short arrays": lambda label: label.rule == "last-array-cut",
    "invents a tensor": lambda label: label.path == "tensor_count" and label.rule == "name-empty",
    "raises UnicodeDecodeError": lambda label: label.rule == "key-utf8",
}


@needs["gguf-py"]
@pytest.mark.parametrize("name", RARE)
def test_what_takes_longer_to_be_found(name):
    """Of the files that are likely to show it, one of the first does."""
    likely = islice((case for case in cases(0) if RARE[name](case.label)), 8)
    with running("gguf-py", power.LIMITS) as process:
        watched = power.Watched(process)
        findings = ((case, watched.read(case.data)) for case in likely)
        judged = (Finding(power.kind_of(case, outcome), case, outcome) for case, outcome in findings)
        assert any(FAULTS[name].is_shown(finding) for finding in judged)


@pytest.mark.parametrize("fault", power.FAULTS, ids=lambda fault: fault.name)
def test_no_class_is_shown_by_something_else(fault):
    case = next(cases(0))
    for outcome in (
        Outcome("crash", "SIGSEGV"),
        Outcome("memory"),
        Outcome("raised", "TypeError in gguf_reader.py:1 f", True),
        Outcome("crash", "gguf.cpp:1 GGML_ASSERT", True, "gguf.cpp:1: GGML_ASSERT(other) failed"),
    ):
        assert not fault.is_shown(Finding(power.kind_of(case, outcome), case, outcome))
    assert power.kind_of(case, Outcome("accept", told='{"pairs": 1, "tensors": []}')) is None
    assert power.kind_of(case, Outcome("reject")) == "wrongly-rejected"


def test_the_report_says_what_was_not_found():
    records = [power.record(fault, None) for fault in power.FAULTS]
    assert json.loads(json.dumps(records)) == records
    assert power.as_text(records).count("not found") == len(power.FAULTS)
