"""Verdicts about positions: causal, batch items independent, position-wise; and the path of a leak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from blockgraph.dims import Dim
from blockgraph.errors import Place, Related
from blockgraph.facts.flow import Layers, Memo, follow, reached
from blockgraph.facts.interval import OWN, Interval
from blockgraph.facts.reach import NOTHING, Access, Reach
from blockgraph.graph import Graph, Node, Port, Repeat
from blockgraph.records import dataclass

Verdict = Literal["proved", "refuted", "not proved"]
Question = Callable[[Interval], bool]
TIME, BATCH = "T", "B"


@dataclass(frozen=True, slots=True)
class Leak:
    """How a later position gets into an earlier one: the steps on the way, and the op that reads ahead."""

    path: tuple[str, ...]
    culprit: str
    place: Place | None

    def __str__(self) -> str:
        return f"earlier positions read later ones: {' -> '.join(self.path)}"

    @property
    def related(self) -> tuple[Related, ...]:
        """The op that reads ahead."""
        return (Related(f"`{self.culprit}` reads later positions", self.place),) if self.place else ()


def positions(graph: Graph, numbers: Mapping[str, int], memo: Memo) -> tuple[Verdict, Verdict, Verdict]:
    """Causal (no position of the outputs reads a later one), position-wise (each reads its own only), and batch items
    independent (each reads itself only). `memo` is that of all graphs asked with the same numbers.
    """
    time = _ends(graph, time_axis(graph, numbers), numbers, memo)
    batch = _ends(graph, batch_axis(graph, numbers), numbers, memo.next())
    return (
        _verdict(time, _is_past, _is_later),
        _verdict(time, _is_own, _is_elsewhere),
        _verdict(batch, _is_own, _is_elsewhere),
    )


def causal(graph: Graph, numbers: Mapping[str, int]) -> Verdict:
    """Whether no position of the outputs reads a later one of the inputs."""
    return _verdict(_ends(graph, time_axis(graph, numbers), numbers, Memo()), _is_past, _is_later)


def _is_past(one: Interval) -> bool:
    return one.is_past


def _is_later(one: Interval) -> bool:
    return one.reads_later


def _is_own(one: Interval) -> bool:
    return one.is_own


def _is_elsewhere(one: Interval) -> bool:
    """Whether another position is read for sure: bounds that are numbers, or none."""
    return not one.is_own and all(bound is None or Dim(bound).number is not None for bound in (one.low, one.high))


def time_axis(graph: Graph, numbers: Mapping[str, int]) -> Dim | None:
    """The size of the axis of positions: T where an input has it, else the second axis of the first input, if free."""
    shapes = [graph.types[port.value].shape or () for port in graph.inputs]
    if any(Dim(TIME) in shape for shape in shapes):
        return Dim(TIME)
    return next((shape[1] for shape in shapes[:1] if len(shape) > 1 and _is_free(shape[1], numbers)), None)


def batch_axis(graph: Graph, numbers: Mapping[str, int]) -> Dim | None:
    """The size of the axis of items: B where an input has it, else the first axis of the first input, if free."""
    shapes = [graph.types[port.value].shape or () for port in graph.inputs]
    if any(shape[:1] == (Dim(BATCH),) for shape in shapes):
        return Dim(BATCH)
    time = time_axis(graph, numbers)
    return next((s[0] for s in shapes[:1] if len(s) > 1 and s[0] != time and _is_free(s[0], numbers)), None)


def _is_free(dim: Dim, numbers: Mapping[str, int]) -> bool:
    return len(dim.symbols) == 1 and str(dim) in dim.symbols and not dim.symbols & numbers.keys()


def sources(graph: Graph, size: Dim) -> dict[int, Reach]:
    """The inputs that have one axis of this size, each reading its own positions; true-and-false ones do not count."""
    found = {}
    for port in graph.inputs:
        given = graph.types[port.value]
        axes = [axis for axis, dim in enumerate(given.shape or ()) if dim == size]
        if len(axes) == 1 and given.dtype != "bool":
            found[port.value] = Reach((Access(((axes[0], OWN),)),))
        else:
            found[port.value] = NOTHING
    return found


def _ends(
    graph: Graph, size: Dim | None, numbers: Mapping[str, int], memo: Memo
) -> list[tuple[Access, set[int]]] | None:
    """How the outputs read the inputs, each way with the axes of this size that the output has; None if not known."""
    given = sources(graph, size) if size is not None else {}
    shapes = [graph.types[port.value].shape for port in graph.outputs]
    if not any(one.accesses for one in given.values()) or None in shapes:
        return None
    reaches = reached(graph, tuple(given[port.value] for port in graph.inputs), numbers, memo)
    found = []
    for reach, shape in zip(reaches, shapes, strict=True):
        axes = {axis for axis, dim in enumerate(shape or ()) if dim == size}
        found += [(access, axes) for access in reach.accesses]
    return found


def _verdict(ends: list[tuple[Access, set[int]]] | None, holds: Question, fails: Question) -> Verdict:
    if ends is None:
        return "not proved"
    found = {_of_access(access, axes, holds, fails) for access, axes in ends}
    return "refuted" if "refuted" in found else "not proved" if "not proved" in found else "proved"


def _of_access(access: Access, axes: set[int], holds: Question, fails: Question) -> Verdict:
    known = [interval for axis, interval in access.intervals if axis in axes]
    if any(holds(one) for one in known):
        return "proved"
    return "refuted" if access.sure and all(fails(one) for one in known) else "not proved"


def leak(graph: Graph, numbers: Mapping[str, int]) -> Leak | None:
    """How the outputs come to read later positions, for a graph whose causality is refuted."""
    size = time_axis(graph, numbers)
    if size is None:
        return None
    found = _leak_in(graph, sources(graph, size), numbers, "")
    return found


def reads_ahead(reach: Reach) -> bool:
    """Whether a value reads a later position than each of its own."""
    return any(access.sure and all(one.reads_later for _, one in access.intervals) for access in reach.accesses)


def _leak_in(graph: Graph, given: Mapping[int, Reach], numbers: Mapping[str, int], prefix: str) -> Leak | None:
    reaches = follow(graph, given, numbers)
    ends = [port.value for port in graph.outputs if reads_ahead(reaches.get(port.value, NOTHING))]
    if not ends:
        return None
    way = [ends[0]]
    culprit = graph.producers[way[-1]]
    while True:
        worse = [value for value in culprit.inputs if reads_ahead(reaches.get(value, NOTHING))]
        if not worse:
            break
        way.append(worse[0])
        culprit = graph.producers[worse[0]]
    inner = _inside(culprit, reaches, numbers, prefix)
    behind = [*_names(graph, way[::-1])]
    before = [*_names(graph, _way_back(graph, culprit, reaches)[::-1])]
    if inner is not None:
        return Leak((*_prefixed(prefix, before), *inner.path, *_prefixed(prefix, behind)), inner.culprit, inner.place)
    name = culprit.scope or culprit.text or culprit.op.name
    path = dict.fromkeys(_prefixed(prefix, [*before, *([culprit.scope] if culprit.scope else []), *behind]))
    return Leak(tuple(path), prefix + name, culprit.place)


def _inside(culprit: Node, reaches: Mapping[int, Reach], numbers: Mapping[str, int], prefix: str) -> Leak | None:
    """The leak within a stack: in the first layer that reads ahead."""
    if not isinstance(culprit.op, Repeat):
        return None
    layers = Layers(culprit.op, tuple(reaches.get(value, NOTHING) for value in culprit.inputs), numbers)
    for body, state in layers.visited:
        graph = culprit.op.bodies[body]
        given = {port.value: reach for port, reach in zip(graph.inputs, state, strict=True)}
        found = _leak_in(graph, given, numbers, f"{prefix}{culprit.scope}.*.")
        if found is not None:
            return found
    return None


def _way_back(graph: Graph, node: Node, reaches: Mapping[int, Reach]) -> list[int]:
    """Values from an op back to the source."""
    way: list[int] = []
    while True:
        reading = [value for value in node.inputs if reaches.get(value, NOTHING).accesses]
        if not reading:
            return way
        way.append(reading[0])
        node = graph.producers[reading[0]]


def _names(graph: Graph, values: list[int]) -> Iterator[str]:
    """The names people know values by; those inside parts and those without a name are left out."""
    known: dict[int, str] = {port.value: port.name for port in graph.inputs}
    for step in graph.steps:
        if step.depth == 0:
            known.setdefault(step.value, step.name)
    yield from dict.fromkeys(known[value] for value in values if value in known)


def _prefixed(prefix: str, names: list[str]) -> list[str]:
    return [prefix + name for name in names]


def part_of(graph: Graph, scope: str) -> Graph:
    """What stands in a scope as a graph of its own: what it reads from outside are its inputs."""
    nodes = tuple(n for n in graph.nodes if n.scope == scope or n.scope.startswith(f"{scope}."))
    inside = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(v for n in nodes for v in n.inputs if v not in inside and not graph.types[v].bare)
    used = {value for node in graph.nodes if node not in nodes for value in node.inputs}
    used |= {port.value for port in graph.outputs}
    names = {step.value: step.name for step in graph.steps if step.depth == 0}
    outside = tuple(graph.producers[value] for value in read)
    sides = tuple(Port(names.get(value, "its input"), value) for value in read)
    return Graph(
        scope,
        (*outside, *nodes),
        graph.types,
        sides,
        tuple(Port(scope, v) for v in sorted(inside & used)),
        graph.scopes,
        graph.steps,
        dims=graph.dims,
    )


__all__ = ["Leak", "Verdict", "causal", "leak", "part_of", "positions", "time_axis"]
