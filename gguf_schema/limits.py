"""Limits of our own reader, in one place. The numbers of the format itself stand in `schema` and `blocks`."""

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
