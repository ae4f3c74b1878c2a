"""What must be true of our reader and any file: nothing but GGUFError escapes, its parts agree, and it takes little."""

import contextlib
import io
import math
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import gguf_schema as gs
from gguf_schema import edit
from gguf_schema.annotate import Entry, entries, everything, map_json
from gguf_schema.convert import convert
from gguf_schema.diff import differences
from gguf_schema.explain import explain
from gguf_schema.explain.text import explanation_text
from gguf_schema.extract import raw
from gguf_schema.hashing import hashes
from gguf_schema.limits import MAX_SIZE
from gguf_schema.mutate import Label
from gguf_schema.mutate.base import BEHIND, IN_VALUE, INDEX, KINDS
from gguf_schema.shards import split
from gguf_schema.validate import PROFILES, REJECT, Fault, check, verdict
from gguf_schema.validate.rule import ERROR, NOTE

SLOW = 1.0
"""Seconds of the processor that a file may take; longer is a hang."""

STUCK = 10
"""Seconds of the processor after which a file is given up."""

STALLED = 600
"""Seconds by the clock after which the process gives up: other processes, or who stops this one, may be at fault."""


MOST = 4
"""Tensors that are used each."""


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
    """Do also what takes longer: map it, explain it, read all its values and tensors in every way, and write it anew.

    Raises:
        WrongError: The map has gaps, faults are not where they are said to be, tensors are not what their infos say,
            another way to read the file gives something else, or the new file does not say the same.
    """
    found = exercise(data)
    explanation_text(explain(data))
    for fault in found:
        if not fault.message or not 0 <= fault.start <= fault.end <= len(data):
            raise WrongError(f"{fault.code} says nothing, or lies outside of the file")
    try:
        model = gs.open(data, check=False)
    except gs.GGUFError as error:
        if (error.path, error.offset) not in _errors(found):
            raise WrongError("check does not find where the parse ends") from None
        _known(found)
        return found
    with model:
        mapped = entries(model, everything)
        _mapped_whole(mapped, len(data))
        map_json(model, mapped)
        _placed(found, model, mapped)
        is_whole = verdict(found, PROFILES["default"]) != REJECT
        meaning = _meaning(model, data, is_whole)
        _read_otherwise(data, found, meaning, is_whole)
        if None not in meaning:
            _rewrite(model, meaning, is_good=all(fault.severity == NOTE for fault in found))
    return found


def _known(found: list[Fault]) -> None:
    """All faults are at paths that the format has."""
    for fault in found:
        if not (INDEX.sub("[]", fault.path) in KINDS or IN_VALUE.match(fault.path)):
            raise WrongError(f"{fault.code} is at no field: {fault.path}")


def _mapped_whole(mapped: list[Entry], size: int) -> None:
    """The leaves of the map tile the file."""
    leaves = [entry for entry in mapped if entry.is_leaf]
    ends = [0, *(entry.end for entry in leaves)]
    if [entry.start for entry in leaves] != ends[:-1] or ends[-1] != size:
        raise WrongError("the map has a gap, or goes on past the end")


def _errors(found: list[Fault]) -> Counter[tuple[str, int | None]]:
    """Path and offset of all errors."""
    return Counter((fault.path, fault.start) for fault in found if fault.severity == ERROR)


def _placed(found: list[Fault], model: gs.Model, mapped: list[Entry]) -> None:
    """Errors are those that `open` refuses a file for; all faults are at fields of the head, or behind it."""
    if _errors(found) != Counter((error.path, error.offset) for error in model.faults()):
        raise WrongError("check finds other errors than open")
    places = {entry.path: (entry.start, entry.end) for entry in mapped}
    for fault in found:
        if KINDS.get(INDEX.sub("[]", fault.path)) in BEHIND:
            if fault.start < model.infos_end:
                raise WrongError(f"{fault.code} at {fault.path} lies in the head")
        elif places.get(fault.path) != (fault.start, fault.end):
            raise WrongError(f"{fault.code} is not where it is said to be")


def _meaning(model: gs.Model, data: bytes, is_whole: bool) -> list[Any]:
    """What a model says, in a form that can be compared, floats by their bits: its pairs, and then its tensors.

    Args:
        model: The open file.
        data: Its bytes.
        is_whole: Whether the data of all tensors whose blocks are known must be there; else it may be that of a tensor
            is None.

    Raises:
        WrongError: A tensor is not what its info and the file say.
    """
    layout, head = model.layout, model.head
    pairs = [(pair["key"], layout.metadata_kv.build(pair)) for pair in head.metadata_kv]
    infos = zip(head.tensor_infos, model.tensors.infos, strict=True)
    return [pairs, *(_told(tensor, info, model.data_offset, data, is_whole) for info, tensor in infos)]


