"""The comparisons of tools/bench.py as pytest-benchmark cases; not collected by default.

pip install '.[test,bench]' && python -m pytest tests/bench/bench_reading.py
"""

import io

import pytest

import gguf_schema as gs
from tools.benchmarks.contenders import check, llama_cpp, open_ours
from tools.benchmarks.files import number_file, pair_file, string_file, tensor_file
from tools.benchmarks.floors import floor_records, floor_text

pytest.importorskip("pytest_benchmark")

MAKE = {
    "strings": lambda path: string_file(path, 300_000),
    "numbers": lambda path: number_file(path, 4_000_000),
    "tensors": lambda path: tensor_file(path, 2_000),
    "pairs": lambda path: pair_file(path, 20_000),
}


@pytest.fixture(params=MAKE)
def path(request, tmp_path):
    return MAKE[request.param](tmp_path / f"{request.param}.gguf")


def test_open(benchmark, path):
    with gs.open(path) as model:
        assert benchmark(open_ours(path)) == check(model)


def test_llama_cpp(benchmark, path):
    pytest.importorskip("ggml")
    benchmark(*llama_cpp(path).values())


@pytest.mark.parametrize("kind", ["tensors", "pairs"])
def test_floor_of_records(benchmark, kind, tmp_path):
    path = MAKE[kind](tmp_path / "floor.gguf")
    assert benchmark(floor_records(path)) == open_ours(path)()


def test_decode(benchmark, tmp_path):
    with gs.open(MAKE["strings"](tmp_path / "strings.gguf")) as model:
        tokens = model.metadata["tokenizer.ggml.tokens"]
    assert len(benchmark(tokens.tolist)) == 300_000


def test_floor_of_decoding(benchmark, tmp_path):
    with gs.open(MAKE["strings"](tmp_path / "strings.gguf")) as model:
        benchmark(floor_text(model))


def test_build(benchmark, tmp_path):
    path = MAKE["strings"](tmp_path / "strings.gguf")
    with gs.open(path) as model:

        def build():
            written = io.BytesIO()
            gs.write(written, model.metadata)
            return written.getvalue()

        assert benchmark(build) == path.read_bytes()
