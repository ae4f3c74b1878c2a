"""What can be computed, under the names that llama.cpp's gguf-hash has. The xxh kinds want the package xxhash."""

import hashlib
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..errors import GGUFError

METADATA = "metadata"
"""The name, in place of an algorithm's, of the hash of the metadata, which gguf-hash does not have."""

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "en.wikipedia.org/wiki/Llama.cpp")
"""What llama.cpp's UUIDs of models are made under."""


class Hasher(Protocol):
    """What hashlib's objects do."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""

    def digest(self) -> bytes:
        """The hash of all bytes so far."""

    def hexdigest(self) -> str:
        """The same in hexadecimal."""


class Algorithm(NamedTuple):
    """A way to hash.

    Attributes:
        start: Makes a hasher.
        text: What is said of the hash.
        is_hash: Whether tensors have one; the UUID is one of the whole model alone.
    """

    start: Callable[[], Hasher]
    text: Callable[[Any], str] = lambda hasher: str(hasher.hexdigest())
    is_hash: bool = True


def _xxhash(kind: str) -> Hasher:
    try:
        import xxhash
    except ImportError:
        problem = f"{kind} wants the package xxhash: pip install 'gguf_schema[hash]'; sha256 needs nothing"
        raise GGUFError(problem) from None
    hasher: Hasher = getattr(xxhash, kind)()
    return hasher


def _uuid(hasher: Hasher) -> str:
    return str(uuid.UUID(bytes=hasher.digest()[:16], version=5))


ALGORITHMS = {
    "xxh64": Algorithm(lambda: _xxhash("xxh64")),
    "xxh3": Algorithm(lambda: _xxhash("xxh3_64")),
    "sha1": Algorithm(lambda: hashlib.sha1(usedforsecurity=False)),
    "sha256": Algorithm(hashlib.sha256),
    "uuid": Algorithm(lambda: hashlib.sha1(NAMESPACE.bytes, usedforsecurity=False), _uuid, is_hash=False),
}
"""Name → algorithm, in the order in which gguf-hash lists them."""
