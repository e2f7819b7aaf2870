"""Stacks written out: one flat graph with every layer, for those who compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from blockgraph.graph import Graph, Node, Repeat, Scope, Step
from blockgraph.number import Number
from blockgraph.op import Op, Type
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

LAYER = "layer"


@dataclass(frozen=True, slots=True)
class _Around:
    """Where a body stands: the prefix of its names, that of its shared parameters, and the layer's number."""

    prefix: str = ""
    shared: str = ""
    scope: str = ""
    layer: int | None = None
    depth: int = 0

    def parameter(self, op: Param) -> str:
        """The full name of a parameter; a shared one has the name of its first use."""
        return (self.shared if op.shared else self.prefix) + op.path


@dataclass(slots=True)
class _Flat:
    nodes: list[Node] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scopes: dict[str, Scope] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)

    def add(self, node: Node, op: Op, inputs: tuple[int, ...], types: list[Type], scope: str) -> tuple[int, ...]:
        first = len(self.types)
        self.types.extend(types)
        outputs = tuple(range(first, len(self.types)))
        self.nodes.append(Node(len(self.nodes), op, inputs, outputs, scope, node.place, node.text))
        return outputs


def unroll(graph: Graph, numbers: Mapping[str, int] | None = None) -> Graph:
    """The graph with every stack written out; `numbers` are those of the dims in layer counts.

    Parameters are named `layers.3.attention.Wq`; one that is shared is one node with the name of its first use.
    """
    known = {**graph.dims, **(numbers or {})}
    if not any(isinstance(node.op, Repeat) for node in graph.nodes):
        return graph
    flat = _Flat()
    found = _write(flat, graph, _Around(), {}, known)
    return Graph(
        graph.name,
        tuple(flat.nodes),
        tuple(flat.types),
        tuple(replace(port, value=found[port.value]) for port in graph.inputs),
        tuple(replace(port, value=found[port.value]) for port in graph.outputs),
        flat.scopes,
        tuple(flat.steps),
        tuple(dict.fromkeys(draw_names(graph, known))),
        graph.conditions,
        dict(known),
    )


def unrolled_size(graph: Graph, numbers: Mapping[str, int]) -> int:
    """The number of nodes when every stack is written out, without writing it."""
    total = 0
    for node in graph.nodes:
        if not isinstance(node.op, Repeat):
            total += 1
            continue
        sizes = [unrolled_size(body, numbers) for body in node.op.bodies]
        for segment in node.op.segments:
            count = int(segment.count.evaluate(dict(numbers)))
            rounds, rest = divmod(count, len(segment.bodies))
            total += rounds * sum(sizes[body] for body in segment.bodies)
            total += sum(sizes[body] for body in segment.bodies[:rest])
    return total


def _write(
    flat: _Flat, graph: Graph, around: _Around, found: dict[int, int], numbers: dict[str, int]
) -> dict[int, int]:
    """Write a graph's nodes; `found` maps its values to those of the flat graph, its inputs given."""
    layer = {LAYER: Number(around.layer)} if around.layer is not None else {}
    flat.scopes.update({around.scope + key: scope for key, scope in graph.scopes.items()})
    for node in graph.nodes:
        op = node.op
        inputs = tuple(found[value] for value in node.inputs)
        if isinstance(op, Repeat):
            outputs = _write_layers(flat, op, node, around, inputs, numbers)
        elif isinstance(op, Param):
            outputs = _parameter(flat, node, op, around, graph, layer)
        elif op.name == "input" and node.outputs[0] in found:
            continue
        else:
            bound = op.substitute(layer) if layer else op
            scope = around.scope + node.scope if node.scope else around.scope.rstrip(".")
            outputs = flat.add(node, bound, inputs, [graph.types[value] for value in node.outputs], scope)
        found.update(zip(node.outputs, outputs, strict=True))
    for step in graph.steps:
        flat.steps.append(
            replace(step, name=around.scope + step.name, value=found[step.value], depth=step.depth + around.depth)
        )
    return found


def _parameter(
    flat: _Flat, node: Node, op: Param, around: _Around, graph: Graph, layer: dict[str, Number]
) -> tuple[int, ...]:
    name = around.parameter(op)
    if name not in flat.parameters:
        bound = replace(op.substitute(layer) if layer else op, path=name)
        scope = around.scope + node.scope if node.scope else around.scope.rstrip(".")
        (flat.parameters[name],) = flat.add(node, bound, (), [graph.types[node.outputs[0]]], scope)
    return (flat.parameters[name],)


def _write_layers(
    flat: _Flat, op: Repeat, node: Node, around: _Around, inputs: tuple[int, ...], numbers: dict[str, int]
) -> tuple[int, ...]:
    state = list(inputs)
    outputs: tuple[int, ...] = tuple(inputs[index] for index in op.carried if index is not None)
    for layer, body, inside in _layers(op, around, numbers, node.scope):
        given = {port.value: value for port, value in zip(body.inputs, state, strict=True)}
        found = _write(flat, body, inside, given, numbers)
        outputs = tuple(found[port.value] for port in body.outputs)
        for index, value in zip(op.carried, outputs, strict=True):
            if index is not None:
                state[index] = value
        name = inside.scope.rstrip(".")
        flat.steps.append(Step(name, outputs[0], f"layer {layer + 1}", body.name, around.depth + 1, node.place))
    return outputs


def _layers(
    op: Repeat, around: _Around, numbers: dict[str, int], scope: str = ""
) -> Iterator[tuple[int, Graph, _Around]]:
    """Each layer in turn: its index, its body and where it stands."""
    first: dict[int, int] = {}
    for layer, body in enumerate(op.layers(numbers)):
        one = first.setdefault(body, layer)
        own = one if op.shared else layer
        prefix = around.shared if op.inherited else around.prefix
        inside = _Around(
            f"{prefix}{op.path}.{own}.",
            f"{around.shared}{op.path}.{one}.",
            f"{around.scope}{scope or op.path}.{layer}.",
            layer + 1,
            around.depth + 1,
        )
        yield layer, op.bodies[body], inside


def draw_names(graph: Graph, numbers: dict[str, int], around: _Around | None = None) -> Iterator[str]:
    """The full names of all parameters in the order they are drawn; shared ones come again at every use."""
    around = around or _Around()
    parameters, stacks = graph.parameters, {node.id: node.op for node in graph.nodes}
    for item in graph.draws:
        if isinstance(item, str):
            op = parameters[item].op
            assert isinstance(op, Param)
            yield around.parameter(op)
            continue
        stack = stacks[item]
        assert isinstance(stack, Repeat)
        for _, body, inside in _layers(stack, around, numbers):
            yield from draw_names(body, numbers, inside)
