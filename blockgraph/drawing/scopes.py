"""Which part a node belongs to, and which blocks are around it."""

from __future__ import annotations

from typing import Final

from blockgraph.graph import Graph

PLATES: Final = frozenset({"block", "stack"})


def block_scopes(graph: Graph, key: str) -> list[str]:
    """The blocks around a node, outermost first, up to the part that it belongs to."""
    found = []
    for outer in around(graph, key):
        if graph.scopes[outer].family not in PLATES:
            break
        if graph.scopes[outer].family == "block":
            found.append(outer)
    return found


def leaf_scope(graph: Graph, key: str) -> str | None:
    """The outermost part around a node."""
    return next((outer for outer in around(graph, key) if graph.scopes[outer].family not in PLATES), None)


def around(graph: Graph, key: str) -> list[str]:
    """The keys of the scopes around a node, outermost first."""
    steps = key.split(".")
    keys = (".".join(steps[: end + 1]) for end in range(len(steps)))
    return [outer for outer in keys if outer and outer in graph.scopes]
