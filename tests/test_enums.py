"""The enumerations against tables typed by hand from llama.cpp's headers, and against gguf-py."""

import pytest

import gguf_schema as gs

VALUE_TYPES = """
    UINT8 INT8 UINT16 INT16 UINT32 INT32 FLOAT32 BOOL STRING ARRAY UINT64 INT64 FLOAT64
"""
TENSOR_TYPES = """
    F32 F16 Q4_0 Q4_1 Q4_2 Q4_3 Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL
    IQ3_S IQ2_S IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 Q4_0_4_4 Q4_0_4_8 Q4_0_8_8 TQ1_0 TQ2_0 IQ4_NL_4_4 IQ4_NL_4_8
    IQ4_NL_8_8 MXFP4 NVFP4 Q1_0 Q2_0
"""
FILE_TYPES = """
    F16 Q4_0 Q4_1 Q4_1_SOME_F16 Q4_2 Q4_3 Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K
    IQ2_XXS IQ2_XS Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 Q4_0_4_4 Q4_0_4_8
    Q4_0_8_8 TQ1_0 TQ2_0 MXFP4_MOE NVFP4 Q1_0 Q2_0
"""
TOKEN_TYPES = "NORMAL UNKNOWN CONTROL USER_DEFINED UNUSED BYTE"


def numbers(enum):
    return {member.name: int(member) for member in enum}


def counted(names, first, prefix=""):
    return {prefix + name: number for number, name in enumerate(names.split(), first)}


def test_value_types():
    assert numbers(gs.GGUFValueType) == counted(VALUE_TYPES, 0)


def test_tensor_types():
    assert numbers(gs.GGMLQuantizationType) == counted(TENSOR_TYPES, 0)


def test_file_types():
    expected = {"ALL_F32": 0, **counted(FILE_TYPES, 1, "MOSTLY_"), "GUESSED": 1024}
    assert numbers(gs.LlamaFileType) == expected


def test_token_types():
    assert numbers(gs.TokenType) == counted(TOKEN_TYPES, 1)


@pytest.mark.parametrize("name", ["GGUFValueType", "GGMLQuantizationType", "LlamaFileType", "TokenType"])
def test_gguf_py_agrees(name):
    """All members of gguf-py are ours; we also have those that were removed, and newer ones."""
    theirs = numbers(getattr(pytest.importorskip("gguf"), name))
    ours = numbers(getattr(gs, name))
    assert theirs.items() <= ours.items()


def test_members_are_printed_by_name():
    assert f"{gs.GGMLQuantizationType.Q4_K} {gs.GGUFValueType.STRING}" == "Q4_K STRING"
