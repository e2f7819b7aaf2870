"""Layout -> DOT: the grammar of the picture in one place.

Ids are ours (`n0` for boxes, `p0` for taps, `cluster0` for plates), every text is an escaped HTML-like label, and
`class` tells tests and themes what a thing is: `op norm`, `add`, `residual rail`, `plate stack`. The edges are those of
the graph, one per operand; each carries its line in `pos`, so that every version of Graphviz draws the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

from blockgraph.dims import Dim, show
from blockgraph.drawing.arrange import Path, Sketch
from blockgraph.drawing.diagram import FIGURE, Box, Plate
from blockgraph.drawing.marking import CLASSES, box_style, wire_style
from blockgraph.drawing.place import MARGIN, TELL, TELL_SIZE, Frame, Layout, Spot, box_label, place, tell_at
from blockgraph.drawing.text import Label, escape, label
from blockgraph.drawing.themes import LIGHT, Theme
from blockgraph.drawing.trail import trail
from blockgraph.records import dataclass

TITLE: Final = 14.0
BETWEEN: Final = 24.0  # figures
HEAD: Final = 6.5  # the length of an arrow's head


def _defaults(theme: Theme) -> str:
    return f"""\
  node [shape=box, style="rounded,filled", fixedsize=true, fontname="Arial", fontsize=12];
  node [penwidth=1.1, color="{theme.ink}", fontcolor="{theme.text}"];
  edge [color="{theme.ink}", penwidth=1.2, arrowsize=0.65, class="flow"];
  edge [fontname="Arial", fontsize={TELL_SIZE:g}, fontcolor="{theme.told}"];
