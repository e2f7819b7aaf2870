"""Ctrl-C or a fork at any moment of a run: the next run is right, and the threads of BLAS are as they were."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from blockgraph.plan import blas, team

WATCHED = {str(Path(module.__file__ or "")) for module in (blas, team)}


def interrupted(action: Callable[[], object], line: int) -> bool:
    """Run an action and raise KeyboardInterrupt at the given line it comes to in the watched files; whether it did.

    Not where a `with` takes or leaves a lock: Python looks for signals before and after, not in between.
    """
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in WATCHED:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not text.lstrip().startswith("with "):
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return seen >= line


def sums() -> list[float]:
    """What three threads find in two stages, each reading in the second what all wrote in the first."""
    halves, totals = np.zeros(3), np.zeros(3)

    def first(number: int) -> Callable[[], None]:
        return lambda: halves.__setitem__(number, number + 1.0)

    def second(number: int) -> Callable[[], None]:
        return lambda: totals.__setitem__(number, halves.sum())

    team.run_together([[first(number), second(number)] for number in range(3)])
    return list(totals)


def test_after_an_interrupt_at_any_line_a_team_is_whole_or_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_POOLS", {})
    line, threads = 1, threading.active_count()
    sums()
    while interrupted(sums, line):
        found: list[list[float]] = []
        other = threading.Thread(target=lambda found=found: found.append(sums()), daemon=True)
        other.start()
        other.join(20)
        assert found == [[6.0, 6.0, 6.0]], f"interrupted at line {line}"
        line += 1
    assert line > 20
    assert threading.active_count() <= threads + 20, "threads are left behind"


@pytest.mark.skipif(blas.blas() is None, reason="NumPy has another BLAS than OpenBLAS")
def test_after_an_interrupt_at_any_line_the_next_call_restores_the_threads_of_blas() -> None:
    library = blas.blas()
    assert library is not None
    before, line = library.get(), 1

    def limited() -> None:
        with blas.limited(before + 1):
            pass

    while interrupted(limited, line):
        limited()
        assert library.get() == before, f"interrupted at line {line}"
        line += 1
    assert line > 10


@pytest.mark.skipif(blas.blas() is None or not hasattr(os, "fork"), reason="no OpenBLAS, or no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_runs_restores_the_threads_of_blas() -> None:
    library = blas.blas()
    assert library is not None
    before, inside, done = library.get(), threading.Event(), threading.Event()

    def other() -> None:
        with blas.limited(1):
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(60)
    child = os.fork()
    if not child:
        with blas.limited(1):
            pass
        os._exit(int(library.get() != before))
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
