"""The suite, for the world: files with one fault or one feature, what is to be read of them, and who refuses them.

`case` says what a case is. The modules that are called as those of `validate` have a pair for each rule, a file that
breaks it and a good twin; `features` has good files, `reports` what public bug reports are about. Files are made by
`draft`, from the schema's constructs; `manifest` tells of them, and `folder` writes them.

Verdicts are declared, never asked of the validator, so that both can be compared. Those of readers were measured.
"""

from functools import cache

from . import content, data, features, header, infos, meaning, metadata, reports, unreadable, weights
from .case import Case, Pair

PAIRS: tuple[Pair, ...] = (
    *unreadable.PAIRS,
    *header.PAIRS,
    *metadata.PAIRS,
    *infos.PAIRS,
    *data.PAIRS,
    *meaning.PAIRS,
    *content.PAIRS,
    *weights.PAIRS,
)


@cache
def suite() -> tuple[Case, ...]:
    """All cases, in the order of their names' folders."""
    rules = (case for pair in PAIRS for case in pair.cases())
    return (*rules, *(row.case() for row in (*features.rows(), *reports.ROWS)))
