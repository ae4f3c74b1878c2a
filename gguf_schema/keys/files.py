"""Keys of files that are no whole models: shards, adapters, importance matrices, control vectors."""

from ..enums import GGUFValueType as T
from .key import UINTS, Key, count, number, string, strings

SHARD = "for a shard"

FILES = (
    Key("split.no", T.UINT16, "Number of this shard; the first is 0", (), SHARD),
    Key("split.count", T.UINT16, "Number of shards", (), SHARD),
    Key("split.tensors.count", T.INT32, "Tensors of all shards together", (), SHARD),
    string("adapter.type", "The kind of the adapter: lora", "for an adapter"),
    number("adapter.lora.alpha", "What the adapter adds is multiplied by this and divided by its rank"),
    string("adapter.lora.task_name", "What the adapter is for"),
    string("adapter.lora.prompt_prefix", "Text that the adapter expects before the prompt"),
    Key("adapter.alora.invocation_tokens", UINTS, "Ids of the tokens after which the adapter is at work"),
    strings("imatrix.datasets", "Files of text that importances were measured on", "for an importance matrix"),
    count("imatrix.chunk_count", "Pieces of text that were read", "for an importance matrix"),
    count("imatrix.chunk_size", "Tokens of a piece", "for an importance matrix"),
    string("quantize.imatrix.file", "Importance matrix that the model was quantised with"),
    string("quantize.imatrix.dataset", "File of text that the importances were measured on"),
    Key("quantize.imatrix.entries_count", T.UINT32, "Tensors that the importance matrix tells of", (T.UINT64, T.INT32)),
    Key(
        "quantize.imatrix.chunks_count",
        T.UINT32,
        "Pieces of text that the importances were measured on",
        (T.UINT64, T.INT32),
    ),
    string("controlvector.model_hint", "Architecture that a control vector was made for"),
    Key("controlvector.layer_count", T.INT32, "Layers that a control vector steers"),
)
