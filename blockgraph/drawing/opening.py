"""Composite ops written out: what an op does, in simpler ops, as a graph of its own."""

from __future__ import annotations

from collections.abc import Sequence

from blockgraph.graph import Graph, GraphBuilder, Port, Step
from blockgraph.op import Op, Type
from blockgraph.ops.attend import Attend, pieces
from blockgraph.ops.leaf import Input


def written_out(op: Op, types: Sequence[Type], names: Sequence[str]) -> Graph | None:
    """The expansion of an op for operands of these types, which are its inputs; None where they are not known."""
    if any(given.shape is None for given in types):
        return None
    builder = GraphBuilder(op.name)
    pairs = zip(names, types, strict=True)
    operands = [builder.append(Input(name, one.shape or (), one.dtype), (), (one,))[0] for name, one in pairs]
    if isinstance(op, Attend):
        named = pieces(op, builder, *operands)
        builder.steps += [Step(name, named[name], "", op.name, 1) for name in ("scores", "weights")]
        result: int | None = named["y"]
    else:
        result = op.expand(builder, *operands)
    if result is None:
        return None
    inputs = [Port(name, value) for name, value in zip(names, operands, strict=True)]
    return builder.finish(inputs, [Port("y", result)])
