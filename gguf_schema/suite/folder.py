"""The suite as a folder."""

import os
from functools import cache
from importlib.resources import files as resources
from pathlib import Path

from ..targets import own_folder, save
from . import suite
from .manifest import manifest

MANIFEST = "suite.json"
STATIC = ("README.md", "run.py", "LICENSE")
"""Texts that are the same for every suite."""


@cache
def files() -> dict[str, bytes]:
    """Every file of the suite by its path in the folder; the same bytes every time."""
    cases = suite()
    static = resources(__package__) / "static"
    return {
        **{name: (static / name).read_bytes() for name in STATIC},
        MANIFEST: manifest(cases).encode(),
        **{case.file: case.made.data for case in cases},
    }


def write(folder: str | os.PathLike[str]) -> None:
    """Write the suite into a folder, which is made if it is not there. Of an older suite there nothing is left.

    Raises:
        GGUFError: The folder holds something else.
        OSError: It cannot be written.
    """
    root = own_folder(folder, MANIFEST)
    wanted = files()
    for stale in stale_files(root):
        stale.unlink()
    for name, data in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            save(path, [data])


def stale_files(root: Path) -> list[Path]:
    """Models in the suite's folders that are no part of it any more."""
    wanted = files()
    folders = {name.partition("/")[0] for name in wanted if "/" in name}
    models = (path for folder in sorted(folders) for path in sorted(root.glob(f"{folder}/*.gguf")))
    return [path for path in models if path.relative_to(root).as_posix() not in wanted]
