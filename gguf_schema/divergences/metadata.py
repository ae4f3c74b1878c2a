"""Where readers differ about what stands before the tensor infos."""

from ..limits import MAX_NESTING
from .divergence import rows

ROWS = (
    *rows(
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
    *rows(
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
    *rows(
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
    *rows(
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
)
