"""`{arch}.expert*` and the like: mixtures of experts."""

from ..enums import GGUFValueType as T
from .key import FLOATS, Key, choice, count, counts, flag, number

EXPERTS = (
    count("{arch}.expert_count", "Experts of a layer"),
    counts("{arch}.expert_used_count", "Experts that a token is sent to"),
    count("{arch}.expert_shared_count", "Experts that every token is sent to", "for deepseek2 and others"),
    counts("{arch}.expert_feed_forward_length", "Width of an expert", "for deepseek2 and others"),
    count("{arch}.expert_shared_feed_forward_length", "Width of the experts that every token is sent to"),
    count("{arch}.expert_chunk_feed_forward_length", "Width of the small experts that a group shares"),
    count("{arch}.expert_latent_length", "Width to which vectors are projected before the experts"),
    count("{arch}.moe_latent_size", "`expert_latent_length` under the name that nemotron_h_moe has for it"),
    count("{arch}.expert_group_count", "Groups that experts are divided into"),
    count("{arch}.expert_group_used_count", "Groups that a token's experts are taken from"),
    count("{arch}.experts_per_group", "Experts that share a small one", "for grovemoe"),
    number("{arch}.expert_group_scale", "What shared small experts give is multiplied by this", "for grovemoe"),
    number("{arch}.expert_weights_scale", "Weights of the chosen experts are multiplied by this", "for deepseek4"),
    flag("{arch}.expert_weights_norm", "Weights of the chosen experts are made to add up to 1", "for deepseek4"),
    choice(
        "{arch}.expert_gating_func",
        "How scores become weights: 1 softmax, 2 sigmoid, 4 root of softplus",
        "for deepseek4 and others",
    ),
    count("{arch}.leading_dense_block_count", "Layers at the start without experts", "for bailingmoe3 and others"),
    count("{arch}.moe_every_n_layers", "Every how many layers one has experts"),
    count("{arch}.interleave_moe_layer_step", "Every how many layers one has experts", "for llama4 and ernie4_5"),
    count("{arch}.hash_layer_count", "Layers at the start that choose experts by the token's id", "for deepseek4"),
    Key(
        "{arch}.swiglu_clamp_exp",
        FLOATS,
        "For each layer where activations of experts are cut off",
        (T.FLOAT32,),
        "for deepseek4 and others",
    ),
    Key(
        "{arch}.swiglu_clamp_shexp",
        FLOATS,
        "For each layer where activations of experts that every token is sent to are cut off",
        (T.FLOAT32,),
    ),
)
