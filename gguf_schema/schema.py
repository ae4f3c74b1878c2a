"""THE FORMAT. Everything that is known of the layout of a GGUF file is declared here, once.

`GGUFStructs(order, version)` makes the constructs of one byte order and one version, `structs` caches them, and `GGUF`
reads and writes files of any. The fields bear the names of the GGUF specification's C structs. The tree is data:
Structs, `this` expressions and named constructs, no functions; whatever else the package does with the format walks it.

The blocks of tensor data are in `blocks`, the enumerations in `enums`.
"""

from collections.abc import Mapping
from functools import cache

import construct
from construct import len_, this

from .constructs import (
    Array,
    Bool,
    Bytes,
    Const,
    Default,
    EnumAdapter,
    Float,
    GreedyBytes,
    Guarded,
    Integer,
    NumberArray,
    Rebuild,
    RecordArray,
    Recursive,
    String,
    StringArray,
    Struct,
    Switch,
    field,
)
from .enums import GGMLQuantizationType
from .enums import GGUFValueType as T
from .errors import BuildError, FileKindError, ParseError, TruncatedError, shown
from .layout import Alignment, AlignmentPadding, Placed, TensorData
from .signatures import LONGEST, file_kind

MAGIC = b"GGUF"
ORDER_NAMES = {"<": "little", ">": "big"}
ORDERS = tuple(ORDER_NAMES)
VERSIONS = (1, 2, 3)
LATEST_VERSION = VERSIONS[-1]


class GGUFStructs:
    """The constructs of one layout.

    Args:
        order: Byte order of all numbers: "<" (little-endian) or ">" (big-endian).
        version: 1, 2 or 3. Version 1 counts in 32 bits, later ones in 64; version 3 is version 2 in either byte order.
    """

    def __init__(self, order: str, version: int) -> None:
        self.order = order
        self.version = version

        self.uint8, self.int8 = Integer(order, "B"), Integer(order, "b")
        self.uint16, self.int16 = Integer(order, "H"), Integer(order, "h")
        self.uint32, self.int32 = Integer(order, "L"), Integer(order, "l")
        self.uint64, self.int64 = Integer(order, "Q"), Integer(order, "q")
        self.float32, self.float64 = Float(order, "f"), Float(order, "d")
        self.bool = Bool(self.uint8)

        # What version 2 widened.
        self.count, self.length, self.dimension = (Integer(order, "L" if version == 1 else "Q") for _ in range(3))

        self.string = String(
            Struct(
                field("len", Rebuild(self.length, len_(this.string)), "Length in bytes, without a terminator"),
                field("string", Bytes(this.len), "UTF-8; not terminated by NUL"),
            )
        )

        self.numbers = {
            T.UINT8: self.uint8,
            T.INT8: self.int8,
            T.UINT16: self.uint16,
            T.INT16: self.int16,
            T.UINT32: self.uint32,
            T.INT32: self.int32,
            T.FLOAT32: self.float32,
            T.BOOL: self.bool,
            T.UINT64: self.uint64,
            T.INT64: self.int64,
            T.FLOAT64: self.float64,
        }
        self.value_type = EnumAdapter(self.uint32, T)

        nested = Recursive("array")
        self.array = Struct(
            field("type", self.value_type, "Type of the elements"),
            field("len", Rebuild(self.length, len_(this.array)), "Number of elements, not bytes"),
            field(
                "array",
                Switch(
                    this.type,
                    {
                        **{type: NumberArray(Array(this.len, number)) for type, number in self.numbers.items()},
                        T.STRING: StringArray(Array(this.len, self.string)),
                        T.ARRAY: Array(this.len, nested),
                    },
                ),
                "The elements, back to back; those of an array of arrays may differ in type",
            ),
        )
        nested.subcon = self.array

        self.metadata_kv = Struct(
            field("key", self.string, "Segments of [a-z0-9_-] with dots between them, at most 65,535 bytes; unique"),
            field("value_type", self.value_type, "Type of the value"),
            field(
                "value",
                Switch(this.value_type, {**self.numbers, T.STRING: self.string, T.ARRAY: nested}),
                "The value",
            ),
        )

        self.tensor_info = Struct(
            field("name", self.string, "UTF-8 of 1 to 63 bytes; unique"),
            field("n_dimensions", Rebuild(self.uint32, len_(this.dimensions)), "Number of dimensions; ggml keeps 4"),
            field("dimensions", Array(this.n_dimensions, self.dimension), "ggml's ne: numpy's shape, reversed"),
            field("type", EnumAdapter(self.uint32, GGMLQuantizationType), "The ggml type of the elements"),
            field("offset", self.uint64, "Start of the data, relative to tensor_data; a multiple of the alignment"),
        )

        magic = field("magic", Const(MAGIC, Bytes(len(MAGIC))), "'GGUF', in both byte orders")
        self.preamble = Struct(
            magic,
            field("version", self.uint32, "Tells the byte order, too: it is below 65,536 in the right one"),
        )

        head = (
            magic,
            field("version", Const(version, self.uint32), "Version of the format"),
            field("tensor_count", Rebuild(self.count, len_(this.tensor_infos)), "Number of tensor infos"),
            field("metadata_kv_count", Rebuild(self.count, len_(this.metadata_kv)), "Number of metadata pairs"),
            field("metadata_kv", RecordArray(Array(this.metadata_kv_count, self.metadata_kv)), "The metadata pairs"),
            field("alignment", Alignment(this.metadata_kv), "No bytes: general.alignment, or 32 where it is absent"),
            field(
                "tensor_infos",
                Placed(RecordArray(Array(this.tensor_count, self.tensor_info)), this.alignment),
                "Where each tensor is and what it is made of",
            ),
        )
        self.head = Struct(*head)
        self.gguf = Struct(
            *head,
            field(
                "padding",
                AlignmentPadding(this.alignment, this.tensor_infos, data="tensor_data"),
                "Zeros up to the alignment",
            ),
            field(
                "tensor_data",
                TensorData(this.alignment, this.tensor_infos),
                "The tensors, each at its offset, with zeros up to the alignment after each",
            ),
            field("tail", Default(GreedyBytes(), b""), "Bytes after the last tensor, which mean nothing to GGUF"),
        )


