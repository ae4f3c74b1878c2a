#!/usr/bin/env python3
"""Run every check of the project, in the order of how fast they answer; exit 1 if one of them fails.

python tools/check.py          all
python tools/check.py lint     one of: lint format types regen drift coverage tests

`coverage` runs the tests that must take every branch of what reads and writes files, `tests` all others.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

COVERING = [
    f"tests/test_{name}.py"
    for name in (
        *("bulk_is_plain", "description", "explain", "generate", "hostile", "lossless", "map"),
        *("schema_is_data", "shards", "sources", "writing"),
    )
]
"""Tests that take every branch of the modules in pyproject.toml, without a file or a reader that may be missing.

The others are not watched, which takes twice the time.
"""

CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "regen": ["tools.regen", "--check"],
    "drift": ["tools.drift"],
    "coverage": ["pytest", "--cov", "--cov-fail-under=100", *COVERING],
    "tests": ["pytest", *(f"--ignore={path}" for path in COVERING)],
}


def main(names: list[str]) -> int:
    """Run the named checks, all of them without names."""
    unknown = set(names) - set(CHECKS)
    if unknown:
        print(f"unknown: {' '.join(sorted(unknown))}; known: {' '.join(CHECKS)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or CHECKS:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", *CHECKS[name]], cwd=ROOT, check=False).returncode:
            failed.append(name)
    print(f"failed: {' '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
