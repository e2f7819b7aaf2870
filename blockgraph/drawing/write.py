"""Layout -> DOT: the grammar of the picture in one place.

Ids are ours (`n0` for boxes, `p0` for taps, `cluster0` for plates), every text is an escaped HTML-like label, and
`class` tells tests and themes what a thing is: `op norm`, `add`, `residual rail`, `plate stack`. The edges are those of
the graph, one per operand; each carries its line in `pos`, so that every version of Graphviz draws the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import ceil
from typing import Final

from blockgraph.dims import Dim
from blockgraph.drawing.arrange import Path, Sketch
from blockgraph.drawing.axes import Axes, Frame, Spot
from blockgraph.drawing.diagram import FIGURE, Box, Plate
from blockgraph.drawing.layout import MARGIN, NAME_SIZE, TELL_SIZE, Layout, box_label
from blockgraph.drawing.lines import Lines
from blockgraph.drawing.marking import CLASSES, box_style, wire_style
from blockgraph.drawing.place import place
from blockgraph.drawing.telling import names, tells
from blockgraph.drawing.text import Label, escape, rows
from blockgraph.drawing.themes import LIGHT, Theme
from blockgraph.drawing.trail import trail
from blockgraph.records import dataclass

BETWEEN: Final = 24.0  # figures
PAPER: Final = 10.8  # around a figure at least
WHOLE: Final = 3  # points are 4 pixels at 96 dpi


def _defaults(theme: Theme) -> str:
    return f"""\
  node [shape=box, style="rounded,filled", fixedsize=true, fontname="Arial", fontsize=12];
  node [penwidth=1.1, color="{theme.ink}", fontcolor="{theme.text}"];
  edge [color="{theme.ink}", penwidth=1.2, arrowsize=0.65, class="flow"];
  edge [fontname="Arial", fontsize={TELL_SIZE:g}, fontcolor="{theme.told}"];
  edge [labelfontname="Arial", labelfontsize={NAME_SIZE:g}, labelfontcolor="{theme.told}"];
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
    highways: Sequence[bool],
    axes: Axes = Axes(),  # noqa: B008  an immutable value
) -> Written:
    """Figures side by side, each under its title; the residual path is thick in those of `highways`."""
    pairs = zip(sketches, values, strict=True)
    figures = [_Figure(sketch, title, shapes, known, theme, axes) for (sketch, title), known in pairs]
    for figure, highway in zip(figures, highways, strict=True):
        figure.thick = trail(figure.wiring) if highway else set()
    ids, body = _Ids(), list[str]()
    for figure, top in zip(
        figures, _side_by_side(figures) if axes.upright else _one_above_another(figures), strict=True
    ):
        body += figure.statements(ids, top)
        outer = figure.moved(figure.outer(top))
        ids.bounds = outer if ids.bounds is None else ids.bounds.join(outer)
    box = _box(ids.bounds or Frame(0, 0, 1, 1))
    graph = f'layout=nop2, outputorder=edgesfirst, bb="{box}", pad="{_pads(box)}", fontname="Arial", '
    graph += f'bgcolor="{theme.paper}", label=""'
    dot = "".join([f"digraph {{\n  graph [{graph}];\n", _defaults(theme), *body, "}\n"])
    return Written(dot, ids.boxes, ids.plates, ids.inside)


def _side_by_side(figures: Sequence[_Figure]) -> list[float]:
    """Put upright figures beside each other; returns above which height the title of each is, the same for all."""
    right, bottom = 0.0, min((figure.frame.bottom for figure in figures), default=0.0)
    for figure in figures:
        figure.shift = (right - figure.frame.left, -bottom)
        right += figure.frame.right - figure.frame.left + BETWEEN
    return [max((figure.frame.top for figure in figures), default=0.0)] * len(figures)


def _one_above_another(figures: Sequence[_Figure]) -> list[float]:
    """Put figures that run to the right under each other, the first on top; returns where their titles are."""
    bottom = 0.0
    for figure in reversed(figures):
        figure.shift = (-figure.frame.left, bottom - figure.frame.bottom)
        bottom += figure.outer(figure.frame.top).top - figure.frame.bottom + BETWEEN
    return [figure.frame.top for figure in figures]


