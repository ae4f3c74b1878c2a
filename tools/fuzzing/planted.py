"""Small faults, each planted in a copy of the package that is then tried: what fuzzing is worth is what it finds."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """A fault that somebody might make.

    Attributes:
        name: What it is.
        module: Where it is made.
        right: The text that stands there, once.
        wrong: What it is made to be.
    """

    name: str
    module: str
    right: str
    wrong: str


FAULTS = (
    Fault(
        "the fast form of a string goes on behind the bytes that it has",
        "constructs/records.py",
        '"if position > end:",',
        '"if position > end + 1:",',
    ),
    Fault(
        "a count of items is compared with twice the bytes left",
        "constructs/core.py",
        "if count * self.item_minimum > (max",
        "if count * self.item_minimum > 2 * (max",
    ),
    Fault("a version too many is known", "schema.py", "VERSIONS = (1, 2, 3)", "VERSIONS = (1, 2, 3, 4)"),
    Fault(
        "padding is never empty",
        "layout.py",
        "return -(-position // alignment) * alignment",
        "return (position // alignment + 1) * alignment",
    ),
    Fault(
        "a key may stand twice, if it does so at once",
        "policy.py",
        "if first.setdefault(name, index) != index:",
        "if first.setdefault(name, index) < index - 1:",
    ),
    Fault("multiples of 4 are alignments", "policy.py", "or number % 8 == 0)", "or number % 4 == 0)"),
    Fault(
        "an alignment may be an INT32",
        "policy.py",
        'if pair["value_type"] != GGUFValueType.UINT32:',
        'if pair["value_type"] not in (GGUFValueType.UINT32, GGUFValueType.INT32):',
    ),
    Fault("a dimension too many is allowed", "limits.py", "MAX_DIMENSIONS = 8", "MAX_DIMENSIONS = 9"),
    Fault("tensor types go on to 2^32", "limits.py", "MAX_TYPE = 2**31 - 1", "MAX_TYPE = 2**32 - 1"),
    Fault(
        "a tensor may end a byte behind the file",
        "policy.py",
        'if info["offset"] + size <= available or',
        'if info["offset"] + size <= available + 1 or',
    ),
    Fault(
        "a BOOL byte is made 0 or 1 when it is read",
        "constructs/numbers.py",
        "return bool(obj) if obj in (0, 1) else obj",
        "return bool(obj)",
    ),
    Fault("offsets are multiples of 8, not of the alignment", "policy.py", '"] % alignment:', '"] % 8:'),
    Fault("the nesting limit is one too high", "limits.py", "MAX_NESTING = 16", "MAX_NESTING = 17"),
    Fault(
        "nothing is written",
        "write/__init__.py",
        "    new.save(target, overwrite=overwrite, show=show)",
        '    from ..errors import GGUFError\n\n    raise GGUFError("not today")',
    ),
    Fault(
        "all is written little-endian",
        "write/__init__.py",
        "    new = plan(metadata, tensors, order=order, version=version, alignment=alignment)",
        '    new = plan(metadata, tensors, order="<", version=version, alignment=alignment)',
    ),
    Fault(
        "the data of Q8_0 cannot be read",
        "file.py",
        "        if self.n_bytes is None:",
        "        if self.n_bytes is None or self.type == 8:",
    ),
    Fault("shapes are as in the file", "file.py", "return self.dimensions[::-1]", "return self.dimensions"),
    Fault("views of memory begin elsewhere", "sources.py", "return self._open(), position", "return self._open(), 0"),
    Fault(
        "a file object is read from its beginning",
        "sources.py",
        "return _read_at(self.file, self.start + position, size, self.start + self.size)",
        "return _read_at(self.file, position or 1, size, self.size)",
    ),
    Fault(
        "what lies behind the end is asked for",
        "sources.py",
        "    size = min(size, end - position)",
        "    size = size if position >= end else min(size, end - position)",
    ),
    Fault(
        "files on disk are mapped elsewhere",
        "sources.py",
        "            return self.map, position",
        "            return self.map, 0",
    ),
    Fault(
        "arrays of strings lose their last one when they become plain",
        "values.py",
        'return ArrayType(array["type"]), array["array"]',
        'return ArrayType(array["type"]), array["array"][: 3 if array["type"] is T.STRING else None]',
    ),
    Fault(
        "faults have no message",
        "validate/__init__.py",
        "size if end is None else end, finding.message)",
        'size if end is None else end, "")',
    ),
    Fault(
        "faults begin with the file",
        "validate/__init__.py",
        "severity, finding.path, start, size",
        "severity, finding.path, 0, size",
    ),
    Fault(
        "faults are at no field",
        "validate/__init__.py",
        "severity, finding.path, start, size",
        'severity, "x", start, size',
    ),
    Fault(
        "one error too many is found in files that are refused",
        "validate/__init__.py",
        "    places = subject.places(",
        '    found += [found[0]._replace(path="version")] if passed == [] and any(\n'
        '        BY_CODE[one.code].severity == "error" for one in found\n'
        "    ) else []\n"
        "    places = subject.places(",
    ),
)


class Hit(NamedTuple):
    """What was found in a copy.

    Attributes:
        seconds: How long it took.
        finding: What was found (see `judge`); empty if nothing was.
    """

    seconds: float
    finding: dict[str, Any]


@contextmanager
def copy_of(fault: Fault) -> Iterator[Path]:
    """A folder with a copy of the package, in which the fault is made, and of the tools.

    Raises:
        ValueError: The text that is to be replaced does not stand there once.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in ("gguf_schema", "tools"):
            shutil.copytree(ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder, "gguf_schema", fault.module)
        text = path.read_text()
        if text.count(fault.right) != 1:
            raise ValueError(f"{fault.right!r} stands {text.count(fault.right)} times in {fault.module}")
        path.write_text(text.replace(fault.right, fault.wrong))
        yield Path(folder)


def hunt(fault: Fault, files: int, seed: int) -> Hit:
    """Plant a fault in a copy, and try the copy on files that the package as it is makes, until the fault shows.

    Args:
        fault: The fault.
        files: How many to try at most.
        seed: Of the files.

    Raises:
        RuntimeError: The copy cannot be tried, or there are fewer files than there should be.
    """
    with copy_of(fault) as folder:
        began = time.monotonic()
        making = [sys.executable, "-m", "gguf_schema", "fuzz", "--stream", "--seed", str(seed), "--count", str(files)]
        judging = [sys.executable, "-m", "tools.fuzzing.judge"]
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(making, cwd=ROOT, stdout=subprocess.PIPE, stderr=said) as maker,
        ):
            assert maker.stdout is not None
            done = subprocess.run(judging, cwd=folder, stdin=maker.stdout, capture_output=True, check=False)
            maker.stdout.close()  # who makes files ends when nobody reads
            status = maker.wait()
            said.seek(0)
            complaint = (done.stderr or said.read()).decode()[-2000:]
    if done.stderr:
        raise RuntimeError(f"the copy cannot be tried: {complaint}")
    if status and not done.returncode:
        raise RuntimeError(f"the files cannot be made, status {status}: {complaint}")
    return Hit(time.monotonic() - began, json.loads(done.stdout) if done.returncode else {})
