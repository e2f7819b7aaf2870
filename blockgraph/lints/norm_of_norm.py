"""BG210: a norm whose input another norm has just put out, and nobody else reads; a final norm after post-norm."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.lints.wiring import last_layer, of_role, ops, part_name

CODE = "BG210"


def lint(graph: Graph) -> Iterator[Finding]:
    """Norms of what a norm, or the last norm of a stack, put out."""
    for node, _ in ops(graph, of_role("norm")):
        if node.place is None or node.inputs[0] not in graph.only_readers:
            continue
        inner = _norm_before(graph, node.inputs[0])
        if inner is not None:
            message = f"`{part_name(node)}` normalises a second time: its input is already the output of `{inner}`"
            help = f"leave out `{part_name(node)}`, or the norm before it"
            yield Finding(CODE, message, node.place, help, severity="warning")


def _norm_before(graph: Graph, value: int) -> str | None:
    """The name of the norm that made a value, also the last one of a stack."""
    node, prefix = graph.producers[value], ""
    numbers = graph.dims
    while isinstance(node.op, Repeat):
        last = last_layer(node, node.op, numbers)
        made = last.body.outputs[node.outputs.index(value)].value
        prefix += f"{last.name}."
        node, value = last.body.producers[made], made
    return prefix + part_name(node) if _is_norm(node) else None


def _is_norm(node: Node) -> bool:
    return not isinstance(node.op, Repeat) and node.op.role == "norm"
