"""Where everything in a figure is, across its spine and along it: sizes, texts, and the frames of plates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from itertools import pairwise
from typing import Final

from blockgraph.drawing.arrange import Path, Ref, Sketch
from blockgraph.drawing.axes import Axes, Frame, Spot
from blockgraph.drawing.diagram import FIGURE, Box, Plate
from blockgraph.drawing.lanes import Lane
from blockgraph.drawing.measure import width as text_width
from blockgraph.drawing.text import Label, label
from blockgraph.records import dataclass

MARGIN: Final = 12.0  # between the border of a plate and what is in it
NARROW: Final = 17  # characters of a plate's label: a wider one would reach the spine
WIDE: Final = 156.0  # of an ordinary box
COMPACT: Final = 92.0  # of the box of an op where every op is drawn
ROUND: Final = 20.0  # of a circle
TELL_GAP: Final = 6.0  # between a line and the text beside it
TELL: Final = 12.0  # the height of a line of such a text
TELL_SIZE: Final = 9.5
NAME_SIZE: Final = 8.5
NAME: Final = 12.0  # between lines that enter a box from the side under a name
NAMED_SHARE: Final = 0.8  # of a side of a box: where lines with names enter
HEAD_ROOM: Final = 10.0  # of an arrow's head
PORT_SIZE: Final = 10.0


@dataclass(slots=True)
class Layout:
    """Where everything is, across and along: centres of boxes and points, sizes of boxes, the frames of plates.

    `tells` are the texts beside paths, `names` what operands are called where they enter, both by number of path.
    """

    axes: Axes
    tells: Mapping[int, str]
    names: Mapping[int, str]
    across: dict[Lane, float] = field(default_factory=dict)
    spots: dict[Ref, Spot] = field(default_factory=dict)
    sizes: dict[int, Spot] = field(default_factory=dict)
    frames: dict[int, Frame] = field(default_factory=dict)
    labels: dict[int, Label] = field(default_factory=dict)

    def tell_label(self, path: int) -> Label:
        """The text beside a path."""
        return Label(tuple(self.tells[path].splitlines()), size=TELL_SIZE)

    def tell_room(self, path: int) -> float:
        """The room across that the text beside a path takes, from the line on."""
        text = self.tell_label(path)
        return TELL_GAP + text.width if self.axes.upright else text.height + 1

    def tell_length(self, path: int) -> float:
        """The room along a path that the text beside it takes."""
        text = self.tell_label(path)
        return TELL * len(text.title) if self.axes.upright else text.width + 1

    def name_width(self, path: int) -> float:
        """The width of the name at the end of a path."""
        return text_width(self.names[path], NAME_SIZE)

    def name_room(self, path: int) -> float:
        """The room across that the name at the end of a level path takes, beside its box."""
        return HEAD_ROOM + (self.name_width(path) if self.axes.upright else NAME)

    def room(self, plate: int) -> Spot:
        """The room that the label of a plate takes, before it across and after it along."""
        text = self.labels[plate]
        high = text.height - 4 if text.title else 0.0
        return (0.0, high) if self.axes.upright else (high, 0.0)


def box_label(box: Box) -> Label:
    """The text of a box."""
    title, details = box.text
    return label(title, details, size=PORT_SIZE if box.look == "port" else 12.0)


def plate_label(plate: Plate, axes: Axes) -> Label:
    """The text of a plate."""
    size, (title, details) = 15 if plate.kind == "stack" else 10.5, plate.text
    return label(title, details, size=size, bold=True, left=True, width=NARROW if axes.upright else 2 * NARROW)


def size(box: Box, *, on_rail: bool, fine: bool) -> Spot:
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
    least = COMPACT if fine and box.direct else WIDE
    return _even(max(text.width + 20, least)), _even(max(text.height + 8, 29.0))


def _even(points: float) -> float:
    """The next even number of points: old versions of Graphviz round sizes, and halves must stay whole."""
    return math.ceil(points / 2) * 2.0


def begin(sketch: Sketch, axes: Axes, tells: Mapping[int, str], names: Mapping[int, str]) -> Layout:
    """A layout with sizes and labels; a box has room for the names of all lines that enter it from the side."""
    layout, wiring = Layout(axes, tells, names), sketch.wiring
    for box in wiring.live:
        wide, high = size(wiring.boxes[box], on_rail=box in wiring.on_rail, fine=wiring.diagram.fine)
        layout.sizes[box] = axes.turned(wide, high)
    layout.labels = {number: plate_label(plate, axes) for number, plate in enumerate(wiring.diagram.plates)}
    entering: dict[int, list[int]] = {}
    for number in names:
        if enters_aside(sketch, sketch.paths[number]):
            entering.setdefault(sketch.paths[number].end, []).append(number)
    for box, paths in entering.items():
        step = NAME if axes.upright else max(map(layout.name_width, paths)) + 10
        across, along = layout.sizes[box]
        layout.sizes[box] = across, max(along, _even(step * len(paths) / NAMED_SHARE))
    return layout


def enters_aside(sketch: Sketch, path: Path) -> bool:
    """Whether a line enters its box from the side."""
    return len(path.refs) > 1 and sketch.rows[path.refs[-2]] is sketch.rows[path.refs[-1]]


def from_before(sketch: Sketch, path: Path) -> bool:
    """Whether a line that enters its box from the side comes from a lane before it."""
    return sketch.lane(path.refs[-2]) < sketch.lanes[path.end]


def frame_plates(sketch: Sketch, layout: Layout) -> None:
    """The frame of each plate, inner ones first."""
    for ref, (x, y) in layout.spots.items():
        across, along = layout.sizes[ref[1]] if ref[0] == "n" else (0.0, 0.0)
        here = Frame(x - across / 2, y - along / 2, x + across / 2, y + along / 2)
        _include(layout, sketch.plate(ref), here)
    _include_texts(sketch, layout)
    diagram = sketch.wiring.diagram
    if layout.axes.upright:
        _widen(sketch, layout)
    for plate in sorted(range(len(diagram.plates)), key=lambda plate: -diagram.depth(plate)):
        if plate == FIGURE or plate not in layout.frames:
            continue
        layout.frames[plate] = frame = _with_label(layout, plate, layout.frames[plate].grow(MARGIN))
        _include(layout, diagram.plates[plate].parent or FIGURE, frame.grow(back(diagram.plates[plate])))


def _include_texts(sketch: Sketch, layout: Layout) -> None:
    """The plates hold the texts beside their lines and the names at the ends of these."""
    for number in tells_at_start(sketch, layout):
        low, _ = tell_at(sketch, sketch.paths[number])
        x, y = layout.spots[low]
        y += layout.sizes[low[1]][1] / 2 if low[0] == "n" else 0.0
        across = (0.0, layout.tell_room(number)) if layout.axes.upright else (-layout.tell_room(number), 0.0)
        _include(layout, sketch.plate(low), Frame(x + across[0], y, x + across[1], y + layout.tell_length(number)))
    for number in layout.names:
        path = sketch.paths[number]
        if enters_aside(sketch, path):
            x, y = layout.spots["n", path.end]
            far = (layout.sizes[path.end][0] / 2 + layout.name_room(number)) * (-1 if from_before(sketch, path) else 1)
            _include(layout, sketch.plate(("n", path.end)), Frame(min(x, x + far), y, max(x, x + far), y))


def _widen(sketch: Sketch, layout: Layout) -> None:
    """Plates hold their label before the lane in which they begin; those of opened parts are as wide as a box there."""
    for plate, (low, _) in extents(sketch).items():
        if low[1] == 0 and plate and plate in layout.frames:
            x, frame, text = layout.across[low], layout.frames[plate], layout.labels[plate]
            least = WIDE / 2 if sketch.wiring.diagram.plates[plate].kind == "part" else 0.0
            left = min(frame.left, x - max(least, text.width + 4 if text.title else 0.0))
            layout.frames[plate] = replace(frame, left=left, right=max(frame.right, x + least))


def extents(sketch: Sketch) -> dict[int, tuple[Lane, Lane]]:
    """The first and the last lane of what is in each plate."""
    found: dict[int, tuple[Lane, Lane]] = {}
    refs: list[Ref] = [("n", box) for box in sketch.wiring.live]
    refs += [("p", point) for point in range(len(sketch.points))]
    for ref in refs:
        lane = sketch.lane(ref)
        for plate in sketch.wiring.diagram.around(sketch.plate(ref)):
            low, high = found.get(plate, (lane, lane))
            found[plate] = min(low, lane), max(high, lane)
    return found


def _with_label(layout: Layout, plate: int, frame: Frame) -> Frame:
    """A frame with room for its label, which the lines through the plate do not cross."""
    before, after = layout.room(plate)
    wide, upright = layout.labels[plate].width + 16, layout.axes.upright
    right = max(frame.right, frame.left + wide * upright)
    return Frame(frame.left - before, frame.bottom, right, max(frame.top + after, frame.bottom + wide * (not upright)))


def back(plate: Plate) -> float:
    """How far the plate behind a stack stands out."""
    return MARGIN / 2 if plate.kind == "stack" else 0.0


def _include(layout: Layout, plate: int, frame: Frame) -> None:
    layout.frames[plate] = layout.frames[plate].join(frame) if plate in layout.frames else frame


def tells_at_start(sketch: Sketch, layout: Layout) -> list[int]:
    """The paths whose text stands where the path starts; that of an output stands before the output."""
    boxes = sketch.wiring.boxes
    ends = ((number, tell_at(sketch, sketch.paths[number])[1]) for number in layout.tells)
    return [number for number, high in ends if high[0] == "p" or boxes[high[1]].look != "output"]


def tell_at(sketch: Sketch, path: Path) -> tuple[Ref, Ref]:
    """The stretch of a path beside which its shape is written: the first one along the spine."""
    pairs = list(pairwise(path.refs))
    along = [pair for pair in pairs if sketch.rows[pair[0]] is not sketch.rows[pair[1]]]
    return along[0] if along else pairs[0]
