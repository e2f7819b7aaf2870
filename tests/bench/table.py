"""The table of what blockgraph must reach: every figure beside its bound, and whether that is met.

A figure is the median of the rounds' medians, divided by that of another contender in the same run. Every contender has
a process of its own, they take turns, and before any is timed all have computed the same numbers from the same random
arrays in float32. Memory is what Linux counts for the process (`VmHWM` beyond `VmRSS` before the call), without the
gradients of the parameters; a row of memory starts its processes anew for every
round.

Where something else runs on the machine the medians tell little: then the spread of the rounds is wide, and the ratio
of the best rounds, which is told beside them, is nearer to the truth.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.rows import OWN, ROWS, Bound, Row
from tests.bench.turns import Contender, race

ROUNDS = 5
PEAKS = 3
"""How often the processes of a row of memory are started anew."""


def main(words: Sequence[str]) -> None:
    """Measure the rows named, or all, and print them as they come."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench table", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at least {ROUNDS}, which is the default")
    parser.add_argument("--markdown", action="store_true", help="print one table at the end, and nothing else")
    options = parser.parse_args(words)
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    lines: list[str] = []
    for name in options.rows or ROWS:
        found = measured(ROWS[name], max(options.rounds, ROUNDS))
        if not options.markdown:
            print(f"{name}: {ROWS[name].words}\n" + "\n".join(details(ROWS[name], found)), flush=True)
        lines += [
            f"| {ROWS[name].words} | {bound.against} | {most(bound)} | {verdict(bound, found)} |"
            for bound in ROWS[name].bounds
        ]
    if options.markdown:
        print(f"{where(found)}\n\n| case | against | at most | measured |\n|---|---|---|---|\n" + "\n".join(lines))
    else:
        print(where(found))


def measured(row: Row, rounds: int) -> dict[str, Contender]:
    """The contenders of a row with their figures."""
    if row.measure == "turn":
        return {one.name: one for one in race(row.case, row.contenders, rounds)}
    anew = [race(row.case, row.contenders, 1, "peak") for _ in range(PEAKS)]
    for same in zip(*anew, strict=True):
        same[0].figures = [figure for one in same for figure in one.figures]
    return {one.name: one for one in anew[0]}


def details(row: Row, found: dict[str, Contender]) -> Iterator[str]:
    """All contenders of a row, and its bounds."""
    first = next((one for one in found.values() if not one.missing), None)
    for name, one in found.items():
        if one.missing:
            yield f"    {name:24} missing: {one.missing}"
        else:
            assert first is not None
            spread = f"({shown(min(one.figures), row)} to {shown(max(one.figures), row)})"
            ratio = f"{one.figure / first.figure:7.2f} x {first.name}"
            yield f"    {name:24} {shown(one.figure, row):>12} {spread:30} {ratio}  {one.note}".rstrip()
    for bound in row.bounds:
        ours, theirs = found[OWN], found[bound.against]
        best = "" if ours.missing or theirs.missing else f"; best rounds {min(ours.figures) / min(theirs.figures):.2f}"
        yield f"  against {bound.against}, at most {most(bound)}: {verdict(bound, found)}{best}"


def shown(figure: float, row: Row) -> str:
    """Milliseconds, or megabytes."""
    return f"{figure * 1e3:.3f} ms" if row.measure == "turn" else f"{figure / 1e6:.1f} MB"


def most(bound: Bound) -> str:
    """The bound and the goal in words."""
    return f"{bound.most:g}" + ("" if bound.goal is None else f", goal {bound.goal:g}")


def verdict(bound: Bound, found: dict[str, Contender]) -> str:
    """The ratio and whether the bound is met, or who is missing."""
    ours, theirs = found[OWN], found[bound.against]
    missing = next((one for one in (ours, theirs) if one.missing), None)
    if missing is not None:
        return f"not measured: {missing.missing}"
    ratio = ours.figure / theirs.figure
    goal = "" if bound.goal is None or ratio > bound.goal else ", goal too"
    return f"{ratio:.2f} {'met' + goal if ratio <= bound.most else 'missed'}"


def where(found: dict[str, Contender]) -> str:
    """The day, the machine and the kernel."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = said.get("model name", platform.processor())
    family = f"family {said.get('cpu family', '?')} model {said.get('model', '?')}"
    wide = "AVX-512" if "avx512f" in said.get("flags", "") else "no AVX-512"
    kernels = sorted({one.kernel for one in found.values() if one.kernel})
    day = datetime.datetime.now(tz=datetime.UTC).date()
    return f"{day}, {name} ({family}, {wide}), {os.cpu_count()} cores; NumPy's BLAS: {', '.join(kernels)}"
