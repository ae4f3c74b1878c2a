#!/usr/bin/env python3
"""Report on the labelled cases: verdicts, places of errors, round trips, the slowest and the largest.

    python tools/cases.py

Each case runs in a forked child, so that its time and its memory over the import are its own.
"""

import contextlib
import io
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import gguf_schema as gs
from gguf_schema.dump import dump_json, dump_markdown, dump_text
from tests.labels import is_labelled, is_right_place
from tests.shared import cases
from tools.memory import peak_memory, reset_peak_memory

MOST_SECONDS = 1.0
MOST_KIBIBYTES = 64 << 10


def in_child(function: Any, *args: Any) -> Any:
    """What a function returns when a forked child runs it; None if the child dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), open(writer, "wb") as out:
            pickle.dump(function(*args), out)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def run(data: bytes) -> dict[str, Any]:
    """Everything that is done to one case: verdict, escapes, round trip, seconds, memory in KiB."""
    reset_peak_memory()
    before = peak_memory()
    start = time.perf_counter()
    result: dict[str, Any] = {"error": None, "escapes": []}
    try:
        gs.open(data)
    except gs.GGUFError as error:
        result["error"] = error
    for name, action in {"parse and build": round_trip, "views and dump": views}.items():
        try:
            result.setdefault(name, action(data))
        except gs.GGUFError:
            pass
        except Exception as error:
            result["escapes"].append(f"{name}: {error!r}")
    result["seconds"] = time.perf_counter() - start
    result["kibibytes"] = (peak_memory() - before) >> 10
    return result


def round_trip(data: bytes) -> bool:
    """Whether the wire form gives the same bytes back."""
    return bool(gs.GGUF.build(gs.GGUF.parse(data)) == data)


def views(data: bytes) -> None:
    """Use all views of an unchecked file."""
    with gs.open(data, check=False) as model:
        for pair in model.metadata.pairs:
            list(pair.value) if isinstance(pair.type, gs.ArrayType) else repr(pair.value)
        for tensor in model.tensors.infos:
            with contextlib.suppress(gs.GGUFError):
                tensor.data.tobytes()
        for dump in (dump_text, dump_json, dump_markdown):
            io.StringIO().write(dump(model))


def is_rejected(case: dict[str, Any]) -> bool:
    """Whether the label says that `open` refuses the file."""
    return bool(case["expected"]["gguf_schema_default"] == "reject")


def main() -> int:
    """Run all cases and print the report; 1 if anything is not as labelled."""
    listed = cases()
    if not listed:
        print("the labelled cases are not here", file=sys.stderr)
        return 2
    results = {case["name"]: in_child(run, case["bytes"]) for case in listed}
    died = [name for name, result in results.items() if result is None]
    ran = [(case, results[case["name"]]) for case in listed if results[case["name"]]]
    rejected = [(c, r) for c, r in ran if is_rejected(c)]
    wrong = [
        c["name"] for c, r in ran if (r["error"] is not None) != (c["expected"]["gguf_schema_default"] == "reject")
    ]
    labelled = [(c, r) for c, r in rejected if is_labelled(c) and r["error"]]
    misplaced = [f"{c['name']}: {r['error']}" for c, r in labelled if not is_right_place(r["error"], c)]
    exact = [(c, r) for c, r in ran if c["expected"]["roundtrip"] == "byte-exact"]
    changed = [c["name"] for c, r in exact if r.get("parse and build") is not True]
    escapes = [f"{c['name']}: {escape}" for c, r in ran for escape in r["escapes"]]
    slowest, largest = (max(ran, key=lambda pair: pair[1][key]) for key in ("seconds", "kibibytes"))
    over = [c["name"] for c, r in ran if r["seconds"] > MOST_SECONDS or r["kibibytes"] > MOST_KIBIBYTES]
    print(f"cases          {len(listed)}, of which {len(died)} died {died or ''}")
    print(f"verdicts       {len(ran) - len(wrong)} of {len(ran)} as labelled {wrong or ''}")
    print(f"places         {len(labelled) - len(misplaced)} of {len(labelled)} as labelled {misplaced or ''}")
    print(f"round trips    {len(exact) - len(changed)} of {len(exact)} byte-exact {changed or ''}")
    print(f"escapes        {len(escapes)} {escapes or ''}")
    print(f"slowest        {1000 * slowest[1]['seconds']:.0f} ms, {slowest[0]['name']}")
    print(f"largest        {largest[1]['kibibytes'] / 1024:.1f} MiB over the import, {largest[0]['name']}")
    print(f"over budget    {len(over)} {over or ''}")
    return 1 if died or wrong or misplaced or changed or escapes or over else 0


if __name__ == "__main__":
    sys.exit(main())
