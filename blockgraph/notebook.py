"""What specs, programs and traces look like in a notebook: a table as plain text, and a picture where one can be drawn.

Nothing here raises for want of a Graphviz program: the table then says why there is no picture.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from blockgraph.api import Program
from blockgraph.checking import Checked, check
from blockgraph.cost.bodies import bodies
from blockgraph.cost.parameters import number
from blockgraph.cost.report import costs
from blockgraph.depict import subjects
from blockgraph.dims import Dim, show
from blockgraph.drawing import draw, to_dot
from blockgraph.drawing.scopes import leaf_scope
from blockgraph.errors import EnvironmentFailure
from blockgraph.graph import Graph
from blockgraph.op import volume
from blockgraph.ops.leaf import Param
from blockgraph.report import PLAIN, escape, formatted, summary
from blockgraph.run import rms
from blockgraph.source.write import to_yaml
from blockgraph.spec import Spec
from blockgraph.tables import Column, real, table
from blockgraph.trace import Trace

TEXT: Final = "text/plain"
SVG: Final = "image/svg+xml"
WIDTH: Final = 100
ROWS: Final = 60
"""Rows of a table: of a longer one the first and the last are shown."""
BOXES: Final = 120
"""Boxes of the picture of a run: a longer one is no longer looked at in a notebook."""
Shown = Spec | Checked | Program | Trace
Row = tuple[str, ...]


def bundle(
    shown: Shown, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """Texts by MIME type, those of `include` (default: all) without those of `exclude`."""
    wanted = {TEXT, SVG}.intersection(include or {TEXT, SVG}).difference(exclude or ())
    checked = check(shown) if isinstance(shown, Spec) else shown
    svg, reason = picture(checked) if SVG in wanted else (None, "")
    told = text(checked) + reason if TEXT in wanted else None
    return {kind: content for kind, content in ((TEXT, told), (SVG, svg)) if content is not None}


def picture(shown: Checked | Program | Trace) -> tuple[str | None, str]:
    """The SVG, or None and a line that says why there is none."""
    dot = _traced(shown) if isinstance(shown, Trace) else _drawn(shown)
    try:
        return (draw(dot, "svg").decode() if dot else None), ""
    except EnvironmentFailure as error:
        return None, f"no picture: {escape(error.findings[0].message)}\n"


def _drawn(shown: Checked | Program) -> str:
    """The DOT text; none where nothing is understood."""
    checked = shown if isinstance(shown, Checked) else Checked(shown.spec, shown.graph, shown.findings)
    found = subjects([checked])
    return found.dot() if found.graphs else ""


def _traced(trace: Trace) -> str:
    """The DOT text of a run with the RMS of what each part put out; none of one that is too long to be looked at."""
    graph = trace.graph
    lines = {(id(graph), _box(graph, name)): f"RMS {real(rms(trace[name]))}" for name in trace}
    return to_dot([graph], lines=lines, shapes="none") if len(lines) <= BOXES else ""


def _box(graph: Graph, name: str) -> str | int:
    """The box that a named value comes from: that of its part, else of its node."""
    node = graph.producers[graph.named[name]]
    return leaf_scope(graph, node.scope) or node.id


def text(shown: Checked | Program | Trace) -> str:
    """The table, without any picture."""
    if isinstance(shown, Trace):
        return _trace(shown)
    return _program(shown) if isinstance(shown, Program) else _spec(shown)


def _spec(checked: Checked) -> str:
    """Name, source, dims, the parts of every module, and the findings."""
    spec = checked.spec
    head = [spec.name or spec.path, *([spec.source] if spec.source else [])]
    declared = {name: one.number or spec.data["dims"][name] for name, one in spec.dims.items()}
    for title, values in (("dims", declared), ("constants", spec.constants)):
        head += [f"{title}: {_written({**values, **_chosen(values, spec.overrides)})}"] if values else []
    rows = [
        (name, part.name, part.kind, _written(part.options))
        for name, module in spec.modules.items()
        for part in module.parts.values()
    ]
    columns = (Column("module"), Column("part"), Column("kind"), Column("options", wrap=True))
    blocks = ["".join(f"{escape(line)}\n" for line in head)]
    blocks += [_rows(columns, rows)] if rows else []
    blocks += [formatted(checked.findings, checked.line) or f"{summary(())}\n"]
    return "\n".join(blocks)


def _chosen(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: overrides[name] for name in values if name in overrides}


def _written(options: Mapping[str, Any]) -> str:
    """Options as in a spec, in one line: `heads: H, mask: causal`."""
    return ", ".join(" ".join(to_yaml({name: value}).split()) for name, value in options.items())


def _program(program: Program) -> str:
    """The parameters of one layer of each kind, how many there are of each, and the totals."""
    graph = program.graph
    head = repr(graph).removeprefix("<Graph ").rpartition(", ")[0]
    columns = (Column("parameter", wrap=True), Column("shape"), Column("sizes"), Column("numbers", right=True))
    blocks = [f"{escape(head)}\n", _rows((*columns, Column("layers", right=True)), list(_parameters(program)))]
    blocks += ["".join(f"{line}\n" for line in _totals(program))]
    return "\n".join(blocks)


def _parameters(program: Program) -> Iterator[Row]:
    numbers = program.graph.dims
    for body in bodies(program.graph):
        if body.again:
            continue
        layers = "" if body.parent < 0 else "shared" if body.once else told(body.layers, numbers)
        for name, node in body.graph.parameters.items():
            assert isinstance(node.op, Param)
            known = [number(dim, numbers) for dim in node.op.dims]
            sizes = "" if None in known else show(tuple(Dim(one) for one in known if one is not None))
            yield body.prefix + name, show(node.op.dims), sizes, told(volume(node.op.dims), numbers), layers


def _totals(program: Program) -> Iterator[str]:
    """`parameters: 124,439,808`, and how many of them one position uses where that is fewer."""
    found = costs(program.graph)
    if found.total is None:
        yield "parameters: as many as the number of layers says"
        return
    weights = found.total.weights
    yield f"parameters: {told(weights.total, found.numbers)}"
    if weights.active != weights.total:
        yield f"active: {told(weights.active, found.numbers)}"


def told(size: Dim | None, numbers: dict[str, int]) -> str:
    """A count with its thousands apart, as a formula while a symbol has no number; `?` for what is not known."""
    if size is None:
        return "?"
    known = number(size, numbers)
    return str(size) if known is None else f"{known:,}"


def _trace(trace: Trace) -> str:
    """A row per named value: its shape in symbols and in numbers, and its RMS."""
    graph, names = trace.graph, list(trace)
    rows = [
        (
            name,
            show(graph.types[graph.named[name]].shape),
            show(tuple(map(Dim, trace[name].shape))),
            real(rms(trace[name])),
        )
        for name in (names if len(names) <= ROWS else [*names[: ROWS // 2], *names[-ROWS // 2 :]])
    ]
    columns = (Column("value", wrap=True), Column("shape"), Column("sizes"), Column("RMS", right=True))
    return f"{escape(repr(trace)[7:-1])}\n\n{_rows(columns, rows, len(names))}"


def _rows(columns: tuple[Column, ...], rows: Sequence[Row], whole: int = 0) -> str:
    """A table with a line in the place of the rows in the middle of a long one."""
    whole = max(whole, len(rows))
    if whole <= ROWS:
        return table(columns, rows, PLAIN, WIDTH)
    half = ROWS // 2
    gap = (f"... {whole - 2 * half:,} more", *[""] * (len(columns) - 1))
    return table(columns, [*rows[:half], gap, *rows[-half:]], PLAIN, WIDTH)
