"""A large spec made small for work that grows with its size: the same structure, small dims, every pattern kept.

Dims that are numbers get the smallest numbers that the checker accepts, which of two is larger stays as it is, and a
stack keeps enough layers for one round of its pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from blockgraph.api import DEFAULT_SIZE, Program
from blockgraph.checking import check
from blockgraph.cost.parameters import number_of_parameters
from blockgraph.dims import Dim
from blockgraph.errors import BlockgraphError
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass
from blockgraph.resize import with_depth
from blockgraph.spec import Spec

WIDE, LEAST, FEW = 64, 8, 2
"""A dim from WIDE on is a width and keeps LEAST: a norm over fewer numbers says little. Others keep FEW."""
TRIES = 64
MANY = 100_000
"""Parameters from which on a spec is shrunk."""


@dataclass(frozen=True, slots=True)
class Change:
    """A dim that got another number, or the layers of a stack."""

    name: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def shrink(program: Program, fixed: Collection[str] = ()) -> tuple[Program, tuple[Change, ...]]:
    """The small program and what was changed; dims in `fixed` stay as they are."""
    before = dict(program.graph.dims)
    layers = _layers(program.graph, before)
    program = _fewer_layers(program, fixed)
    counts = {symbol for node in program.graph.nodes for symbol in _count_symbols(node.op)}
    program = _smaller_dims(program, {*fixed, *counts})
    now = program.graph.dims
    changes = [Change(name, size, now[name]) for name, size in before.items() if now.get(name, size) != size]
    left = _layers(program.graph, dict(now))
    said = {change.name for change in changes} & counts
    if not said:
        changes += [
            Change(f"layers of {name}", count, left[name]) for name, count in layers.items() if left[name] != count
        ]
    return program, tuple(changes)


def is_large(program: Program) -> bool:
    """Whether it has more parameters, or more layers, than a check of single elements should go through."""
    numbers = dict(program.graph.dims)
    stacks = [node.op for node in program.graph.nodes if isinstance(node.op, Repeat)]
    least = {stack.path: _pattern(stack) for stack in stacks}
    deep = any(count > least[name] for name, count in _layers(program.graph, numbers).items())
    return deep or (number_of_parameters(program.graph) or 0) > MANY


def sizes_for(program: Program) -> dict[str, int]:
    """A length at which sliding windows hide something, where they would not at the default one."""
    windows = [_window(node.op, program.graph.dims) for node in program.flat.nodes]
    widest = max(windows, default=0)
    if "T" in program.spec.dims or widest < DEFAULT_SIZE:
        return {}
    sizes = {"T": widest + 2}
    known = {**program.graph.dims, **sizes}
    fits = all(condition.holds(known) is not False for condition in program.graph.conditions)
    shapes = [program.graph.types[port.value].shape or () for port in program.graph.inputs]
    return sizes if fits and any("T" in dim.symbols for shape in shapes for dim in shape) else {}


def _window(op: object, numbers: Mapping[str, int]) -> int:
    """The keys that an op's sliding window shows; 0 if it has none."""
    window = getattr(op, "window", None)
    dim = Dim(0 if window is None else window)
    return int(dim.evaluate(dict(numbers))) if dim.symbols <= numbers.keys() else 0


def _pattern(stack: Repeat) -> int:
    """The layers that a stack needs to show all of its pattern, two at least."""
    return max(FEW, sum(len(one.bodies) for one in stack.segments))


def _count_symbols(op: object) -> frozenset[str]:
    return op.count.symbols if isinstance(op, Repeat) else frozenset()


def _layers(graph: Graph, numbers: dict[str, int]) -> dict[str, int]:
    """The layers of each stack of the main module."""
    stacks = [node.op for node in graph.nodes if isinstance(node.op, Repeat)]
    known = [stack for stack in stacks if stack.count.symbols <= set(numbers)]
    return {stack.path: sum(1 for _ in stack.layers(numbers)) for stack in known}


def _fewer_layers(program: Program, fixed: Collection[str]) -> Program:
    """As few layers as have every body of every stack, two at least."""
    stacks = [node.op for node in program.graph.nodes if isinstance(node.op, Repeat)]
    if any(_count_symbols(stack) & set(fixed) for stack in stacks):
        return program
    now = max(_layers(program.graph, dict(program.graph.dims)).values(), default=0)
    least = max(map(_pattern, stacks), default=now)
    for depth in range(least, min(now, least + TRIES)):
        try:
            found = with_depth(program, depth)
        except BlockgraphError:
            continue
        if _same_bodies(program.graph, found.graph):
            return found
    return program


def _same_bodies(before: Graph, after: Graph) -> bool:
    """Whether every stack still has layers of each of its bodies."""

    def used(graph: Graph) -> list[set[int]]:
        return [set(node.op.layers(dict(graph.dims))) for node in graph.nodes if isinstance(node.op, Repeat)]

    return used(before) == used(after)


def _smaller_dims(program: Program, fixed: Collection[str]) -> Program:
    """The dims that are plain numbers, from the smallest to the largest, each made as small as it can be."""
    spec, graph = program.spec, program.graph
    numbers = {name: dim.number for name, dim in spec.dims.items() if dim.number is not None}
    old, new = 0, 0
    for name, size in sorted(numbers.items(), key=lambda one: one[1]):
        if name in fixed:
            continue
        least = new + (size > old) if old else 1
        for number in _candidates(size, least):
            found = _checked(spec, name, number)
            if found is not None:
                spec, graph = found
                break
        old, new = size, graph.dims.get(name, size)
    return Program(spec, graph, program.findings) if spec is not program.spec else program


def _candidates(size: int, least: int) -> Iterator[int]:
    floor = max(least, LEAST if size >= WIDE else min(FEW, size))
    yield from range(floor, min(size, floor + TRIES))


def _checked(spec: Spec, name: str, number: int) -> tuple[Spec, Graph] | None:
    """The spec with another number for a dim, if it is still right."""
    checked = check(spec.with_values({name: number}))
    return (checked.spec, checked.graph) if checked.ok and checked.graph is not None else None
