"""Processes that edit a file and are killed leave the old file or the new one."""

import os

import pytest

from tests.killing import counts_of


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_killed_at_any_moment(tmp_path):
    """At every call to the system, in the middle of every write, and at random moments."""
    counts = counts_of("killed", str(tmp_path / "folder"), "200")
    assert counts["random"] >= 200
    assert counts["between"] >= counts["kills"] / 2
    for name in "patch", "rewrite", "undo a patch", "undo a rewrite":
        assert counts[f"{name}: old"] >= 5
        assert counts[f"{name}: new"] >= 2
    assert counts["recover: old"] >= 10
