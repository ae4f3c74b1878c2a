"""Whether the arrays and the numbers of a vocabulary agree."""

import re
from collections.abc import Iterator

from .. import keys
from ..constructs import Strings
from ..enums import GGUFValueType as T
from ..errors import Finding
from .metadata import shown
from .rule import WARNING, Rule
from .subject import INTEGERS, Subject

TOKEN_ID = re.compile(r"tokenizer\.ggml\.\w+_token_id")


def token_arrays(subject: Subject) -> Iterator[Finding]:
    """The arrays that have an element for each token are of one length."""
    tokens = subject.array(keys.TOKENS.template)
    if tokens is None:
        return
    for key in ("tokenizer.ggml.scores", keys.TOKEN_TYPES.template):
        array = subject.array(key)
        if array is not None and len(array) != len(tokens):
            yield Finding(
                "token-arrays-length", subject.path(key, "value.len"), f"{len(array)} elements for {len(tokens)} tokens"
            )


def tokens_twice(subject: Subject) -> Iterator[Finding]:
    """No token stands twice."""
    tokens = subject.array(keys.TOKENS.template, T.STRING)
    if not isinstance(tokens, Strings):
        return
    first: dict[bytes, int] = {}
    raw = list(tokens.raw())
    if len(set(raw)) == len(raw):
        return
    for index, token in enumerate(raw):
        known = first.setdefault(token, index)
        if known != index:
            place = subject.path(keys.TOKENS.template, f"value.array[{index}].string")
            yield Finding("token-twice", place, f"{shown(tokens[index])} is token {known}, too")
            return


def token_ids(subject: Subject) -> Iterator[Finding]:
    """Ids of special tokens are in the vocabulary."""
    tokens = subject.array(keys.TOKENS.template)
    for key in subject.pairs:
        number = subject.value(key, *INTEGERS) if TOKEN_ID.fullmatch(key) else None
        if number is not None and tokens is not None and not 0 <= number < len(tokens):
            yield Finding("token-id-range", subject.path(key), f"{number}; there are {len(tokens)} tokens")


CRASHES = "readers index one with the other"

RULES = (
    Rule(
        "token-arrays-length",
        WARNING,
        "Token arrays of unequal length",
        "metadata_kv.value.len",
        CRASHES,
        "Give each token a score and a type",
        token_arrays,
    ),
    Rule(
        "token-twice",
        WARNING,
        "A token that stands twice",
        "metadata_kv.value.array",
        "llama.cpp llama-vocab.cpp asserts",
        "Rename one of the tokens",
        tokens_twice,
    ),
    Rule(
        "token-id-range",
        WARNING,
        "A token id outside of the vocabulary",
        "metadata_kv.value",
        CRASHES,
        "Correct the id",
        token_ids,
    ),
)
