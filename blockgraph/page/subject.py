"""What a page is about: the graphs of a spec, its text by line, and what was found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.records import dataclass

Lines = Callable[[str, int], str | None]
"""Line `n` (from 1) of the file at a path, or None where it cannot be had."""


def no_lines(path: str, number: int) -> str | None:
    """The lines of a spec that has no text."""
    return None


@dataclass(frozen=True)
class Subject:
    """One spec. `graphs` are its own and, where a stack could not be built, the blocks at fault.

    `source` is what the spec says about its origin. A spec that could not be read has no graphs, only findings.
    """

    name: str
    graphs: tuple[Graph, ...] = ()
    findings: tuple[Finding, ...] = ()
    source: str = ""
    lines: Lines = field(default=no_lines, repr=False)


@dataclass(frozen=True, slots=True)
class Inner:
    """A graph inside others: the stack it is a body of, and the graph around that."""

    graph: Graph
    around: Graph | None = None
    node: Node | None = None


def inner_graphs(graphs: Iterable[Graph]) -> Mapping[int, Inner]:
    """The graphs and all bodies of their stacks, by `id`, outer ones first."""
    found = {id(graph): Inner(graph) for graph in graphs}
    waiting = list(found.values())
    for one in waiting:  # grows on the way
        for body, node in _bodies(one.graph):
            if id(body) not in found:
                found[id(body)] = Inner(body, one.graph, node)
                waiting.append(found[id(body)])
    return found


def _bodies(graph: Graph) -> Iterator[tuple[Graph, Node]]:
    for node in graph.nodes:
        if isinstance(node.op, Repeat):
            yield from ((body, node) for body in node.op.bodies)
