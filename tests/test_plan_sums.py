"""Sums over all rows by the plan: each thread adds up the rows that it makes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import blockgraph as bg
from blockgraph.adjoint.ops import ColumnDot, Parts
from blockgraph.plan import compiled
from blockgraph.plan.compiled import Plan
from blockgraph.plan.steps import Step
from tests.agreement import differences, with_plan

SPEC = """
dims: {C: 32, H: 4}
block:
  norm: layer_norm
  sublayers:
    - {kind: attention, heads: H, mask: causal}
    - {kind: feed_forward, hidden: 4*C, activation: gelu_tanh}
"""


@pytest.fixture(autouse=True)
def team(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of our own however little there is to do."""
    monkeypatch.setattr(compiled, "MIN_FLOPS", 0)
    monkeypatch.setattr(compiled, "MIN_ROWS", 0)


def sums(plan: Plan) -> Iterator[Step]:
    """The steps that sum rows."""
    return (step for stage in plan.stages for step in stage.steps if isinstance(step.op, Parts))


def test_what_only_sums_read_beside_its_chain_does_not_exist_whole() -> None:
    program = bg.compile(SPEC)
    x, params = program.sample(0, B=2, T=300)
    program.grad(x, params)
    (ready,) = program._differentiators[False].planner._plans.values()
    layout, aliases = ready.plan.layout, ready.plan.aliases
    gains = [step for step in sums(ready.plan) if step.op == Parts(ColumnDot(), ready.plan.threads)]
    assert len(gains) == 2
    assert all(layout.level(aliases.root(step.inputs[0])) in ("block", "chunk") for step in gains)


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_begin_anew_at_every_run_on_threads_with_and_without_rows(threads: int) -> None:
    program = with_plan(bg.compile(SPEC), True, threads)
    for time in (1, 2, 5, 600):
        x, params = program.sample(3, B=1, T=time)
        first, second = program.grad(x, params), program.grad(x, params)
        assert all(np.array_equal(one, second.dparams[name]) for name, one in first.dparams.items())
        assert not differences(program, x, params, threads)


def test_with_as_many_threads_sums_are_the_same_bit_for_bit() -> None:
    found = []
    for _ in range(2):
        program = with_plan(bg.compile(SPEC), True, 3)
        x, params = program.sample(3, "float32", B=2, T=600)
        found.append(program.grad(x, params).dparams)
    assert all(np.array_equal(one, found[1][name]) for name, one in found[0].items())
