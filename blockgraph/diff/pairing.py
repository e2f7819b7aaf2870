"""Two graphs with their units matched: what the rules of the comparison share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Final

from blockgraph.diff.naming import Naming
from blockgraph.diff.placement import Standings
from blockgraph.diff.units import Unit, Units
from blockgraph.graph import Graph, Port
from blockgraph.records import dataclass

NOWHERE: Final = -1000  # where a value comes from that is neither a unit's nor an input


@dataclass
class Pairing:
    """Two graphs with their units matched. `consumed` are units whose coming or going another change tells."""

    left: Units
    right: Units
    naming: Naming
    pairs: list[tuple[int, int]] = field(default_factory=list)
    consumed: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    rewired: set[int] = field(default_factory=set)
    touched: dict[int, list[str]] = field(default_factory=dict)
    standings: tuple[Standings, Standings] = field(default_factory=lambda: ({}, {}))
    settled: set[tuple[int, int]] = field(default_factory=set)

    @cached_property
    def forth(self) -> dict[int, int]:
        """The unit on the right of each matched one on the left, once the pairs are settled."""
        return dict(self.pairs)

    @cached_property
    def ports(self) -> list[tuple[Port, Port]]:
        """The inputs of the two graphs that are each other's."""
        return paired_ports(self.left.graph, self.right.graph)

    @cached_property
    def _inputs(self) -> dict[int, int]:
        """The number of the partner of each input that has one, as negative numbers from -1 on."""
        left, right = self.left.graph.inputs, self.right.graph.inputs
        return {-1 - left.index(a): -1 - right.index(b) for a, b in self.ports}

    def partner(self, origin: int) -> int:
        """The unit or input on the right of one on the left; inputs are negative, and one that is gone is no input."""
        if origin >= 0 or origin <= NOWHERE:
            return self.forth.get(origin, origin)
        return self._inputs.get(origin, NOWHERE - 1)

    @cached_property
    def dropped(self) -> tuple[dict[int, int], dict[int, int]]:
        """The sums of matched sublayers whose partner is added to nothing, each with the branch it leaves."""
        ours, theirs = self.standings
        found: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for i, j in self.pairs:
            pair = ours.get(i), theirs.get(j)
            for side, one, other in ((0, *pair), (1, *pair[::-1])):
                if one is not None and other is not None and one.plus and not other.plus:
                    found[side].update(zip(one.plus, one.branches, strict=True))
        return found

    @cached_property
    def back(self) -> dict[int, int]:
        """The unit on the left of each matched one on the right."""
        return {b: a for a, b in self.pairs}


def paired_ports(left: Graph, right: Graph) -> list[tuple[Port, Port]]:
    """The inputs of two graphs that are each other's: of one kind, then whatever is left over.

    Inputs of as many graphs stand at equal places; where some came or went, those of one name are preferred.
    """
    places = len(left.inputs) == len(right.inputs)
    ours, theirs = dict(enumerate(left.inputs)), dict(enumerate(right.inputs))
    found: list[tuple[int, int]] = []

    def take(fits: Callable[[int, int], bool]) -> None:
        for i in list(ours):
            j = next((j for j in theirs if fits(i, j)), None)
            if j is not None:
                del ours[i], theirs[j]
                found.append((i, j))

    def alike(i: int, j: int) -> bool:
        one, other = left.types[left.inputs[i].value], right.types[right.inputs[j].value]
        return one.dtype == other.dtype and len(one.shape or ()) == len(other.shape or ())

    take(lambda i, j: alike(i, j) and (i == j if places else left.inputs[i].name == right.inputs[j].name))
    take(alike)
    take(lambda i, j: True)
    return [(left.inputs[i], right.inputs[j]) for i, j in sorted(found)]


def paired_reads(ours: Unit, theirs: Unit) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What two units read; of two stacks what enters by inputs that both have, as the others are told themselves."""
    one, other = ours.repeat, theirs.repeat
    if one is None or other is None:
        return ours.reads, theirs.reads
    left, right = one.bodies[0], other.bodies[0]
    ports = [(left.inputs.index(a), right.inputs.index(b)) for a, b in paired_ports(left, right)]
    given = ours.nodes[-1].inputs, theirs.nodes[-1].inputs
    return tuple(given[0][i] for i, _ in ports), tuple(given[1][j] for _, j in ports)
