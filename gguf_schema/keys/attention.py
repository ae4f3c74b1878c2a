"""`{arch}.attention.*`: heads, normalisation, windows, low-rank projections, sparse attention."""

from ..enums import GGUFValueType as T
from .key import BOOLS, INTS, UINTS, Key, count, counts, flag, layers, number

WAVTOKENIZER = "for wavtokenizer-dec"
INDEXER = "for deepseek32 and others"

HEADS = (
    counts("{arch}.attention.head_count", "Query heads of a layer", "for a model with attention"),
    counts("{arch}.attention.head_count_kv", "Key and value heads of a layer; `head_count` where it is absent"),
    count("{arch}.attention.key_length", "Width of a key head; `embedding_length / head_count` where it is absent"),
    count("{arch}.attention.value_length", "Width of a value head; `embedding_length / head_count` where it is absent"),
    flag("{arch}.attention.causal", "A token sees only those before it; true where it is absent"),
    number("{arch}.attention.scale", "Scores are multiplied by this instead of one over the root of the head's width"),
    number("{arch}.attention.output_scale", "Scores are multiplied by this before they are capped"),
    number("{arch}.attention.value_scale", "Values are multiplied by this"),
    number("{arch}.attention.max_alibi_bias", "Largest bias of ALiBi, which stands for positions; 0: no ALiBi"),
    number("{arch}.attention.alibi_bias_max", "`max_alibi_bias` as documented for mpt, but used by no code"),
    number("{arch}.attention.clamp_kqv", "Queries, keys and values are cut off at this and its negative", "for dbrx"),
    number("{arch}.attention.clip_kqv", "`clamp_kqv` as documented for mpt, but used by no code"),
    count(
        "{arch}.attention.relative_buckets_count",
        "Groups of distances that have a bias of their own",
        "for t5 and t5encoder",
    ),
    count("{arch}.attention.temperature_length", "Tokens after which scores are sharpened"),
    number("{arch}.attention.temperature_scale", "How fast scores are sharpened with the position"),
    count("{arch}.attention.shared_kv_layers", "Layers at the end that use keys and values of earlier ones"),
    count("{arch}.full_attention_interval", "Every how many layers one has full attention; the others are linear"),
    layers("{arch}.attention.rope_pattern", "For each layer whether positions are rotated in"),
)

NORMALISATION = (
    number("{arch}.attention.layer_norm_epsilon", "Added to the variance before the root", "where it is used"),
    number("{arch}.attention.layer_norm_rms_epsilon", "Added to the mean square before the root", "where it is used"),
    number("{arch}.attention.group_norm_epsilon", "Added to a group's variance before the root", WAVTOKENIZER),
    count("{arch}.attention.group_norm_groups", "Groups that are normalised apart", WAVTOKENIZER),
)

WINDOWS = (
    count(
        "{arch}.attention.sliding_window", "Tokens that a layer with a window looks back on", "for cohere2 and others"
    ),
    Key(
        "{arch}.attention.sliding_window_pattern",
        T.UINT32,
        "Every how many layers one has no window, or for each layer whether it has one",
        (T.UINT64, BOOLS, INTS, UINTS),
        "for gemma4 and others",
    ),
    count("{arch}.attention.key_length_swa", "Width of a key head in layers with a window", "for gemma4"),
    count("{arch}.attention.value_length_swa", "Width of a value head in layers with a window", "for gemma4"),
)

LOW_RANK = (
    count("{arch}.attention.q_lora_rank", "Rank of the queries' projection", "for deepseek2 and others"),
    count(
        "{arch}.attention.kv_lora_rank", "Rank of the projection that keys and values share", "for deepseek2 and others"
    ),
    count(
        "{arch}.attention.kv_lora_rank_swa", "Rank that keys and values share in layers with a window", "for dots3note"
    ),
    count("{arch}.attention.key_length_mla", "Width of a decompressed key head", "for kimi-linear and others"),
    count("{arch}.attention.key_length_mla_swa", "Width of a decompressed key head with a window", "for dots3note"),
    count("{arch}.attention.value_length_mla", "Width of a decompressed value head", "for kimi-linear and others"),
    count("{arch}.attention.value_length_mla_swa", "Width of a decompressed value head with a window", "for dots3note"),
    count("{arch}.attention.output_lora_rank", "Rank of the output's projection", "for deepseek4 and dflash"),
    count(
        "{arch}.attention.output_group_count",
        "Groups of heads whose output is projected apart",
        "for deepseek4 and dflash",
    ),
    count("{arch}.attention.decay_lora_rank", "Rank of the decay's projection", "for rwkv7 and arwkv7"),
    count(
        "{arch}.attention.iclr_lora_rank", "Rank of the in-context learning rate's projection", "for rwkv7 and arwkv7"
    ),
    count(
        "{arch}.attention.value_residual_mix_lora_rank",
        "Rank of the value residual's projection",
        "for rwkv7 and arwkv7",
    ),
    count("{arch}.attention.gate_lora_rank", "Rank of the gate's projection"),
)

SPARSE = (
    count("{arch}.attention.indexer.head_count", "Heads of the indexer, which chooses what to attend to", INDEXER),
    count("{arch}.attention.indexer.key_length", "Width of a key head of the indexer", INDEXER),
    count("{arch}.attention.indexer.top_k", "Tokens, or blocks of them, that the indexer chooses", INDEXER),
    count("{arch}.attention.indexer.block_size", "Tokens of a block that is chosen as a whole", "for minimax-m3"),
    count("{arch}.attention.indexer.local_blocks", "Last blocks that are always chosen", "for minimax-m3"),
    count("{arch}.attention.indexer.kpool", "Keys of the indexer that are pooled into one", "for glm5-next"),
    flag("{arch}.attention.indexer.kpool_select_tail", "Always chooses the last keys that fill no pool yet"),
    Key(
        "{arch}.attention.indexer.types",
        BOOLS,
        "For each layer whether it has an indexer of its own or uses the choice of an earlier one",
        (T.UINT32, INTS, UINTS),
    ),
    Key(
        "{arch}.attention.compress_ratios",
        INTS,
        "For each layer how many tokens are compressed into one; 0 for none",
        (UINTS, T.UINT32),
        "for deepseek4",
    ),
    number("{arch}.attention.compress_rope_freq_base", "Frequency base of layers that compress", "for deepseek4"),
)

ATTENTION = HEADS + NORMALISATION + WINDOWS + LOW_RANK + SPARSE
