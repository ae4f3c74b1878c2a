"""The numbers that an engine needs to run a model, from its metadata, with the defaults that llama.cpp fills in."""

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
        """Query heads that share a key and value head (grouped-query attention), of the first layer."""
        return _layers(self.head_count, 1)[0] // _layers(self.head_count_kv, 1)[0]

    def kv_cache_bytes_per_token(self, element_bytes: int = F16_BYTES) -> int:
        """Bytes of keys and values that all layers keep for one token."""
        heads = sum(_layers(self.head_count_kv, self.block_count))
        return heads * (self.key_length + self.value_length) * element_bytes


def _layers(value: PerLayer, count: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * count


def hyperparameters(metadata: Mapping[str, Any]) -> Hyperparameters:
    """Read them from metadata, as `open` gives it.

    Absent keys: `head_count_kv` is `head_count`; key, value and rope dimensions are `embedding_length / head_count`;
    `rope.freq_base` is 10000; `layer_norm_rms_epsilon` is 1e-5.

    Raises:
        GGUFError: A required key is missing (the message names it), or a value is no number.
    """
    architecture = _get(metadata, keys.ARCHITECTURE.template, str)

    def number(key: keys.Key, default: Any = None, required: bool = False) -> Any:
        name = key.of(architecture)
        return default if name not in metadata and not required else _get(metadata, name, int | float)

    def per_layer(key: keys.Key, default: Any = None, required: bool = False) -> Any:
        value = metadata.get(key.of(architecture))
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
            return tuple(value.tolist())
        return number(key, default, required)

    embedding_length = number(keys.EMBEDDING_LENGTH, required=True)
    head_count = per_layer(keys.HEAD_COUNT, required=True)
    first = _layers(head_count, 1)[0]
    head_length = embedding_length // first if first else 0
    tokens = metadata.get(keys.TOKENS.template)
    return Hyperparameters(
        architecture=architecture,
        context_length=number(keys.CONTEXT_LENGTH, required=True),
        embedding_length=embedding_length,
        block_count=number(keys.BLOCK_COUNT, required=True),
        feed_forward_length=per_layer(keys.FEED_FORWARD_LENGTH),
        head_count=head_count,
        head_count_kv=per_layer(keys.HEAD_COUNT_KV, head_count),
        key_length=number(keys.KEY_LENGTH, head_length),
        value_length=number(keys.VALUE_LENGTH, head_length),
        rope_dimension_count=number(keys.ROPE_DIMENSION_COUNT, head_length),
        rope_freq_base=number(keys.ROPE_FREQ_BASE, 10000.0),
        layer_norm_rms_epsilon=number(keys.RMS_EPSILON, 1e-5),
        vocabulary=len(tokens) if isinstance(tokens, Sequence) else number(keys.VOCAB_SIZE),
    )


def _get(metadata: Mapping[str, Any], key: str, kind: Any) -> Any:
    """The value of a required key.

    Raises:
        GGUFError: It is missing or of another kind.
    """
    if key not in metadata:
        raise GGUFError(f"the required key {key} is missing", "metadata_kv")
    value = metadata[key]
    if isinstance(value, bool) or not isinstance(value, kind):
        raise GGUFError(f"{key} is a {type(value).__name__}", "metadata_kv")
    return value
