"""Whether two graphs say the same: for a short form and its expansion, for YAML and JSON, for before and after."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.graph import Graph, Node, Repeat


def same_graph(a: Graph, b: Graph) -> bool:
    """Whether nodes, operands, types, names, ports and draws agree, also in the bodies of stacks.

    Places, texts and what a drawing writes into a box do not count.
    """
    return first_difference(a, b) is None


def first_difference(a: Graph, b: Graph) -> str | None:
    """What differs first, in a few words; None if nothing does."""
    waiting = [(a, b, a.name)]
    while waiting:
        left, right, where = waiting.pop()
        for what, one, other in _facts(left, right):
            if one != other:
                return f"{what} of {where}: {one} and {other}"
        for one, other in zip(left.nodes, right.nodes, strict=True):
            if isinstance(one.op, Repeat) and isinstance(other.op, Repeat):
                bodies = zip(one.op.bodies, other.op.bodies, strict=True)
                waiting += [(first, second, f"{where}, {one.op.path}[{i}]") for i, (first, second) in enumerate(bodies)]
    return None


def _facts(a: Graph, b: Graph) -> Iterator[tuple[str, object, object]]:
    yield "the name", a.name, b.name
    yield "the number of nodes", len(a.nodes), len(b.nodes)
    for one, other in zip(a.nodes, b.nodes, strict=True):
        yield f"node {one.id}", _node(one), _node(other)
    yield "the types", a.types, b.types
    yield "the inputs", a.inputs, b.inputs
    yield "the outputs", a.outputs, b.outputs
    yield "the paths", {k: s.path for k, s in a.scopes.items()}, {k: s.path for k, s in b.scopes.items()}
    yield "the steps", [(s.name, s.value) for s in a.steps], [(s.name, s.value) for s in b.steps]
    yield "the draws", a.draws, b.draws
    yield "the conditions", _conditions(a), _conditions(b)
    yield "the numbers", a.dims, b.dims


def _node(node: Node) -> tuple[object, ...]:
    op = node.op
    what = (op.path, len(op.bodies), op.segments, op.carried, op.shared) if isinstance(op, Repeat) else op
    return (what, node.inputs, node.outputs, node.scope)


def _conditions(graph: Graph) -> list[tuple[str, str]]:
    return [(one.text, one.relation) for one in graph.conditions]
