"""Free symbols where they cannot be: in the sizes of parameters, in numbers of layers, in inputs that do not tell them.

An input's axes bind a free symbol anew at every call, so what stays from call to call cannot depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from operator import attrgetter

from blockgraph.dims import Dim, Shape
from blockgraph.graph import Graph, Node, Port, Repeat
from blockgraph.module import Report
from blockgraph.ops.leaf import Param
from blockgraph.ops.unknown import Unknown
from blockgraph.solve import open_symbol
from blockgraph.spec import Spec


def report_free_sizes(spec: Spec, graph: Graph, report: Report) -> None:
    """Report each free symbol in what stays from call to call, where it is met first, and each that no input tells."""
    if "dims" in spec.unread:
        return
    known = spec.dims.keys() | graph.dims.keys()
    told, symbols = set(known), cache(_symbols)  # most layers have parameters of the same shapes
    for body in _bodies(graph):
        for name, dims, node in _fixed(body):
            free = sorted(symbols(dims) - told)
            if free and (place := node.place) is not None:
                told.update(free)
                message = f"`{name}` depends on `{free[0]}`, which the inputs bring anew at every call"
                report.add("BG038", message, place, f"add `{free[0]}` to `dims`, with a number or empty for any size")
    for dim, symbol, port in _untold(graph, set(known)):
        place = spec.document.key((*spec.modules[spec.main].path, "inputs", port.name))
        help = f"give an input an axis that is `{symbol}` itself, or add `{symbol}` to `dims`"
        report.add("BG038", f"`{port.name}` has the axis {dim}, and no input tells `{symbol}`", place, help)


def _bodies(graph: Graph) -> Iterator[Graph]:
    """The graph and the bodies in it, each of those that are equal up to name and places once."""
    waiting, seen = [graph], set[int]()
    while waiting:
        body = waiting.pop().original
        if id(body) in seen:
            continue
        seen.add(id(body))
        yield body
        for node in body.by_class.get(Repeat, ()):
            waiting.extend(node.op.bodies)  # type: ignore[union-attr]


def _symbols(dims: Shape) -> frozenset[str]:
    return frozenset(symbol for dim in dims for symbol in dim.symbols)


def _fixed(body: Graph) -> Iterator[tuple[str, tuple[Dim, ...], Node]]:
    """What must have the same size in every call: parameters, unless they stand in a misfit, and numbers of layers."""
    lost = {value for node in body.by_class.get(Unknown, ()) for value in node.inputs}
    fixed = (*body.by_class.get(Repeat, ()), *body.by_class.get(Param, ()))
    for node in sorted(fixed, key=attrgetter("id")):
        if isinstance(node.op, Repeat):
            yield node.op.path, (node.op.count,), node
        elif isinstance(node.op, Param) and not lost.intersection(node.outputs):
            yield node.op.path, node.op.dims, node


def _untold(graph: Graph, known: set[str]) -> Iterator[tuple[Dim, str, Port]]:
    """The axes that stay open when every axis has told the one symbol it can, each with a symbol it lacks."""
    axes = [(dim, port) for port in graph.inputs for dim in graph.types[port.value].shape or ()]
    while found := {symbol for dim, _ in axes if (symbol := open_symbol(dim, known)) is not None}:
        known |= found
    for dim, port in axes:
        if missing := sorted(dim.symbols - known):
            yield dim, missing[0], port
            known |= dim.symbols
