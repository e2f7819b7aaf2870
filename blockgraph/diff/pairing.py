"""Two graphs with their units matched: what the rules of the comparison share."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from blockgraph.diff.naming import Naming
from blockgraph.diff.placement import Standings
from blockgraph.diff.units import Units
from blockgraph.records import dataclass


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
