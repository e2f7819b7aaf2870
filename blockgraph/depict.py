"""What stands in a figure of checked specs: their graphs, captions, and marks on whatever is at fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from blockgraph.checking import Checked
from blockgraph.drawing import Marks, Shapes, ThemeName, faults, guilty, mended, to_dot, to_mermaid
from blockgraph.elaborate import elaborate
from blockgraph.graph import Graph
from blockgraph.records import dataclass


@dataclass(frozen=True)
class Subjects:
    """The graphs of one figure, each with its caption, and the marks on them."""

    graphs: tuple[Graph, ...]
    captions: tuple[str, ...]
    marks: Marks

    def dot(self, theme: ThemeName = "light", shapes: Shapes = "changes", **options: Any) -> str:
        """The DOT text; the options are those of `drawing.to_dot`."""
        return to_dot(self.graphs, captions=self.captions, marks=self.marks, theme=theme, shapes=shapes, **options)

    def mermaid(self, **options: Any) -> str:
        """The Mermaid text; the options are those of `drawing.to_mermaid`."""
        return to_mermaid(self.graphs, captions=self.captions, marks=self.marks, **options)


def subjects(checked: Iterable[Checked]) -> Subjects:
    """All that can be drawn of some specs: of one with errors as much as is understood, the steps at fault marked."""
    listed = list(checked)
    pairs = [(one, graph) for one in listed for graph in _graphs(one)]
    graphs = tuple(graph for _, graph in pairs)
    marks = faults(graphs, [finding for one in listed for finding in one.findings])
    return Subjects(graphs, tuple(one.spec.source for one, _ in pairs), marks)


def _graphs(checked: Checked) -> list[Graph]:
    """The graph of a spec; where a stack could not be built, also its blocks that have a step at fault."""
    spec, graph = checked.spec, checked.graph
    if graph is None:
        return []
    found = [graph]
    if any(node.op.label() == "stack" for node in guilty(graph)):
        blocks = [elaborate(replace(spec, main=name, name=name)).graph for name in spec.modules if name != spec.main]
        found += [block for block in blocks if block is not None and guilty(block)]
    return found if checked.ok else [mended(each, checked.findings, checked.line) for each in found]
