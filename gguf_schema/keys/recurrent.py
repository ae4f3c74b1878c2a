"""`{arch}.*` of layers with a state instead of attention: Mamba, RWKV, Kimi's linear attention, short convolutions."""

from ..enums import GGUFValueType as T
from .key import BOOLS, INTS, UINTS, Key, choice, count, flag, number

STATE_SPACE = "for a state-space model"

RECURRENT = (
    Key(
        "{arch}.attention.recurrent_layers",
        BOOLS,
        "For each layer whether it has a state instead of attention",
        (INTS, UINTS, T.UINT32),
    ),
    count("{arch}.ssm.conv_kernel", "Tokens that the convolution looks at", STATE_SPACE),
    count("{arch}.ssm.inner_size", "Width of the vectors that the state is updated with", STATE_SPACE),
    count("{arch}.ssm.state_size", "Numbers of the state for each of the inner dimensions", STATE_SPACE),
    count("{arch}.ssm.time_step_rank", "Rank of the time step's projection; Mamba 2's number of heads", STATE_SPACE),
    count("{arch}.ssm.group_count", "Groups of heads that share their projections", "for mamba2 and others"),
    flag("{arch}.ssm.dt_b_c_rms", "Normalises the time step and both projections by their mean squares"),
    count("{arch}.kda.head_dim", "Width of a head of Kimi's delta attention", "for kimi-linear and others"),
    number("{arch}.kda.gate_lower_bound", "Least logarithm of how much the state keeps at a token", "for bailingmoe3"),
    flag("{arch}.kda.safe_gate", "Whether `kda.gate_lower_bound` holds"),
    count("{arch}.wkv.head_size", "Width of a head of RWKV", "for rwkv6 and later"),
    count("{arch}.token_shift_count", "Vectors of the last token that a layer keeps"),
    count("{arch}.rescale_every_n_layers", "Every how many layers the stream is halved, so that 16 bits suffice"),
    count(
        "{arch}.time_mix_extra_dim",
        "Rank of the projection that mixes a token with the last one",
        "for rwkv6 and rwkv6qwen2",
    ),
    count("{arch}.time_decay_extra_dim", "Rank of the projection of the decay", "for rwkv6 and rwkv6qwen2"),
    choice("{arch}.architecture_version", "Version of RWKV, 4; documented for rwkv, but used by no code"),
    count("{arch}.shortconv.l_cache", "Tokens that a short convolution looks at", "for lfm2 and lfm2moe"),
)
