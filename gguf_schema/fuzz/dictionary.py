"""Words of the format, for fuzzers that put words into files: all of them are built by the schema, none is typed."""

from collections import defaultdict
from collections.abc import Iterable

from .. import keys
from ..enums import GGMLQuantizationType, GGUFValueType
from ..generate import Seeded, valid_file
from ..generate.files import LAYOUTS
from ..mutate.base import Base, mapped
from ..mutate.operations import OPERATIONS
from ..schema import LATEST_VERSION, MAGIC, ORDER_NAMES, ORDERS, VERSIONS, structs
from ..walk import Con, children

ARCHITECTURE = "llama"
"""Keys of an architecture need one: that which every reader knows."""

BASES = 8
"""Files of each layout that are looked at for what operations put into every file."""

LONGEST = 64
"""Bytes of a word: libFuzzer takes no longer ones."""


def words() -> dict[str, bytes]:
    """Name → word; no word stands twice.

    These are the magic, versions, value types and tensor types in both byte orders; the numbers that `mutate` puts into
    fields whatever stood there; and the standard keys with their lengths, little-endian.
    """
    found = {"magic": MAGIC, "magic_reversed": MAGIC[::-1]}
    for order in ORDERS:
        layout, name = structs(order), ORDER_NAMES[order]
        version, tensor_type = _field(layout.preamble, "version"), _field(layout.tensor_info, "type")
        found |= {f"version_{number}_{name}": version.build(number) for number in VERSIONS}
        found |= {f"value_type_{type.name}_{name}": layout.value_type.build(type) for type in GGUFValueType}
        found |= {f"tensor_type_{type.name}_{name}": tensor_type.build(type) for type in GGMLQuantizationType}
    found |= _numbers([mapped(valid_file(seed, *layout)) for layout in LAYOUTS for seed in range(BASES)])
    texts = [ARCHITECTURE, *(key.of(ARCHITECTURE) for key in keys.KEYS)]
    string = structs(ORDERS[0], LATEST_VERSION).string
    found |= {f"key_{_label(text)}": string.build(text) for text in texts if "{" not in text}
    first = {word: name for name, word in reversed(found.items())}
    return {name: word for name, word in found.items() if first[word] == name and len(word) <= LONGEST}


def _field(struct: Con, name: str) -> Con:
    return next(field for field in children(struct) if field.name == name)


def _label(text: str) -> str:
    """A name that AFL++ takes."""
    return "".join(letter if letter.isalnum() else "_" for letter in text.replace(".", "__"))


def _numbers(bases: Iterable[Base]) -> dict[str, bytes]:
    """What operations put into a field of a width and an order, whatever stood there."""
    put: dict[tuple[str, int, str], set[bytes]] = defaultdict(set)
    stood: dict[tuple[str, int, str], set[int]] = defaultdict(set)
    draw = Seeded(0)
    for base in bases:
        for field in base.fields:
            for operation in OPERATIONS[field.kind] if isinstance(field.value, int) else ():
                change = None if operation.is_drawn else operation.make(base, field, draw)
                width = field.end - field.start
                for start, end, new in change.edits[:1] if change else ():
                    if (start, end, len(new)) == (field.start, field.end, width):
                        place = operation.name, width, base.byteorder
                        put[place].add(new)
                        stood[place].add(field.value)
    return {
        f"{_label(name)}_{8 * width}_{order}": next(iter(new))
        for (name, width, order), new in put.items()
        if len(new) == 1 and len(stood[name, width, order]) > 1
    }


def dictionary() -> str:
    r"""The words as libFuzzer and AFL++ read them: one a line, `name="word"`, with `\\`, `\"` and `\xNN` in it."""
    return "".join(f'{name}="{_escaped(word)}"\n' for name, word in words().items())


def _escaped(word: bytes) -> str:
    letters = []
    for byte in word:
        letter = chr(byte)
        if letter in '\\"':
            letter = f"\\{letter}"
        elif not (letter.isascii() and letter.isprintable()):
            letter = f"\\x{byte:02x}"
        letters.append(letter)
    return "".join(letters)
