"""What lints ask of a graph: who reads a value, what made it, and which part stands where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from blockgraph.dims import Dim
from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node, Repeat, distinct
from blockgraph.op import Op, Role
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

SUBLAYERS = ("attention", "feed_forward")


def ops(graph: Graph, wanted: Callable[[type[Op]], bool] = lambda _: True) -> Iterator[tuple[Node, Op]]:
    """The nodes that are ops, with them, in order; those of the classes `wanted`."""
    found = [nodes for one, nodes in graph.by_class.items() if issubclass(one, Op) and wanted(one)]
    for node in sorted(chain.from_iterable(found), key=attrgetter("id")):
        yield node, node.op  # type: ignore[misc]


def of_role(*roles: Role) -> Callable[[type[Op]], bool]:
    """Ops of some roles are wanted."""
    return lambda one: one.role in roles


def of_class(*classes: type[Op]) -> Callable[[type[Op]], bool]:
    """Ops of some classes are wanted."""
    return lambda one: issubclass(one, classes)


def stacks(graph: Graph) -> Iterator[tuple[Node, Repeat]]:
    """The stacks of a graph itself, those inside them not included."""
    for node in graph.by_class.get(Repeat, ()):
        yield node, node.op  # type: ignore[misc]


def role(node: Node) -> str:
    """The role of a node; a stack has that of any other op."""
    return node.op.role if isinstance(node.op, Op) else "other"


def part_name(node: Node) -> str:
    """The path of the part a node belongs to, or its op."""
    return node.scope.partition("#")[0] or node.op.name


def part_at(graph: Graph, node: Node, families: tuple[str, ...]) -> str | None:
    """The outermost part of one of these families that a node stands in."""
    steps = node.scope.split(".")
    keys = (".".join(steps[: index + 1]) for index in range(len(steps)))
    return next((key for key in keys if key in graph.scopes and graph.scopes[key].family in families), None)


def number_of(dim: Dim, numbers: Mapping[str, int]) -> int | None:
    """The number of a size, if all its symbols have one."""
    return None if dim.symbols - numbers.keys() else int(dim.evaluate(dict(numbers)))


@dataclass(frozen=True, slots=True)
class Last:
    """The last layer of a stack: its body, and its name such as `layers.11`."""

    body: Graph
    name: str


def last_layer(node: Node, stack: Repeat, numbers: Mapping[str, int]) -> Last:
    """The last layer, or one that is equal to it up to places; without a number where the count has none."""
    segment = stack.segments[-1]
    count, total = number_of(segment.count, numbers), number_of(stack.count, numbers)
    index = segment.bodies[((count or 0) - 1) % len(segment.bodies)]
    name = node.scope or stack.path
    return Last(stack.bodies[index].original, f"{name}.{total - 1}" if total else f"{name}.*")


def parameters_in(graph: Graph, value: int) -> Iterator[str]:
    """The names of the parameters that a bare value is made of."""
    waiting = [value]
    while waiting:
        node = graph.producers[waiting.pop()]
        if isinstance(node.op, Param):
            yield node.op.path
        waiting.extend(node.inputs)


def originals(stack: Repeat) -> Iterator[Graph]:
    """The bodies of a stack, those that are equal up to name and places once."""
    yield from (body.original for body in distinct(stack.bodies))


def asked(
    bodies: Sequence[Graph], question: Callable[[Graph], Iterable[Finding]]
) -> Iterator[tuple[Graph, list[Finding]]]:
    """What is found in each body; a copy of one in which nothing is found is not asked."""
    told = {id(body.original): list(question(body.original)) for body in distinct(bodies)}
    if any(told.values()):
        for body in bodies:
            known = told[id(body.original)]
            yield body, known if body is body.original or not known else list(question(body))
