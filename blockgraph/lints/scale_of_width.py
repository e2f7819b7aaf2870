"""BG216: scores scaled by the width of the stream where the width of a head is meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from blockgraph.dims import Dim
from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import of_class, ops
from blockgraph.number import Number
from blockgraph.op import Real, Type
from blockgraph.ops.attend import Attend
from blockgraph.ops.leaf import Constant
from blockgraph.ops.softmax import Softmax

CODE = "BG216"
PRIMES = (7, 11, 13, 17, 19, 23)
IsRoot = Callable[[Real, Dim, Dim], bool]


def lint(graph: Graph) -> Iterator[Finding]:
    """Attention, whole or opened, whose scale is 1/sqrt(C) although a head has fewer features."""
    is_root = cache(partial(_is_root_of, graph.dims))  # most layers have the same sizes
    for node, op in ops(graph, of_class(Attend, Softmax)):
        if isinstance(op, Attend) and op.scale is not None:
            shape = graph.types[node.inputs[0]].shape or ()
            if len(shape) >= 3:
                widths = [shape[-3] * shape[-1], *_widths(graph)]
                yield from _judged(node, op.scale, shape[-1], widths, is_root)
        elif isinstance(op, Softmax):
            yield from _opened(graph, graph.producers[node.inputs[0]], is_root)


def _opened(graph: Graph, node: Node, is_root: IsRoot) -> Iterator[Finding]:
    """Scores that are a product, scaled by a number."""
    if node.op.name not in ("multiply", "divide") or len(node.inputs) != 2:
        return
    for value, other in (node.inputs[::-1], node.inputs):
        made, product = graph.producers[value].op, graph.producers[other]
        if isinstance(made, Constant) and product.op.name in ("matmul", "einsum") and other == node.inputs[0]:
            scale = Number(made.value) if node.op.name == "multiply" else 1 / Number(made.value)
            head = _summed(graph, product)
            if head is not None:
                yield from _judged(node, scale, head, _widths(graph), is_root)


def _summed(graph: Graph, node: Node) -> Dim | None:
    """The size that a product sums over."""
    types: tuple[Type, ...] = tuple(graph.types[value] for value in node.inputs)
    if any(given.shape is None for given in types):
        return None
    pattern = node.op.pattern(types)  # type: ignore[union-attr]
    kept = {axis for axes in pattern.outputs for axis in axes}
    bound = pattern.bind(tuple(given.shape or () for given in types), {})
    total = Dim(1)
    for letter, dims in bound.items():
        if letter not in kept and letter != "1":
            total = total * dims[0]
    return total


def _widths(graph: Graph) -> list[Dim]:
    """The widths of the streams that come in."""
    types = [graph.types[port.value] for port in graph.inputs]
    return [given.shape[-1] for given in types if given.dtype == "float" and given.shape]


def _judged(node: Node, scale: Real, head: Dim, widths: list[Dim], is_root: IsRoot) -> Iterator[Finding]:
    for width in dict.fromkeys(widths):
        if width != head and node.place is not None and is_root(scale, width, head):
            message = f"scores are scaled by 1/sqrt({width}), the width of the stream; a head has {head} features"
            help = f"write ({head})**-0.5, or leave `scale` of an attention out"
            yield Finding(CODE, message, node.place, help, severity="warning")
            return


def _is_root_of(numbers: Mapping[str, int], scale: Real, width: Dim, head: Dim) -> bool:
    """Whether scale is width**-0.5 and not head**-0.5; symbols without a number may be any."""
    symbols = sorted((Number(scale).symbols | width.symbols | head.symbols) - numbers.keys())
    known = {**numbers, **dict(zip(symbols, PRIMES, strict=False))}
    if len(symbols) > len(PRIMES) or Number(scale).symbols - known.keys():
        return False
    try:
        value = float(Number(scale).evaluate(known))
    except (ArithmeticError, ValueError):
        return False
    wide, narrow = float(width.evaluate(known)), float(head.evaluate(known))
    return wide > 0 and narrow > 0 and math.isclose(value, wide**-0.5) and not math.isclose(value, narrow**-0.5)
