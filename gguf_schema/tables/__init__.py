"""The tables of the written specification, made from the schema: for our documents, and for other people's.

`structures`, `knowledge` and `example` make tables, `drawings` draws blocks, `forms` writes Markdown, JSON or CSV.
"""

from collections.abc import Callable
from functools import partial

from ..enums import LlamaFileType, TokenType
from ..errors import GGUFError, shown
from ..schema import LATEST_VERSION, VERSIONS
from .example import example, example_file, values_file
from .forms import FORMS, Table
from .knowledge import divergences, enum_table, keys, limits, profiles, rules
from .structures import blocks, removed, smallest_sizes, structure, tensor_type_table, value_types, versions

TABLES: dict[str, tuple[str, Callable[[], Table]]] = {
    "gguf": ("The parts of a file", partial(structure, "gguf")),
    "metadata_kv": ("A metadata pair", partial(structure, "metadata_kv")),
    "string": ("A string", partial(structure, "string")),
    "array": ("An array", partial(structure, "array")),
    "tensor_info": ("What is said of a tensor", partial(structure, "tensor_info")),
    "versions": ("What differs between the versions", versions),
    "smallest-sizes": ("The fewest bytes of each item of a list", smallest_sizes),
    "value-types": ("The types of metadata values", value_types),
    "tensor-types": ("The types of tensors", tensor_type_table),
    "removed-tensor-types": ("Numbers of tensor types that are not used any more", removed),
    "blocks": ("The blocks of tensor data, field by field", blocks),
    "file-types": ("What most tensors of a file are: general.file_type", partial(enum_table, LlamaFileType)),
    "token-types": ("What a token is: tokenizer.ggml.token_type", partial(enum_table, TokenType)),
    "keys": ("All standard metadata keys", keys),
    "keys-general": ("Standard keys that all files may have", partial(keys, "general")),
    "keys-model": ("Standard keys of models", partial(keys, "model")),
    "keys-attention": ("Standard keys of attention", partial(keys, "attention")),
    "keys-rope": ("Standard keys of rotary position embeddings", partial(keys, "rope")),
    "keys-experts": ("Standard keys of mixtures of experts", partial(keys, "experts")),
    "keys-recurrent": ("Standard keys of layers with a state", partial(keys, "recurrent")),
    "keys-single": ("Standard keys of few architectures", partial(keys, "single")),
    "keys-tokenizer": ("Standard keys of tokenizers", partial(keys, "tokenizer")),
    "keys-files": ("Standard keys of files that are no whole models", partial(keys, "files")),
    "keys-clip": ("Standard keys of encoders of images and sounds", partial(keys, "clip")),
    "limits": ("What readers take at most", limits),
    "divergences": ("Where the specification and readers differ", divergences),
    "rules": ("What the validator looks for", rules),
    "profiles": ("For whom the validator judges", profiles),
    "example": ("A whole file, byte by byte", lambda: example(example_file("<", LATEST_VERSION))),
    "example-big-endian": ("The same file in big-endian order", lambda: example(example_file(">", LATEST_VERSION))),
    "example-version-1": ("The same file in version 1", lambda: example(example_file("<", VERSIONS[0]))),
    "example-values": ("A file with other values, without tensors", lambda: example(values_file())),
}
"""Name → what it is, and the function that makes it."""


def table(name: str) -> Table:
    """A table by its name.

    Raises:
        GGUFError: There is none of that name.
    """
    if not isinstance(name, str) or name not in TABLES:
        raise GGUFError(f"no table {shown(name)}; there are {', '.join(TABLES)}")
    return TABLES[name][1]()


def contents() -> Table:
    """The names of all tables, and what they are."""
    return Table(("name", "table"), [(name, title) for name, (title, _) in TABLES.items()], code=("name",))


__all__ = ["FORMS", "TABLES", "Table", "contents", "table"]
