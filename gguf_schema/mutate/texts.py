"""Operations on keys, names and strings. Lengths are kept right, and the data aligned, unless it is about just that."""

import string
from collections.abc import Callable
from functools import partial

from .. import keys
from ..generate import Seeded
from ..limits import LONGEST_KEY
from .base import BLOCK, Base, Edit, Field, Pair, repaired
from .change import Change, Operation
from .head import renamed
from .verdicts import ACCEPT, MILD, Verdict, both, reject, warn

Write = Callable[[Base, Field, Seeded], bytes | None]
"""The new text of a field; None where there is none."""

LONG = 70_000
NOT_IN_KEYS = string.ascii_uppercase + " !\"#$%&'()*+,/:;<=>?@[]^`{|}~"
ARCHITECTURE_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")


def set_text(write: Write, verdict: Verdict, base: Base, field: Field, draw: Seeded) -> Change | None:
    """Put another text, with its length, into a field."""
    new = write(base, field, draw)
    if new is None or new == field.value:
        return None
    edits = ((base.leaves[field.place - 1].start, field.end, base.string(new)),)
    return Change(repaired(base, edits), both(verdict, CONSEQUENCES[field.kind](base, field, new, edits)))


def _key(base: Base, field: Field, new: bytes, edits: tuple[Edit, ...]) -> Verdict:
    """What follows when a pair has another key."""
    if _text(new) in base.key_names:
        return reject("key-twice")
    return renamed(base, base.pair_of(field), edits)


def _name(base: Base, field: Field, new: bytes, edits: tuple[Edit, ...]) -> Verdict:
    """What follows when a tensor has another name."""
    if _text(new) in base.names:
        return reject("tensor-name-twice")
    is_layer = BLOCK.match(_text(new)) or BLOCK.match(_text(field.value))
    return MILD if is_layer and base.counts_layers else ACCEPT


def _string(base: Base, field: Field, new: bytes, edits: tuple[Edit, ...]) -> Verdict:
    """What follows when a string is another."""
    pair = base.pair_of(field)
    if is_no_architecture(pair, new):
        return warn("architecture-characters")
    return MILD if pair.is_own else ACCEPT


def is_no_architecture(pair: Pair, new: bytes) -> bool:
    """Whether this is the value of `general.architecture`, and no name of one."""
    return pair.standard is keys.ARCHITECTURE and (not new or bool(set(new) - ARCHITECTURE_LETTERS))


CONSEQUENCES = {"key.string": _key, "name.string": _name, "string.string": _string}


def _text(raw: bytes) -> str:
    return str(raw, "utf-8", "surrogateescape")


def _put(piece: bytes, base: Base, field: Field, draw: Seeded) -> bytes:
    """A piece in the place of the middle byte."""
    middle = len(field.value) // 2
    return bytes(field.value[:middle] + piece + field.value[middle + 1 :])


def _exactly(new: bytes, base: Base, field: Field, draw: Seeded) -> bytes:
    return new


def _append(piece: bytes, base: Base, field: Field, draw: Seeded) -> bytes:
    return bytes(field.value + piece)


def _upper(base: Base, field: Field, draw: Seeded) -> bytes:
    return bytes(field.value.upper())


def _without_dots(base: Base, field: Field, draw: Seeded) -> bytes:
    return bytes(field.value.replace(b".", b"_"))


def _other_text(base: Base, field: Field, draw: Seeded) -> bytes | None:
    """Another key, or another name."""
    others = (leaf.value for leaf in base.leaves if leaf.kind == field.kind and leaf.value != field.value)
    return next(others, None)


def _other_in_c(base: Base, field: Field, draw: Seeded) -> bytes | None:
    """Another name, to a reader who stops at a NUL."""
    other = _other_text(base, field, draw)
    return None if other is None else other + b"\0" + field.value


def _long(size: int, base: Base, field: Field, draw: Seeded) -> bytes:
    """Letters, so many of them."""
    return (field.path.replace("[", ".x").replace("]", "").encode() + b".x" * size)[:size]