@dataclass(slots=True)
class _Ids:
    """Counts over all figures, and what the ids stand for."""

    points: int = 0
    clusters: int = 0
    bounds: Frame | None = None
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
        self, sketch: Sketch, title: Label, shapes: str, values: Mapping[str, Dim | int], theme: Theme, axes: Axes
    ) -> None:
        self.sketch, self.title, self.theme, self.axes = sketch, title, theme, axes
        self.thick: set[tuple[int, int]] = set()
        self.named: dict[int, str] = {}  # the cluster of each plate
        self.wiring, self.plates = sketch.wiring, sketch.wiring.diagram.plates
        self.layout: Layout = place(sketch, axes, tells(sketch, shapes, values), names(sketch))
        self.lines = Lines(sketch, self.layout)
        self.shift: Spot = (0.0, 0.0)
        inner = axes.on_page(self.layout.frames.get(FIGURE, Frame(0, 0, 1, 1)))
        for number in self.layout.tells:
            inner = inner.join(self.lines.told_frame(number))
        self.middle = (inner.left + inner.right) / 2
        wide = max(inner.right - inner.left, title.width + 8) / 2
        self.frame = Frame(self.middle - wide, inner.bottom, self.middle + wide, inner.top)

    def outer(self, top: float) -> Frame:
        """The frame with the title above `top`."""
        return Frame(self.frame.left, self.frame.bottom, self.frame.right, top + self.title.height + 10)

    def moved(self, frame: Frame) -> Frame:
        dx, dy = self.shift
        return Frame(frame.left + dx, frame.bottom + dy, frame.right + dx, frame.top + dy)

    def at(self, spot: Spot) -> str:
        """A spot on the page."""
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
                spot = self.at(self.axes.page(self.layout.spots["p", index]))
                found[point.plate].append(f'p{ids.points} [pos="{spot}", {self.tap()}];')
                ids.points += 1
        return found

    def cluster(self, plate: int, ids: _Ids) -> list[str]:
        """The opening lines of a plate; a stack lies on a second plate."""
        frame, text = self.moved(self.axes.on_page(self.layout.frames[plate])), self.layout.labels[plate]
        spot = f"{_points(frame.left + 8 + text.width / 2)},{_points(frame.top - 4 - text.height / 2)}"
        size = f'lp="{spot}", lwidth={_inches(text.width)}, lheight={_inches(text.height)}, ' if text.title else ""
        attributes = f'peripheries=1, bb="{_box(frame)}", {size}label={self.written(text)}'
        one = self.plates[plate]
        if one.kind != "stack":
            self.named[plate] = ids.cluster()
            colours = self.theme.opened(one.family) if one.kind == "part" else self.theme.plate
            css = f"plate part part_{one.family}" if one.kind == "part" else "plate"
            css, marked = css + _sign(one), _emphasis(one, self.theme)
            return [
                f"subgraph {self.named[plate]} {{",
                f'graph [class="{css}", {_surface(colours, 1.2)}, {attributes}{marked}];',
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
        wide, high = self.axes.turned(*self.layout.sizes[index])
        size = f"width={_inches(wide)}, height={_inches(high)}"
        look = _look(self.wiring.boxes[index], self.theme)
        spot = self.at(self.axes.page(self.layout.spots["n", index]))
        return f'n{number} [pos="{spot}", {size}, {look}];'

    def edge(self, index: int, path: Path, numbers: Mapping[int, int]) -> str:
        """The statement of one wire."""
        start, end = (self.wiring.boxes[box].mark for box in (path.start, path.end))
        marked = wire_style(start, end, bool(path.wire.note), self.theme.marks)
        style = self.stroke(path, bool(marked)) + marked
        stem = self.is_thick(path)  # the highway runs over the thin line to the tap
        tip, *curve = (self.at(spot) for spot in self.lines.curve(index, stem=stem))
        line = " ".join([f"e,{tip}", *curve])
        return f'n{numbers[path.start]} -> n{numbers[path.end]} [pos="{line}"{style}{self.words(index)}];'

    def words(self, path: int) -> str:
        """The texts beside a line and at its end."""
        found = ""
        if path in self.layout.tells:
            told = rows([escape(line) for line in self.layout.tells[path].splitlines()])
            found += f', lp="{self.at(self.lines.tell_spot(path))}", label=<{told}>'
        if path in self.layout.names:
            name = escape(self.layout.names[path])
            found += f', head_lp="{self.at(self.lines.name_spot(path))}", headlabel=<<I>{name}</I>>'
        return found

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


def _look(box: Box, theme: Theme) -> str:
    """The attributes of a box by its look."""
    fill = theme.fill(box.family)
    marked, sign = _emphasis(box, theme) or theme.border(box.family), _sign(box)
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


def _sign(thing: Box | Plate) -> str:
    """The class of what is marked or stands on the highway."""
    return f" {CLASSES[thing.mark.sign]}" if thing.mark is not None else " toll" if thing.toll else ""


def _emphasis(thing: Box | Plate, theme: Theme) -> str:
    """The attributes of what is marked or stands on the highway."""
    if thing.mark is not None:
        return box_style(thing.mark, theme.marks)
    return f', color="{theme.highway}", penwidth=3.4' if thing.toll else ""


def _points(number: float) -> str:
    return f"{round(number, 2) + 0:.2f}".rstrip("0").rstrip(".")


def _inches(points: float) -> str:
    return f"{points / 72:.4f}"


def _box(frame: Frame) -> str:
    return ",".join(_points(number) for number in (frame.left, frame.bottom, frame.right, frame.top))


def _pads(box: str) -> str:
    """The paper around a figure, in inches: so wide that a bitmap at 96 or 192 dpi ends with a whole pixel."""
    left, bottom, right, top = map(float, box.split(","))
    sides = (right - left, top - bottom)
    return ",".join(f"{(ceil((side + 2 * PAPER) / WHOLE) * WHOLE - side) / 144:.6g}" for side in sides)
