"""Hugging Face's names of tensors and GGUF's, for the Llama family (Llama, Mistral, Qwen2, …)."""

import re

from .errors import GGUFError, shown

MODEL = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LAYER_NAME = re.compile(r"model\.layers\.(0|[1-9][0-9]*)\.(.+)")


def gguf_tensor_name(name: str) -> str:
    """The GGUF name of a tensor of a Llama-like model on Hugging Face; the suffix (.weight, .bias) is kept.

    Only the name: llama.cpp's converter also permutes the rows of Llama's q and k.

    Raises:
        GGUFError: No rule maps it (`inv_freq`, for one, is computed, not stored).
    """
    if not isinstance(name, str):
        raise GGUFError(f"expected the name of a tensor, found {shown(name, 100)}", "name")
    stem, _, suffix = name.rpartition(".")
    if suffix in ("weight", "bias"):
        if stem in MODEL:
            return f"{MODEL[stem]}.{suffix}"
        layer = _LAYER_NAME.fullmatch(stem)
        if layer and layer[2] in LAYER:
            return f"blk.{layer[1]}.{LAYER[layer[2]]}.{suffix}"
    raise GGUFError(f"no rule maps the tensor name {name!r}")
