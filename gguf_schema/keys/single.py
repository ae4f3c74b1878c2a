"""`{arch}.*` and others that belong to one architecture or to few."""

from ..enums import GGUFValueType as T
from .key import FLOATS, LONGS, Key, count, flag, integers, number

RUNS = "where `ple.layers` names a layer"

SINGLE = (
    # gemma3n: several streams side by side.
    count("{arch}.altup.active_idx", "The one of several streams that a layer works on"),
    count("{arch}.altup.num_inputs", "Number of streams side by side"),
    # deepseek4 and others: several streams that are mixed before and after each layer.
    count("{arch}.hyper_connection.count", "Number of streams side by side", "for deepseek4 and others"),
    count(
        "{arch}.hyper_connection.sinkhorn_iterations",
        "Steps that balance the mixture of streams",
        "for deepseek4 and others",
    ),
    number(
        "{arch}.hyper_connection.epsilon",
        "Added where the mixture of streams is normalised",
        "for deepseek4 and others",
    ),
    count("{arch}.hyper_connection.low_rank", "Rank of the projection that mixes streams", "for qwen4exp"),
    number("{arch}.hyper_connection.magnitude", "What a layer gives to the streams is multiplied by this", "for hy_v4"),
    # kimi-k3: attention over the outputs of earlier layers.
    count("{arch}.attn_res.block_size", "Layers of a block whose outputs are attended to; 0: none", "for kimi-k3"),
    # hrm_text: two stacks of layers that take turns.
    count("{arch}.hrm.layers_per_stack", "Layers of a stack", "for hrm_text"),
    count("{arch}.hrm.h_cycles", "How often the slow stack is run", "for hrm_text"),
    count("{arch}.hrm.l_cycles", "How often the fast stack is run for each run of the slow one", "for hrm_text"),
    flag("{arch}.hrm.prefix_lm", "Tokens of the prompt see each other in both directions"),
    # qwen4exp: vectors for runs of tokens, found by a hash.
    integers("{arch}.ple.layers", "Layers that vectors of runs are added to"),
    count("{arch}.ple.ngram_size", "Tokens of the longest run", RUNS),
    count("{arch}.ple.heads_per_ngram", "Hashes for each length of a run", RUNS),
    count("{arch}.ple.conv_kernel", "Vectors of runs that a convolution looks at", RUNS),
    count("{arch}.ple.eos_token_id", "The token that runs do not cross", RUNS),
    count("{arch}.ple.image_token_id", "The token that stands for an image in a run"),
    Key("{arch}.ple.layer_multipliers", LONGS, "Factors of the hash, one for each place in a run", (), RUNS),
    Key("{arch}.ple.head_offsets", LONGS, "Where the vectors of each hash begin", (), RUNS),
    Key("{arch}.ple.head_vocab_sizes", LONGS, "Number of vectors of each hash", (), RUNS),
    # graniteswitch: adapters within the model, switched on by tokens.
    count("{arch}.adapters.count", "Number of adapters", "for graniteswitch"),
    count("{arch}.adapters.lora_rank", "Largest rank of an adapter", "for graniteswitch"),
    number("{arch}.adapters.router_gain", "How sharply the last switching token is picked out"),
    integers("{arch}.adapters.token_ids_activate", "For each adapter the token that calls it", "for graniteswitch"),
    integers("{arch}.adapters.token_ids_substitute", "For each adapter the token read instead", "for graniteswitch"),
    # eagle3 and dflash: small models that draft tokens for a large one.
    integers("{arch}.target_layers", "Layers of the large model whose outputs are read", "for eagle3 and dflash"),
    count("{arch}.target_hidden_size", "Width of the large model's vectors", "for eagle3"),
    flag("{arch}.norm_before_residual", "The residual is taken after the normalisation"),
    flag("{arch}.norm_before_fc", "Normalises the large model's outputs before they are projected"),
    count("{arch}.block_size", "Tokens that are drafted at once"),
    flag("{arch}.sample_from_anchor", "The place of the last known token drafts one too; true where it is absent"),
    flag("{arch}.has_confidence_head", "The model also says how sure it is of a draft"),
    count("{arch}.conv_kernel_size", "Tokens that the convolution in a drafting layer looks at"),
    count("{arch}.conv_group_size", "Dimensions that share a kernel of the convolution in a drafting layer"),
    count("{arch}.selector_rank", "Rank of the scores of pairs of drafted tokens"),
    count("{arch}.selector_top_k", "Tokens at each place that a draft is chosen from"),
    # apertus: an activation function with parameters for each layer.
    Key("xielu.alpha_p", FLOATS, "For each layer the curve of xIELU above 0", (T.FLOAT32,), "for apertus"),
    Key("xielu.alpha_n", FLOATS, "For each layer the curve of xIELU below 0", (T.FLOAT32,), "for apertus"),
    Key("xielu.beta", FLOATS, "For each layer the linear part of xIELU", (T.FLOAT32,), "for apertus"),
    Key("xielu.eps", FLOATS, "For each layer the bound of xIELU near 0", (T.FLOAT32,), "for apertus"),
    # Models that denoise text.
    flag("diffusion.shift_logits", "The logits at a place are those of the token after it"),
)
