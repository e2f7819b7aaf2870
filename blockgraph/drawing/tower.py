"""How far along the spine everything stands: rows in the order in which the boxes run, each as low as it can be.

A row stands above what is on the tracks it covers, so that no line crosses a box, no two level lines meet, and nothing
foreign gets into a plate. Then the columns that begin with an input close up from above: where a decoder waits for its
encoder, the gap is below it and not in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import pairwise
from typing import Final

from blockgraph.drawing.arrange import Path, Ref, Row, Sketch
from blockgraph.drawing.closing import Bound, brought_near, closed_up
from blockgraph.drawing.diagram import FIGURE
from blockgraph.drawing.lanes import Lane
from blockgraph.drawing.layout import MARGIN, Layout, back, enters_aside, extents, tell_at, tells_at_start
from blockgraph.drawing.lines import spread
from blockgraph.drawing.tracks import lanes

GAP: Final = 17.0  # between a box and what is above it: room for an arrow
TAP_GAP: Final = 13.0  # above a box up to a tap
BORDER: Final = 9.0  # between the border of a plate and what is outside
GROUND: Final = 0  # the first thing that is put: the floor of the figure


class Tower:
    """Rows being piled up. What is put is a number; the floor of a plate and its ceiling are put as rows are."""

    def __init__(self, sketch: Sketch, layout: Layout) -> None:
        self.sketch, self.layout = sketch, layout
        self.diagram = sketch.wiring.diagram
        listed = lanes(sketch)
        self.place_of = {lane: n for n, lane in enumerate(listed)}
        self.extents = extents(sketch)
        self.at: list[float] = []
        self.bounds: list[list[Bound]] = []
        self.top: list[list[Bound]] = [[] for _ in listed]  # what each track is taken up by
        self.floor: dict[int, int] = {FIGURE: self.put([])}
        self.inside: dict[int, list[Bound]] = {}  # what the ceiling of each plate is above
        self.row: dict[int, int] = {}
        self.told: dict[Ref, float] = {}  # how long the text is that stands beside a line from there
        for number in tells_at_start(sketch, layout):
            ref = tell_at(sketch, sketch.paths[number])[0]
            self.told[ref] = max(self.told.get(ref, 0.0), layout.tell_length(number))

    def put(self, bounds: list[Bound]) -> int:
        """Put a thing as low as its bounds allow."""
        self.at.append(max((self.at[below] + gap for below, gap in bounds), default=0.0))
        self.bounds.append(bounds)
        return len(self.at) - 1

    def heights(self) -> dict[Ref, float]:
        """How far along each box and point is."""
        below = self.lines_below()
        rows = sorted({id(row): row for row in self.sketch.rows.values()}.values(), key=lambda row: row.key)
        last = self.last_rows(rows)
        for row in rows:
            lines = [bound for line in below.get(id(row), ()) for bound in self.above(*line)]
            self.put_row(row, [*self.lowest(row), *lines])
            for plate in last.get(id(row), ()):
                self.close(plate)
        self.outputs_on_top(rows)
        self.close_up(rows)
        return {ref: self.at[self.row[id(row)]] for row in rows for ref in row.refs}

    def lines_below(self) -> dict[int, list[tuple[Ref, Ref, float, float]]]:
        """For each row the stretches of line along the spine that end in it, with more room where texts stand.

        Last stands how much lower than the middle of the row such a line turns into the side of its box.
        """
        found: dict[int, list[tuple[Ref, Ref, float, float]]] = {}
        nudges = spread(self.sketch, self.layout)
        for number, path in enumerate(self.sketch.paths):
            told = tell_at(self.sketch, path) if number in self.layout.tells else None
            pairs = list(pairwise(path.refs))
            for low, high in pairs:
                if self.sketch.rows[low] is not self.sketch.rows[high]:
                    room = self.layout.tell_length(number) if (low, high) == told else 0.0
                    room += self.name_room(number) if (low, high) == pairs[-1] else 0.0
                    lower = max(-nudges.get(number, 0.0), 0.0) if [(low, high)] == pairs[-2:-1] else 0.0
                    found.setdefault(id(self.sketch.rows[high]), []).append((low, high, room, lower))
        return found

    def name_room(self, path: int) -> float:
        """The room along a line for the name at its end; upright, the name is on the other side than the shape."""
        aside = path not in self.layout.names or enters_aside(self.sketch, self.sketch.paths[path])
        return 0.0 if aside or self.layout.axes.upright else max(self.layout.name_width(path) - 4, 0.0)

    def last_rows(self, rows: list[Row]) -> dict[int, list[int]]:
        """The plates that end with each row, inner ones first."""
        last: dict[int, int] = {}
        for row in rows:
            for ref in row.refs:
                last |= dict.fromkeys(self.diagram.around(self.sketch.plate(ref)), id(row))
        found: dict[int, list[int]] = {}
        for plate in sorted(last, key=lambda plate: -self.diagram.depth(plate)):
            if plate != FIGURE:
                found.setdefault(last[plate], []).append(plate)
        return found

    def covered(self, low: Lane, high: Lane) -> range:
        """The tracks between two lanes."""
        return range(self.place_of[low], self.place_of[high] + 1)

    def across(self, row: Row) -> range:
        """The tracks that a row covers."""
        found = [self.sketch.lane(ref) for ref in row.refs]
        return self.covered(min(found), max(found))

    def half(self, ref: Ref) -> float:
        """Half of a box, along the spine."""
        return self.layout.sizes[ref[1]][1] / 2 if ref[0] == "n" else 0.0

    def halves(self, row: Row) -> dict[int, float]:
        """Half of what a row has on each of its tracks."""
        own = {self.place_of[self.sketch.lane(ref)]: self.half(ref) for ref in row.refs}
        return dict.fromkeys(self.across(row), 0.0) | own

    def lowest(self, row: Row) -> list[Bound]:
        """Above everything on the tracks that the row covers, and inside its plates."""
        found = [
            (below, gap + half + TAP_GAP) for track, half in self.halves(row).items() for below, gap in self.top[track]
        ]
        for ref in row.refs:
            plate = self.sketch.plate(ref)
            self.open(plate)
            found.append((self.floor[plate], self.half(ref) + (MARGIN if plate else 0.0)))
        return found

    def open(self, plate: int) -> None:
        """Lay the floor of a plate and of those around it, above everything on its tracks."""
        for inner in reversed(self.diagram.around(plate)):
            if inner not in self.floor:
                more = back(self.diagram.plates[inner])
                parent = self.diagram.plates[inner].parent or FIGURE
                tracks = self.covered(*self.extents[inner])
                bounds = [(below, gap + BORDER + more) for track in tracks for below, gap in self.top[track]]
                self.floor[inner] = self.put([*bounds, (self.floor[parent], MARGIN * bool(parent) + more)])

    def above(self, low: Ref, high: Ref, room: float, lower: float) -> list[Bound]:
        """How high the end of a line must be for its start."""
        gap = GAP if high[0] == "n" or low[0] == "p" else TAP_GAP
        start, half, below = self.half(low), self.half(high) + lower, self.row[id(self.sketch.rows[low])]
        if not room:
            return [(below, start + gap + half)]
        around = self.diagram.around(self.sketch.plate(low))
        entered = [plate for plate in self.diagram.around(self.sketch.plate(high)) if plate not in around]
        inside = sum(MARGIN + back(self.diagram.plates[plate]) for plate in entered)
        taken = self.top[self.place_of[self.sketch.lane(high)]]
        own = (below, start + max(gap, inside + BORDER - 3) + room + half)
        return [own, *((other, more + gap + room + half) for other, more in taken if other != below)]

    def put_row(self, row: Row, bounds: list[Bound]) -> None:
        """Put a row; its tracks are taken up by it."""
        number = self.row[id(row)] = self.put(bounds)
        told = {self.place_of[self.sketch.lane(ref)]: self.told.get(ref, 0.0) for ref in row.refs}
        for track, half in self.halves(row).items():
            self.top[track] = [(number, half + told.get(track, 0.0))]
        for ref in row.refs:
            for plate in self.diagram.around(self.sketch.plate(ref)):
                self.inside.setdefault(plate, []).append((number, self.half(ref) + self.told.get(ref, 0.0)))

    def close(self, plate: int) -> None:
        """Take the tracks of a plate up to its upper border."""
        room = MARGIN + self.layout.room(plate)[1] + back(self.diagram.plates[plate])
        room += 4 if self.layout.room(plate)[1] else 0.0
        bounds = [(below, gap + room) for below, gap in self.inside[plate]]
        if not self.layout.axes.upright:
            bounds.append((self.floor[plate], self.layout.labels[plate].width + 16))
        ceiling = self.put(bounds)
        for around in self.diagram.around(plate):
            self.inside.setdefault(around, []).append((ceiling, 0.0))
        for track in self.covered(*self.extents[plate]):
            self.top[track] = [*self.top[track], (ceiling, 0.0)]

    def outputs_on_top(self, rows: list[Row]) -> None:
        """All outputs at one height, above everything else."""
        outputs = [row for row in rows if self.looks(row, "output")]
        ends = [self.at[self.row[id(row)]] for row in outputs]
        others = [row for row in rows if row not in outputs]
        ends += [self.at[self.row[id(row)]] + max(map(self.half, row.refs)) + GAP for row in others]
        for row in outputs:
            self.at[self.row[id(row)]] = max(ends)

    def looks(self, row: Row, look: str) -> bool:
        """Whether a row has a box that looks so."""
        return any(ref[0] == "n" and self.sketch.wiring.boxes[ref[1]].look == look for ref in row.refs)

    def close_up(self, rows: list[Row]) -> None:
        """Raise the columns that begin with an input, or with nothing, to where what they wait for lets them be."""
        wiring, boxes = self.sketch.wiring, self.sketch.wiring.boxes
        inputs = frozenset(self.row[id(row)] for row in rows if self.looks(row, "input"))
        begun = [column for column in wiring.columns if not boxes[column[0]].inputs]
        columns = [[*([] if boxes[column[0]].look == "input" else [GROUND]), *self.things(column)] for column in begun]
        self.at = closed_up(self.at, self.bounds, set(self.row.values()), columns, inputs, self.hanging(begun))
        alone = {self.number(("n", column[0])) for column in begun if len(column) > 1}
        self.at = brought_near(self.at, self.bounds, inputs & alone)

    def hanging(self, begun: list[list[int]]) -> list[tuple[int, list[int]]]:
        """The branches that depend on one input alone, from the first on: where each forks, and what it has.

        Ops on a rail are such a branch too.
        """
        wiring = self.sketch.wiring
        starts = [column[0] for column in begun if wiring.boxes[column[0]].look == "input"]
        chains = [list(rail.chain) for rail in wiring.rails.values() if rail.chain]
        lines = {path.end: path for path in self.sketch.paths if not enters_aside(self.sketch, path)}
        found = []
        first = {column[0] for column in begun}
        for branch in [column for column in wiring.columns if column[0] not in first] + chains:
            own = [start for start in starts if wiring.depends(branch[-1], start)]
            fork, *taps = self.entry(lines.get(branch[0]))
            if len(own) == 1 and fork >= 0:
                found.append((fork, [*taps, *self.things(branch)]))
        return sorted(found, key=lambda item: self.at[item[0]])

    def entry(self, line: Path | None) -> list[int]:
        """The row in which the line to a box turns onto its lane, and the taps after that; -1 if it does not turn."""
        refs = () if line is None else line.refs[:-1]
        points = [ref for ref in refs if ref[0] == "p"]
        turned = [ref for ref in points if line and self.sketch.lane(ref) == self.sketch.lanes[line.end]]
        return [self.number(ref) for ref in turned] or [-1]

    def number(self, ref: Ref) -> int:
        """The number of the row of a box or a point."""
        return self.row[id(self.sketch.rows[ref])]

    @cached_property
    def taps(self) -> dict[Lane, list[int]]:
        """The taps on each lane, from the lowest on."""
        found: dict[Lane, list[int]] = {}
        for number, point in enumerate(self.sketch.points):
            if point.tap:
                found.setdefault(point.lane, []).append(self.number(("p", number)))
        return {lane: sorted(rows, key=self.at.__getitem__) for lane, rows in found.items()}

    def things(self, column: list[int]) -> list[int]:
        """The boxes and the taps of a column, from the lowest on; nothing has been raised yet."""
        rows = [self.number(("n", box)) for box in column]
        taps = self.taps.get(self.sketch.lanes[column[0]], [])
        low = bisect_left(taps, self.at[rows[0]], key=self.at.__getitem__)
        high = bisect_right(taps, self.at[rows[-1]], key=self.at.__getitem__)
        return sorted({*rows, *taps[low:high]}, key=self.at.__getitem__)
