"""The worked examples of a public lesson on the format: each number of it, as bytes ⇄ values wherever it is bytes."""

import io
import struct

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema import GGMLQuantizationType as Q
from gguf_schema import GGUFValueType as T
from gguf_schema.constructs import Strings, Struct
from gguf_schema.keys import TOKENS
from gguf_schema.layout import align_up, n_bytes, place
from gguf_schema.policy import is_alignment
from gguf_schema.quant_mix import Share, quant_mix, total

from .shared import CORPUS, needs_corpus

LAYOUTS = [(order, version) for version in (1, 2, 3) for order in "<>"]


def wire(text: str) -> bytes:
    """Bytes written one field a line, as hex or a quoted string, each with a comment."""
    fields = []
    for line in text.strip().splitlines():
        value, _, comment = line.strip().partition("  # ")
        assert comment, f"no comment: {line}"
        fields.append(value.strip()[1:-1].encode() if value.startswith('"') else bytes.fromhex(value))
    return b"".join(fields)


def plain(value):
    """A parsed value as dicts, lists, numbers and strings."""
    if isinstance(value, dict):
        return {name: plain(field) for name, field in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | Strings):
        return [plain(item) for item in value]
    return value


def check_both_ways(con, data: bytes, value):
    """`data` parses to `value`, and `value`, without what is computed, builds to `data`."""
    assert plain(con.parse(data)) == value
    assert con.build(value) == data
    assert con.build(without_computed(value)) == data


def without_computed(value):
    """The fields that a caller must give."""
    if isinstance(value, dict):
        computed = ("len", "n_dimensions", "tensor_count", "metadata_kv_count", "magic", "alignment")
        return {name: without_computed(field) for name, field in value.items() if name not in computed}
    if isinstance(value, list):
        return [without_computed(item) for item in value]
    return value


def both_ways(name: str, data: dict[tuple[str, int], str], value, size: int | None = None):
    """Check the named Struct in every layout of `data`; version 3 stands for version 2, too, and has the `size`."""
    for (order, version), text in data.items():
        for same_as in (2, 3) if version == 3 else (1,):
            check_both_ways(getattr(gs.structs(order, same_as), name), wire(text), value)
        if size is not None and version == 3:
            assert len(wire(text)) == size


# 1. Sizes of the header and of metadata pairs.

EMPTY = {
    ("<", 1): """47 47 55 46  # magic
                 01 00 00 00  # version
                 00 00 00 00  # tensor_count
                 00 00 00 00  # metadata_kv_count""",
    (">", 1): """47 47 55 46  # magic
                 00 00 00 01  # version
                 00 00 00 00  # tensor_count
                 00 00 00 00  # metadata_kv_count""",
    ("<", 2): """47 47 55 46  # magic
                 02 00 00 00  # version
                 00 00 00 00 00 00 00 00  # tensor_count
                 00 00 00 00 00 00 00 00  # metadata_kv_count""",
    (">", 2): """47 47 55 46  # magic
                 00 00 00 02  # version
                 00 00 00 00 00 00 00 00  # tensor_count
                 00 00 00 00 00 00 00 00  # metadata_kv_count""",
    ("<", 3): """47 47 55 46  # magic
                 03 00 00 00  # version
                 00 00 00 00 00 00 00 00  # tensor_count
                 00 00 00 00 00 00 00 00  # metadata_kv_count""",
    (">", 3): """47 47 55 46  # magic
                 00 00 00 03  # version
                 00 00 00 00 00 00 00 00  # tensor_count
                 00 00 00 00 00 00 00 00  # metadata_kv_count""",
}


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_1_header(order, version):
    data = wire(EMPTY[order, version])
    assert len(data) == {1: 16, 2: 24, 3: 24}[version]
    value = {
        "magic": b"GGUF",
        "version": version,
        "tensor_count": 0,
        "metadata_kv_count": 0,
        "metadata_kv": [],
        "alignment": 32,
        "tensor_infos": [],
        "padding": b"",
        "tensor_data": b"",
        "tail": b"",
        "order": order,
    }
    check_both_ways(gs.GGUF, data, value)


ARCHITECTURE = """14 00 00 00 00 00 00 00  # key.len
                  "general.architecture"  # key.string
                  08 00 00 00  # value_type: STRING
                  05 00 00 00 00 00 00 00  # value.len
                  "llama"  # value.string"""
ARCHITECTURE_BIG = """00 00 00 00 00 00 00 14  # key.len
                      "general.architecture"  # key.string
                      00 00 00 08  # value_type: STRING
                      00 00 00 00 00 00 00 05  # value.len
                      "llama"  # value.string"""
ARCHITECTURE_1 = """14 00 00 00  # key.len
                    "general.architecture"  # key.string
                    08 00 00 00  # value_type: STRING
                    05 00 00 00  # value.len
                    "llama"  # value.string"""
ARCHITECTURE_1_BIG = """00 00 00 14  # key.len
                        "general.architecture"  # key.string
                        00 00 00 08  # value_type: STRING
                        00 00 00 05  # value.len
                        "llama"  # value.string"""
EMBEDDING = """16 00 00 00 00 00 00 00  # key.len
               "llama.embedding_length"  # key.string
               04 00 00 00  # value_type: UINT32
               40 00 00 00  # value"""
TOKENS_2 = """15 00 00 00 00 00 00 00  # key.len
              "tokenizer.ggml.tokens"  # key.string
              09 00 00 00  # value_type: ARRAY
              08 00 00 00  # value.type: STRING
              02 00 00 00 00 00 00 00  # value.len
              03 00 00 00 00 00 00 00  # value.array[0].len
              "<s>"  # value.array[0].string
              05 00 00 00 00 00 00 00  # value.array[1].len
              "hello"  # value.array[1].string"""


def test_1_general_architecture_takes_45_bytes():
    value = {"key": "general.architecture", "value_type": T.STRING, "value": "llama"}
    data = {
        ("<", 3): ARCHITECTURE,
        (">", 3): ARCHITECTURE_BIG,
        ("<", 1): ARCHITECTURE_1,
        (">", 1): ARCHITECTURE_1_BIG,
    }
    both_ways("metadata_kv", data, value, 45)


