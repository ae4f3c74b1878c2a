"""Writing files from plain Python values, numpy arrays, and what `open` read."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .blocks import block, blocks
from .enums import ArrayType, GGUFValueType
from .enums import GGMLQuantizationType as T
from .errors import BuildError, GGUFError
from .keys import ALIGNMENT
from .layout import align_up, alignment_of, known_sizes, n_bytes, place, type_name
from .policy import Parsed, errors
from .schema import LATEST_VERSION, ORDERS, structs
from .values import MetadataKV, infer, text, to_wire


class NewTensor(NamedTuple):
    """A tensor that is to be written.

    Attributes:
        name: Its name.
        type: Its ggml type.
        dimensions: In file order, fastest first.
        data: Its bytes, in the byte order of the file: a contiguous array or a bytes-like object.
    """

    name: str
    type: int
    dimensions: tuple[int, ...]
    data: Any


def write(
    target: str | os.PathLike[str] | BinaryIO,
    metadata: Any,
    tensors: Any = (),
    *,
    order: str = "<",
    version: int = LATEST_VERSION,
    alignment: int | None = None,
) -> None:
    """Write a GGUF file.

    Args:
        target: A path, which is replaced at once when all is written, or a binary file object.
        metadata: What `open` read (`model.metadata`), a list of (key, type, value), or a mapping from key to a value
            or to a pair (type, value), where type is a GGUFValueType or an ArrayType. Types that are not given are
            inferred (see `values.infer`).
        tensors: What `open` read (`model.tensors`, or a list of Tensors), or a mapping from name to a Tensor, a numpy
            array, or a pair (type, array). An array of a plain dtype says its type itself. Quantised data comes as the
            structured dtype of its block, one element a block, or as uint8, the last axis being the bytes of a row;
            both with the type.
        order: Byte order of the file, "<" or ">". Arrays of another order are swapped, blocks field by field.
        version: 1, 2 or 3.
        alignment: In bytes, a power of two. If the metadata holds no `general.alignment` and this is not the default,
            it is added. (Multiples of 8, which the specification allows, are written where the metadata says so.)

    Raises:
        BuildError: A value does not fit its type, or `open` would refuse the file; the path says where.
        OSError: The file cannot be written; a file that was there is left whole.
    """
    layout = structs(order, version)
    pairs = _with_alignment(list(_pairs(metadata)), alignment)
    new = [_in_path(_new_tensor, f"tensor {name!r}", name, value, order) for name, value in _named(tensors)]
    kv = [_in_path(to_wire, f"metadata_kv[{index}]", pair) for index, pair in enumerate(pairs)]
    aligned = alignment_of(kv)
    offsets = place([memoryview(tensor.data).nbytes for tensor in new], aligned)
    infos = [
        {"name": tensor.name, "dimensions": tensor.dimensions, "type": tensor.type, "offset": offset}
        for tensor, offset in zip(new, offsets, strict=True)
    ]
    start = layout.gguf.build({"metadata_kv": kv, "tensor_infos": infos})
    for finding in errors(Parsed(kv, infos, known_sizes(infos), aligned, 0, 0, None)):
        raise BuildError(finding.message, finding.path)
    chunks = _chunks(start, new, aligned)
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "write"):
        raise TypeError(f"expected a path or a binary file object, found {target.__class__.__name__}")
    if not isinstance(target, str | os.PathLike):
        _write_all(target, chunks)
    elif os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as special:  # a pipe or a device cannot be replaced
            _write_all(special, chunks)
    else:
        _replace(os.path.realpath(target), chunks)


def _pairs(metadata: Any) -> Iterator[MetadataKV]:
    """Every form of metadata as typed pairs."""
    if hasattr(metadata, "pairs"):
        yield from metadata.pairs
        return
    if not isinstance(metadata, Iterable):
        raise BuildError(f"expected a mapping or a list of (key, type, value), found {metadata!r:.100}", "metadata_kv")
    if not isinstance(metadata, Mapping):
        for index, pair in enumerate(metadata):
            if not isinstance(pair, tuple) or len(pair) != len(MetadataKV._fields):
                raise BuildError(f"expected (key, type, value), found {pair!r:.100}", f"metadata_kv[{index}]")
            yield MetadataKV(*pair)
        return
    for index, (key, value) in enumerate(metadata.items()):
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], GGUFValueType | ArrayType):
            yield MetadataKV(key, *value)
        else:
            yield MetadataKV(key, _in_path(infer, f"metadata_kv[{index}].value", value), value)


def _in_path(function: Any, path: str, *args: Any) -> Any:
    """Call a function whose errors belong to a path. Whatever it raises of what it was given is a BuildError."""
    try:
        return function(*args)
    except GGUFError as error:
        inner = "" if error.path == path else error.path
        raise BuildError(error.problem, inner).inside(path, None) from None
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise BuildError(f"{type(error).__name__}: {error}", path) from error


def _with_alignment(pairs: list[MetadataKV], alignment: int | None) -> list[MetadataKV]:
    """The pairs, with `general.alignment` at the end where it is asked for and not there."""
    if alignment is None:
        return pairs
    if (
        isinstance(alignment, bool)
        or not isinstance(alignment, int | np.integer)
        or alignment < 1
        or alignment & (alignment - 1)
    ):
        raise BuildError(f"{alignment!r} is no alignment: llama.cpp's loader takes powers of two only", "alignment")
    held = [pair.value for pair in pairs if text(pair.key) == ALIGNMENT.template]
    if held and not (isinstance(held[0], int | np.integer) and held[0] == alignment):
        raise BuildError(f"{alignment} asked for, but the metadata says {held[0]!r:.100}", "alignment")
    if held or alignment == alignment_of([]):
        return pairs
    return [*pairs, MetadataKV(ALIGNMENT.template, GGUFValueType.UINT32, int(alignment))]


def _named(tensors: Any) -> Iterator[tuple[str, Any]]:
    """Every form of tensors as pairs of a name and what it stands for."""
    if hasattr(tensors, "infos"):
        tensors = tensors.infos
    if isinstance(tensors, Mapping):
        yield from tensors.items()
        return
    for index, tensor in enumerate(tensors):
        if not hasattr(tensor, "name"):
            raise BuildError(f"expected a Tensor or a NewTensor, found {type(tensor).__name__}", f"tensor {index}")
        yield tensor.name, tensor


def _new_tensor(name: str, value: Any, order: str) -> NewTensor:
    """What a name stands for, as bytes in the file's order with their type and dimensions."""
    data: Any
    if isinstance(value, tuple) and not isinstance(value, NewTensor):
        type, array = value if len(value) == 2 else (None, value)
        if isinstance(type, bool) or not isinstance(type, int):
            raise BuildError(f"expected a pair (tensor type, array), found a {type.__class__.__name__} first", "type")
        dimensions, data = _blocks_of(np.asarray(array), type, order)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        type = _plain_type(array)
        dimensions, data = _blocks_of(array, type, order)
    elif not hasattr(value, "dimensions"):
        problem = f"expected a Tensor, a numpy array or a pair (type, array), found {value.__class__.__name__}"
        raise BuildError(problem, "data")
    else:
        type, dimensions, data = value.type, tuple(value.dimensions), value.data
        if isinstance(data, np.ndarray):
            data = _ordered(data, type, order)
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    held = memoryview(data).cast("B")
    size = n_bytes(type, dimensions)
    if size not in (None, held.nbytes):
        raise BuildError(f"{size} bytes expected for these dimensions, {held.nbytes} found", "data")
    return NewTensor(text(name), type, dimensions, held)


