"""What every value has to do with time, told from what the ops state: which are the same whatever comes, which grow by
rows that stay as they are, and which change altogether with the number of positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from blockgraph.decode.views import axes_of, mentions
from blockgraph.dims import Dim
from blockgraph.facts.flow import follow
from blockgraph.facts.interval import OWN
from blockgraph.facts.reach import NOTHING, Access, Reach
from blockgraph.graph import Graph, Node
from blockgraph.number import Number
from blockgraph.op import Op, Type
from blockgraph.ops.leaf import Input
from blockgraph.records import dataclass

ALL_OF_IT = Reach((Access(),))


@dataclass(frozen=True)
class Timing:
    """`timed` values depend on the number of positions, `given` ones on what the steps bring; the rest is fixed."""

    graph: Graph
    time: Dim
    timed: frozenset[int]
    given: frozenset[int]
    reaches: Mapping[int, Reach]

    def axes(self, value: int) -> tuple[int, ...]:
        """The axes of time."""
        return axes_of(self.graph.types[value].shape, self.time)

    def plain(self, value: int) -> bool:
        """Whether every axis whose size depends on time is one of time."""
        shape, symbol = self.graph.types[value].shape, str(self.time)
        return shape is not None and all(dim == self.time or not mentions(dim, symbol) for dim in shape)

    def stays(self, value: int) -> bool:
        """Whether the value has rows along time that later positions do not change."""
        axes = set(self.axes(value))
        return bool(axes) and all(
            any(interval.is_past for axis, interval in access.intervals if axis in axes)
            for access in self.reaches.get(value, NOTHING).accesses
        )

    def grows(self, value: int) -> bool:
        """Whether the value is rows along one axis of time that stay, so that they can be kept."""
        return self.plain(value) and len(self.axes(value)) == 1 and self.stays(value)


def timing(graph: Graph, time: Dim) -> Timing:
    """What every value of a flat graph has to do with the axis of this size."""
    timed: set[int] = set()
    given: set[int] = set()
    sources: dict[int, Reach] = {}
    for node in graph.nodes:
        op = node.op
        assert isinstance(op, Op), "stacks are written out before they are decoded"
        outs = tuple(graph.types[value] for value in node.outputs)
        read = [value for index, value in enumerate(node.inputs) if index not in op.shape_only]
        by_size = str(time) in op.symbols or any(mentions(dim, str(time)) for out in outs for dim in out.shape or ())
        if not (by_size or timed.intersection(node.inputs)):
            continue
        timed.update(node.outputs)
        if isinstance(op, Input) or given.intersection(read):
            given.update(node.outputs)
        if isinstance(op, Input) or not timed.intersection(read):
            sources.update(zip(node.outputs, (_own(out, time) for out in outs), strict=True))
        if _by_length(graph, node, op, str(time)):
            sources.update(dict.fromkeys(node.outputs, ALL_OF_IT))
    return Timing(graph, time, frozenset(timed), frozenset(given), follow(graph, sources, graph.dims))


def _own(out: Type, time: Dim) -> Reach:
    """Each position of an axis of time is a source of its own; without such an axis all of them are."""
    axes = [axis for axis, dim in enumerate(out.shape or ()) if mentions(dim, str(time))]
    return Reach(tuple(Access(((axis, OWN),)) for axis in axes)) if axes else ALL_OF_IT


def _by_length(graph: Graph, node: Node, op: Op, time: str) -> bool:
    """Whether numbers depend on how many positions there are: a factor 1/T, rows counted from the end."""
    types = tuple(graph.types[value] for value in node.inputs)
    bounds: list[Any] = [bound for move in op.moves(types) for bound in (move.low, move.high)]
    bounds += [bound for zero in op.zeros(types) for bound in (zero.low, zero.high)]
    bounds += [one.first for one in op.counts(types)]
    numbers = [getattr(op, field.name) for field in dataclasses.fields(op)]
    return any(mentions(one, time) for one in bounds) or any(
        mentions(one, time) for one in numbers if isinstance(one, Number)
    )
