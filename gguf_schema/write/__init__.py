"""Writing files from plain Python values, numpy arrays, files, chunks, and what `open` read.

`write` writes, `plan` tells what `write` would write, and `rewrite` makes the plan of an open file written again, after
an edit of its head or as it is. A `Plan` is a list of `targets.Piece`s, each with its size and where its bytes come
from: memory stays bounded, and files on disk share blocks where they can. Other layouts are lists of pieces, too;
`head_of`, `head_piece`, `padding`, `laid_out`, `canonical_pieces` and `laid_out_anew` help to make them; `not_kept`,
`left_out` and `zeroed` tell what they do not keep.
"""

from typing import Any

from ..errors import shown
from ..schema import LATEST_VERSION, structs
from ..targets import Show, Target
from ..values import to_wire
from .arguments import demand_power_of_two, in_path, naming, pairs_of, with_alignment
from .plans import Change, Plan, canonical_pieces, demand_sound, head_of, head_piece, laid_out, padding
from .rewriting import laid_out_anew, left_out, not_kept, rewrite, zeroed
from .tensors import FileRange, NewTensor, info_and_data, named, tensor_content

__all__ = [
    "write",
    "plan",
    "rewrite",
    "NewTensor",
    "FileRange",
    "Plan",
    "Change",
    "tensor_content",
    "head_of",
    "head_piece",
    "padding",
    "laid_out",
    "canonical_pieces",
    "laid_out_anew",
    "not_kept",
    "left_out",
    "zeroed",
    "demand_sound",
    "demand_power_of_two",
]


def write(
    target: Target,
    metadata: Any,
    tensors: Any = (),
    *,
    order: str = "<",
    version: int = LATEST_VERSION,
    alignment: int | None = None,
    overwrite: bool = True,
    show: Show | None = None,
) -> None:
    """Write a GGUF file.

    Args:
        target: A path, which is replaced at once when all is written, or a binary file object.
        metadata: What `open` read (`model.metadata`), a list of (key, type, value), or a mapping from key to a value
            or to a pair (type, value), where type is a GGUFValueType or an ArrayType: `ArrayType(INT32)`; of arrays in
            an array one for each, `ArrayType(ARRAY, (ArrayType(INT32), ArrayType(INT8)))`. Types that are not given are
            inferred (see `values.infer`). BOOL takes any byte, as files have it; `check` warns of all but 0 and 1.
        tensors: What `open` read (`model.tensors`), a list of Tensors and NewTensors, or a mapping from name to a
            Tensor, a NewTensor (of data from anywhere), a numpy array, or a pair (type, array). An array of a plain
            dtype says its type itself. Quantised data comes as the structured dtype of its block, one element a block,
            or as uint8, the last axis being the bytes of a row; both with the type.
        order: Byte order of the file, "<" or ">". Arrays of another order are swapped, blocks field by field, those in
            the chunks of a NewTensor, too; uint8 and bytes-like objects are taken as they are.
        version: 1, 2 or 3.
        alignment: In bytes, a power of two. If the metadata holds no `general.alignment` and this is not the default,
            it is added. (Multiples of 8, which the specification allows, are written where the metadata says so.)
        overwrite: Whether a file that is there may be replaced.
        show: Called with the bytes that are written and the whole, often (see `progress`).

    Raises:
        BuildError: A value does not fit its type, an array is of another dtype than its tensor's type, data is not as
            many bytes as it should be, or `open` would refuse the file; the path says where, and the message which key.
        OSError: The file cannot be written; a file that was there is left whole.
    """
    new = plan(metadata, tensors, order=order, version=version, alignment=alignment)
    new.save(target, overwrite=overwrite, show=show)


def plan(
    metadata: Any,
    tensors: Any = (),
    *,
    order: str = "<",
    version: int = LATEST_VERSION,
    alignment: int | None = None,
) -> Plan:
    """What `write` writes, before it does; `print` shows it, its `save` writes it. The arguments are those of `write`.

    Raises:
        BuildError: A value does not fit its type, or `open` would refuse the file; the path says where.
        OSError: A file that data shall come from cannot be read.
    """
    layout = structs(order, version)
    pairs = with_alignment(list(pairs_of(metadata)), alignment)
    new = [in_path(info_and_data, f"tensor {shown(name, 100)}", name, value, order) for name, value in named(tensors)]
    with naming([pair.key for pair in pairs]):
        kv = [in_path(to_wire, f"metadata_kv[{index}]", pair) for index, pair in enumerate(pairs)]
        return Plan(canonical_pieces(layout, kv, [info for info, _ in new], [data for _, data in new]))
