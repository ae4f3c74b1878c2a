"""Small faults in copies of the package are found by the files that the package itself makes."""

import io
import json

import pytest

from tools.fuzzing.judge import framed
from tools.fuzzing.planted import FAULTS, Fault, copy_of, hunt

SEED = 5
FILES = 6000
NONE = Fault("none", "limits.py", "MAX_NESTING = 16", "MAX_NESTING = 8 + 8")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found(fault):
    assert hunt(fault, FILES, SEED).finding["problem"]


def test_where_there_is_no_fault_none_is_found():
    """Else something else might be found above."""
    assert hunt(NONE, FILES, SEED).finding == {}


def test_a_fault_whose_place_is_gone_is_told():
    with pytest.raises(ValueError, match="stands 0 times"), copy_of(Fault("gone", "limits.py", "no such text", "x")):
        pass


def test_a_copy_that_cannot_be_tried_is_told():
    with pytest.raises(RuntimeError, match="SyntaxError"):
        hunt(Fault("no Python", "limits.py", "MAX_NESTING = 16", "MAX_NESTING = = 16"), 10, SEED)


def test_files_that_cannot_be_made_are_told():
    with pytest.raises(RuntimeError, match=r"(?s)files cannot be made, status 2: .*--seed"):
        hunt(NONE, 10, "none")


def test_files_that_end_within_one_are_told():
    label = {"path": "", "operation": "a", "rule": None, "expected": "accept"}
    with pytest.raises(EOFError):
        list(framed(io.BytesIO(json.dumps({**label, "size": 9}).encode() + b"\n" + bytes(8))))


def test_there_are_enough_of_them():
    assert len({fault.name for fault in FAULTS}) >= 10
