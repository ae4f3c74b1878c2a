"""Tensors in every form that `write` takes, as infos and pieces of data."""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..blocks import block, blocks
from ..enums import GGMLQuantizationType as T
from ..errors import BuildError, shown
from ..file import Tensor
from ..layout import n_bytes, type_name
from ..schema import ORDERS
from ..sources import ObjectSource, PathSource, Source
from ..targets import CHUNK, Chunks, Content, Memory, Piece, Range, Swapped, array_of, is_bytes_like
from ..values import is_iterable, text
from .arguments import in_path


class FileRange(NamedTuple):
    """A range of a file, as the data of a tensor.

    Attributes:
        file: A path, or a binary file object that can seek. It is read when the tensor is written.
        offset: Where the data starts, in bytes from the start of the file.
        size: Bytes of the data; None means those that the tensor's type and dimensions tell.
    """

    file: str | os.PathLike[str] | BinaryIO
    offset: int = 0
    size: int | None = None


class NewTensor(NamedTuple):
    """A tensor that is to be written.

    Attributes:
        name: Its name.
        type: Its ggml type.
        dimensions: In file order, fastest first: of a numpy array its shape backwards, times the elements of a block.
        data: An array; a bytes-like object; a Tensor of an open file; a FileRange; a binary file object, read from its
            position on; an iterable of arrays and bytes-like objects, the chunks; or a callable without arguments that
            gives an array, a bytes-like object or such an iterable when the tensor is written. Arrays, chunks too, are
            of the dtype of the type's block, and are swapped, as Tensors are, where they are in the other byte order;
            or of uint8. These, bytes-like objects and files are bytes as the file shall hold them, in its byte order.
    """

    name: str
    type: int
    dimensions: tuple[int, ...]
    data: Any


def named(tensors: Any) -> Iterator[tuple[str, Any]]:
    """Every form of tensors as pairs of a name and what it stands for."""
    if hasattr(tensors, "infos"):
        tensors = tensors.infos
    if isinstance(tensors, Mapping):
        yield from tensors.items()
        return
    if not is_iterable(tensors):
        raise BuildError(
            f"expected a mapping from name to tensor, or a list of tensors, found {shown(tensors, 100)}", "tensors"
        )
    for index, tensor in enumerate(tensors):
        if not hasattr(tensor, "name"):
            raise BuildError(f"expected a Tensor or a NewTensor, found {type(tensor).__name__}", f"tensor {index}")
        yield tensor.name, tensor


def info_and_data(name: Any, value: Any, order: str) -> tuple[dict[str, Any], Piece]:
    """What a name stands for: its info in the wire form, without an offset, and its data in the file's order.

    Raises:
        BuildError: It is no tensor, or its bytes are not as many as its type and dimensions tell.
        OSError: A file cannot be read.
    """
    if not isinstance(name, str | bytes):
        raise BuildError(f"expected a string, found {shown(name, 100)}", "name")
    name = text(name)
    if isinstance(value, tuple) and not isinstance(value, NewTensor):
        type, array = value if len(value) == 2 else (None, value)
        if isinstance(type, bool) or not isinstance(type, int):
            raise BuildError(f"expected a pair (tensor type, array), found a {type.__class__.__name__} first", "type")
        return _of_blocks(name, np.asarray(array), type, order)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return _of_blocks(name, array, _plain_type(array), order)
    if not hasattr(value, "dimensions"):
        problem = f"expected a Tensor, a numpy array or a pair (type, array), found {value.__class__.__name__}"
        raise BuildError(problem, "data")
    type, dimensions = value.type, tuple(value.dimensions)
    if isinstance(type, bool) or not isinstance(type, int):
        raise BuildError(
            f"expected a tensor type, as gs.GGMLQuantizationType has them, found {shown(type, 100)}", "type"
        )
    if not isinstance(value, Tensor) and isinstance(value.data, np.ndarray):
        _demand_dimensions(value.data, type, dimensions)
    expected = n_bytes(type, dimensions)
    content, held = _content(value if isinstance(value, Tensor) else value.data, type, order, expected)
    size = held if expected is None else expected
    if size is None:
        problem = f"the size of type {type_name(type)} is not known: give bytes, or a FileRange with a size"
        raise BuildError(problem, "data")
    if held not in (None, size):
        raise BuildError(f"{size} bytes expected for these dimensions, {held} found", "data")
    return _info_and_data(name, type, dimensions, size, content)


def _info_and_data(
    name: str, type: int, dimensions: tuple[int, ...], size: int, content: Content
) -> tuple[dict[str, Any], Piece]:
    return {"name": name, "dimensions": dimensions, "type": type}, Piece(f"tensor {name!r}", size, content)


def _content(data: Any, type: int, order: str, expected: int | None) -> tuple[Content, int | None]:
    """Where the data of a tensor come from, and how many bytes they are, where that is known already.

    Args:
        data: As in a NewTensor.
        type: The tensor type.
        order: Byte order of the file that is written.
        expected: Bytes that type and dimensions tell, if they do.
    """
    if isinstance(data, Tensor):
        return tensor_content(data, order)
    if isinstance(data, np.ndarray | np.generic):
        return _of_array(array_of(data), type, order), data.nbytes
    if is_bytes_like(data):
        array = array_of(data)
        return Memory(array, array.dtype), array.nbytes
    if isinstance(data, FileRange):
        return _of_file(data, expected)
    written = partial(_written_dtype, type, order)
    if callable(data):
        return Chunks(data, written), None
    if hasattr(data, "read"):
        if not isinstance(data.read(0), bytes):
            raise BuildError("expected a file object opened in binary mode", "data")
        if not data.seekable():
            return Chunks(lambda: _read(data, expected or 0), written), None
        return _of_file(FileRange(data, data.tell()), expected)
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise BuildError(f"expected an array, bytes, a file or an iterable, found {data.__class__.__name__}", "data")
    return Chunks(lambda: data, written), None


