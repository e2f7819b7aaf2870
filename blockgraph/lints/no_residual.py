"""BG212: the stream runs through an attention or a feed-forward instead of around it."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding, Place
from blockgraph.facts import highway
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import SUBLAYERS, asked, part_at, stacks

CODE = "BG212"
NEEDS_ALL = True  # it concludes from what is not there


def lint(graph: Graph) -> Iterator[Finding]:
    """Sublayers on the stream's cheapest path through the layer of a stack."""
    for _, stack in stacks(graph):
        for _, found in asked(stack.bodies, _through):
            yield from found


def lint_model(graph: Graph) -> Iterator[Finding]:
    """The same for a block by itself, if it has a residual somewhere."""
    if any(True for _ in stacks(graph)) or not any(one.family in SUBLAYERS for one in graph.scopes.values()):
        return
    if any(node.op.name == "add" and part_at(graph, node, SUBLAYERS) is None for node in graph.nodes):
        yield from _through(graph)


def _through(body: Graph) -> Iterator[Finding]:
    path = highway(body)
    seen = set()
    for stop in path.stops if path is not None else ():
        part = part_at(body, stop.node, SUBLAYERS) if stop.graph is body else None
        if part is None or part in seen or stop.node.place is None:
            continue
        seen.add(part)
        message = f"the stream runs through `{part}`: there is no path around it"
        help = f"add its output to its input: `x = x + {part}(...)`"
        yield Finding(CODE, message, _place(body, part, stop.node), help, severity="warning")


def _place(body: Graph, part: str, node: Node) -> Place:
    assert node.place is not None
    return next((step.place for step in body.steps if step.name == part and step.place is not None), node.place)
