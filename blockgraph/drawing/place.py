"""Sketch -> coordinates in points: tracks across the spine, then heights along it, then the frames of plates."""

from __future__ import annotations

from collections.abc import Mapping

from blockgraph.drawing.arrange import Sketch
from blockgraph.drawing.axes import Axes
from blockgraph.drawing.layout import Layout, begin, frame_plates
from blockgraph.drawing.tower import Tower
from blockgraph.drawing.tracks import tracks


def place(sketch: Sketch, axes: Axes, tells: Mapping[int, str], names: Mapping[int, str]) -> Layout:
    """Coordinates for everything; the texts stand beside paths, by their number, and at their ends."""
    layout = begin(sketch, axes, tells, names)
    layout.across, along = tracks(sketch, layout), Tower(sketch, layout).heights()
    layout.spots = {ref: (layout.across[sketch.lane(ref)], along[ref]) for ref in along}
    frame_plates(sketch, layout)
    return layout
