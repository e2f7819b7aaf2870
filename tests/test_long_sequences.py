"""Attention over long sequences holds a block of scores, never all of them: neither forward nor backward."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import blockgraph as bg

LONG = 8192
ALL_SCORES = 4 * LONG * LONG
"""Bytes of the scores of one head in float32."""


def program(mask: str, plan: bool) -> Any:
    attention = {"kind": "attention", "heads": "H", "mask": mask}
    spec = {"dims": {"C": 8, "H": 1}, "block": {"norm": "rms_norm", "sublayers": [attention]}}
    return bg.compile(spec, plan=plan)


def peak(work: Callable[[], Any]) -> int:
    """The most bytes alive at once, beside those that were there before."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept is not None
    return most


@pytest.mark.slow
@pytest.mark.parametrize("plan", [True, False], ids=["plan", "interpreter"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_attention_never_holds_the_scores_of_all_queries(mask: str, backward: bool, plan: bool) -> None:
    long = program(mask, plan)
    x, params = long.sample(0, dtype="float32", B=1, T=LONG)
    run = (lambda: long.grad(x, params)) if backward else (lambda: long(x, params))
    assert peak(run) < ALL_SCORES / 5


@pytest.mark.parametrize("plan", [True, False], ids=["plan", "interpreter"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("times", [1, 4])
def test_the_memory_told_before_a_run_is_that_of_blocks_of_scores(mask: str, plan: bool, times: int) -> None:
    told = program(mask, plan).memory("float32", B=1, T=times * LONG)
    assert told.largest.bytes == times**2 * ALL_SCORES
    assert not told.largest.held
    assert told.total < times**2 * ALL_SCORES / 5
