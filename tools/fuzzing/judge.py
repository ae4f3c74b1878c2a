"""Try our reader on files that come on standard input, as `gguf-schema fuzz --stream` writes them; stop at a fault.

    gguf-schema fuzz --stream | python -m tools.fuzzing.judge

The reader may be another copy of the package than the one that makes the files.
"""

import json
import sys
from collections.abc import Iterator
from typing import BinaryIO

from gguf_schema.mutate import Label
from tools.fuzzing.exercise import problem, watched

DEEP = 8
"""Of so many files one is put through everything."""


def framed(stream: BinaryIO) -> Iterator[tuple[Label, bytes]]:
    """The files, each behind a line of JSON that tells its label and its size.

    Raises:
        EOFError: The stream ends within a file.
    """
    while line := stream.readline():
        record = json.loads(line)
        data = stream.read(record["size"])
        if len(data) < record["size"]:
            raise EOFError("the files end within one")
        yield Label(*(record[field] for field in Label._fields)), data


def main() -> int:
    """Say what is wrong with the first file with which something is; exit status 1."""
    with watched() as restart:
        for number, (label, data) in enumerate(framed(sys.stdin.buffer)):
            restart()
            if found := problem(data, label, is_deep=number % DEEP == 0):
                print(json.dumps({"problem": found, "files": number + 1, "size": len(data), **label._asdict()}))
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
