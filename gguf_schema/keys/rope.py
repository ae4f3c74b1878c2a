"""`{arch}.rope.*`: rotary positions, and how they are stretched over longer contexts."""

from ..enums import GGUFValueType as T
from .key import INTS, UINTS, Key, count, flag, number, string

ROPE = (
    count("{arch}.rope.dimension_count", "Dimensions of a head that are rotated"),
    count("{arch}.rope.dimension_count_swa", "Dimensions of a head that are rotated in layers with a window"),
    Key(
        "{arch}.rope.dimension_sections",
        INTS,
        "How many pairs of dimensions turn with the time, the height, the width and a fourth axis",
        (UINTS, T.INT32),
        "for qwen2vl and others",
    ),
    number("{arch}.rope.freq_base", "Base of the rotation's frequencies"),
    number("{arch}.rope.freq_base_swa", "Base of the frequencies in layers with a window", "for dots3note"),
    string("{arch}.rope.scaling.type", "How positions are stretched: none, linear, yarn or longrope"),
    number("{arch}.rope.scaling.factor", "How far positions are stretched"),
    number("{arch}.rope.scale_linear", "Old name of `rope.scaling.factor`, which llama.cpp reads and no longer writes"),
    number("{arch}.rope.scaling.alpha", "The base of the frequencies is multiplied by a power of this"),
    number("{arch}.rope.scaling.attn_factor", "Rotated queries and keys are multiplied by this"),
    count("{arch}.rope.scaling.original_context_length", "Context before positions were stretched"),
    flag("{arch}.rope.scaling.finetuned", "The model was tuned with stretched positions"),
    number("{arch}.rope.scaling.yarn_log_multiplier", "How fast YaRN sharpens scores with the logarithm of the factor"),
    number("{arch}.rope.scaling.yarn_ext_factor", "How much YaRN leaves fast frequencies as they are"),
    number("{arch}.rope.scaling.yarn_attn_factor", "YaRN multiplies rotated queries and keys by this"),
    number("{arch}.rope.scaling.yarn_beta_fast", "Turns over the context from which YaRN leaves a frequency as it is"),
    number("{arch}.rope.scaling.yarn_beta_slow", "Turns over the context up to which YaRN stretches a frequency fully"),
)
