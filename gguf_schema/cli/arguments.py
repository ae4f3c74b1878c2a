"""What subcommands declare their arguments with."""

import argparse
import math
import re
import shlex
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, TypeAlias, TypeVar

from ..terminal import printable

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What subcommands are added to; argparse has no public name for it."""

FILE = "a GGUF file; '-' is standard input"
FILE_OR_DEMO = f"{FILE}; without one, a built-in demo model"
PROFILE_NAMES = ("default", "strict", "spec", "llama.cpp", "llama.cpp-data", "gguf-py", "gguf-py-head", "all")


class UsageError(Exception):
    """The arguments do not go together."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that repeats no terminal commands: arguments may be names of files from strangers.

    Attributes:
        mixes: Whether options may stand between positional arguments: not where subcommands are.
    """

    mixes = False

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        if not self.mixes or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self.mixes = False  # argparse comes back here
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixes = True

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def command(commands: Commands, function: Callable[..., object]) -> Parser:
    """Add a subcommand: its name and its help are those of the function that does it."""
    added = commands.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
    added.set_defaults(function=function, parser=added)
    added.mixes = True
    return added


def model_command(
    commands: Commands, function: Callable[..., object], file_help: str = FILE, file_nargs: str | None = None
) -> Parser:
    """Add a subcommand on one model (see `streams.model`)."""
    added = command(commands, function)
    added.add_argument("file", metavar="FILE", nargs=file_nargs, help=file_help)
    added.add_argument("--no-check", action="store_true", help="read a refused file, too; say on stderr why it was")
    return added


Value = TypeVar("Value")


def _checked(convert: Callable[[str], Value]) -> Callable[[str], Value]:
    """A type of arguments; where one does not fit, what is wanted is said in the words of the function's docstring."""

    @wraps(convert)
    def checked(text: str) -> Value:
        try:
            return convert(text)
        except ValueError:
            wanted = (convert.__doc__ or "").removesuffix(".")
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted[:1].lower()}{wanted[1:]}") from None

    return checked


@_checked
def byte_offset(text: str) -> int:
    """A number of bytes, in decimal or with 0x in hexadecimal."""
    return int(text, 0)


@_checked
def positive(text: str) -> int:
    """A number from 1 on."""
    return _within(int(text), 1)


@_checked
def number_of_jobs(text: str) -> int:
    """A number from 1 to 1000."""
    return _within(int(text), 1, 1000)  # each takes threads, of which the system has not many more


@_checked
def whole(text: str) -> int:
    """A number from 0 on."""
    return _within(int(text), 0)


def _within(number: int, least: int, most: float = math.inf) -> int:
    if not least <= number <= most:
        raise ValueError(number)
    return number


UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
"""As gguf-split has the larger ones."""


def size(text: str) -> int:
    """A number of bytes from 0 on, perhaps with K, M or G for a thousand, a million or a thousand millions."""
    found = re.fullmatch(r"([0-9]+)([KMG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: give a number of bytes, or one with K, M or G")
    return int(found[1]) * UNITS[found[2]]


@_checked
def words(text: str) -> list[str]:
    """A command in one string, divided as a shell does."""
    found = shlex.split(text)
    if not found:
        raise ValueError(text)
    return found


@_checked
def seconds(text: str) -> float:
    """A number of seconds."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number
