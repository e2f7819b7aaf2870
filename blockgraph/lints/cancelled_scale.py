"""BG214: a factor that cannot change anything, since the norm after it divides by the size of what it is given."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import of_role, ops, parameters_in, part_name
from blockgraph.number import Number
from blockgraph.ops.leaf import Constant

CODE = "BG214"
NEEDS_ALL = True  # it concludes from what is not there


def lint(graph: Graph) -> Iterator[Finding]:
    """Products with a parameter or number that is the same along a row, read by a norm alone."""
    for node, _ in ops(graph, of_role("scale")):
        if len(node.inputs) != 2 or node.place is None:
            continue
        after = graph.only_readers.get(node.outputs[0])
        factor = _factor(graph, node)
        if factor is None or after is None or getattr(after.op, "role", "") != "norm":
            continue
        if after.inputs[0] == node.outputs[0]:
            message = f"the factor {factor} has no effect: `{part_name(after)}` divides by the size of what it is given"
            yield Finding(CODE, message, node.place, "leave it out, or put it behind the norm", severity="warning")


def _factor(graph: Graph, node: Node) -> str | None:
    """The factor that all elements of a row share; not one that may turn the sign as its only purpose."""
    shape = graph.types[node.outputs[0]].shape
    for index, value in enumerate(node.inputs):
        given = graph.types[value]
        if not given.bare or not shape or shape[-1] == 1 or given.shape is None:
            continue
        if given.shape and given.shape[-1] != 1:
            continue
        made = graph.producers[value].op
        if isinstance(made, Constant):
            return None if _is_negative(made) else f"`{made.label()}`"
        if index == 1 or node.op.name == "multiply":
            name = next(parameters_in(graph, value), None)
            return f"`{name}`" if name else None
    return None


def _is_negative(constant: Constant) -> bool:
    number = constant.value.value if isinstance(constant.value, Number) else constant.value
    return number is not None and number < 0
