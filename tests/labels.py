"""What the labelled cases say of a file, compared with what was read."""

import hashlib
import struct
from typing import Any

import gguf_schema as gs
from gguf_schema.schema import ORDER_NAMES

TYPES = {
    "u8": "UINT8",
    "i8": "INT8",
    "u16": "UINT16",
    "i16": "INT16",
    "u32": "UINT32",
    "i32": "INT32",
    "f32": "FLOAT32",
    "bool": "BOOL",
    "str": "STRING",
    "arr": "ARRAY",
    "u64": "UINT64",
    "i64": "INT64",
    "f64": "FLOAT64",
}


def type_named(name):
    return gs.GGUFValueType[TYPES[name]]


def text(label):
    """A labelled string: text, or the hex of bytes that are no UTF-8."""
    return label if isinstance(label, str) else bytes.fromhex(label["hex"]).decode("utf-8", "surrogateescape")


def assert_value(kind, value, type, label):
    """One plain value and its exact type equal the label, floats by their bits."""
    if kind == "arr":
        assert type == gs.ArrayType(type_named(label["elem"]), getattr(type, "items", ()))
        assert len(value) == label["count"] == len(label["items"])
        for index, (item, wanted) in enumerate(zip(value, label["items"], strict=True)):
            inner = type.items[index] if label["elem"] == "arr" else type_named(label["elem"])
            assert_value(label["elem"], item, inner, wanted)
        return
    assert type == type_named(kind)
    if kind == "str":
        assert value == text(label)
    elif kind in ("f32", "f64"):
        assert bits(value, kind) == label["bits"]
    elif isinstance(label, dict):
        assert int(value) == label["raw"]
        assert bool(value) == label["bool"]
    else:
        assert value == label
        assert (kind == "bool") == isinstance(value, bool) or hasattr(value, "dtype")


def bits(value, kind):
    """The big-endian hex of a float as the construct of its type builds it."""
    number = gs.structs(">", 3).float32 if kind == "f32" else gs.structs(">", 3).float64
    return number.build(value).hex()


def assert_model(model, label):
    """Everything that the label lists equals what `open` shows."""
    assert model.version == label["version"]
    assert ORDER_NAMES[model.order] == label["endian"]
    assert model.alignment == label["alignment"]
    if label["data_offset"] is not None:
        assert model.data_offset == label["data_offset"]
    assert len(model.metadata.pairs) == label["n_kv"] == len(label["kv"])
    for pair, wanted in zip(model.metadata.pairs, label["kv"], strict=True):
        assert pair.key == text(wanted["key"])
        assert_value(wanted["type"], pair.value, pair.type, wanted["value"])
        assert model.metadata.type(pair.key) == pair.type
    assert len(model.tensors.infos) == label["n_tensors"] == len(label["tensors"])
    for tensor, wanted in zip(model.tensors.infos, label["tensors"], strict=True):
        assert tensor.name == text(wanted["name"])
        assert list(tensor.dimensions) == wanted["dims"]
        assert len(tensor.dimensions) == wanted["n_dims"]
        assert int(tensor.type) == wanted["type"]
        assert tensor.offset == wanted["offset"]
        if wanted["nbytes"] is not None:
            assert tensor.n_bytes == wanted["nbytes"]
        if wanted["sha256"] is not None:
            assert hashlib.sha256(tensor.data.tobytes()).hexdigest() == wanted["sha256"]


def is_right_place(error: gs.GGUFError, case: dict[str, Any]) -> bool:
    """Whether an error stands where the case says; a more exact path inside the labelled one is right too."""
    path, offset = case["error_path"], case["error_offset"]
    if path is None:
        # A file cut short: anywhere from the start of the cut field to the end of the file.
        inside = error.offset is not None and error.offset <= case["size"] == offset
        return bool(error.path) and (offset is None or inside)
    inside = error.path == path or error.path.startswith((f"{path}.", f"{path}["))
    return bool(inside and error.offset == offset)


def is_labelled(case: dict[str, Any]) -> bool:
    """Whether the case says where its error stands."""
    return case["error_path"] is not None or case["error_offset"] is not None


def float_bits(number):
    """The bits of a float, for comparisons that NaN may take part in."""
    return struct.pack(">d", number)
