"""Taking turns: contenders run one after another, round by round, and what is reported is the median of the rounds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

Contenders = Mapping[str, Callable[[], object]]


def interleaved(contenders: Contenders, rounds: int) -> dict[str, float]:
    """Median seconds of each contender; they take turns (A B C A B C ...), after one untimed round."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def process(*words: str) -> Callable[[], object]:
    """A whole Python process with these arguments, its output thrown away; it keeps bytecode, as any user's does."""
    return run(sys.executable, *words)


def run(*command: str) -> Callable[[], object]:
    """A whole process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(command, check=True, capture_output=True, env=environment)


def table(title: str, times: Mapping[str, float], against: str) -> None:
    """Print milliseconds and the ratio to one of the contenders."""
    print(f"\n{title}")
    for name, seconds in times.items():
        print(f"  {name:44} {seconds * 1e3:10.2f} ms   {seconds / times[against]:6.2f} x {against}")
