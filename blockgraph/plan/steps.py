"""The unrolled graph with all sizes known: which steps a run needs, what each value is, what is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from blockgraph.dims import Dim, Shape
from blockgraph.graph import Graph, Node
from blockgraph.lazy import np
from blockgraph.op import Op, Type
from blockgraph.ops.axes import Moving
from blockgraph.ops.leaf import Constant, Input, Param
from blockgraph.records import dataclass

MAX_FOLDED = 1 << 22
"""Bytes up to which a table that depends on sizes alone is made once and kept."""


@dataclass(frozen=True, slots=True)
class Step:
    """One op bound to its numbers, and the values it reads and makes."""

    op: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    types: tuple[Type, ...]
    outs: tuple[Type, ...]


@dataclass(slots=True)
class Steps:
    """Steps in running order; shape and dtype of every value; inputs and parameters by value; constants.

    A constant is a plain number or an array that depends on sizes alone. `late` inputs come when whatever does not
    need them has run. A step whose first output is in `waits` runs after the values named there were made.
    """

    numbers: Mapping[str, int]
    dtype: Any
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    dtypes: dict[int, Any] = field(default_factory=dict)
    inputs: dict[int, str] = field(default_factory=dict)
    params: dict[int, str] = field(default_factory=dict)
    constants: dict[int, Any] = field(default_factory=dict)
    late: frozenset[int] = frozenset()
    waits: dict[int, tuple[int, ...]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    _sizes: dict[Dim, int] = field(default_factory=dict)

    def bytes(self, value: int) -> int:
        """The bytes of a value."""
        return math.prod(self.shapes[value]) * int(self.dtypes[value].itemsize)

    def sized(self, shape: Shape | None) -> tuple[int, ...]:
        """A symbolic shape in numbers."""
        assert shape is not None, "a graph without findings knows every shape"
        for dim in shape:
            if dim not in self._sizes:
                self._sizes[dim] = int(dim.evaluate(self.numbers))
        return tuple(self._sizes[dim] for dim in shape)


def steps_of(
    graph: Graph, numbers: Mapping[str, int], dtype: Any, given: Mapping[str, Any], wanted: Iterable[int]
) -> Steps:
    """What must run for the `wanted` values; `given` are the dtypes of the inputs by name."""
    found = Steps(numbers, np.dtype(dtype))
    bound: dict[Op, Op] = {}
    for node in _needed(graph, wanted):
        assert isinstance(node.op, Op), "stacks are written out before a run"
        op = bound.get(node.op)
        if op is None:
            op = bound[node.op] = node.op.bind(numbers)
        _add(found, graph, node, op, given)
    return found


def _needed(graph: Graph, wanted: Iterable[int]) -> Iterator[Node]:
    """The nodes that the wanted values depend on, and all inputs and parameters."""
    needed = set(wanted)
    kept = []
    for node in reversed(graph.nodes):
        if isinstance(node.op, Input | Param):
            kept.append(node)
        elif not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return reversed(kept)


def _add(found: Steps, graph: Graph, node: Node, op: Op, given: Mapping[str, Any]) -> None:
    types = tuple(graph.types[value] for value in node.inputs)
    outs = tuple(graph.types[value] for value in node.outputs)
    for value, out in zip(node.outputs, outs, strict=True):
        found.shapes[value] = found.sized(out.shape)
        found.dtypes[value] = _dtype(found, node, op, out)
    if isinstance(op, Constant):
        found.constants[node.outputs[0]] = op.value
    elif isinstance(op, Input):
        found.inputs[node.outputs[0]] = op.path
        found.dtypes[node.outputs[0]] = np.dtype(given[op.path])
    elif isinstance(op, Param):
        found.params[node.outputs[0]] = op.path
    elif not _fold(found, node, op):
        found.steps.append(Step(op, node.inputs, node.outputs, types, outs))


def _dtype(found: Steps, node: Node, op: Op, out: Type) -> Any:
    """The run's dtype for floats; ids keep the type they came in, and those that are computed are `intp`."""
    if out.dtype != "int":
        return found.dtype if out.dtype == "float" else np.dtype(bool)
    return found.dtypes[node.inputs[0]] if isinstance(op, Moving) else np.dtype(np.intp)


def _fold(found: Steps, node: Node, op: Op) -> bool:
    """Compute what depends on numbers and sizes alone, unless it is large; whether it was."""
    if sum(found.bytes(value) for value in node.outputs) > MAX_FOLDED:
        return False
    operands = []
    for index, value in enumerate(node.inputs):
        if value in found.constants:
            operands.append(found.constants[value])
        elif index in op.shape_only:
            operands.append(np.broadcast_to(np.zeros((), found.dtypes[value]), found.shapes[value]))
        else:
            return False
    with np.errstate(all="ignore"):
        result = op.forward(*operands)
    results = result if isinstance(result, tuple) and len(node.outputs) > 1 else (result,)
    found.constants.update(zip(node.outputs, results, strict=True))
    return True
