"""The labelled files: each is refused or opened as its label says, with the labelled values, place and bytes."""

import contextlib
import io
import tracemalloc

import pytest

import gguf_schema as gs
from gguf_schema.dump import dump_json, dump_markdown, dump_text
from gguf_schema.summary import summary_text

from .labels import assert_model, is_labelled, is_right_place
from .shared import cases, needs_cases

CASES = cases()
MEBIBYTE = 1 << 20
MOST_MEMORY = 64 * MEBIBYTE

pytestmark = needs_cases
each_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def test_all_cases_are_here():
    assert len(CASES) >= 345


@each_case
def test_verdict(case):
    """`open` refuses exactly what the default policy rejects."""
    is_rejected = case["expected"]["gguf_schema_default"] == "reject"
    with pytest.raises(gs.GGUFError) if is_rejected else contextlib.nullcontext():
        gs.open(case["bytes"])


@pytest.mark.parametrize("case", [c for c in CASES if c["values"]], ids=lambda case: case["name"])
def test_values(case):
    with gs.open(case["bytes"]) as model:
        assert_model(model, case["values"])


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["expected"]["roundtrip"] == "byte-exact"], ids=lambda case: case["name"]
)
def test_round_trip(case):
    assert gs.GGUF.build(gs.GGUF.parse(case["bytes"])) == case["bytes"]


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c["expected"]["gguf_schema_default"] == "reject" and is_labelled(c)],
    ids=lambda case: case["name"],
)
def test_place_of_the_error(case):
    """Path and byte offset of the error, and a message that says them."""
    with pytest.raises(gs.GGUFError) as caught:
        gs.open(case["bytes"])
    assert is_right_place(caught.value, case), str(caught.value)
    assert f"at byte {caught.value.offset}: " in str(caught.value)


def look_at_everything(data, check):
    """Use all of a file's views, as a curious program would."""
    with gs.open(data, check=check) as model:
        for pair in model.metadata.pairs:
            str(pair.type)
            repr(pair.value)
            list(pair.value) if isinstance(pair.type, gs.ArrayType) else pair.value
        for tensor in model.tensors.infos:
            repr(tensor)
            assert tensor.n_elements >= 0
            with contextlib.suppress(gs.GGUFError):
                assert tensor.data.nbytes == tensor.n_bytes
        for write in (dump_text, dump_json, dump_markdown, summary_text):
            assert write(model)
        with contextlib.suppress(gs.GGUFError):
            gs.hyperparameters(model.metadata)
        with contextlib.suppress(gs.GGUFError):
            gs.write(io.BytesIO(), model.metadata, model.tensors, order=model.order, version=model.version)


def hidden(look, data):
    """The foreign exception behind the GGUFError that comes of looking, if there is one."""
    try:
        look(data)
    except gs.GGUFError as error:
        return error.__cause__
    return None


@each_case
def test_nothing_else_escapes(case):
    """Only GGUFError leaves the package, none of them a foreign exception in disguise, and memory stays small."""
    tracemalloc.start()
    try:
        for look in (
            gs.GGUF.parse,
            lambda data: look_at_everything(data, check=True),
            lambda data: look_at_everything(data, check=False),
        ):
            assert hidden(look, case["bytes"]) is None
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


@each_case
def test_truncations_refused_or_read(case):
    """A prefix of a file never makes anything but GGUFError escape."""
    data = case["bytes"]
    step = max(1, len(data) // 64)
    for end in range(0, len(data), step):
        with contextlib.suppress(gs.GGUFError):
            gs.open(data[:end], check=False)
