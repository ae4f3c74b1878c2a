"""Where generated values get their choices from: a few kinds of choice, and the source that a seed is."""

import hashlib
import random
import string
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

LARGE = 64
"""Ranges of more numbers than this have edges worth a try."""

USUAL_TEXT = string.printable
LAST_CHARACTER = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


class Choices(Protocol):
    """A source of choices. Where values shrink, they shrink to the first option, the lowest number, the least size."""

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""

    def octets(self, size: int) -> bytes:
        """So many bytes."""

    def text(self, alphabet: str | None, least: int, most: int) -> str:
        """From `least` to `most` characters of the alphabet; without one of all that UTF-8 can encode."""

    def float_bits(self, size: int, mantissa: int) -> int:
        """The bits of an IEEE 754 number of `size` bytes with a mantissa of so many bits; NaNs of any payload."""

    def many(self, make: Callable[..., T], least: int, most: int, *arguments: Any) -> list[T]:
        """From `least` to `most` things, each made by a function of a source of choices and these arguments."""


class Seeded:
    """Choices that a seed determines: the same on every machine and in every version of Python.

    Only `random()` and `getrandbits()` are used, of which that holds; `choice` and its like have changed. The seed is
    hashed: `random` adds up its words and their places, so that numbers put together of two would often give the same.
    """

    def __init__(self, seed: int) -> None:
        generator = random.Random(int.from_bytes(hashlib.sha256(b"%d" % seed).digest(), "big"))
        self.random = generator.random
        self.getrandbits = generator.getrandbits

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`; of a wide range often an edge: an end, a power of two, one beside these."""
        span = high - low
        if span < LARGE:
            return low + int(self.random() * (span + 1))
        if self.random() < 0.5:
            return self.one_of(edges(low, high))
        return low + self.getrandbits(span.bit_length()) % (span + 1)

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.random() * len(options))]

    def octets(self, size: int) -> bytes:
        """So many bytes."""
        return self.getrandbits(8 * size).to_bytes(size, "little")

    def text(self, alphabet: str | None, least: int, most: int) -> str:
        """From `least` to `most` characters of the alphabet; without one mostly ASCII."""
        size = self.integer(least, most)
        if alphabet is None and self.random() < 0.25:
            return "".join([self._character() for _ in range(size)])
        alphabet = alphabet or USUAL_TEXT
        return "".join([alphabet[int(self.random() * len(alphabet))] for _ in range(size)])

    def _character(self) -> str:
        """Any character; as many bits are drawn as are used, so that all lengths in UTF-8 are met."""
        code = self.getrandbits(self.integer(1, LAST_CHARACTER.bit_length())) % (LAST_CHARACTER + 1)
        return chr(code if code not in SURROGATES else SURROGATES.stop)

    def float_bits(self, size: int, mantissa: int) -> int:
        """The bits of a float, put together of parts, each often an edge: zeros, subnormals, infinities, NaNs."""
        bits = 8 * size - 1 - mantissa
        largest = (1 << bits) - 1
        exponent = self.one_of((0, 1, largest >> 1, largest - 1, largest, self.getrandbits(bits)))
        half, full = 1 << (mantissa - 1), (1 << mantissa) - 1
        fraction = self.one_of((0, 0, 1, half, full, self.getrandbits(mantissa)))
        return self.getrandbits(1) << (8 * size - 1) | exponent << mantissa | fraction

    def many(self, make: Callable[..., T], least: int, most: int, *arguments: Any) -> list[T]:
        """From `least` to `most` things."""
        return [make(self, *arguments) for _ in range(self.integer(least, most))]


@cache
def edges(low: int, high: int) -> tuple[int, ...]:
    """The numbers of a range at which readers break: its ends, 0, powers of two, and those beside them."""
    powers = [sign << bit for bit in range(high.bit_length() + 1) for sign in (1, -1)]
    found = {low, high, low + 1, high - 1, 0, *(power + beside for power in powers for beside in (-1, 0, 1))}
    return tuple(sorted(number for number in found if low <= number <= high))
