"""Sums over all rows in two steps, so that what only they read need not exist whole.

Each thread adds up the rows that it makes while they are in its cache; then the few rows of sums are added up, in
their order: with as many threads the result is the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from blockgraph.adjoint.ops import Columns, ColumnSum, Parts
from blockgraph.plan.steps import Step, Steps


def share_sums(steps: Steps, threads: int) -> None:
    """Rewrite the steps that sum over rows."""
    new = count(max(steps.shapes, default=0) + 1)
    steps.steps = [one for step in steps.steps for one in _shared(steps, step, threads, new)]


def _shared(steps: Steps, step: Step, threads: int, new: Iterator[int]) -> Iterator[Step]:
    """The step, or its parts and their sum; a single row has no parts."""
    if not isinstance(step.op, Columns) or len(steps.shapes[step.inputs[0]]) < 2:
        yield step
        return
    op, parts = Parts(step.op, threads), next(new)
    outs = op.infer(*step.types)
    steps.shapes[parts] = (threads, *steps.shapes[step.outputs[0]])
    steps.dtypes[parts] = steps.dtypes[step.outputs[0]]
    yield replace(step, op=op, outputs=(parts,), outs=outs)
    yield replace(step, op=ColumnSum(), inputs=(parts,), types=outs)
