"""Graph in, picture out: DOT or Mermaid text, and SVG, PNG or PDF by the Graphviz program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from blockgraph.drawing.arrange import arrange
from blockgraph.drawing.collapse import collapse
from blockgraph.drawing.extras import extras, total_line
from blockgraph.drawing.faults import faults, guilty, mended
from blockgraph.drawing.marking import NO_MARKS, Mark, Marks
from blockgraph.drawing.mermaid import write_mermaid
from blockgraph.drawing.program import draw, find_dot, picture
from blockgraph.drawing.text import Label, label
from blockgraph.drawing.themes import THEMES, ThemeName, adaptive
from blockgraph.drawing.wiring import Wiring
from blockgraph.drawing.write import write
from blockgraph.graph import Graph

Shapes = Literal["changes", "all", "none"]


def to_dot(
    graphs: Sequence[Graph],
    *,
    expand: bool = False,
    shapes: Shapes = "changes",
    captions: Sequence[str] = (),
    numbers: bool = False,
    marks: Marks = NO_MARKS,
    theme: ThemeName = "light",
    params: bool = False,
    highway: bool = False,
) -> str:
    """The DOT text of graphs side by side, each under its name and its caption (the source).

    `expand` writes stacks out layer by layer; `shapes` are told where they change, on all lines or nowhere,
    with `numbers` in numbers as far as they are known. `marks` says what is added, removed, changed or at fault,
    `theme` for which page the colours are. `params` writes the numbers of parameters into boxes and plates, `highway`
    draws the residual path thick and marks what stands on it.
    """
    more = [extras(graph, numbers=numbers, params=params, tolls=highway) for graph in graphs]
    pairs = zip(graphs, more, strict=True)
    sketches = [arrange(collapse(graph, expand=expand, marks=marks, extras=one)) for graph, one in pairs]
    titled = list(zip(sketches, _titles(graphs, captions, params), strict=True))
    return write(titled, shapes, _values(graphs, numbers), THEMES[theme], highway=highway)


def to_mermaid(
    graphs: Sequence[Graph],
    *,
    expand: bool = False,
    shapes: Shapes = "changes",
    captions: Sequence[str] = (),
    numbers: bool = False,
    marks: Marks = NO_MARKS,
    params: bool = False,
    highway: bool = False,
) -> str:
    """The same figures as a Mermaid flowchart; the options are those of `to_dot`."""
    more = [extras(graph, numbers=numbers, params=params, tolls=highway) for graph in graphs]
    pairs = zip(graphs, more, strict=True)
    wirings = [Wiring(collapse(graph, expand=expand, marks=marks, extras=one)) for graph, one in pairs]
    titled = list(zip(wirings, _titles(graphs, captions, params), strict=True))
    return write_mermaid(titled, shapes, _values(graphs, numbers), highway=highway)


def _values(graphs: Sequence[Graph], numbers: bool) -> list[dict[str, int]]:
    """The numbers to write in place of symbols."""
    return [graph.dims if numbers else {} for graph in graphs]


def _titles(graphs: Sequence[Graph], captions: Sequence[str], params: bool) -> list[Label]:
    told = [*captions, *[""] * len(graphs)]
    return [_title(graph, caption, params) for graph, caption in zip(graphs, told, strict=False)]


def _title(graph: Graph, caption: str, params: bool) -> Label:
    return label(graph.name, filter(None, [caption, total_line(graph) if params else ""]), size=14, bold=True)


__all__ = [
    "Mark",
    "Marks",
    "Shapes",
    "ThemeName",
    "adaptive",
    "draw",
    "faults",
    "find_dot",
    "guilty",
    "mended",
    "picture",
    "to_dot",
    "to_mermaid",
]
