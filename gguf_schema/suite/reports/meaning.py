"""Reports about what keys mean, and about content."""

from ...enums import GGMLQuantizationType as Q
from ...enums import GGUFValueType as T
from ..case import Row
from ..draft import array, drafted, number, put, tensor, text, toy

TYPE, VALUE, LENGTH = "metadata_kv[1].value_type", "metadata_kv[1].value", "metadata_kv[1].value.len"
TOKENS = array("tokenizer.ggml.tokens", T.STRING, "<unk>", "<s>", "</s>", "\u2581the", "\u2581cat")
CLIP = text("general.architecture", "clip")

ROWS = (
    Row(
        "reports/llama.cpp-14197-expert-used-count",
        "llama.cpp PR#14197",
        "expert_used_count as INT32; llama.cpp reads UINT32",
        toy(number("llama.expert_used_count", 2)),
        put(TYPE, T.INT32),
        ("key-type",),
        TYPE,
    ),
    Row(
        "reports/cve-2024-8063-block-count-string",
        "CVE-2024-8063 (ollama)",
        "block_count as a string: a reader took it for a number",
        toy(text("llama.block_count", "1")),
        rules=("key-type",),
        path=TYPE,
    ),
    Row(
        "reports/llama.cpp-18118-tokens-as-numbers",
        "llama.cpp#18118",
        "Tokens as an array of numbers: a writer took the letters of one string for the list",
        toy(array("tokenizer.ggml.tokens", T.INT32, *b"<unk>")),
        rules=("key-type",),
        path="metadata_kv[1].value.type",
    ),
    Row(
        "reports/llama.cpp-27254-scores-int32",
        "llama.cpp#27254, PR#27075",
        "Scores as INT32, which public files have",
        toy(TOKENS, array("tokenizer.ggml.scores", T.INT32, 0, 1, 2, 3, 4)),
        rules=("key-type",),
        path="metadata_kv[2].value.type",
    ),
    Row(
        "reports/mistral.rs-2215-scores-shorter",
        "mistral.rs PR#2215",
        "Fewer scores than tokens: the vocabulary was cut off",
        toy(TOKENS, array("tokenizer.ggml.scores", T.FLOAT32, 0.0, -1.0)),
        rules=("token-arrays-length",),
        path="metadata_kv[2].value.len",
    ),
    Row(
        "reports/mistral.rs-2282-eos-outside",
        "mistral.rs PR#2282, llama.cpp#3634",
        "An end-of-sequence token of id 2^32 - 1: an index out of bounds",
        toy(TOKENS, number("tokenizer.ggml.eos_token_id", 2**32 - 1)),
        rules=("token-id-range",),
        path="metadata_kv[2].value",
    ),
    Row(
        "reports/llama.cpp-24885-token-twice",
        "llama.cpp#24885",
        "A token twice: an assertion ended the process",
        toy(TOKENS),
        put("metadata_kv[1].value.array[4]", "\u2581the"),
        ("token-twice",),
        "metadata_kv[1].value.array[4].string",
    ),
    Row(
        "reports/gpustack-1686-head-counts",
        "gpustack#1686, Crane#127, ODS#5508",
        "A number of heads for each of 88 layers: readers expected one number, or looked at 64",
        toy(number("llama.block_count", 88), array("llama.attention.head_count_kv", T.INT32, *(2, 4, 8, 0) * 22)),
    ),
    Row(
        "reports/freetoken-63-head-count-number",
        "FreeToken#63, PR#190",
        "One number of KV heads beside a feed-forward length for each layer",
        toy(
            number("llama.block_count", 2),
            number("llama.attention.head_count_kv", 2),
            array("llama.feed_forward_length", T.INT32, 96, 128),
        ),
    ),
    Row(
        "reports/llama.cpp-24976-image-mean",
        "llama.cpp PR#24976, PR#25014",
        "One mean of an image, of which three are copied",
        drafted(CLIP, array("clip.vision.image_mean", T.FLOAT32, 0.5)),
        rules=("array-length",),
        path=LENGTH,
    ),
    Row(
        "reports/llama.cpp-25334-dimension-sections",
        "llama.cpp PR#25334, eullm#33, lmstudio#2398",
        "Three sections, as Ollama writes them; llama.cpp takes four",
        toy(array("llama.rope.dimension_sections", T.INT32, 16, 24, 24)),
        rules=("array-length",),
        path=LENGTH,
    ),
    Row(
        "reports/llama.cpp-27223-chunk-size",
        "llama.cpp#27223",
        "A chunk size whose square does not fit 32 bits",
        drafted(CLIP, number("clip.audio.chunk_size", 65537)),
        rules=("number-large",),
        path=VALUE,
    ),
    Row(
        "reports/llama.cpp-25821-block-count-513",
        "llama.cpp PR#25821, #26051",
        "513 layers: llama.cpp wrote behind an array of 512",
        toy(number("llama.block_count", 513)),
        rules=("number-large",),
        path=VALUE,
    ),
    Row(
        "reports/llama.cpp-24737-block-count",
        "llama.cpp#24737",
        "33 layers, and tensors of one",
        toy(
            number("llama.block_count", 33),
            number("llama.context_length", 128),
            number("llama.embedding_length", 4),
            number("llama.attention.head_count", 1),
            tensors=(tensor("blk.0.attn_norm.weight"),),
        ),
        rules=("block-count",),
        path=VALUE,
    ),
    Row(
        "reports/koboldcpp-1191-no-head-count",
        "koboldcpp PR#1191",
        "No number of heads: readers guess",
        toy(
            number("llama.block_count", 1),
            number("llama.context_length", 128),
            number("llama.embedding_length", 4),
            tensors=(tensor("blk.0.attn_norm.weight"),),
        ),
        rules=("key-missing",),
        path="metadata_kv",
    ),
    Row(
        "reports/mesh-llm-1199-first-shard-without-tensors",
        "mesh-llm PR#1199, gguf-split --no-tensor-first-split",
        "A first shard with metadata only",
        toy(
            number("split.no", 0, T.UINT16),
            number("split.count", 2, T.UINT16),
            number("split.tensors.count", 2, T.INT32),
        ),
    ),
    Row(
        "reports/freetoken-154-second-shard",
        "FreeToken PR#154",
        "A second shard: its number is 1 in the file and 2 in its name, and it has no architecture",
        drafted(
            number("split.no", 1, T.UINT16),
            number("split.count", 2, T.UINT16),
            number("split.tensors.count", 2, T.INT32),
            tensors=(tensor("a.weight"), tensor("b.weight")),
        ),
    ),
    Row(
        "reports/cve-2024-34359-template",
        "CVE-2024-34359, llama-cpp-python PR#1462",
        "A chat template that walks to Python's interpreter, which ran it without a sandbox",
        toy(text("tokenizer.chat_template", "{{ ''.__class__.__mro__[1].__subclasses__() }}")),
        rules=("template-interpreter",),
        path="metadata_kv[1].value.string",
    ),
    Row(
        "reports/gguf.js-1-no-quantization-version",
        "ahoylabs/gguf.js#1",
        "A quantised tensor without general.quantization_version, which the specification asks for",
        toy(tensors=(tensor("a.weight", Q.Q4_0, 32),)),
        rules=("quantization-version-missing",),
        path="tensor_infos[0].type",
    ),
)
