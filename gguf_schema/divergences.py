"""Where the specification and those who read the format differ, as data.

What readers do was measured: llama.cpp's `gguf_init_from_file` of 2026-10 on a little-endian machine, metadata only;
gguf-py 0.19.0; huggingface.js's @huggingface/gguf 0.4.6. The specification is docs/gguf.md of ggml, 2026-08. The cases
are labelled files, or made by the tests, which hold every row against them and against the readers that are installed.
The llama.cpp that can be installed is older, ggml-python 0.0.45 of 2026-06: tools/differences.py has where it differs.
"""

from typing import NamedTuple

from .limits import MAX_NESTING, MAX_TYPE


class Divergence(NamedTuple):
    """A feature or a fault of a file that not all treat alike.

    Attributes:
        part: The part of the file that it is in.
        subject: What is in the file.
        specification: allows, forbids, or silent.
        llama_cpp: reads or refuses.
        gguf_py: reads, refuses, or hangs.
        huggingface_js: reads or refuses.
        gguf_schema: What `open` does: reads or refuses.
        remark: What else there is to know.
        cases: Labelled files that show it; those called made_… are made by the tests.
    """

    part: str
    subject: str
    specification: str
    llama_cpp: str
    gguf_py: str
    huggingface_js: str
    gguf_schema: str
    remark: str
    cases: tuple[str, ...]


def _rows(part: str, *rows: tuple[str, str, str, str]) -> list[Divergence]:
    """The rows of a part: subject, verdicts (five words in the order of the columns), remark, cases (words, too)."""
    made = []
    for subject, verdicts, remark, cases in rows:
        spec, llama_cpp, gguf_py, huggingface_js, ours = verdicts.split()
        row = Divergence(part, subject, spec, llama_cpp, gguf_py, huggingface_js, ours, remark, tuple(cases.split()))
        made.append(row)
    return made


