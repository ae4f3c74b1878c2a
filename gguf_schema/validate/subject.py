"""What the rules look at: a file as far as it can be parsed, and where its fields stand."""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

from ..enums import GGUFValueType
from ..errors import GGUFError
from ..file import Model, trace_head
from ..keys import ARCHITECTURE
from ..layout import align_up, alignment_of, known_sizes
from ..limits import MAX_NESTING
from ..policy import Parsed
from ..schema import GGUFStructs, sniff
from ..sources import Reader, Source
from ..walk import Enter, Node, is_inside

Progress: TypeAlias = Callable[[int, int], None]
"""Told, while tensor data is read, up to which byte of how many."""

INTEGERS = tuple(GGUFValueType[f"{sign}INT{bits}"] for bits in (8, 16, 32, 64) for sign in ("U", ""))

ITEM = re.compile(r"(metadata_kv|tensor_infos)\[(\d+)\]")


class Subject:
    """A file that is judged.

    Attributes:
        source: Where its bytes come from.
        name: Its path, or what stands for it.
        size: Bytes of the whole file.
        failure: The error that ended the parse; None where all of the metadata and infos was read.
        layout: The constructs of its layout; None where the first bytes tell none.
        model: The open file; None after a failure.
        fields: After a failure the fields of the header, and those of the pair or info in which it happened, as far as
            they were read, by their path.
        metadata_kv: The pairs that were read, in the wire form.
        tensor_infos: The infos that were read.
        progress: Told how far tensor data is read.
    """

    def __init__(self, source: Source, progress: Progress = lambda done, size: None) -> None:
        self.source = source
        self.progress = progress
        self.name, self.size = source.name, source.size
        self.failure: GGUFError | None = None
        self.layout: GGUFStructs | None = None
        self.model: Model | None = None
        self.fields: dict[str, Node] = {}
        try:
            self.layout = sniff(Reader(source))
            self.model = Model(source, check=False, max_nesting=MAX_NESTING)
        except GGUFError as error:
            self.failure = error
        if self.model is not None:
            self.metadata_kv: Any = self.model.head.metadata_kv
            self.tensor_infos: Any = self.model.head.tensor_infos
        else:
            self._read_as_far_as_possible()

    def _read_as_far_as_possible(self) -> None:
        """Take what stands before the failure."""
        assert self.failure is not None
        self.metadata_kv, self.tensor_infos = [], []
        outer = {"", "metadata_kv", "tensor_infos", *outer_paths(self.failure.path)}
        for node in self._nodes(lambda path, items: path in outer):
            self.fields[node.path] = node
            match = ITEM.fullmatch(node.path)
            if match and not is_inside(self.failure.path, node.path):
                (self.metadata_kv if match[1] == "metadata_kv" else self.tensor_infos).append(node.value)

    def _nodes(self, enter: Enter) -> Iterator[Node]:
        """The nodes of a traced parse, up to where it fails."""
        if self.layout is None:
            return
        try:
            yield from trace_head(self.source, self.layout, enter)
        except GGUFError:
            return

    @cached_property
    def parsed(self) -> Parsed:
        """The same for the rules of `policy`; after a failure without the file's size, so that no data is missed."""
        infos = self.tensor_infos
        if self.model is not None:
            model = self.model
            places = model.alignment, model.infos_end, model.data_offset, model.size
            return Parsed(self.metadata_kv, infos, known_sizes(infos), *places)
        alignment = alignment_of(self.metadata_kv)
        return Parsed(self.metadata_kv, infos, known_sizes(infos), alignment, 0, align_up(0, alignment), None)

    @cached_property
    def pairs(self) -> dict[str, int]:
        """The index of the first pair of each key."""
        indices: dict[str, int] = {}
        for index, pair in enumerate(self.metadata_kv):
            indices.setdefault(pair["key"], index)
        return indices

    def value(self, key: str, *types: GGUFValueType) -> Any:
        """The value of a key in the wire form; None where it is absent or of another type than these."""
        index = self.pairs.get(key)
        if index is None:
            return None
        pair = self.metadata_kv[index]
        return pair["value"] if not types or pair["value_type"] in types else None

    def array(self, key: str, *types: GGUFValueType) -> Any:
        """The elements of an array; None where the key is absent, or no array of these types."""
        value = self.value(key, GGUFValueType.ARRAY)
        return value["array"] if value is not None and (not types or value["type"] in types) else None

    def path(self, key: str, field: str = "value") -> str:
        """The schema path of a field of a key's pair."""
        return f"metadata_kv[{self.pairs[key]}].{field}"

    @cached_property
    def architecture(self) -> str | None:
        """The architecture; None where the file tells none."""
        value = self.value(ARCHITECTURE.template, GGUFValueType.STRING)
        return value if isinstance(value, str) and value else None

    def places(self, paths: set[str]) -> dict[str, tuple[int, int]]:
        """Where fields stand: absolute offsets of the first byte and after the last, as far as they were read."""
        outer = {"", *(outer for path in paths for outer in outer_paths(path))}
        found: dict[str, tuple[int, int]] = {}
        for node in self._nodes(lambda path, items: path in outer):
            if node.path in paths:
                found[node.path] = node.start, node.end
                if len(found) == len(paths):
                    break
        return found


def outer_paths(path: str) -> set[str]:
    """The paths of the fields that a field lies in."""
    return {path[:index] for index, letter in enumerate(path) if letter in ".["}
