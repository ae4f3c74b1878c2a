"""Where the specification and those who read the format differ, as data.

What readers do was measured: llama.cpp's `gguf_init_from_file` of 2026-10 on a little-endian machine, metadata only;
gguf-py 0.19.0; huggingface.js's @huggingface/gguf 0.4.6. The specification is docs/gguf.md of ggml, 2026-08. The cases
are labelled files, or made by the tests, which hold every row against them and against the readers that are installed.
The llama.cpp that can be installed is older, ggml-python 0.0.45 of 2026-06: tools/differences.py has where it differs.
"""

from . import metadata, tensors
from .divergence import Divergence

__all__ = ["DIVERGENCES", "Divergence"]

DIVERGENCES = (*metadata.ROWS, *tensors.ROWS)
