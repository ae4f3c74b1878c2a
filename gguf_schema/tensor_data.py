"""Tensor data that is read in pieces, never mapped: a file of any size in little memory."""

from collections.abc import Iterator

from .errors import GGUFError
from .file import Model, Tensor
from .sources import FileSource

CHUNK = 1 << 20
"""Bytes read at once; more than any block has."""


def read_exactly(model: Model, position: int, size: int) -> bytes:
    """So many bytes from an absolute position on.

    Raises:
        GGUFError: The file is closed, or ends before.
    """
    if model.closed:
        raise GGUFError("the file is closed")
    data = model.source.read_at(position, size)
    if len(data) < size:
        raise GGUFError(f"{size} bytes expected at byte {position}, {len(data)} are there")
    return data


def extent(tensor: Tensor) -> int:
    """The bytes of a tensor's data. Of a type that nobody knows, all up to the next tensor or the end of the file."""
    return max(0, tensor.file.size - tensor.data_offset) if tensor.n_bytes is None else tensor.n_bytes


def pieces(tensor: Tensor, unit: int = 1) -> Iterator[bytes]:
    """The data of a tensor (see `extent`) in pieces of about CHUNK bytes, whole units but for the end of the last.

    Args:
        tensor: The tensor.
        unit: In bytes.

    Raises:
        GGUFError: The bytes are not all there, or the file is closed, or has changed meanwhile.
    """
    size = extent(tensor)
    step = CHUNK // unit * unit
    try:
        for done in range(0, size, step):
            yield read_exactly(tensor.file, tensor.data_offset + done, min(step, size - done))
        source = tensor.file.source
        if isinstance(source, FileSource) and source.has_changed():
            raise GGUFError(f"{source.name} has changed since it was opened")
    except GGUFError as error:
        raise error.inside(f"tensor {tensor.name!r}", None) from None