def _very_long(size: int, base: Base, field: Field, draw: Seeded) -> bytes | None:
    """The same for the first text of a kind only, because a file of that size takes longer to read."""
    first = next(leaf for leaf in base.leaves if leaf.kind == field.kind)
    return _long(size, base, field, draw) if first.place == field.place else None


def _drawn_letters(letters: str, base: Base, field: Field, draw: Seeded) -> bytes:
    """Other letters, as many."""
    return draw.text(letters, *[max(1, len(field.value))] * 2).encode("ascii")


def _drawn_word(base: Base, field: Field, draw: Seeded) -> bytes:
    """Words with dots between them, as in keys and names."""
    words = draw.many(lambda inner: inner.text(string.ascii_lowercase, 1, 9), 2, 4)
    return ".".join(words).encode("ascii")


def _drawn_bytes(base: Base, field: Field, draw: Seeded) -> bytes:
    """Bytes that are no UTF-8, whatever they are."""
    return draw.octets(draw.integer(0, 8)) + b"\xff" + draw.octets(draw.integer(0, 8))


def text(name: str, write: Write, verdict: Verdict = ACCEPT, is_drawn: bool = False) -> Operation:
    """The operation that puts in what is written, and what follows from that alone."""
    return Operation(name, partial(set_text, write, verdict), is_drawn)


KEY = (
    text("key-nul", partial(_put, b"\0"), warn("key-nul")),
    text("key-no-utf8", partial(_put, b"\xff"), warn("key-utf8")),
    text("key-surrogate", partial(_put, b"\xed\xa0\x80"), warn("key-utf8")),
    text("key-no-ascii", partial(_put, b"\xc3\xa9"), warn("key-characters")),
    text("key-upper", _upper, warn("key-characters")),
    text("key-empty", partial(_exactly, b""), reject("key-empty")),
    text("key-duplicate", _other_text),
    text("key-longest", partial(_very_long, LONGEST_KEY)),
    text("key-too-long", partial(_very_long, LONGEST_KEY + 1), warn("key-long")),
    text("key-segment-empty", partial(_append, b".."), warn("key-segment-empty")),
    text("key-segment-digit", partial(_append, b".1a"), warn("key-segment-digit")),
    text("key-no-dot", _without_dots, warn("key-no-dot")),
    text("key-of-reader", partial(_exactly, b"GGUF.version"), warn("key-characters")),
    text("key-letters", partial(_drawn_letters, NOT_IN_KEYS), warn("key-characters"), is_drawn=True),
    text("key-bytes", _drawn_bytes, warn("key-utf8"), is_drawn=True),
    text("key-renamed", _drawn_word, is_drawn=True),
)
NAME = (
    text("name-nul", partial(_put, b"\0"), warn("name-nul")),
    text("name-nul-twice", _other_in_c, warn("name-nul-twice")),
    text("name-no-utf8", partial(_put, b"\xff"), warn("name-utf8")),
    text("name-surrogate", partial(_put, b"\xed\xa0\x80"), warn("name-utf8")),
    text("name-empty", partial(_exactly, b""), warn("name-empty")),
    text("name-duplicate", _other_text),
    text("name-63", partial(_long, 63)),
    text("name-64", partial(_long, 64), warn("name-64")),
    text("name-65", partial(_long, 65), warn("name-long")),
    text("name-too-long", partial(_very_long, LONG), warn("name-long")),
    text("name-bytes", _drawn_bytes, warn("name-utf8"), is_drawn=True),
    text("name-renamed", _drawn_word, is_drawn=True),
)
STRING = (
    text("string-nul", partial(_append, b"\0")),
    text("string-no-utf8", partial(_put, b"\xff"), warn("string-utf8")),
    text("string-surrogate", partial(_put, b"\xed\xa0\x80"), warn("string-utf8")),
    text("string-overlong", partial(_append, b"\xc0\xaf"), warn("string-utf8")),
    text("string-empty", partial(_exactly, b"")),
    text("string-long", partial(_very_long, LONG)),
    text("string-bytes", _drawn_bytes, warn("string-utf8"), is_drawn=True),
    text("string-letters", partial(_drawn_letters, string.printable), is_drawn=True),
)
