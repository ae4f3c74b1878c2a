"""Seeds and a dictionary as a folder, named as OSS-Fuzz wants them for a target called `gguf`."""

import os
import zipfile
from io import BytesIO
from typing import NamedTuple

from ..targets import own_folder, save
from .dictionary import dictionary
from .seeds import seeds

DICTIONARY = "gguf.dict"
SEEDS = "gguf_seed_corpus"
ARCHIVE = f"{SEEDS}.zip"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of files in the archive, so that it is the same every time: the first that a zip archive can tell."""


class Exported(NamedTuple):
    """What was written.

    Attributes:
        sizes: Of each seed, in bytes.
        words: How many are in the dictionary.
    """

    sizes: list[int]
    words: int


def libfuzzer(folder: str | os.PathLike[str]) -> Exported:
    """Write seeds, as files and as an archive, and a dictionary, for libFuzzer, AFL++ and OSS-Fuzz.

    Of seeds that were written there before nothing is left.

    Args:
        folder: The folder, which is made if it is not there.

    Raises:
        GGUFError: It holds something else.
        OSError: It cannot be written.
    """
    root = own_folder(folder, DICTIONARY)
    text = dictionary()
    save(root / DICTIONARY, [text.encode("ascii")])
    made = {f"{number:03}.gguf": data for number, data in enumerate(seeds())}
    (root / SEEDS).mkdir(exist_ok=True)
    for stale in {path.name for path in (root / SEEDS).glob("[0-9][0-9][0-9].gguf")} - made.keys():
        (root / SEEDS / stale).unlink()
    for name, data in made.items():
        (root / SEEDS / name).write_bytes(data)
    save(root / ARCHIVE, [_archive(made)])
    return Exported([len(data) for data in made.values()], text.count("\n"))


def _archive(files: dict[str, bytes]) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data)
    return packed.getvalue()
