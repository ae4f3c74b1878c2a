"""Hypothesis strategies for GGUF: whole files as bytes, and every part of them in the wire form.

    pip install 'gguf_schema[fuzz]'

What is generated is derived from the schema; what fails is shrunk to the smallest file that still does.

    from hypothesis import given
    from gguf_schema import GGUFValueType as T
    from gguf_schema import strategies as gguf

    @given(gguf.files())
    def test_my_reader(data):
        my_reader(data)  # every one of these files is valid

    gguf.files(structs(">", 2))  # of one layout only
    gguf.files(tensors=(1, 1), infos=gguf.tensor_infos(types=[GGMLQuantizationType.Q4_K]))
    gguf.files(pairs=gguf.metadata_pairs(keys=st.just("llama.context_length"), types=[T.UINT32]))
    gguf.values(T.FLOAT32)
    gguf.values(ArrayType(T.STRING))
    gguf.arrays(T.INT32, elements=st.integers(-1, 1))
    gguf.blocks(GGMLQuantizationType.Q8_0)

`Extent` says how large values are, and whether they may be odd: text that is no UTF-8, BOOL bytes above 1, whatever
else the format can hold and a validator warns of. `layout.metadata_kv.build(pair)` gives a part's bytes.
"""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from .blocks import block
from .enums import ArrayType, GGUFValueType, ValueType
from .errors import GGUFError
from .generate import Extent, make
from .generate import files as whole
from .layout import type_name
from .schema import GGUF, GGUFStructs, structs

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as error:
    raise ImportError("strategies need hypothesis: pip install 'gguf_schema[fuzz]'") from error

Made = TypeVar("Made")

SMALL = 16
"""Bytes up to which each is drawn by itself; more are zeros, or noise made from one drawn number."""

kept = lru_cache(maxsize=1 << 12)
"""Strategies are worth keeping: hypothesis looks a new one over before it draws, which takes longer than drawing."""


class Drawn:
    """Choices that hypothesis makes, and shrinks."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return self.draw(_integers(low, high))

    def one_of(self, options: Sequence[Made]) -> Made:
        """One of the options."""
        option: Made = self.draw(_options(tuple(options)))
        return option

    def octets(self, size: int) -> bytes:
        """So many bytes."""
        if size <= SMALL:
            return self.draw(_octets(size))
        seed = self.integer(0, (1 << 32) - 1)
        return random.Random(seed).randbytes(size) if seed else bytes(size)

    def text(self, alphabet: str | None, least: int, most: int) -> str:
        """From `least` to `most` characters of the alphabet; without one of all that UTF-8 can encode."""
        return self.draw(_texts(alphabet, least, most))

    def float_bits(self, size: int, mantissa: int) -> int:
        """The bits of a float of `size` bytes; one out of two a NaN of any payload, or an infinity."""
        return self.draw(_float_bits(size, mantissa))

    def many(self, make: Callable[..., Made], least: int, most: int, *arguments: Any) -> list[Made]:
        """From `least` to `most` things."""
        things: list[Made] = self.draw(_lists(make, least, most, arguments))
        return things


@st.composite
def _made(draw: DrawFn, make: Callable[..., Made], *arguments: Any) -> Made:
    """What a function makes of hypothesis' choices."""
    made: Made = make(Drawn(draw), *arguments)
    return made


def _draw(choices: Drawn, strategy: SearchStrategy[Made]) -> Made:
    return choices.draw(strategy)


@kept
def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.integers(low, high)


@kept
def _options(options: tuple[Made, ...]) -> SearchStrategy[Made]:
    return st.sampled_from(options)


@kept
def _octets(size: int) -> SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


@kept
def _texts(alphabet: str | None, least: int, most: int) -> SearchStrategy[str]:
    letters = st.characters(exclude_categories=["Cs"]) if alphabet is None else alphabet
    return st.text(letters, min_size=least, max_size=most)


@kept
def _lists(make: Callable[..., Made], least: int, most: int, arguments: tuple[Any, ...]) -> SearchStrategy[list[Made]]:
    return st.lists(_made(make, *arguments), min_size=least, max_size=most)


