"""Where GGUF_SCHEMA_ALL_TESTS is set, a test skipped for want of a package that pip can install is a failure."""

import os

import pytest

WANT = "could not import"
wanting: list[str] = []


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
