"""Values that steps do not change, computed before the first: op by op, and let go as soon as nothing needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from blockgraph.graph import Graph, Node
from blockgraph.lazy import np
from blockgraph.op import Op, Type

DTYPES = {"int": "int64", "bool": "bool"}


def compute(
    graph: Graph, wanted: Iterable[int], known: Mapping[int, Any], numbers: Mapping[str, int], dtype: Any
) -> dict[int, Any]:
    """The arrays of the values wanted, from those that are known."""
    found = dict(known)
    wanted = set(wanted)
    nodes = _needed(graph, wanted, found)
    last = {value: node.id for node in nodes for value in _read(node)}
    for node in nodes:
        assert isinstance(node.op, Op), "stacks are written out before they are decoded"
        op = node.op.bind(numbers)
        result = op.forward(*_arrays(graph, node, found, numbers, dtype))
        found.update(zip(node.outputs, result if len(node.outputs) > 1 else (result,), strict=True))
        for value in node.inputs:
            if last.get(value) == node.id and value not in wanted and value not in known:
                found.pop(value, None)
    return {value: found[value] for value in wanted}


def empty(given: Type, shape: Iterable[int], dtype: Any) -> Any:
    """An array for an op that reads the shape and the type of its operand; it takes no memory."""
    return np.broadcast_to(np.zeros((), DTYPES.get(given.dtype, dtype)), tuple(shape))


def _read(node: Node) -> list[int]:
    """The operands of which values are read."""
    assert isinstance(node.op, Op), "stacks are written out before they are decoded"
    return [value for index, value in enumerate(node.inputs) if index not in node.op.shape_only]


def _needed(graph: Graph, wanted: set[int], known: Mapping[int, Any]) -> list[Node]:
    needed = {value for value in wanted if value not in known}
    found = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(value for value in _read(node) if value not in known)
            found.append(node)
    return found[::-1]


def _arrays(graph: Graph, node: Node, found: Mapping[int, Any], numbers: Mapping[str, int], dtype: Any) -> list[Any]:
    arrays = []
    read = set(_read(node))
    for value in node.inputs:
        given = graph.types[value]
        if value in read:
            arrays.append(found[value])
        else:
            arrays.append(empty(given, (int(dim.evaluate(dict(numbers))) for dim in given.shape or ()), dtype))
    return arrays