@kept
def _float_bits(size: int, mantissa: int) -> SearchStrategy[int]:
    """Numbers that people like to read, and all that are none."""
    width: Any = 8 * size
    numbers = st.floats(width=width).map(lambda number: int(np.array(number, f"f{size}").view(f"u{size}")))
    signs, payloads = st.integers(0, 1), st.integers(0, (1 << mantissa) - 1)
    exponent = (1 << (width - 1)) - (1 << mantissa)
    special = st.builds(lambda sign, payload: sign << (width - 1) | exponent | payload, signs, payloads)
    found: SearchStrategy[int] = numbers | special
    return found


USUAL = Extent()
VALUE_TYPES = frozenset(GGUFValueType)


def values(type: ValueType, layout: GGUFStructs | None = None, *, extent: Extent = USUAL) -> SearchStrategy[Any]:
    """Values of a type, as parsing gives them.

    Args:
        type: The type; `ArrayType(GGUFValueType.INT32)` for an array of one type, `GGUFValueType.ARRAY` of any.
        layout: Byte order and version; without it, those of `structs()`.
        extent: How large the values are, and whether they may be odd.

    Raises:
        GGUFError: There is no such type.
    """
    if isinstance(type, ArrayType):
        return arrays(type.type, layout, extent=extent)
    _known("value type", [type], VALUE_TYPES)
    pair = {"key": "", "value_type": type}
    return _made(lambda choices: make(_usual(layout).metadata_kv, choices, extent, pair)["value"])


def arrays(
    type: GGUFValueType | None = None,
    layout: GGUFStructs | None = None,
    *,
    elements: SearchStrategy[Any] | None = None,
    extent: Extent = USUAL,
) -> SearchStrategy[dict[str, Any]]:
    """Arrays, perhaps of arrays: mappings with `type` and `array`.

    Args:
        type: The type of the elements; without it, any.
        layout: As of `values`.
        elements: Elements of this type.
        extent: As of `values`. Its `items` says how many there are; its `levels` count the array itself.

    Raises:
        GGUFError: There is no such type.
        ValueError: Elements are given, but not their type.
    """
    if type is not None:
        _known("value type", [type], VALUE_TYPES)
    if elements is not None:
        if type is None:
            raise ValueError("elements are given, but not their type")
        fewest, most = extent.items
        items = st.lists(elements, min_size=fewest, max_size=most)
        return st.fixed_dictionaries({"type": st.just(type), "array": items})
    given = {} if type is None else {"type": type}
    inside = extent._replace(levels=extent.levels - 1)
    return _made(lambda choices: make(_usual(layout).array, choices, inside, given))


def metadata_pairs(
    layout: GGUFStructs | None = None,
    *,
    keys: SearchStrategy[str] | None = None,
    types: Iterable[GGUFValueType] | None = None,
    values: SearchStrategy[Any] | None = None,
    architecture: str = "llama",
    extent: Extent = USUAL,
) -> SearchStrategy[dict[str, Any]]:
    """Metadata pairs: mappings with `key`, `value_type`, `value`, and whatever else the schema says.

    Args:
        layout: As of `values`.
        keys: Their keys. Without them, standard keys with values of their types, and made-up ones.
        types: Types of their values; with them, but without `keys`, all keys are made up.
        values: Values of all these types.
        architecture: The architecture of standard keys.
        extent: As of `values`; keys may be odd, too.

    Raises:
        GGUFError: There is no such type.
        ValueError: Values are given, but not their types; or types, but none of them.
    """
    if values is not None and types is None:
        raise ValueError("values are given, but not their types")
    options = None if types is None else _known("value type", types, VALUE_TYPES)

    def pair(choices: Drawn) -> Any:
        if keys is None and options is None:
            return whole.pair(choices, _usual(layout), extent, architecture)
        given: dict[str, Any] = {}
        if keys is not None:
            given["key"] = choices.draw(keys)
        elif extent.valid:
            given["key"] = whole.own_key(choices, architecture)
        if options is not None:
            given["value_type"] = choices.one_of(options)
        if values is not None:
            given["value"] = choices.draw(values)
        return make(_usual(layout).metadata_kv, choices, extent, given)

    return _made(pair)


