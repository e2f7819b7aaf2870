"""The layers of a model's stacks, found again in its unrolled graph: stream in and out, skip path, branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from blockgraph.grad import layer_names
from blockgraph.graph import Graph, Repeat
from blockgraph.probe.skip import SkipPath, skip_path
from blockgraph.records import dataclass
from blockgraph.run import Call

WORKING: Final = ("attention", "feed_forward")
PLAIN: Final = frozenset({"norm", "stack"})
"""Families of parts that do, and do not, give a branch its name where several parts stand on it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What an addition on the skip path adds: the value, the value of the stream that it is added to, and a name."""

    name: str
    value: int
    stream: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: `entry` and `end` are the stream's values; without a skip path there are no branches."""

    name: str
    entry: int | None
    end: int
    path: SkipPath | None
    branches: tuple[Branch, ...]


def find_layers(folded: Graph, flat: Graph, calls: Sequence[Call]) -> tuple[Layer, ...]:
    """The layers of the stacks of the main module, in running order. The stream is a stack's first output."""
    values = {step.name: step.value for step in flat.steps}
    of_layer: dict[str, list[Call]] = {}
    layer_of = layer_names(folded)
    for call in calls:
        of_layer.setdefault(layer_of(call) or "", []).append(call)
    found = []
    for name, first, entry in _names(folded, flat, values):
        end = values[name]
        inside = of_layer.get(name, [])
        path = None if entry is None else skip_path(inside, entry, end)
        found.append(Layer(name, entry, end, path, tuple(_branches(path, inside, flat, first))))
    return tuple(found)


def _names(folded: Graph, flat: Graph, values: Mapping[str, int]) -> Iterator[tuple[str, str, int | None]]:
    """Each layer's name, the prefix of its names, and the value of its stream when it begins."""
    for node in folded.nodes:
        if not isinstance(node.op, Repeat):
            continue
        stack = node.scope or node.op.path
        for layer, index in enumerate(node.op.layers(flat.dims)):
            body, name = node.op.bodies[index], f"{stack}.{layer}"
            carried = node.op.carried[0]
            entry = None
            if carried is not None:
                inner = body.inputs[carried].value
                names = [f"{name}.{step.name}" for step in body.steps if step.value == inner]
                entry = next((values[one] for one in names if one in values), None)
            yield name, f"{name}.", entry


def _branches(path: SkipPath | None, calls: Sequence[Call], flat: Graph, prefix: str) -> Iterator[Branch]:
    """What each addition on the path adds to the stream; parameters and numbers are no branches."""
    if path is None:
        return
    makers = {slot: call for call in calls for slot in call.outputs}
    stream = {hop.call.inputs[hop.operand] for hop in path.hops}
    taken: dict[str, int] = {}
    for hop in path.hops:
        if hop.call.op.role != "add":
            continue
        value = hop.call.inputs[1 - hop.operand]
        if value not in makers:
            continue
        name = _name(value, makers, stream, flat, prefix)
        taken[name] = taken.get(name, 0) + 1
        label = name if taken[name] == 1 else f"{name}#{taken[name]}"
        yield Branch(label, value, hop.call.inputs[hop.operand])


def _name(value: int, makers: Mapping[int, Call], stream: set[int], flat: Graph, prefix: str) -> str:
    """The part that makes the branch: the nearest that attends or feeds forward, else the nearest that is no norm."""
    found: dict[str, str] = {}
    label = ""
    waiting, seen = [value], set(stream)
    while waiting:
        slot = waiting.pop(0)
        if slot in seen or slot not in makers:
            continue
        seen.add(slot)
        call = makers[slot]
        label = label or call.op.label()
        if call.node.scope.startswith(prefix):
            part = call.node.scope.removeprefix(prefix).partition(".")[0]
            scope = flat.scopes.get(prefix + part)
            found.setdefault("other" if scope is None else scope.family, part)
        waiting.extend(call.inputs)
    order = [*WORKING, *(family for family in found if family not in PLAIN), *found]
    return next((found[family] for family in order if family in found), label)
