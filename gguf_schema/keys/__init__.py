"""The standard metadata keys, as data: one row a key, in a table for each family.

key          what a row is
general      general.*
model        {arch}.* of many architectures
attention    {arch}.attention.*
rope         {arch}.rope.*
experts      mixtures of experts
recurrent    layers with a state instead of attention
single       what few architectures have
tokenizer    tokenizer.*
files        files that are no whole models: shards, adapters, …
clip         encoders of images and sounds
"""

import re
from collections.abc import Iterator

from .attention import ATTENTION
from .clip import CLIP
from .experts import EXPERTS
from .files import FILES
from .general import GENERAL
from .key import Key as Key
from .model import MODEL
from .recurrent import RECURRENT
from .rope import ROPE
from .single import SINGLE
from .tokenizer import TOKENIZER as TOKENIZER_KEYS

FAMILIES: dict[str, tuple[Key, ...]] = {
    "general": GENERAL,
    "model": MODEL,
    "attention": ATTENTION,
    "rope": ROPE,
    "experts": EXPERTS,
    "recurrent": RECURRENT,
    "single": SINGLE,
    "tokenizer": TOKENIZER_KEYS,
    "files": FILES,
    "clip": CLIP,
}
KEYS: tuple[Key, ...] = tuple(key for family in FAMILIES.values() for key in family)
"""All of them."""

_BY_TEMPLATE = {key.template: key for key in KEYS}

ARCHITECTURE = _BY_TEMPLATE["general.architecture"]
ALIGNMENT = _BY_TEMPLATE["general.alignment"]
FILE_TYPE = _BY_TEMPLATE["general.file_type"]
NAME = _BY_TEMPLATE["general.name"]
TOKENS = _BY_TEMPLATE["tokenizer.ggml.tokens"]
MERGES = _BY_TEMPLATE["tokenizer.ggml.merges"]
TOKEN_TYPES = _BY_TEMPLATE["tokenizer.ggml.token_type"]
SPLIT_NO = _BY_TEMPLATE["split.no"]
SPLIT_COUNT = _BY_TEMPLATE["split.count"]
SPLIT_TENSORS = _BY_TEMPLATE["split.tensors.count"]
SPLIT_KEYS = tuple(key.template for key in (SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS))
"""The keys that make a file a shard."""
TOKENIZER = _BY_TEMPLATE["tokenizer.ggml.model"]

CONTEXT_LENGTH = _BY_TEMPLATE["{arch}.context_length"]
EMBEDDING_LENGTH = _BY_TEMPLATE["{arch}.embedding_length"]
BLOCK_COUNT = _BY_TEMPLATE["{arch}.block_count"]
FEED_FORWARD_LENGTH = _BY_TEMPLATE["{arch}.feed_forward_length"]
HEAD_COUNT = _BY_TEMPLATE["{arch}.attention.head_count"]
HEAD_COUNT_KV = _BY_TEMPLATE["{arch}.attention.head_count_kv"]
KEY_LENGTH = _BY_TEMPLATE["{arch}.attention.key_length"]
VALUE_LENGTH = _BY_TEMPLATE["{arch}.attention.value_length"]
RMS_EPSILON = _BY_TEMPLATE["{arch}.attention.layer_norm_rms_epsilon"]
ROPE_DIMENSION_COUNT = _BY_TEMPLATE["{arch}.rope.dimension_count"]
ROPE_FREQ_BASE = _BY_TEMPLATE["{arch}.rope.freq_base"]
VOCAB_SIZE = _BY_TEMPLATE["{arch}.vocab_size"]

_SLOTS = {
    "{id}": re.compile(r"(?<=\.)[0-9]+(?=\.)"),
    "{name}": re.compile(r"(?<=\.)[^.{}]+$"),
    "{dense}": re.compile(r"(?<=\.)dense_[0-9]+(?=_)"),
}
"""What a file has in place of a slot of a template other than `{arch}`."""


def find(key: str, architecture: str) -> Key | None:
    """The standard key that a key of a file is.

    Args:
        key: The key as it stands in the file.
        architecture: The file's `general.architecture`; keys of other architectures are not found.
    """
    return next((_BY_TEMPLATE[shape] for shape in _shapes(key, architecture) if shape in _BY_TEMPLATE), None)


def _shapes(key: str, architecture: str) -> Iterator[str]:
    """The templates that a key could be of; none where it has what slots are made of."""
    if "{" in key:
        return
    shapes = [key]
    if key.startswith(f"{architecture}."):
        shapes.append("{arch}" + key[len(architecture) :])
    yield from shapes
    for slot, pattern in _SLOTS.items():
        yield from (pattern.sub(slot, shape, count=1) for shape in shapes)
