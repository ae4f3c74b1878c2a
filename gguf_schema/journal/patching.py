"""Changes in place: whole or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..errors import GGUFError
from ..targets import JOURNAL, UNDO, Naming, replacing, sync_folder, undisturbed
from .locking import demand_named, demand_writable, exclusive, is_busy, is_writable
from .record import (
    ADVICE,
    START,
    Change,
    Identity,
    Record,
    Span,
    identity,
    load,
    read_at,
    reverse,
    to_bytes,
    write_at,
    write_durably,
)


def journal_of(path: str | os.PathLike[str]) -> str:
    """Where the record of a change that is under way stands: beside the file that is meant, behind links."""
    return os.path.realpath(path) + JOURNAL


def undo_of(path: str | os.PathLike[str]) -> str:
    """Where the record of the last change stands."""
    return os.path.realpath(path) + UNDO


def apply(path: str, handle: int, record: Record) -> None:
    """Change a file in place.

    What is overwritten is on the disk, in the journal, before the first byte is touched. Whatever interrupts the
    change, an error, a signal or the power, the file is as it was or as it becomes, now or after `recover`.

    Args:
        path: The file.
        handle: Its descriptor, from `exclusive`.
        record: Of a change in place.

    Raises:
        GGUFError: The file is no longer the one that the record tells of, or no record can stand beside it.
        OSError: The file or its folder cannot be written to; the file is as it was, unless all that failed is to
            remove the journal of an undoing.
    """
    if not _is(handle, record.before):
        raise GGUFError("the file has changed since the edit was planned")
    demand_named(path, handle)
    demand_writable(path)
    _demand_places(path)
    journal = journal_of(path)
    has_undo = record.is_undo or _is_dated(path, handle)
    try:
        write_durably(journal, to_bytes(record), path)
    except BaseException:
        _remove(journal)  # the file is untouched
        raise
    try:
        _write(handle, [(change.start, change.new) for change in record.changes()])
        if record.is_undo:
            _remove(undo_of(path), journal)
        else:
            _date(journal, os.fstat(handle))
            os.replace(journal, undo_of(path))
    except BaseException:
        if _is_under_way(path, record):
            _put_back(path, handle, record, has_undo)
        raise


def _is_dated(path: str, handle: int) -> bool:
    """Whether the record of the last change is of the time of the file, so that it can be undone."""
    try:
        return os.stat(undo_of(path)).st_mtime_ns == os.fstat(handle).st_mtime_ns
    except FileNotFoundError:
        return False


def _is_under_way(path: str, record: Record) -> bool:
    """Whether a change that has begun is not done: an error may come just behind the call that makes it so."""
    needed = (journal_of(path), undo_of(path)) if record.is_undo else (journal_of(path),)
    return all(map(os.path.lexists, needed))


def _put_back(path: str, handle: int, record: Record, has_undo: bool) -> None:
    """Undo a change that is under way. Until the file is on the disk as it was, the journal stays for `recover`.

    Args:
        path: The file.
        handle: Its descriptor.
        record: Of the change.
        has_undo: Whether the change before can be undone, so that its record needs the new time of the file.
    """
    _write(handle, [(change.start, change.old) for change in record.changes()])
    if has_undo and os.path.exists(undo_of(path)):
        _date(undo_of(path), os.fstat(handle))
    _remove(journal_of(path))


def _demand_places(path: str) -> None:
    """Refuse a change whose record could not stand beside the file.

    Raises:
        GGUFError: Something else is there, or the name of the file is too long.
    """
    for place in journal_of(path), undo_of(path):
        try:
            os.lstat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise GGUFError(f"{place}, which a change in place needs, cannot be made: {error.strerror}") from None
        if not _is_ours(place):
            raise GGUFError(f"{place} is there, and is no record of an edit: it is not overwritten")


def _is_ours(place: str) -> bool:
    """Whether a file begins as a record of a change."""
    if not os.path.isfile(place):
        return False
    with open(place, "rb") as file:
        return file.read(len(START)) == START


def _remove(*paths: str) -> None:
    """Remove files, in this order, of which some may be gone."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def keeping(path: str, handle: int, record: Record | None) -> Naming:
    """What leaves the record of a rewrite for `undo`, instead of that of an earlier change; or none.

    The record is on the disk before the new file gets its name, and gets its own just behind it: whatever fails until
    then leaves the old file, and the old record. Where it is killed between, the new file has none, which `undo` tells.

    Args:
        path: The file.
        handle: Its descriptor, from `exclusive`. If another file is there when the new one is whole, that stays.
        record: How to undo the rewrite; None where that is impossible.

    Raises:
        GGUFError: No record can stand beside the file, or this one is too large.
    """
    _demand_places(path)
    return _forgetting(path, handle) if record is None else _leaving(path, handle, to_bytes(record))


