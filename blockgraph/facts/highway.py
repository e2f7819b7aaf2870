"""The residual highway: the cheapest path by role from the stream's start to its end, and what stands on it.

Additions cost nothing, so a path of additions only is found if there is one; scales, norms and the rest follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from blockgraph.graph import ROOT, Graph, Node, Repeat
from blockgraph.op import Op
from blockgraph.records import dataclass

COST = {"add": 0, "move": 1, "scale": 1, "norm": 1_000, "other": 1_000_000, "source": 1_000_000}


@dataclass(frozen=True, slots=True)
class Stop:
    """An op on the path that is not an addition: how it is called, its role, and its node with the graph around it."""

    name: str
    role: str
    node: Node
    graph: Graph
    stack: str = ""


@dataclass(frozen=True, slots=True)
class Highway:
    """The path: what stands on it besides additions, in order, and how many branches are added to it per layer."""

    stops: tuple[Stop, ...] = ()
    adds: int = 0

    @property
    def exists(self) -> bool:
        """Whether a path goes around some sublayer: not if all go through maps and nothing is added on the way."""
        return self.adds > 0 or all(stop.role != "other" for stop in self.stops)

    @property
    def clean(self) -> bool:
        """Whether the stream is only ever added to."""
        return not self.stops

    @property
    def on_path(self) -> tuple[str, ...]:
        """The names of what stands on it, each once."""
        return tuple(dict.fromkeys(stop.name for stop in self.stops))


@dataclass(frozen=True, slots=True)
class _Step:
    """A node on a path and what it costs; `inner` are the ends of the path through the bodies of a stack."""

    node: Node
    cost: int
    inner: tuple[int, int] | None = None
    before: int = 0


def highway(graph: Graph) -> Highway | None:
    """The highway of a graph; of a model with stacks, from where its first stack begins to where its last one ends.

    None if no input reaches the outputs.
    """
    if not graph.outputs:
        return None
    starts = frozenset(port.value for port in graph.inputs)
    named = [port for port in graph.outputs if graph.inputs and port.name == graph.inputs[0].name]
    end = (named or list(graph.outputs))[0].value
    steps = _search(graph, frozenset({graph.inputs[0].value}) if named else starts)
    path = _path(steps, end)
    if path is None:
        return None
    stacks = [index for index, step in enumerate(path) if isinstance(step.node.op, Repeat)]
    if stacks:
        path = path[stacks[0] : stacks[-1] + 1]
    elif any(graph.types[value].dtype == "int" for value in starts):
        path = path[1:]  # the look-up that makes the stream
    return _told(graph, path)


def _search(graph: Graph, starts: frozenset[int]) -> dict[int, _Step | None]:
    """The cheapest last step to every value that can be reached from the starts; searched once for each graph."""
    known: dict[int, _Step | None] | None = graph.worked_out.get((_Step, starts))
    if known is not None:
        return known
    best: dict[int, _Step | None] = dict.fromkeys(starts)
    costs = dict.fromkeys(best, 0)
    for node in graph.nodes:
        for value, step in _steps(node, costs) if node.inputs else ():
            if value not in costs or step.cost < costs[value]:
                best[value], costs[value] = step, step.cost
    graph.worked_out[_Step, starts] = best
    return best


def _steps(node: Node, costs: Mapping[int, int]) -> Iterable[tuple[int, _Step]]:
    """The steps to what a node puts out: of an op only the cheapest, from the first operand that has it."""
    if isinstance(node.op, Repeat):
        return list(_through_stack(node, node.op, costs))
    ways = [
        (costs[value], value) for index, value in enumerate(node.inputs) if value in costs and _carries(node.op, index)
    ]
    if not ways:
        return ()
    cost, before = min(ways, key=itemgetter(0))
    step = _Step(node, cost + COST[node.op.role], None, before)
    return [(output, step) for output in node.outputs]


def _carries(op: Op, operand: int) -> bool:
    """A norm's stream is what it normalises, not its gain; nothing flows from what only lends its shape."""
    return (op.role != "norm" or operand == 0) and operand not in op.shape_only


