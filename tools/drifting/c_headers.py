"""As much of C as ggml's headers need: macros, enumerations, Structs of blocks. Nothing is preprocessed or compiled.

What is not understood is kept as it is written, so that it shows as a difference.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from .calculate import c_integer
from .facts import Facts, Value, block, field

TYPES = {
    "ggml_half": "float16",
    "float": "float32",
    **{f"{name}_t": name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32")},
}
"""C's types → numpy's names of them."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S.*)$", re.MULTILINE)
_STRUCT = re.compile(r"\btypedef\s+struct\s*\w*\s*\{")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_FIELD = re.compile(r"(\w+) (\w+)(?: \[ ([^\[\]]+) \])?")
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*(\w+)\s*\)")


class Header:
    """The text of a header, without comments, and its macros. Of two macros of one name the last is taken."""

    def __init__(self, text: str) -> None:
        self.text = _COMMENT.sub(lambda found: found[1] or " ", text)
        self.macros = {name: text.rstrip() for name, text in _MACRO.findall(self.text)}

    def constants(self, names: Iterable[str]) -> Facts:
        """The values of those of the macros that there are: integers, strings, or the text of what else it is."""
        return {name: self._value(self.macros[name]) for name in names if name in self.macros}

    def _value(self, text: str) -> Value:
        try:
            return c_integer(text, self.macros)
        except ValueError:
            return text.strip('"')

    def enum(self, name: str, prefix: str) -> dict[str, int]:
        """The members of `enum name` without their prefix; none if there is no such enumeration.

        Raises:
            ValueError: The value of a member cannot be calculated.
        """
        found = re.search(rf"\benum\s+{name}\s*(?::\s*\w+\s*)?\{{(.*?)\}}", self.text, re.DOTALL)
        members: dict[str, int] = {}
        following = 0
        for member in found[1].split(",") if found else ():
            name, _, value = map(str.strip, member.partition("="))
            if name:
                members[name] = following = c_integer(value, self.macros, members) if value else following
                following += 1
        return {name.removeprefix(prefix): number for name, number in members.items()}

    def blocks(self) -> dict[str, str]:
        """The Structs `block_…` as text, by the rest of their names in upper case."""
        found = {}
        for start in _STRUCT.finditer(self.text):
            tokens = (token[0] for token in _TOKEN.finditer(self.text, start.end()))
            fields = chain.from_iterable(self._declarations(tokens))
            name = next(tokens, "")
            if name.startswith("block_"):
                found[name.removeprefix("block_").upper()] = block(self._asserted_size(name), fields)
        return found

    def _declarations(self, tokens: Iterator[str]) -> list[list[str]]:
        """The fields of each declaration up to the closing brace; a union has those of its first member."""
        found: list[list[str]] = []
        words: list[str] = []
        inside: list[str] = []
        for token in tokens:
            if token == "}":
                break
            if token == "{":
                members = self._declarations(tokens)
                inside = [*chain.from_iterable(members[:1] if "union" in words else members)]
            elif token == ";":
                found.append(inside or [self._field(" ".join(words))])
                words, inside = [], []
            else:
                words.append(token)
        return found

    def _field(self, declaration: str) -> str:
        found = _FIELD.fullmatch(declaration)
        if not found or found[1] not in TYPES:
            return declaration
        try:
            return field(TYPES[found[1]], found[2], c_integer(found[3], self.macros) if found[3] else None)
        except ValueError:
            return declaration

    def _asserted_size(self, struct: str) -> int | str:
        """The bytes that the header asserts the Struct to have."""
        found = re.search(rf'static_assert\s*\(\s*sizeof\s*\(\s*{struct}\s*\)\s*==\s*([^;"]+?)\s*,', self.text)
        if not found:
            return "?"
        text = _SIZEOF.sub(lambda of: str(np.dtype(TYPES[of[1]]).itemsize) if of[1] in TYPES else of[0], found[1])
        try:
            return c_integer(text, self.macros)
        except ValueError:
            return text