DIVERGENCES = (
    *_rows(
        "Header",
        (
            "Version 1",
            "forbids refuses refuses reads reads",
            "Counts, lengths and dimensions of 32 bits; few such files are left",
            "i_header_version_1 b006_i_v1_empty_string",
        ),
        (
            "Big-endian, version 3",
            "allows refuses reads reads reads",
            "llama.cpp reads only the byte order of its machine",
            "y_endian_big b011_y_be_vocab",
        ),
        (
            "Big-endian, version 2",
            "silent refuses reads reads reads",
            "Version 3 was made to allow it; its layout is that of version 2",
            "y_endian_big_v2",
        ),
        (
            "A tensor count that is one too low",
            "forbids reads reads reads reads",
            "Only padding that is not zero gives it away",
            "i_header_n_tensors_one_less",
        ),
        (
            "A tensor count that is one too high",
            "forbids refuses reads reads reads",
            "Padding is then read as an info without a name, if there is enough of it",
            "i_header_n_tensors_one_more",
        ),
        (
            "A pair count that is one too high",
            "forbids refuses refuses reads refuses",
            "huggingface.js reads zeros after the end",
            "n_header_n_kv_one_more",
        ),
        (
            "A file that was copied as text, with CR LF for each LF",
            "forbids refuses refuses reads refuses",
            "All after the first is shifted, lengths and counts too",
            "n_text_mode_crlf",
        ),
    ),
    *_rows(
        "Keys",
        (
            "An empty key",
            "forbids refuses reads reads refuses",
            "Older llama.cpp aborts the process",
            "n_kv_key_empty b016_n_empty_key_37_bytes",
        ),
        (
            "A key twice",
            "silent refuses refuses reads refuses",
            "huggingface.js takes the last",
            "n_kv_key_duplicate n_kv_key_duplicate_other_type b015_n_dup_chat_template",
        ),
        (
            "A key with capitals, spaces, control or non-ASCII characters, or empty segments",
            "forbids reads reads reads reads",
            "Nobody enforces the rules for keys",
            "i_kv_key_uppercase i_kv_key_leading_dot i_kv_key_double_dot i_kv_key_trailing_dot i_kv_key_control_char "
            "i_kv_key_newline i_kv_key_non_ascii",
        ),
        (
            "A key with a hyphen",
            "forbids reads reads reads reads",
            "Needed: the architectures command-r and gpt-oss have one",
            "i_kv_key_hyphen",
        ),
        (
            "A key that is not valid UTF-8",
            "forbids reads refuses reads reads",
            "huggingface.js replaces the bytes, gguf_schema keeps them",
            "i_kv_key_invalid_utf8",
        ),
        (
            "A key named GGUF.version, GGUF.tensor_count or GGUF.kv_count",
            "forbids reads refuses reads reads",
            "gguf-py keeps the header's fields under these names",
            "made_key_version made_key_tensor_count made_key_kv_count",
        ),
        (
            "A NUL in a key",
            "silent reads reads reads reads",
            "llama.cpp looks keys up as C strings, so it finds another key than the others",
            "i_kv_key_nul_inside i_kv_key_trailing_nul i_kv_key_nul_alignment",
        ),
        (
            "No general.architecture, or one that is no string of [a-z0-9]",
            "forbids reads reads reads reads",
            "Those who then load the model need it",
            "i_kv_no_architecture i_kv_architecture_u32 i_kv_architecture_uppercase",
        ),
        (
            "A standard key with a value of another type",
            "forbids reads reads reads reads",
            "llama.cpp refuses when it loads the model",
            "i_kv_block_count_str b027_i_expert_used_count_i32 b043_i_scores_i32",
        ),
        (
            "Quantised tensors without general.quantization_version",
            "forbids reads reads reads reads",
            "",
            "b109_i_quantised_no_version",
        ),
    ),
    *_rows(
        "Values",
        (
            "A BOOL byte other than 0 and 1",
            "forbids reads reads reads reads",
            "All take it for true; gguf_schema keeps the byte",
            "i_kv_bool_2 i_kv_bool_128 i_kv_bool_255",
        ),
        (
            "A string that is not valid UTF-8",
            "forbids reads reads reads reads",
            "gguf-py raises when the value is asked for",
            "i_kv_str_utf8_latin1 i_kv_str_utf8_lone_continuation i_kv_str_utf8_overlong i_kv_str_utf8_above_10ffff "
            "i_kv_str_utf8_cut_sequence i_kv_str_cesu8 i_array_str_invalid_utf8",
        ),
        (
            "Arrays of arrays",
            "allows refuses reads reads reads",
            "gguf-py flattens them",
            "y_array_empty_of_array y_array_nested_mixed y_array_nested_3",
        ),
        (
            "Arrays nested 64 levels deep",
            "allows refuses reads refuses refuses",
            f"huggingface.js reads 4 levels, gguf_schema {MAX_NESTING}",
            "i_array_depth_64 i_array_depth_900",
        ),
        (
            "Arrays nested thousands of levels deep",
            "allows refuses refuses refuses refuses",
            "gguf-py ends where Python's stack does",
            "i_array_depth_5000 b051_i_deep_nesting",
        ),
        (
            "An empty array of elements of an unknown type",
            "forbids refuses reads refuses refuses",
            "",
            "i_array_elem_type_13_empty",
        ),
        (
            "An array of numbers that claims up to 2^64 - 1 elements",
            "forbids refuses hangs refuses refuses",
            "Later gguf-py refuses more than 2^30",
            "n_array_u8_count_max n_array_u64_count_max n_array_bool_count_max n_array_u8_count_2p63",
        ),
        (
            "An array that claims a little more than the file holds",
            "forbids refuses reads reads refuses",
            "gguf-py gives the elements that are there; huggingface.js reads zeros after the end",
            "n_array_u32_count_past_eof n_array_u32_count_one_more",
        ),
        (
            "A string that claims a little more than the file holds",
            "forbids refuses reads reads refuses",
            "gguf-py gives what is there; huggingface.js reads zeros after the end",
            "n_kv_str_len_past_eof n_array_str_item_past_eof",
        ),
        (
            "A string that claims a gigabyte more than the file holds",
            "forbids refuses reads refuses refuses",
            "gguf-py gives what is there",
            "n_kv_str_len_1gib n_kv_str_len_2p63 n_kv_str_len_wraps_cursor",
        ),
        (
            "The last value is not there",
            "forbids refuses reads reads refuses",
            "gguf-py raises when the value is asked for",
            "n_kv_value_missing",
        ),
        (
            "The file ends within its metadata",
            "forbids refuses refuses reads refuses",
            "huggingface.js reads zeros after the end",
            "n_kv_u32_truncated n_kv_key_truncated n_kv_type_truncated n_kv_i16_truncated n_kv_i32_truncated "
            "n_kv_u64_truncated n_kv_i64_truncated n_kv_f32_truncated n_array_header_truncated "
            "n_header_version_truncated n_tensor_info_cut_at_n_dims n_tensor_info_cut_at_dims "
            "n_tensor_info_cut_at_type n_tensor_info_cut_at_offset",
        ),
        (
            "A key or a tensor name that claims a little more than the file holds",
            "forbids refuses refuses reads refuses",
            "huggingface.js reads zeros after the end",
            "n_kv_key_len_past_eof n_tensor_name_len_past_eof n_bitflip_header_byte_24",
        ),
    ),
    *_rows(
        "Alignment",
        (
            "Alignment 1, 2 or 4",
            "forbids reads reads reads reads",
            "The specification asks for a multiple of 8, llama.cpp for a power of two",
            "i_alignment_1 i_alignment_2 i_alignment_4",
        ),
        (
            "Alignment 24 or 48",
            "allows refuses refuses reads reads",
            "huggingface.js rounds as for a power of two, which gives a wrong start of the data",
            "i_alignment_24 i_alignment_48 b063_i_alignment_24",
        ),
        (
            "An alignment that is neither a power of two nor a multiple of 8",
            "forbids refuses refuses reads refuses",
            "",
            "n_alignment_3 n_alignment_13 n_alignment_4294967295",
        ),
        (
            "general.alignment with another type than UINT32",
            "forbids refuses refuses reads refuses",
            "",
            "n_alignment_type_i32 b061_n_alignment_i32 n_alignment_type_u8 b030_n_alignment_u64 n_alignment_type_bool "
            "n_alignment_type_str n_alignment_type_array n_alignment_type_f32",
        ),
    ),
    *_rows(
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
    *_rows(
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
