"""`tokenizer.*`: the vocabulary, special tokens, chat templates."""

from ..enums import ArrayType
from ..enums import GGUFValueType as T
from .key import FLOATS, INTS, LLM, Key, count, flag, signed, string, strings

VOCABULARY = (
    string("tokenizer.ggml.model", "The kind of the tokenizer: llama, gpt2, bert, …", LLM),
    string("tokenizer.ggml.pre", "How text is divided before it is tokenized: llama-bpe, qwen2, …"),
    strings("tokenizer.ggml.tokens", "The vocabulary: one string for each token id", LLM),
    signed("tokenizer.ggml.token_type", "A TokenType for each token"),
    Key("tokenizer.ggml.scores", FLOATS, "A score for each token; higher ones are merged first"),
    strings("tokenizer.ggml.merges", "Byte-pair merges: two tokens and a space between, best first"),
    strings("tokenizer.ggml.added_tokens", "Tokens added after training; documented, but written and read by no code"),
    count("tokenizer.ggml.token_type_count", "Kinds of segments that a BERT model tells apart"),
    signed("tokenizer.ggml.suppress_tokens", "Ids of tokens that are never to be chosen"),
)

TEXT = (
    flag("tokenizer.ggml.add_bos_token", "Puts the token of a beginning before the text"),
    flag("tokenizer.ggml.add_eos_token", "Puts the token of an end after the text"),
    flag("tokenizer.ggml.add_sep_token", "Puts a separator between two texts"),
    flag("tokenizer.ggml.add_space_prefix", "Puts a space before the text"),
    flag("tokenizer.ggml.remove_extra_whitespaces", "Takes spaces at the ends away, and all but one between words"),
    flag("tokenizer.ggml.normalizer.lowercase", "Makes letters small"),
    flag("tokenizer.ggml.normalizer.strip_accents", "Takes accents away"),
    Key(
        "tokenizer.ggml.precompiled_charsmap",
        ArrayType(T.UINT8),
        "SentencePiece's table that replaces characters, as bytes",
        (ArrayType(T.INT8),),
    ),
)

SPECIAL_TOKENS = (
    count("tokenizer.ggml.bos_token_id", "The token of a beginning"),
    count("tokenizer.ggml.eos_token_id", "The token of an end"),
    count("tokenizer.ggml.eot_token_id", "The token of the end of a turn"),
    count("tokenizer.ggml.eom_token_id", "The token of the end of a message that others of the same turn follow"),
    count("tokenizer.ggml.unknown_token_id", "The token of what has none"),
    count("tokenizer.ggml.seperator_token_id", "The token between two texts; files and code spell the key this way"),
    count("tokenizer.ggml.separator_token_id", "`seperator_token_id` as documented, but written and read by no code"),
    count("tokenizer.ggml.padding_token_id", "The token that fills up"),
    count("tokenizer.ggml.cls_token_id", "The token that a classifier reads; newer files have `bos_token_id` instead"),
    count("tokenizer.ggml.mask_token_id", "The token of what is to be guessed"),
    count("tokenizer.ggml.fim_pre_token_id", "The token before what precedes a gap in a text"),
    count("tokenizer.ggml.fim_suf_token_id", "The token before what follows a gap"),
    count("tokenizer.ggml.fim_mid_token_id", "The token before what fills a gap"),
    count("tokenizer.ggml.fim_pad_token_id", "The token that fills up where gaps are to be filled"),
    count("tokenizer.ggml.fim_rep_token_id", "The token before a repository's name"),
    count("tokenizer.ggml.fim_sep_token_id", "The token before a file's name"),
    count("tokenizer.ggml.prefix_token_id", "Old name of `fim_pre_token_id`"),
    count("tokenizer.ggml.suffix_token_id", "Old name of `fim_suf_token_id`"),
    count("tokenizer.ggml.middle_token_id", "Old name of `fim_mid_token_id`"),
)

OTHERS = (
    string("tokenizer.huggingface.json", "Hugging Face's tokenizer.json as a whole"),
    string("tokenizer.rwkv.world", "RWKV's vocabulary file as a whole"),
    string("tokenizer.chat_template", "Jinja template that makes a prompt of messages"),
    string("tokenizer.chat_template.{name}", "Jinja template of prompts for a purpose: tool_use, rag, …"),
    strings("tokenizer.chat_templates", "The names of the templates for a purpose"),
)

TOKENIZER = VOCABULARY + TEXT + SPECIAL_TOKENS + OTHERS
