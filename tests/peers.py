"""How other programs read GGUF: llama.cpp's loader (through ggml-python's library) and gguf-py's GGUFReader.

Both give the same `Seen`. Nothing here uses the package, so that it can be compared with the package.
The loader may abort the process where a file is bad: `llama_cpp_verdicts` bears that, `read_with_llama_cpp` does not.
Without the peer the calling test skips.
"""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

PROJECT = Path(__file__).parents[1]

STRING, ARRAY = 8, 9
NUMBERS = {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "?", 10: "u8", 11: "i8", 12: "f8"}
"""Ids of the value types that are numbers → numpy's name of the number, as the specification has them."""

TYPES: dict[str, tuple[int, int, int, list[tuple[Any, ...]]]] = {
    "F32": (0, 1, 4, [("value", "f4")]),
    "F16": (1, 1, 2, [("value", "f2")]),
    "Q4_0": (2, 32, 18, [("d", "f2"), ("qs", "u1", 16)]),
    "Q4_1": (3, 32, 20, [("d", "f2"), ("m", "f2"), ("qs", "u1", 16)]),
    "Q5_0": (6, 32, 22, [("d", "f2"), ("qh", "u1", 4), ("qs", "u1", 16)]),
    "Q5_1": (7, 32, 24, [("d", "f2"), ("m", "f2"), ("qh", "u1", 4), ("qs", "u1", 16)]),
    "Q8_0": (8, 32, 34, [("d", "f2"), ("qs", "i1", 32)]),
    "Q8_1": (9, 32, 36, [("d", "f2"), ("s", "f2"), ("qs", "i1", 32)]),
    "Q2_K": (10, 256, 84, [("scales", "u1", 16), ("qs", "u1", 64), ("d", "f2"), ("dmin", "f2")]),
    "Q3_K": (11, 256, 110, [("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", "f2")]),
    "Q4_K": (12, 256, 144, [("d", "f2"), ("dmin", "f2"), ("scales", "u1", 12), ("qs", "u1", 128)]),
    "Q5_K": (13, 256, 176, [("d", "f2"), ("dmin", "f2"), ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128)]),
    "Q6_K": (14, 256, 210, [("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "f2")]),
    "Q8_K": (15, 256, 292, [("d", "f4"), ("qs", "i1", 256), ("bsums", "i2", 16)]),
    "IQ2_XXS": (16, 256, 66, [("d", "f2"), ("qs", "u2", 32)]),
    "IQ2_XS": (17, 256, 74, [("d", "f2"), ("qs", "u2", 32), ("scales", "u1", 8)]),
    "IQ3_XXS": (18, 256, 98, [("d", "f2"), ("qs", "u1", 96)]),
    "IQ1_S": (19, 256, 50, [("d", "f2"), ("qs", "u1", 32), ("qh", "u2", 8)]),
    "IQ4_NL": (20, 32, 18, [("d", "f2"), ("qs", "u1", 16)]),
    "IQ3_S": (21, 256, 110, [("d", "f2"), ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)]),
    "IQ2_S": (22, 256, 82, [("d", "f2"), ("qs", "u1", 64), ("qh", "u1", 8), ("scales", "u1", 8)]),
    "IQ4_XS": (23, 256, 136, [("d", "f2"), ("scales_h", "u2"), ("scales_l", "u1", 4), ("qs", "u1", 128)]),
    "I8": (24, 1, 1, [("value", "i1")]),
    "I16": (25, 1, 2, [("value", "i2")]),
    "I32": (26, 1, 4, [("value", "i4")]),
    "I64": (27, 1, 8, [("value", "i8")]),
    "F64": (28, 1, 8, [("value", "f8")]),
    "IQ1_M": (29, 256, 56, [("qs", "u1", 32), ("qh", "u1", 16), ("scales", "u1", 8)]),
    "BF16": (30, 1, 2, [("value", "u2")]),
    "TQ1_0": (34, 256, 54, [("qs", "u1", 48), ("qh", "u1", 4), ("d", "f2")]),
    "TQ2_0": (35, 256, 66, [("qs", "u1", 64), ("d", "f2")]),
    "MXFP4": (39, 32, 17, [("e", "u1"), ("qs", "u1", 16)]),
    "NVFP4": (40, 64, 36, [("d", "u1", 4), ("qs", "u1", 32)]),
    "Q1_0": (41, 128, 18, [("d", "f2"), ("qs", "u1", 16)]),
    "Q2_0": (42, 64, 18, [("d", "f2"), ("qs", "u1", 16)]),
}
"""The live tensor types, typed from ggml-common.h: name → id, elements of a block, bytes of a block, fields."""


def block_dtype(name: str, order: str) -> np.dtype:
    """The dtype of a block by the table above; of a plain type that of its number."""
    _, block_size, _, fields = TYPES[name]
    if block_size == 1:
        return np.dtype(order + fields[0][1])
    return np.dtype([(field, order + number, *((count,) for count in counts)) for field, number, *counts in fields])


class Pair(NamedTuple):
    """A metadata pair. `element` is the type of an array's elements, else None."""

    key: str
    type: int
    element: int | None
    value: Any


class Info(NamedTuple):
    """A tensor; `data` are its bytes as they are kept in memory (of GGUFReader: in the file)."""

    name: str
    type: int
    dimensions: tuple[int, ...]
    offset: int
    data: bytes


class Seen(NamedTuple):
    """What a peer sees in a file."""

    version: int
    order: str
    alignment: int
    data_offset: int
    pairs: list[Pair]
    tensors: list[Info]


def canonical(type: int, values: Any) -> list[Any]:
    """Numbers as Python ints and bools that are equal where all bits are: floats become their bits."""
    array = np.asarray(values)
    assert array.dtype.newbyteorder("=") == np.dtype(NUMBERS[type]), (type, array.dtype)
    if array.dtype.kind == "f":
        return [f"bits {bits:#x}" for bits in array.reshape(-1).view(array.dtype.str.replace("f", "u")).tolist()]
    return array.reshape(-1).tolist()


@contextlib.contextmanager
def on_disk(data: bytes) -> Iterator[Path]:
    """A file with these bytes, for as long as the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.gguf")
        path.write_bytes(data)
        yield path


def gguf_py() -> Any:
    """The package gguf; skips where it is not installed."""
    return pytest.importorskip("gguf")


class Tensor(ctypes.Structure):
    """The beginning of ggml.h's struct ggml_tensor."""

    _fields_ = (("type", ctypes.c_int), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4))


