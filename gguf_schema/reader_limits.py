"""The limits that readers set, as data."""

from typing import NamedTuple

from .limits import MAX_DIMENSIONS, MAX_NESTING, MAX_SIZE, MAX_TYPE


class Limit(NamedTuple):
    """What readers take at most of something; "none" where nothing but the file's size limits it.

    Where a cell is a number the tests have read files with so much, and seen files with one more refused. Read from the
    code are llama.cpp's limits of pairs, tensors, strings and arrays, whose files would be too large; of
    huggingface.js's limits of tensors and their names, which it states when it refuses, only the refusals were seen.

    Attributes:
        subject: What is limited.
        gguf_schema: Our own reader.
        llama_cpp: llama.cpp.
        gguf_py: gguf-py 0.19.0.
        huggingface_js: @huggingface/gguf 0.4.6.
    """

    subject: str
    gguf_schema: str
    llama_cpp: str
    gguf_py: str
    huggingface_js: str


LIMITS = (
    Limit("Metadata pairs", "none", "about 2 × 10^17", "none", "100,000"),
    Limit("Tensors", "none", "about 5 × 10^16", "none", "10,000,000"),
    Limit("Bytes of a string", "none", "2^30", "none", "10,000,000"),
    Limit("Elements of an array", "none", "2^30", "none", "1,000,000"),
    Limit("Levels of arrays", str(MAX_NESTING), "1", "Python's stack", "4"),
    Limit("Bytes of a tensor name", "none", "63", "none", "10,000,000"),
    Limit("Dimensions of a tensor", str(MAX_DIMENSIONS), "4", "64", "8"),
    Limit("Elements in a dimension", f"2^{MAX_SIZE.bit_length()} - 1", "2^63 - 1", "2^63 - 1", "2^32"),
    Limit("Largest tensor type", f"2^{MAX_TYPE.bit_length()} - 1", "those it knows", "those it knows", "none"),
)
