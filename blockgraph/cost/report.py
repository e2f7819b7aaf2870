"""The costs of a model: of the whole, of each part, of each kind of layer."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from blockgraph.cost.bodies import Body, bodies
from blockgraph.cost.nodes import NodeCosts
from blockgraph.cost.parameters import Shared, shared_parameters
from blockgraph.cost.tally import Counting, Tally, total
from blockgraph.dims import Dim
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.records import dataclass

EQUATIONS = "equations"


@dataclass(frozen=True, slots=True)
class Row:
    """A part. `depth` is how far in it stands, `times` how many layers have one (None: not known).

    `tally` holds the costs of one of them; None where they depend on an unknown number of layers.
    A row with `inner` is the sum of the rows that follow it, deeper in.
    """

    name: str
    kind: str
    depth: int
    tally: Tally | None
    times: Dim | None = Dim(1)
    inner: bool = False
    all_layers: Tally | None = None


@dataclass(frozen=True)
class Costs:
    """All costs of a graph. `numbers` are those of its symbols as far as they are known."""

    graph: Graph
    counting: Counting
    rows: tuple[Row, ...]
    shared: tuple[Shared, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the symbols."""
        return self.graph.dims

    @cached_property
    def total(self) -> Tally | None:
        """The whole model; None where the number of layers must be known."""
        tallies = [row.all_layers for row in self.rows if row.depth == 0]
        return None if None in tallies else total(one for one in tallies if one is not None)

    @property
    def cache_per_position(self) -> dict[str, Dim] | None:
        """Bytes of keys and values that one position of one sequence takes, by the length it is a position of.

        `{"T": 4*G*D*N}`; all attentions count, those of an encoder too. None where the number of layers must be known.
        """
        if self.total is None:
            return None
        batch = {symbol: 1 for symbol in self._batch}
        found: defaultdict[str, Dim] = defaultdict(lambda: Dim(0))
        for cache in self.total.caches:
            found[str(cache.keys)] += cache.width.subs(batch)
        return dict(found)

    @property
    def _batch(self) -> set[str]:
        """The symbols that are the first of several axes of an input and nothing else."""
        shapes = [self.graph.types[port.value].shape or () for port in self.graph.inputs]
        later = {symbol for shape in shapes for dim in shape[1:] for symbol in dim.symbols}
        first = {symbol for shape in shapes if len(shape) > 1 for symbol in shape[0].symbols}
        return first - later - self.numbers.keys()

    @cached_property
    def kinds(self) -> dict[str, Tally | None]:
        """By kind: the sum over all parts of that kind, in all layers; None where it is not known."""
        found: defaultdict[str, list[Tally | None]] = defaultdict(list)
        for row in self.rows:
            if not row.inner:
                found[row.kind].append(row.all_layers)
        return {
            kind: None if None in each else total(one for one in each if one is not None)
            for kind, each in found.items()
        }


def costs(graph: Graph, width: int = 4, causal: bool = False) -> Costs:
    """The costs of a graph with its stacks folded; `width` is the bytes of a float.

    Products and elementwise FLOPs are those of one forward over inputs of the given sizes; a part that matters for
    k of E choices only (an expert of a mixture) counts k/E. With `causal` the products of an attention with a causal
    mask lose T*T/2 of their T*S pairs of query and key. The backward pass is twice the products of the forward.
    """
    counting = Counting(width, causal)
    found = bodies(graph)
    listed: list[list[Row]] = [[] for _ in found]
    sums: list[Tally | None] = [None] * len(found)
    for index in reversed(range(len(found))):  # a body's stacks come before the body
        inside = {(one.node, one.turn): (listed[i], sums[i], one) for i, one in enumerate(found) if one.parent == index}
        listed[index], sums[index] = _Listing(found[index], counting, graph.dims, inside).rows()
    return Costs(graph, counting, tuple(listed[0]), shared_parameters(graph))


Inside = dict[tuple[int, int], tuple[list[Row], Tally | None, Body]]


@dataclass(frozen=True)
class _Listing:
    """The rows of one body, from those of the bodies of its stacks."""

    body: Body
    counting: Counting
    numbers: dict[str, int]
    inside: Inside

    def rows(self) -> tuple[list[Row], Tally | None]:
        """The rows of one layer in the order of the equations, what belongs to no part last, and their sum."""
        units: defaultdict[tuple[str, str, int], list[Tally]] = defaultdict(list)
        order: dict[tuple[str, str, int], list[Row]] = {}
        for node in self.body.graph.nodes:
            unit = self._unit(node)
            if isinstance(node.op, Repeat):
                order.setdefault((*unit[:2], node.id), []).extend(self._stack(node, node.op, unit))
            else:
                units[unit].append(self._nodes.tally(node, unit[0]))
                order.setdefault(unit, [])
        found: list[Row] = []
        for unit, rows in sorted(order.items(), key=lambda item: item[0][0] == EQUATIONS):
            one = total(units[unit])
            found += rows or ([Row(unit[0], unit[1], 0, one, all_layers=one)] if one != Tally() else [])
        tallies = [row.all_layers for row in found if row.depth == 0]
        return found, None if None in tallies else total(one for one in tallies if one is not None)

    def _unit(self, node: Node) -> tuple[str, str, int]:
        """Name and kind of the part that a node belongs to: the outermost one that is no block of the file."""
        graph, path = self.body.graph, node.scope.split(".") if node.scope else []
        block = ""
        for end in range(1, len(path) + 1):
            scope = graph.scopes[".".join(path[:end])]
            if scope.family != "block":
                return scope.path, scope.kind, -1
            block = scope.path
        return f"{block}.{EQUATIONS}" if block else EQUATIONS, EQUATIONS, -1

    @cached_property
    def _nodes(self) -> NodeCosts:
        return NodeCosts(self.body, self.counting, self.numbers)

    def _stack(self, node: Node, op: Repeat, unit: tuple[str, str, int]) -> list[Row]:
        """A row for the stack, then for each of its bodies a row of one layer and the parts in it."""
        rows: list[Row] = []
        sums: list[Tally | None] = []
        for turn, graph in enumerate(op.bodies):
            if (node.id, turn) not in self.inside:
                continue
            inner, one, body = self.inside[node.id, turn]
            one = one.without_weights() if one is not None and body.again else one
            every = None if one is None or body.layers is None else one.times(body.layers, body.once)
            sums.append(every)
            rows.append(Row(graph.name or unit[0], graph.name, 1, one, body.layers, inner=True, all_layers=every))
            rows += [_deeper(row, body) for row in inner]
        whole = None if None in sums else total(one for one in sums if one is not None)
        return [Row(unit[0], "stack", 0, whole, Dim(1), inner=True, all_layers=whole), *rows]


def _deeper(row: Row, body: Body) -> Row:
    """A row of a body as one of the module around: two steps in, and as often as the body has layers."""
    known = row.all_layers is not None and body.layers is not None
    tally = row.tally.without_weights() if row.tally is not None and body.again else row.tally
    every = row.all_layers.without_weights() if row.all_layers is not None and body.again else row.all_layers
    times = None if row.times is None or body.layers is None else row.times * body.layers
    return Row(
        row.name,
        row.kind,
        row.depth + 2,
        tally,
        times,
        row.inner,
        every.times(body.layers, body.once) if known else None,  # type: ignore[union-attr,arg-type]
    )
