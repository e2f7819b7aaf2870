"""Ops that only look at memory: they cost nothing, as long as the layout of what they look at allows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import field
from typing import Any

from blockgraph.op import Op
from blockgraph.ops.axes import ByPattern, Heads, Merge, plan_for
from blockgraph.ops.elementwise import StopGradient
from blockgraph.ops.join import Split
from blockgraph.ops.matmul import Transpose
from blockgraph.ops.subscript import Index
from blockgraph.plan.kernel import SPREADS
from blockgraph.plan.memory import reshapes, shadow
from blockgraph.plan.steps import Steps
from blockgraph.records import dataclass


def views(op: Op, x: Any) -> tuple[Any, ...] | None:
    """The outputs of `op` as views of the array x; None if a copy is needed. Reads no element of x."""
    if isinstance(op, Split):
        return tuple(op.forward(x))
    if isinstance(op, Heads | Index | StopGradient | Transpose):
        return (op.forward(x),)
    if isinstance(op, Merge):
        moved = x.swapaxes(-2, -3)
        shape = (*moved.shape[:-2], x.shape[-3] * x.shape[-1])
    elif isinstance(op, ByPattern):
        plan = plan_for(op.axes, x.shape, op.sizes)
        if plan.new:
            return None
        moved, shape = x.reshape(plan.split).transpose(plan.order), plan.out
    else:
        return None
    return (moved.reshape(shape),) if reshapes(moved, shape) else None


def source(op: Op, y: Any, shape: tuple[int, ...]) -> Any | None:
    """The operand, of this shape, as a view of the output y of an op that only moves elements; None if it is none.

    Whoever makes the operand then writes it where the output lies, and the op has nothing left to do.
    """
    if isinstance(op, Merge):
        *lead, heads, steps, width = shape
        return y.reshape(*lead, steps, heads, width).swapaxes(-2, -3)
    return None


@dataclass(frozen=True, slots=True)
class Look:
    """A value that is a view of another: output `index` of `op`, or with `back` the operand of it."""

    op: Op
    base: int
    index: int
    shape: tuple[int, ...]
    back: bool = False

    def at(self, array: Any) -> Any:
        """The view of the other value's array."""
        found = source(self.op, array, self.shape) if self.back else (views(self.op, array) or ())[self.index]
        assert found is not None, "the layout was looked at when the plan was made"
        return found


@dataclass(slots=True)
class Aliases:
    """Which values are views of which. `free` are first outputs of steps that have nothing to compute for it."""

    looks: dict[int, Look] = field(default_factory=dict)
    free: set[int] = field(default_factory=set)

    def root(self, value: int) -> int:
        """The value whose memory this one looks at."""
        while value in self.looks:
            value = self.looks[value].base
        return value


def aliases_of(steps: Steps, loose: Container[str], kept: Container[int]) -> Aliases:
    """The views of a run. `loose` are the inputs and parameters that do not lie row after row in memory.

    What is merged is written where the result lies, if all who read it otherwise share themselves out: they take heads
    as they lie.
    """
    found = Aliases()
    shadows = {
        value: shadow(steps.shapes[value], steps.dtypes[value], name not in loose)
        for value, name in (*steps.inputs.items(), *steps.params.items())
    }
    makers = {value: step for step in steps.steps for value in step.outputs}
    readers = Counter(value for step in steps.steps if type(step.op) not in SPREADS for value in step.inputs)
    for step in steps.steps:
        value = step.inputs[0] if step.inputs else -1
        if value not in shadows:
            if value in steps.constants or value < 0:
                continue
            shadows[value] = shadow(steps.shapes[value], steps.dtypes[value])
        seen = views(step.op, shadows[value])
        if seen is not None:
            found.free.add(step.outputs[0])
            for index, (out, array) in enumerate(zip(step.outputs, seen, strict=True)):
                found.looks[out] = Look(step.op, value, index, steps.shapes[out])
                shadows[out] = array
        elif isinstance(step.op, Merge) and value in makers and value not in found.looks:
            if readers[value] == 1 and value not in kept:
                found.looks[value] = Look(step.op, step.outputs[0], 0, steps.shapes[value], back=True)
                found.free.add(step.outputs[0])
    return found
