"""The types of metadata values as text: `UINT32`; `[INT32]` is an array; `[[INT32]]` one of arrays of INT32.

Arrays of arrays that differ in type list them all: `[[INT32], [STRING]]`. One without any is `[ARRAY]`.
"""

from collections.abc import Iterator
from itertools import accumulate

from ..enums import ArrayType, ValueType
from ..enums import GGUFValueType as T
from ..errors import GGUFError
from ..limits import MAX_NESTING


def type_text(type: ValueType | str) -> str:
    """A type as it is written; of one that is text already the usual form."""
    if isinstance(type, str):
        type = type_named(type)
    if not isinstance(type, ArrayType):
        return type.name
    if type.type is not T.ARRAY:
        return f"[{type.type.name}]"
    items = type.items if len(set(type.items)) > 1 else type.items[:1]
    return f"[{', '.join(map(type_text, items)) or T.ARRAY.name}]"


def type_named(text: str) -> ValueType:
    """The type that is written; small letters will do.

    Raises:
        GGUFError: There is no such type.
    """
    names = ", ".join(type.name for type in T if type is not T.ARRAY)
    problem = (
        f"{text[:100]!r} is no type: give one of {names}, or [TYPE] for an array, [[TYPE]] for one of arrays, [ARRAY] "
        "for one of no arrays"
    )
    depths = accumulate((letter == "[") - (letter == "]") for letter in text)
    if max(depths, default=0) > MAX_NESTING:
        raise GGUFError(problem)
    found = _parsed(text.strip().upper())
    if found in (None, T.ARRAY):
        raise GGUFError(problem)
    return found


def _parsed(text: str) -> ValueType | None:
    if not (text.startswith("[") and text.endswith("]")):
        return T.__members__.get(text)
    items = [_parsed(part.strip()) for part in _parts(text[1:-1])]
    if all(isinstance(item, ArrayType) for item in items):
        return ArrayType(T.ARRAY, tuple(items))  # type: ignore[arg-type]
    return ArrayType(items[0]) if len(items) == 1 and isinstance(items[0], T) else None


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets."""
    depth = start = 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]
