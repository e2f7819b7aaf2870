"""BG220: a window of keys that is as long as the longest sequence, so that it hides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.dims import Dim
from blockgraph.errors import Finding
from blockgraph.graph import Graph
from blockgraph.lints.wiring import number_of, ops

CODE = "BG220"


def lint(graph: Graph) -> Iterator[Finding]:
    """Windows that are known numbers, over keys whose number is bounded."""
    for node, op in ops(graph, lambda one: "window" in one.__dataclass_fields__):
        window = getattr(op, "window", None)
        types = [graph.types[value] for value in node.inputs]
        if window is None or node.place is None or not types:
            continue
        shape = types[1].shape if op.name == "attend" else types[0].shape
        size, longest = number_of(Dim(window), graph.dims), None
        if shape:
            longest = _longest(graph, shape[-2] if op.name == "attend" else shape[-1])
        if size is not None and longest is not None and size >= longest:
            message = f"the window of {size} keys hides nothing: a sequence has at most {longest} positions"
            help = "leave `window` out, or make it smaller"
            yield Finding(CODE, message, node.place, help, severity="warning")


def _longest(graph: Graph, keys: Dim) -> int | None:
    """The largest number of keys that the conditions allow."""
    own = number_of(keys, graph.dims)
    if own is not None:
        return own
    limits = [
        number_of(one.larger, graph.dims)
        for one in graph.conditions
        if one.relation == "at most" and one.smaller == keys
    ]
    return min((limit for limit in limits if limit is not None), default=None)
