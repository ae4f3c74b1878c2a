"""Where readers differ about tensor infos and data."""

from ..limits import MAX_TYPE
from .divergence import rows

ROWS = (
    *rows(
        "Tensor infos",
        (
            "A tensor name of 64 bytes",
            "allows refuses reads reads reads",
            "llama.cpp counts a NUL at the end",
            "i_tensor_name_64 b067_i_name_64_exact",
        ),
        (
            "A tensor name of more than 64 bytes",
            "forbids refuses reads reads reads",
            "stable-diffusion.cpp is compiled with 128",
            "i_tensor_name_65 i_tensor_name_127_sdcpp b066_i_name_74_nvfp4",
        ),
        (
            "A tensor name that is empty or has a NUL",
            "silent reads reads reads reads",
            "Two names that are equal up to the NUL are one name in C",
            "i_tensor_name_empty i_tensor_name_nul_inside i_tensor_name_nul_collision",
        ),
        (
            "A tensor name twice",
            "silent refuses refuses reads refuses",
            "",
            "made_tensor_name_duplicate",
        ),
        (
            "A tensor name that is not valid UTF-8",
            "forbids reads refuses reads reads",
            "",
            "i_tensor_name_invalid_utf8",
        ),
        (
            "A tensor of 0 dimensions",
            "silent reads reads reads reads",
            "One element; llama.cpp writes it as one dimension",
            "i_tensor_0d",
        ),
        (
            "A tensor of 5 dimensions",
            "silent refuses reads reads reads",
            "Later gguf-py refuses",
            "b070_i_5d_patch_embedding",
        ),
        (
            "A tensor of 9 dimensions",
            "forbids refuses reads refuses refuses",
            "Later gguf-py refuses",
            "n_tensor_n_dims_9 b072_n_n_dims_9",
        ),
        (
            "A row that is not a multiple of its type's block",
            "silent refuses refuses reads refuses",
            "",
            "n_tensor_row_not_block_multiple n_tensor_row_not_kquant_multiple b085_n_q6_k_row_896",
        ),
        (
            "A tensor type that was removed",
            "forbids refuses refuses reads reads",
            "The infos can be read, the size of the data is not known; forks use some of the numbers anew",
            "i_tensor_type_04_removed_q4_2 i_tensor_type_05_removed_q4_3 i_tensor_type_31_removed_q4_0_4_4 "
            "i_tensor_type_32_removed_q4_0_4_8 i_tensor_type_36_removed_iq4_nl_4_4 i_tensor_type_37_removed_iq4_nl_4_8 "
            "i_tensor_type_38_removed_iq4_nl_8_8 b078_i_type_36_i2_s",
        ),
        (
            "A tensor type that is not known",
            "silent refuses refuses reads reads",
            f"As for removed types; gguf_schema refuses 2^{MAX_TYPE.bit_length()} and more",
            "i_tensor_type_43_count i_tensor_type_144_ik b082_i_type_340_ik",
        ),
        (
            f"A tensor type of 2^{MAX_TYPE.bit_length()} or more",
            "silent refuses refuses reads refuses",
            "It would be negative in C",
            "n_tensor_type_minus_1",
        ),
        (
            "Tensor type Q2_0",
            "silent reads refuses reads reads",
            "Newer than the specification and gguf-py 0.19.0",
            "y_tensor_type_42_q2_0",
        ),
        (
            "Dimensions by which the size of the tensor, alone or padded, wraps around 2^64",
            "forbids refuses refuses reads refuses",
            "Older llama.cpp reads it where only the padded size wraps",
            "n_tensor_dims_2p32_x_2p32 n_tensor_dims_pad_wrap_0",
        ),
        (
            "An offset that is not a multiple of the alignment",
            "forbids refuses reads reads refuses",
            "",
            "n_tensor_offset_unaligned n_tensor_offset_unaligned_first n_alignment_inconsistent",
        ),
        (
            "Gaps between tensors, or tensors in another order than their infos",
            "allows refuses reads reads reads",
            "llama.cpp wants each where the one before it ends, padded",
            "i_tensor_offset_gap i_tensor_offset_reordered",
        ),
        (
            "Tensors that overlap",
            "silent refuses reads reads reads",
            "",
            "i_tensor_offset_overlap_same i_tensor_offset_overlap_partial",
        ),
        (
            "Offsets so large that they wrap around 2^64",
            "forbids refuses reads reads refuses",
            "gguf-py then gives metadata as weights",
            "n_tensor_offset_wraps_back b087_n_offset_wraps",
        ),
        (
            "An offset past the end of the file",
            "forbids refuses refuses reads refuses",
            "llama.cpp refuses it as a gap",
            "n_tensor_offset_past_eof",
        ),
    ),
    *rows(
        "Tensor data",
        (
            "The file ends before the place where the data of its tensors would start",
            "forbids refuses refuses reads refuses",
            "So it is with an alignment of 2^31, too",
            "n_data_file_ends_before_start n_alignment_2p31_with_tensor",
        ),
        (
            "Tensor data that is missing, wholly or in part",
            "forbids reads refuses reads refuses",
            "llama.cpp refuses when it reads data, too",
            "n_data_missing n_data_truncated_by_1 n_tensor_dims_int32_truncation n_tensor_dims_over_2gib "
            "b088_n_bleeding_llama",
        ),
        (
            "The last tensor is not padded",
            "allows reads reads reads reads",
            "llama.cpp refuses when it reads data, too",
            "y_data_last_not_padded",
        ),
        (
            "Bytes after the last tensor",
            "silent reads reads reads reads",
            "",
            "y_trailing_zeros i_trailing_garbage i_trailing_second_gguf",
        ),
        (
            "Padding that is not zero",
            "forbids reads reads reads reads",
            "",
            "i_padding_nonzero i_padding_between_tensors_nonzero",
        ),
    ),
)
