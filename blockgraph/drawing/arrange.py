"""Diagram -> Sketch: the spine, the rails left of it, the columns right of it, and where lines turn.

A line that leaves the spine goes from a tap on the stream to a corner, up a lane to another corner, and from
there into the side of its box. Here this is decided; `place` finds the coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Literal

from blockgraph.drawing.diagram import Diagram, Wire
from blockgraph.drawing.lanes import Item, Span, pack
from blockgraph.drawing.wiring import Rail, Wiring
from blockgraph.records import dataclass

Lane = tuple[int, int]
"""Where a vertical line runs: its column (0 is the spine), and its place among the rails left of it (0, -1 ...)."""
Ref = tuple[Literal["n", "p"], int]
"""A box or a point."""


@dataclass(frozen=True, slots=True)
class Point:
    """A tap (a dot on the stream) or a corner."""

    tap: bool
    plate: int
    lane: Lane


@dataclass(frozen=True, slots=True)
class Path:
    """The line of one wire: from a box, or a tap above it, over corners to a box. `stem` lines leave the box itself."""

    start: int
    end: int
    refs: tuple[Ref, ...]
    wire: Wire
    rail: bool = False
    stem: bool = False


@dataclass(slots=True)
class Row:
    """What lies on one height: the centre, and corners left and right of it.

    `key` orders heights: a row with a larger key is not below.
    """

    key: float
    refs: list[Ref]


@dataclass(slots=True)
class Sketch:
    """Everything to be drawn, without coordinates. `lanes` is the lane of each box."""

    wiring: Wiring
    lanes: dict[int, Lane] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    rows: dict[Ref, Row] = field(default_factory=dict)

    def plate(self, ref: Ref) -> int:
        """The plate in which a box or a point stands."""
        return self.wiring.boxes[ref[1]].plate if ref[0] == "n" else self.points[ref[1]].plate

    def lane(self, ref: Ref) -> Lane:
        """The lane on which a box or a point stands."""
        return self.lanes[ref[1]] if ref[0] == "n" else self.points[ref[1]].lane


@dataclass(frozen=True, slots=True)
class Branch:
    """What leaves the column of its source: a rail, another column's first box, side operands, or a level arrow."""

    kind: Literal["rail", "fork", "lane", "level"]
    targets: tuple[int, ...]
    wire: Wire
    rail: Rail | None = None


def arrange(diagram: Diagram) -> Sketch:
    """Where everything stands and turns."""
    sketch = Sketch(Wiring(diagram))
    _Arranger(sketch).run()
    return sketch


