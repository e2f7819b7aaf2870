"""One contender in a process of its own: it answers on standard output what it is asked on standard input.

`turn` gives the median seconds of a call, `result PATH` writes what it computes, `peak` gives the bytes of its first
call, without the gradients of parameters.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import cases
from tests.bench.contenders import Work

ENOUGH = 0.3
"""Seconds of calls in one turn; there is at least one call."""
SHORT = 64
"""Positions of the call before the one whose memory is measured."""


def build(case: str, contender: str, folder: Path) -> tuple[Work, dict[str, Any], int]:
    """A contender such as `floor.token`, the inputs, the bytes of gradients; what is no case has none of these."""
    module, _, name = contender.partition(".")
    make = getattr(importlib.import_module(f"tests.bench.contenders.{module}"), name)
    if case not in cases.CASES:
        return make(None, {}), {"x": None, "dy": None}, 0
    inputs, params = cases.read(folder)
    learned = sum(array.nbytes for array in params.values()) if cases.CASES[case].backward else 0
    return make(cases.CASES[case], params), inputs, learned


def turn(work: Work, inputs: dict[str, Any]) -> float:
    """The median seconds of the calls of one turn, after one that does not count."""
    if work.again is not None:
        work.again(inputs["x"])
    work.call(**inputs)
    times: list[float] = []
    while sum(times) < ENOUGH and len(times) < work.steps:
        start = time.perf_counter()
        work.call(**inputs)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def result(path: str, work: Work, inputs: dict[str, Any]) -> str:
    """Write what comes out to a file."""
    if work.again is not None:
        work.again(inputs["x"])
    np.savez(path, **work.named(work.call(**inputs)))
    return path


def peak(work: Work, inputs: dict[str, Any]) -> int:
    """The bytes by which the process grows at most in its first call of this size, its result included.

    A short call comes before it, so that neither code nor what is prepared once for all sizes is counted.
    """
    work.call(**{name: array[:, :SHORT] for name, array in inputs.items()})
    if work.again is not None:
        work.again(inputs["x"])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, so that it counts when it is taken again
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the high-water mark starts anew
    before = resident("VmRSS")
    kept = work.call(**inputs)
    grown = resident("VmHWM") - before
    del kept
    return grown


def resident(name: str) -> int:
    """Bytes of this process's memory, as Linux counts them."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def kernel() -> str:
    """The kernel that NumPy's BLAS runs here."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown without threadpoolctl"
    found = [one for one in threadpool_info() if one["user_api"] == "blas" and "numpy" in one["filepath"]]
    return " ".join(f"{one['internal_api']} {one['version']} {one.get('architecture', '?')}" for one in found)


def main(case: str, contender: str, folder: str) -> None:
    """Answer until the input ends. A package that is missing is the first and only answer."""
    try:
        work, inputs, learned = build(case, contender, Path(folder))
    except ImportError as missing:
        print(json.dumps({"missing": str(missing)}), flush=True)
        return
    print(json.dumps({"note": work.note, "kernel": kernel()}), flush=True)
    for line in sys.stdin:
        word, _, path = line.strip().partition(" ")
        answer: Any = None
        if word == "turn":
            answer = turn(work, inputs)
        elif word == "peak":
            answer = peak(work, inputs) - learned
        else:
            answer = result(path, work, inputs)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
