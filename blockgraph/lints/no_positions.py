"""BG215: a model reads tokens, lets every position see all others, and never tells where a token stands."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.dims import Dim
from blockgraph.errors import Finding
from blockgraph.facts import time_axis
from blockgraph.facts.reach import spelled
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import ops, originals, part_at, stacks
from blockgraph.op import Op
from blockgraph.ops.attend import Attend
from blockgraph.ops.leaf import Input
from blockgraph.ops.rope import Rope
from blockgraph.pattern import Axis

CODE = "BG215"
NEEDS_ALL = True  # it concludes from what is not there


def lint_model(graph: Graph) -> Iterator[Finding]:
    """Models with a stack and one input of ids, in which nothing depends on the order of positions."""
    time = time_axis(graph, graph.dims)
    ids = [port for port in graph.inputs if time in (graph.types[port.value].shape or ())]
    if time is None or len(ids) != 1 or graph.types[ids[0].value].dtype != "int":
        return
    every = list(_bodies(graph))
    nodes = [(body, node, op) for body in every for node, op in ops(body)]
    if len(every) == 1 or any(_orders(body, node, op, time) for body, node, op in nodes):
        return
    attends = [(body, node) for body, node, op in nodes if isinstance(op, Attend)]
    if attends and attends[0][1].place is not None:
        body, node = attends[0]
        name = part_at(body, node, ("attention",)) or node.op.name
        message = f"`{name}` sees all positions alike, and nothing tells it where `{ids[0].name}` stand"
        help = "add learned_positions or a sinusoid to the embedding, or give it `rotary`, `alibi` or `mask: causal`"
        yield Finding(CODE, message, node.place or attends[0][1].place, help, severity="warning")


def _bodies(graph: Graph) -> Iterator[Graph]:
    waiting = [graph]
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += [body for _, stack in stacks(one) for body in originals(stack)]


def _orders(graph: Graph, node: Node, op: Op, time: Dim) -> bool:
    """Whether an op makes positions differ other than by what they hold."""
    types = tuple(graph.types[value] for value in node.inputs)
    if op.shape_only or isinstance(op, Rope) or (isinstance(op, Attend) and (op.alibi or op.local)):
        return True
    if isinstance(op, Input):
        return op.dims.count(time) > 1
    shapes = [given.shape or () for given in types]
    if op.zeros(types) or any(given.bare and time in shape for given, shape in zip(types, shapes, strict=True)):
        return True
    timed = _timed(op, node, graph, time)
    return any((m.low, m.high) != (None, None) and (m.operand, m.letter) in timed for m in op.moves(types))


def _timed(op: Op, node: Node, graph: Graph, time: Dim) -> set[tuple[int, Axis]]:
    """The letters of the operands' axes of positions."""
    types = tuple(graph.types[value] for value in node.inputs)
    if any(given.shape is None for given in types):
        return set()
    found: set[tuple[int, Axis]] = set()
    for index, (axes, given) in enumerate(zip(op.pattern(types).operands, types, strict=True)):
        shape = given.shape or ()
        found |= {(index, axis) for axis, dim in zip(spelled(axes, len(shape)), shape, strict=True) if dim == time}
    return found
