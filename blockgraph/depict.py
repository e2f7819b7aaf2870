"""What stands in a figure of checked specs: their graphs, captions, and marks on whatever is at fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from blockgraph.checking import Checked, check
from blockgraph.drawing import (
    Level,
    Marks,
    Rankdir,
    Shapes,
    ThemeName,
    Told,
    faults,
    guilty,
    mended,
    to_dot,
    to_mermaid,
)
from blockgraph.elaborate import elaborate
from blockgraph.graph import Graph
from blockgraph.records import dataclass

if TYPE_CHECKING:  # pages and programs are loaded when there are some
    from blockgraph.api import Program
    from blockgraph.checking import Source
    from blockgraph.drawing.figure import Figure
    from blockgraph.page import Subject


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
    pairs = [(one, graph) for one in listed for graph in graphs_of(one)]
    graphs = tuple(graph for _, graph in pairs)
    marks = faults(graphs, [finding for one in listed for finding in one.findings])
    return Subjects(graphs, tuple(one.spec.source for one, _ in pairs), marks)


def graphs_of(checked: Checked) -> list[Graph]:
    """The graph of a spec; where a stack could not be built, also its blocks that have a step at fault."""
    spec, graph = checked.spec, checked.graph
    if graph is None:
        return []
    found = [graph]
    if any(node.op.label() == "stack" for node in guilty(graph)):
        blocks = [elaborate(replace(spec, main=name, name=name)).graph for name in spec.modules if name != spec.main]
        found += [block for block in blocks if block is not None and guilty(block)]
    return found if checked.ok else [mended(each, checked.findings, checked.line) for each in found]


def render(
    *sources: Source | Program,
    level: Level = "sublayer",
    rankdir: Rankdir = "BT",
    expand: bool = False,
    shapes: Shapes = "changes",
    numbers: bool = False,
    params: bool = False,
    highway: bool = False,
    theme: ThemeName | Literal["auto"] = "light",
) -> Figure:
    """One figure of one or more specs side by side; it shows itself in a notebook.

    `figure.save("x.svg")` writes the format of the ending (.svg .png .pdf .dot .gv), `figure.pipe("png")` gives the
    picture as bytes, `figure.source` is its DOT text. The options are those of the command `render`: `level` says how
    close to look, `rankdir` whether the figure runs upwards (BT) or to the right (LR), `expand` writes stacks out,
    `numbers` writes sizes as numbers, `params` the parameters of each part, `highway` draws the residual path thick,
    `theme` is for a light or a dark page, for print, or by the page (auto). Raises SpecError, EnvironmentFailure.
    """
    from blockgraph.api import Program, compile
    from blockgraph.drawing.figure import Figure

    programs = [one if isinstance(one, Program) else compile(one) for one in sources]
    told = Told(level=level, rankdir=rankdir, expand=expand, shapes=shapes, numbers=numbers)
    told |= Told(params=params, highway=highway, captions=[one.spec.source for one in programs])
    dot = to_dot([one.graph for one in programs], theme="light" if theme == "auto" else theme, **told)
    return Figure(dot, adapts=theme == "auto")


def render_html(
    *sources: Source | Program | Checked, trace: Mapping[str, Any] | None = None, **shown: Unpack[Told]
) -> str:
    """One HTML page of specs side by side, with everything in it; a spec may have findings.

    `trace` is a run of the first (`program.trace(x, params)`), to be gone through step by step. Raises
    EnvironmentFailure, InputError (the trace is of another spec), SpecError (a source is no YAML or JSON).
    """
    from blockgraph.page import measured, page

    listed = [_checked(one) for one in sources]
    return page([subject_of(one) for one in listed], () if trace is None else measured(trace), **shown)


def subject_of(checked: Checked) -> Subject:
    """What a page tells of a spec."""
    from blockgraph.page import Subject

    spec = checked.spec
    name = spec.name or spec.path
    return Subject(name, tuple(graphs_of(checked)), checked.findings, spec.source, checked.line)


def _checked(source: Source | Program | Checked) -> Checked:
    from blockgraph.api import Program

    if isinstance(source, Program):
        return Checked(source.spec, source.graph, source.findings)
    return source if isinstance(source, Checked) else check(source)
