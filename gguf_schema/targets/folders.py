"""Folders that files are written into."""

import os
from pathlib import Path

from ..errors import GGUFError


def own_folder(folder: str | os.PathLike[str], mark: str) -> Path:
    """A folder that may be written into, because it is ours or is made now.

    Args:
        folder: Its path.
        mark: The file that tells that a folder which is not empty was written before.

    Raises:
        GGUFError: It holds something else.
        OSError: It cannot be made.
    """
    root = Path(folder)
    if root.is_dir() and any(root.iterdir()) and not (root / mark).is_file():
        raise GGUFError(f"{root} is not empty, and holds no {mark} of older files")
    root.mkdir(parents=True, exist_ok=True)
    return root
