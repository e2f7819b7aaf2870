"""A plan: everything that can be decided once the sizes are known, before there are arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import field
from typing import Any, Literal

from blockgraph.graph import Graph
from blockgraph.op import Op
from blockgraph.peephole import recognise
from blockgraph.plan.again import make_again
from blockgraph.plan.blas import blas
from blockgraph.plan.kernel import Emit
from blockgraph.plan.layout import Layout, Layouter
from blockgraph.plan.memory import Arena, aligned, place, shadow
from blockgraph.plan.segments import Known, Segment, shared_out
from blockgraph.plan.stages import Rows, Stage, order_of
from blockgraph.plan.steps import Steps, steps_of
from blockgraph.plan.sums import share_sums
from blockgraph.plan.views import Aliases, aliases_of
from blockgraph.records import dataclass

MIN_FLOPS = 20_000_000
"""Below this a run is over before a second thread has woken up."""
MIN_ROWS = 256
"""Below this BLAS shares out a product better than its rows can be."""
MIN_SHARED = 1 << 19
"""FLOPs of a matrix product up to which OpenBLAS does not share it out, however many threads it may use."""
MAX_CALLS = 50_000
"""Calls that are kept; a plan with more writes them down again at every run, segment by segment."""


Kind = Literal["input", "given", "fresh", "arena"]
"""Where a result is found: an input itself, a view of what is given, an array made for it, or in the arena."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan is made for: the numbers of all symbols, the dtype of floats, and what the caller gives and wants.

    `inputs` are the dtypes of the inputs by name, `loose` the arrays that do not lie row after row in memory, `kept`
    the values to be handed over. The inputs named in `late` come when whatever does not need them has run; they may
    come `often`, and what they need is then left as it was.
    """

    numbers: tuple[tuple[str, int], ...]
    dtype: Any
    inputs: tuple[tuple[str, Any], ...]
    loose: frozenset[str]
    kept: frozenset[int]
    threads: int
    late: frozenset[str] = frozenset()
    often: bool = False


@dataclass(slots=True)
class Plan:
    """`work[k][s]` are the segments of thread k in stage s; `offsets` the places of whole values in the arena.

    Stages from `pause` on need the late inputs; what they make has its root in `after`. The values that the caller
    gets are `early` or `late`.
    """

    steps: Steps
    aliases: Aliases
    layout: Layout
    early: tuple[tuple[int, Kind], ...]
    late: tuple[tuple[int, Kind], ...]
    threads: int
    work: list[list[list[Segment]]]
    passing: frozenset[int]
    offsets: dict[int, int]
    shared: int
    pause: int
    after: frozenset[int]
    limits: bool = True
    scratch: int = 0
    keeps: bool = True
    calls: int = 0
    stages: list[Stage] = field(default_factory=list)
    constants: dict[Hashable, Any] = field(default_factory=dict)
    fresh: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note the values for which arrays are made at every run."""
        self.fresh = tuple(owner for owner, level in self.layout.levels.items() if level == "fresh")

    @property
    def bytes(self) -> int:
        """The size of a workspace's arena: whole values, then the scratch memory of each thread."""
        return self.shared + self.scratch * len(self.work)

    def base(self, thread: int) -> int:
        """Where the scratch memory of a thread begins."""
        return self.shared + self.scratch * thread


