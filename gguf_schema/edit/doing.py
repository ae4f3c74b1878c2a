"""Doing what was planned, and undoing it."""

import os
from collections.abc import Iterable, Iterator

from .. import journal, targets
from ..errors import GGUFError
from ..file import Model
from ..journal import Record, Span
from ..sources import FileSource, Source
from ..targets import Naming, Piece, Range, Show, Target, bytes_piece, chunks_of, save_pieces
from .parts import NewPart, Zeros
from .planning import Plan


def save(plan: Plan, target: Target, *, overwrite: bool = True, show: Show | None = None) -> None:
    """Make the new file.

    Args:
        plan: Not one of a change in place.
        target: A path or a binary file object.
        overwrite: Whether a file that is there may be replaced; never the one that is read.
        show: Called with the bytes that are written and the whole, often.

    Raises:
        GGUFError: The plan is one of a change in place. It is the file that is read, or that has changed since, or is
            closed.
        BusyError: Somebody edits the file that would be replaced.
        FileExistsError: A file is there that may not be replaced.
        OSError: It cannot be written; a file that was there is left whole.
    """
    _demand_new(plan)
    if isinstance(target, str | os.PathLike) and _is_file_of(plan.model, target):
        raise GGUFError("it is the file that is read, which can only be changed in place")
    save_pieces(target, _pieces(plan.model, plan.parts), overwrite=overwrite, show=show)


def chunks(plan: Plan) -> Iterator[bytes]:
    """The new file in chunks.

    Raises:
        GGUFError: The plan is one of a change in place, or the old file has changed since.
    """
    _demand_new(plan)
    return chunks_of(_pieces(plan.model, plan.parts))


def _demand_new(plan: Plan) -> None:
    if plan.in_place:
        raise GGUFError("the plan is one of a change in place: apply it")


def apply(plan: Plan, show: Show | None = None) -> None:
    """Change the file in place.

    Args:
        plan: In place.
        show: Called with the bytes of a new file that are written and the whole, often.

    Raises:
        BusyError: Somebody else edits the file.
        GGUFError: The file has changed since it was opened, or is closed.
        OSError: The file or its folder cannot be written to; the file is as it was.
    """
    source = plan.model.source
    if not plan.in_place or not isinstance(source, FileSource):
        raise GGUFError("the plan is one of a new file: save it")
    opened = _state(source)
    path = os.path.realpath(source.name)
    with journal.exclusive(path) as handle:
        if os.path.exists(journal.journal_of(path)):
            raise GGUFError("an edit of the file was interrupted: recover it first")
        if source.has_changed() or not os.path.samestat(os.fstat(handle), opened):
            raise GGUFError("the file has changed since it was opened")
        if plan.changes_nothing:
            return
        if plan.record is not None:
            journal.apply(path, handle, plan.record)
            return
        naming = journal.keeping(path, handle, plan.kept)
        save_pieces(path, _pieces(plan.model, plan.parts), show=show, naming=naming)


def undo(path: str | os.PathLike[str], show: Show | None = None) -> None:
    """Put a file back as it was before its last edit in place.

    Args:
        path: The file.
        show: As of `apply`.

    Raises:
        GGUFError: There is nothing to undo, or the file was changed by others since.
        OSError: It cannot be written; the file is as it was.
    """
    real = os.path.realpath(path)

    def rewrite(record: Record, naming: Naming) -> None:
        source = FileSource(real)
        try:
            save_pieces(real, [_piece(source, part) for part in record.parts], show=show, naming=naming)
        finally:
            source.close()

    journal.undo(real, rewrite)


def recover(path: str | os.PathLike[str]) -> bool | None:
    """Mend a file, an edit of which was interrupted: that is undone, unless all of it is on the disk.

    A new file that was to take its place, and was not finished, is removed.

    Returns:
        Whether the file is as edited; None where no edit was interrupted.

    Raises:
        BusyError: Somebody edits the file just now.
        GGUFError: It was changed by others since.
        OSError: It cannot be written.
    """
    real = os.path.realpath(path)
    with journal.exclusive(real) as handle:
        for name in real, journal.journal_of(real), journal.undo_of(real):
            targets.remove_leftovers(name)
        return journal.recover(real, handle)


def _is_file_of(model: Model, path: str | os.PathLike[str]) -> bool:
    """Whether a path is the file that is open."""
    source = model.source
    if not isinstance(source, FileSource) or not os.path.exists(path):
        return False
    return os.path.samestat(os.stat(path), _state(source))


def _state(source: FileSource) -> os.stat_result:
    """That of an open file."""
    if source.file.closed:
        raise GGUFError("the file is closed")
    return os.fstat(source.file.fileno())


def _pieces(model: Model, parts: Iterable[NewPart]) -> list[Piece]:
    return [_piece(model.source, part) for part in parts]


def _piece(source: Source, part: NewPart) -> Piece:
    if isinstance(part, Zeros):
        return Piece("padding", part.size, targets.Zeros())
    if isinstance(part, Span):
        return Piece("what was there", part.size, Range(source, part.start))
    return bytes_piece("what is new", part)