def tensor_content(tensor: Tensor, order: str) -> tuple[Content, int]:
    """Where the data of a tensor of an open file come from, in a byte order, and how many bytes they are.

    Raises:
        GGUFError: The file is closed, or the bytes are not there; or nobody knows how many they are, or what they mean.
    """
    source, position, size = tensor.located()
    data = Range(source, position)
    if tensor.order == order:
        return data, size
    old, new = (block(tensor.type, each) for each in (tensor.order, order))
    if old is None or new is None:
        raise BuildError(f"nobody knows how to swap the bytes of type {type_name(tensor.type)}", "type")
    return Swapped(data, old.dtype(), new.dtype()), size


def _of_file(data: FileRange, expected: int | None) -> tuple[Content, int | None]:
    """Where a range of a file comes from, and how many bytes it is."""
    file = data.file
    try:
        offset, size = operator.index(data.offset), None if data.size is None else operator.index(data.size)
    except TypeError:
        found = f"found {shown(data.offset)} and {shown(data.size)}"
        raise BuildError(f"expected integers as the offset and the size of a FileRange, {found}", "data") from None
    if isinstance(file, str | os.PathLike):
        source: Source = PathSource.of(file)
        position, left = offset, source.size - offset
    else:
        source = ObjectSource(file)
        position = offset - source.start
        left = source.size - position
    size = expected if size is None else size
    if offset < 0 or (size is not None and not 0 <= size <= left):
        raise BuildError(
            f"{shown(size)} bytes expected at byte {shown(offset)} of {source.name}, {shown(max(0, left))} are there",
            "data",
        )
    return Range(source, position), size


def _read(file: BinaryIO, size: int) -> Iterator[bytes]:
    """As many bytes of a stream as are there, up to a size."""
    while data := file.read(min(size, CHUNK)):
        yield data
        size -= len(data)


def _of_array(array: np.ndarray[Any, Any], type: int, order: str) -> Memory:
    """An array of blocks in either byte order, or of bytes, as the file's order has them."""
    return Memory(array, in_path(_written_dtype, "data", type, order, array.dtype))


def _written_dtype(type: int, order: str, given: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that an array of a dtype is written in.

    Raises:
        BuildError: It is neither that of the type's block, in either byte order, nor uint8.
    """
    struct = block(type, order)
    if struct is not None and any(given == each.dtype() for each in map(block, (type, type), ORDERS) if each):
        return struct.dtype()
    if given == np.uint8:
        return given
    wanted = "" if struct is None else f"{struct.dtype()} in either byte order, or "
    raise BuildError(f"expected dtype {wanted}uint8 for bytes; found {given}, which is no {type_name(type)}")


def _of_blocks(name: str, array: np.ndarray[Any, Any], type: int, order: str) -> tuple[dict[str, Any], Piece]:
    """The info and the data of an array of blocks, or of the bytes of blocks."""
    struct = block(type, order)
    if struct is None:
        raise BuildError(f"type {type_name(type)} has no known block: give a NewTensor with its bytes", "type")
    data = _of_array(array, type, order)
    if data.dtype == struct.dtype():
        shape = array.shape
    elif array.shape and array.shape[-1] % struct.type_size == 0:
        shape = (*array.shape[:-1], array.shape[-1] // struct.type_size)
    else:
        raise BuildError(
            f"expected rows of whole blocks of {struct.type_size} bytes, found uint8 of shape {array.shape}",
            "data",
        )
    return _info_and_data(name, type, _dimensions(shape, struct.block_size), array.nbytes, data)


def _demand_dimensions(array: np.ndarray[Any, Any], type: int, dimensions: tuple[int, ...]) -> None:
    """Refuse an array of blocks whose shape says other dimensions; one in a row says none, and so do bytes."""
    struct = block(type, ORDERS[0])
    if struct is None or array.ndim < 2 or array.dtype.newbyteorder("<") != struct.dtype():
        return
    own = _dimensions(array.shape, struct.block_size)
    if [length for length in own if length != 1] != [length for length in dimensions if length != 1]:
        problem = f"an array of shape {array.shape} has {own} in file order, fastest first; found {dimensions}"
        raise BuildError(problem, "dimensions")


def _dimensions(shape: tuple[int, ...], block_size: int) -> tuple[int, ...]:
    """Dimensions in file order of an array of blocks."""
    return (shape[-1] * block_size, *shape[-2::-1]) if shape else ()


def _plain_type(array: np.ndarray[Any, Any]) -> T:
    """The tensor type of an array of numbers."""
    for type, struct in blocks("<").items():
        if struct.is_plain and type is not T.BF16 and array.dtype.newbyteorder("<") == struct.dtype():
            return type
    raise BuildError(f"numpy's {array.dtype} says no tensor type by itself: give a pair (type, array)", "type")