def _told(tensor: gs.Tensor, info: Any, data_offset: int, data: bytes, is_whole: bool) -> tuple[Any, ...] | None:
    """What a tensor says."""
    told = tensor.name, tensor.type, tensor.dimensions
    shape = tuple(info["dimensions"])[::-1]
    if told != (info["name"], info["type"], shape[::-1]) or tensor.shape != shape:
        raise WrongError("a tensor is not as its info says")
    try:
        array = tensor.data
    except gs.GGUFError:
        if is_whole and tensor.block is not None and _is_array(_in_blocks(tensor), tensor.block.type_size):
            raise WrongError("the data of a tensor cannot be read") from None
        return None if tensor.block else (*told, None)  # nobody knows where the last one of an unknown type ends
    start = data_offset + info["offset"]
    if array.tobytes() != data[start : start + array.nbytes]:
        raise WrongError("the data of a tensor is not that of the file")
    if tensor.block is None:
        return *told, None
    if is_whole and (array.shape, array.nbytes) != (_in_blocks(tensor), tensor.n_bytes):
        raise WrongError("the data of a tensor has another shape than its info says")
    return *told, array.tobytes()


def _in_blocks(tensor: gs.Tensor) -> tuple[int, ...]:
    """The shape in blocks, of a type whose blocks are known."""
    assert tensor.block is not None
    first, *others = tensor.dimensions or (1,)
    return (*others[::-1], first // tensor.block.block_size) if tensor.dimensions else ()


def _is_array(shape: tuple[int, ...], item: int) -> bool:
    """Whether numpy has arrays of this shape; where a dimension is 0, it multiplies the others all the same."""
    return math.prod(filter(None, shape)) * item <= MAX_SIZE


def _read_otherwise(data: bytes, found: list[Fault], meaning: list[Any], is_whole: bool) -> None:
    """A file object and a path say the same as bytes; a path may be one of several, which are not there."""
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        file.write(data)
        for name, source in ("file object", lambda: io.BytesIO(data)), ("path", lambda: file.name):
            if check(source()) != found:
                raise WrongError(f"check finds something else in a {name}")
            with contextlib.suppress(gs.ShardError), gs.open(source(), check=False) as model:
                if _meaning(model, data, is_whole) != meaning:
                    raise WrongError(f"open reads something else of a {name}")
                _use(model)


def _use(model: gs.Model) -> None:
    """Hash, extract, compare, edit, convert and split a model: each is done, or refused."""
    names = list(model.tensors)
    uses: list[Callable[[], object]] = [
        lambda: list(hashes(model)),
        lambda: list(differences(model, model)),
        lambda: edit.plan(model, [edit.Set("a.new.key", 1, "UINT8")]),
        lambda: convert(model, order=">" if model.order == "<" else "<", any_type=True),
        lambda: convert(model, alignment=1 << 10),
        lambda: split(model, max_tensors=1),
        *(partial(_take, raw(model, name)) for name in names[:MOST]),
        *(partial(edit.plan, model, [edit.DeleteTensor(name)]) for name in names[:MOST]),
    ]
    for use in uses:
        with contextlib.suppress(gs.GGUFError):
            use()


def _take(chunks: Iterable[bytes]) -> None:
    for _ in chunks:
        pass


def _rewrite(model: gs.Model, meaning: list[Any], is_good: bool) -> None:
    """Write an open model anew; if that is allowed, which it is where nothing is wrong, the new file says the same."""
    target = io.BytesIO()
    try:
        gs.write(target, model.metadata, model.tensors, order=model.order, version=model.version)
    except gs.GGUFError:
        if is_good:
            raise WrongError("a good model is not written") from None
        return
    data = target.getvalue()
    with gs.open(data) as again:
        layouts = [(one.order, one.version, one.alignment) for one in (model, again)]
        if layouts[0] != layouts[1] or _meaning(again, data, is_whole=True) != meaning:
            raise WrongError("what is written of a model is another one")


def agrees(label: Label, found: list[Fault]) -> bool:
    """Whether the validator says of a mutant what its label does, and where it does."""
    is_found = label.rule is None or any(
        fault.code == label.rule and _follows(fault.path, label.path) for fault in found
    )
    return is_found and label.expected in (verdict(found, PROFILES["default"]), "unknown")


def _follows(fault: str, changed: str) -> bool:
    """Whether a fault may come of a change: it is at a count, or all pairs, or what is changed or follows it; where
    tensors lie is at fault in their infos.
    """
    at, after = _place(fault), _place(changed)
    return at >= after or at[0] == 0 or fault == "metadata_kv" or after[0] > len(PARTS)


PARTS = ("metadata_kv", "tensor_infos")


def _place(path: str) -> tuple[int, int]:
    """Where a path stands among the parts of a file: the header, pairs, infos, and what is behind them."""
    part, _, rest = path.partition("[")
    if part in PARTS:
        return 1 + PARTS.index(part), int(rest.partition("]")[0] or -1)
    return (1 + len(PARTS) if KINDS.get(part) in BEHIND else 0), 0


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