def structs(order: str = "<", version: int = LATEST_VERSION) -> GGUFStructs:
    """The constructs of one layout, made once.

    Raises:
        GGUFError: No such order or version.
    """
    if not isinstance(order, str) or order not in ORDERS:
        raise BuildError(f"unknown byte order {shown(order)}; '<' and '>' are known", "order")
    if isinstance(version, bool) or not isinstance(version, int) or version not in VERSIONS:
        raise BuildError(f"unknown version {shown(version)}; {VERSIONS[0]} to {LATEST_VERSION} are known", "version")
    return _structs(order, version)


_structs = cache(GGUFStructs)


def sniff(stream) -> GGUFStructs:
    """The layout of the file that begins at the stream's position, which is left where it was.

    gguf.h tells the byte order by the version: its low 16 bits are zero where it is read in the wrong one.

    Raises:
        FileKindError: Another kind of file, named where it can be.
        TruncatedError: It ends before the version does.
        ParseError: A version that nobody knows.
    """
    position = stream.tell()
    start = stream.read(max(LONGEST, structs().preamble.sizeof()))
    stream.seek(position)
    if not MAGIC.startswith(start[: len(MAGIC)]) or not start:
        raise FileKindError(f"expected {MAGIC!r}, found {start[: len(MAGIC)]!r}: {file_kind(start)}", "magic", 0)
    if len(start) < len(MAGIC):
        raise TruncatedError(f"expected {MAGIC!r}, the file ends after {start!r}", "magic", 0)
    versions = []
    for order in ORDERS:
        versions.append(structs(order).preamble.parse(start).version)
        if versions[-1] in VERSIONS:
            return structs(order, versions[-1])
    found = min(versions)
    raise ParseError(f"unknown version {found}; {VERSIONS[0]} to {LATEST_VERSION} are known", "version", len(MAGIC))


class GGUFFile(Guarded, construct.Construct):
    """A whole file of any layout. What it parses holds `order` besides the fields of `GGUFStructs.gguf`.

    Builds from a mapping with `metadata_kv` and `tensor_infos`, and where wanted `order` ("<"), `version` (3), offsets,
    `padding`, `tensor_data` and `tail`; counts, lengths and what is left out are computed. After a change that moves
    the tensor data, delete `padding`, so that it is computed anew.
    """

    def _parse(self, stream, context, path):
        layout = sniff(stream)
        obj = layout.gguf._parsereport(stream, context, path)
        obj.order = layout.order
        return obj

    def _build(self, obj, stream, context, path):
        if not isinstance(obj, Mapping):
            raise BuildError(f"expected a mapping with the fields of a file, found {type(obj).__name__}")
        layout = structs(obj.get("order", "<"), obj.get("version", LATEST_VERSION))
        return layout.gguf._build(obj, stream, context, path)


GGUF = GGUFFile()
