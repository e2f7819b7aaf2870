"""Sketch -> coordinates, in points, y upwards: one pass from bottom to top, one from left to right.

Rows are taken in the order in which the boxes run. Each row is put as low as it can be above what already stands on the
tracks it covers, so that no line crosses a box, no two level lines meet, and nothing foreign gets into a plate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise
from typing import Final

from blockgraph.drawing.arrange import Lane, Path, Ref, Row, Sketch
from blockgraph.drawing.diagram import FIGURE, Box, Plate
from blockgraph.drawing.text import Label, label
from blockgraph.records import dataclass

Spot = tuple[float, float]
GAP: Final = 17.0  # between a box and what is above it: room for an arrow
TAP_GAP: Final = 13.0  # above a box up to a tap
MARGIN: Final = 12.0  # between the border of a plate and what is in it
BESIDE: Final = 20.0  # between tracks
BORDER: Final = 9.0  # between the border of a plate and what is outside
TELL: Final = 12.0  # more room for a line with a shape beside it
NARROW: Final = 17  # characters of a plate's label: a wider one would reach the spine
WIDE: Final = 156.0  # of an ordinary box
ROUND: Final = 20.0  # of a circle
TELL_SIZE: Final = 9.5


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def join(self, other: Frame) -> Frame:
        """The rectangle around both."""
        left, bottom = min(self.left, other.left), min(self.bottom, other.bottom)
        return Frame(left, bottom, max(self.right, other.right), max(self.top, other.top))

    def grow(self, margin: float, above: float = 0.0) -> Frame:
        """The rectangle with a margin, and more room at the top."""
        return Frame(self.left - margin, self.bottom - margin, self.right + margin, self.top + margin + above)


@dataclass(slots=True)
class Layout:
    """Where everything is: centres of boxes and points, sizes of boxes, the frames of plates, the shapes told."""

    spots: dict[Ref, Spot] = field(default_factory=dict)
    sizes: dict[int, Spot] = field(default_factory=dict)
    frames: dict[int, Frame] = field(default_factory=dict)
    labels: dict[int, Label] = field(default_factory=dict)


def box_label(box: Box) -> Label:
    """The text of a box."""
    title, details = box.text
    return label(title, details, size=10.0 if box.look == "port" else 12.0)


def plate_label(plate: Plate) -> Label:
    """The text of a plate."""
    size = 15 if plate.kind == "stack" else 10.5
    return label(plate.title, plate.details, size=size, bold=True, left=True, width=NARROW)


def size(box: Box, *, on_rail: bool) -> Spot:
    """Width and height of a box; on a rail it is no wider than its text."""
    text = box_label(box)
    if box.look == "circle":
        return ROUND, ROUND
    if box.look in ("input", "output"):
        return _even(max(text.width + 4, 14.0)), _even(text.height + 1)
    if box.look == "port":
        return _even(max(text.width + 10, 22.0)), _even(text.height + 1)
    if box.look == "pill" or on_rail:
        return _even(max(text.width + 14, 30.0)), _even(text.height + 4)
    return _even(max(text.width + 20, WIDE)), _even(max(text.height + 8, 29.0))


def _even(points: float) -> float:
    """The next even number of points: old versions of Graphviz round sizes, and halves must stay whole."""
    return math.ceil(points / 2) * 2.0


def place(sketch: Sketch, told: Mapping[int, str]) -> Layout:
    """Coordinates for everything; `told` is the shape to be written beside a path, by its number."""
    layout = Layout()
    rail = sketch.wiring.on_rail
    layout.sizes = {box: size(sketch.wiring.boxes[box], on_rail=box in rail) for box in sketch.wiring.live}
    layout.labels = {number: plate_label(plate) for number, plate in enumerate(sketch.wiring.diagram.plates)}
    across = _columns(sketch, layout, told)
    up = _Tower(sketch, layout, told).heights()
    layout.spots = {ref: (across[sketch.lane(ref)], up[ref]) for ref in up}
    _frames(sketch, layout)
    return layout


def _tracks(sketch: Sketch) -> list[Lane]:
    """All lanes from left to right."""
    return sorted({*sketch.lanes.values(), *(point.lane for point in sketch.points)})


def _extents(sketch: Sketch) -> dict[int, tuple[Lane, Lane]]:
    """The leftmost and rightmost lane of what is in each plate."""
    found: dict[int, tuple[Lane, Lane]] = {}
    refs: list[Ref] = [("n", box) for box in sketch.wiring.live]
    refs += [("p", point) for point in range(len(sketch.points))]
    for ref in refs:
        lane = sketch.lane(ref)
        for plate in sketch.wiring.diagram.around(sketch.plate(ref)):
            low, high = found.get(plate, (lane, lane))
            found[plate] = min(low, lane), max(high, lane)
    return found


def _columns(sketch: Sketch, layout: Layout, told: Mapping[int, str]) -> dict[Lane, float]:
    """The x of each lane: tracks side by side, with room for the borders of plates that begin or end between them."""
    half = dict.fromkeys(_tracks(sketch), 0.0)
    for box, (wide, _) in layout.sizes.items():
        half[sketch.lanes[box]] = max(half[sketch.lanes[box]], wide / 2)
    for number, text in told.items():
        lane = sketch.lane(tell_at(sketch, sketch.paths[number])[0])
        half[lane] = max(half[lane], label(text, size=TELL_SIZE).width - 8)
    begins, ends = dict.fromkeys(half, 0), dict.fromkeys(half, 0)
    for plate, (low, high) in _extents(sketch).items():
        depth = sketch.wiring.diagram.depth(plate) - 1
        begins[low], ends[high] = max(begins[low], depth), max(ends[high], depth)
    found: dict[Lane, float] = {}
    x = 0.0
    for before, lane in zip([None, *half], half, strict=False):
        borders = begins[lane] + (ends[before] if before is not None else 0)
        x += half[lane] + (half[before] + BESIDE + MARGIN * borders if before is not None else 0)
        found[lane] = x
    spine = found[0, 0]
    return {lane: x - spine for lane, x in found.items()}


class _Tower:
    """Rows being piled up."""

    def __init__(self, sketch: Sketch, layout: Layout, told: Mapping[int, str]) -> None:
        self.sketch, self.layout, self.told = sketch, layout, told
        self.diagram = sketch.wiring.diagram
        self.tracks = _tracks(sketch)
        self.place_of = {lane: n for n, lane in enumerate(self.tracks)}
        self.extents = _extents(sketch)
        self.top = [0.0] * len(self.tracks)  # up to where each track is taken
        self.floor: dict[int, float] = {FIGURE: 0.0}
        self.ceiling: dict[int, float] = {}
        self.y: dict[Ref, float] = {}

    def heights(self) -> dict[Ref, float]:
        """The y of every box and point."""
        below = self.lines_below()
        rows = sorted({id(row): row for row in self.sketch.rows.values()}.values(), key=lambda row: row.key)
        last = self.last_rows(rows)
        for row in rows:
            y = max([self.lowest(row), *(self.above(low, high, room) for low, high, room in below.get(id(row), ()))])
            self.put(row, y)
            for plate in last.get(id(row), ()):
                self.close(plate)
        return self.outputs_on_top()

    def lines_below(self) -> dict[int, list[tuple[Ref, Ref, float]]]:
        """For each row the upright stretches of line that end in it, with more room where a shape is told."""
        found: dict[int, list[tuple[Ref, Ref, float]]] = {}
        for number, path in enumerate(self.sketch.paths):
            told = tell_at(self.sketch, path) if number in self.told else None
            for low, high in pairwise(path.refs):
                if self.sketch.rows[low] is not self.sketch.rows[high]:
                    room = TELL * (self.told[number].count("\n") + 1) if (low, high) == told else 0.0
                    found.setdefault(id(self.sketch.rows[high]), []).append((low, high, room))
        return found

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
        return range(self.place_of[low], self.place_of[high] + 1)

    def across(self, row: Row) -> range:
        lanes = [self.sketch.lane(ref) for ref in row.refs]
        return self.covered(min(lanes), max(lanes))

    def half(self, ref: Ref) -> float:
        return self.layout.sizes[ref[1]][1] / 2 if ref[0] == "n" else 0.0

    def lowest(self, row: Row) -> float:
        """Above everything on the tracks that the row covers, and inside its plates."""
        halves = dict.fromkeys(self.across(row), 0.0) | {
            self.place_of[self.sketch.lane(r)]: self.half(r) for r in row.refs
        }
        bounds = [self.top[track] + half + (TAP_GAP if self.top[track] else 0.0) for track, half in halves.items()]
        for ref in row.refs:
            plate = self.sketch.plate(ref)
            self.open(plate)
            bounds.append(self.floor[plate] + self.half(ref) + (MARGIN if plate else 0.0))
        return max(bounds)

    def open(self, plate: int) -> None:
        """Lay the floor of a plate and of those around it, above everything on its tracks."""
        for inner in reversed(self.diagram.around(plate)):
            if inner not in self.floor:
                low, high = self.extents[inner]
                parent = self.diagram.plates[inner].parent or FIGURE
                stands = max(self.top[track] for track in self.covered(low, high))
                back = self.back(inner)
                self.floor[inner] = (
                    max(stands + BORDER * bool(stands), self.floor[parent] + MARGIN * bool(parent)) + back
                )

    def back(self, plate: int) -> float:
        """How far the plate behind a stack stands out."""
        return MARGIN / 2 if self.diagram.plates[plate].kind == "stack" else 0.0

    def above(self, low: Ref, high: Ref, room: float) -> float:
        """How high the end of a line must be for its start."""
        gap = GAP if high[0] == "n" or low[0] == "p" else TAP_GAP
        start, half = self.y[low] + self.half(low), self.half(high)
        if not room:
            return start + gap + half
        around = self.diagram.around(self.sketch.plate(low))
        entered = [plate for plate in self.diagram.around(self.sketch.plate(high)) if plate not in around]
        inside = sum(MARGIN + self.back(plate) for plate in entered)
        taken = self.top[self.place_of[self.sketch.lane(high)]]
        return max(start + max(gap, inside + BORDER - 3), taken + gap) + room + half

    def put(self, row: Row, y: float) -> None:
        for track in self.across(row):
            self.top[track] = max(self.top[track], y)
        for ref in row.refs:
            self.y[ref] = y
            top, track = y + self.half(ref), self.place_of[self.sketch.lane(ref)]
            self.top[track] = max(self.top[track], top)
            for plate in self.diagram.around(self.sketch.plate(ref)):
                self.ceiling[plate] = max(self.ceiling.get(plate, 0.0), top)

    def close(self, plate: int) -> None:
        """Take the tracks of a plate up to its upper border."""
        top = self.ceiling[plate] + MARGIN + self.layout.labels[plate].height + self.back(plate)
        for around in self.diagram.around(plate):
            self.ceiling[around] = max(self.ceiling.get(around, 0.0), top)
        for track in self.covered(*self.extents[plate]):
            self.top[track] = max(self.top[track], top)

    def outputs_on_top(self) -> dict[Ref, float]:
        outputs: list[Ref] = [
            ("n", box) for box in self.sketch.wiring.live if self.sketch.wiring.boxes[box].look == "output"
        ]
        top = max(
            [self.y[ref] for ref in outputs]
            + [y + self.half(ref) + GAP for ref, y in self.y.items() if ref not in outputs]
        )
        return self.y | dict.fromkeys(outputs, top)


def _frames(sketch: Sketch, layout: Layout) -> None:
    """The frame of each plate, inner ones first."""
    for ref, (x, y) in layout.spots.items():
        wide, high = layout.sizes[ref[1]] if ref[0] == "n" else (0.0, 0.0)
        _include(layout, sketch.plate(ref), Frame(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2))
    diagram = sketch.wiring.diagram
    for plate in sorted(range(len(diagram.plates)), key=lambda plate: -diagram.depth(plate)):
        if plate == FIGURE or plate not in layout.frames:
            continue
        text, frame = layout.labels[plate], layout.frames[plate]
        frame = frame.grow(MARGIN, text.height - (4 if text.title else 0))
        layout.frames[plate] = Frame(
            frame.left, frame.bottom, max(frame.right, frame.left + text.width + 16), frame.top
        )
        outer = diagram.plates[plate].parent or FIGURE
        _include(layout, outer, layout.frames[plate].grow(MARGIN / 2 if diagram.plates[plate].kind == "stack" else 0.0))


def _include(layout: Layout, plate: int, frame: Frame) -> None:
    layout.frames[plate] = layout.frames[plate].join(frame) if plate in layout.frames else frame


def tell_at(sketch: Sketch, path: Path) -> tuple[Ref, Ref]:
    """The stretch of a path beside which its shape is written: the first upright one."""
    pairs = list(pairwise(path.refs))
    upright = [pair for pair in pairs if sketch.rows[pair[0]] is not sketch.rows[pair[1]]]
    return upright[0] if upright else pairs[0]
