"""Sums, products, functions of one value, choices, and whatever has no rule of its own."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.adjoint.ops import Backward, Chain, ColumnDot, Elementwise, Rowwise, WithSlope
from blockgraph.adjoint.reverse import Gradient, Reverse, rule, saving
from blockgraph.graph import Node
from blockgraph.op import Op
from blockgraph.ops.activations import Elu, GeluErf, GeluTanh, QuickGelu, Relu, ReluSquared, Silu, Softplus
from blockgraph.ops.arithmetic import Add, Multiply, Negate, Subtract
from blockgraph.ops.elementwise import Abs, Erf, Exp, Log, Sigmoid, Sqrt, StopGradient, Tanh, Where
from blockgraph.ops.leaf import number
from blockgraph.ops.norms import L2Norm
from blockgraph.ops.softmax import Softmax

Dys = tuple[Gradient, ...]
CURVES = (GeluTanh, GeluErf, Silu, QuickGelu, Softplus, Elu)


@rule(Op)
def whatever(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """By the op's own backward."""
    assert isinstance(node.op, Op)
    wants = tuple(g.wants(value) and index not in node.op.cuts for index, value in enumerate(node.inputs))
    given = tuple(dy for dy in dys if dy is not None)
    op = Backward(node.op, tuple(dy is not None for dy in dys), wants)
    found = iter(g.all(op, *given, *node.outputs, *node.inputs) if any(wants) else ())
    yield from (next(found) if wanted else None for wanted in wants)


@rule(Add)
def add(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy to both."""
    yield from (*dys, *dys)


@rule(Subtract)
def subtract(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy and -dy"""
    (dy,) = dys
    assert dy is not None
    yield dy
    yield g(Negate(), g.summed(dy, node.inputs[1])) if g.wants(node.inputs[1]) else None


@rule(Negate)
def negate(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """-dy"""
    yield from (g(Negate(), dy) for dy in dys if dy is not None)


@rule(Multiply)
def multiply(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy times the other operand; what was stretched along all rows is summed as it is multiplied."""
    (dy,) = dys
    assert dy is not None
    for value, other in (node.inputs, node.inputs[::-1]):
        if not g.wants(value):
            yield None
        elif not g.shape(other):
            yield g(Multiply(), dy, other)
        elif len(g.shape(dy)) > 1 and g.shape(other) == g.shape(dy) and g.shape(value) == g.shape(dy)[-1:]:
            yield g(ColumnDot(), dy, other)
        else:
            yield g(Chain(), dy, other)


@rule(Abs, Erf, Exp, Log, Sigmoid, Sqrt, Tanh, Relu, ReluSquared)
def elementwise(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy times the slope."""
    (dy,) = dys
    assert dy is not None
    yield g(Elementwise(node.op), dy, node.outputs[0], node.inputs[0])  # type: ignore[arg-type]


@saving(*CURVES)
def keep_slope(g: Reverse, node: Node) -> None:
    """The slope is made with the value."""
    outputs = g.write(WithSlope(node.op), node.inputs, node.outputs[0])  # type: ignore[arg-type]
    g.kept[node.outputs[0]] = outputs[1:]


@rule(*CURVES)
def curve(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy times the slope that was kept."""
    (dy,) = dys
    assert dy is not None
    yield g(Chain(), dy, *g.kept[node.outputs[0]])


@rule(Softmax, L2Norm)
def rowwise(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """Row by row."""
    (dy,) = dys
    assert dy is not None
    yield g(Rowwise(node.op), dy, node.outputs[0], node.inputs[0])  # type: ignore[arg-type]
    yield from (None for _ in node.inputs[1:])


@rule(StopGradient)
def stop(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """Nothing."""
    yield None


@rule(Where)
def where(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy to what was chosen, 0 to the other."""
    (dy,) = dys
    assert dy is not None
    condition, if_true, if_false = node.inputs
    zero = g(number(0))
    yield None
    yield g(Where(), condition, dy, zero) if g.wants(if_true) else None
    yield g(Where(), condition, zero, dy) if g.wants(if_false) else None