def test_1_embedding_length_takes_38_bytes():
    value = {"key": "llama.embedding_length", "value_type": T.UINT32, "value": 64}
    data = {
        ("<", 3): EMBEDDING,
        (">", 3): """00 00 00 00 00 00 00 16  # key.len
                     "llama.embedding_length"  # key.string
                     00 00 00 04  # value_type: UINT32
                     00 00 00 40  # value""",
        ("<", 1): """16 00 00 00  # key.len
                     "llama.embedding_length"  # key.string
                     04 00 00 00  # value_type: UINT32
                     40 00 00 00  # value""",
        (">", 1): """00 00 00 16  # key.len
                     "llama.embedding_length"  # key.string
                     00 00 00 04  # value_type: UINT32
                     00 00 00 40  # value""",
    }
    both_ways("metadata_kv", data, value, 38)


def test_1_two_tokens_take_69_bytes():
    array = {"type": T.STRING, "len": 2, "array": ["<s>", "hello"]}
    value = {"key": "tokenizer.ggml.tokens", "value_type": T.ARRAY, "value": array}
    data = {
        ("<", 3): TOKENS_2,
        (">", 3): """00 00 00 00 00 00 00 15  # key.len
                     "tokenizer.ggml.tokens"  # key.string
                     00 00 00 09  # value_type: ARRAY
                     00 00 00 08  # value.type: STRING
                     00 00 00 00 00 00 00 02  # value.len
                     00 00 00 00 00 00 00 03  # value.array[0].len
                     "<s>"  # value.array[0].string
                     00 00 00 00 00 00 00 05  # value.array[1].len
                     "hello"  # value.array[1].string""",
        ("<", 1): """15 00 00 00  # key.len
                     "tokenizer.ggml.tokens"  # key.string
                     09 00 00 00  # value_type: ARRAY
                     08 00 00 00  # value.type: STRING
                     02 00 00 00  # value.len
                     03 00 00 00  # value.array[0].len
                     "<s>"  # value.array[0].string
                     05 00 00 00  # value.array[1].len
                     "hello"  # value.array[1].string""",
        (">", 1): """00 00 00 15  # key.len
                     "tokenizer.ggml.tokens"  # key.string
                     00 00 00 09  # value_type: ARRAY
                     00 00 00 08  # value.type: STRING
                     00 00 00 02  # value.len
                     00 00 00 03  # value.array[0].len
                     "<s>"  # value.array[0].string
                     00 00 00 05  # value.array[1].len
                     "hello"  # value.array[1].string""",
    }
    both_ways("metadata_kv", data, value, 69)


FILE_TYPE = """11 00 00 00 00 00 00 00  # key.len
               "general.file_type"  # key.string
               04 00 00 00  # value_type: UINT32
               07 00 00 00  # value: MOSTLY_Q8_0"""


def test_1_file_type_takes_33_bytes():
    value = {"key": "general.file_type", "value_type": T.UINT32, "value": 7}
    data = {
        ("<", 3): FILE_TYPE,
        (">", 3): """00 00 00 00 00 00 00 11  # key.len
                     "general.file_type"  # key.string
                     00 00 00 04  # value_type: UINT32
                     00 00 00 07  # value: MOSTLY_Q8_0""",
        ("<", 1): """11 00 00 00  # key.len
                     "general.file_type"  # key.string
                     04 00 00 00  # value_type: UINT32
                     07 00 00 00  # value: MOSTLY_Q8_0""",
    }
    both_ways("metadata_kv", data, value, 33)
    assert gs.LlamaFileType(7) is gs.LlamaFileType.MOSTLY_Q8_0


# 2. Tensor infos, and where everything stands in a file of one pair and two tensors.

OUTPUT_NORM = """12 00 00 00 00 00 00 00  # name.len
                 "output_norm.weight"  # name.string
                 01 00 00 00  # n_dimensions
                 40 00 00 00 00 00 00 00  # dimensions[0]
                 00 00 00 00  # type: F32
                 00 00 00 00 00 00 00 00  # offset"""
TOKEN_EMBD = """11 00 00 00 00 00 00 00  # name.len
                "token_embd.weight"  # name.string
                02 00 00 00  # n_dimensions
                40 00 00 00 00 00 00 00  # dimensions[0]
                03 00 00 00 00 00 00 00  # dimensions[1]
                08 00 00 00  # type: Q8_0
                00 01 00 00 00 00 00 00  # offset"""


def test_2_info_of_output_norm_takes_50_bytes():
    value = {"name": "output_norm.weight", "n_dimensions": 1, "dimensions": [64], "type": Q.F32, "offset": 0}
    data = {
        ("<", 3): OUTPUT_NORM,
        (">", 3): """00 00 00 00 00 00 00 12  # name.len
                     "output_norm.weight"  # name.string
                     00 00 00 01  # n_dimensions
                     00 00 00 00 00 00 00 40  # dimensions[0]
                     00 00 00 00  # type: F32
                     00 00 00 00 00 00 00 00  # offset""",
        ("<", 1): """12 00 00 00  # name.len
                     "output_norm.weight"  # name.string
                     01 00 00 00  # n_dimensions
                     40 00 00 00  # dimensions[0]
                     00 00 00 00  # type: F32
                     00 00 00 00 00 00 00 00  # offset: 64 bits in version 1, too""",
    }
    both_ways("tensor_info", data, value, 50)


