"""One tensor out of a file: as numpy's .npy, or as the bytes that it is."""

import io
from collections.abc import Callable, Iterator

from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from .errors import GGUFError, shown
from .file import Model, Tensor
from .tensor_data import pieces
from .terminal import perhaps

Show = Callable[[int, int], None]


def npy(model: Model, name: str, show: Show = lambda done, whole: None) -> Iterator[bytes]:
    """A tensor as a .npy file, in pieces, for `targets.save`; `numpy.load` gives what `Tensor.data` is.

    Shape and dtype are those of `Tensor.data`: plain types in the file's byte order, BF16 as uint16 (numpy has no such
    float: the number is the upper half of a float32), quantised types one structured element a block.

    Args:
        model: An open model.
        name: The tensor's name.
        show: Called with the bytes of data given so far, and all of them.

    Raises:
        GGUFError: There is no such tensor; its size is not known, its data is not there, or numpy has no such shape.
    """
    tensor = _named(model, name)
    dtype, shape = tensor.form()
    header = io.BytesIO()
    fields = {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    write_array_header_1_0(header, fields)
    yield header.getvalue()
    yield from _data(tensor, show)


def raw(model: Model, name: str, show: Show = lambda done, whole: None) -> Iterator[bytes]:
    """The data of a tensor as it stands in the file, in pieces, for `targets.save`.

    Args:
        model: An open model.
        name: The tensor's name.
        show: Called with the bytes of data given so far, and all of them.

    Raises:
        GGUFError: There is no such tensor; its size is not known, or its data is not there.
    """
    tensor = _named(model, name)
    if tensor.n_bytes is None:
        raise GGUFError(f"the size of type {tensor.type} is not known", f"tensor {name!r}")
    yield from _data(tensor, show)


def _named(model: Model, name: str) -> Tensor:
    if not isinstance(name, str):
        raise GGUFError(f"expected the name of a tensor, found {shown(name, 100)}", "name")
    if name not in model.tensors:
        raise GGUFError(f"there is no tensor {name!r}{perhaps(name, model.tensors)}")
    return model.tensors[name]


def _data(tensor: Tensor, show: Show) -> Iterator[bytes]:
    done = 0
    for piece in pieces(tensor):
        yield piece
        done += len(piece)
        show(done, tensor.n_bytes or 0)