def _leaving(path: str, handle: int, record: bytes) -> Naming:
    """What leaves the record of a rewrite."""

    @contextlib.contextmanager
    def naming(changed: os.stat_result) -> Iterator[None]:
        demand_named(path, handle)
        with undisturbed(), contextlib.ExitStack() as stack:
            file = stack.enter_context(replacing(undo_of(path), True, len(record), like=path))
            write_at(file.fileno(), 0, record)
            os.fsync(file.fileno())
            yield
            with contextlib.suppress(OSError):  # the new file is there, and cannot be undone
                stack.close()
                _date(undo_of(path), changed)

    return naming


def _forgetting(path: str, handle: int) -> Naming:
    """What removes the record of the last change as soon as the new file has its name."""

    @contextlib.contextmanager
    def naming(changed: os.stat_result) -> Iterator[None]:
        demand_named(path, handle)
        yield
        with contextlib.suppress(OSError):  # it is of another time than the file, and undoes nothing
            _remove(undo_of(path))

    return naming


def recover(path: str, handle: int) -> bool | None:
    """Mend a file whose change was interrupted. A change that is complete on the disk stays; any other is undone.

    Args:
        path: The file.
        handle: Its descriptor, from `exclusive`.

    Returns:
        Whether the file has the change now, or of an undoing the change that was to be undone; None where none was
        interrupted.

    Raises:
        GGUFError: The journal is damaged, or the file was changed by others since.
        OSError: The file cannot be written.
    """
    journal = journal_of(path)
    if not os.path.exists(journal):
        return None
    demand_writable(path)
    record = load(journal)
    if not record.is_in_place:
        raise GGUFError(f"{journal} is no journal of a change in place: {ADVICE}")
    if _is(handle, record.after):
        os.fsync(handle)
        if record.is_undo:
            _remove(undo_of(path), journal)
            return False
        _date(journal, os.fstat(handle))
        os.replace(journal, undo_of(path))
        sync_folder(os.path.dirname(journal))
        return True
    old = [(change.start, change.old) for change in record.changes()]
    if not _is(handle, record.before, old) or not all(_is_between(handle, change) for change in record.changes()):
        raise GGUFError(
            f"{journal} is of an interrupted edit, but the file is not what that left: "
            "if the file is whole, remove the journal"
        )
    _put_back(path, handle, record, record.is_undo)
    return record.is_undo


def undo(path: str, rewrite: Callable[[Record, Naming], None]) -> None:
    """Undo the last change of a file.

    Args:
        path: The file; not a symbolic link.
        rewrite: Called, where the change was not in place or the file may not be written to, to put the file as it was
            in its place: with the record, and with what goes with that.

    Raises:
        GGUFError: There is nothing to undo, or the file was changed by others since.
        OSError: It cannot be written; the file is as it was.
    """
    with exclusive(path) as handle:
        if recover(path, handle) is False:
            return  # the last change was interrupted, or its undoing was: it is undone
        place = undo_of(path)
        if not os.path.exists(place):
            raise GGUFError(f"there is nothing to undo: {place} is not there")
        record = load(place)
        if not _is(handle, record.after):
            raise GGUFError(
                "the file has changed since its last edit, or that was interrupted, and cannot be undone any more: "
                f"{place}, which was kept for that, may be removed"
            )
        if not _is_dated(path, handle):
            raise GGUFError(
                f"the file has changed since its last edit: it has another time than {place}; "
                f"if it was only copied or touched, `touch -r {path} {place}` lets it be undone"
            )
        if record.is_in_place and is_writable(path):
            apply(path, handle, reverse(record))
        else:
            rewrite(record, _forgetting(path, handle))


def trouble(path: str | os.PathLike[str]) -> str | None:
    """What a reader of a file should know of: that it is just being changed in place, or a change was interrupted."""
    if not os.path.exists(journal_of(path)):
        return None
    if is_busy(os.path.realpath(path)):
        return "it is just being edited, and may be half old and half new"
    return "an edit of it was interrupted, it may be half old and half new: `gguf-schema edit --recover` mends it"


def _date(record: str, changed: os.stat_result) -> None:
    """Give a record the time of the file as it is after the change: a file of another time was changed by others."""
    os.utime(record, ns=(changed.st_atime_ns, changed.st_mtime_ns))


def _is(handle: int, known: Identity, put: Sequence[tuple[int, bytes]] = ()) -> bool:
    """Whether an open file is the one that is known, if some bytes were others."""
    if os.fstat(handle).st_size != known.size:
        return False
    return identity(known.size, _found(handle, known.checked, put)) == known


def _found(handle: int, ranges: Sequence[Span], put: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytearray]]:
    """What stands in ranges of an open file, if some bytes were others."""
    for start, size in ranges:
        part = bytearray(read_at(handle, start, size))
        for position, data in put:
            if start <= position < start + size:
                part[position - start : position - start + len(data)] = data
        yield start, part


def _is_between(handle: int, change: Change) -> bool:
    """Whether every byte of a range is the old one or the new one."""
    found, old, new = (
        np.frombuffer(data, np.uint8)
        for data in (read_at(handle, change.start, len(change.old)), change.old, change.new)
    )
    return len(found) == len(old) and bool(np.all((found == old) | (found == new)))


def _write(handle: int, parts: list[tuple[int, bytes]]) -> None:
    for position, data in parts:
        write_at(handle, position, data)
    os.fsync(handle)
