"""Small faults in copies of the package are found by the files that the package itself makes."""

import pytest

from tools.fuzzing.planted import FAULTS, Fault, copy_of, hunt

SEED = 5
FILES = 6000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found(fault):
    assert hunt(fault, FILES, SEED).finding["problem"]


def test_where_there_is_no_fault_none_is_found():
    """Else something else might be found above."""
    none = Fault("none", "limits.py", "MAX_NESTING = 16", "MAX_NESTING = 8 + 8")
    assert hunt(none, FILES, SEED).finding == {}


def test_a_fault_whose_place_is_gone_is_told():
    with pytest.raises(ValueError, match="stands 0 times"), copy_of(Fault("gone", "limits.py", "no such text", "x")):
        pass


def test_a_copy_that_cannot_be_tried_is_told():
    with pytest.raises(RuntimeError, match="SyntaxError"):
        hunt(Fault("no Python", "limits.py", "MAX_NESTING = 16", "MAX_NESTING = = 16"), 10, SEED)


def test_there_are_enough_of_them():
    assert len({fault.name for fault in FAULTS}) >= 10