def plan_of(graph: Graph, request: Request) -> Plan:
    """The plan for an unrolled graph."""
    graph = recognise(graph, dict(request.numbers), request.kept)
    steps = steps_of(graph, dict(request.numbers), request.dtype, dict(request.inputs), request.kept)
    steps.late = frozenset(value for value, name in steps.inputs.items() if name in request.late)
    make_again(steps, request.kept)
    share_sums(steps, request.threads)
    aliases = aliases_of(steps, request.loose, request.kept)
    order = order_of(steps, aliases)
    stages, pause = order.stages, order.pause
    layout = Layouter(steps, aliases, stages, request.kept, pause if request.often else len(stages)).run()
    known = Known(steps, aliases, layout)
    effort = _effort(steps)
    size = request.threads if _pays(effort, stages[:pause]) else 1
    per_stage = [shared_out(stage, known, size) for stage in stages]
    work = [[segments[thread] for segments in per_stage] for thread in range(size)]
    offsets, shared = place(layout.lives)
    passing = frozenset(root for root, owner in layout.owner.items() if layout.levels[owner] == "fresh") | {
        value for value in steps.inputs if layout.level(value) == "given"
    }
    made = (value for stage in stages[pause:] for step in stage.steps for value in step.outputs)
    after = steps.late.union(aliases.root(value) for value in made)
    results = [(value, _kind(value, known)) for value in sorted(request.kept)]
    early = tuple(one for one in results if aliases.root(one[0]) not in after)
    late = tuple(one for one in results if aliases.root(one[0]) in after)
    plan = Plan(
        steps,
        aliases,
        layout,
        early,
        late,
        request.threads,
        work,
        passing,
        offsets,
        aligned(shared),
        pause,
        after,
        limits=effort.product > MIN_SHARED,
    )
    plan.stages = stages
    _measure(plan)
    return plan


def _kind(value: int, known: Known) -> Kind:
    """Whose memory a kept value lies in."""
    root = known.aliases.root(value)
    if value in known.steps.inputs:
        return "input"
    level = known.layout.level(root)
    return "given" if level == "given" else "fresh" if level == "fresh" else "arena"


@dataclass(frozen=True, slots=True)
class _Effort:
    """FLOPs of a run, those of elementwise work counted tenfold as they take longer; the largest step's in products."""

    total: float
    product: float


def _effort(steps: Steps) -> _Effort:
    known: dict[tuple[Op, Any], tuple[float, float]] = {}
    numbers = dict(steps.numbers)
    for step in steps.steps:
        key = (step.op, step.types)
        if key not in known:
            cost = step.op.cost(step.types, step.outs)
            product = float(cost.products.evaluate(numbers))
            known[key] = (product + 10 * float(cost.elementwise.evaluate(numbers)), product)
    total = sum(known[step.op, step.types][0] for step in steps.steps)
    return _Effort(total, max((product for _, product in known.values()), default=0.0))


def _pays(effort: _Effort, stages: list[Stage]) -> bool:
    """Whether threads of our own are faster than those of BLAS: with many rows, and work to share out."""
    rows = max((math.prod(stage.lead) for stage in stages if isinstance(stage, Rows)), default=0)
    return rows >= MIN_ROWS and effort.total >= MIN_FLOPS and blas() is not None


@dataclass(slots=True)
class _Shadows:
    """Arrays without memory, to learn how much scratch memory the kernels ask for."""

    plan: Plan
    arrays: dict[int, Any] = field(default_factory=dict)

    def array(self, value: int) -> Any:
        """An array of the right shape and strides, or the number."""
        if value in self.plan.steps.constants:
            return self.plan.steps.constants[value]
        if value not in self.arrays:
            look = self.plan.aliases.looks.get(value)
            steps = self.plan.steps
            self.arrays[value] = (
                look.at(self.array(look.base)) if look else shadow(steps.shapes[value], steps.dtypes[value])
            )
        return self.arrays[value]


def _measure(plan: Plan) -> None:
    """Write all calls down once without memory: the scratch memory that is needed, and the number of calls."""
    shadows, arena, calls = _Shadows(plan), Arena(0, real=False), 0
    for stages in plan.work:
        for segments in stages:
            for segment in segments:
                emit = Emit(arena, 0, plan.steps.dtype, plan.constants)
                segment.write(emit, shadows)
                plan.scratch = max(plan.scratch, emit.most)
                calls += len(emit.calls)
    plan.calls, plan.keeps = calls, calls <= MAX_CALLS
