"""Products of one value with several matrices become one product, such as those for queries, keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import pairwise
from typing import Any, Final

from blockgraph.decode.derive import Cut, Keep, Part, Run, Schedule, Step
from blockgraph.lazy import np
from blockgraph.ops.arithmetic import Add
from blockgraph.ops.matmul import MatMul
from blockgraph.records import dataclass

LARGEST: Final = 1 << 24  # elements of a joined matrix: larger ones gain nothing and would be held twice


@dataclass(frozen=True, slots=True)
class Joined:
    """targets = x @ [W1 W2 ...] + [b1 b2 ...], cut apart again"""

    source: Part
    weight: Any
    bias: Any | None
    edges: tuple[int, ...]
    targets: tuple[Part, ...]

    def forward(self, x: Any) -> tuple[Any, ...]:
        """One product, one sum, and views."""
        y = np.matmul(x.reshape(-1, x.shape[-1]), self.weight)
        if self.bias is not None:
            y += self.bias
        y = y.reshape(*x.shape[:-1], y.shape[-1])
        return tuple(y[..., start:stop] for start, stop in pairwise(self.edges))


def joined(schedule: Schedule, fixed: Mapping[int, Any]) -> Iterator[Step | Joined]:
    """The steps with products of one value joined where they stand first."""
    adds = _biases(schedule, fixed.keys())
    first: dict[int, Joined] = {}
    gone: set[int] = set()
    for source, products in together(schedule, {value: np.shape(array) for value, array in fixed.items()}):
        first[id(products[0])] = _join(source, products, adds, fixed, gone)
        gone.update(id(one) for one in products[1:])
    for step in schedule.steps:
        if id(step) in first:
            yield first[id(step)]
        elif id(step) not in gone:
            yield step


def together(schedule: Schedule, shapes: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[Part, list[Run]]]:
    """The products of one value that become one; `shapes` are those of the values that are the same at every step."""
    groups: dict[Part, list[Run]] = {}
    for step in schedule.steps:
        if isinstance(step, Run) and _is_product(step, shapes):
            groups.setdefault(step.inputs[0], []).append(step)
    for source, products in groups.items():
        weights = [shapes[one.inputs[1].value] for one in products]
        if len(products) > 1 and sum(columns for _, columns in weights) * weights[0][0] <= LARGEST:
            yield source, products


def _join(
    source: Part, products: list[Run], adds: Mapping[Part, Run], fixed: Mapping[int, Any], gone: set[int]
) -> Joined:
    weights = [fixed[one.inputs[1].value] for one in products]
    edges = [0]
    for weight in weights:
        edges.append(edges[-1] + weight.shape[1])
    targets = [one.outputs[0] for one in products]
    bias = None
    if all(target in adds for target in targets):
        bias = np.concatenate([fixed[adds[target].inputs[1].value] for target in targets])
        gone.update(id(adds[target]) for target in targets)
        targets = [adds[target].outputs[0] for target in targets]
    return Joined(source, np.concatenate(weights, axis=1), bias, tuple(edges), tuple(targets))


def _is_product(step: Run, shapes: Mapping[int, tuple[int, ...]]) -> bool:
    left, right = step.inputs if len(step.inputs) == 2 else (None, None)
    return (
        isinstance(step.node.op, MatMul)
        and left is not None
        and right is not None
        and left.value not in shapes
        and len(shapes.get(right.value, ())) == 2
    )


def _biases(schedule: Schedule, fixed: Set[int]) -> dict[Part, Run]:
    """The sums with a row of parameters, by the value they are added to, where nothing else reads it."""
    readers: dict[Part, list[Run]] = {}
    others = set(schedule.outputs)
    for step in schedule.steps:
        if isinstance(step, Run):
            for part in step.inputs:
                readers.setdefault(part, []).append(step)
        elif isinstance(step, Cut | Keep):
            others.add(step.source)
    return {
        part: found[0]
        for part, found in readers.items()
        if len(found) == 1 and part not in others and _is_bias(schedule, found[0], part, fixed)
    }


def _is_bias(schedule: Schedule, step: Run, part: Part, fixed: Set[int]) -> bool:
    if not isinstance(step.node.op, Add) or step.inputs[0] != part or step.inputs[1].value not in fixed:
        return False
    product, row = (schedule.graph.types[one.value].shape or () for one in step.inputs)
    return row == product[-1:]
