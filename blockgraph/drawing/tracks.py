"""Where the tracks of a figure run: lanes side by side, with room for texts and for the borders of plates."""

from __future__ import annotations

from typing import Final

from blockgraph.drawing.arrange import Sketch
from blockgraph.drawing.lanes import Lane
from blockgraph.drawing.layout import MARGIN, NAME, WIDE, Layout, back, enters_aside, extents, from_before, tell_at

BESIDE: Final = 20.0  # between tracks


def lanes(sketch: Sketch) -> list[Lane]:
    """All lanes, those of rails before the column they belong to."""
    return sorted({*sketch.lanes.values(), *(point.lane for point in sketch.points)})


def tracks(sketch: Sketch, layout: Layout) -> dict[Lane, float]:
    """How far across each lane is, the spine at 0."""
    before, after = _rooms(sketch, layout)
    begins, ends = _borders(sketch, layout)
    found: dict[Lane, float] = {}
    x, last = 0.0, None
    for lane in before:
        x += before[lane] + begins[lane]
        x += BESIDE + after[last] + ends[last] if last is not None else 0.0
        found[lane], last = x, lane
    return {lane: x - found[0, 0] for lane, x in found.items()}


def _rooms(sketch: Sketch, layout: Layout) -> tuple[dict[Lane, float], dict[Lane, float]]:
    """The room that each lane needs before it and after it, for boxes and for texts."""
    before = dict.fromkeys(lanes(sketch), 0.0)
    after = dict(before)

    def need(lane: Lane, ahead: float, behind: float) -> None:
        before[lane], after[lane] = max(before[lane], ahead), max(after[lane], behind)

    for box, (across, _) in layout.sizes.items():
        need(sketch.lanes[box], across / 2, across / 2)
    for number in layout.tells:
        lane, room = sketch.lane(tell_at(sketch, sketch.paths[number])[0]), layout.tell_room(number)
        need(lane, *((0, room - MARGIN) if layout.axes.upright else (room, 0)))
    for number in layout.names:
        path, wide = sketch.paths[number], layout.name_width(number)
        lane, room = sketch.lanes[path.end], layout.sizes[path.end][0] / 2 + layout.name_room(number)
        if not enters_aside(sketch, path):
            need(lane, *((wide + 8, 0) if layout.axes.upright else (0, NAME)))
        else:
            need(lane, *((room, 0) if from_before(sketch, path) else (0, room)))
    if layout.axes.upright:
        _with_labels(sketch, layout, before, after)
    return before, after


def _with_labels(sketch: Sketch, layout: Layout, before: dict[Lane, float], after: dict[Lane, float]) -> None:
    """Room before a lane for the labels of plates that begin there, so that no line on it runs through them."""
    for plate, (low, _) in extents(sketch).items():
        text, part = layout.labels[plate], sketch.wiring.diagram.plates[plate].kind == "part"
        if plate and low[1] == 0 and text.title:
            before[low] = max(before[low], text.width + 4, WIDE / 2 * part)
            after[low] = max(after[low], WIDE / 2 * part)


def _borders(sketch: Sketch, layout: Layout) -> tuple[dict[Lane, float], dict[Lane, float]]:
    """The room that the borders and labels of plates take which begin before a lane or end after it."""
    diagram, reach = sketch.wiring.diagram, extents(sketch)
    begins = dict.fromkeys(lanes(sketch), 0.0)
    ends = dict(begins)
    for plate, (low, high) in reach.items():
        inside = 0.0
        for side, lane, found in ((0, low, begins), (1, high, ends)):
            inside = 0.0
            for outer in diagram.around(plate)[:-1]:
                if reach[outer][side] != lane:
                    break
                inside += MARGIN + back(diagram.plates[outer]) + (layout.room(outer)[0] if side == 0 else 0.0)
            found[lane] = max(found[lane], inside)
    return begins, ends
