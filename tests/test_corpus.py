"""Real files: parsed and built back byte for byte, through the wire form and through plain values."""

import hashlib
import io

import pytest

import gguf_schema as gs
from gguf_schema.summary import summarize

from .shared import CORPUS, corpus_files, needs_corpus

pytestmark = needs_corpus

VOCABULARIES = corpus_files("*.gguf")
ALL_FILES = corpus_files()
WITHOUT_PADDING_TO_NOTHING = [
    # gguf-py pads a file that has no tensors; `write`, like ggml, pads only where data follows.
    "smallfirst-00001-of-00003.gguf",
    "kvonly.gguf",
]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_all_files_are_here():
    assert len(VOCABULARIES) == 8
    sums = dict(reversed(line.split()) for line in (CORPUS / "SHA256SUMS").read_text().splitlines())
    assert {path.name: sha256(path.read_bytes()) for path in VOCABULARIES} == sums


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: path.stem)
def test_wire_form_round_trip(path):
    data = path.read_bytes()
    assert sha256(gs.GGUF.build(gs.GGUF.parse(data))) == sha256(data)


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: path.stem)
def test_plain_values_round_trip(path, tmp_path):
    with gs.open(path, shards=False) as model:
        gs.write(tmp_path / "out.gguf", model.metadata, model.tensors, order=model.order, version=model.version)
    written = (tmp_path / "out.gguf").read_bytes()
    if path.name in WITHOUT_PADDING_TO_NOTHING:
        data = path.read_bytes()
        assert written == data[: len(written)]
        assert not data[len(written) :].strip(b"\0")
    else:
        assert sha256(written) == sha256(path.read_bytes())


@pytest.mark.parametrize("path", VOCABULARIES, ids=lambda path: path.stem)
def test_arrays_from_plain_lists_round_trip(path):
    """What was read may pass through plain Python lists and comes back the same."""
    with gs.open(path) as model:
        pairs = [
            (key, type, list(value) if type == gs.ArrayType(gs.GGUFValueType.STRING) else value)
            for key, type, value in model.metadata.pairs
        ]
        written = io.BytesIO()
        gs.write(written, pairs, order=model.order, version=model.version)
    assert sha256(written.getvalue()) == sha256(path.read_bytes())


def test_reads_no_tensor_data(tmp_path, reads):
    """Opening reads the metadata and little more, whatever the size of the file."""
    import numpy as np

    from gguf_schema.sources import FIRST_READ

    path = tmp_path / "large.gguf"
    gs.write(path, {"general.architecture": "llama"}, {"a": np.zeros(1 << 20, np.float32)})
    with gs.open(path) as model:
        assert model.tensors["a"].n_bytes == 4 << 20
    assert 0 < sum(size for _, size in reads) <= 2 * FIRST_READ


def test_summary_of_the_llama_3_vocabulary():
    with gs.open(CORPUS / "ggml-vocab-llama-bpe.gguf") as model:
        summary = summarize(model)
    assert summary["version"] == 3
    assert summary["metadata_kv_count"] == 20
    assert summary["tensor_count"] == 0
    assert summary["data_offset"] == 7_818_144
    assert summary["architecture"] == "llama"
    assert summary["vocabulary"]["tokens"] == 128_256
    assert summary["vocabulary"]["merges"] == 280_147
    assert sum(summary["vocabulary"]["types"].values()) == 128_256
