"""From a graph to the schedule of a step: what is computed once, what at every step, and what is kept in between.

The outputs are asked for their new rows, and each node asks its operands for what it needs to give the rows it is asked
for: from the last node to the first, once. A value that is asked for earlier rows keeps them, if they stay as they are;
else it is computed again in whole. Nothing here knows an op by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from blockgraph.decode.restrict import restricted
from blockgraph.decode.timing import Timing
from blockgraph.decode.views import NEW, NEW_ROWS, PAST_ROWS, Past, View
from blockgraph.dims import Dim
from blockgraph.graph import Graph, Node
from blockgraph.op import Op
from blockgraph.ops.leaf import Input
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A value, and which of its rows; no view for what has no axis of time. `raw`: some before these come along."""

    value: int
    view: View = ()
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One op at every step; `size` is what T means in its options, of the operands `like` only shapes are read."""

    node: Node
    inputs: tuple[Part, ...]
    outputs: tuple[Part, ...]
    size: Dim
    like: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """The last rows of what is there already."""

    source: Part
    target: Part


@dataclass(frozen=True, slots=True)
class Keep:
    """New rows of a value join those that are kept: `past` of them stay for later steps, all if that is None.

    `reads` are the views that are then taken.
    """

    source: Part
    axis: int
    past: Past
    reads: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """Rows of a table by the positions they stand for."""

    value: int
    axis: int
    target: Part


Step = Run | Cut | Keep | Take


@dataclass(frozen=True)
class Schedule:
    """`fixed` values are computed once, `tables` for as many positions as there is room for, `steps` at every step."""

    graph: Graph
    timing: Timing
    fixed: tuple[int, ...]
    tables: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Part, ...]

    @property
    def kept(self) -> tuple[Keep, ...]:
        """What grows from step to step."""
        return tuple(step for step in self.steps if isinstance(step, Keep))


def derive(timing: Timing) -> Schedule:
    """The schedule of a step for a graph whose outputs have rows that stay."""
    work = _Demands(timing)
    graph = timing.graph
    outputs = tuple(work.ask(port.value, _rows_of(timing, port.value)) for port in graph.outputs)
    steps: list[Step] = []
    for node in reversed(graph.nodes):
        steps += reversed(list(work.answer(node)))
    return Schedule(
        graph, timing, tuple(sorted(work.fixed)), tuple(sorted(work.tables)), tuple(reversed(steps)), outputs
    )


def _rows_of(timing: Timing, value: int) -> View:
    """The new rows of an output, with all of its columns."""
    return tuple(None if index else NEW for index in range(len(timing.axes(value))))


@dataclass
class _Demands:
    timing: Timing
    asked: dict[int, dict[View, Part]] = field(default_factory=dict)
    fixed: set[int] = field(default_factory=set)
    tables: set[int] = field(default_factory=set)

    def ask(self, value: int, view: View) -> Part:
        """Note that a view of a value is needed."""
        part = Part(value, view)
        self.asked.setdefault(value, {})[view] = part
        return part

    def whole(self, value: int) -> Part:
        """Ask for all rows so far."""
        return self.ask(value, (None,) * len(self.timing.axes(value)))

    def answer(self, node: Node) -> Iterator[Step]:
        """The steps that give what was asked of the outputs of a node, in running order."""
        if not any(value in self.asked for value in node.outputs):
            return
        if node.outputs[0] not in self.timing.timed:
            self.fixed.update(value for value in node.outputs if value in self.asked)
            return
        runs: dict[object, Run] = {}
        behind: list[Step] = []
        for index, value in enumerate(node.outputs):
            if value in self.asked:
                behind += self._answer(node, index, value, runs)
        yield from runs.values()
        yield from behind

    def _answer(self, node: Node, index: int, value: int, runs: dict[object, Run]) -> Iterable[Step]:
        """Rows of one output: taken from a table, kept, or run, and cut to size."""
        views = list(self.asked[value])
        if value not in self.timing.given and self.timing.grows(value):
            self.tables.add(value)
            return [Take(value, self.timing.axes(value)[0], Part(value, view)) for view in views]
        behind: list[Step] = []
        if self.timing.grows(value):
            behind += self._keep(value, views)
            views = [(NEW,)]
        for view in views:
            behind[:0] = self._run(node, index, value, view, runs)
        return behind

    def _keep(self, value: int, views: list[View]) -> Iterator[Step]:
        wanted = [view for view in views if view != (NEW,)]
        if wanted:
            pasts = [past for (past,) in wanted]
            most = None if None in pasts else max(past for past in pasts if past is not None)
            reads = tuple(Part(value, view) for view in wanted)
            yield Keep(Part(value, (NEW,)), self.timing.axes(value)[0], most, reads)

    def _run(self, node: Node, index: int, value: int, view: View, runs: dict[object, Run]) -> Iterator[Step]:
        if isinstance(node.op, Input):
            return
        found = restricted(self.timing, node, index, view) if list(view).count(NEW) == 1 else None
        if found is None:
            whole = Part(value, (None,) * len(view))
            self._whole(node, runs)
            if view != whole.view:
                yield Cut(whole, Part(value, view))
            return
        raw = tuple(
            Part(one, rows, raw=found.surplus != NEW) for one, rows in zip(node.outputs, found.outputs, strict=True)
        )
        key = (found.views, found.outputs)
        if key not in runs:
            like = self._like(node)
            parts = tuple(
                Part(one, rows or ()) if position in like else self.whole(one) if rows is None else self.ask(one, rows)
                for position, (one, rows) in enumerate(zip(node.inputs, found.views, strict=True))
            )
            runs[key] = Run(node, parts, raw, found.size, like)
        if found.surplus != NEW:
            yield Cut(raw[index], Part(value, view))

    def _whole(self, node: Node, runs: dict[object, Run]) -> None:
        """Run a node on all rows of its operands."""
        if None in runs:
            return
        like = self._like(node)
        timing = self.timing
        parts = tuple(
            Part(one, (None,) * len(timing.axes(one))) if position in like else self.whole(one)
            for position, one in enumerate(node.inputs)
        )
        outputs = tuple(Part(one, (None,) * len(timing.axes(one))) for one in node.outputs)
        runs[None] = Run(node, parts, outputs, NEW_ROWS + PAST_ROWS, like)

    def _like(self, node: Node) -> tuple[int, ...]:
        assert isinstance(node.op, Op), "stacks are written out before they are decoded"
        return node.op.shape_only
