"""What is in a file, on one page: the answer of `gguf-schema info`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import keys
from .constructs import Strings
from .enums import LlamaFileType, TokenType
from .errors import GGUFError
from .file import Metadata, Model
from .hyperparameters import hyperparameters
from .quant_mix import quant_mix, total
from .schema import ORDER_NAMES
from .terminal import printable
from .values import to_json

SHOWN = {
    "context length": keys.CONTEXT_LENGTH,
    "embedding length": keys.EMBEDDING_LENGTH,
    "blocks": keys.BLOCK_COUNT,
    "feed-forward length": keys.FEED_FORWARD_LENGTH,
    "heads": keys.HEAD_COUNT,
    "KV heads": keys.HEAD_COUNT_KV,
    "key length": keys.KEY_LENGTH,
    "value length": keys.VALUE_LENGTH,
    "RMS epsilon": keys.RMS_EPSILON,
    "rope dimensions": keys.ROPE_DIMENSION_COUNT,
    "rope frequency base": keys.ROPE_FREQ_BASE,
    "vocabulary size": keys.VOCAB_SIZE,
}
"""What `info` calls the hyperparameters that it shows where a file holds them."""


def summarize(model: Model) -> dict[str, Any]:
    """The summary as plain data: only str, int, float, None, dicts and lists of them; stable keys."""
    metadata = model.metadata
    architecture = _text(metadata, keys.ARCHITECTURE)
    mix = quant_mix(model.tensors.infos)
    all_of_it = total(mix)
    return {
        "file": model.name,
        "shards": len(model.shards),
        "shard": _place(metadata),
        "size": sum(shard.size for shard in model.shards),
        "version": model.version,
        "order": ORDER_NAMES[model.order],
        "metadata_kv_count": len(metadata.pairs),
        "tensor_count": len(model.tensors.infos),
        "alignment": model.alignment,
        "data_offset": model.data_offset,
        "architecture": architecture,
        "name": _text(metadata, keys.NAME),
        "file_type": _file_type(metadata.get(keys.FILE_TYPE.template)),
        "hyperparameters": _hyperparameters(metadata, architecture or ""),
        "kv_cache_bytes_per_token": _kv_cache(metadata),
        "vocabulary": _vocabulary(metadata),
        "mix": [{**share._asdict(), "bits_per_weight": share.bits_per_weight} for share in mix],
        "parameters": all_of_it.parameters,
        "bytes": all_of_it.bytes,
        "bits_per_weight": all_of_it.bits_per_weight,
    }


def summary_json(model: Model) -> str:
    """The summary as one JSON object; NaN and the infinities are strings."""
    import json  # where the text is wanted, nobody should wait for it

    return json.dumps(summarize(model), indent=2, allow_nan=False)


def _place(metadata: Metadata) -> dict[str, int] | None:
    """Which shard, from 1, and of how many, a file is that is opened alone."""
    held = [
        metadata[key.template]
        for key in (keys.SPLIT_NO, keys.SPLIT_COUNT)
        if key.template in metadata and metadata.type(key.template) == key.type
    ]
    return {"number": held[0] + 1, "count": held[1]} if len(held) == 2 and held[1] > 1 else None


def _text(metadata: Metadata, key: keys.Key) -> str | None:
    value = metadata.get(key.template)
    return value if isinstance(value, str) else None


def _file_type(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    known = {int(member): member.name for member in LlamaFileType}
    return known.get(value, str(value))


def _hyperparameters(metadata: Metadata, architecture: str) -> dict[str, Any]:
    """Those of SHOWN that the file holds, by the last part of their key; arrays as lists."""
    held = {key: metadata.get(key.of(architecture)) for key in SHOWN.values()}
    return {key.suffix: to_json(value) for key, value in held.items() if isinstance(value, int | float | np.ndarray)}


def _kv_cache(metadata: Metadata) -> int | None:
    """Bytes of the KV cache for a token at F16; None where the file does not tell."""
    try:
        return hyperparameters(metadata).kv_cache_bytes_per_token()
    except GGUFError:
        return None


def _vocabulary(metadata: Metadata) -> dict[str, Any] | None:
    """The kind of the tokenizer, counts of tokens, merges, and tokens of each type; None without tokens."""
    counts = {
        name: len(metadata[key.template])
        for name, key in (("tokens", keys.TOKENS), ("merges", keys.MERGES))
        if isinstance(metadata.get(key.template), Strings)
    }
    if "tokens" not in counts:
        return None
    types = metadata.get(keys.TOKEN_TYPES.template)
    numbers: dict[int, int] = {}
    if isinstance(types, np.ndarray) and types.dtype.kind in "iu":
        numbers = dict(zip(*(part.tolist() for part in np.unique(types, return_counts=True)), strict=True))
    names = {int(member): member.name for member in TokenType}
    return {
        "model": _text(metadata, keys.TOKENIZER),
        **counts,
        "types": {names.get(number, str(number)): count for number, count in numbers.items()},
    }


def summary_text(model: Model) -> str:
    """The summary as lines for a person; text from the file is escaped where a terminal would obey it."""
    return "\n".join(_lines(summarize(model)))


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    yield (
        f"GGUF v{summary['version']}, {summary['metadata_kv_count']} KV pairs, {summary['tensor_count']} tensors, "
        f"alignment {summary['alignment']}, data at byte {summary['data_offset']}"
    )
    facts = {"shards": None if summary["shards"] == 1 else str(summary["shards"])}
    facts["shard"] = summary["shard"] and "{number} of {count}".format_map(summary["shard"])
    facts |= {"byte order": None if summary["order"] == "little" else summary["order"]}
    facts |= {name.replace("_", " "): summary[name] for name in ("architecture", "name", "file_type")}
    facts |= {label: summary["hyperparameters"].get(key.suffix) for label, key in SHOWN.items()}
    if summary["kv_cache_bytes_per_token"] is not None:
        facts["KV cache"] = f"{summary['kv_cache_bytes_per_token']} bytes a token at F16"
    facts["vocabulary"] = _vocabulary_text(summary["vocabulary"])
    for label, fact in facts.items():
        if fact is not None:
            yield f"{label}: {printable(_number(fact) if isinstance(fact, float) else str(fact))}"
    if summary["mix"]:
        yield f"{'type':12} {'tensors':>8} {'parameters':>15} {'bytes':>15} {'share':>8}"
    for share in summary["mix"]:
        part = share["bytes"] / summary["bytes"] if summary["bytes"] else 0.0
        yield (
            f"{share['type']:12} {share['tensors']:>8,} {share['parameters']:>15,} {share['bytes']:>15,} "
            f"{part:>6.1%}".replace("%", " %")
        )
    yield (
        f"{summary['parameters']} params, {summary['bytes']} bytes, {summary['bits_per_weight']:.2f} bpw, "
        f"file {summary['size']}"
    )


def _number(value: float) -> str:
    """A number that fits FLOAT32 as people write it: the shortest decimal that gives the same FLOAT32."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = np.float32(value)
    return str(narrow) if float(narrow) == value else str(value)


def _vocabulary_text(vocabulary: dict[str, Any] | None) -> str | None:
    if vocabulary is None:
        return None
    parts = [f"{vocabulary[name]} {name}" for name in ("tokens", "merges") if name in vocabulary]
    types = ", ".join(f"{count} {name}" for name, count in vocabulary["types"].items())
    kind = f"{vocabulary['model']}, " if vocabulary["model"] else ""
    return f"{kind}{', '.join(parts)}{f' ({types})' if types else ''}"
