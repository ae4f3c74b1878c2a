"""Hashes of what a model is: of each tensor's data, of all data together, and of the metadata; not of the file's bytes.

algorithms   what can be computed
manifest     lines of hashes, written and checked
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..canonical import canonical
from ..errors import GGUFError, shown
from ..file import Model
from ..tensor_data import extent, pieces
from ..values import is_iterable, text
from .algorithms import ALGORITHMS, METADATA


class Hash(NamedTuple):
    """One hash.

    Attributes:
        algorithm: One of `ALGORITHMS`, or `METADATA`.
        value: In hexadecimal; of "uuid" as UUIDs are written.
        tensor: The name of the tensor; None where it is of the whole model.
    """

    algorithm: str
    value: str
    tensor: str | None = None


def hashes(
    model: Model,
    tensors: Sequence[str] = ("sha256",),
    whole: Sequence[str] = ("sha256",),
    show: Callable[[int, int], None] = lambda done, whole: None,
) -> Iterator[Hash]:
    """Hashes of each tensor's data, in the order of the infos, then of all of it in that order, without padding.

    They are those of llama.cpp's gguf-hash: data as it stands in the file, so that byte order counts, and names, types
    and dimensions do not. (gguf-py's gguf_hash leaves out tensors whose names end in .attention.masked_bias,
    .attention.bias or .rotary_emb.inv_freq; gguf-hash does not.) Data is read in pieces, in little memory; of types
    that nobody knows up to the next tensor.

    Args:
        model: An open model.
        tensors: Algorithms for each tensor.
        whole: Algorithms for the whole model.
        show: Called with the bytes hashed so far, and all of them.

    Raises:
        GGUFError: There is no such algorithm, or it needs a package that is not installed; a file is closed, or its
            data is not there.
    """
    tensors, whole = _algorithms("tensors", tensors), _algorithms("whole", whole)
    infos = model.tensors.infos if tensors or whole else []
    size = sum(extent(tensor) for tensor in infos)
    together = {name: ALGORITHMS[name].start() for name in whole}
    done = 0
    for tensor in infos:
        alone = {name: ALGORITHMS[name].start() for name in tensors}
        for piece in pieces(tensor):
            for hasher in (*alone.values(), *together.values()):
                hasher.update(piece)
            done += len(piece)
            show(done, size)
        for name, hasher in alone.items():
            yield Hash(name, ALGORITHMS[name].text(hasher), tensor.name)
    for name, hasher in together.items():
        yield Hash(name, ALGORITHMS[name].text(hasher))


def _algorithms(path: str, given: Any) -> list[str]:
    """Names of algorithms.

    Raises:
        GGUFError: They are none; with the argument.
    """
    if isinstance(given, str) or not is_iterable(given):
        raise GGUFError(f"expected a list of algorithms, found {shown(given, 100)}", path)
    names = list(given)
    for name in names:
        if not isinstance(name, str) or name not in ALGORITHMS:
            raise GGUFError(f"there is no algorithm {shown(name)}; there are {', '.join(ALGORITHMS)}", path)
    return names


def metadata_hash(model: Model) -> Hash:
    """The hash of the metadata: of what the pairs say, not of how or where they are written.

    It is the SHA-256 of all pairs put together, each as version 3 has it in little-endian (`canonical.canonical`), in
    ascending order of the bytes of their keys, and of pairs of one key of their own. So neither version and byte order
    of the file nor the order of the pairs change it, and nothing of the tensors does; a key, a type, a bit of a value
    does.
    """
    pairs = sorted(
        (text(pair["key"]).encode("utf-8", "surrogateescape"), canonical(pair)) for pair in model.head["metadata_kv"]
    )
    hasher = hashlib.sha256()
    for _, data in pairs:
        hasher.update(data)
    return Hash(METADATA, hasher.hexdigest())


__all__ = ["Hash", "hashes", "metadata_hash"]
