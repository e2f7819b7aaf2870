"""The facts of one spec, short: sizes, parameters, cache, kinds of attention and norms, proofs; and how it differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from blockgraph.cost.parameters import number
from blockgraph.cost.report import Costs, costs
from blockgraph.diff import Difference, Structure, diff
from blockgraph.diff.facts import facts, norm_text
from blockgraph.diff.naming import shown
from blockgraph.diff.units import Unit, Units
from blockgraph.dims import Dim, show
from blockgraph.facts import prove, stacked_blocks, told
from blockgraph.gallery.exhibit import Exhibit
from blockgraph.graph import Graph, Node
from blockgraph.ops.attend import Attend
from blockgraph.records import dataclass

Fact = tuple[str, str]
BYTES = 2
"""Of a number in the cache: float16 or bfloat16."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is known of a spec: label and text. `brief` is for the index."""

    facts: tuple[Fact, ...] = ()
    brief: tuple[Fact, ...] = ()


def sheet(exhibit: Exhibit, structure: Structure | None) -> Sheet:
    """The facts of a spec; of one with errors only its sizes."""
    graph = exhibit.graph
    if graph is None or structure is None:
        return Sheet(tuple(_sizes(graph)) if graph is not None else ())
    proved = prove(graph)
    counted = list(_counted(costs(graph, width=BYTES), cached=proved.causal == "proved"))
    kinds = list(_kinds(structure))
    proofs = [("proofs", line) for line in told(proved)]
    found = (*_sizes(graph), *counted, *kinds, *proofs)
    return Sheet(found, (*counted, *kinds))


def differences(own: int, structures: Sequence[Structure | None]) -> list[tuple[int, list[str]]]:
    """What must be done to one spec to get each other, in lines; those that are most alike first."""
    mine = structures[own]
    if mine is None:
        return []
    others = [(number, other) for number, other in enumerate(structures) if other is not None and number != own]
    found = [(number, diff(mine, other), other) for number, other in others]
    ranked = sorted(found, key=lambda one: (-likeness(one[1], mine, one[2]), len(one[1].lines())))
    return [(number, difference.lines()) for number, difference, _ in ranked]


def likeness(found: Difference, mine: Structure, other: Structure) -> float:
    """The units that both have, of all that one of them has; one that differs inside counts half. 1 is the same."""
    if found.same_architecture:
        return 1.0
    common: dict[int, float] = {}
    for one in found.pairings:  # a body may be compared with several: its best partner counts
        matched = len(one.pairs) - len(one.touched) / 2
        common[id(one.left.graph)] = max(matched, common.get(id(one.left.graph), 0.0))
    both = sum(common.values())
    return both / (mine.size + other.size - both)


def _sizes(graph: Graph) -> Iterator[Fact]:
    sides = [
        ", ".join(f"{port.name} {show(graph.types[port.value].shape)}" for port in side)
        for side in (graph.inputs, graph.outputs)
    ]
    yield "computes", " → ".join(sides)
    if graph.dims:
        yield "sizes", ", ".join(f"{name} = {size}" for name, size in graph.dims.items())
    for condition in graph.conditions:
        yield "needs", condition.text


def _counted(found: Costs, *, cached: bool) -> Iterator[Fact]:
    """The parameters, and the cache of what is run token by token: what sees later tokens keeps none."""
    numbers = found.numbers
    if found.total is None:
        yield "parameters", "depend on the number of layers"
        return
    weights = found.total.weights
    yield "parameters", _count(weights.total, numbers)
    if weights.active != weights.total:
        yield "active parameters", _count(weights.active, numbers)
    caches = (found.cache_per_position or {}) if cached else {}
    if caches:
        each = (f"{_count(size, numbers)} bytes per token of {axis}" for axis, size in caches.items())
        yield f"KV cache, {BYTES} bytes a number", ", ".join(each)


def _count(size: Dim, numbers: dict[str, int]) -> str:
    known = number(size, numbers)
    return str(size) if known is None else f"{known:,}"


def _kinds(structure: Structure) -> Iterator[Fact]:
    """Attentions, placements and norms of the main module and the blocks in its stacks, each said once."""
    graphs = [structure.graph, *(body for _, body in stacked_blocks(structure.graph))]
    outlines = [structure.outline(graph) for graph in graphs]
    attentions = _once(text for one in outlines for text in _attentions(one.units, structure.graph.dims))
    yield from (("attention", text) for text in attentions)
    placements = _once(s.placement for one in outlines for s in one.standings.values() if s.residual != "none")
    if placements:
        yield "norm placement", ", ".join(placements)
    norms = _once(norm_text(one.units, unit) for one in outlines for unit in one.units.all if unit.is_norm)
    if norms:
        yield "norms", ", ".join(norms)


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _attentions(units: Units, numbers: dict[str, int]) -> Iterator[str]:
    for unit in units.all:
        for node in unit.nodes:
            if isinstance(node.op, Attend):
                yield ", ".join(_attention(units, unit, node, node.op, numbers))


def _attention(units: Units, unit: Unit, node: Node, op: Attend, numbers: dict[str, int]) -> Iterator[str]:
    """`grouped-query (H heads, G of keys and values), causal, window W, rotary positions (half, theta 10000)`."""
    shapes = [units.graph.types[value].shape or () for value in node.inputs[:2]]
    query, key = (shape[-3] if len(shape) > 2 else Dim(1) for shape in shapes)
    heads, groups = (_count(size, numbers) for size in (query, key))
    if query == key:
        yield f"multi-head ({heads} heads)"
    else:
        yield (
            f"multi-query ({heads} heads)"
            if key == 1
            else f"grouped-query ({heads} heads, {groups} of keys and values)"
        )
    lengths = [shape[-2] for shape in shapes if len(shape) > 1]
    if len(lengths) == 2 and lengths[0] != lengths[1]:
        yield f"across from {lengths[0]} to {lengths[1]}"
    yield "causal" if op.mask == "causal" else "sees all"
    more = facts(units, unit) if unit.op is None else {}
    yield from (_named(name, value) for name, value in more.items() if name.startswith("has ") and value is not None)


def _named(name: str, value: object) -> str:
    words = name.removeprefix("has ")
    return words if value is True else f"{words} {shown(value)}"
