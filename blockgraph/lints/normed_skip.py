"""BG201: the skip path carries the normalised copy of the stream instead of the stream."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.graph import ROOT, Graph, Node
from blockgraph.lints.wiring import of_class, ops
from blockgraph.ops.arithmetic import Add

CODE = "BG201"


def lint(graph: Graph) -> Iterator[Finding]:
    """Adds `h + f(h)` where h is the output of a norm whose input is the raw stream."""
    for node, _ in ops(graph, of_class(Add)):
        if len(node.inputs) != 2 or node.place is None:
            continue
        for skip, branch in (node.inputs, node.inputs[::-1]):
            norm = _norm_of(graph, skip)
            if norm is not None and _reaches(graph, skip, branch) and _takes_the_raw_stream(graph, norm):
                name = norm.scope or norm.op.name
                help = "add the branch to the input of the norm: `x = x + f(norm(x))`"
                message = f"the skip path carries the output of {name}, not its input"
                yield Finding(CODE, message, node.place, help, severity="warning")
                break


def _norm_of(graph: Graph, value: int) -> Node | None:
    """The norm that made a value, if one did."""
    node = graph.producers[value]
    return node if node.op.name != "repeat" and getattr(node.op, "role", "") == "norm" else None


def _reaches(graph: Graph, source: int, value: int) -> bool:
    """Whether `value` is computed from `source`."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if one == source:
            return True
        if one not in seen and one > source:
            seen.add(one)
            waiting.extend(graph.producers[one].inputs)
    return False


def _takes_the_raw_stream(graph: Graph, norm: Node) -> bool:
    """Whether what the norm normalises could have been the skip path; not what a part made, as `norm(attention(x))`."""
    source = graph.producers[norm.inputs[0]]
    if getattr(source.op, "role", "") != "norm" and source.scope != ROOT:
        return False
    return not _closes_post_norm(graph, norm)


def _closes_post_norm(graph: Graph, norm: Node) -> bool:
    """Whether the norm stands after a residual add whose branch reads the raw stream: then it is post-norm."""
    add = graph.producers[norm.inputs[0]]
    if add.op.name != "add":
        return False
    for skip, branch in (add.inputs, add.inputs[::-1]):
        if _reaches(graph, skip, branch):
            readers = [
                node for node in graph.users(skip) if node.id != add.id and _reaches(graph, node.outputs[0], branch)
            ]
            return any(getattr(node.op, "role", "") != "norm" for node in readers)
    return False