def test_2_info_of_token_embd_takes_57_bytes():
    value = {"name": "token_embd.weight", "n_dimensions": 2, "dimensions": [64, 3], "type": Q.Q8_0, "offset": 256}
    data = {
        ("<", 3): TOKEN_EMBD,
        (">", 3): """00 00 00 00 00 00 00 11  # name.len
                     "token_embd.weight"  # name.string
                     00 00 00 02  # n_dimensions
                     00 00 00 00 00 00 00 40  # dimensions[0]
                     00 00 00 00 00 00 00 03  # dimensions[1]
                     00 00 00 08  # type: Q8_0
                     00 00 00 00 00 00 01 00  # offset""",
        (">", 1): """00 00 00 11  # name.len
                     "token_embd.weight"  # name.string
                     00 00 00 02  # n_dimensions
                     00 00 00 40  # dimensions[0]
                     00 00 00 03  # dimensions[1]
                     00 00 00 08  # type: Q8_0
                     00 00 00 00 00 00 01 00  # offset: 64 bits in version 1, too""",
    }
    both_ways("tensor_info", data, value, 57)


def test_2_info_of_attn_q_takes_59_bytes():
    value = {"name": "blk.0.attn_q.weight", "n_dimensions": 2, "dimensions": [64, 64], "type": Q.Q4_0, "offset": 480}
    data = {
        ("<", 3): """13 00 00 00 00 00 00 00  # name.len
                     "blk.0.attn_q.weight"  # name.string
                     02 00 00 00  # n_dimensions
                     40 00 00 00 00 00 00 00  # dimensions[0]
                     40 00 00 00 00 00 00 00  # dimensions[1]
                     02 00 00 00  # type: Q4_0
                     e0 01 00 00 00 00 00 00  # offset""",
    }
    both_ways("tensor_info", data, value, 59)


def test_2_places_in_a_file_of_one_pair_and_two_tensors():
    start = wire(f"""47 47 55 46  # magic
                     03 00 00 00  # version
                     02 00 00 00 00 00 00 00  # tensor_count
                     01 00 00 00 00 00 00 00  # metadata_kv_count
                     {ARCHITECTURE}
                     {OUTPUT_NORM}
                     {TOKEN_EMBD}
                     00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  # padding""")
    norm, embedding = bytes(range(256)), bytes(range(204))
    data = start + norm + embedding + bytes(20)
    value = {
        "magic": b"GGUF",
        "version": 3,
        "tensor_count": 2,
        "metadata_kv_count": 1,
        "metadata_kv": [{"key": "general.architecture", "value_type": T.STRING, "value": "llama"}],
        "alignment": 32,
        "tensor_infos": [
            {"name": "output_norm.weight", "n_dimensions": 1, "dimensions": [64], "type": Q.F32, "offset": 0},
            {"name": "token_embd.weight", "n_dimensions": 2, "dimensions": [64, 3], "type": Q.Q8_0, "offset": 256},
        ],
        "padding": bytes(16),
        "tensor_data": norm + embedding + bytes(20),
        "tail": b"",
        "order": "<",
    }
    check_both_ways(gs.GGUF, data, value)
    for info in value["tensor_infos"]:
        del info["offset"]
    del value["padding"]
    assert gs.GGUF.build(value) == data, "offsets and padding are computed"

    with gs.open(data) as model:
        ends = {node.path: node.end for node in model.trace("metadata_kv", "tensor_infos")}
        assert ends["metadata_kv"] == 69
        assert ends["tensor_infos"] == model.infos_end == 176
        assert model.data_offset == 192
        first, second = model.tensors.infos
        assert (first.n_bytes, second.n_bytes) == (256, 204)
        assert (first.data_offset, second.data_offset) == (192, 448)
        assert (first.offset, second.offset) == (0, 256)
        assert (first.data.tobytes(), second.data.tobytes()) == (norm, embedding)


# 3. The header as numbers.

HEADERS = {
    ("<", 3): """47 47 55 46  # magic
                 03 00 00 00  # version
                 23 01 00 00 00 00 00 00  # tensor_count: 291
                 19 00 00 00 00 00 00 00  # metadata_kv_count: 25""",
    (">", 3): """47 47 55 46  # magic
                 00 00 00 03  # version
                 00 00 00 00 00 00 01 23  # tensor_count: 291
                 00 00 00 00 00 00 00 19  # metadata_kv_count: 25""",
    ("<", 2): """47 47 55 46  # magic
                 02 00 00 00  # version
                 23 01 00 00 00 00 00 00  # tensor_count: 291
                 19 00 00 00 00 00 00 00  # metadata_kv_count: 25""",
    ("<", 1): """47 47 55 46  # magic
                 01 00 00 00  # version
                 23 01 00 00  # tensor_count: 291
                 19 00 00 00  # metadata_kv_count: 25""",
    (">", 1): """47 47 55 46  # magic
                 00 00 00 01  # version
                 00 00 01 23  # tensor_count: 291
                 00 00 00 19  # metadata_kv_count: 25""",
}


@pytest.mark.parametrize(("order", "version"), HEADERS)
def test_3_header_of_291_tensors_and_25_pairs(order, version):
    header = Struct(*gs.structs(order, version).gguf.subcons[:4])
    data = wire(HEADERS[order, version])
    counts = {"magic": b"GGUF", "version": version, "tensor_count": 291, "metadata_kv_count": 25}
    assert header.parse(data) == counts
    assert header.build({"tensor_infos": [None] * 291, "metadata_kv": [None] * 25}) == data


def test_3_magic_and_version_as_numbers():
    little, big = gs.structs("<").uint32, gs.structs(">").uint32
    assert little.parse(b"GGUF") == 0x46554747
    assert little.build(0x46554747) == b"GGUF"
    assert little.parse(big.build(3)) == 50331648
    assert 50331648 & 0xFFFF == 0
    assert gs.GGUF.parse(wire(EMPTY[">", 3])).order == ">"


# 4. Strings.

