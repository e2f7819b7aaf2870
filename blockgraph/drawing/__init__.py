"""Graph in, picture out: DOT text, and SVG, PNG or PDF by the Graphviz program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from blockgraph.drawing.arrange import arrange
from blockgraph.drawing.collapse import collapse
from blockgraph.drawing.faults import faults, guilty, mended
from blockgraph.drawing.marking import NO_MARKS, Mark, Marks
from blockgraph.drawing.program import draw, find_dot, picture
from blockgraph.drawing.text import Label, label
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
) -> str:
    """The DOT text of graphs side by side, each under its name and its caption (the source).

    `expand` writes stacks out layer by layer; `shapes` are told where they change, on all lines or nowhere,
    with `numbers` in numbers as far as they are known. `marks` says what is added, removed, changed or at fault.
    """
    titles = [_title(graph, captions[index] if index < len(captions) else "") for index, graph in enumerate(graphs)]
    sketches = [arrange(collapse(graph, expand=expand, marks=marks)) for graph in graphs]
    return write(list(zip(sketches, titles, strict=True)), shapes, [graph.dims if numbers else {} for graph in graphs])


def _title(graph: Graph, caption: str) -> Label:
    return label(graph.name, [caption] if caption else [], size=14, bold=True)


__all__ = ["Mark", "Marks", "Shapes", "draw", "faults", "find_dot", "guilty", "mended", "picture", "to_dot"]
