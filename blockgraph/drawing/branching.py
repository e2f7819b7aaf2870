"""What leaves the columns of a wiring for other columns, and in which plates it does.

A branch is a rail, the first line of another column, a lane to side operands, or a level arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from blockgraph.drawing.diagram import FIGURE, Diagram, Wire
from blockgraph.drawing.wiring import Rail, Wiring
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """What leaves the column of its source: a rail, another column's first box, side operands, or a level arrow."""

    kind: Literal["rail", "fork", "lane", "level"]
    targets: tuple[int, ...]
    wire: Wire
    rail: Rail | None = None


class Branching:
    """The columns of a wiring and what goes from one to another, before anything has a place."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring, self.boxes, self.diagram = wiring, wiring.boxes, wiring.diagram
        self.column = {box: n for n, boxes in enumerate(wiring.columns) for box in boxes}
        self.next = {low: high for boxes in wiring.columns for low, high in pairwise(boxes)}
        self.first = first_boxes(self.diagram, wiring)
        self.upward: dict[int, list[tuple[int, Wire]]] = {}
        self.branches: dict[int, list[Branch]] = {box: [] for box in wiring.live}
        for box in wiring.live:
            self.enter(box)
        self.branches = {source: _grouped(found) for source, found in self.branches.items()}

    def enter(self, box: int) -> None:
        """Note at its source each line that enters a box from elsewhere than below in its column."""
        rail, main = self.wiring.rails.get(box), self.wiring.main(box)
        if rail is not None:
            self.branches[rail.source].append(Branch("rail", (box,), rail.wire, rail))
        if box not in self.column:
            return
        if main is not None and self.next.get(main.box) != box:
            self.branches[main.box].append(Branch("fork", (box,), main))
        for wire in self.wiring.sides(box):
            if wire.box not in self.next:
                self.upward.setdefault(wire.box, []).append((box, wire))
            else:
                self.branches[wire.box].append(Branch(self.side_kind(box, wire), (box,), wire))

    def side_kind(self, box: int, wire: Wire) -> Literal["lane", "level"]:
        """A level arrow needs a box further right whose other operands are all ready at that height."""
        others = [other.box for other in self.boxes[box].inputs if other != wire]
        right = self.column[box] > self.column[wire.box] == 0
        return "level" if right and others and max(others) < wire.box else "lane"

    def is_end(self, box: int) -> bool:
        """Whether a column ends with a box of which nothing but other columns begins."""
        return box not in self.next and box not in self.upward

    def is_door(self, source: int, target: int) -> bool:
        """Whether a line from the end of a column goes into a plate: it turns there, below its target."""
        return self.is_end(source) and self.boxes[target].plate not in self.diagram.around(self.boxes[source].plate)

    def turn(self, source: int, target: int) -> int:
        """After which box the line from a column to another one turns."""
        entered = self.is_door(source, target)
        return max(self.first[self.boxes[target].plate] - 1, source) if entered else source

    def leaves_in(self, box: int, targets: Sequence[int]) -> int:
        """The plate in which a branch leaves a column: the innermost that a target shares with what is ahead."""
        place = self.boxes[box].plate
        ahead = self.entered(self.next[box], place) if box in self.next else place
        inner = [self.diagram.common(ahead, self.entered(target, place)) for target in targets]
        passed = [] if self.is_end(box) else [self.diagram.common(place, ahead)]
        return max([*passed, *inner], key=self.diagram.depth)

    def entered(self, box: int, place: int) -> int:
        """The plate up to which a line from a place goes to a box: a port stands in the border of its plate."""
        plate = self.boxes[box].plate
        door = self.boxes[box].look == "port" and plate not in self.diagram.around(place)
        return (self.diagram.plates[plate].parent or FIGURE) if door else plate

    def inside(self, plate: int) -> float:
        """The key of a row below the first box of a plate: that of an inner plate is above that of an outer one."""
        return self.first[plate] - 0.5 + self.diagram.depth(plate) / 1000


def first_boxes(diagram: Diagram, wiring: Wiring) -> dict[int, int]:
    """The first box in each plate."""
    found: dict[int, int] = {}
    for box in reversed(wiring.live):
        found |= dict.fromkeys(diagram.around(wiring.boxes[box].plate), box)
    return found


def _grouped(branches: Iterable[Branch]) -> list[Branch]:
    """All side operands of one source share a lane."""
    rest: list[Branch] = []
    lanes: list[Branch] = []
    for branch in branches:
        (lanes if branch.kind == "lane" else rest).append(branch)
    if lanes:
        rest.append(Branch("lane", tuple(target for branch in lanes for target in branch.targets), lanes[0].wire))
    return rest
