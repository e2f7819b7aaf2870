"""Contenders in processes of their own that take turns (A B C A B C ...): what is reported is the median of rounds."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import cases

FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
REST = 0.05
"""Seconds between turns, for the threads of the one before to stop spinning."""
CLOSE = 2e-4
"""How near the results of contenders must be in float32, in units of the largest number of an array.

Where that is very small beside the other arrays, as in the gradient of the keys' bias, which is zero but for rounding,
a hundredth of their largest counts.
"""


def environment() -> dict[str, str]:
    """Ours, without what forces a kernel on the BLAS or limits its threads."""
    return {
        name: value for name, value in os.environ.items() if name not in FORCED and not name.endswith("_NUM_THREADS")
    }


@dataclass
class Contender:
    """A running worker; `missing` says why there is none."""

    name: str
    process: Any
    note: str = ""
    kernel: str = ""
    missing: str = ""
    figures: list[float] = field(default_factory=list)

    def ask(self, question: str) -> Any:
        """Its answer. Raises RuntimeError with what it last said."""
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.heard()

    def heard(self) -> Any:
        """The next answer."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: {self.process.stderr.read()[-2000:]}")
        return json.loads(line)

    @property
    def figure(self) -> float:
        """The median of its rounds: seconds, or bytes."""
        return statistics.median(self.figures)


def started(case: str, name: str, contender: str, folder: str) -> Contender:
    """A worker that has built its contender."""
    command = [sys.executable, "-m", "tests.bench.worker", case, contender, folder]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    found = Contender(name, subprocess.Popen(command, text=True, env=environment(), **pipes))
    said = found.heard()
    found.note, found.kernel, found.missing = (said.get(key, "") for key in ("note", "kernel", "missing"))
    return found


def race(case: str, contenders: Mapping[str, str], rounds: int, question: str = "turn") -> list[Contender]:
    """All contenders of a case, after they have computed the same numbers and taken their turns."""
    with tempfile.TemporaryDirectory() as folder:
        if case in cases.CASES:
            cases.save(cases.CASES[case], Path(folder))
        runners = [started(case, name, contender, folder) for name, contender in contenders.items()]
        present = [one for one in runners if not one.missing]
        if question == "turn":
            same(present, Path(folder))
        for _ in range(rounds):
            for one in present:
                time.sleep(REST)
                one.figures.append(one.ask(question))
        for one in runners:
            one.process.stdin.close()
            one.process.wait()
    return runners


def same(contenders: Iterable[Contender], folder: Path) -> None:
    """Assert that all who compute a result compute the same one."""
    first: dict[str, Any] = {}
    for one in contenders:
        path = folder / "result.npz"
        one.ask(f"result {path}")
        with np.load(path) as result:
            arrays = dict(result)
        if not arrays:
            continue
        first = first or arrays
        assert arrays.keys() == first.keys(), one.name
        largest = {name: float(np.abs(array).max()) for name, array in first.items()}
        least = max(largest.values()) / 100
        for name, array in arrays.items():
            near = CLOSE * max(largest[name], least)
            np.testing.assert_allclose(array, first[name], rtol=0, atol=near, err_msg=f"{one.name}: {name}")
