"""How much memory a run by a plan takes: the plan knows all but what ops without a kernel hold for themselves."""

from __future__ import annotations

from blockgraph.lazy import np
from blockgraph.plan.compiled import Plan
from blockgraph.plan.kernel import FORWARD, kernel_of
from blockgraph.plan.layout import SMALL
from blockgraph.plan.stages import Rows, Serial
from blockgraph.plan.steps import Step

WORKING = 1 << 18
"""Bytes of a run beside what is counted here."""
CHUNKS = 3 << 20
"""Bytes that functions of one element hold while they take a chunk."""
CALL = 600
"""Bytes of a call that is kept, with the views of arrays that it is made on."""


def bytes_of(plan: Plan) -> int:
    """The most bytes at once of a first run: the arena, what is made for the caller, tables, and kept calls."""
    fresh = sum(plan.steps.bytes(value) for value, level in plan.layout.levels.items() if level == "fresh")
    copies = sum(min(plan.steps.bytes(value), SMALL) for value, _ in (*plan.early, *plan.late))
    tables = (*plan.steps.constants.values(), *plan.constants.values())
    folded = sum(array.nbytes for array in tables if isinstance(array, np.ndarray))
    return plan.bytes + fresh + copies + folded + _passing(plan) + (plan.calls * CALL if plan.keeps else 0)


def _passing(plan: Plan) -> int:
    """What ops without a kernel hold: the largest that runs alone its result, which is then copied; chains, chunks."""
    alone = [step for stage in plan.stages if isinstance(stage, Serial) for step in stage.steps]
    chained = [step for stage in plan.stages if isinstance(stage, Rows) for step in stage.steps]
    chunks = CHUNKS * len(plan.work) if any(kernel_of(step.op) is FORWARD for step in chained) else 0
    return max(chunks, *(_forward(plan, step) for step in alone if kernel_of(step.op) is FORWARD), 0)


def _forward(plan: Plan, step: Step) -> int:
    room = int(step.op.room(step.types, step.outs).evaluate(dict(plan.steps.numbers)))
    made = 0 if step.outputs[0] in plan.aliases.free else sum(plan.steps.bytes(value) for value in step.outputs)
    return made + room * int(plan.steps.dtype.itemsize)