STRINGS = [
    ("llama", "05 00 00 00 00 00 00 00 6c 6c 61 6d 61", "00 00 00 00 00 00 00 05 6c 6c 61 6d 61", 13),
    ("héllo", "06 00 00 00 00 00 00 00 68 c3 a9 6c 6c 6f", "00 00 00 00 00 00 00 06 68 c3 a9 6c 6c 6f", 14),
    ("", "00 00 00 00 00 00 00 00", "00 00 00 00 00 00 00 00", 8),
]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("text", "little", "big", "size"), STRINGS)
def test_4_strings(text, little, big, size, version):
    for order, data in ("<", bytes.fromhex(little)), (">", bytes.fromhex(big)):
        string = gs.structs(order, version).string
        assert len(data) == size
        assert string.parse(data) == text
        assert string.build(text) == data
    for order, prefix in ("<", slice(0, 4)), (">", slice(4, 8)):
        data = bytes.fromhex(little if order == "<" else big)
        narrow = data[prefix] + data[8:]
        assert gs.structs(order, 1).string.parse(narrow) == text
        assert gs.structs(order, 1).string.build(text) == narrow


@pytest.mark.parametrize(
    ("order", "version", "length"),
    [
        ("<", 3, "ff ff 00 00 00 00 00 00"),
        (">", 3, "00 00 00 00 00 00 ff ff"),
        ("<", 1, "ff ff 00 00"),
        (">", 1, "00 00 ff ff"),
    ],
)
def test_4_length_of_65535_with_one_byte_left(order, version, length):
    with pytest.raises(gs.TruncatedError) as caught:
        gs.structs(order, version).string.parse(bytes.fromhex(length) + b"x")
    assert "65535" in caught.value.problem
    assert "1 left" in caught.value.problem
    assert (caught.value.path, caught.value.offset) == ("len", 0)


# 5. One value of each single-value type.

SINGLE_VALUES = [
    (T.UINT8, 200, "00 00 00 00", "c8"),
    (T.INT8, -5, "01 00 00 00", "fb"),
    (T.UINT16, 60000, "02 00 00 00", "60 ea"),
    (T.INT16, -1234, "03 00 00 00", "2e fb"),
    (T.UINT32, 4294967295, "04 00 00 00", "ff ff ff ff"),
    (T.INT32, -7, "05 00 00 00", "f9 ff ff ff"),
    (T.FLOAT32, 9.999999747378752e-06, "06 00 00 00", "ac c5 27 37"),
    (T.BOOL, True, "07 00 00 00", "01"),
    (T.STRING, "llama", "08 00 00 00", "05 00 00 00 00 00 00 00 6c 6c 61 6d 61"),
    (T.UINT64, 2**64 - 1, "0a 00 00 00", "ff ff ff ff ff ff ff ff"),
    (T.INT64, -9000000000, "0b 00 00 00", "00 e6 8e e7 fd ff ff ff"),
    (T.FLOAT64, 0.1, "0c 00 00 00", "9a 99 99 99 99 99 b9 3f"),
]
SINGLE_VALUES_BIG = [
    (T.UINT8, 200, "00 00 00 00", "c8"),
    (T.INT8, -5, "00 00 00 01", "fb"),
    (T.UINT16, 60000, "00 00 00 02", "ea 60"),
    (T.INT16, -1234, "00 00 00 03", "fb 2e"),
    (T.UINT32, 4294967295, "00 00 00 04", "ff ff ff ff"),
    (T.INT32, -7, "00 00 00 05", "ff ff ff f9"),
    (T.FLOAT32, 9.999999747378752e-06, "00 00 00 06", "37 27 c5 ac"),
    (T.BOOL, True, "00 00 00 07", "01"),
    (T.STRING, "llama", "00 00 00 08", "00 00 00 00 00 00 00 05 6c 6c 61 6d 61"),
    (T.UINT64, 2**64 - 1, "00 00 00 0a", "ff ff ff ff ff ff ff ff"),
    (T.INT64, -9000000000, "00 00 00 0b", "ff ff ff fd e7 8e e6 00"),
    (T.FLOAT64, 0.1, "00 00 00 0c", "3f b9 99 99 99 99 99 9a"),
]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("order", "values"), [("<", SINGLE_VALUES), (">", SINGLE_VALUES_BIG)])
def test_5_single_values_take_104_bytes(order, values, version):
    typed_value = Struct(*gs.structs(order, version).metadata_kv.subcons[1:])
    size = 0
    for value_type, value, *texts in values:
        data = b"".join(map(bytes.fromhex, texts))
        check_both_ways(typed_value, data, {"value_type": value_type, "value": value})
        found = typed_value.parse(data)
        assert found.value_type is value_type
        assert type(found.value) is type(value)
        size += len(data)
    assert size == 104
    assert {value_type for value_type, *_ in values} == set(T) - {T.ARRAY}


def test_5_float32_of_1e_5():
    con = Struct(*gs.structs().metadata_kv.subcons[1:])
    data = bytes.fromhex("06 00 00 00 ac c5 27 37")
    assert con.build({"value_type": T.FLOAT32, "value": 1e-5}) == data
    assert str(con.parse(data).value) == "9.999999747378752e-06"


def test_5_version_1_has_a_shorter_string_and_all_else_the_same():
    for order, values in ("<", SINGLE_VALUES), (">", SINGLE_VALUES_BIG):
        typed_value = Struct(*gs.structs(order, 1).metadata_kv.subcons[1:])
        for value_type, value, id, text in values:
            data = bytes.fromhex(id) + bytes.fromhex(text)
            if value_type is T.STRING:
                length = "05 00 00 00" if order == "<" else "00 00 00 05"
                data = bytes.fromhex(id) + bytes.fromhex(length) + b"llama"
            check_both_ways(typed_value, data, {"value_type": value_type, "value": value})


# 6. Two arrays.

TEXT_ARRAY = """09 00 00 00  # value_type: ARRAY
                08 00 00 00  # value.type: STRING
                05 00 00 00 00 00 00 00  # value.len
                05 00 00 00 00 00 00 00  # [0].len
                "<unk>"  # [0].string
                03 00 00 00 00 00 00 00  # [1].len
                "<s>"  # [1].string
                04 00 00 00 00 00 00 00  # [2].len
                "</s>"  # [2].string
                06 00 00 00 00 00 00 00  # [3].len
                e2 96 81 74 68 65  # [3].string: ▁the
                06 00 00 00 00 00 00 00  # [4].len
                e2 96 81 63 61 74  # [4].string: ▁cat"""
