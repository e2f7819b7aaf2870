"""What one op costs, and how costs add up. FLOPs count a multiply-add as two; sizes are in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace

from blockgraph.dims import Dim
from blockgraph.graph import Graph, Node
from blockgraph.op import Op, Type, volume
from blockgraph.ops.attend import Attend
from blockgraph.ops.leaf import Constant, Leaf
from blockgraph.records import dataclass

ZERO = Dim(0)
VIEWS = frozenset({"heads", "index", "stop_gradient", "transpose"})
"""Ops that look at their operand's memory and take none of their own. The tests hold this against NumPy."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Numbers of parameters: all, those that are active for a position, and those in embedding tables."""

    total: Dim = ZERO
    active: Dim = ZERO
    embedding: Dim = ZERO

    def __add__(self, other: Weights) -> Weights:
        return Weights(self.total + other.total, self.active + other.active, self.embedding + other.embedding)

    def times(self, factor: Dim) -> Weights:
        """As many as `factor` of them have."""
        return Weights(self.total * factor, self.active * factor, self.embedding * factor)


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values that an attention keeps: `width` bytes for each of min(keys, window) positions."""

    name: str
    width: Dim
    keys: Dim
    window: Dim | None = None

    def bytes(self, numbers: dict[str, int]) -> int | None:
        """The bytes, None while a size has no number."""
        dims = (self.width, self.keys, *((self.window,) if self.window is not None else ()))
        if any(dim.symbols - numbers.keys() for dim in dims):
            return None
        return int(self.width.evaluate(numbers) * min(dim.evaluate(numbers) for dim in dims[1:]))

    def formula(self, numbers: dict[str, int]) -> str:
        """`8*B*D*G*min(T, W)`; without `min` where the numbers decide."""
        if self.window is None:
            return str(self.width * self.keys)
        if not (self.keys.symbols | self.window.symbols) - numbers.keys():
            return str(self.width * min((self.keys, self.window), key=lambda dim: dim.evaluate(numbers)))
        width = f"({self.width})" if len(self.width.terms) > 1 else str(self.width)
        return f"{width}*min({self.keys}, {self.window})"


@dataclass(frozen=True, slots=True)
class Tally:
    """Costs of an op, a part or a model.

    `own` are parameters that every layer has for itself, `once` those that all layers share. `products` are forward
    FLOPs in matrix products, `elementwise` the others; `activations` the bytes of what the ops put out.
    """

    own: Weights = field(default_factory=Weights)
    once: Weights = field(default_factory=Weights)
    products: Dim = ZERO
    elementwise: Dim = ZERO
    activations: Dim = ZERO
    caches: tuple[Cache, ...] = ()

    @property
    def weights(self) -> Weights:
        """All parameters."""
        return self.own + self.once

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.own + other.own,
            self.once + other.once,
            self.products + other.products,
            self.elementwise + other.elementwise,
            self.activations + other.activations,
            self.caches + other.caches,
        )

    def times(self, layers: Dim, shared: bool = False) -> Tally:
        """The costs of so many layers; with `shared` all of them have one set of parameters."""
        return Tally(
            Weights() if shared else self.own.times(layers),
            self.own + self.once if shared else self.once,
            self.products * layers,
            self.elementwise * layers,
            self.activations * layers,
            tuple(replace(cache, width=cache.width * layers) for cache in self.caches),
        )

    def for_share(self, share: Dim) -> Tally:
        """The work for a share of the positions; what is put out takes its memory all the same."""
        return replace(self, products=self.products * share, elementwise=self.elementwise * share)

    def without_weights(self) -> Tally:
        """The same where the parameters were counted before."""
        return replace(self, own=Weights(), once=Weights())


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum."""
    return sum(tallies, Tally())


@dataclass(frozen=True, slots=True)
class Counting:
    """The conventions: bytes of a float, and whether a causal mask halves the products of attention."""

    width: int = 4
    causal: bool = False

    def bytes(self, given: Type) -> Dim:
        """Of a value: floats as said, ids 8, booleans 1."""
        return volume(given.shape) * {"float": self.width, "int": 8, "bool": 1}[given.dtype]

    def work(self, node: Node, op: Op, types: Callable[[Iterable[int]], tuple[Type, ...]], name: str) -> Tally:
        """The costs of a node that is no parameter, computed for all positions."""
        if isinstance(op, Leaf | Constant):
            return Tally()
        given, outs = types(node.inputs), types(node.outputs)
        cost = op.cost(given, outs)
        held = ZERO if op.name in VIEWS else sum((self.bytes(out) for out in outs), ZERO)
        if not isinstance(op, Attend):
            return Tally(products=cost.products, elementwise=cost.elementwise, activations=held)
        skipped = self._unseen(op, given) if self.causal else ZERO
        cache = self._cache(op, given, name)
        return Tally(
            products=cost.products - skipped,
            elementwise=cost.elementwise,
            activations=held,
            caches=() if cache is None else (cache,),
        )

    def _unseen(self, op: Attend, given: tuple[Type, ...]) -> Dim:
        """The FLOPs of the T*T/2 pairs of query and key that a causal mask hides; half of all where S is T."""
        q, _, v = (one.shape for one in given[:3])
        if op.mask != "causal" or q is None or v is None:
            return ZERO
        return volume(q[:-2]) * (q[-1] + v[-1]) * q[-2] * q[-2]

    def _cache(self, op: Attend, given: tuple[Type, ...], name: str) -> Cache | None:
        k, v = given[1].shape, given[2].shape
        if k is None or v is None:
            return None
        window = None if op.window is None else Dim(op.window)
        return Cache(name, (volume(k[:-2]) * k[-1] + volume(v[:-2]) * v[-1]) * self.width, k[-2], window)


def types_of(graph: Graph) -> Callable[[Iterable[int]], tuple[Type, ...]]:
    """What tells the types of some values of a graph."""
    return lambda values: tuple(graph.types[value] for value in values)