def _through_stack(node: Node, stack: Repeat, costs: Mapping[int, int]) -> Iterator[tuple[int, _Step]]:
    """A stream that is carried stays the same one from layer to layer; another input joins it in some layer."""
    for output, carried in enumerate(stack.carried):
        for entry, value in enumerate(node.inputs):
            if value not in costs or (entry in stack.carried and entry != carried):
                continue
            inner = [_body_cost(_body_path(body, entry, output)) for body in stack.bodies]
            known = [one for one in inner if one is not None]
            if not known or (entry == carried and len(known) < len(inner)):
                continue
            layers = stack.count.as_int() or 1
            cost = costs[value] + (max(known) * layers if entry == carried else min(known))
            yield node.outputs[output], _Step(node, cost, (entry, output), value)


def _body_path(body: Graph, entry: int, output: int) -> list[_Step] | None:
    """The path through one layer."""
    return _path(_search(body, frozenset({body.inputs[entry].value})), body.outputs[output].value)


def _body_cost(path: list[_Step] | None) -> int | None:
    return None if path is None else path[-1].cost if path else 0


def _path(steps: Mapping[int, _Step | None], end: int) -> list[_Step] | None:
    """The steps from a start to `end`, in order."""
    if end not in steps:
        return None
    found = []
    step = steps[end]
    while step is not None:
        found.append(step)
        step = steps[step.before]
    return found[::-1]


def _told(graph: Graph, path: list[_Step], prefix: str = "", stack: str = "") -> Highway:
    stops: list[Stop] = []
    adds = 0
    fork = path[0].before if path else 0  # behind the last sublayer on the path so far
    for step in path:
        if step.inner is not None:
            inner = [_of_body(step, body, prefix) for body in step.node.op.bodies]  # type: ignore[union-attr]
            stops += [stop for one in inner for stop in one.stops]
            adds += max(one.adds for one in inner)
        elif _role(step.node) == "add":
            adds += _is_residual(graph, step, fork)
        else:
            is_map = _role(step.node) == "other" and step.node.scope != ROOT
            fork = step.node.outputs[0] if is_map else fork
            stops.append(Stop(prefix + _name(step.node), _role(step.node), step.node, graph, stack))
    return Highway(tuple(stops), adds)


def _of_body(step: _Step, body: Graph, prefix: str) -> Highway:
    """The path through one layer of a stack."""
    assert isinstance(step.node.op, Repeat)
    assert step.inner is not None
    entry, output = step.inner
    path = _body_path(body, entry, output)
    name = step.node.scope or step.node.op.path
    return _told(body, path or [], f"{prefix}{name}.*.", name)


def _is_residual(graph: Graph, step: _Step, fork: int) -> bool:
    """Whether a branch is added that leaves the path behind the last sublayer on it: a sum of two goes around none."""
    if _is_bias(graph, step.node) or _is_inside_sublayer(graph, step.node):
        return False
    waiting, seen = [value for value in step.node.inputs if value != step.before], set[int]()
    while waiting:
        value = waiting.pop()
        if value == fork:
            return True
        if value not in seen:
            seen.add(value)
            waiting += graph.producers[value].inputs
    return False


def _is_bias(graph: Graph, node: Node) -> bool:
    return any(graph.types[value].bare for value in node.inputs)


def _is_inside_sublayer(graph: Graph, node: Node) -> bool:
    """Whether it is a sum of an attention or a mixture of experts, and none to the stream."""
    scope = graph.scopes.get(node.scope)
    return scope is not None and scope.family in ("attention", "feed_forward")


def _role(node: Node) -> str:
    return node.op.role if isinstance(node.op, Op) else "other"


def _name(node: Node) -> str:
    """The part it belongs to, or the op."""
    return node.scope.partition("#")[0] or node.op.name


__all__ = ["Highway", "Stop", "highway"]
