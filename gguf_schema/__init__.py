"""The GGUF model-file format, declared once as a tree of construct Structs; everything else is derived from it.

Start here:

* `open` a file, or by the name of any shard a model: `model.metadata`, `model.tensors`; nothing but metadata is read
  until you ask for data.
* `write` one from Python values, numpy arrays, files and chunks, or `rewrite` an open one; both have a `Plan`.
* `GGUF.parse` and `GGUF.build` take whole files to the wire form and back, byte by byte; `structs(order, version)` has
  the construct of every part.

The map of the house, from the ground up; a module imports only from lower floors:

    errors enums limits signatures terminal version   pure data
    walk/ sources progress divergences reader_limits   construct's class zoo; bytes in; other readers
    constructs/ targets/                            our construct subclasses, which know no GGUF; bytes out
    blocks keys/ journal/                           tensor types, one Struct a block; standard keys; changes in place
    layout                                          alignment, sizes, offsets
    schema                                          THE FORMAT
    values policy description canonical             plain values and the wire form; what is refused; the format as data
    file                                            open, and the views of an open file
    write/ tensor_data hyperparameters quant_mix tensor_names dump/ annotate export/ generate/   one purpose each
    summary demo page/ validate/ mutate/ strategies diff/ hashing/ extract shards/ convert   compositions of those
    tables/ explain/ suite/ fuzz/ edit/             compositions of these
    cli/                                            the command
"""

from .enums import ArrayType, GGMLQuantizationType, GGUFValueType, LlamaFileType, TokenType
from .errors import (
    BuildError,
    CheckError,
    FileKindError,
    GGUFError,
    NestingError,
    ParseError,
    ShardError,
    TruncatedError,
)
from .file import Metadata, Model, Tensor, Tensors
from .hyperparameters import Hyperparameters, hyperparameters
from .quant_mix import Share, quant_mix
from .schema import GGUF, GGUFStructs, structs
from .shards import open
from .tensor_names import gguf_tensor_name
from .values import MetadataKV
from .version import __version__
from .write import FileRange, NewTensor, Plan, plan, rewrite, write

__all__ = [
    "open",
    "write",
    "plan",
    "rewrite",
    "Plan",
    "GGUF",
    "structs",
    "GGUFStructs",
    "Model",
    "Metadata",
    "MetadataKV",
    "ArrayType",
    "Tensors",
    "Tensor",
    "NewTensor",
    "FileRange",
    "GGUFValueType",
    "GGMLQuantizationType",
    "LlamaFileType",
    "TokenType",
    "Hyperparameters",
    "hyperparameters",
    "Share",
    "quant_mix",
    "gguf_tensor_name",
    "GGUFError",
    "ParseError",
    "FileKindError",
    "TruncatedError",
    "NestingError",
    "CheckError",
    "ShardError",
    "BuildError",
    "__version__",
]
