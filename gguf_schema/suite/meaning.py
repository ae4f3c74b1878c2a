"""Standard keys that do not agree with each other, or with the tensors."""

from ..enums import GGMLQuantizationType as Q
from ..enums import GGUFValueType as T
from ..enums import LlamaFileType
from .case import Pair
from .draft import QUANTISED, array, number, put, tensor, toy

VALUE = "metadata_kv[1].value"
TOKENS = array("tokenizer.ggml.tokens", T.STRING, "<unk>", "<s>", "</s>")
WIDE = (
    number("llama.context_length", 128),
    number("llama.embedding_length", 32),
    number("llama.block_count", 1),
    number("llama.attention.head_count", 4),
)
LAYERS = toy(number("llama.block_count", 1), array("llama.attention.head_count_kv", T.INT32, 2))
SHARD = (
    number("split.count", 2, T.UINT16),
    number("split.no", 0, T.UINT16),
    number("split.tensors.count", 2, T.INT32),
)
EMBEDDING = toy(number("llama.embedding_length", 32), TOKENS, tensors=(tensor("token_embd.weight", Q.F16, 32, 3),))

PAIRS = (
    Pair(
        "key-type",
        toy(number("llama.context_length", 128)),
        put("metadata_kv[1].value_type", T.INT16),
        "metadata_kv[1].value_type",
    ),
    Pair("block-count", toy(number("llama.block_count", 1)), put(VALUE, 0), VALUE),
    Pair(
        "token-arrays-length",
        toy(TOKENS, array("tokenizer.ggml.scores", T.FLOAT32, 0.0, -1.0, -2.0)),
        put("metadata_kv[2].value.array", [0.0, -1.0]),
        "metadata_kv[2].value.len",
    ),
    Pair("token-twice", toy(TOKENS), put(f"{VALUE}.array[2]", "<s>"), f"{VALUE}.array[2].string"),
    Pair(
        "token-id-range",
        toy(TOKENS, number("tokenizer.ggml.eos_token_id", 2)),
        put("metadata_kv[2].value", 3),
        "metadata_kv[2].value",
    ),
    Pair("shard-number", toy(*SHARD[:2]), put("metadata_kv[2].value", 2), "metadata_kv[2].value"),
    Pair(
        "shard-whole",
        toy(*SHARD, tensors=(tensor("a.weight"),)),
        put("metadata_kv[3].value", 1),
        VALUE,
    ),
    Pair(
        "quantization-version-missing",
        toy(QUANTISED, tensors=(tensor("a.weight", Q.Q8_0, 32),)),
        put("metadata_kv[1].key", "general.test_version"),
        "tensor_infos[0].type",
    ),
    Pair(
        "key-missing",
        toy(*WIDE, tensors=(tensor("blk.0.attn_norm.weight", Q.F32, 32),)),
        put("metadata_kv[1].key", "llama.test_length"),
        "metadata_kv",
    ),
    Pair("embedding-width", EMBEDDING, put(VALUE, 64), "tensor_infos[0].dimensions[0]"),
    Pair("vocabulary-rows", EMBEDDING, put("tensor_infos[0].dimensions[1]", 4), "tensor_infos[0].dimensions[1]"),
    Pair(
        "heads-divide",
        toy(number("llama.attention.head_count", 4), number("llama.attention.head_count_kv", 2)),
        put("metadata_kv[2].value", 3),
        VALUE,
    ),
    Pair("layers-length", LAYERS, put(VALUE, 2), "metadata_kv[2].value.len"),
    Pair(
        "array-length",
        toy(array("llama.rope.dimension_sections", T.INT32, 16, 24, 24, 0)),
        put(f"{VALUE}.array", [16, 24, 24]),
        f"{VALUE}.len",
    ),
    Pair("number-large", toy(number("llama.block_count", 512)), put(VALUE, 513), VALUE),
    Pair(
        "file-type",
        toy(number("general.file_type", int(LlamaFileType.ALL_F32)), tensors=(tensor("a.weight"),)),
        put(VALUE, int(LlamaFileType.MOSTLY_Q4_0)),
        VALUE,
    ),
)
