"""The numbers that an engine needs to run a Llama-like model, from its metadata, with defaults for what is absent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import keys
from .errors import GGUFError

PerLayer = int | tuple[int, ...]
"""A number for all layers, or one for each."""

F16_BYTES = 2
"""Bytes of an element in the usual KV cache."""


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a transformer. Lengths are numbers of elements."""

    architecture: str
    context_length: int
    embedding_length: int
    block_count: int
    feed_forward_length: PerLayer | None
    head_count: PerLayer
    head_count_kv: PerLayer
    key_length: int
    value_length: int
    rope_dimension_count: int
    rope_freq_base: float
    layer_norm_rms_epsilon: float
    vocabulary: int | None

    @property
    def queries_per_kv_head(self) -> int:
        """Query heads that share a key and value head (grouped-query attention), of the first layer that has any; 0."""
        queries, keys = (
            heads if isinstance(heads, tuple) else (heads,) for heads in (self.head_count, self.head_count_kv)
        )
        count = max(len(queries), len(keys))
        layers = zip(queries * (count // len(queries)), keys * (count // len(keys)), strict=False)
        return next((query // key for query, key in layers if key), 0)

    def kv_cache_bytes_per_token(self, element_bytes: int = F16_BYTES) -> int:
        """Bytes of keys and values that all layers keep for one token."""
        heads = self.head_count_kv
        total = sum(heads) if isinstance(heads, tuple) else heads * self.block_count
        return total * (self.key_length + self.value_length) * element_bytes


def hyperparameters(metadata: Mapping[str, Any]) -> Hyperparameters:
    """Read them from metadata, as `open` gives it.

    Absent keys: `head_count_kv` is `head_count`; key, value and rope dimensions are `embedding_length / head_count`;
    `rope.freq_base` is 10000; `layer_norm_rms_epsilon` is 1e-5. They are Llama's: other architectures may
    lack the concept.

    Raises:
        GGUFError: A required key is missing (the message names it), or a value is no count or number.
    """
    architecture = metadata.get(keys.ARCHITECTURE.template)
    if not isinstance(architecture, str):
        raise _wrong(keys.ARCHITECTURE.template, architecture, "a string")

    def count(key: keys.Key, default: Any = REQUIRED) -> Any:
        value = _get(metadata, key.of(architecture), default)
        if value is default or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        raise _wrong(key.of(architecture), value, "a count")

    def per_layer(key: keys.Key, default: Any = REQUIRED) -> Any:
        value = metadata.get(key.of(architecture))
        if not isinstance(value, np.ndarray | list):
            return count(key, default)
        counts = tuple(value.tolist() if isinstance(value, np.ndarray) else value)
        if not counts or not all(type(one) is int and one >= 0 for one in counts):
            raise _wrong(key.of(architecture), value, "a list of counts")
        return counts

    def number(key: keys.Key, default: float) -> float:
        value = _get(metadata, key.of(architecture), default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(key.of(architecture), value, "a number")
        return value

    embedding_length = count(keys.EMBEDDING_LENGTH)
    head_count = per_layer(keys.HEAD_COUNT)
    first = head_count[0] if isinstance(head_count, tuple) else head_count
    head_length = embedding_length // first if first else 0
    tokens = metadata.get(keys.TOKENS.template)
    if not isinstance(tokens, Sequence) or isinstance(tokens, str):
        tokens = None
    return Hyperparameters(
        architecture=architecture,
        context_length=count(keys.CONTEXT_LENGTH),
        embedding_length=embedding_length,
        block_count=count(keys.BLOCK_COUNT),
        feed_forward_length=per_layer(keys.FEED_FORWARD_LENGTH, None),
        head_count=head_count,
        head_count_kv=per_layer(keys.HEAD_COUNT_KV, head_count),
        key_length=count(keys.KEY_LENGTH, head_length),
        value_length=count(keys.VALUE_LENGTH, head_length),
        rope_dimension_count=count(keys.ROPE_DIMENSION_COUNT, head_length),
        rope_freq_base=number(keys.ROPE_FREQ_BASE, 10000.0),
        layer_norm_rms_epsilon=number(keys.RMS_EPSILON, 1e-5),
        vocabulary=count(keys.VOCAB_SIZE, None) if tokens is None else len(tokens),
    )


REQUIRED = object()
"""Stands for the default of a key that has none."""


def _get(metadata: Mapping[str, Any], key: str, default: Any) -> Any:
    """The value of a key, or its default.

    Raises:
        GGUFError: It is missing and has no default.
    """
    value = metadata.get(key, default)
    if value is REQUIRED:
        raise GGUFError(f"the required key {key} is missing", "metadata_kv")
    return value


def _wrong(key: str, value: Any, expected: str) -> GGUFError:
    """The error of a value that is missing or of another kind than expected."""
    found = "none" if value is None else f"a {type(value).__name__}" if not isinstance(value, int | float) else value
    return GGUFError(f"{key}: expected {expected}, found {found}", "metadata_kv")
