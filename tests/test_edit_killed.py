"""Processes that edit a file and are killed leave the old file or the new one."""

import os

import pytest

from tests.killing import MOST_LATE, at_random, counts_of


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


def kill_of(run):
    """What kills something that takes so many seconds, and the delays of the kills so far."""
    delays = []

    def kill(delay):
        delays.append(delay)
        return delay < run

    return kill, delays


@pytest.mark.parametrize("first", [1, 2, 30, 1000])
def test_a_slow_first_run_makes_few_kills_too_late(first):
    kill, delays = kill_of(1)
    assert list(at_random(kill, first, 200)) == [True] * 200
    assert len(delays) <= 200 + MOST_LATE
    in_time = sorted(delay for delay in delays if delay < 1)
    assert in_time[0] < 0.4 < 0.7 < in_time[-1], "all moments have their turn"


def test_kills_that_all_come_too_late_have_an_end():
    kill, delays = kill_of(0)
    with pytest.raises(RuntimeError, match="101 kills in a row came too late"):
        list(at_random(kill, 1, 200))
    assert len(delays) == MOST_LATE + 1