class Params(ctypes.Structure):
    """gguf.h's struct gguf_init_params."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.POINTER(ctypes.c_void_p)))


class TypeTraits(ctypes.Structure):
    """ggml.h's struct ggml_type_traits."""

    _fields_ = (
        ("type_name", ctypes.c_char_p),
        ("blck_size", ctypes.c_int64),
        ("blck_size_interleave", ctypes.c_int64),
        ("type_size", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
        ("from_float_ref", ctypes.c_void_p),
    )


_P, _I, _S, _N = ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "gguf_init_from_file": (_P, _N, Params),
    "gguf_free": (None, _P),
    "ggml_free": (None, _P),
    "gguf_get_version": (ctypes.c_uint32, _P),
    "gguf_get_alignment": (_S, _P),
    "gguf_get_data_offset": (_S, _P),
    "gguf_get_n_kv": (_I, _P),
    "gguf_get_key": (_N, _P, _I),
    "gguf_get_kv_type": (ctypes.c_int, _P, _I),
    "gguf_get_arr_type": (ctypes.c_int, _P, _I),
    "gguf_get_val_data": (_P, _P, _I),
    "gguf_get_val_str": (_N, _P, _I),
    "gguf_get_arr_n": (_S, _P, _I),
    "gguf_get_arr_data": (_P, _P, _I),
    "gguf_get_arr_str": (_N, _P, _I, _S),
    "gguf_get_n_tensors": (_I, _P),
    "gguf_get_tensor_name": (_N, _P, _I),
    "gguf_get_tensor_type": (ctypes.c_int, _P, _I),
    "gguf_get_tensor_offset": (_S, _P, _I),
    "gguf_get_tensor_size": (_S, _P, _I),
    "ggml_get_tensor": (ctypes.POINTER(Tensor), _P, _N),
    "ggml_get_data": (_P, ctypes.POINTER(Tensor)),
    "ggml_validate_row_data": (ctypes.c_bool, ctypes.c_int, _P, _S),
    "ggml_nbytes": (_S, ctypes.POINTER(Tensor)),
    "ggml_blck_size": (_I, ctypes.c_int),
    "ggml_type_size": (_S, ctypes.c_int),
    "ggml_type_name": (_N, ctypes.c_int),
    "ggml_get_type_traits": (ctypes.POINTER(TypeTraits), ctypes.c_int),
}


def ggml() -> Any:
    """ggml's C library with its signatures, of which `type_count` ids are known; skips where it is not installed."""
    package = pytest.importorskip("ggml")
    library = ctypes.CDLL(str(next(Path(package.__file__).parent.glob("lib/libggml-base.*"))))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.type_count = package.GGML_TYPE_COUNT
    return library


def read_with_llama_cpp(data: bytes) -> Seen:
    """A little-endian file as llama.cpp's loader reads it, tensor data too. `dimensions` are always four.

    The loader's own strings end at the first NUL: there must be none in keys, names and values.
    """
    c = ggml()
    context = ctypes.c_void_p()
    with on_disk(data) as path:
        gguf = c.gguf_init_from_file(str(path).encode(), Params(False, ctypes.pointer(context)))
    assert gguf, "llama.cpp's loader refuses the file"
    try:
        return Seen(
            version=c.gguf_get_version(gguf),
            order="<",
            alignment=c.gguf_get_alignment(gguf),
            data_offset=c.gguf_get_data_offset(gguf),
            pairs=[_ggml_pair(c, gguf, index) for index in range(c.gguf_get_n_kv(gguf))],
            tensors=[_ggml_tensor(c, gguf, context, index) for index in range(c.gguf_get_n_tensors(gguf))],
        )
    finally:
        c.gguf_free(gguf)
        c.ggml_free(context)


