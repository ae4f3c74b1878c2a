"""What tests of `fuzz` share: readers as commands, and as functions."""

import os
import sys

import pytest

import gguf_schema as gs
from gguf_schema.fuzz import Limits, Outcome, reader

posix = pytest.mark.skipif(os.name != "posix", reason="readers are run on POSIX systems only")

PYTHON = [sys.executable, "-S", "-E", "-c"]
"""Starts soon, and reads no settings."""

START = "import os, sys, struct, time; data = open(sys.argv[1], 'rb').read(); n = data[16:24];"
GENEROUS, SHORT = Limits(60, 512), Limits(0.3, 512)


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
