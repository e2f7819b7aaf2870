"""The plain interpreter: op by op over NumPy arrays, readable, the reference for everything faster.

A graph is bound once for each set of input sizes: symbols become numbers and what is left is a flat list of calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from blockgraph.graph import Graph, Node
from blockgraph.lazy import np
from blockgraph.op import Op
from blockgraph.ops.leaf import Constant, Input, Param
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One bound op: from which slots to which it computes, and the slots no one reads after it."""

    op: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dead: tuple[int, ...]
    node: Node

    def run(self, slots: dict[int, Any]) -> None:
        """Compute the outputs into their slots."""
        result = self.op.forward(*[slots[slot] for slot in self.inputs])
        if len(self.outputs) == 1:
            slots[self.outputs[0]] = result
        else:
            slots.update(zip(self.outputs, result, strict=True))

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The gradients of the operands."""
        return self.op.backward(dy, y, *arrays)


@dataclass(slots=True)
class Interpreter:
    """Runs one flat graph. The calls for given sizes are kept, so that a second run binds nothing."""

    graph: Graph
    _bound: dict[tuple[tuple[str, int], ...], tuple[list[Call], dict[int, Any]]] = field(default_factory=dict)

    def run(
        self, inputs: Mapping[str, Any], params: Mapping[str, Any], numbers: Mapping[str, int], keep: Iterable[int] = ()
    ) -> dict[int, Any]:
        """The arrays of the outputs and of the values in `keep`, by value; others are dropped after their last use.

        `numbers` holds every symbol; arrays are taken as they are and never written to.
        """
        calls, slots = self.prepare(inputs, params, numbers)
        wanted = {port.value for port in self.graph.outputs} | set(keep)
        with np.errstate(all="ignore"):  # what is not finite shows in the numbers
            for call in calls:
                call.run(slots)
                for slot in call.dead:
                    if slot not in wanted:
                        slots.pop(slot, None)
        return {value: np.asarray(slots[value]) for value in wanted}

    def prepare(
        self, inputs: Mapping[str, Any], params: Mapping[str, Any], numbers: Mapping[str, int]
    ) -> tuple[list[Call], dict[int, Any]]:
        """The bound calls, and slots that hold inputs, parameters and constants."""
        key = tuple(sorted(numbers.items()))
        if key not in self._bound:
            self._bound[key] = self._bind(numbers)
        calls, constants = self._bound[key]
        slots = dict(constants)
        for node in self.graph.nodes:
            if isinstance(node.op, Input):
                slots[node.outputs[0]] = inputs[node.op.path]
            elif isinstance(node.op, Param):
                slots[node.outputs[0]] = params[node.op.path]
        return calls, slots

    def _bind(self, numbers: Mapping[str, int]) -> tuple[list[Call], dict[int, Any]]:
        bound: dict[Op, Op] = {}
        last = {value: node.id for node in self.graph.nodes for value in node.inputs}
        calls: list[Call] = []
        constants: dict[int, Any] = {}
        for node in self.graph.nodes:
            if isinstance(node.op, Input | Param):
                continue
            assert isinstance(node.op, Op), "stacks are written out before a run"
            op = bound.get(node.op)
            if op is None:
                op = bound[node.op] = node.op.bind(numbers)
            if isinstance(op, Constant):
                constants[node.outputs[0]] = op.value
                continue
            dead = tuple(value for value in dict.fromkeys(node.inputs) if last[value] == node.id)
            calls.append(Call(op, node.inputs, node.outputs, dead, node))
        return calls, constants


def rms(array: Any) -> float:
    """sqrt(mean(x**2)), in float64; 0 for an empty array."""
    x = np.asarray(array, dtype=np.float64).ravel()
    if not x.size:
        return 0.0
    with np.errstate(all="ignore"):
        square = float(np.dot(x, x) / x.size)
        if np.isfinite(square) or not np.isfinite(x).all():
            return math.sqrt(square) if square >= 0 else square
        largest = float(np.abs(x).max())  # squares overflow: take the common factor out
        return largest * rms(x / largest)
