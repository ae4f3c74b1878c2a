"""Times side by side, in one process, in turn."""

import gc
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]
SLOW_SECONDS = 1.0
SLOW_ROUNDS = 3
"""Rounds of contenders that take longer than SLOW_SECONDS."""


def seconds(run: Run) -> float:
    """The time of one run. Garbage of earlier runs is collected before it."""
    gc.collect()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(title: str, ours: Run, rounds: int, **others: Run) -> None:
    """Print a table: the times of each, and ours as a multiple of each other's."""
    contenders = {"gguf_schema": ours, **others}
    limits = dict.fromkeys(contenders, rounds)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    order = random.Random(0)
    for number in range(rounds):
        order.shuffle(names)  # what ran before leaves the memory in another state
        for name in names:
            if number < limits[name]:
                times[name].append(seconds(contenders[name]))
                if times[name][0] > SLOW_SECONDS:
                    limits[name] = SLOW_ROUNDS
    print(f"\n{title}")
    print(f"  {'':34}{'rounds':>7}{'min ms':>10}{'median ms':>11}   ours / this: median (lowest to highest)")
    for name, taken in times.items():
        ratios = sorted(mine / theirs for mine, theirs in zip(times["gguf_schema"], taken, strict=False))
        ratio = f"{statistics.median(ratios):10.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f})"
        line = f"  {name:34}{len(taken):>7}{1e3 * min(taken):>10.2f}{1e3 * statistics.median(taken):>11.2f}"
        print(line if name == "gguf_schema" else f"{line}   {ratio}", flush=True)
