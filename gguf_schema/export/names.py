"""What the parts of the format are called elsewhere: in the GGUF specification, and in gguf.h, ggml.h and llama.h."""

from ..walk import Description

ENUMS = {
    "GGUFValueType": ("gguf_value_type", "GGUF_TYPE_"),
    "GGMLQuantizationType": ("ggml_type", "GGML_TYPE_"),
    "LlamaFileType": ("llama_ftype", "LLAMA_FTYPE_"),
    "TokenType": ("llama_token_type", "LLAMA_TOKEN_TYPE_"),
}
"""The enumerations of the description → a name in snake case, and what ggml and llama.cpp put before each member."""

STRUCTS = {"string": "gguf_string_t", "metadata_kv": "gguf_metadata_kv_t", "tensor_info": "gguf_tensor_info_t"}
FIELDS = {"padding": "_padding"}
"""Types and fields that the specification calls differently."""


def sizes_of(tensor_type: Description) -> str:
    """The sizes of a tensor type in words."""
    return f"block_size {tensor_type['block_size']}, type_size {tensor_type['type_size']}"
