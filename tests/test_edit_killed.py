"""Processes that edit a file and are killed leave the old file or the new one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_killed_at_any_moment(tmp_path):
    """At every call to the system, in the middle of every write, and at random moments."""
    command = [sys.executable, "-m", "tests.killed", str(tmp_path / "folder"), "200"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    print(counts)
    assert counts["random"] >= 200
    assert counts["between"] >= counts["kills"] / 2
    for name in "patch", "rewrite", "undo a patch", "undo a rewrite":
        assert counts[f"{name}: old"] >= 5
        assert counts[f"{name}: new"] >= 2
    assert counts["recover: old"] >= 10