def _blocks_of(array: np.ndarray[Any, Any], type: int, order: str) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
    """The dimensions, and the blocks in the file's order, of an array in one of the forms that `write` takes."""
    struct = block(type, order)
    if struct is None:
        raise BuildError(f"type {type_name(type)} has no known block: give a NewTensor with its bytes", "type")
    ordered = _ordered(array, type, order)
    if ordered.dtype == struct.dtype():
        return _dimensions(array.shape, struct.block_size), ordered
    if array.dtype == np.uint8 and array.shape and array.shape[-1] % struct.type_size == 0:
        shape = (*array.shape[:-1], array.shape[-1] // struct.type_size)
        return _dimensions(shape, struct.block_size), array
    raise BuildError(
        f"expected dtype {struct.dtype()}, or uint8 with rows of whole blocks of {struct.type_size} bytes; "
        f"found {array.dtype} of shape {array.shape}",
        "data",
    )


def _dimensions(shape: tuple[int, ...], block_size: int) -> tuple[int, ...]:
    """Dimensions in file order of an array of blocks."""
    return (shape[-1] * block_size, *shape[-2::-1]) if shape else ()


def _ordered(array: np.ndarray[Any, Any], type: int, order: str) -> np.ndarray[Any, Any]:
    """Blocks in the file's byte order; arrays of other dtypes as they are."""
    for held in map(block, (type, type), ORDERS):
        if held is not None and array.dtype == held.dtype():
            return array.astype(block(type, order).dtype(), copy=False)  # type: ignore[union-attr]
    return array


def _plain_type(array: np.ndarray[Any, Any]) -> T:
    """The tensor type of an array of numbers."""
    for type, struct in blocks("<").items():
        if struct.is_plain and type is not T.BF16 and array.dtype.newbyteorder("<") == struct.dtype():
            return type
    raise BuildError(f"numpy's {array.dtype} says no tensor type by itself: give a pair (type, array)", "type")


PIECE = 1 << 24
"""Bytes handed to one write call."""


def _chunks(start: bytes, tensors: list[NewTensor], alignment: int) -> Iterator[memoryview | bytes]:
    """The file in pieces: everything before the data, then each tensor with the zeros after it."""
    yield start
    for tensor in tensors:
        for position in range(0, tensor.data.nbytes, PIECE):
            yield tensor.data[position : position + PIECE]
        yield bytes(align_up(tensor.data.nbytes, alignment) - tensor.data.nbytes)


def _write_all(file: BinaryIO, chunks: Iterable[memoryview | bytes]) -> None:
    """Write every byte, also where the file takes fewer at once (raw files may)."""
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            written = file.write(rest)
            rest = rest[len(rest) if written is None else written :]


def _replace(path: str, chunks: Iterable[memoryview | bytes]) -> None:
    """Write a file beside `path`, then put it in its place at once; the old file stays whole until then."""
    import tempfile  # not at the top: it costs a third of the package's import

    folder, name = os.path.split(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name[:40]}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with open(handle, "wb") as file:
            os.chmod(temporary, _mode(path))
            _write_all(file, chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _mode(path: str) -> int:
    """The permissions of the file that is there, or those of a new one."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _sync_folder(folder: str) -> None:
    """Make the new name last, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
