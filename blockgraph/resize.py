"""The same architecture in other sizes: with another number of layers, for looking at depth."""

from __future__ import annotations

from dataclasses import replace

from blockgraph.api import Program
from blockgraph.checking import check
from blockgraph.dims import Dim
from blockgraph.errors import Finding, InputError, Place, SpecError
from blockgraph.graph import Graph, GraphBuilder, Node, Repeat, Scope, Segment, Step
from blockgraph.ops.leaf import Input

STACK = "layers"


def with_depth(program: Program, depth: int) -> Program:
    """The program with `depth` layers in every stack of its main module; a block is stacked on itself.

    A count that is a dim is set as if by `--set`, so that numbers made of it follow. Raises InputError (BG038) where
    the spec cannot have that many layers, SpecError where it then has findings.
    """
    if not _stacks(program.graph):
        return Program(program.spec, _stacked(program, depth), program.findings)
    program = _with_counts(program, depth)
    nodes = [_counted(program, node, depth) if isinstance(node.op, Repeat) else node for node in program.graph.nodes]
    for stack in (node.op for node in nodes if isinstance(node.op, Repeat)):
        if sum(1 for _ in stack.layers(program.graph.dims)) != depth:
            raise _refused(program, stack, f"runs of layers that do not make {depth}", "choose another depth")
    return Program(program.spec, replace(program.graph, nodes=tuple(nodes)), program.findings)


def _stacks(graph: Graph) -> list[Repeat]:
    return [node.op for node in graph.nodes if isinstance(node.op, Repeat)]


def _with_counts(program: Program, depth: int) -> Program:
    """The dims that say how many layers there are, given new numbers."""
    values = {}
    for stack in _stacks(program.graph):
        symbols = sorted(stack.count.symbols)
        if len(symbols) == 1:
            values[symbols[0]] = _solved(program, stack, symbols[0], depth)
        elif symbols:
            raise _refused(program, stack, f"{stack.count} layers", f"set {' and '.join(symbols)} by --set instead")
    if all(program.graph.dims.get(name) == value for name, value in values.items()):
        return program
    checked = check(program.spec.with_values(values))
    if not checked.ok or checked.graph is None:
        raise SpecError(checked.findings)
    return Program(checked.spec, checked.graph, checked.findings)


def _solved(program: Program, stack: Repeat, symbol: str, depth: int) -> int:
    """The number for which a count such as `2*N + 1` is `depth`."""
    one, two = (stack.count.evaluate({symbol: number}) for number in (1, 2))
    slope = two - one
    number = 1 + (depth - one) / slope if slope else one - one
    if number.denominator != 1 or number < 0 or stack.count.evaluate({symbol: int(number)}) != depth:
        help = f"choose a depth that {stack.count} can be"
        raise _refused(program, stack, f"{stack.count} layers, which cannot be {depth}", help)
    return int(number)


def _counted(program: Program, node: Node, depth: int) -> Node:
    """A stack whose count is written as a number, with another number."""
    assert isinstance(node.op, Repeat)
    if node.op.count.symbols or node.op.count == Dim(depth):
        return node
    if len(node.op.segments) > 1:
        what = f"{node.op.count} layers in {len(node.op.segments)} runs"
        raise _refused(program, node.op, what, "write one of its counts as a dim, which then follows")
    (segment,) = node.op.segments
    return replace(node, op=replace(node.op, segments=(Segment(segment.bodies, Dim(depth)),)))


def _refused(program: Program, stack: Repeat, what: str, help: str) -> InputError:
    return InputError([Finding("BG038", f"the stack `{stack.path}` has {what}", Place(program.spec.path), help)])


def _stacked(program: Program, depth: int) -> Graph:
    """A block as a stack of itself: outputs that have the name and the type of an input are carried."""
    body, builder = program.graph, GraphBuilder(program.graph.name)
    names = {port.name: index for index, port in enumerate(body.inputs)}
    carried = tuple(names.get(port.name) for port in body.outputs)
    if carried[0] is None or body.types[body.outputs[0].value] != body.types[body.inputs[carried[0]].value]:
        message = f"`{body.name}` has no stack, and its output cannot be its own input"
        help = "probe a model with a stack, or a block whose output has the name and the shape of an input"
        raise InputError([Finding("BG038", message, Place(program.spec.path), help)])
    inputs = []
    for port in body.inputs:
        given = body.types[port.value]
        (value,) = builder.append(Input(port.name, given.shape or (), given.dtype), (), (given,))
        inputs.append(replace(port, value=value))
        builder.steps.append(Step(f"{port.name}.1", value, "", "input", 0))
    stack = Repeat(STACK, (body,), (Segment((0,), Dim(depth)),), carried)
    types = [body.types[port.value] for port in body.outputs]
    values = builder.append(stack, [port.value for port in inputs], types)
    outputs = [replace(port, value=value) for port, value in zip(body.outputs, values, strict=True)]
    builder.steps += [Step(f"{port.name}.2", port.value, STACK, "stack", 0) for port in outputs]
    builder.scopes[STACK] = Scope(STACK, "stack", family="stack")
    graph = builder.finish(inputs, outputs, (builder.nodes[-1].id,), body.conditions, body.dims)
    return replace(graph, waived=body.waived)
