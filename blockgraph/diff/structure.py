"""One graph as it is compared: what is worked out once, however many others it is compared with."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from blockgraph.diff.align import Keys, keys
from blockgraph.diff.canonical import canonical
from blockgraph.diff.placement import Standing, standings
from blockgraph.diff.units import Units
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass


@dataclass(frozen=True)
class Outline:
    """The units of one graph or body, by what they are matched, and how its sublayers stand."""

    units: Units

    @cached_property
    def keys(self) -> list[Keys]:
        """What each unit is, from exact to coarse."""
        return [keys(self.units, one) for one in self.units.all]

    @cached_property
    def standings(self) -> dict[int, Standing]:
        """The standing of each sublayer, by number of its unit."""
        return standings(self.units)


@dataclass(frozen=True)
class Structure:
    """A graph with its canonical form and the outlines of it and of the bodies of its stacks."""

    graph: Graph
    _outlines: dict[int, Outline] = field(default_factory=dict, repr=False)

    @cached_property
    def canonical(self) -> list[str]:
        """The canonical form."""
        return canonical(self.graph)

    @cached_property
    def size(self) -> int:
        """How many units the graph and the bodies of its stacks have."""
        found = [self.graph]
        for graph in found:  # grows on the way
            found += [body for node in graph.nodes if isinstance(node.op, Repeat) for body in node.op.bodies]
        return sum(len(self.outline(graph).units.all) for graph in {id(graph): graph for graph in found}.values())

    def outline(self, graph: Graph) -> Outline:
        """The outline of the graph or of one of its bodies."""
        return self._outlines.setdefault(id(graph), Outline(Units(graph)))
