"""A rule's `take:` as a graph over one input, `tensor`: import runs it, export and gradients run its adjoint.

A `take` only moves elements, so its adjoint puts them back where they were.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any, final

from blockgraph.dims import Dim, DimError, show
from blockgraph.elaborate.body import Body, Session
from blockgraph.elaborate.env import Env, build
from blockgraph.elaborate.frame import Frame
from blockgraph.elaborate.items import Ref
from blockgraph.equation import parse_expression
from blockgraph.errors import SpecPath
from blockgraph.grad import record
from blockgraph.graph import Graph, GraphBuilder, Port
from blockgraph.module import Line, Report
from blockgraph.ops.leaf import Input
from blockgraph.records import dataclass
from blockgraph.run import Interpreter
from blockgraph.spec import Spec
from blockgraph.syntax import Equation, Expr, Target

TENSOR = "tensor"
MOVING = frozenset({"input", "rearrange", "transpose", "index", "split", "concat", "heads", "merge"})


@final
@dataclass(frozen=True)
class Take:
    """The graph of one `take` over a tensor of one shape."""

    interpreter: Interpreter

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is taken."""
        graph = self.interpreter.graph
        return tuple(int(dim.evaluate({})) for dim in graph.types[graph.outputs[0].value].shape or ())

    def run(self, tensor: Any) -> Any:
        """What is taken."""
        (port,) = self.interpreter.graph.outputs
        return self.interpreter.run({TENSOR: tensor}, {}, {})[port.value]

    def put_back(self, array: Any, tensor: Any) -> Any:
        """The adjoint: `array`, of the shape of what is taken, at its places in zeros of the shape of `tensor`."""
        graph = self.interpreter.graph
        tape = record(self.interpreter, {TENSOR: tensor}, {}, {})
        source, taken = graph.inputs[0].value, graph.outputs[0].value
        return tape.pull_back({taken: array}, [source])[source]


@final
@dataclass(slots=True)
class Takes:
    """The takes of one spec. A text over a shape is worked out once, however many layers use it."""

    spec: Spec
    report: Report
    _env: Env | None = None
    _known: dict[tuple[str, SpecPath, tuple[int, ...]], Take | None] = field(default_factory=dict)

    def get(self, text: str, path: SpecPath, shape: tuple[int, ...]) -> Take | None:
        """The take for a tensor of a shape; None after its finding, which stands under the text in the spec."""
        key = (text, path, shape)
        if key not in self._known:
            self._known[key] = self._build(text, path, shape)
        return self._known[key]

    def _build(self, text: str, path: SpecPath, shape: tuple[int, ...]) -> Take | None:
        document = self.spec.document
        before = len(self.report.findings)
        expr = read_take(self.spec, text, path, self.report)
        if expr is None:
            return None
        if self._env is None:
            self._env = numbered(self.spec, self.report)
        session = Session(self.spec, self.report, self._env)
        body = Body(session, GraphBuilder("take"))
        (value,) = body.node(Input(TENSOR, tuple(Dim(size) for size in shape)))
        line = Line(Equation((Target("taken", 0, 0),), expr, 0, len(text), text), partial(document.within, path), path)
        frame = Frame(body, "", 0, self._env.name, lambda _: None, (), {}, {TENSOR: Ref(value)})
        frame.run((line,))
        session.conditions.check({}, self.report, {})
        taken = frame.values["taken"]
        if any(one.severity == "error" for one in self.report.findings[before:]) or body.type(taken).shape is None:
            return None
        graph = body.builder.finish([Port(TENSOR, value)], [Port("taken", taken.value)])
        return Take(Interpreter(graph)) if self._is_movement(graph, path) else None

    def _is_movement(self, graph: Graph, path: SpecPath) -> bool:
        """Whether elements are only moved, and the shape is whole; else a finding."""
        others = [node for node in graph.nodes if node.op.name not in MOVING]
        other = next((node for node in others if node.op.name != "constant"), others[0] if others else None)
        shape = graph.types[graph.outputs[0].value].shape or ()
        if other is None and all(dim.as_int() is not None for dim in shape):
            return True
        place = self.spec.document.value(path)
        if other is None:
            self.report.add("BG312", f"what is taken has the shape {show(shape)}, and its sizes need numbers", place)
        else:
            help = "it may use rearrange, .T, subscripts, split, concat, heads and merge"
            message = f"`take` only moves elements, and `{other.op.name}` does more"
            self.report.add("BG312", message, other.place or place, help)
        return False


def read_take(spec: Spec, text: str, path: SpecPath, report: Report) -> Expr | None:
    """The syntax tree of a `take`; None after its findings."""
    expr, refusals = parse_expression(text)
    for refusal in refusals:
        report.add(refusal.code, refusal.message, spec.document.within(path, refusal.start, refusal.end), refusal.help)
    return expr


def numbered(spec: Spec, report: Report) -> Env:
    """The environment with a number for every dim that has one: a file knows numbers only."""
    env = build(spec, report)
    values = dict(env.numbers)
    dims = {}
    for name, dim in env.dims.items():
        try:
            dims[name] = Dim(dim.evaluate(values)) if dim.symbols <= values.keys() else dim
        except DimError:
            dims[name] = dim
    return replace(env, dims=dims)
