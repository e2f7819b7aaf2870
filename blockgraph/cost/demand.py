"""For which part of the positions a value matters at all: what makes a sparse model cheaper than its size.

A mixture of experts is no special case. `put` leaves zeros where nothing was chosen, one column of it gates a branch,
and behind a gate that is zero nothing matters. So of E experts of which k are chosen, k/E of each is active, whoever
wrote the equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blockgraph.dims import Dim, Shape
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.ops.arithmetic import Divide, Multiply
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.gather import Put
from blockgraph.ops.subscript import Index
from blockgraph.records import dataclass

Demand = frozenset[tuple[int, str]] | None
"""The choices for which a value matters, each a `put` and the column taken of it; None: it always matters."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A value with zeros: `put` is the value that chose, `column` the text of the one choice taken, if one was."""

    put: int
    column: str = ""


def reach(graph: Graph) -> dict[int, Demand]:
    """When each value matters for the outputs. A value that nobody reads counts as one that always does."""
    gates = _gates(graph)
    found: dict[int, Demand] = {port.value: None for port in graph.outputs}
    for node in reversed(graph.nodes):
        own = union(found.get(value) for value in node.outputs)
        for operand, value in enumerate(node.inputs):
            wanted = _wanted(graph, node, operand, own, gates)
            found[value] = union((found[value], wanted)) if value in found else wanted
    return found


def density(graph: Graph, demands: Mapping[int, Demand], values: Iterable[int], numbers: Mapping[str, int]) -> Dim:
    """The part of the positions for which any of the values matters, at most 1; choices are taken as even."""
    demand = union(demands.get(value) for value in values)
    if demand is None:
        return Dim(1)
    total = sum((_chosen(graph.producers[put], graph, numbers) for put, _ in demand), Dim(0))
    if total.symbols - numbers.keys():
        return total if len(demand) == 1 else Dim(1)
    return total if total.evaluate(numbers) < 1 else Dim(1)


def union(demands: Iterable[Demand]) -> Demand:
    """When any of them matters."""
    found: frozenset[tuple[int, str]] = frozenset()
    for demand in demands:
        if demand is None:
            return None
        found |= demand
    return found


def _chosen(node: Node, graph: Graph, numbers: Mapping[str, int]) -> Dim:
    """k/E of a `put` of k values into E places."""
    values, places = graph.types[node.inputs[0]].shape, graph.types[node.outputs[0]].shape
    if not values or not places:
        return Dim(1)
    known = places[-1].symbols <= numbers.keys()
    return values[-1] / (int(places[-1].evaluate(numbers)) if known else places[-1])


def _gates(graph: Graph) -> dict[int, Gate]:
    """The values with zeros where nothing was chosen."""
    found: dict[int, Gate] = {}
    for node in graph.nodes:
        if isinstance(node.op, Put):
            found[node.outputs[0]] = Gate(node.outputs[0])
            continue
        read = node.inputs[::-1] if isinstance(node.op, Multiply) else node.inputs[:1]
        gate = next((_passed(graph, node, value, found[value]) for value in read if value in found), None)
        if gate is not None:
            found[node.outputs[0]] = gate
    return found


def _passed(graph: Graph, node: Node, value: int, gate: Gate) -> Gate | None:
    """The gate that a gate becomes: scaled, or with one of its columns taken."""
    shape, result = graph.types[value].shape, graph.types[node.outputs[0]].shape
    if shape is None or result is None:
        return None
    if isinstance(node.op, Multiply | Divide):
        return gate if shape == result else None
    if not isinstance(node.op, Index):
        return None
    whole = node.op.reads(shape)
    last = [cut for cut in whole if cut.axis == len(shape) - 1]
    if any(cut.axis is not None and cut.size != shape[cut.axis] for cut in whole if cut not in last):
        return None
    if gate.column or not last or last[0].size == shape[-1]:
        return gate
    taken = last[0]
    return Gate(gate.put, str(taken.first)) if taken.size is None or taken.size == 1 else None


def _wanted(graph: Graph, node: Node, operand: int, own: Demand, gates: Mapping[int, Gate]) -> Demand:
    """When an operand matters, if the node's outputs matter as `own` says."""
    if isinstance(node.op, Repeat):
        return None
    shapes = [graph.types[value].shape for value in node.inputs]
    result = graph.types[node.outputs[0]].shape
    if result is None or any(shape is None for shape in shapes):
        return None
    gated = _gated(node, operand, [shape or () for shape in shapes], result, gates)
    if gated is not None:
        return gated
    return own if own is not None and _position_wise(graph, node, operand) else None


def _gated(
    node: Node, operand: int, shapes: list[Shape], result: Shape, gates: Mapping[int, Gate]
) -> frozenset[tuple[int, str]] | None:
    """The choices of the other operands that gate this one."""
    if isinstance(node.op, Multiply) and shapes[operand] == result:
        gate = gates.get(node.inputs[1 - operand])
        other = shapes[1 - operand]
        column = bool(other) and other[-1] == 1 and len(other) == len(result)
        return frozenset({(gate.put, gate.column)}) if gate and gate.column and column else None
    if isinstance(node.op, Einsum):
        return _gated_by_pattern(node.op.axes, operand, [gates.get(value) for value in node.inputs])
    return None


def _gated_by_pattern(axes: str, operand: int, gates: list[Gate | None]) -> frozenset[tuple[int, str]] | None:
    """The same in `einsum`: a gate whose letters this operand has too. All columns at once share one key."""
    letters = [set(part.split()) for part in axes.partition("->")[0].split(",")]
    for other, gate in enumerate(gates):
        if gate is not None and other != operand and letters[other] <= letters[operand]:
            return frozenset({(gate.put, gate.column)})
    return None


def _position_wise(graph: Graph, node: Node, operand: int) -> bool:
    """Whether an operand is a parameter, or is read at the very positions at which the result stands."""
    types = tuple(graph.types[value] for value in node.inputs)
    if types[operand].bare:
        return True
    assert not isinstance(node.op, Repeat)
    pattern = node.op.pattern(types)
    mine = pattern.operands[operand]
    flat = {letter for axis in mine for letter in ((axis,) if isinstance(axis, str) else axis)}
    kept = {letter for axis in pattern.outputs[0][:-1] for letter in ((axis,) if isinstance(axis, str) else axis)}
    moved = {move.letter for move in node.op.moves(types) if move.operand == operand}
    last = mine[-1] if mine else ""
    return kept - {"1"} <= flat and not moved - {last}
