"""Where the lines of a placed figure run and where their texts stand, across and along or on the page."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from blockgraph.drawing.arrange import Ref, Sketch
from blockgraph.drawing.axes import Frame, Spot
from blockgraph.drawing.layout import NAME_SIZE, NAMED_SHARE, TELL_GAP, Layout, enters_aside, tell_at

HEAD: Final = 6.5  # the length of an arrow's head


def spread(sketch: Sketch, layout: Layout) -> dict[int, float]:
    """Several operands that enter one side of a box do so at places of their own, the furthest lane last."""
    sides: dict[tuple[int, bool], list[int]] = {}
    for number, path in enumerate(sketch.paths):
        if enters_aside(sketch, path) and sketch.wiring.boxes[path.end].look in ("box", "pill"):
            first = sketch.lane(path.refs[-2]) < sketch.lanes[path.end]
            sides.setdefault((path.end, first), []).append(number)
    found: dict[int, float] = {}
    for (box, first), paths in sides.items():
        paths.sort(key=lambda number: sketch.lane(sketch.paths[number].refs[-2]), reverse=first)
        named = any(number in layout.names for number in paths)
        step = layout.sizes[box][1] * (NAMED_SHARE if named else 0.6) / len(paths)
        found |= {number: step * (n - (len(paths) - 1) / 2) for n, number in enumerate(paths)}
    return found


class Lines:
    """The lines and texts of one figure."""

    def __init__(self, sketch: Sketch, layout: Layout) -> None:
        self.sketch, self.layout, self.axes = sketch, layout, layout.axes
        self.wiring = sketch.wiring
        self.nudges = spread(sketch, layout)

    def spots(self, number: int, *, stem: bool) -> list[Spot]:
        """The line from border to border, across and along; with `stem` from the box itself instead of its tap."""
        path = self.sketch.paths[number]
        refs: tuple[Ref, ...] = (("n", path.start), *path.refs) if stem and path.refs[0][0] == "p" else path.refs
        spots = [self.layout.spots[ref] for ref in refs]
        spots[-2:] = [(x, y + self.nudges.get(number, 0.0)) for x, y in spots[-2:]]
        spots = [spot for n, spot in enumerate(spots) if n == 0 or spot != spots[n - 1]]
        if refs[0][0] == "n":
            spots[0] = self.border(refs[0][1], spots[1])
        tip = self.border(path.end, spots[-2])
        spots[-1] = (tip[0], spots[-2][1]) if spots[-2][1] == spots[-1][1] else tip
        return spots

    def curve(self, number: int, *, stem: bool) -> list[Spot]:
        """The tip of the arrow, then straight stretches as Graphviz writes them: as curves, on the page."""
        *spots, tip = self.spots(number, stem=stem)
        ends = [*spots, _short_of(tip, spots[-1])]
        curve = [ends[0]]
        for low, high in pairwise(ends):
            curve += [low, high, high]
        return [self.axes.page(spot) for spot in (tip, *curve)]

    def border(self, box: int, towards: Spot) -> Spot:
        """Where a straight line from `towards` meets a box."""
        (x, y), (across, along) = self.layout.spots["n", box], self.layout.sizes[box]
        if abs(towards[0] - x) < abs(towards[1] - y):
            return x, y + (along / 2 if towards[1] > y else -along / 2)
        return x + (across / 2 if towards[0] > x else -across / 2), y

    def tell_spot(self, number: int) -> Spot:
        """The middle of the text beside a path, on the page."""
        low, high = tell_at(self.sketch, self.sketch.paths[number])
        (x, bottom), (_, top) = self.layout.spots[low], self.layout.spots[high]
        bottom += self.layout.sizes[low[1]][1] / 2 if low[0] == "n" else 0
        top -= self.layout.sizes[high[1]][1] / 2 if high[0] == "n" else 0
        text = self.layout.tell_label(number)
        out = high[0] == "n" and self.wiring.boxes[high[1]].look == "output"
        if self.axes.upright:
            return x + TELL_GAP + text.width / 2, top - 15 if out else bottom + 2 + text.height / 2
        right, up = self.axes.page((x, top - HEAD - 2 - text.width / 2 if out else bottom + 3 + text.width / 2))
        return right, up + 1 + text.height / 2

    def name_spot(self, number: int) -> Spot:
        """The middle of the name at the end of a path, on the page."""
        before, tip = (self.axes.page(spot) for spot in self.spots(number, stem=False)[-2:])
        wide = self.layout.name_width(number)
        if before[1] == tip[1]:
            side = 1 if before[0] > tip[0] else -1
            under = -1 if not self.axes.upright else 1
            return tip[0] + side * (HEAD + 2 + wide / 2), tip[1] + under * (NAME_SIZE / 2 + 1)
        away = 1 if before[1] > tip[1] else -1
        aside = -1 if self.axes.upright else 1
        return tip[0] + aside * (4 + wide / 2), tip[1] + away * (HEAD / 2 + 3)

    def told_frame(self, number: int) -> Frame:
        """The rectangle of the text beside a path, on the page."""
        (x, y), text = self.tell_spot(number), self.layout.tell_label(number)
        return Frame(x - text.width / 2, y - text.height / 2, x + text.width / 2, y + text.height / 2)


def _short_of(tip: Spot, start: Spot) -> Spot:
    """The point before the tip where the arrow's head begins."""
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    long = max(abs(dx), abs(dy)) or 1.0
    return tip[0] - dx / long * HEAD, tip[1] - dy / long * HEAD
