"""BG219: at init the stream grows by a factor from layer to layer, as the graph predicts without computing arrays.

The root mean square of every value is estimated as if its elements were independent: sums add squares, products of
n terms grow by sqrt(n), norms start again. That is rough, so only growth by orders of magnitude is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from blockgraph.dims import Dim
from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.lints.wiring import number_of, originals, stacks
from blockgraph.number import Number
from blockgraph.op import Op
from blockgraph.ops.attend import Attend
from blockgraph.ops.elementwise import Sigmoid, Tanh
from blockgraph.ops.leaf import Constant, Param
from blockgraph.ops.reduce import Mean
from blockgraph.ops.softmax import Softmax
from blockgraph.pattern import PatternMisfit
from blockgraph.records import dataclass

CODE = "BG219"
NEEDS_ALL = True  # it concludes from what is not there
MANY = 100.0
MAX_LAYERS = 12  # what follows is taken to go on at the last rate, so that a stack costs the same however deep
STEADY = 1.15  # a rate of growth above this, a layer, is no sum of branches any more
ENORMOUS = 1e30
LAYER = "layer"
Sizes = Mapping[str, int]


def lint_model(graph: Graph) -> Iterator[Finding]:
    """Stacks whose stream is a hundred times larger at the end than after the first layer."""
    sizes = dict(graph.dims)
    for node, stack in stacks(graph):
        levels = _levels(stack, sizes)
        if len(levels) < 3 or not math.isfinite(levels[-1]) or levels[1] <= 0 or node.place is None:
            continue
        depth = number_of(stack.count, sizes) or 0
        growth = levels[-1] / levels[1] * _further(levels, depth)
        if growth > MANY:
            rate = growth ** (1 / max(1, depth - 1))
            name = node.scope or stack.path
            message = f"at init the stream grows about {rate:.2g} times in every layer of `{name}`, to"
            message += f" {growth:.0e} times its size after {depth}"
            help = "draw the weights smaller, normalise the branches, or scale them by a small number"
            yield Finding(CODE, message, node.place, help, severity="warning")


def _further(levels: list[float], depth: int) -> float:
    """By how much the stream grows in the layers that were not worked out, at the rate of the last ones."""
    half = len(levels) // 2
    rate = (levels[-1] / levels[half]) ** (1 / (len(levels) - 1 - half)) if levels[half] > 0 else 1.0
    left = min(depth - (len(levels) - 1), 200)
    return rate**left if left > 0 and STEADY < rate < MANY else 1.0


def _levels(stack: Repeat, sizes: Mapping[str, int]) -> list[float]:
    """The size of the first stream before the stack and after every layer, until it is enormous."""
    counts = [number_of(segment.count, sizes) for segment in stack.segments]
    if None in counts or stack.carried[:1] == (None,):
        return []
    state = [1.0] * len(stack.bodies[0].inputs)
    bodies = {id(body): _Body.of(body, sizes) for body in originals(stack)}
    first = stack.carried[0] or 0
    levels = [1.0]
    for layer, body in enumerate(stack.layers(dict(sizes))):
        outputs = bodies[id(stack.bodies[body].original)].outputs(state, {**sizes, LAYER: layer + 1})
        for index, level in zip(stack.carried, outputs, strict=True):
            if index is not None:
                state[index] = level
        levels.append(state[first])
        if layer + 1 >= MAX_LAYERS or not state[first] < ENORMOUS:
            break
    return levels


@dataclass(frozen=True, slots=True)
class _Body:
    """A layer: the levels that are the same in every layer, and the nodes whose levels are not.

    What comes out of a norm is as large as its gain, so of a pre-norm layer little more than the additions is left.
    """

    graph: Graph
    known: dict[int, float]
    moving: list[Node]

    @classmethod
    def of(cls, graph: Graph, sizes: Sizes) -> _Body:
        """The levels worked out as far as they do not depend on what goes into the layer, or on which it is."""
        inputs = {port.value for port in graph.inputs}
        known: dict[int, float] = {}
        moving = []
        for node, counted in _needed(graph):
            if node.outputs[0] in inputs:
                continue
            if _has_layer(node.op) or any(value not in known for value in counted):
                moving.append(node)
                continue
            level = _level(graph, node, [known.get(value, 1.0) for value in node.inputs], sizes)
            known.update(dict.fromkeys(node.outputs, level))
        return cls(graph, known, moving)

    def outputs(self, state: list[float], sizes: Sizes) -> list[float]:
        """The levels that come out where those of `state` go in."""
        found = {**self.known, **{port.value: level for port, level in zip(self.graph.inputs, state, strict=True)}}
        for node in self.moving:
            level = _level(self.graph, node, [found.get(value, 1.0) for value in node.inputs], sizes)
            found.update(dict.fromkeys(node.outputs, level))
        return [found[port.value] for port in self.graph.outputs]


def _needed(graph: Graph) -> list[tuple[Node, list[int]]]:
    """The nodes on which the levels of the outputs depend, in order, each with its values that count."""
    needed = {port.value for port in graph.outputs}
    found = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            counted = [node.inputs[index] for index in _counted(node.op, len(node.inputs))]
            needed.update(counted)
            found.append((node, counted))
    return found[::-1]


def _counted(op: Op | Repeat, operands: int) -> Sequence[int]:
    """The operands on which the level of what comes out depends."""
    if isinstance(op, Softmax) or not operands:
        return ()
    if isinstance(op, Repeat):
        return (0,)
    if op.role == "norm":
        return (1,) if operands > 1 else ()
    if op.role in ("add", "move") or op.factors == "all" or (op.role == "scale" and operands == 2):
        return range(operands)
    return (2,) if isinstance(op, Attend) else (0,)


def _has_layer(op: Op | Repeat) -> bool:
    value = op.amount if isinstance(op, Param) else op.value if isinstance(op, Constant) else None
    return isinstance(value, Number) and LAYER in value.symbols


def _level(graph: Graph, node: Node, levels: list[float], sizes: Sizes) -> float:
    """How large what a node puts out is, from the levels of its operands; those not `_counted` do not matter."""
    op = node.op
    if isinstance(op, Repeat):
        return levels[0]
    if isinstance(op, Param):
        return _drawn(op, sizes)
    if isinstance(op, Constant):
        return abs(_number(op.value, sizes))
    if not levels:
        return 1.0
    if op.role == "norm":
        return levels[1] if len(levels) > 1 else 1.0
    if op.role == "add":
        return math.hypot(*levels)
    if op.factors == "all":
        return math.prod(levels) * _summed(graph, node, op, sizes)
    return _of_other(graph, node, op, levels, sizes)


def _of_other(graph: Graph, node: Node, op: Op, levels: list[float], sizes: Sizes) -> float:
    if op.role == "scale" and len(levels) == 2:
        return levels[0] / levels[1] if levels[1] > 0 else levels[0]
    if isinstance(op, Attend):
        return levels[2]
    if isinstance(op, Softmax):
        shape = graph.types[node.inputs[0]].shape
        return 1 / max(_size(shape[-1], sizes), 1.0) if shape else 1.0
    if isinstance(op, Tanh | Sigmoid):
        return min(1.0, levels[0])
    return max(levels) if op.role == "move" else levels[0]


def _summed(graph: Graph, node: Node, op: Op, sizes: Sizes) -> float:
    """sqrt(n) for the n terms that a product sums; 1/sqrt(n) for a mean."""
    types = tuple(graph.types[value] for value in node.inputs)
    if op.role == "move" or any(given.shape is None for given in types):
        return 1.0
    pattern = op.pattern(types)
    kept = {axis for axes in pattern.outputs for axis in axes}
    try:
        bound = pattern.bind(tuple(given.shape or () for given in types), op.sizes_by_letter())
    except PatternMisfit:
        return 1.0
    terms = math.prod(_size(dims[0], sizes) for axis, dims in bound.items() if axis not in kept and dims)
    return 1 / math.sqrt(terms) if isinstance(op, Mean) else math.sqrt(terms)


def _size(dim: Dim, sizes: Sizes) -> float:
    """The number of a size; one that is not known counts as 1, so that nothing is claimed of it."""
    return float(dim.evaluate(sizes)) if not dim.symbols - sizes.keys() else 1.0


def _number(value: Number | float | int, sizes: Sizes) -> float:
    if not isinstance(value, Number):
        return float(value)
    try:
        return float(value.evaluate(dict(sizes))) if not value.symbols - sizes.keys() else 1.0
    except (ArithmeticError, ValueError):
        return 1.0


def _drawn(op: Param, sizes: Sizes) -> float:
    """The size of a parameter as it is drawn."""
    if op.init in ("zeros", "ones"):
        return float(op.init == "ones")
    if op.init == "eye":
        return max(_size(op.dims[-1], sizes), 1.0) ** -0.5 if op.dims else 1.0
    amount = abs(_number(op.amount, sizes))
    if op.init == "uniform":
        return amount / math.sqrt(3)
    if op.init == "xavier" and len(op.dims) > 1:
        return amount * math.sqrt(2 / max(sum(_size(dim, sizes) for dim in op.dims[-2:]), 1.0))
    return amount
