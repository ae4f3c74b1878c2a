"""Fixtures that tests of several modules share, and what counts as a failure.

Where GGUF_SCHEMA_ALL_TESTS is set, a test skipped for want of a package that pip can install is one.
"""

import contextlib
import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gguf_schema.sources import FileSource

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # no test fails because a machine is slow

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; children would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

WANT = "could not import"
wanting: list[str] = []


@pytest.fixture
def reads(monkeypatch):
    """What is read of files from now on: (position, bytes read), as it happens."""
    original, noted = FileSource.read_at, []

    def noting(self, position, size):
        data = original(self, position, size)
        noted.append((position, len(data)))
        return data

    monkeypatch.setattr(FileSource, "read_at", noting)
    return noted


@pytest.fixture
def no_root():
    """The current folder, a new one, to which and in which whoever runs the test may write as anybody else may."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no such users")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        own = os.geteuid()
        if own == 0:
            os.chmod(folder, 0o777)
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(own)


@pytest.fixture
def nothing_left(tmp_path_factory, monkeypatch):
    """Temporary files are made in a folder of their own, which is empty again after the test."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield
    assert list(folder.iterdir()) == []


def _note(report):
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if WANT in reason:
        wanting.append(f"{report.nodeid}: {reason}")


def pytest_runtest_logreport(report):
    _note(report)


def pytest_collectreport(report):
    _note(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if wanting and os.environ.get("GGUF_SCHEMA_ALL_TESTS") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if wanting and os.environ.get("GGUF_SCHEMA_ALL_TESTS"):
        terminalreporter.section("skipped for want of a package, which counts as failed here")
        for line in wanting:
            terminalreporter.line(line)
