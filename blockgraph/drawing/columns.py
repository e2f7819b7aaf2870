"""Which lane each column, each line to side operands and each rail of a figure gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, reduce

from blockgraph.drawing.branching import Branching
from blockgraph.drawing.diagram import FIGURE
from blockgraph.drawing.lanes import Item, Key, Lane, Span, pack
from blockgraph.drawing.wiring import Rail


def share_lanes(ways: Branching) -> dict[Key, Lane]:
    """The lane of each column, of the lane that leaves each box, and of the rail to each plus."""
    return _Shared(ways).lanes()


class _Shared:
    """The lanes being shared out."""

    def __init__(self, ways: Branching) -> None:
        self.ways, self.wiring, self.boxes, self.diagram = ways, ways.wiring, ways.boxes, ways.diagram

    @cached_property
    def rails(self) -> dict[int, list[Rail]]:
        """The rails beside each column."""
        found: dict[int, list[Rail]] = defaultdict(list)
        for rail in self.wiring.rails.values():
            found[self.ways.column[rail.target]].append(rail)
        return found

    def lanes(self) -> dict[Key, Lane]:
        """Columns and lanes right of the spine, rails left of their column; what overlaps gets a lane of its own."""
        items: list[Item] = []
        for number, boxes in sorted(enumerate(self.wiring.columns), key=lambda item: item[1][0]):
            if number:
                items.append(self.column_item(number, boxes))
        for source, branches in self.ways.branches.items():
            for branch in branches:
                if branch.kind == "lane":
                    plate = self.ways.leaves_in(source, branch.targets)
                    span = source, max(branch.targets)
                    items.append(Item(("lane", source), span, plate, self.beyond(branch.targets, plate)))
        packed = pack(items, self.diagram, self.boxes)
        found = {("column", 0): (0, 0)} | {key: (lane + 1, 0) for key, lane in packed.items()}
        return found | self.beside(found)

    def column_item(self, number: int, boxes: list[int]) -> Item:
        """A column with the rails beside it, from where the first of them begins to where it ends."""
        ends = [box for box, _ in self.ways.upward.get(boxes[-1], ())]
        forks = [box for branch in self.ways.branches[boxes[-1]] for box in branch.targets]
        low, high = self.column_span(boxes, [*ends, *(self.ways.turn(boxes[-1], box) + 1 for box in forks)])
        plates = [self.boxes[box].plate for box in (*boxes, *ends, *forks)]
        for rail in self.rails.get(number, ()):
            low = min(low, rail.source)
            plates.append(self.ways.leaves_in(rail.source, (rail.target,)))
        plate = reduce(self.diagram.common, plates)
        return Item(("column", number), (low, high), plate, self.beyond(ends, plate), self.continued(boxes[0]))

    def continued(self, first: int) -> Key | None:
        """The column from whose end nothing leaves but the one that begins with this box."""
        main = self.wiring.main(first)
        if main is None or not self.ways.is_door(main.box, first) or len(self.ways.branches[main.box]) > 1:
            return None
        return "column", self.ways.column[main.box]

    def beyond(self, targets: Iterable[int], plate: int) -> Key | None:
        """The column, not the spine, that a line joins from the right: in a plate, or where a rail is on its left."""
        for target in targets:
            number = self.ways.column[target]
            rails = self.rails.get(number, ()) if number and plate == FIGURE else ()
            if number and (plate != FIGURE or any(rail.source < target < rail.target for rail in rails)):
                return "column", number
        return None

    def beside(self, lanes: dict[Key, Lane]) -> dict[Key, Lane]:
        """The lanes of the rails, left of the column that each belongs to."""
        found: dict[Key, Lane] = {}
        for column, rails in self.rails.items():
            plates = [self.ways.leaves_in(rail.source, (rail.target,)) for rail in rails]
            spans = zip(rails, plates, strict=True)
            items = [Item(("rail", rail.target), (rail.source, rail.target), plate) for rail, plate in spans]
            packed = pack(items, self.diagram, self.boxes)
            found |= {key: (lanes["column", column][0], -1 - lane) for key, lane in packed.items()}
        return found

    def column_span(self, boxes: list[int], ends: list[int]) -> Span:
        """From where a column leaves another to where it joins another; inputs are at the very bottom."""
        main, first = self.wiring.main(boxes[0]), self.boxes[boxes[0]]
        start = boxes[0] if main is None else self.ways.turn(main.box, boxes[0])
        return -1 if first.look == "input" else start, max([boxes[-1], *ends])
