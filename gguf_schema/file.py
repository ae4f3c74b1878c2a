"""Opening files: what `gguf_schema.open` returns, and the views of its parts."""

import contextlib
import gc
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from .blocks import Block, block
from .enums import ValueType
from .errors import CheckError, Finding, GGUFError
from .keys import SPLIT_KEYS
from .layout import Fields, align_up, known_sizes, n_elements, sizes, type_name
from .limits import MAX_NESTING
from .policy import Parsed, errors
from .schema import GGUFStructs, sniff
from .sources import MemorySource, Reader, Source, source_of
from .values import MetadataKV, plain_pairs
from .walk import Enter, Node, trace


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Let Python's cycle collector rest: thousands of new containers without a cycle make it look at all of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Metadata(Mapping[str, Any]):
    """The metadata pairs as a mapping from key to plain value. Of a key that stands twice, the first is taken.

    Attributes:
        pairs: Every pair (`key`, `type`, `value`) in file order, duplicates too.
    """

    def __init__(self, pairs: list[MetadataKV]) -> None:
        self.pairs = pairs

    @cached_property
    def _by_key(self) -> dict[str, MetadataKV]:
        by_key: dict[str, MetadataKV] = {}
        for pair in self.pairs:
            by_key.setdefault(pair.key, pair)
        return by_key

    def type(self, key: str) -> ValueType:
        """The exact type of a value: a GGUFValueType, or an ArrayType."""
        return self._by_key[key].type

    def __getitem__(self, key: str) -> Any:
        return self._by_key[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    # Values may be numpy arrays, which have no one truth value: metadata is equal to itself alone.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Metadata: {len(self.pairs)} pairs>"


class Tensor:
    """One tensor of an open file.

    Attributes:
        name: Its name.
        type: A GGMLQuantizationType, or the number where nobody knows it.
        dimensions: In file order, fastest first (ggml's `ne`).
        offset: Start of its data, in bytes, relative to the tensor data.
        n_bytes: Bytes of its data; where the type tells no size the gap to the next tensor, None for the last one.
        file: The open file that holds its data.
    """

    __slots__ = ("dimensions", "file", "n_bytes", "name", "offset", "type")

    def __init__(self, info: Mapping[str, Any], n_bytes: int | None, model: "Model") -> None:
        self.name: str = info["name"]
        self.type: int = info["type"]
        self.dimensions: tuple[int, ...] = tuple(info["dimensions"])
        self.offset: int = info["offset"]
        self.n_bytes = n_bytes
        self.file = model

    @property
    def shard(self) -> int:
        """The number of its file among the shards of a model, from 0; 0 in a model of one file."""
        return self.file.shard

    @property
    def order(self) -> str:
        """Byte order of its data, "<" or ">"."""
        return self.file.order

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions in numpy's order: slowest first."""
        return self.dimensions[::-1]

    @property
    def n_elements(self) -> int:
        """The number of elements."""
        return n_elements(self.dimensions)

    @property
    def data_offset(self) -> int:
        """Start of its data, in bytes, absolute; in its shard, where there are several."""
        return self.file.data_offset + self.offset

    @property
    def block(self) -> Block | None:
        """The Struct of one block, with `block_size` and `type_size`; None for a type that nobody knows."""
        return block(self.type, self.order)

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The data, read-only; of a path memory-mapped, so that nothing is read before it is used.

        Plain types: shape `shape`, dtype of the type in the file's byte order (BF16 as uint16 bits). Quantised types:
        one element a block, shape `shape` with the last axis divided by the block size, dtype structured with the
        block's fields. Types of unknown size: uint8, shape (n_bytes,).

        Raises:
            GGUFError: The file is closed, or the bytes are not there; or nobody knows how many they are.
        """
        source, position, size = self.located()
        dtype, shape = self.form()
        try:
            buffer, start = source.view(position, size) if size else (bytes(dtype.itemsize), 0)
        except GGUFError as error:
            raise error.inside(f"tensor {self.name!r}", None) from None
        return np.frombuffer(buffer, dtype, size // dtype.itemsize, start).reshape(shape)

    def form(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and the shape that `data` has, of which nothing is read.

        Raises:
            GGUFError: The file is closed, or the bytes are not there; or nobody knows how many they are; or they make
                no such array; or numpy has none.
        """
        size = self.located()[2]
        dtype, shape = self._rows() or (np.dtype(np.uint8), (size,))
        if math.prod(shape) * dtype.itemsize != size:  # more dimensions than ggml has: they tell no size
            raise GGUFError(f"{size} bytes make no array of shape {self.shape}", f"tensor {self.name!r}")
        try:
            np.ndarray(shape, dtype, bytes(dtype.itemsize), strides=[0] * len(shape))  # one block, again and again
        except (ValueError, OverflowError) as error:
            raise GGUFError(f"numpy has no array of shape {self.shape}: {error}", f"tensor {self.name!r}") from None
        return dtype, shape

    def located(self) -> tuple[Source, int, int]:
        """The source of its data, the position of the data in it and their size, in bytes; for who copies them unread.

        Raises:
            GGUFError: The file is closed, or the bytes are not there; or nobody knows how many they are.
        """
        path = f"tensor {self.name!r}"
        if self.file.closed:
            raise GGUFError("the file is closed", path)
        if self.n_bytes is None:
            raise GGUFError(f"the size of type {self.type} is not known", path)
        if self.data_offset + self.n_bytes > self.file.size:
            raise GGUFError(f"{self.n_bytes} bytes declared, the file ends at byte {self.file.size}", path)
        return self.file.source, self.data_offset, self.n_bytes

    def _rows(self) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
        """The dtype of a block and the shape in blocks; None where the type is unknown or a row is no whole blocks."""
        struct = self.block
        *outer, row = self.shape or (1,)
        if struct is None or row % struct.block_size:
            return None
        return struct.dtype(), (*outer, row // struct.block_size) if self.dimensions else ()

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r}: {type_name(self.type)}, dimensions {list(self.dimensions)}>"


class Tensors(Mapping[str, Tensor]):
    """The tensors as a mapping from name to Tensor. Of a name that stands twice, the first is taken.

    Attributes:
        infos: Every Tensor in file order, duplicates too.
    """

    def __init__(self, infos: list[Tensor]) -> None:
        self.infos = infos

    @cached_property
    def _by_name(self) -> dict[str, Tensor]:
        by_name: dict[str, Tensor] = {}
        for tensor in self.infos:
            by_name.setdefault(tensor.name, tensor)
        return by_name

    def __getitem__(self, name: str) -> Tensor:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"<Tensors: {len(self.infos)}>"


class Model:
    """An open GGUF file: its metadata and tensor infos are read, its tensor data is not.

    Use it in a `with` statement, or call `close`. Arrays that were taken from it stay valid. Of a model in shards it is
    the first one: `tensors` are those of all, `metadata` is of the model, everything else is of that file alone.

    Attributes:
        name: The path, or what stands for it.
        size: Bytes of the whole file.
        version: 1, 2 or 3.
        order: Byte order, "<" or ">".
        alignment: In bytes.
        infos_end: Absolute offset of the first byte after the tensor infos.
        data_offset: Absolute offset where the tensor data starts, or would start.
        metadata: The metadata pairs, a `Metadata`.
        tensors: The tensors, a `Tensors`.
        head: All that was parsed, in the wire form: the fields of `GGUFStructs.head`.
        layout: The constructs of the file's version and byte order.
        source: Where the bytes come from.
        shard: The number that the file has among the shards of a model, from 0; 0 where it is no shard.
        later: The other shards of the model, in order, where this is the first one and they were opened with it.
    """

    def __init__(self, source: Source, check: bool, max_nesting: int) -> None:
        self.source = source
        self.closed = False
        self.shard = 0
        self.later: tuple[Model, ...] = ()
        self.name = source.name
        self.size = source.size
        self._max_nesting = max_nesting
        reader = Reader(source)
        self.layout = sniff(reader)
        head = self.layout.head.parse_stream(reader, max_nesting=max_nesting)
        self.version = self.layout.version
        self.order = self.layout.order
        self.alignment: int = head.alignment
        self.infos_end = reader.tell()
        self.data_offset = align_up(self.infos_end, self.alignment)
        self.head = head
        self._known_sizes = known_sizes(head.tensor_infos)
        if check:
            for finding in self._findings():
                raise self._placed([finding])[0]

    @cached_property
    def metadata(self) -> Metadata:
        """The metadata pairs; of a model in shards without those of `split.*`, which tell of the files (see `head`)."""
        with no_collection():
            return Metadata(plain_pairs(self.metadata_kv))

    @property
    def metadata_kv(self) -> Sequence[Fields]:
        """The same pairs in the wire form."""
        pairs: Sequence[Fields] = self.head.metadata_kv
        return [pair for pair in pairs if pair["key"] not in SPLIT_KEYS] if self.later else pairs

    @cached_property
    def tensors(self) -> Tensors:
        """The tensors; of a model in shards those of all."""
        with no_collection():
            return Tensors([tensor for shard in self.shards for tensor in shard._own_tensors()])

    def _own_tensors(self) -> Iterator[Tensor]:
        infos = self.head.tensor_infos
        for info, size in zip(infos, sizes(infos, self._known_sizes), strict=True):
            yield Tensor(info, size, self)

    @property
    def shards(self) -> "tuple[Model, ...]":
        """The files of the model, in order: this one, and those that were opened with it."""
        return self, *self.later

    def demand_one_file(self) -> None:
        """Refuse to take a model in shards for one file.

        Raises:
            GGUFError: It is in shards.
        """
        if self.later:
            problem = f"the model is in {len(self.shards)} files: open one with shards=False, or merge them"
            raise GGUFError(problem)

    def _findings(self) -> Iterator[Finding]:
        """The faults for which `open` refuses a file, not yet placed."""
        head = self.head
        places = self.alignment, self.infos_end, self.data_offset, self.size
        return errors(Parsed(head.metadata_kv, head.tensor_infos, self._known_sizes, *places))

    def faults(self) -> list[CheckError]:
        """Every fault for which `open` refuses a file, with path, offset and code; none in a file that was checked."""
        return self._placed(list(self._findings()))

    def _placed(self, findings: list[Finding]) -> list[CheckError]:
        """Findings as errors, with the offsets of the fields at fault, found in one pass."""
        wanted = {finding.path for finding in findings if finding.offset is None}
        starts = {node.path: node.start for node in self.trace(*wanted) if node.path in wanted} if wanted else {}
        faults = []
        for finding in findings:
            offset = starts.get(finding.path) if finding.offset is None else finding.offset
            if offset is None:
                raise GGUFError("the file has changed since it was opened", finding.path)
            fault = CheckError(finding.message, finding.path, offset)
            fault.code = finding.code
            faults.append(fault)
        return faults

    def trace(self, *paths: str) -> Iterator[Node]:
        """The nodes at these schema paths and those on the way, with their absolute offsets, by parsing once more.

        Raises:
            GGUFError: The file is closed, or has changed.
        """
        outer = {""} | {path[:i] for path in paths for i, letter in enumerate(path) if letter in ".["}
        return self.trace_inside(lambda path, items: path in outer)

    def trace_inside(self, enter: Enter) -> Iterator[Node]:
        """All nodes up to the tensor infos, divided as far as `enter` says (see `walk.trace`)."""
        if self.closed:
            raise GGUFError("the file is closed")
        return trace_head(self.source, self.layout, enter, self._max_nesting)

    def close(self) -> None:
        """Close the file. Arrays taken from tensors stay valid; tensors can no longer be asked for their data."""
        for shard in self.shards:
            shard.closed = True
            shard.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: GGUF v{self.version}, {self.metadata}, {self.tensors}>"


def open(source: Any, *, check: bool = True, max_nesting: int = MAX_NESTING) -> Model:
    """Open one GGUF file: read its metadata and tensor infos, whatever its size.

    Args:
        source: A path; a bytes-like object; or a binary file object, read from its current position, which stays the
            caller's to close.
        check: Refuse files that can be read in more than one way or not safely (see `policy`).
        max_nesting: Levels of arrays of arrays that are read. Python's stack allows some 60.

    Returns:
        The open file. Close it, or use it in a `with` statement: a path stays open until then.

    Raises:
        ParseError: It is no GGUF file, or ends too early; FileKindError, TruncatedError and NestingError say more.
        CheckError: It has a fault for which it is refused.
        OSError: The path cannot be read.
    """
    opened = source_of(source, _refuse_early)
    try:
        with no_collection():
            return Model(opened, check, max_nesting)
    except BaseException:
        opened.close()
        raise


def trace_head(source: Source, layout: GGUFStructs, enter: Enter, max_nesting: int = MAX_NESTING) -> Iterator[Node]:
    """The nodes of a file up to the end of its tensor infos (see `walk.trace`).

    Args:
        source: The file.
        layout: Its structs.
        enter: What is divided.
        max_nesting: Levels of arrays of arrays that are read.

    Raises:
        GGUFError: A field cannot be read; those before it were reported.
    """
    return trace(layout.head, Reader(source), enter, stream_start=0, stream_end=source.size, max_nesting=max_nesting)


def any_source(source: Any) -> Source:
    """The Source of what may be no GGUF file: of a stream of another kind, perhaps an endless one, only the start.

    Raises:
        OSError: The path cannot be read.
    """
    starts: list[bytes] = []

    def keep(start: bytes) -> None:
        starts.append(start)
        _refuse_early(start)

    try:
        return source_of(source, keep)
    except GGUFError:
        return MemorySource(starts[-1])


def _refuse_early(start: bytes) -> None:
    """Refuse a stream that must be read whole by its first bytes, before the rest is read."""
    sniff(io.BytesIO(start))
