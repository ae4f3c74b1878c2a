"""A small model made on the spot, so that every command can be tried without a file: a toy Llama of one layer."""

import io
from typing import Any

import numpy as np

from .blocks import block
from .enums import ArrayType, GGMLQuantizationType, GGUFValueType, LlamaFileType, TokenType
from .write import write

EMBEDDING_LENGTH = 64
FEED_FORWARD_LENGTH = 96
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁the", "▁cat"]


def demo_model() -> bytes:
    """The file: GGUF version 3 with a tokenizer, F32 norms and Q8_0 matrices. The same bytes every time."""
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256, *[TokenType.NORMAL] * 2]
    metadata = {
        "general.architecture": "llama",
        "general.name": "gguf_schema demo",
        "general.file_type": int(LlamaFileType.MOSTLY_Q8_0),
        "general.quantization_version": 2,
        "llama.context_length": 128,
        "llama.embedding_length": EMBEDDING_LENGTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": FEED_FORWARD_LENGTH,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": 16,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.scores": [0.0] * len(TOKENS),
        "tokenizer.ggml.token_type": (ArrayType(GGUFValueType.INT32), list(map(int, types))),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    key_value = EMBEDDING_LENGTH // 2
    matrices = {
        "token_embd.weight": (len(TOKENS), EMBEDDING_LENGTH),
        "blk.0.attn_q.weight": (EMBEDDING_LENGTH, EMBEDDING_LENGTH),
        "blk.0.attn_k.weight": (key_value, EMBEDDING_LENGTH),
        "blk.0.attn_v.weight": (key_value, EMBEDDING_LENGTH),
        "blk.0.attn_output.weight": (EMBEDDING_LENGTH, EMBEDDING_LENGTH),
        "blk.0.ffn_gate.weight": (FEED_FORWARD_LENGTH, EMBEDDING_LENGTH),
        "blk.0.ffn_up.weight": (FEED_FORWARD_LENGTH, EMBEDDING_LENGTH),
        "blk.0.ffn_down.weight": (EMBEDDING_LENGTH, FEED_FORWARD_LENGTH),
    }
    norms = ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight")
    tensors = {
        **{name: (GGMLQuantizationType.Q8_0, _q8_0(shape)) for name, shape in matrices.items()},
        **{name: np.ones(EMBEDDING_LENGTH, np.float32) for name in norms},
    }
    file = io.BytesIO()
    write(file, metadata, tensors)
    return file.getvalue()


def _q8_0(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """A wave over a matrix, quantised: each block's largest value becomes 127."""
    struct = block(GGMLQuantizationType.Q8_0)
    assert struct is not None
    rows, columns = shape
    values = 0.05 * np.sin(0.1 * np.arange(rows * columns)).reshape(rows, -1, struct.block_size)
    scale = np.abs(values).max(axis=-1) / 127
    blocks = np.zeros(scale.shape, struct.dtype())
    blocks["d"] = scale
    blocks["qs"] = np.rint(values / scale[..., None])
    return blocks
