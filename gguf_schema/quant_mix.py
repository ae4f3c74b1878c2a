"""What a model is made of: how many tensors, parameters and bytes there are of each tensor type."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from .layout import type_name


class Sized(Protocol):
    """What is counted: a `Tensor`, or anything with these attributes."""

    type: int
    n_bytes: int | None

    @property
    def n_elements(self) -> int: ...


class Share(NamedTuple):
    """The tensors of one type.

    Attributes:
        type: Name of the type.
        tensors: How many.
        parameters: Elements in all of them.
        bytes: Bytes of all of them; tensors whose size nobody knows count as 0.
    """

    type: str
    tensors: int
    parameters: int
    bytes: int

    @property
    def bits_per_weight(self) -> float:
        """Bits for each element; 0 without elements."""
        return 8 * self.bytes / self.parameters if self.parameters else 0.0


def quant_mix(tensors: Iterable[Sized]) -> list[Share]:
    """A row for each tensor type, by name. Sum them up with `total`."""
    groups: dict[str, list[Sized]] = defaultdict(list)
    for tensor in tensors:
        groups[type_name(tensor.type)].append(tensor)
    return [
        Share(name, len(group), sum(t.n_elements for t in group), sum(t.n_bytes or 0 for t in group))
        for name, group in sorted(groups.items())
    ]


def total(mix: Iterable[Share]) -> Share:
    """The sum of all rows, under the type name "total"."""
    mix = list(mix)
    return Share("total", sum(s.tensors for s in mix), sum(s.parameters for s in mix), sum(s.bytes for s in mix))
