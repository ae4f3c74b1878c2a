"""One form of a metadata pair, whatever version and byte order it stands in: for comparing and hashing."""

from collections.abc import Mapping
from typing import Any

from .schema import structs


def canonical(pair: Mapping[str, Any]) -> bytes:
    """The bytes of a metadata pair in the wire form as the latest version has it in little-endian.

    Two pairs have the same bytes if and only if key, types and value are the same, floats bit by bit.

    Raises:
        BuildError: A value does not fit its type.
    """
    data: bytes = structs().metadata_kv.build(pair)
    return data
