"""From a graph to the graph with its gradients: forward with what must be kept, then every node backwards."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import field, replace
from functools import cache

from blockgraph.adjoint.ops import ColumnSum
from blockgraph.dims import Shape
from blockgraph.graph import Graph, Node, Port, Repeat
from blockgraph.op import Op, Type
from blockgraph.ops.arithmetic import Add
from blockgraph.ops.leaf import Input, Param
from blockgraph.ops.reduce import Sum
from blockgraph.records import dataclass

Gradient = int | None
Rule = Callable[["Reverse", Node, tuple[Gradient, ...]], Iterable[Gradient]]
"""From a node and the gradients of its outputs to those of its operands."""
Saving = Callable[["Reverse", Node], None]
"""Writes the forward of a node so that what its rule needs is there: under the node's own values, and in `kept`."""
RULES: dict[type, Rule] = {}
SAVINGS: dict[type, Saving] = {}


def rule(*ops: type) -> Callable[[Rule], Rule]:
    """Register the gradients of ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return register


def saving(*ops: type) -> Callable[[Saving], Saving]:
    """Register how the forward of ops is written when a gradient is wanted."""

    def register(function: Saving) -> Saving:
        SAVINGS.update(dict.fromkeys(ops, function))
        return function

    return register


@dataclass(frozen=True, slots=True)
class Adjoint:
    """A graph that goes forward and back.

    `cotangents` names the further inputs of `graph` by the output whose gradient they hold, `gradients` are the values
    that hold gradients, by the value they belong to. A value without an entry has the gradient 0.
    """

    graph: Graph
    cotangents: dict[int, str]
    gradients: dict[int, int]


@dataclass(slots=True)
class Reverse:
    """The nodes written so far, and the gradients that have arrived. Implements `op.Builder`."""

    origin: Graph
    active: frozenset[int]
    types: list[Type]
    nodes: list[Node] = field(default_factory=list)
    grads: dict[int, int] = field(default_factory=dict)
    kept: dict[int, tuple[int, ...]] = field(default_factory=dict)
    makers: dict[int, Node] = field(default_factory=dict)
    scope: str = ""

    def __call__(self, op: Op, *values: int) -> int:
        """Write a node with one output, and return that."""
        return self.all(op, *values)[0]

    def all(self, op: Op, *values: int) -> tuple[int, ...]:
        """Write a node and return its outputs."""
        return self.write(op, values)

    def type(self, value: int) -> Type:
        """The type of a value."""
        return self.types[value]

    def shape(self, value: int) -> Shape:
        """The shape of a value."""
        shape = self.types[value].shape
        assert shape is not None, "a graph that is run has all its shapes"
        return shape

    def op(self, value: int) -> Op | Repeat:
        """The op that makes a value."""
        return self.makers[value].op

    def write(self, op: Op, values: tuple[int, ...], first: int | None = None) -> tuple[int, ...]:
        """Write a node; `first` is the value that its first output is to be, where it is there already."""
        types = op.infer(*(self.types[value] for value in values))
        new = types if first is None else types[1:]
        start = len(self.types)
        self.types.extend(new)
        outputs = (*(() if first is None else (first,)), *range(start, len(self.types)))
        self.copy(Node(0, op, values, outputs, self.scope))
        return outputs

    def copy(self, node: Node) -> None:
        """Write a node as it is."""
        node = replace(node, id=len(self.nodes))
        self.nodes.append(node)
        self.makers.update(dict.fromkeys(node.outputs, node))

    def wants(self, value: int) -> bool:
        """Whether the gradient of a value is needed."""
        return value in self.active

    def forward(self) -> None:
        """Write all nodes of the graph, so that they keep what their gradients need."""
        for node in self.origin.nodes:
            self.scope = node.scope
            save = SAVINGS.get(type(node.op))
            if save is not None and any(map(self.wants, node.outputs)):
                save(self, node)
            else:
                self.copy(node)

    def backward(self) -> None:
        """Write the gradients of all nodes, the last node's first."""
        for node in reversed(self.origin.nodes):
            dys = tuple(self.grads.get(value) for value in node.outputs)
            if isinstance(node.op, Input | Param) or all(dy is None for dy in dys):
                continue
            if not any(map(self.wants, node.inputs)):
                continue
            assert isinstance(node.op, Op), "stacks are written out"
            self.scope = node.scope
            found = RULES.get(type(node.op), RULES[Op])(self, node, dys)
            for value, gradient in zip(node.inputs, found, strict=True):
                if gradient is not None and self.wants(value):
                    self.add(value, self.summed(gradient, value))

    def add(self, value: int, gradient: int) -> None:
        """One more part of a value's gradient."""
        there = self.grads.get(value)
        self.grads[value] = gradient if there is None else self(Add(stretch=True), there, gradient)

    def summed(self, gradient: int, value: int) -> int:
        """A gradient summed over the axes along which the value was stretched."""
        found, wanted = self.shape(gradient), self.shape(value)
        if found == wanted:
            return gradient
        if wanted == found[-1:]:
            return self(ColumnSum(), gradient)
        return self(Sum(summing(found, wanted)), gradient)


def summing(found: Shape, wanted: Shape) -> str:
    """The pattern that sums an array of shape `found` to `wanted`, from which it was stretched."""
    letters = [f"a{i}" for i in range(len(found))]
    last = letters[len(found) - len(wanted) :]
    pairs = zip(last, found[len(found) - len(wanted) :], wanted, strict=True)
    return f"{' '.join(letters)} -> {' '.join(letter if a == b else '1' for letter, a, b in pairs)}"


def adjoint(graph: Graph, wanted: Collection[int]) -> Adjoint:
    """The graph with the gradients of the `wanted` values, for cotangents of its outputs that hold numbers.

    `graph` has no stacks. The gradient of a value that no output depends on has no entry.
    """
    load_rules()
    reverse = Reverse(graph, active(graph, wanted), list(graph.types))
    reverse.forward()
    cotangents = {}
    for port in graph.outputs:
        if port.value in reverse.active and port.value not in cotangents:
            name = f"cotangent of {port.name}"
            cotangents[port.value] = name
            reverse.grads[port.value] = reverse(Input(name, reverse.shape(port.value)))
    ends = [Port(name, reverse.grads[value]) for value, name in cotangents.items()]
    reverse.backward()
    full = replace(
        graph, nodes=tuple(reverse.nodes), types=tuple(reverse.types), inputs=(*graph.inputs, *ends), steps=graph.steps
    )
    found = {value: reverse.grads[value] for value in wanted if value in reverse.grads}
    return Adjoint(full, cotangents, found)


def active(graph: Graph, wanted: Collection[int]) -> frozenset[int]:
    """The wanted values and all that are made of them by ways that let gradients pass."""
    found = {value for value in wanted if graph.types[value].dtype == "float"}
    for node in graph.nodes:
        assert isinstance(node.op, Op), "stacks are written out"
        if any(value in found and index not in node.op.cuts for index, value in enumerate(node.inputs)):
            found.update(value for value in node.outputs if graph.types[value].dtype == "float")
    return frozenset(found)


@cache
def load_rules() -> None:
    """Import every module of the folder of rules."""
    package = importlib.import_module("blockgraph.adjoint.rules")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
