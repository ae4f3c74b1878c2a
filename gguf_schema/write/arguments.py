"""Metadata in every form that `write` takes, as typed pairs; and errors that say which argument is wrong."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..enums import ArrayType, GGUFValueType
from ..errors import BuildError, GGUFError, shown
from ..keys import ALIGNMENT
from ..layout import alignment_of
from ..values import MetadataKV, infer, is_iterable, text


def pairs_of(metadata: Any) -> Iterator[MetadataKV]:
    """Every form of metadata as typed pairs."""
    if hasattr(metadata, "pairs"):
        yield from metadata.pairs
        return
    if not is_iterable(metadata):
        raise BuildError(
            f"expected a mapping or a list of (key, type, value), found {shown(metadata, 100)}", "metadata_kv"
        )
    if not isinstance(metadata, Mapping):
        for index, pair in enumerate(metadata):
            if not isinstance(pair, tuple) or len(pair) != len(MetadataKV._fields):
                raise BuildError(f"expected (key, type, value), found {shown(pair, 100)}", f"metadata_kv[{index}]")
            yield MetadataKV(*pair)
        return
    with naming(list(metadata)):
        for index, (key, value) in enumerate(metadata.items()):
            if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], GGUFValueType | ArrayType):
                yield MetadataKV(key, *value)
            else:
                yield MetadataKV(key, in_path(infer, f"metadata_kv[{index}].value", value), value)


@contextlib.contextmanager
def naming(keys: Sequence[Any]) -> Iterator[None]:
    """Say in errors of pairs what the key is: nobody counts the pairs of a mapping."""
    try:
        yield
    except BuildError as error:
        found = re.match(r"metadata_kv\[(\d+)\]", error.path)
        if found is None:
            raise
        raise BuildError(f"{error.problem} (key {shown(keys[int(found[1])], 100)})", error.path) from error.__cause__


def in_path(function: Any, path: str, *args: Any) -> Any:
    """Call a function whose errors belong to a path. Whatever it raises of what it was given is a BuildError."""
    try:
        return function(*args)
    except GGUFError as error:
        inner = "" if error.path == path else error.path
        raise BuildError(error.problem, inner).inside(path, None) from None
    except (MemoryError, OSError):
        raise
    except Exception as error:
        raise BuildError(f"{type(error).__name__}: {error}", path) from error


def with_alignment(pairs: list[MetadataKV], alignment: int | None) -> list[MetadataKV]:
    """The pairs, with `general.alignment` at the end where it is asked for and not there."""
    if alignment is None:
        return pairs
    demand_power_of_two(alignment)
    held = [pair.value for pair in pairs if isinstance(pair.key, str | bytes) and text(pair.key) == ALIGNMENT.template]
    if held and not (isinstance(held[0], int | np.integer) and held[0] == alignment):
        raise BuildError(f"{shown(alignment)} asked for, but the metadata says {shown(held[0], 100)}", "alignment")
    if held or alignment == alignment_of([]):
        return pairs
    return [*pairs, MetadataKV(ALIGNMENT.template, ALIGNMENT.type, int(alignment))]


def demand_power_of_two(alignment: Any) -> None:
    """Refuse an alignment that is asked for and that llama.cpp's loader does not take.

    Raises:
        BuildError: It is no power of two.
    """
    is_number = isinstance(alignment, int | np.integer) and not isinstance(alignment, bool)
    if not is_number or alignment < 1 or alignment & (alignment - 1):
        raise BuildError(
            f"{shown(alignment)} is no alignment: llama.cpp's loader takes powers of two only", "alignment"
        )