INT_ARRAY = """09 00 00 00  # value_type: ARRAY
               05 00 00 00  # value.type: INT32
               05 00 00 00 00 00 00 00  # value.len
               02 00 00 00  # [0]
               03 00 00 00  # [1]
               03 00 00 00  # [2]
               01 00 00 00  # [3]
               01 00 00 00  # [4]"""
TEXT_ARRAY_BIG = """00 00 00 09  # value_type: ARRAY
                    00 00 00 08  # value.type: STRING
                    00 00 00 00 00 00 00 05  # value.len
                    00 00 00 00 00 00 00 05  # [0].len
                    "<unk>"  # [0].string
                    00 00 00 00 00 00 00 03  # [1].len
                    "<s>"  # [1].string
                    00 00 00 00 00 00 00 04  # [2].len
                    "</s>"  # [2].string
                    00 00 00 00 00 00 00 06  # [3].len
                    e2 96 81 74 68 65  # [3].string: ▁the
                    00 00 00 00 00 00 00 06  # [4].len
                    e2 96 81 63 61 74  # [4].string: ▁cat"""
INT_ARRAY_BIG = """00 00 00 09  # value_type: ARRAY
                   00 00 00 05  # value.type: INT32
                   00 00 00 00 00 00 00 05  # value.len
                   00 00 00 02  # [0]
                   00 00 00 03  # [1]
                   00 00 00 03  # [2]
                   00 00 00 01  # [3]
                   00 00 00 01  # [4]"""
INT_ARRAY_1 = """09 00 00 00  # value_type: ARRAY
                 05 00 00 00  # value.type: INT32
                 05 00 00 00  # value.len
                 02 00 00 00  # [0]
                 03 00 00 00  # [1]
                 03 00 00 00  # [2]
                 01 00 00 00  # [3]
                 01 00 00 00  # [4]"""


@pytest.mark.parametrize(
    ("order", "version", "texts", "ints"),
    [
        ("<", 2, TEXT_ARRAY, INT_ARRAY),
        ("<", 3, TEXT_ARRAY, INT_ARRAY),
        (">", 2, TEXT_ARRAY_BIG, INT_ARRAY_BIG),
        (">", 3, TEXT_ARRAY_BIG, INT_ARRAY_BIG),
        ("<", 1, None, INT_ARRAY_1),
    ],
)
def test_6_two_arrays_take_116_bytes(order, version, texts, ints):
    con = Struct(*gs.structs(order, version).metadata_kv.subcons[1:])
    array = {"type": T.INT32, "len": 5, "array": [2, 3, 3, 1, 1]}
    check_both_ways(con, wire(ints), {"value_type": T.ARRAY, "value": array})
    if texts:
        array = {"type": T.STRING, "len": 5, "array": ["<unk>", "<s>", "</s>", "▁the", "▁cat"]}
        check_both_ways(con, wire(texts), {"value_type": T.ARRAY, "value": array})
        assert len(wire(texts)) + len(wire(ints)) == 116


# 7. A whole file.


