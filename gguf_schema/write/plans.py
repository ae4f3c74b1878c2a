"""What will be written, before it is: pieces, where each stands and whence it comes."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..errors import BuildError
from ..layout import Fields, align_up, alignment_of, known_sizes, place
from ..policy import Parsed, errors
from ..schema import GGUFStructs
from ..targets import Piece, Show, Target, Zeros, bytes_piece, save_pieces
from ..terminal import printable


class Change(NamedTuple):
    """Something that will not be as it was.

    Attributes:
        path: The schema path of the field.
        message: What becomes of it.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"changed: {self.path}: {self.message}"


class Plan(NamedTuple):
    """A file that is to be written.

    Attributes:
        pieces: Its parts, which follow each other.
        changes: What will differ from the file that it was made from, where that was asked for.
    """

    pieces: Sequence[Piece]
    changes: Sequence[Change] = ()

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return sum(piece.size for piece in self.pieces)

    def placed(self) -> Iterator[tuple[int, Piece]]:
        """Each piece with its absolute offset."""
        offset = 0
        for piece in self.pieces:
            yield offset, piece
            offset += piece.size

    def save(self, target: Target, *, overwrite: bool = True, show: Show | None = None) -> None:
        """Write the file (see `targets.save_pieces`). Again, too, unless data comes from what gives it only once."""
        save_pieces(target, self.pieces, overwrite=overwrite, show=show)

    def __str__(self) -> str:
        """A table of the pieces, the size, and the changes; text from files is escaped."""
        rows = [
            (str(offset), str(piece.size), printable(piece.what), f"from {printable(piece.content.whence)}")
            for offset, piece in self.placed()
        ]
        rows.insert(0, ("offset", "bytes", "what", "from"))
        offsets, sizes, whats = (max(map(len, column)) for column in list(zip(*rows, strict=True))[:3])
        lines = [
            f"{offset:>{offsets}}  {size:>{sizes}}  {what:{whats}}  {whence}" for offset, size, what, whence in rows
        ]
        changes = [printable(str(change)) for change in self.changes]
        return "\n".join([*lines, f"{self.size} bytes in all", *changes])


def head_of(layout: GGUFStructs, metadata_kv: Sequence[Fields], tensor_infos: Sequence[Fields]) -> bytes:
    """All bytes before the padding and the data.

    Args:
        layout: The constructs of the file.
        metadata_kv: The pairs in the wire form.
        tensor_infos: The infos in the wire form, with offsets.

    Raises:
        BuildError: Something does not fit its field.
    """
    head: bytes = layout.head.build({"metadata_kv": metadata_kv, "tensor_infos": tensor_infos})
    return head


def head_piece(head: bytes) -> Piece:
    """The first piece of a file."""
    return bytes_piece("metadata and tensor infos", head)


def padding(what: str, position: int, alignment: int) -> list[Piece]:
    """Zeros from a position up to the alignment; none where nothing is missing."""
    missing = align_up(position, alignment) - position
    return [Piece(what, missing, Zeros())] if missing else []


def laid_out(head: bytes, data: Sequence[Piece], alignment: int) -> list[Piece]:
    """The pieces of a file whose tensors follow each other, each at the next multiple of the alignment.

    Zeros are before the first, and after each up to the alignment; without tensors nothing follows the head.

    Args:
        head: All bytes before; its infos hold the offsets that `layout.place` gives.
        data: The data of the tensors, in the order of their offsets.
        alignment: In bytes.
    """
    pieces = [head_piece(head), *(padding("padding", len(head), alignment) if data else ())]
    for piece in data:
        pieces += [piece, *padding(f"padding after {piece.what}", piece.size, alignment)]
    return pieces


def canonical_pieces(
    layout: GGUFStructs, metadata_kv: Sequence[Fields], tensor_infos: Sequence[Fields], data: Sequence[Piece]
) -> list[Piece]:
    """The pieces of a canonical file: tensors in the order of the infos, as `laid_out` puts them.

    Args:
        layout: The constructs of the file.
        metadata_kv: The pairs in the wire form; they say the alignment.
        tensor_infos: The infos in the wire form; their offsets are computed.
        data: The data of each.

    Raises:
        BuildError: Something does not fit its field, or `open` would refuse the file.
    """
    alignment = alignment_of(metadata_kv)
    offsets = place([piece.size for piece in data], alignment)
    infos = [{**info, "offset": offset} for info, offset in zip(tensor_infos, offsets, strict=True)]
    head = head_of(layout, metadata_kv, infos)
    pieces = laid_out(head, data, alignment)
    demand_sound(metadata_kv, infos, len(head), sum(piece.size for piece in pieces))
    return pieces


def demand_sound(
    metadata_kv: Sequence[Fields],
    tensor_infos: Sequence[Fields],
    infos_end: int,
    size: int,
    passed: Collection[str] = (),
) -> None:
    """Refuse to make what `open` would refuse.

    Args:
        metadata_kv: The pairs in the wire form.
        tensor_infos: The infos in the wire form.
        infos_end: Bytes of the head.
        size: Bytes of the whole file.
        passed: Codes of faults that are passed over.

    Raises:
        BuildError: With the path of the first fault.
    """
    alignment = alignment_of(metadata_kv)
    places = alignment, infos_end, align_up(infos_end, alignment), size
    for finding in errors(Parsed(metadata_kv, tensor_infos, known_sizes(tensor_infos), *places)):
        if finding.code not in passed:
            raise BuildError(finding.message, finding.path)