def llama_cpp_verdicts(paths: Iterable[Path], with_data: bool = False) -> dict[Path, str]:
    """What llama.cpp's loader does with each file, metadata only or data too: reads, or refuses.

    To abort the process is to refuse, too. One process loads the library, and a fork of it reads each file.
    """
    ggml()
    asked = json.dumps([list(map(str, paths)), with_data])
    command = [sys.executable, "-c", "from tests.peers import answer_verdicts; answer_verdicts()"]
    run = subprocess.run(command, cwd=PROJECT, input=asked, capture_output=True, encoding="utf-8", timeout=120)
    assert run.returncode == 0, run.stderr
    return {Path(path): verdict for path, verdict in json.loads(run.stdout).items()}


def answer_verdicts() -> None:
    """The process of `llama_cpp_verdicts`: its question on stdin, its answer on stdout."""
    paths, with_data = json.load(sys.stdin)
    os.environ["GGML_NO_BACKTRACE"] = "1"
    c = ggml()
    verdicts = {}
    for path in paths:
        child = os.fork()
        if child == 0:
            params = Params(not with_data, ctypes.pointer(ctypes.c_void_p()))
            os._exit(not c.gguf_init_from_file(path.encode(), params))
        _, status = os.waitpid(child, 0)
        verdicts[path] = "refuses" if status else "reads"
    print(json.dumps(verdicts))


def _numbers_at(address: int | None, type: int, count: int) -> list[Any]:
    dtype = np.dtype(NUMBERS[type])
    return canonical(type, np.frombuffer(ctypes.string_at(address, count * dtype.itemsize) if count else b"", dtype))


def _ggml_pair(c: Any, gguf: Any, index: int) -> Pair:
    key, type = c.gguf_get_key(gguf, index).decode(), c.gguf_get_kv_type(gguf, index)
    if type == STRING:
        return Pair(key, type, None, c.gguf_get_val_str(gguf, index).decode())
    if type != ARRAY:
        return Pair(key, type, None, _numbers_at(c.gguf_get_val_data(gguf, index), type, 1)[0])
    element, count = c.gguf_get_arr_type(gguf, index), c.gguf_get_arr_n(gguf, index)
    if element == STRING:
        return Pair(key, type, element, [c.gguf_get_arr_str(gguf, index, i).decode() for i in range(count)])
    return Pair(key, type, element, _numbers_at(c.gguf_get_arr_data(gguf, index), element, count))


def _ggml_tensor(c: Any, gguf: Any, context: Any, index: int) -> Info:
    name = c.gguf_get_tensor_name(gguf, index)
    tensor = c.ggml_get_tensor(context, name)
    assert tensor, name
    size = c.gguf_get_tensor_size(gguf, index)
    assert size == c.ggml_nbytes(tensor)
    assert c.gguf_get_tensor_type(gguf, index) == tensor.contents.type
    data = ctypes.string_at(c.ggml_get_data(tensor), size) if size else b""
    offset = c.gguf_get_tensor_offset(gguf, index)
    return Info(name.decode(), tensor.contents.type, tuple(tensor.contents.ne), offset, data)


def read_with_gguf_py(data: bytes) -> Seen:
    """A file as gguf-py's GGUFReader reads it."""
    gguf = gguf_py()
    with on_disk(data) as path:
        reader = gguf.GGUFReader(path)
        fields = list(reader.fields.values())
        assert [field.name for field in fields[:3]] == ["GGUF.version", "GGUF.tensor_count", "GGUF.kv_count"]
        assert fields[1].contents() == len(reader.tensors)
        assert fields[2].contents() == len(fields) - 3
        return Seen(
            version=fields[0].contents(),
            order={"LITTLE": "<", "BIG": ">"}[reader.endianess.name],
            alignment=int(reader.alignment),
            data_offset=int(reader.data_offset),
            pairs=[_reader_pair(field) for field in fields[3:]],
            tensors=[_reader_tensor(tensor, reader.data_offset) for tensor in reader.tensors],
        )


def _reader_pair(field: Any) -> Pair:
    type = int(field.types[0])
    element = int(field.parts[3][0]) if type == ARRAY else None
    assert element is None or [int(t) for t in field.types[1:]] == ([element] if field.data else [])
    number = type if element is None else element
    value = field.contents()
    if NUMBERS.get(number, "").startswith("f"):
        value = [bits for part in field.data for bits in canonical(number, field.parts[part])]
        value = value if type == ARRAY else value[0]
    return Pair(field.name, type, element, value)


def _reader_tensor(tensor: Any, data_offset: int) -> Info:
    offset = int(tensor.field.parts[5][0])
    assert tensor.data_offset == data_offset + offset
    assert tensor.n_bytes == tensor.data.nbytes
    dimensions = tuple(tensor.shape.tolist())
    assert tensor.data.shape[:-1] == dimensions[:0:-1]
    return Info(tensor.name, int(tensor.tensor_type), dimensions, offset, tensor.data.tobytes())
