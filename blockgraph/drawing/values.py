"""Values on their way through a drawing: their wires, their names, and how they come into a graph and out of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from blockgraph.drawing.diagram import Wire
from blockgraph.drawing.inscribe import Value
from blockgraph.drawing.scopes import leaf_scope
from blockgraph.graph import Graph, Repeat
from blockgraph.op import Op


def wire_of(box: int, graph: Graph, value: int) -> Wire:
    """The wire of a value that a box makes."""
    shape = graph.types[value].shape
    return Wire(box, shape, shape)


def is_read(block: Graph, value: int) -> bool:
    """Whether an op of an equation reads an input of a block itself."""
    return any(isinstance(node.op, Op) and leaf_scope(block, node.scope) is None for node in block.users(value))


def bare_values(graph: Graph) -> frozenset[int]:
    """The values made of parameters and numbers alone, which are text in a drawing and no wires."""
    found: set[int] = set()
    for node in graph.nodes:
        if node.op.name in ("param", "constant") or (node.inputs and found.issuperset(node.inputs)):
            found |= set(node.outputs)
    return frozenset(found)


def name_of(graph: Graph, value: int) -> str:
    """The last name of a value, without the path of its part and the number of its version; else its place."""
    names = [step.name for step in graph.steps if step.value == value]
    names += [port.name for port in graph.inputs if port.value == value]
    if not names:
        outputs = graph.producers[value].outputs
        return f"[{outputs.index(value)}]" if len(outputs) > 1 else ""
    stem, _, last = names[-1].rpartition(".")
    return stem.rpartition(".")[2] if last.isdigit() and stem else last


def seen(graph: Graph, names: Iterable[int], values: Iterable[Value]) -> dict[int, Value]:
    """Values that come from another graph, with their shapes as this one tells them."""
    pairs = zip(names, values, strict=True)
    return {name: replace(v, seen=graph.types[name].shape) if isinstance(v, Wire) else v for name, v in pairs}


def carry(repeat: Repeat, values: list[Value], outputs: list[Value]) -> list[Value]:
    """The inputs of the next layer."""
    values = list(values)
    for output, carried in zip(outputs, repeat.carried, strict=True):
        if carried is not None:
            values[carried] = output
    return values
