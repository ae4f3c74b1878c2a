"""Limits, in one place: first of our own reader. The numbers of the format itself stand in `schema` and `blocks`."""

MAX_NESTING = 16
"""Arrays of arrays: levels read before a file is refused. Every level costs a file 12 bytes; no real file has 3."""

MAX_DIMENSIONS = 8
"""Dimensions of a tensor. ggml keeps 4; some writers made 5. The elements of more are not even counted."""

MAX_SIZE = 2**63 - 1
"""The largest dimension, number of elements and number of bytes: ggml counts all three in int64."""

MAX_TYPE = 2**31 - 1
"""The largest tensor type id: an enum of C, so a signed 32-bit number in every reader."""

DEFAULT_ALIGNMENT = 32
"""The alignment of a file that has no `general.alignment` (ggml: GGUF_DEFAULT_ALIGNMENT)."""

# What others can take: of no consequence when a file is read, but for who judges one, or makes one that is at the edge.

LONGEST_KEY = 65535
"""Bytes of a key (specification, gguf_metadata_kv_t)."""

LONGEST_NAME = 64
"""Bytes of a tensor's name by the specification; llama.cpp counts a NUL among them."""

USUAL_DIMENSIONS = 4
"""GGML_MAX_DIMS."""

NUMPY_DIMENSIONS = 64
"""Dimensions that an array of numpy can have."""

STALE_Q8_1 = 40
"""Bytes that gguf-py 0.19.0 takes a block of Q8_1 for: the type had two FLOAT32 once."""

SLOWLY_COUNTED = 1 << 20
"""Elements that gguf-py, which reads them one by one, counts to in a few seconds."""
