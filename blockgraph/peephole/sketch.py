"""A graph while it is rewritten: nodes by what they make, how often each value is read, and the replacing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from blockgraph.dims import Shape
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.number import Number
from blockgraph.op import Op, Type
from blockgraph.ops.leaf import Constant, Input, Param
from blockgraph.records import dataclass


class Step(NamedTuple):
    """An op still to be written; an operand is a value, or the result of the step with that index before it."""

    op: Op
    inputs: tuple[int | Prior, ...]


@dataclass(frozen=True, slots=True)
class Prior:
    """The result of an earlier step of the same replacement."""

    index: int


class Sketch:
    """The nodes so far, in order. A value is its handle in the graph; new ones are counted on from there."""

    def __init__(self, graph: Graph, numbers: Mapping[str, int], keep: Collection[int]) -> None:
        self.origin, self.numbers = graph, numbers
        self.kept = set(keep) | {port.value for port in graph.outputs}
        self.types: list[Type] = list(graph.types)
        self.nodes: dict[int, Node] = {}  # by the first value that a node makes
        self.reads: Counter[int] = Counter(value for node in graph.nodes for value in node.inputs)
        self._made: dict[tuple[Op, tuple[int, ...]], tuple[int, ...]] = {}
        self._same: dict[int, int] = {}
        self.last: Node = graph.nodes[0]

    def add(self, node: Node) -> None:
        """Take the next node of the graph; one that computes what is there already is read from there."""
        node = replace(node, inputs=tuple(self._same.get(value, value) for value in node.inputs))
        assert not isinstance(node.op, Repeat), "stacks are written out"
        there = None if isinstance(node.op, Input | Param) else self._made.get((node.op, node.inputs))
        if there is not None and there[0] in self.nodes and not self.kept & set(node.outputs):
            self._same.update(zip(node.outputs, there, strict=True))
            self.reads.subtract(node.inputs)
            self._move_reads(node.outputs, there)
            self.last = self.nodes[there[0]]
            return
        self._made[node.op, node.inputs] = node.outputs
        self.nodes[node.outputs[0]] = self.last = node

    def _move_reads(self, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        for before, after in zip(old, new, strict=True):
            self.reads[after] += self.reads.pop(before, 0)

    def op(self, value: int) -> Op | None:
        """The op that makes a value, None if it is one of several outputs."""
        node = self.nodes.get(value)
        return None if node is None or len(node.outputs) > 1 else node.op  # type: ignore[return-value]

    def inputs(self, value: int) -> tuple[int, ...]:
        """The operands of the op that makes a value."""
        return self.nodes[value].inputs

    def shape(self, value: int) -> Shape:
        """The shape of a value."""
        shape = self.types[value].shape
        assert shape is not None, "a graph that is run has all its shapes"
        return shape

    def constant(self, value: int) -> float | None:
        """The number of a constant; None if it is none, or not known."""
        op = self.op(value)
        if not isinstance(op, Constant):
            return None
        number = op.value
        if isinstance(number, Number):
            return float(number.evaluate(self.numbers)) if number.symbols <= self.numbers.keys() else None
        return float(number)

    def is_leaf(self, value: int) -> bool:
        """Whether a value is given and not computed."""
        return isinstance(self.op(value), Input | Param | Constant)

    def replaces(self, value: int, interior: Collection[int], *steps: Step) -> bool:
        """Make `value` by these steps instead, and forget what only it needed; False where that may not be.

        `interior` are the values between the steps' operands and `value`: none of them may be kept or read elsewhere.
        """
        inner = {one for one in interior if not self.is_leaf(one)} - {value}
        if inner & self.kept or self._read_elsewhere(inner, value):
            return False
        node = self.nodes.pop(value)
        made: list[int] = []
        for index, step in enumerate(steps):
            inputs = tuple(made[one.index] if isinstance(one, Prior) else one for one in step.inputs)
            self.reads.update(inputs)
            outputs = (value,) if index == len(steps) - 1 else (self._new(step.op, inputs),)
            made.append(outputs[0])
            self.last = replace(node, op=step.op, inputs=inputs, outputs=outputs)
            self.nodes[outputs[0]] = self.last
        self._made[self.last.op, self.last.inputs] = self.last.outputs  # type: ignore[index]
        self._release(node.inputs)
        return True

    def _new(self, op: Op, inputs: tuple[int, ...]) -> int:
        (given,) = op.infer(*(self.types[value] for value in inputs))
        self.types.append(given)
        return len(self.types) - 1

    def _read_elsewhere(self, inner: Collection[int], value: int) -> bool:
        inside = Counter(one for maker in (*inner, value) for one in self.inputs(maker))
        return any(self.reads[one] != inside[one] for one in inner)

    def _release(self, values: Collection[int]) -> None:
        """Reads that fell away; a node that nothing reads any more goes, and what it read with it."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            self.reads[value] -= 1
            node = self.nodes.get(value)
            if node is None or self.is_leaf(value) or value in self.kept or len(node.outputs) > 1:
                continue
            if self.reads[value] <= 0:
                del self.nodes[value]
                self._made.pop((node.op, node.inputs), None)  # type: ignore[arg-type]
                waiting.extend(node.inputs)

    def graph(self) -> Graph:
        """The graph that was written. Leaves that nothing reads stay: they are inputs and parameters."""
        nodes = (replace(node, id=number) for number, node in enumerate(self.nodes.values()))
        return replace(self.origin, nodes=tuple(nodes), types=tuple(self.types))


Rule = Callable[[Sketch, Node], bool]
"""Looks at the node made last; rewrites it and says so, or leaves it."""