class _Arranger:
    """The sketch being made."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch, self.wiring = sketch, sketch.wiring
        self.boxes, self.diagram = sketch.wiring.boxes, sketch.wiring.diagram
        self.column = {box: n for n, boxes in enumerate(self.wiring.columns) for box in boxes}
        self.next = {low: high for boxes in self.wiring.columns for low, high in pairwise(boxes)}
        self.first = first_boxes(self.diagram, self.wiring)
        self.branches: dict[int, list[Branch]] = {box: [] for box in self.wiring.live}
        self.upward: dict[int, list[tuple[int, Wire]]] = {}
        self.lane_of: dict[tuple[str, int], Lane] = {}

    def run(self) -> None:
        """Find what leaves each column, give every line a lane, then draw box by box."""
        for box in self.wiring.live:
            self.enter(box)
        self.branches = {source: _grouped(found) for source, found in self.branches.items()}
        self.share_lanes()
        for box, column in self.column.items():
            self.sketch.lanes[box] = self.lane_of["column", column]
        for rail in self.wiring.rails.values():
            self.sketch.lanes |= dict.fromkeys(rail.chain, self.lane_of["rail", rail.target])
        for box in self.wiring.live:
            self.sketch.rows[("n", box)] = Row(box, [("n", box)])
        for box in self.column:
            self.leave(box)

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

    def share_lanes(self) -> None:
        """Columns and lanes right of the spine, rails left of their column; what overlaps gets a lane of its own."""
        items: list[Item] = []
        for number, boxes in sorted(enumerate(self.wiring.columns), key=lambda item: item[1][0]):
            ends = [box for box, _ in self.upward.get(boxes[-1], ())]
            if number:
                items.append(Item(("column", number), self.column_span(boxes, ends), self.common([*boxes, *ends])))
        for source, found in self.branches.items():
            for branch in found:
                if branch.kind == "lane":
                    plate = self.leaves_in(source, branch.targets)
                    items.append(Item(("lane", source), (source, max(branch.targets)), plate))
        lanes = pack(items, self.diagram, self.boxes)
        self.lane_of = {("column", 0): (0, 0)} | {key: (lane + 1, 0) for key, lane in lanes.items()}
        self.share_rails()

    def share_rails(self) -> None:
        rails: dict[int, list[Item]] = {}
        for rail in self.wiring.rails.values():
            plate = self.leaves_in(rail.source, (rail.target,))
            item = Item(("rail", rail.target), (rail.source, rail.target), plate)
            rails.setdefault(self.column[rail.target], []).append(item)
        for column, items in rails.items():
            base = self.lane_of["column", column][0]
            lanes = pack(items, self.diagram, self.boxes)
            self.lane_of |= {key: (base, -1 - lane) for key, lane in lanes.items()}

    def common(self, boxes: Sequence[int]) -> int:
        """The innermost plate around boxes."""
        plate = self.boxes[boxes[0]].plate
        for box in boxes[1:]:
            plate = self.diagram.common(plate, self.boxes[box].plate)
        return plate

    def column_span(self, boxes: list[int], ends: list[int]) -> Span:
        """From where a column leaves another to where it joins another; inputs are at the very bottom."""
        main, first = self.wiring.main(boxes[0]), self.boxes[boxes[0]]
        start = boxes[0] if main is None else main.box
        return -1 if first.look == "input" else start, max([boxes[-1], *ends])

    def leave(self, box: int) -> None:
        """Draw what goes up from a box: taps with their branches, then the next box or the way to side operands."""
        up = self.next.get(box)
        trunk: list[Ref] = [("n", box)]
        alone = up is None and box not in self.upward
        for number, (plate, branches) in enumerate(self.taps(box), start=1):
            tap = self.point(plate, self.sketch.lanes[box], tap=True)
            inside = plate not in self.diagram.around(self.boxes[box].plate)
            self.sketch.rows[tap] = Row((self.first[plate] - 1 if inside else box) + number / 1000, [tap])
            trunk.append(tap)
            for branch in branches:
                self.branch(branch, trunk if alone else [tap], plate)
        if up is not None:
            wire = self.wiring.main(up)
            assert wire is not None
            self.sketch.paths.append(Path(box, up, (*trunk, ("n", up)), wire, stem=True))
        elif box in self.upward:
            self.climb(trunk, self.upward[box], self.boxes[box].plate, stem=True)

    def leaves_in(self, box: int, targets: Sequence[int]) -> int:
        """The plate in which a branch leaves a column: the innermost that a target shares with what is ahead."""
        place = self.boxes[box].plate
        ahead = self.boxes[self.next[box]].plate if box in self.next else place
        inner = [self.diagram.common(ahead, self.boxes[target].plate) for target in targets]
        return max([self.diagram.common(place, ahead), *inner], key=self.diagram.depth)

    def taps(self, box: int) -> list[tuple[int, list[Branch]]]:
        """The branches of a box by the plate in which they leave, the outermost plate first."""
        found: dict[int, list[Branch]] = {}
        levels = []
        for branch in self.branches[box]:
            plate = self.leaves_in(box, branch.targets)
            if branch.kind == "level":
                levels.append((plate, [branch]))
            else:
                found.setdefault(plate, []).append(branch)
        return sorted([*found.items(), *levels], key=lambda item: self.diagram.depth(item[0]))

    def branch(self, branch: Branch, trunk: list[Ref], plate: int) -> None:
        """Draw what leaves the stream at a tap, the last of the trunk."""
        tap, target = trunk[-1], branch.targets[0]
        if branch.kind == "level":
            self.sketch.rows[tap].refs += self.sketch.rows[("n", target)].refs
            for ref in self.sketch.rows[("n", target)].refs:
                self.sketch.rows[ref] = self.sketch.rows[tap]
            self.sketch.paths.append(Path(branch.wire.box, target, (*trunk, ("n", target)), branch.wire))
            return
        inner = self.diagram.common(plate, self.boxes[target].plate)
        if branch.rail is not None:
            corner = self.corner(inner, self.lane_of["rail", target], tap)
            self.rail(branch.rail, [*trunk, corner], inner)
        elif branch.kind == "fork":
            corner = self.corner(inner, self.lane_of["column", self.column[target]], tap)
            self.sketch.paths.append(Path(branch.wire.box, target, (*trunk, corner, ("n", target)), branch.wire))
        else:
            corner = self.corner(plate, self.lane_of["lane", branch.wire.box], tap)
            self.climb([*trunk, corner], [(box, branch.wire) for box in branch.targets], plate)

    def rail(self, rail: Rail, trunk: list[Ref], plate: int) -> None:
        """Up the rail, through its ops, and over to the plus."""
        below = rail.source
        for box in rail.chain:
            wire = self.boxes[box].inputs[0]
            self.sketch.paths.append(Path(below, box, (*trunk, ("n", box)), wire, rail=True))
            below, trunk = box, [("n", box)]
        top = self.corner(plate, self.lane_of["rail", rail.target], ("n", rail.target))
        self.sketch.paths.append(Path(below, rail.target, (*trunk, top, ("n", rail.target)), rail.wire, rail=True))

    def climb(self, trunk: list[Ref], targets: Sequence[tuple[int, Wire]], plate: int, *, stem: bool = False) -> None:
        """Up a lane to each side operand in turn."""
        lane = self.sketch.lane(trunk[-1])
        for target, wire in targets:
            inner = self.diagram.common(plate, self.boxes[target].plate)
            corner = self.corner(inner, lane, ("n", target))
            self.sketch.paths.append(Path(wire.box, target, (*trunk, corner, ("n", target)), wire, stem=stem))
            trunk, stem = [*trunk, corner], False

    def corner(self, plate: int, lane: Lane, beside: Ref) -> Ref:
        """A corner on a lane, at the height of something else."""
        ref = self.point(plate, lane)
        row = self.sketch.rows[beside]
        row.refs.append(ref)
        self.sketch.rows[ref] = row
        return ref

    def point(self, plate: int, lane: Lane, *, tap: bool = False) -> Ref:
        self.sketch.points.append(Point(tap, plate, lane))
        return ("p", len(self.sketch.points) - 1)


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
