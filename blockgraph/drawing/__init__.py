"""Graph in, picture out: DOT or Mermaid text, and SVG, PNG or PDF by the Graphviz program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from blockgraph.drawing.arrange import arrange
from blockgraph.drawing.axes import Axes, Rankdir
from blockgraph.drawing.collapse import Look, collapse
from blockgraph.drawing.diagram import Box, Diagram, Plate
from blockgraph.drawing.extent import refuse_too_large
from blockgraph.drawing.extras import extras, has_highway, total_line
from blockgraph.drawing.faults import faults, guilty, mended
from blockgraph.drawing.levels import Level
from blockgraph.drawing.marking import NO_MARKS, Key, Mark, Marks
from blockgraph.drawing.mermaid import write_mermaid
from blockgraph.drawing.program import ENDINGS, draw, find_dot, picture
from blockgraph.drawing.text import Label, label
from blockgraph.drawing.themes import THEMES, ThemeName, adaptive, dark_rules
from blockgraph.drawing.wiring import Wiring
from blockgraph.drawing.write import Written, write
from blockgraph.graph import Graph

Shapes = Literal["changes", "all", "none"]


class Told(TypedDict, total=False):
    """What a drawing shows, in DOT and in Mermaid alike.

    `expand` writes stacks out layer by layer; `shapes` are told where they change, on all lines or nowhere,
    with `numbers` in numbers as far as they are known. `captions` are the sources under the names. `marks` says what is
    added, removed, changed or at fault. `params` writes the numbers of parameters into boxes and plates, `highway`
    draws the residual path thick and marks what stands on it. `level` says how close to look: a block as one box, its
    sublayers, or every op; `rankdir` whether the figure runs upwards (BT) or to the right (LR). `lines` are small lines
    for boxes, by the id of the graph and the part's key or the node's id.
    """

    expand: bool
    shapes: Shapes
    captions: Sequence[str]
    numbers: bool
    marks: Marks
    params: bool
    highway: bool
    level: Level
    rankdir: Rankdir
    lines: Mapping[Key, str]


def to_dot(graphs: Sequence[Graph], *, theme: ThemeName = "light", **told: Unpack[Told]) -> str:
    """The DOT text of graphs side by side, each under its name and its caption, in the colours for a kind of page.

    Raises DrawingError (BG501) where it would be too large.
    """
    return written(graphs, theme=theme, **told).dot


def written(graphs: Sequence[Graph], *, theme: ThemeName = "light", **told: Unpack[Told]) -> Written:
    """The DOT text with what its ids stand for."""
    sketches = [arrange(diagram) for diagram in _diagrams(graphs, told)]
    titled = list(zip(sketches, _titles(graphs, told), strict=True))
    shapes, values, axes = told.get("shapes", "changes"), _values(graphs, told), Axes(told.get("rankdir", "BT"))
    return write(titled, shapes, values, THEMES[theme], highways=_highways(graphs, told), axes=axes)


def to_mermaid(graphs: Sequence[Graph], **told: Unpack[Told]) -> str:
    """The same figures as a Mermaid flowchart."""
    wirings = [Wiring(diagram) for diagram in _diagrams(graphs, told)]
    titled = list(zip(wirings, _titles(graphs, told), strict=True))
    shapes, values, rankdir = told.get("shapes", "changes"), _values(graphs, told), told.get("rankdir", "BT")
    return write_mermaid(titled, shapes, values, highways=_highways(graphs, told), rankdir=rankdir)


def _diagrams(graphs: Sequence[Graph], told: Told) -> Iterator[Diagram]:
    numbers, params, tolls = told.get("numbers", False), told.get("params", False), told.get("highway", False)
    for graph in graphs:
        more = extras(graph, numbers=numbers, params=params, tolls=tolls, own=told.get("lines"))
        level, marks = told.get("level", "sublayer"), told.get("marks", NO_MARKS)
        if told.get("expand", False):
            refuse_too_large(graph, level)
        yield collapse(graph, Look(level, told.get("expand", False), marks, more))


def _values(graphs: Sequence[Graph], told: Told) -> list[dict[str, int]]:
    """The numbers to write in place of symbols."""
    return [graph.dims if told.get("numbers", False) else {} for graph in graphs]


def _highways(graphs: Sequence[Graph], told: Told) -> list[bool]:
    """Whether a way is to be drawn thick: where it was asked for and there is one."""
    return [told.get("highway", False) and has_highway(graph) for graph in graphs]


def _titles(graphs: Sequence[Graph], told: Told) -> list[Label]:
    captions = [*told.get("captions", ()), *[""] * len(graphs)]
    pairs = zip(graphs, captions, strict=False)
    return [_title(graph, caption, told.get("params", False)) for graph, caption in pairs]


def _title(graph: Graph, caption: str, params: bool) -> Label:
    return label(graph.name, filter(None, [caption, total_line(graph) if params else ""]), size=14, bold=True)


__all__ = [
    "ENDINGS",
    "Box",
    "Key",
    "Level",
    "Mark",
    "Marks",
    "Plate",
    "Rankdir",
    "Shapes",
    "ThemeName",
    "Told",
    "Written",
    "adaptive",
    "dark_rules",
    "draw",
    "faults",
    "find_dot",
    "guilty",
    "mended",
    "picture",
    "to_dot",
    "to_mermaid",
    "written",
]