def quantize_q8_0(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Blocks of 32: d = amax / 127 as float16; q = x / d (d not rounded), halves away from zero."""
    x = rows.reshape(*rows.shape[:-1], -1, 32)
    d = np.abs(x).max(-1) / np.float32(127)
    inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
    scaled = x * inverse[..., None]
    blocks = np.empty(d.shape, dtype)
    blocks["d"] = d
    blocks["qs"] = np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))
    return blocks


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", [2, 3])
def test_7_a_whole_file(order, version):
    x = (np.sin(0.1 * np.arange(192)) * 0.05).astype(np.float32).reshape(3, 64)
    metadata = {
        "general.architecture": "llama",
        "general.name": "java-written",
        "llama.embedding_length": (T.UINT32, 64),
        "llama.attention.layer_norm_rms_epsilon": (T.FLOAT32, 1e-5),
        "tokenizer.ggml.tokens": ["<s>", "hello", "world"],
    }
    embedding = quantize_q8_0(x, np.dtype([("d", "<f2"), ("qs", "<i1", 32)]))
    tensors = {"output_norm.weight": np.ones(64, np.float32), "token_embd.weight": (Q.Q8_0, embedding)}
    file = io.BytesIO()
    gs.write(file, metadata, tensors, order=order, version=version)
    data = file.getvalue()
    assert len(data) == 896

    model = gs.open(data)
    assert (model.order, model.version, model.data_offset) == (order, version, 416)
    assert str(model.metadata["llama.attention.layer_norm_rms_epsilon"]) == "9.999999747378752e-06"
    assert list(model.metadata["tokenizer.ggml.tokens"]) == ["<s>", "hello", "world"]
    assert model.metadata["general.name"] == "java-written"

    norm, read = model.tensors["output_norm.weight"], model.tensors["token_embd.weight"]
    assert norm.data.tolist() == [1.0] * 64
    assert data[416:420] == (b"\x00\x00\x80\x3f" if order == "<" else b"\x3f\x80\x00\x00")
    assert (read.dimensions, read.shape, read.n_bytes, read.data_offset) == ((64, 3), (3, 64), 204, 416 + 256)
    assert read.data.shape == (3, 2)
    dequantized = (read.data["d"].astype(np.float32)[..., None] * read.data["qs"].astype(np.float32)).reshape(3, 64)
    error = float(np.abs(dequantized - x).max())
    assert error < 0.00021
    assert round(error, 6) == 0.000203

    # The same by the bytes: a block is a float16 in the file's order, then 32 int8.
    for index, block in enumerate(embedding.reshape(-1)):
        raw = data[416 + 256 + 34 * index :][:34]
        assert struct.unpack(order + "e", raw[:2])[0] == block["d"]
        assert list(struct.unpack("32b", raw[2:])) == block["qs"].tolist()
    assert data[416 + 256 + 204 :] == bytes(20)
    assert gs.GGUF.build(gs.GGUF.parse(data)) == data


# 8. Alignment and padding.


@pytest.mark.parametrize(
    ("alignment", "start", "padding", "offsets", "size"),
    [(32, 480, 10, [0, 256, 480], 1504), (64, 512, 42, [0, 256, 512], 1536)],
)
def test_8_alignment(alignment, start, padding, offsets, size):
    assert align_up(470, alignment) == start
    assert align_up(470, alignment) - 470 == padding
    assert place([256, 204, 1000], alignment) == offsets
    assert align_up(offsets[-1] + 1000, alignment) == size


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("alignment", "start", "padding", "offsets", "size"),
    [(32, 480, 10, [0, 256, 480], 1504), (64, 512, 42, [0, 256, 512], 1536)],
)
def test_8_alignment_of_a_file(order, alignment, start, padding, offsets, size):
    sizes = {"a": 256, "b": 204, "c": 1000}
    tensors = {name: np.full(length, 7, np.int8) for name, length in sizes.items()}
    if alignment == 32:
        without = file_of(order, {"filler": ""}, tensors)
        metadata = {"filler": "x" * (470 - gs.open(without).infos_end)}
    else:
        metadata = {"general.alignment": (T.UINT32, 64), "filler": ""}
        metadata["filler"] = "x" * (470 - gs.open(file_of(order, metadata, tensors)).infos_end)
    data = file_of(order, metadata, tensors)
    model = gs.open(data)
    assert (model.infos_end, model.data_offset, model.alignment) == (470, start, alignment)
    assert data[470:start] == bytes(padding)
    assert [tensor.offset for tensor in model.tensors.infos] == offsets
    assert len(data) - start == size
    assert len(gs.GGUF.parse(data).padding) == padding


def file_of(order, metadata, tensors) -> bytes:
    file = io.BytesIO()
    gs.write(file, metadata, tensors, order=order)
    return file.getvalue()


def test_8_4096_is_an_alignment_and_0_is_none():
    file = io.BytesIO()
    gs.write(file, {"general.architecture": "llama"}, {"a": np.ones(1, np.float32)}, alignment=4096)
    model = gs.open(file.getvalue())
    assert (model.alignment, model.data_offset, model.size) == (4096, 4096, 8192)
    assert is_alignment(4096)
    assert not is_alignment(0)
    with pytest.raises(gs.BuildError, match="0 is no alignment") as caught:
        gs.write(io.BytesIO(), {}, alignment=0)
    assert caught.value.path == "alignment"
    with pytest.raises(gs.BuildError, match="0 is no alignment") as caught:
        gs.write(io.BytesIO(), {"general.alignment": (T.UINT32, 0)})
    assert caught.value.path == "metadata_kv[0].value"


@pytest.mark.parametrize("alignment", [48, 0])
def test_8_no_alignments(alignment):
    """None to write with: llama.cpp takes powers of two only. (Read, 48 is a warning: the specification allows it.)"""
    with pytest.raises(gs.BuildError) as caught:
        gs.write(io.BytesIO(), {}, alignment=alignment)
    assert caught.value.path == "alignment"


def test_8_4096_is_an_alignment():
    written = io.BytesIO()
    gs.write(written, {}, {"a": np.ones(1, np.float32)}, alignment=4096)
    assert gs.open(written.getvalue()).data_offset == 4096


# 9. A file without tensors; offsets in sequence.


def test_9_a_file_of_three_pairs_and_no_tensors():
    data = wire(f"""47 47 55 46  # magic
                    03 00 00 00  # version
                    00 00 00 00 00 00 00 00  # tensor_count
                    03 00 00 00 00 00 00 00  # metadata_kv_count
                    {ARCHITECTURE}
                    {EMBEDDING}
                    {TOKENS_2}""")
    assert len(data) == 176
    array = {"type": T.STRING, "len": 2, "array": ["<s>", "hello"]}
    value = {
        "magic": b"GGUF",
        "version": 3,
        "tensor_count": 0,
        "metadata_kv_count": 3,
        "metadata_kv": [
            {"key": "general.architecture", "value_type": T.STRING, "value": "llama"},
            {"key": "llama.embedding_length", "value_type": T.UINT32, "value": 64},
            {"key": "tokenizer.ggml.tokens", "value_type": T.ARRAY, "value": array},
        ],
        "alignment": 32,
        "tensor_infos": [],
        "padding": b"",
        "tensor_data": b"",
        "tail": b"",
        "order": "<",
    }
    check_both_ways(gs.GGUF, data, value)
    model = gs.open(data)
    assert (model.size, model.infos_end, model.data_offset) == (176, 176, 192)
    plain_metadata = {
        "general.architecture": "llama",
        "llama.embedding_length": 64,
        "tokenizer.ggml.tokens": ["<s>", "hello"],
    }
    assert file_of("<", plain_metadata, {}) == data


@pytest.mark.parametrize(("order", "version"), LAYOUTS)
def test_9_offsets_in_sequence(order, version):
    infos = [
        {"name": "a", "dimensions": [64, 1000], "type": Q.Q8_0},
        {"name": "b", "dimensions": [64, 64], "type": Q.F16},
        {"name": "c", "dimensions": [64], "type": Q.F32},
    ]
    built = gs.GGUF.build({"order": order, "version": version, "metadata_kv": [], "tensor_infos": infos})
    assert [info.offset for info in gs.GGUF.parse(built).tensor_infos] == [0, 68000, 76192]


# 10. What an engine needs.

REQUIRED = {
    "general.architecture": "llama",
    "llama.context_length": 8192,
    "llama.embedding_length": 4096,
    "llama.block_count": 32,
    "llama.attention.head_count": 32,
}
LLAMA_3_8B = {
    **REQUIRED,
    "llama.feed_forward_length": 14336,
    "llama.attention.head_count_kv": 8,
    "llama.rope.freq_base": 500000.0,
    "llama.vocab_size": 128256,
}


def metadata_of(values):
    """Metadata that went through a file."""
    return gs.open(file_of("<", values, {})).metadata


def test_10_llama_3_8b():
    found = gs.hyperparameters(metadata_of(LLAMA_3_8B))
    assert found.architecture == "llama"
    assert found.block_count == 32
    assert found.embedding_length == 4096
    assert found.head_count == 32
    assert found.head_count_kv == 8
    assert found.key_length == found.value_length == 128
    assert found.context_length == 8192
    assert found.feed_forward_length == 14336
    assert found.rope_freq_base == 500000.0
    assert found.rope_dimension_count == 128
    assert found.vocabulary == 128256
    assert found.queries_per_kv_head == 4
    assert found.kv_cache_bytes_per_token() == 131072
    assert found.layer_norm_rms_epsilon == 1e-5


def test_10_defaults():
    found = gs.hyperparameters(metadata_of(REQUIRED))
    assert found.head_count_kv == 32
    assert found.rope_dimension_count == 4096 // 32 == 128
    assert found.rope_freq_base == 10000
    assert found.layer_norm_rms_epsilon == 1e-5
    assert found.queries_per_kv_head == 1


def test_10_the_vocabulary_counts_the_tokens():
    found = gs.hyperparameters(metadata_of({**REQUIRED, TOKENS.template: ["<s>", "a", "b"]}))
    assert found.vocabulary == 3


@pytest.mark.parametrize("missing", REQUIRED)
def test_10_a_missing_required_key_is_named(missing):
    values = {key: value for key, value in REQUIRED.items() if key != missing}
    with pytest.raises(gs.GGUFError) as caught:
        gs.hyperparameters(metadata_of({"filler": 1, **values}))
    assert missing in caught.value.problem


@pytest.mark.parametrize("optional", sorted(set(LLAMA_3_8B) - set(REQUIRED)))
def test_10_other_keys_may_be_missing(optional):
    values = {key: value for key, value in LLAMA_3_8B.items() if key != optional}
    assert gs.hyperparameters(metadata_of(values)).block_count == 32


# 11. Names of tensors.

NAMES = [
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("lm_head.weight", "output.weight"),
    ("model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"),
    ("model.layers.1.self_attn.q_proj.weight", "blk.1.attn_q.weight"),
    ("model.layers.2.self_attn.k_proj.weight", "blk.2.attn_k.weight"),
    ("model.layers.3.self_attn.v_proj.weight", "blk.3.attn_v.weight"),
    ("model.layers.10.self_attn.o_proj.weight", "blk.10.attn_output.weight"),
    ("model.layers.31.post_attention_layernorm.weight", "blk.31.ffn_norm.weight"),
    ("model.layers.4.mlp.gate_proj.weight", "blk.4.ffn_gate.weight"),
    ("model.layers.5.mlp.up_proj.weight", "blk.5.ffn_up.weight"),
    ("model.layers.6.mlp.down_proj.weight", "blk.6.ffn_down.weight"),
    ("model.layers.7.self_attn.q_proj.bias", "blk.7.attn_q.bias"),
    ("model.layers.8.self_attn.k_proj.bias", "blk.8.attn_k.bias"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_11_names(name, expected):
    assert gs.gguf_tensor_name(name) == expected


@pytest.mark.parametrize("name", ["model.rotary_emb.inv_freq", "model.layers.0.self_attn.rotary_emb.inv_freq"])
def test_11_inv_freq_has_no_name(name):
    with pytest.raises(gs.GGUFError, match=r"no rule maps .*inv_freq"):
        gs.gguf_tensor_name(name)
    for wrong in None, 5, b"lm_head.weight", [10**5000]:
        with pytest.raises(gs.GGUFError, match=r"^name: expected the name of a tensor, found "):
            gs.gguf_tensor_name(wrong)


# 12. Sizes.

SIZES = [
    (Q.F32, 234_881_024),
    (Q.F16, 117_440_512),
    (Q.BF16, 117_440_512),
    (Q.Q8_0, 62_390_272),
    (Q.Q4_0, 33_030_144),
    (Q.Q4_K, 33_030_144),
    (Q.Q6_K, 48_168_960),
    (Q.IQ4_XS, 31_195_136),
]


@pytest.mark.parametrize(("type", "size"), SIZES)
def test_12_bytes_of_4096_by_14336(type, size):
    assert n_bytes(type, [4096, 14336]) == size


def test_12_q6_k_in_mib():
    assert f"{n_bytes(Q.Q6_K, [256, 151936]) / 2**20:.2f}" == "30.43"


def test_12_q4_k_rows_of_704_are_no_blocks():
    with pytest.raises(gs.GGUFError, match="704 is no multiple of 256") as caught:
        n_bytes(Q.Q4_K, [704, 256])
    assert caught.value.path == "dimensions[0]"
    assert n_bytes(Q.Q4_K, [256, 704]) == 704 * 144, "only a row has to be whole blocks"


# 13. Dimensions are numpy's shape reversed.


def test_13_dimensions():
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensor = gs.open(file_of("<", {}, {"w": w})).tensors["w"]
    assert tensor.dimensions == (4, 3)
    assert tensor.shape == (3, 4)
    assert tensor.data[2][1] == 9.0, "the elements count up, so this is element 9 of the file"
    assert np.frombuffer(tensor.data.tobytes(), "<f4")[9] == w[2][1]


def test_13_dimensions_of_experts():
    info = {"name": "blk.0.ffn_up_exps.weight", "dimensions": [4096, 14336, 8], "type": Q.F32}
    head = gs.GGUF.build({"metadata_kv": [], "tensor_infos": [info]})
    assert gs.open(head, check=False).tensors.infos[0].shape == (8, 14336, 4096)

    small = gs.open(file_of("<", {}, {"w": np.zeros((2, 3, 5), np.float32)})).tensors["w"]
    assert small.dimensions == (5, 3, 2)


# 14. A real file.


@needs_corpus
def test_14_the_vocabulary_of_llama_3():
    with gs.open(CORPUS / "ggml-vocab-llama-bpe.gguf") as model:
        assert model.version == 3
        assert len(model.metadata) == len(model.metadata.pairs) == 20
        assert len(model.tensors) == 0
        assert len(model.metadata["tokenizer.ggml.tokens"]) == 128256
        assert len(model.metadata["tokenizer.ggml.token_type"]) == 128256
        assert len(model.metadata["tokenizer.ggml.merges"]) == 280147
        assert model.data_offset == 7_818_144


# 15. and 17. Sums by tensor type.

ONE_LAYER = [
    ([256, 1000], Q.Q4_K),
    ([256], Q.F32),
    ([256, 256], Q.Q4_K),
    ([256, 64], Q.Q4_K),
    ([256, 64], Q.Q6_K),
    ([256, 256], Q.Q4_K),
    ([256], Q.F32),
    ([256, 704], Q.Q4_K),
    ([256, 704], Q.Q4_K),
    ([704, 256], Q.Q5_0),
    ([256], Q.F32),
    ([256, 1000], Q.Q6_K),
]


def test_15_a_one_layer_model():
    infos = [{"name": f"t{i}", "dimensions": dims, "type": type} for i, (dims, type) in enumerate(ONE_LAYER)]
    model = gs.open(gs.GGUF.build({"metadata_kv": [], "tensor_infos": infos}), check=False)
    mix = quant_mix(model.tensors.infos)
    assert mix == [
        Share("F32", 3, 768, 3072),
        Share("Q4_K", 6, 763904, 429696),
        Share("Q5_0", 1, 180224, 123904),
        Share("Q6_K", 2, 272384, 223440),
    ]
    sums = total(mix)
    assert (sums.tensors, sums.parameters, sums.bytes) == (12, 1217280, 780112)
    assert f"{sums.bits_per_weight:.3f}" == "5.127"
    assert [f"{100 * share.bytes / sums.bytes:.1f}" for share in mix] == ["0.4", "55.1", "15.9", "28.6"]


def test_17_the_mix_of_39_tensors():
    mix = [
        Share("F32", 9, 2_304, 9_216),
        Share("Q4_K", 23, 40_960_000, 23_040_000),
        Share("Q5_0", 2, 360_448, 247_808),
        Share("Q6_K", 3, 38_928_384, 31_933_440),
        Share("Q8_0", 2, 360_448, 382_976),
    ]
    sums = total(mix)
    assert (sums.tensors, sums.parameters, sums.bytes) == (39, 80_611_584, 55_613_440)
    assert f"{sums.bits_per_weight:.2f}" == "5.52"
    for share in mix:
        rows = n_bytes(Q[share.type], [256, share.parameters // 256])
        assert rows == share.bytes, f"{share.type}: the bytes belong to the parameters"


def test_17_a_file_of_one_tensor():
    quants = bytes(range(256)) + bytes(16)
    start = wire(f"""47 47 55 46  # magic
                     03 00 00 00  # version
                     01 00 00 00 00 00 00 00  # tensor_count
                     03 00 00 00 00 00 00 00  # metadata_kv_count
                     {ARCHITECTURE}
                     {EMBEDDING}
                     {FILE_TYPE}
                     11 00 00 00 00 00 00 00  # name.len
                     "token_embd.weight"  # name.string
                     02 00 00 00  # n_dimensions
                     40 00 00 00 00 00 00 00  # dimensions[0]
                     04 00 00 00 00 00 00 00  # dimensions[1]
                     08 00 00 00  # type: Q8_0
                     00 00 00 00 00 00 00 00  # offset""")
    data = start + bytes(224 - len(start)) + quants
    model = gs.open(data)
    assert (model.version, len(model.metadata), len(model.tensors)) == (3, 3, 1)
    assert (model.alignment, model.data_offset, model.size) == (32, 224, 496)
    sums = total(quant_mix(model.tensors.infos))
    assert sums == Share("total", 1, 256, 272)
    assert f"{sums.bits_per_weight:.2f}" == "8.50"
    assert gs.LlamaFileType(model.metadata["general.file_type"]).name == "MOSTLY_Q8_0"
    assert model.tensors["token_embd.weight"].data.tobytes() == quants
    assert gs.GGUF.build(gs.GGUF.parse(data)) == data
    built = {
        "metadata_kv": [
            {"key": "general.architecture", "value_type": T.STRING, "value": "llama"},
            {"key": "llama.embedding_length", "value_type": T.UINT32, "value": 64},
            {"key": "general.file_type", "value_type": T.UINT32, "value": 7},
        ],
        "tensor_infos": [{"name": "token_embd.weight", "dimensions": [64, 4], "type": Q.Q8_0}],
        "tensor_data": quants,
    }
    assert gs.GGUF.build(built) == data


# 16. Versions.


def test_16_widths():
    for order in "<>":
        for version, bits in (1, 32), (2, 64), (3, 64):
            layout = gs.structs(order, version)
            for name in "count", "length", "dimension":
                assert 8 * getattr(layout, name).sizeof() == bits, (order, version, name)


@pytest.mark.parametrize(("order", "version"), [("<", "04 00 00 00"), (">", "00 00 00 04")])
def test_16_version_4_is_an_error(order, version):
    data = b"GGUF" + bytes.fromhex(version) + bytes(16)
    for read in gs.GGUF.parse, gs.open:
        with pytest.raises(gs.ParseError, match="unknown version 4") as caught:
            read(data)
        assert (caught.value.path, caught.value.offset) == ("version", 4)
    with pytest.raises(gs.BuildError, match="unknown version 4") as built:
        gs.GGUF.build({"order": order, "version": 4, "metadata_kv": [], "tensor_infos": []})
    assert built.value.path == "version"


# 18. Types of tokens.


def test_18_token_types():
    assert {int(type): type.name for type in gs.TokenType} == {
        1: "NORMAL",
        2: "UNKNOWN",
        3: "CONTROL",
        4: "USER_DEFINED",
        5: "UNUSED",
        6: "BYTE",
    }
