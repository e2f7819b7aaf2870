"""Norms: the normalised rows are kept, and one number for each."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.adjoint.ops import ColumnDot, ColumnSum, Normalised, NormBackward
from blockgraph.adjoint.reverse import Gradient, Reverse, rule, saving
from blockgraph.graph import Node
from blockgraph.op import real
from blockgraph.ops.arithmetic import Add, Multiply
from blockgraph.ops.leaf import number
from blockgraph.ops.norms import LayerNorm, RmsNorm


@saving(LayerNorm, RmsNorm)
def keep_rows(g: Reverse, node: Node) -> None:
    """Normalise, then gain and shift as nodes of their own."""
    op = node.op
    assert isinstance(op, LayerNorm | RmsNorm)
    x, *affine = node.inputs
    normalised = Normalised(real(op.eps), isinstance(op, LayerNorm))
    if not affine:
        z, inverse = g.write(normalised, (x,), node.outputs[0])
        g.kept[node.outputs[0]] = (z, inverse)
        return
    z, inverse = g.write(normalised, (x,))
    value, offset = z, op.offset if isinstance(op, RmsNorm) else 0
    gains: tuple[int, ...] = ()
    for index, (name, array) in enumerate(zip(op.given, affine, strict=True)):
        gain = g(Add(stretch=True), array, g(number(offset))) if offset else array
        step = Multiply() if name == "gamma" else Add(stretch=True)
        (value, *_) = g.write(step, (value, gain), node.outputs[0] if index == len(affine) - 1 else None)
        gains += (gain,)
    g.kept[node.outputs[0]] = (z, inverse, *gains)


@rule(LayerNorm, RmsNorm)
def norm(g: Reverse, node: Node, dys: tuple[Gradient, ...]) -> Iterator[Gradient]:
    """Through the gain to the rows; gain and shift by sums over all rows."""
    op = node.op
    assert isinstance(op, LayerNorm | RmsNorm)
    (dy,) = dys
    assert dy is not None
    z, inverse, *gains = g.kept[node.outputs[0]]
    named = dict(zip(op.given, node.inputs[1:], strict=True))
    written = dict(zip(op.given, gains, strict=True))
    if g.wants(node.inputs[0]):
        dz = g(Multiply(), dy, written["gamma"]) if "gamma" in written else dy
        yield g(NormBackward(isinstance(op, LayerNorm)), dz, z, inverse)
    else:
        yield None
    for name in op.given:
        if not g.wants(named[name]):
            yield None
        elif name == "gamma":
            yield g(ColumnDot(), dy, z)
        else:
            yield g(ColumnSum(), dy)
