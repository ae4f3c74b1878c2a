"""Opening a model in shards by the name of any of them, and whether the files belong together."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from .. import file
from ..errors import CheckError, GGUFError, ShardError, TruncatedError
from ..file import Model
from ..keys import SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS, Key
from ..limits import MAX_NESTING
from ..schema import ORDER_NAMES
from .names import ShardName

CUT = ("data-missing", "data-start-missing")
"""Faults of a file that ends too early."""


def open(source: Any, *, check: bool = True, max_nesting: int = MAX_NESTING, shards: bool = True) -> Model:
    """Open a GGUF file, or a model in shards by the name of any of them: read metadata and tensor infos, of any size.

    Args:
        source: A path; a bytes-like object; or a binary file object, read from its current position, which stays the
            caller's to close.
        check: Refuse files that can be read in more than one way or not safely (see `policy`).
        max_nesting: Levels of arrays of arrays that are read. Python's stack allows some 60.
        shards: Open all shards of a model, if the file is one (its `split.count` is above 1) and is called so
            (`NAME-00002-of-00003.gguf`): metadata is that of the first but `split.*`, tensors are those of all, and
            each knows its `file` and the number of its `shard`. False opens the file alone.

    Returns:
        The open file, or the first shard. Close it, or use it in a `with` statement: paths stay open until then.

    Raises:
        ParseError: It is no GGUF file, or ends too early; FileKindError, TruncatedError and NestingError say more.
        CheckError: It has a fault for which it is refused.
        ShardError: A shard is missing, cut, another's, there twice, or not called as it should be.
        OSError: The path cannot be read.
    """
    opened = file.open(source, check=check, max_nesting=max_nesting)
    count, number = (_number(opened, key) for key in (SPLIT_COUNT, SPLIT_NO))
    opened.shard = number or 0
    name = ShardName.of(source) if isinstance(source, str | os.PathLike) else None
    if not shards or name is None or count is None or count < 2:
        return opened
    with ExitStack() as stack:
        stack.callback(opened.close)
        first = _whole(name, opened, check, max_nesting)
        stack.pop_all()
    return first


def open_shards(source: str | os.PathLike[str]) -> Model:
    """Open all shards of a model, of which there may be but one, by the name of any of them.

    Raises:
        GGUFError: As `open`; or it is no shard, or not called like one.
        OSError: The path cannot be read.
    """
    name = ShardName.of(source)
    if name is None:
        problem = "is not called like a shard: NAME-00001-of-00003.gguf is expected"
        raise ShardError(f"{os.fsdecode(source)} {problem}", "shard-name")
    opened = file.open(source)
    with ExitStack() as stack:
        stack.callback(opened.close)
        if _number(opened, SPLIT_COUNT) is None:
            raise _wrong(name, f"is no shard: it has no {SPLIT_COUNT.template}", "shard-foreign")
        first = _whole(name, opened, True, MAX_NESTING)
        stack.pop_all()
    return first


def _whole(name: ShardName, opened: Model, check: bool, max_nesting: int) -> Model:
    """The first shard of a set, one of which is open, with all others.

    Raises:
        ShardError: They do not make a model. What was opened here is closed.
    """
    count = _number(opened, SPLIT_COUNT)
    if count != name.shards:
        raise _wrong(name, f"is not called as it should be: it is one of {count} shards", "shard-name")
    names = name.all()
    missing = [str(each) for each in names if not os.path.exists(str(each))]
    if missing:
        shown = ", ".join(missing[:SHOWN]) + (f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else "")
        problem = f"{len(missing)} of {name.shards} shards missing: {shown}"
        raise ShardError(problem, "shard-missing")
    with ExitStack() as stack:
        shards = []
        for each in names:
            if each.number != name.number:
                shards.append(_opened(each, check, max_nesting))
                stack.callback(shards[-1].close)
            else:
                shards.append(opened)
        _demand_set(names, shards)
        stack.pop_all()
    for number, shard in enumerate(shards):
        shard.shard = number
    first, *later = shards
    first.later = tuple(later)
    return first


SHOWN = 5
"""Missing files that a message names."""


def _opened(name: ShardName, check: bool, max_nesting: int) -> Model:
    if not os.path.isfile(str(name)):  # a pipe would wait for whoever writes
        raise _wrong(name, "cannot be read: it is no file", "shard-unreadable")
    try:
        return file.open(str(name), check=check, max_nesting=max_nesting)
    except GGUFError as error:
        is_cut = isinstance(error, TruncatedError) or (isinstance(error, CheckError) and error.code in CUT)
        raise _wrong(name, f"cannot be read: {error}", "shard-truncated" if is_cut else "shard-unreadable") from error
    except OSError as error:
        raise _wrong(name, f"cannot be read: {error.strerror or error}", "shard-unreadable") from error


def _demand_set(names: Sequence[ShardName], shards: Sequence[Model]) -> None:
    """Refuse files that are not the shards of one model, each once.

    Raises:
        ShardError: With the file that does not belong to the others.
    """
    whole = _number(shards[0], SPLIT_TENSORS)
    if whole is None:
        raise _wrong(names[0], f"has no {SPLIT_TENSORS.template}", "shard-tensors")
    numbers = [_number(shard, SPLIT_NO) for shard in shards]
    held: dict[str, ShardName] = {}
    for name, shard, number in zip(names, shards, numbers, strict=True):
        count, tensors = (_number(shard, key) for key in (SPLIT_COUNT, SPLIT_TENSORS))
        if count is None:
            raise _wrong(name, f"is no shard: it has no {SPLIT_COUNT.template}", "shard-foreign")
        if shard.order != shards[0].order:
            orders = [f"{ORDER_NAMES[each.order]}-endian" for each in (shard, shards[0])]
            raise _wrong(name, f"is of another set: it is {orders[0]}, the first shard is {orders[1]}", "shard-foreign")
        if count != name.shards or tensors != whole:
            problem = f"is of another set: {count} shards, {tensors} tensors; {name.shards} and {whole} are expected"
            raise _wrong(name, problem, "shard-foreign")
        if number != name.number:
            if number is not None and number < len(numbers) and numbers[number] == number:
                raise _wrong(name, f"is the same shard as {names[number]}", "shard-twice")
            found = "says no number" if number is None else f"is shard {number + 1}"
            raise _wrong(name, f"is not called as it should be: it {found}", "shard-name")
        for info in shard.head.tensor_infos:
            if info["name"] in held:
                problem = f"has a tensor {info['name']!r}, as {held[info['name']]} has"
                raise _wrong(name, problem, "shard-tensor-twice")
            held[info["name"]] = name
    if len(held) != whole:
        problem = f"the shards of {names[0].prefix} have {len(held)} tensors; {whole} are expected"
        raise ShardError(problem, "shard-tensors")


def _number(model: Model, key: Key) -> int | None:
    """What a file says of its place; None where it says nothing that counts."""
    for pair in model.head.metadata_kv:
        if pair["key"] == key.template:
            value = pair["value"]
            return int(value) if pair["value_type"] == key.type else None
    return None


def _wrong(name: ShardName, problem: str, code: str) -> ShardError:
    return ShardError(f"{name} {problem}", code)
