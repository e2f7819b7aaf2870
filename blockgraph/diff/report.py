"""The whole difference of two models: their main graphs, and layer by layer the bodies of their stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from blockgraph.diff.canonical import symbols_in_order
from blockgraph.diff.changes import Change, merged, over_layers
from blockgraph.diff.compare import changes, pair
from blockgraph.diff.naming import Naming
from blockgraph.diff.pairing import Pairing
from blockgraph.diff.structure import Structure
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass

MANY_LAYERS = 10_000  # up to here layer by layer


@dataclass(frozen=True)
class Difference:
    """What differs, and the sizes that do; `pairings` are the graphs that were compared, for a drawing."""

    changes: tuple[Change, ...]
    sizes: tuple[str, ...]
    pairings: tuple[Pairing, ...] = ()

    @property
    def same_architecture(self) -> bool:
        """Whether the structures are equal; the sizes may differ."""
        return not self.changes

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.changes and not self.sizes

    def lines(self) -> list[str]:
        """A line for each change, and one for the sizes."""
        first = ["same architecture" + (" up to sizes" if self.sizes else "")] if self.same_architecture else []
        sizes = [f"sizes: {', '.join(self.sizes)}"] if self.sizes else []
        return [*first, *map(str, self.changes), *sizes]

    def __str__(self) -> str:
        """All in one line: `+ per-head RMSNorm on q and k; attention: kv_heads H -> 2`."""
        return "; ".join(self.lines())


@dataclass(frozen=True, slots=True)
class _Inner:
    """A pair of bodies: the pairing around it, the stack in words, and the layers at which both stand."""

    pairing: Pairing
    around: int = -1
    stack: str = ""
    layers: tuple[int, ...] = ()
    total: int = 0


def diff(left: Graph | Structure, right: Graph | Structure) -> Difference:
    """What must be done to the left graph to get the right one.

    Whoever compares a graph more than once gives a `Structure` of it, which works out once what all comparisons need.
    """
    ours, theirs = (one if isinstance(one, Structure) else Structure(one) for one in (left, right))
    naming = Naming(ours.graph, theirs.graph)
    if ours.canonical == theirs.canonical:
        naming.pairs = dict(zip(symbols_in_order(ours.graph), symbols_in_order(theirs.graph), strict=True))
        return Difference((), tuple(naming.sizes()))
    counts: list[Change] = []
    bodies = _bodies(ours, theirs, naming, counts)
    told = [*changes(bodies[0].pairing), *counts]
    for first, total in {(one.around, one.stack): one.total for one in bodies[1:]}.items():
        inner = [one for one in bodies[1:] if (one.around, one.stack) == first]
        told += over_layers(((c, one.layers) for one in inner for c in _in_stack(one, changes(one.pairing))), total)
    told = told or [_first(ours.canonical, theirs.canonical)]
    return Difference(tuple(merged(told)), tuple(naming.sizes()), tuple(one.pairing for one in bodies))


def _in_stack(inner: _Inner, found: list[Change]) -> Iterator[Change]:
    stack = inner.stack.partition(":")[2]
    for change in found:
        yield replace(change, stack=stack)


def _bodies(left: Structure, right: Structure, naming: Naming, counts: list[Change]) -> list[_Inner]:
    """The main graphs, then the bodies of matched stacks, outer ones first; what differs of stacks goes to `counts`."""
    found = [_Inner(_pair(left, right, left.graph, right.graph, naming))]
    for number, outer in enumerate(found):
        units = outer.pairing.left, outer.pairing.right
        stacks = [(i, j) for i, j in outer.pairing.pairs if units[0].all[i].repeat is not None]
        for i, j in stacks:
            one, other = units[0].all[i].repeat, units[1].all[j].repeat
            assert one is not None
            assert other is not None
            name = units[1].all[j].name if len(stacks) > 1 or number else ""
            counts += _counts(one, other, naming, (name,) if name else ())
            layers = _layers(one, other, naming)
            total = sum(len(at) for at in layers.values())
            key = f"{j}:{name}"
            found += [
                _Inner(_pair(left, right, one.bodies[a], other.bodies[b], naming), number, key, at, total)
                for (a, b), at in layers.items()
            ]
    return found


def _pair(left: Structure, right: Structure, one: Graph, other: Graph, naming: Naming) -> Pairing:
    return pair(left.outline(one), right.outline(other), naming)


def _counts(one: Repeat, other: Repeat, naming: Naming, names: tuple[str, ...]) -> Iterator[Change]:
    before, after = one.count.subs(dict(naming.left.dims)), other.count.subs(dict(naming.right.dims))
    if not naming.same(before, after):
        yield Change("~", f"{before} -> {after} layers", names)
    if one.shared != other.shared:
        yield Change("+" if other.shared else "-", "one set of parameters for all layers", names)
    if one.carried != other.carried:
        yield Change("~", "other values carried from layer to layer", names)


def _layers(one: Repeat, other: Repeat, naming: Naming) -> dict[tuple[int, int], tuple[int, ...]]:
    """The pairs of bodies that stand at the same layers, with these layers; each body once where they are not known."""
    ours, theirs = dict(naming.left.dims), dict(naming.right.dims)
    found: dict[tuple[int, int], list[int]] = {}
    if _countable(one, ours) and _countable(other, theirs):
        for layer, bodies in enumerate(zip(one.layers(ours), other.layers(theirs), strict=False)):
            found.setdefault(bodies, []).append(layer)
    else:
        last = len(one.bodies) - 1, len(other.bodies) - 1
        for n in range(max(len(one.bodies), len(other.bodies))):
            found.setdefault((min(n, last[0]), min(n, last[1])), []).append(n)
    return {bodies: tuple(layers) for bodies, layers in found.items()}


def _countable(stack: Repeat, dims: Mapping[str, int]) -> bool:
    return not stack.count.symbols - dims.keys() and stack.count.evaluate(dict(dims)) <= MANY_LAYERS


def _first(ours: list[str], theirs: list[str]) -> Change:
    """The first place where the canonical forms part, when no rule has a word for it."""
    pairs = zip(ours, theirs, strict=False)
    one, other = next(((a, b) for a, b in pairs if a != b), (f"{len(ours)} steps", f"{len(theirs)} steps"))
    return Change("~", f"the wiring differs: {one} -> {other}")
