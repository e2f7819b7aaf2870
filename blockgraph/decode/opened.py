"""Ops that count positions from 0 are opened, so that what depends on the position alone is a table of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from blockgraph.dims import Dim
from blockgraph.facts.reach import spelled
from blockgraph.graph import Graph, GraphBuilder, Node, Repeat
from blockgraph.op import Op, Type


class _Sharing(GraphBuilder):
    """Tables that are told by their op and their shape, whatever the operand, are made once."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.tables: dict[tuple[Op, tuple[Type, ...]], tuple[int, ...]] = {}

    def append(self, op: Op | Repeat, values: Iterable[int], types: Iterable[Type]) -> tuple[int, ...]:
        """Add a node whose output types are known, unless its outputs are there already."""
        values, types = tuple(values), tuple(types)
        if not isinstance(op, Op) or not values or len(op.shape_only) < len(values):
            return super().append(op, values, types)
        if (op, types) not in self.tables:
            self.tables[op, types] = super().append(op, values, types)
        return self.tables[op, types]


def opened(graph: Graph, time: Dim) -> Graph:
    """The flat graph with the ops that number positions of time written out, where they can be."""
    g = _Sharing(graph.name)
    found: dict[int, int] = {}
    for node in graph.nodes:
        assert isinstance(node.op, Op), "stacks are written out before they are decoded"
        g.scope, g.text, g.place = node.scope, node.text, node.place
        inputs = tuple(found[value] for value in node.inputs)
        inner = node.op.expand(g, *inputs) if _counts(graph, node, time) else None
        if inner is None:
            outputs = g.append(node.op, inputs, (graph.types[value] for value in node.outputs))
        else:
            outputs = (inner,)
        found.update(zip(node.outputs, outputs, strict=True))
    starts = (replace(port, value=found[port.value]) for port in graph.inputs)
    ends = (replace(port, value=found[port.value]) for port in graph.outputs)
    return g.finish(starts, ends, conditions=graph.conditions, dims=graph.dims)


def _counts(graph: Graph, node: Node, time: Dim) -> bool:
    """Whether an op numbers positions along an axis of time of its outputs."""
    assert isinstance(node.op, Op), "stacks are written out before they are decoded"
    types = tuple(graph.types[value] for value in node.inputs)
    counted = {one.letter for one in node.op.counts(types)}
    if not counted:
        return False
    shapes = [graph.types[value].shape or () for value in node.outputs]
    return any(
        name in counted and dim == time
        for axes, shape in zip(node.op.pattern(types).outputs, shapes, strict=True)
        for name, dim in zip(spelled(axes, len(shape)), shape, strict=True)
    )
