"""What public bug reports are about, made anew: the fault of each, in a file as small as it can be."""

from ..case import Row
from . import header, infos, meaning, metadata

ROWS: tuple[Row, ...] = (*header.ROWS, *metadata.ROWS, *infos.ROWS, *meaning.ROWS)
