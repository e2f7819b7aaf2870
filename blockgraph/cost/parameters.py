"""How many parameters a graph has, each shared one once, and which are used in more than one place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod

from blockgraph.cost.bodies import Body, bodies
from blockgraph.cost.demand import density
from blockgraph.cost.tally import Weights
from blockgraph.dims import Dim, DimError, Shape
from blockgraph.graph import Graph, Node
from blockgraph.op import volume
from blockgraph.ops.gather import Lookup
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Shared:
    """Parameters of one set that is used in several places: `uses` of them, None when that is not known."""

    name: str
    parameters: Dim
    uses: Dim | None


def count_parameters(graph: Graph) -> Dim | None:
    """sum over parameters of the product of their axes, each shared one once.

    A stack counts each body as often as it has layers of its own, in the time of one. None when that is not known:
    several bodies take turns in a stack whose number of layers has no number.
    """
    found: Counter[tuple[Shape, Dim]] = Counter()  # shape and number of copies -> how often
    copies: list[Dim | None] = []
    for body in bodies(graph):
        copies.append(_copies(body, copies))
        own = copies[-1]
        if body.again:
            continue
        if own is None:
            return None
        for node in body.graph.parameters.values():
            assert isinstance(node.op, Param)
            found[node.op.dims, Dim(1) if node.op.shared else own] += 1
    return sum((prod(shape, start=own) * times for (shape, own), times in found.items()), Dim(0))


def number_of_parameters(graph: Graph) -> int | None:
    """The count as a number; None while a size has none."""
    count = count_parameters(graph)
    return None if count is None else number(count, graph.dims)


def number(size: Dim, numbers: dict[str, int]) -> int | None:
    """The size as a whole number; None while a symbol has none."""
    if size.symbols - numbers.keys():
        return None
    try:
        value = size.evaluate(numbers)
    except DimError:
        return None
    return int(value) if value.denominator == 1 else None


def _copies(body: Body, before: list[Dim | None]) -> Dim | None:
    """The sets of parameters of a body, `before` holding those of the bodies around it."""
    around = before[body.parent] if body.parent >= 0 and not body.inherited else Dim(1)
    layers = Dim(1) if body.once else body.layers
    return None if around is None or layers is None else around * layers


def weights_of(body: Body, node: Node, op: Param, rows: set[int], numbers: dict[str, int]) -> Weights:
    """A parameter's numbers: it is active for the positions for which it matters. `rows` are those of `tables`."""
    size = volume(op.dims)
    share = body.share * density(body.graph, body.demands, node.outputs, numbers)
    return Weights(size, size * share, size if node.outputs[0] in rows else Dim(0))


def tables(graph: Graph) -> set[int]:
    """The parameters that hold rows: those of embeddings and positions, and whatever `lookup` reads."""
    read = {node.inputs[0] for node in graph.nodes if isinstance(node.op, Lookup)}
    for node in graph.parameters.values():
        scope = graph.scopes.get(node.scope)
        if scope is not None and scope.family == "embedding":
            read.add(node.outputs[0])
    return read


def shared_parameters(graph: Graph) -> tuple[Shared, ...]:
    """The parameters that more than one place uses: tied tables, parts that are called again, shared layers."""
    found: list[Shared] = []
    for body in bodies(graph):
        if body.again:
            continue
        if body.once and body.layers != 1:
            size = sum((volume(node.op.dims) for node in body.graph.parameters.values()), Dim(0))  # type: ignore[union-attr]
            found.append(Shared(body.prefix.removesuffix(".*."), size, body.layers))
            continue
        found += _within(body)
    return tuple(found)


def _within(body: Body) -> Iterator[Shared]:
    """The shared parameters of one body; those of one part with as many uses are named by the part."""
    uses: Counter[int] = Counter(value for node in body.graph.nodes for value in node.inputs)
    groups: defaultdict[tuple[str, Dim | None], list[Node]] = defaultdict(list)
    for name, node in body.graph.parameters.items():
        assert isinstance(node.op, Param)
        times = Dim(uses[node.outputs[0]])
        total = times if not node.op.shared else None if body.layers is None else times * body.layers
        if total is None or total != 1:
            groups[name.rpartition(".")[0], total].append(node)
    for (part, total), nodes in groups.items():
        name = nodes[0].op.path if len(nodes) == 1 or not part else part  # type: ignore[union-attr]
        size = sum((volume(node.op.dims) for node in nodes), Dim(0))  # type: ignore[union-attr]
        if total != 0:
            yield Shared(body.prefix + name, size, total)
