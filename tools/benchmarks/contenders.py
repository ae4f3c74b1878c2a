"""This package and its peers, doing the same work. A peer that is not installed is left out."""

import ctypes
import os
from pathlib import Path

import numpy as np

import gguf_schema as gs
from gguf_schema.constructs import Strings
from tests.plain import plain_schema

from .measure import Run


def check(model: gs.Model) -> int:
    """Use keys, types, lengths, scalar values, names, types, dimensions and offsets of everything read."""
    total = 0
    for key, type, value in model.metadata.pairs:
        total ^= hash((key, type, len(value) if isinstance(type, gs.ArrayType) else value))
    for tensor in model.tensors.infos:
        total ^= hash((tensor.name, tensor.type, tensor.dimensions, tensor.offset))
    return total


def open_ours(path: Path) -> Run:
    """Open and use everything but the insides of arrays."""

    def run() -> int:
        with gs.open(path) as model:
            return check(model)

    return run


def llama_cpp(path: Path) -> dict[str, Run]:
    """llama.cpp's gguf_init_from_file, metadata only; nothing where ggml-python is not installed."""
    try:
        import ggml
    except ImportError:
        return {}
    library = ctypes.CDLL(os.path.join(os.path.dirname(ggml.__file__), "lib", "libggml-base.so"))

    class Params(ctypes.Structure):
        _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.POINTER(ctypes.c_void_p)))

    library.gguf_init_from_file.restype = ctypes.c_void_p
    library.gguf_init_from_file.argtypes = [ctypes.c_char_p, Params]
    library.gguf_free.argtypes = [ctypes.c_void_p]
    name = os.fsencode(path)

    def run() -> None:
        opened = library.gguf_init_from_file(name, Params(True, None))
        assert opened, "llama.cpp refuses the file"
        library.gguf_free(opened)

    return {"llama.cpp (ggml-python)": run}


def gguf_py(path: Path) -> dict[str, Run]:
    """gguf-py's GGUFReader; nothing where it is not installed."""
    try:
        import gguf
    except ImportError:
        return {}
    return {"gguf-py GGUFReader": lambda: gguf.GGUFReader(path)}


def open_plain(path: Path) -> dict[str, Run]:
    """The same schema without bulk constructs, as plain construct would read it."""

    def run() -> None:
        with plain_schema():
            gs.GGUF.parse(path.read_bytes())

    return {"the plain schema": run}


def gguf_py_writer(metadata: gs.Metadata, folder: Path) -> dict[str, Run]:
    """gguf-py's GGUFWriter making the same metadata from the same values as plain Python lists."""
    try:
        import gguf
    except ImportError:
        return {}
    plain = [
        (key, type, value.tolist() if isinstance(value, Strings | np.ndarray) else value)
        for key, type, value in metadata.pairs
        if key != "general.architecture"
    ]

    def run() -> None:
        writer = gguf.GGUFWriter(folder / "gguf-py.gguf", metadata["general.architecture"])
        for key, type, value in plain:
            if isinstance(type, gs.ArrayType):
                sub = gguf.GGUFValueType(int(type.type))
                writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, sub_type=sub)
            else:
                writer.add_key_value(key, value, gguf.GGUFValueType(int(type)))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    return {"gguf-py GGUFWriter": run}
