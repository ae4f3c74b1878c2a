"""Why an installed reader judges a file otherwise than what is measured elsewhere says: it may be older."""

import pytest

from gguf_schema.validate import check
from tools.differences import Judged, explanation
from tools.readers import READERS, running


def unexplained(reader: str, files: dict[str, bytes]) -> set[str]:
    """The names of the files on which a reader and its profile differ without a reason that is known.

    Those on which they do not differ are among them.
    """
    if not READERS[reader].is_installed:
        pytest.skip("readers are run on Linux only")
    with running(reader) as process:
        judged = {name: Judged(reader, data, check(data), process.read(data)) for name, data in files.items()}
    return {name for name, one in judged.items() if one.wanted == one.seen or explanation(one) is None}
