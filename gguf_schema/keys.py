"""The standard metadata keys, as data. `{arch}` in a template stands for the value of `general.architecture`."""

from typing import NamedTuple


class Key(NamedTuple):
    """A standard key.

    Attributes:
        template: The key, perhaps with `{arch}`.
        docs: What the value means.
    """

    template: str
    docs: str

    def of(self, architecture: str) -> str:
        """The key for an architecture."""
        return self.template.replace("{arch}", architecture)

    @property
    def suffix(self) -> str:
        """The key without its first segment."""
        return self.template.partition(".")[2]


ARCHITECTURE = Key("general.architecture", "The model's architecture; the first segment of its own keys")
ALIGNMENT = Key("general.alignment", "Tensors start at multiples of this; 32 where it is absent")
FILE_TYPE = Key("general.file_type", "What most tensors of the file are: a LlamaFileType")
NAME = Key("general.name", "The model's name for people")
TOKENS = Key("tokenizer.ggml.tokens", "The vocabulary: one string for each token id")
MERGES = Key("tokenizer.ggml.merges", "Byte-pair merges: two tokens and a space between, best first")
TOKEN_TYPES = Key("tokenizer.ggml.token_type", "A TokenType for each token")
TOKENIZER = Key("tokenizer.ggml.model", "The kind of the tokenizer: llama, gpt2, bert, …")

CONTEXT_LENGTH = Key("{arch}.context_length", "Tokens that the model was trained to look back on")
EMBEDDING_LENGTH = Key("{arch}.embedding_length", "Width of a token's vector")
BLOCK_COUNT = Key("{arch}.block_count", "Number of layers")
FEED_FORWARD_LENGTH = Key("{arch}.feed_forward_length", "Width of a feed-forward layer")
HEAD_COUNT = Key("{arch}.attention.head_count", "Query heads of a layer")
HEAD_COUNT_KV = Key("{arch}.attention.head_count_kv", "Key and value heads of a layer")
KEY_LENGTH = Key("{arch}.attention.key_length", "Width of a key head")
VALUE_LENGTH = Key("{arch}.attention.value_length", "Width of a value head")
RMS_EPSILON = Key("{arch}.attention.layer_norm_rms_epsilon", "Added to the mean square before the root")
ROPE_DIMENSION_COUNT = Key("{arch}.rope.dimension_count", "Dimensions of a head that are rotated")
ROPE_FREQ_BASE = Key("{arch}.rope.freq_base", "Base of the rotation's frequencies")
VOCAB_SIZE = Key("{arch}.vocab_size", "Number of tokens, where the file holds no vocabulary")