def tensor_infos(
    layout: GGUFStructs | None = None,
    *,
    names: SearchStrategy[str] | None = None,
    types: Iterable[int] = whole.TYPES,
    extent: Extent = USUAL,
) -> SearchStrategy[dict[str, Any]]:
    """Tensor infos of small tensors: mappings with `name`, `dimensions`, `type`; `offset` is None: it is computed.

    Args:
        layout: As of `values`.
        names: Their names.
        types: Their types.
        extent: As of `values`; odd ones may have no dimensions.

    Raises:
        GGUFError: A type has no known block.
        ValueError: Types are given, but none of them.
    """
    options = _known("tensor type", types, whole.TYPES)

    def info(choices: Drawn) -> Any:
        found = whole.info(choices, _usual(layout), extent, options)
        return found if names is None else {**found, "name": choices.draw(names)}

    return _made(info)


def blocks(type: int, order: str = "<") -> SearchStrategy[dict[str, Any]]:
    """Blocks of a tensor type: mappings with the fields of `blocks.block(type, order)`.

    Raises:
        GGUFError: The type has no known block.
    """
    con = block(type, order)
    if con is None:
        raise GGUFError(f"type {type_name(type)} has no known block", "type")
    return _made(lambda choices: make(con, choices, USUAL))


def wire_files(
    layout: GGUFStructs | None = None,
    *,
    pairs: SearchStrategy[dict[str, Any]] | None = None,
    infos: SearchStrategy[dict[str, Any]] | None = None,
    alignments: Iterable[int] = whole.ALIGNMENTS,
    metadata: tuple[int, int] = (0, 8),
    tensors: tuple[int, int] = (0, 4),
    extent: Extent = whole.VALID,
) -> SearchStrategy[dict[str, Any]]:
    """Whole files in the wire form: what `GGUF.build` takes. The arguments are those of `files`."""
    for name, bounds in ("metadata", metadata), ("tensors", tensors):
        if not isinstance(bounds, tuple) or len(bounds) != 2:
            raise TypeError(f"{name}: expected the fewest and the most, as (0, 4), found {bounds!r}")
    known_alignments = tuple(alignments)
    layouts = whole.CURRENT if extent.valid else whole.LAYOUTS
    make_pair = None if pairs is None else (_draw, pairs)
    make_info = None if infos is None else (_draw, infos)

    def file(choices: Drawn) -> Any:
        chosen = structs(*choices.one_of(layouts)) if layout is None else layout
        return whole.file(choices, chosen, extent, make_pair, make_info, known_alignments, metadata, tensors)

    return _made(file)


def files(layout: GGUFStructs | None = None, **arguments: Any) -> SearchStrategy[bytes]:
    """Whole files, as bytes. Unless `extent` allows odd ones, `open` takes all of them, and no rule warns of any.

    With pairs and infos of yours that holds unless a rule speaks of one of them alone: keys, names, types and values
    are as you make them.

    Args:
        layout: Byte order and version; without it, any that is not warned of.
        arguments: Those of `wire_files`:

            * pairs: Makes metadata pairs; of two with the same key one is kept, and none that declares an alignment
              which is not among those below.
            * infos: Makes tensor infos; of two with the same name one is kept.
            * alignments: The alignments that a file may declare. About half of the files declare none.
            * metadata: The fewest and the most pairs, besides `general.architecture` and `general.alignment`.
            * tensors: The fewest and the most tensors.
            * extent: How large values are, and whether they may be odd.
    """
    builder = GGUF if layout is None else layout.gguf
    return wire_files(layout, **arguments).map(builder.build)


def _known(what: str, types: Iterable[Made], known: Collection[Any]) -> tuple[Made, ...]:
    """The types, all of which must be known, and of which there must be one."""
    given = tuple(types)
    if not given:
        raise ValueError(f"no {what} is given")
    for type in given:
        if type not in known:
            raise GGUFError(f"{what} {type} is not known", "type")
    return given


def _usual(layout: GGUFStructs | None) -> GGUFStructs:
    return structs() if layout is None else layout
