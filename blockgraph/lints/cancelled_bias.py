"""BG213: a bias that cannot change anything, since the norm or softmax after it takes it away again.

`layer_norm` subtracts the mean of a row and `softmax` does not change when a row is shifted: what is added alike to
all elements of a row is lost. A bias of keys shifts all scores of a query alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import of_class, of_role, ops, parameters_in
from blockgraph.ops.attend import Attend
from blockgraph.ops.norms import LayerNorm
from blockgraph.ops.softmax import Softmax

CODE = "BG213"
NEEDS_ALL = True  # it concludes from what is not there


def lint(graph: Graph) -> Iterator[Finding]:
    """Sums with a parameter that is the same along a row, before a norm or softmax; biases of keys alone."""
    is_add, is_attend = of_role("add"), of_class(Attend)
    for node, op in ops(graph, lambda one: is_add(one) or is_attend(one)):
        if node.place is None:
            continue
        if op.role == "add":
            after = graph.only_readers.get(node.outputs[0])
            bias = _along_rows(graph, node)
            if bias is not None and after is not None and isinstance(after.op, LayerNorm | Softmax):
                yield _finding(bias, after.op.name, node)
        elif isinstance(op, Attend) and op.softcap is None and "sinks" not in op.given:
            names = [_bias_of(graph, value) for value in node.inputs[:3]]
            if names[1] is not None and (None in names or not _has_output_bias(graph, node, names[1])):
                yield _finding(names[1], "softmax", node)


def _finding(bias: str, after: str, node: Node) -> Finding:
    assert node.place is not None
    message = f"the bias `{bias}` has no effect: the `{after}` after it takes away what all of a row have in common"
    return Finding(CODE, message, node.place, "leave it out", severity="warning")


def _along_rows(graph: Graph, node: Node) -> str | None:
    """The parameter that a sum adds to all elements of a row alike."""
    shape = graph.types[node.outputs[0]].shape
    for value in node.inputs:
        given = graph.types[value]
        if given.bare and shape and given.shape is not None and (not given.shape or given.shape[-1] == 1):
            return next(parameters_in(graph, value), None) if shape[-1] != 1 else None
    return None


def _bias_of(graph: Graph, value: int) -> str | None:
    """The bias that was added to queries, keys or values right before they were cut into heads."""
    node = graph.producers[value]
    while node.op.name in ("heads", "rearrange") and node.inputs:
        node = graph.producers[node.inputs[0]]
    if node.op.name != "add":
        return None
    bare = [one for one in node.inputs if graph.types[one].bare]
    return next(parameters_in(graph, bare[0]), None) if bare else None


def _has_output_bias(graph: Graph, node: Node, key_bias: str) -> bool:
    """Whether all four maps of an attention have a bias: then it is the way of a family, and not a choice."""
    part, _, name = key_bias.rpartition(".")
    return name != "bk" or f"{part}.bo".lstrip(".") in graph.parameters
