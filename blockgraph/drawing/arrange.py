"""Diagram -> Sketch: the spine, the rails left of it, the columns right of it, and where lines turn.

A line that leaves the spine goes from a tap on the stream to a corner, up a lane to another corner, and from
there into the side of its box. Here this is decided; `place` finds the coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import Literal

from blockgraph.drawing.branching import Branch, Branching
from blockgraph.drawing.columns import share_lanes
from blockgraph.drawing.diagram import Diagram, Wire
from blockgraph.drawing.lanes import Lane
from blockgraph.drawing.wiring import Rail, Wiring
from blockgraph.records import dataclass

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
class Tap:
    """Where branches leave a column: the plate, where among the rows, and the plate in which they turn if another."""

    plate: int
    key: float
    branches: tuple[Branch, ...]
    turning: int | None = None


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
        self.ways = Branching(self.wiring)
        self.column, self.next, self.upward = self.ways.column, self.ways.next, self.ways.upward
        self.branches, self.first = self.ways.branches, self.ways.first
        self.lane_of = share_lanes(self.ways)

    def run(self) -> None:
        """Put every box on its lane, then draw box by box."""
        for box, column in self.column.items():
            self.sketch.lanes[box] = self.lane_of["column", column]
        for rail in self.wiring.rails.values():
            self.sketch.lanes |= dict.fromkeys(rail.chain, self.lane_of["rail", rail.target])
        for box in self.wiring.live:
            self.sketch.rows[("n", box)] = Row(box, [("n", box)])
        for box in self.column:
            self.leave(box)

    def leave(self, box: int) -> None:
        """Draw what goes up from a box: taps with their branches, then the next box or the way to side operands."""
        up, alone, taps = self.next.get(box), self.ways.is_end(box), self.taps(box)
        trunk: list[Ref] = [("n", box)]
        for number, tap in enumerate(taps, start=1):
            turns = alone and number == len(taps) and self.is_one_sided(box, tap)
            ref = self.point(tap.plate, self.sketch.lanes[box], tap=not turns)
            self.sketch.rows[ref] = Row(tap.key + number / 1_000_000, [ref])
            trunk.append(ref)
            entries = self.entries(tap)
            followers = {other.targets for others in entries.values() for other in others}
            for branch in tap.branches:
                if branch.targets not in followers:
                    self.branch(branch, trunk if alone else [ref], tap, entries.get(branch.targets, []))
        if up is not None:
            wire = self.wiring.main(up)
            assert wire is not None
            self.sketch.paths.append(Path(box, up, (*trunk, ("n", up)), wire, stem=True))
        elif box in self.upward:
            self.climb(trunk, self.upward[box], self.boxes[box].plate, stem=True)

    def is_one_sided(self, box: int, tap: Tap) -> bool:
        """Whether all that leaves at a tap goes to columns on one side."""
        forks = [branch.targets[0] for branch in tap.branches if branch.kind == "fork"]
        sides = {self.lane_of["column", self.column[target]] > self.sketch.lanes[box] for target in forks}
        return len(forks) == len(tap.branches) and len(sides) == 1

    def taps(self, box: int) -> list[Tap]:
        """The branches of a box by where they leave: from the lowest place, mostly the outermost plate, on."""
        found: dict[tuple[int, float, int | None], list[Branch]] = {}
        levels, around = [], self.diagram.around(self.boxes[box].plate)
        for branch in self.branches[box]:
            plate = self.ways.leaves_in(box, branch.targets)
            after, turning = (self.ways.inside(plate) if plate not in around else box), None
            if branch.kind == "fork" and self.ways.is_door(
                box, branch.targets[0]
            ):  # below what forks inside that plate
                after = max(self.ways.inside(self.boxes[branch.targets[0]].plate) - 0.0005, box)
                turning = self.turning(box, branch.targets[0], plate)
            if branch.kind == "level":
                levels.append(Tap(plate, after, (branch,)))
            else:
                found.setdefault((plate, after, turning), []).append(branch)
        made = [Tap(plate, after, tuple(listed), turning) for (plate, after, turning), listed in found.items()]
        return sorted(
            [*made, *levels], key=lambda tap: (tap.turning is not None, self.diagram.depth(tap.plate), tap.key)
        )

    def turning(self, source: int, target: int, plate: int) -> int:
        """The plate in which a line from the end of a column turns: that of its target, if it comes from the right."""
        right = self.sketch.lanes[source] > self.lane_of["column", self.column[target]]
        return self.ways.entered(target, self.boxes[source].plate) if right else plate

    def entries(self, tap: Tap) -> dict[tuple[int, ...], list[Branch]]:
        """Branches that go into one plate do so on one line: by that which does, the others that leave it inside."""
        entering: dict[int, list[Branch]] = {}
        for branch in tap.branches if tap.turning in (None, tap.plate) else ():
            around = self.diagram.around(self.boxes[branch.targets[0]].plate)
            if branch.kind == "fork" and tap.plate in around[1:] and self.boxes[branch.targets[0]].look != "port":
                entering.setdefault(around[around.index(tap.plate) - 1], []).append(branch)
        nearest = [sorted(found, key=lambda one: self.sketch.lanes[one.targets[0]]) for found in entering.values()]
        return {first.targets: others for first, *others in nearest if others}

    def enter_together(self, first: Branch, others: list[Branch]) -> tuple[Ref, ...]:
        """A tap inside the plate, on the line of the first branch, from which the others go on."""
        if not others:
            return ()
        plate = reduce(self.diagram.common, [self.boxes[one.targets[0]].plate for one in (first, *others)])
        tap = self.point(plate, self.sketch.lanes[first.targets[0]], tap=True)
        self.sketch.rows[tap] = Row(self.ways.inside(plate), [tap])
        for one in others:
            corner = self.corner(plate, self.sketch.lanes[one.targets[0]], tap)
            self.sketch.paths.append(Path(one.wire.box, one.targets[0], (tap, corner, ("n", one.targets[0])), one.wire))
        return (tap,)

    def branch(self, branch: Branch, trunk: list[Ref], tap: Tap, others: list[Branch]) -> None:
        """Draw what leaves the stream at a tap, the last of the trunk."""
        last, target, stem = trunk[-1], branch.targets[0], len(trunk) == 2 and branch is tap.branches[0]
        if branch.kind == "level":
            self.sketch.rows[last].refs += self.sketch.rows[("n", target)].refs
            for ref in self.sketch.rows[("n", target)].refs:
                self.sketch.rows[ref] = self.sketch.rows[last]
            self.sketch.paths.append(Path(branch.wire.box, target, (*trunk, ("n", target)), branch.wire))
            return
        inner = self.diagram.common(tap.plate, self.boxes[target].plate) if tap.turning is None else tap.turning
        if branch.rail is not None:
            corner = self.corner(inner, self.lane_of["rail", target], last)
            self.rail(branch.rail, [*trunk, corner], inner)
        elif branch.kind == "fork":
            corner = self.corner(inner, self.lane_of["column", self.column[target]], last)
            refs = (*trunk, corner, *self.enter_together(branch, others), ("n", target))
            self.sketch.paths.append(Path(branch.wire.box, target, refs, branch.wire, stem=stem))
        else:
            corner = self.corner(tap.plate, self.lane_of["lane", branch.wire.box], last)
            self.climb([*trunk, corner], [(box, branch.wire) for box in branch.targets], tap.plate)

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