"""


def _surface(colours: tuple[str, ...], width: float) -> str:
    """The attributes of a plate: its fill, its border and, if it has any, its words."""
    words = f', fontcolor="{colours[2]}"' if len(colours) > 2 else ', label=""'
    return f'style="rounded,filled", fillcolor="{colours[0]}", color="{colours[1]}", penwidth={width}{words}'


@dataclass(frozen=True, slots=True)
class Written:
    """A DOT text, and what its ids stand for: boxes by `n0`, plates by `cluster1`; `inside` is what is around each."""

    dot: str
    boxes: Mapping[str, Box]
    plates: Mapping[str, Plate]
    inside: Mapping[str, str]


def write(
    sketches: Sequence[tuple[Sketch, Label]],
    shapes: str,
    values: Sequence[Mapping[str, Dim | int]],
    theme: Theme = LIGHT,
    *,
    highway: bool = False,
) -> Written:
    """Figures side by side, each under its title; with `highway` the residual path is thick."""
    pairs = zip(sketches, values, strict=True)
    figures = [_Figure(sketch, title, shapes, known, theme) for (sketch, title), known in pairs]
    for figure in figures:
        figure.thick = trail(figure.wiring) if highway else set()
    right, ids, body = 0.0, _Ids(), []
    top = max((figure.frame.top for figure in figures), default=0.0)
    for figure in figures:
        figure.shift = (right - figure.frame.left, -min(other.frame.bottom for other in figures))
        right += figure.frame.right - figure.frame.left + BETWEEN
        body += figure.statements(ids, top)
    bounds = _bounds(figures, top)
    graph = f'layout=nop2, outputorder=edgesfirst, bb="{bounds}", pad=0.15, fontname="Arial", bgcolor="{theme.paper}"'
    graph += ', label=""'
    dot = "".join([f"digraph {{\n  graph [{graph}];\n", _defaults(theme), *body, "}\n"])
    return Written(dot, ids.boxes, ids.plates, ids.inside)


def _bounds(figures: Sequence[_Figure], top: float) -> str:
    frames = [figure.moved(figure.outer(top)) for figure in figures] or [Frame(0, 0, 1, 1)]
    return _box(frames[0].join(frames[-1]))


@dataclass(slots=True)
class _Ids:
    """Counts over all figures, and what the ids stand for."""

    points: int = 0
    clusters: int = 0
    boxes: dict[str, Box] = field(default_factory=dict)
    plates: dict[str, Plate] = field(default_factory=dict)
    inside: dict[str, str] = field(default_factory=dict)

    def cluster(self) -> str:
        self.clusters += 1
        return f"cluster{self.clusters - 1}"

    def keep(self, boxes: Mapping[str, Box], plates: Mapping[int, tuple[str, Plate]]) -> None:
        """Keep what is in one figure; `plates` are by their number there."""
        self.boxes |= boxes
        self.plates |= dict(plates.values())
        around = {name: box.plate for name, box in boxes.items()}
        around |= {name: plate.parent or FIGURE for name, plate in plates.values()}
        self.inside |= {name: plates[plate][0] for name, plate in around.items() if plate in plates}


class _Figure:
    """One sketch, placed and written."""

    def __init__(
        self, sketch: Sketch, title: Label, shapes: str, values: Mapping[str, Dim | int], theme: Theme
    ) -> None:
        self.sketch, self.title, self.shapes, self.values = sketch, title, shapes, values
        self.theme = theme
        self.thick: set[tuple[int, int]] = set()
        self.named: dict[int, str] = {}  # the cluster of each plate
        self.wiring, self.plates = sketch.wiring, sketch.wiring.diagram.plates
        texts = ((number, self.told(path)) for number, path in enumerate(sketch.paths))
        self.texts = {number: text for number, text in texts if text}
        self.layout: Layout = place(sketch, self.texts)
        self.nudges = self.spread()
        self.shift: Spot = (0.0, 0.0)
        inner = self.layout.frames.get(FIGURE, Frame(0, 0, 1, 1))
        middle = (inner.left + inner.right) / 2
        wide = max(inner.right - inner.left, title.width + 8) / 2
        told = max(
            [inner.right, *(self.tell_spot(n)[0] + label(t, size=TELL_SIZE).width / 2 for n, t in self.texts.items())]
        )
        self.frame = Frame(min(inner.left, middle - wide), inner.bottom, max(told, middle + wide), inner.top)
        self.middle = middle

    def spread(self) -> dict[Path, float]:
        """Several operands that enter one side of a box do so at heights of their own, the furthest lane highest."""
        sides: dict[tuple[int, bool], list[Path]] = {}
        for path in self.sketch.paths:
            level = len(path.refs) > 1 and self.sketch.rows[path.refs[-2]] is self.sketch.rows[path.refs[-1]]
            if level and self.wiring.boxes[path.end].look == "box":
                left = self.sketch.lane(path.refs[-2]) < self.sketch.lanes[path.end]
                sides.setdefault((path.end, left), []).append(path)
        found: dict[Path, float] = {}
        for (box, left), paths in sides.items():
            paths.sort(key=lambda path: self.sketch.lane(path.refs[-2]), reverse=left)
            step = self.layout.sizes[box][1] * 0.6 / len(paths)
            found |= {path: step * (n - (len(paths) - 1) / 2) for n, path in enumerate(paths)}
        return found

    def told(self, path: Path) -> str:
        """The shape to write beside a path, if it is to be told there."""
        shape = path.wire.shape
        if path.wire.note:
            return path.wire.note
        out = self.wiring.boxes[path.end].look == "output"
        if shape is None or self.shapes == "none" or (path.rail and self.shapes != "all"):
            return ""
        if self.shapes == "all" or out or (path.stem and self.changed(path)):
            return show(tuple(dim.subs(self.values) for dim in shape))
        return ""

    def changed(self, path: Path) -> bool:
        main = self.wiring.main(path.start)
        return main is None or main.seen != path.wire.shape

    def outer(self, top: float) -> Frame:
        """The frame with the title; the titles of all figures are at one height."""
        return Frame(self.frame.left, self.frame.bottom, self.frame.right, top + self.title.height + 10)

    def moved(self, frame: Frame) -> Frame:
        dx, dy = self.shift
        return Frame(frame.left + dx, frame.bottom + dy, frame.right + dx, frame.top + dy)

    def at(self, spot: Spot) -> str:
        return f"{_points(spot[0] + self.shift[0])},{_points(spot[1] + self.shift[1])}"

    def statements(self, ids: _Ids, top: float) -> list[str]:
        """The lines of DOT of this figure."""
        numbers = {box: len(ids.boxes) + n for n, box in enumerate(self.wiring.live)}
        title = self.at((self.middle, top + 6 + self.title.height / 2))
        size = f"lwidth={_inches(self.title.width)}, lheight={_inches(self.title.height)}"
        where = f'bb="{_box(self.moved(self.outer(top)))}", lp="{title}", {size}'
        look = f'class="figure", peripheries=0, fontcolor="{self.theme.words}"'
        opening = f"{look}, {where}, label={self.written(self.title)}"
        body = [f"  subgraph {ids.cluster()} {{\n", f"    graph [{opening}];\n"]
        body += self.tree(numbers, ids)
        boxes = {f"n{number}": self.wiring.boxes[box] for box, number in numbers.items()}
        ids.keep(boxes, {plate: (name, self.plates[plate]) for plate, name in self.named.items()})
        paths = sorted(enumerate(self.sketch.paths), key=lambda item: self.is_thick(item[1]))
        body += [f"    {self.edge(n, path, numbers)}\n" for n, path in paths]
        return [*body, "  }\n"]

    def tree(self, numbers: Mapping[int, int], ids: _Ids) -> list[str]:
        """The plates with what is in them, by a stack of work instead of recursion."""
        inside = self.inside(numbers, ids)
        out: list[str] = []
        work: list[tuple[int, int | str]] = [(2, item) for item in reversed(inside[FIGURE])]
        while work:
            depth, item = work.pop()
            if isinstance(item, str):
                out.append(f"{'  ' * depth}{item}\n")
                continue
            opening = self.cluster(item, ids)
            closing = sum(text.endswith("{") for text in opening)
            for text in opening:
                out.append(f"{'  ' * depth}{text}\n")
                depth += text.endswith("{")
            work += [(depth - closing + n, "}") for n in range(closing)]
            work += [(depth, child) for child in reversed(inside[item])]
        return out

    def inside(self, numbers: Mapping[int, int], ids: _Ids) -> dict[int, list[int | str]]:
        """What each plate holds, in drawing order: statements of nodes, numbers of plates."""
        found: dict[int, list[int | str]] = {plate: [] for plate in range(len(self.plates))}
        seen = {FIGURE}
        for box in self.wiring.live:
            plate = self.wiring.boxes[box].plate
            for inner in self.wiring.diagram.around(plate):
                parent = self.plates[inner].parent
                if inner not in seen and parent is not None:
                    seen.add(inner)
                    found[parent].append(inner)
            found[plate].append(self.node(box, numbers[box]))
        for index, point in enumerate(self.sketch.points):
            if point.tap:
                spot = self.at(self.layout.spots["p", index])
                found[point.plate].append(f'p{ids.points} [pos="{spot}", {self.tap()}];')
                ids.points += 1
        return found

    def cluster(self, plate: int, ids: _Ids) -> list[str]:
        """The opening lines of a plate; a stack lies on a second plate."""
        frame, text = self.moved(self.layout.frames[plate]), self.layout.labels[plate]
        spot = f"{_points(frame.left + 8 + text.width / 2)},{_points(frame.top - 4 - text.height / 2)}"
        size = f'lp="{spot}", lwidth={_inches(text.width)}, lheight={_inches(text.height)}, ' if text.title else ""
        attributes = f'peripheries=1, bb="{_box(frame)}", {size}label={self.written(text)}'
        kind, family = self.plates[plate].kind, self.plates[plate].family
        if kind != "stack":
            self.named[plate] = ids.cluster()
            colours = self.theme.opened(family) if kind == "part" else self.theme.plate
            css = f"plate part {family}" if kind == "part" else "plate"
            return [
                f"subgraph {self.named[plate]} {{",
                f'graph [class="{css}", {_surface(colours, 1.2)}, {attributes}];',
            ]
        behind, self.named[plate] = ids.cluster(), ids.cluster()
        back = f'peripheries=1, bb="{_box(frame.grow(MARGIN / 2))}"'
        return [
            f"subgraph {behind} {{",
            f'graph [class="plate back", {_surface(self.theme.back, 1.0)}, {back}];',
            f"subgraph {self.named[plate]} {{",
            f'graph [class="plate stack", {_surface(self.theme.stack, 1.0)}, {attributes}];',
        ]

    def written(self, text: Label) -> str:
        """A label on paper or on a plate."""
        return text.written(self.theme.small)

    def tap(self) -> str:
        """The attributes of a dot on the stream."""
        ink = self.theme.ink
        return f'shape=point, width=0.055, height=0.055, fillcolor="{ink}", color="{ink}", class="tap"'

    def node(self, index: int, number: int) -> str:
        """The statement of one box."""
        wide, high = self.layout.sizes[index]
        size = f"width={_inches(wide)}, height={_inches(high)}"
        look = _look(self.wiring.boxes[index], self.theme)
        return f'n{number} [pos="{self.at(self.layout.spots["n", index])}", {size}, {look}];'

    def edge(self, index: int, path: Path, numbers: Mapping[int, int]) -> str:
        """The statement of one wire."""
        start, end = (self.wiring.boxes[box].mark for box in (path.start, path.end))
        marked = wire_style(start, end, bool(path.wire.note), self.theme.marks)
        style = self.stroke(path, bool(marked)) + marked
        text = self.texts.get(index)
        told = '<BR ALIGN="LEFT"/>'.join(escape(line) for line in text.splitlines()) if text else ""
        tell = f', lp="{self.at(self.tell_spot(index))}", label=<{told}>' if text else ""
        return f'n{numbers[path.start]} -> n{numbers[path.end]} [pos="{self.line(path)}"{style}{tell}];'

    def is_thick(self, path: Path) -> bool:
        """Whether it is drawn as the highway."""
        return (path.start, path.end) in self.thick

    def stroke(self, path: Path, marked: bool) -> str:
        """The attributes of a rail or of a line on the highway; a mark brings its own colour."""
        thick = self.is_thick(path)
        if not path.rail and not thick:
            return ""
        colour = "" if marked else f'color="{self.theme.highway if thick else self.theme.rail}", '
        css = ("residual rail" if path.rail else "flow") + (" highway" if thick else "")
        return f', {colour}penwidth={3.4 if thick else 1.7}, class="{css}"'

    def line(self, path: Path) -> str:
        """The line as Graphviz writes it: the tip of the arrow, then straight stretches as curves."""
        stem = self.is_thick(path) and path.refs[0][0] == "p"  # from the box itself, over the thin line to the tap
        refs = (("n", path.start), *path.refs) if stem else path.refs
        spots = [self.layout.spots[ref] for ref in refs]
        spots[-2:] = [(x, y + self.nudges.get(path, 0.0)) for x, y in spots[-2:]]
        spots = [spot for n, spot in enumerate(spots) if n == 0 or spot != spots[n - 1]]
        if refs[0][0] == "n":
            spots[0] = self.border(refs[0][1], spots[1])
        tip = self.border(path.end, spots[-2])
        tip = (tip[0], spots[-2][1]) if spots[-2][1] == spots[-1][1] else tip
        spots[-1] = _short_of(tip, spots[-2])
        curve = [spots[0]]
        for low, high in pairwise(spots):
            curve += [low, high, high]
        return " ".join([f"e,{self.at(tip)}", *(self.at(spot) for spot in curve)])

    def border(self, box: int, towards: Spot) -> Spot:
        """Where a level or upright line from `towards` meets a box."""
        (x, y), (wide, high) = self.layout.spots["n", box], self.layout.sizes[box]
        if abs(towards[0] - x) < abs(towards[1] - y):
            return x, y + (high / 2 if towards[1] > y else -high / 2)
        return x + (wide / 2 if towards[0] > x else -wide / 2), y

    def tell_spot(self, index: int) -> Spot:
        """The middle of the text beside a path."""
        low, high = tell_at(self.sketch, self.sketch.paths[index])
        (x, bottom), (_, top) = self.layout.spots[low], self.layout.spots[high]
        bottom += self.layout.sizes[low[1]][1] / 2 if low[0] == "n" else 0
        top -= self.layout.sizes[high[1]][1] / 2 if high[0] == "n" else 0
        more = TELL / 2 * self.texts[index].count("\n")
        out = high[0] == "n" and self.wiring.boxes[high[1]].look == "output"
        return x + 6 + label(self.texts[index], size=TELL_SIZE).width / 2, top - 15 if out else bottom + 8.5 + more


def _look(box: Box, theme: Theme) -> str:
    """The attributes of a box by its look."""
    fill = theme.fill(box.family)
    marked = theme.border(box.family) if box.mark is None else box_style(box.mark, theme.marks)
    sign = f" {CLASSES[box.mark.sign]}" if box.mark is not None else ""
    if box.toll and box.mark is None:
        marked, sign = f', color="{theme.highway}", penwidth=3.4', " toll"
    words = f', fontcolor="{theme.words}"' if theme.words != theme.text else ""
    if box.look in ("input", "output"):
        return f'shape=plaintext, style="", class="io {box.look}"{words}, label=<<I>{escape(box.title)}</I>>'
    if box.look == "port":
        style = f'fillcolor="{theme.operator}", penwidth=0.7, class="port"{words}'
        return f'{style}, label=<<FONT POINT-SIZE="10"><I>{escape(box.title)}</I></FONT>>'
    if box.look == "circle":
        css = "add" if box.is_plus else "op operator"
        text = f"label=<<B>{escape(box.title)}</B>>{marked}{words}"
        return f'shape=circle, fontsize=14, fillcolor="{fill}", class="{css}{sign}", {text}'
    css, ink = f"op {box.family}", theme.text
    if box.family == "operator":
        css, ink = "op scale", theme.words
        marked += words
    return f'fillcolor="{fill}", class="{css}{sign}", label={box_label(box).written(ink)}{marked}'


def _short_of(tip: Spot, start: Spot) -> Spot:
    """The point before the tip where the arrow's head begins."""
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    long = max(abs(dx), abs(dy)) or 1.0
    return tip[0] - dx / long * HEAD, tip[1] - dy / long * HEAD


def _points(number: float) -> str:
    return f"{round(number, 2) + 0:.2f}".rstrip("0").rstrip(".")


def _inches(points: float) -> str:
    return f"{points / 72:.4f}"


def _box(frame: Frame) -> str:
    return ",".join(_points(number) for number in (frame.left, frame.bottom, frame.right, frame.top))
