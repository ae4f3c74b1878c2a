"""What must be true of our reader and any file: nothing but GGUFError escapes, its parts agree, and it takes little."""

import io
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import gguf_schema as gs
from gguf_schema.annotate import everything, leaves, map_json
from gguf_schema.explain import explain
from gguf_schema.explain.text import explanation_text
from gguf_schema.mutate import Label
from gguf_schema.validate import PROFILES, REJECT, Fault, check, verdict

SLOW = 1.0
"""Seconds of the processor that a file may take; longer is a hang."""

STUCK = 10
"""Seconds of the processor after which a file is given up."""

STALLED = 600
"""Seconds by the clock after which the process gives up: other processes, or who stops this one, may be at fault."""


class WrongError(Exception):
    """The parts of the reader say different things of a file, or one says what is not so."""


def exercise(data: bytes) -> list[Fault]:
    """Open a file, judge it, parse it and build it again.

    Args:
        data: Any bytes.

    Returns:
        What is said of it.

    Raises:
        WrongError: The parts do not agree.
    """
    found = check(data)
    is_refused = verdict(found, PROFILES["default"]) == REJECT
    if is_opened(data, check=True) == is_refused:
        raise WrongError(
            f"open {'takes' if is_refused else 'refuses'} what check {'refuses' if is_refused else 'takes'}"
        )
    try:
        parsed = gs.GGUF.parse(data)
    except gs.GGUFError:
        if not is_refused:
            raise WrongError("parse refuses what open takes") from None
        return found
    if gs.GGUF.build(parsed) != data:
        raise WrongError("build makes other bytes than were parsed")
    return found


def is_opened(data: bytes, check: bool) -> bool:
    """Whether `open` takes a file."""
    try:
        gs.open(data, check=check).close()
    except gs.GGUFError:
        return False
    return True


def exercise_all(data: bytes) -> list[Fault]:
    """Do also what takes longer: map it, explain it, read all its values and tensors, and write it anew.

    Raises:
        WrongError: The map has gaps, or the new file does not say the same.
    """
    found = exercise(data)
    explanation_text(explain(data))
    try:
        model = gs.open(data, check=False)
    except gs.GGUFError:
        return found
    with model:
        mapped = leaves(model, everything)
        ends = [0, *(entry.end for entry in mapped)]
        if [entry.start for entry in mapped] != ends[:-1] or ends[-1] != len(data):
            raise WrongError("the map has a gap, or goes on past the end")
        map_json(model, mapped)
        for tensor in model.tensors.infos:
            try:
                tensor.data.tobytes()
            except gs.GGUFError:
                return found
        _rewrite(model)
    return found


def _rewrite(model: gs.Model) -> None:
    """Write an open model anew; if that is allowed, the new file says the same."""
    target = io.BytesIO()
    try:
        gs.write(target, model.metadata, model.tensors, order=model.order, version=model.version)
    except gs.GGUFError:
        return
    with gs.open(target.getvalue()) as again:
        if _meaning(again) != _meaning(model):
            raise WrongError("what is written of a model is another one")


def _meaning(model: gs.Model) -> list[Any]:
    """What a model says, in a form that can be compared: floats by their bits.

    Where nobody knows how large a type is, the size depends on what follows the tensor.
    """
    pairs = [(pair["key"], model.layout.metadata_kv.build(pair)) for pair in model.head.metadata_kv]
    tensors = [
        (one.name, one.type, one.dimensions, None if one.block is None else one.data.tobytes())
        for one in model.tensors.infos
    ]
    return [pairs, tensors]


def agrees(label: Label, found: list[Fault]) -> bool:
    """Whether the validator says of a mutant what its label does."""
    is_found = label.rule is None or label.rule in {fault.code for fault in found}
    return is_found and label.expected in (verdict(found, PROFILES["default"]), "unknown")


def problem(data: bytes, label: Label, is_deep: bool) -> str:
    """What goes wrong with a mutant, as a short text that is the same for the same fault; empty if nothing does.

    Args:
        data: The mutant.
        label: Its label.
        is_deep: Whether to do all that can be done.
    """
    wrong, found = escape(exercise_all if is_deep else exercise, data)
    if not wrong and not agrees(label, found):
        return f"contradicts its label: {sorted({fault.code for fault in found})}"
    return wrong


class Stuck(BaseException):
    """A file takes too long. No Exception: nobody is to catch it on the way."""


class Stalled(BaseException):
    """Nothing has come of a file for very long, though it takes no time of the processor. No finding."""


@contextmanager
def watched() -> Iterator[Callable[[], None]]:
    """Raise Stuck where a file takes too long. Yields what starts the clock anew (in the main thread, on POSIX)."""

    def stuck(number: int, frame: FrameType | None) -> None:
        raise Stuck

    def stalled(number: int, frame: FrameType | None) -> None:
        raise Stalled(f"nothing has come of a file for {STALLED} seconds")

    def start(is_on: bool = True) -> None:
        signal.setitimer(signal.ITIMER_PROF, STUCK * is_on)
        signal.setitimer(signal.ITIMER_REAL, STALLED * is_on)

    before = {
        signal.SIGPROF: signal.signal(signal.SIGPROF, stuck),
        signal.SIGALRM: signal.signal(signal.SIGALRM, stalled),
    }
    try:
        yield start
    finally:
        start(is_on=False)
        for number, handler in before.items():
            signal.signal(number, handler)


def escape(run: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """Run something.

    Returns:
        What went wrong, as a short text that is the same for the same fault (empty if nothing did), and the result.
    """
    began = time.process_time()
    try:
        result = run(*arguments)
    except Exception as error:
        return described(error), None
    except Stuck as error:
        return f"hang, {described(error)}", None
    took = time.process_time() - began
    return (f"hang, {took:.1f} s" if took > SLOW else ""), result


def described(error: BaseException) -> str:
    """The error, and the last line of the package that it came through."""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "gguf_schema" in code.co_filename:
            place = f" in {code.co_filename.rpartition('gguf_schema/')[2]}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    text = f": {error}" if isinstance(error, WrongError) else ""
    return f"{type(error).__name__}{text}{place}"
