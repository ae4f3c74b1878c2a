"""Reports about magic, version, byte order, counts, and files that are cut short."""

from ...enums import GGMLQuantizationType as Q
from ...enums import GGUFValueType as T
from ..case import LLAMA_CPP, READERS, Row
from ..draft import Made, array, damage, drafted, number, replace, tensor, text, toy

NOTHING = Made(b"", None)
ONE_TENSOR = toy(tensors=(tensor("a.weight"),))
TOKENS = array("tokenizer.ggml.tokens", T.STRING, "<unk>", "<s>", "</s>", "\u2581the")

ROWS = (
    Row(
        "reports/llama.cpp-9498-zero-bytes",
        "llama.cpp#9498, #8264, #5306",
        "A shard of 0 bytes: an empty file, which readers call bad magic",
        toy(),
        lambda made: NOTHING,
        ("not-gguf",),
        "magic",
        READERS,
    ),
    Row(
        "reports/llama.cpp-14381-magic-escape",
        "llama.cpp PR#14381, ggml#614",
        "A magic that a terminal obeys, printed as it is in a message",
        toy(),
        replace("magic", b"\x1b[2J"),
        ("not-gguf",),
        "magic",
        READERS,
    ),
    Row(
        "reports/llama.cpp-13956-version-0",
        "llama.cpp PR#13956, PR#13943",
        "Version 0, whose low 16 bits are zero, as those of a version in the other byte order are",
        toy(),
        damage("version", 0),
        ("version-unknown",),
        "version",
        READERS,
    ),
    Row(
        "reports/gpt4all-1586-version-3",
        "gpt4all#1586",
        "Version 3 in little-endian order, the same as version 2 but for the number; refused by readers of version 2",
        ONE_TENSOR,
    ),
    Row(
        "reports/aprender-310-version-2",
        "aprender#310, oobabooga PR#6082",
        "A model of version 2, of which many are about",
        drafted(*toy(TOKENS)["metadata_kv"], tensors=(tensor("a.weight"),), version=2),
    ),
    Row(
        "reports/ollama-17033-version-1-empty-string",
        "ollama#17033",
        "Version 1 with a string of length 0, of which a reader took a NUL off that is not there",
        toy(text("general.name", ""), version=1),
        rules=("version-1",),
        path="version",
        refused_by=READERS,
    ),
    Row(
        "reports/llama.cpp-3298-big-endian-vocabulary",
        "llama.cpp#3298, PR#12081",
        "A big-endian vocabulary, on a little-endian host",
        toy(text("tokenizer.ggml.model", "llama"), TOKENS, order=">"),
        rules=("big-endian",),
        path="version",
        refused_by=LLAMA_CPP,
    ),
    Row(
        "reports/llama.cpp-15711-tensor-count",
        "llama.cpp#15711",
        "A tensor count that overflows 64 bits when it is multiplied by the size of a struct",
        toy(),
        damage("tensor_count", (2**64 - 1) // 88),
        ("count-range",),
        "tensor_count",
        READERS,
    ),
    Row(
        "reports/llama.cpp-19003-fuzzed-counts",
        "llama.cpp#19003",
        "Counts that a fuzzer made: memory for them was asked for unchecked",
        toy(),
        lambda made: damage("metadata_kv_count", 2**56)(damage("tensor_count", 0x246554747)(made)),
        ("count-range",),
        "metadata_kv_count",
        READERS,
    ),
    Row(
        "reports/cve-2026-7482-data-cut",
        "CVE-2026-7482 (ollama), PR#14406",
        "A tensor that declares 512 bytes of data, of which the file has 64: a reader went on behind them",
        toy(tensors=(tensor("a.weight", Q.F16, 256),)),
        lambda made: Made(made.data[: 64 - 512], None),
        ("data-missing",),
        "tensor_data",
        ("llama.cpp-data", "gguf-py", "gguf-py-head"),
    ),
    Row(
        "reports/ollama-7802-smallest-model",
        "ollama#7802",
        "The smallest file that makes sense: one pair; a server divided by zero",
        toy(),
    ),
    Row(
        "reports/modelaudit-1775-zip-appended",
        "modelaudit PR#1775",
        "A zip archive after the end: other programs see that",
        ONE_TENSOR,
        lambda made: Made(made.data + b"PK\5\6" + bytes(18), made.draft),
        ("tail-nonzero",),
        "tail",
    ),
    Row(
        "reports/oxillama-1-plain",
        "oxillama#1",
        "A plain file, for readers whose tests write the magic as they read it",
        toy(number("llama.block_count", 1)),
    ),
)
