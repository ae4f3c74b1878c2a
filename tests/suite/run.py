#!/usr/bin/env python3
"""Run a reader on every file of the suite, and say where it does not do as it should.

python run.py [--profile NAME] COMMAND [ARGUMENT...]

The command is run once a file, with the path of the file as its last argument. Exit status 0 means that it read the
file, 1 that it refused it; any other is a crash. That and no answer in ten seconds are never right. Without a profile,
files that readers may judge either way count as right.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def verdict(command: list[str]) -> str:
    """What a reader does with one file: accept, reject, crash or hang."""
    try:
        status = subprocess.run(command, capture_output=True, timeout=10, check=False).returncode
    except subprocess.TimeoutExpired:
        return "hang"
    return {0: "accept", 1: "reject"}.get(status, "crash")


def main() -> int:
    """Print a line for each file that is wrong, and how many are right; exit status 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", help="expect the verdicts of this profile of the manifest")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    args = parser.parse_args()
    suite = json.loads((HERE / "suite.json").read_text(encoding="utf-8"))
    if not args.command or args.profile not in (None, *suite["profiles"]):
        parser.error(f"wanted: a command, and no profile or one of {', '.join(suite['profiles'])}")
    if shutil.which(args.command[0]) is None:
        parser.error(f"{args.command[0]} is no program that can be run")
    kinds = {"accept": {"accept"}, "refuse": {"reject"}, "reader-dependent": {"accept", "reject"}}
    wrong = 0
    for case in suite["cases"]:
        right = kinds[case["kind"]]
        if args.profile:
            right = {"reject" if case["expected"][args.profile] == "reject" else "accept"}
        found = verdict([*args.command, str(HERE / case["file"])])
        if found not in right:
            wrong += 1
            print(f"{found:8}{' or '.join(sorted(right)):18}{case['name']}: {case['reason']} ({case['source']})")
    print(f"{len(suite['cases']) - wrong} of {len(suite['cases'])} files right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
