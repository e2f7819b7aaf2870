"""How much memory a run takes, from shapes and lifetimes alone: nothing is allocated, no stack is written out.

It follows the plain interpreter: a value lives from the op that makes it to the last that reads it, a trace keeps
every named one, and an op needs room of its own while it computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from blockgraph.cost.parameters import count_parameters
from blockgraph.cost.tally import VIEWS
from blockgraph.dims import Dim, Shape, show
from blockgraph.errors import Place
from blockgraph.graph import Graph, GraphBuilder, Node, Repeat
from blockgraph.op import Op, Type
from blockgraph.ops.attend import Attend, pieces
from blockgraph.ops.axes import ByPattern
from blockgraph.ops.join import Split
from blockgraph.ops.leaf import Constant, Input, Leaf, Param
from blockgraph.ops.visible import View
from blockgraph.pattern import parse
from blockgraph.records import dataclass

WORKING = 2 << 20
"""Bytes for the calls of a run, and for the chunks that functions of one element take at once."""
WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One value: the name of its node, its shape, its bytes. `held` is False if the run never has all of it at once.

    The scores of `attend` are such a value: they are worked through in blocks of queries.
    """

    name: str
    shape: Shape = ()
    bytes: int = 0
    held: bool = True
    place: Place | None = None

    def __str__(self) -> str:
        return f"{self.name} {show(self.shape)}"


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes of a run: all parameters, the inputs, the most that is alive of other values at any time, and `working`.

    `largest` is the largest tensor when every op is spelled out, `largest_held` the largest that the run has whole.
    """

    parameters: int
    inputs: int
    values: int
    largest: Tensor
    largest_held: Tensor
    working: int = WORKING

    @property
    def total(self) -> int:
        """The bytes that a run needs at the most."""
        return self.parameters + self.inputs + self.values + self.working


def memory(graph: Graph, numbers: Mapping[str, int], dtype: str = "float32", traced: bool = False) -> MemoryReport:
    """The memory of a run of the folded graph; `numbers` holds every symbol, `traced` keeps every named value.

    Raises DimError where a size has no number.
    """
    sizes = _Sizes({**graph.dims, **numbers}, WIDTHS[dtype], traced)
    weights, inputs = _weights(graph, sizes), sum(sizes.bytes(graph.types[port.value]) for port in graph.inputs)
    life = sizes.life(graph)
    for port in graph.inputs:
        given = graph.types[port.value]
        sizes.consider(Tensor(port.name, given.shape or (), sizes.bytes(given)))
    return MemoryReport(weights, inputs, life.peak, sizes.largest, sizes.largest_held)


def looks(op: Op | Repeat) -> bool:
    """Whether an op looks at its operand's memory when it runs, whatever the layout: it joins no axes."""
    if isinstance(op, ByPattern):
        return all(isinstance(axis, str) for axis in parse(op.axes).outputs[0])
    return isinstance(op, Split) or op.name in VIEWS


@dataclass(frozen=True, slots=True)
class _Life:
    """Of one body: the most bytes alive at once, and those that a trace keeps of each layer; inputs are not in it."""

    peak: int
    kept: int = 0


@dataclass(slots=True)
class _Sizes:
    """The sizes of one run, and the largest tensors met so far."""

    numbers: dict[str, int]
    width: int
    traced: bool
    largest: Tensor = field(default_factory=lambda: Tensor("nothing"))
    largest_held: Tensor = field(default_factory=lambda: Tensor("nothing"))
    spelled: dict[tuple[Op, tuple[Type, ...]], Tensor] = field(default_factory=dict)

    def volume(self, shape: Shape | None) -> int:
        """The number of elements."""
        total = 1
        for dim in shape or ():
            total *= int(dim.evaluate(self.numbers))
        return total

    def bytes(self, given: Type) -> int:
        """The bytes of a value."""
        return self.volume(given.shape) * {"float": self.width, "int": 8, "bool": 1}[given.dtype]

    def consider(self, tensor: Tensor) -> None:
        """Keep it if it is larger than all before."""
        if tensor.bytes > self.largest.bytes:
            self.largest = tensor
        if tensor.held and tensor.bytes > self.largest_held.bytes:
            self.largest_held = tensor

    def life(self, graph: Graph) -> _Life:
        """That of the main module: every body inside comes before the one around it."""
        order: list[tuple[Graph, str]] = [(graph, "")]
        for body, prefix in order:  # grows on the way
            stacks = (node.op for node in body.nodes if isinstance(node.op, Repeat))
            order += [(inner, f"{prefix}{op.path}.*.") for op in stacks for inner in op.bodies]
        lives: dict[int, _Life] = {}
        for body, prefix in reversed(order):
            lives[id(body)] = _Walk(body, prefix, self, lives).life()
        return lives[id(graph)]


@dataclass(slots=True)
class _Walk:
    """One body, node by node."""

    graph: Graph
    prefix: str
    sizes: _Sizes
    lives: Mapping[int, _Life]

    def life(self) -> _Life:
        """What is alive while each node runs. The inputs count in the body around, where they were made."""
        owner = self._owners()
        named = set(self.graph.named.values()) if self.sizes.traced else set()
        stays = {owner[value] for value in named} | {owner[port.value] for port in self.graph.outputs}
        last = {owner[value]: node.id for node in self.graph.nodes for value in node.inputs}
        alive: dict[int, int] = {}
        peak = now = layers = 0
        for node in self.graph.nodes:
            made = self._made(node, owner)
            peak = max(peak, now + sum(made.values()) + self._room(node))
            alive |= made
            inside = self._kept(node)
            now, layers = now + sum(made.values()) + inside, layers + inside
            for value in {owner[one] for one in (*node.inputs, *node.outputs)}:
                if last.get(value, node.id) <= node.id and value not in stays:
                    now -= alive.pop(value, 0)
        return _Life(peak, layers + sum(alive.get(value, 0) for value in {owner[one] for one in named}))

    def _owners(self) -> dict[int, int]:
        """Whose memory each value looks at: its own, except for views."""
        found: dict[int, int] = {}
        for node in self.graph.nodes:
            for value in node.outputs:
                found[value] = found[node.inputs[0]] if looks(node.op) else value
        return found

    def _made(self, node: Node, owner: Mapping[int, int]) -> dict[int, int]:
        """The bytes of the new values of a node; inputs, parameters and numbers are there already."""
        if isinstance(node.op, Leaf):
            if isinstance(node.op, Param):
                given = self.graph.types[node.outputs[0]]
                self.sizes.consider(Tensor(self.prefix + node.op.path, given.shape or (), self.sizes.bytes(given)))
            if isinstance(node.op, Input | Param | Constant):
                return {}
        made = {}
        for value in node.outputs:
            if owner[value] == value:
                made[value] = self.sizes.bytes(self.graph.types[value])
                self.sizes.consider(self._tensor(node, value, made[value]))
        return made

    def _tensor(self, node: Node, value: int, size: int) -> Tensor:
        where = f"{self.prefix}{node.scope}" if node.scope else self.prefix.rstrip(".*")
        name = ": ".join(filter(None, (where, node.op.name)))
        return Tensor(name, self.graph.types[value].shape or (), size, place=node.place)

    def _room(self, node: Node) -> int:
        """The bytes that an op needs beside its operands and its results while it runs."""
        if isinstance(node.op, Repeat):
            return self._layers(node.op)
        types = tuple(self.graph.types[value] for value in node.inputs)
        outs = tuple(self.graph.types[value] for value in node.outputs)
        if isinstance(node.op, Leaf) or looks(node.op):
            return 0
        self._spell(node, node.op, types)
        if isinstance(node.op, Attend):
            return self._block(node.op, types)
        return int(node.op.room(types, outs).evaluate(self.sizes.numbers)) * self.sizes.width

    def _layers(self, op: Repeat) -> int:
        """The peak within a stack: that of its largest layer, on top of what the layers before it keep."""
        layers = int(op.count.evaluate(self.sizes.numbers))
        inner = [self.lives[id(body)] for body in op.bodies]
        before = max(life.kept for life in inner) * max(0, layers - 1)
        return before + max(life.peak for life in inner) if layers else 0

    def _kept(self, node: Node) -> int:
        """The bytes that a stack's layers leave behind in a trace."""
        if not isinstance(node.op, Repeat):
            return 0
        most = max(self.lives[id(body)].kept for body in node.op.bodies)
        return most * int(node.op.count.evaluate(self.sizes.numbers))

    def _block(self, op: Attend, types: tuple[Type, ...]) -> int:
        """What attention holds while it takes a block of queries: that block, and the one before it.

        Of each the scores, with a cap also its slope, and the scaled queries; of one what scores become on the way.
        """
        q, k, v = (one.shape or () for one in types[:3])
        others, steps, keys = (self.sizes.volume(shape) for shape in (q[:-2], q[-2:-1], k[-2:-1]))
        window = None if op.window is None else int(Dim(op.window).evaluate(self.sizes.numbers))
        view = View(steps, keys, op.mask == "causal", window)
        blocks = list(view.blocks(others))
        if not blocks:
            return 0
        rows = blocks[0].stop
        seen = max(one.stop - one.start for one in map(view.seen, blocks[:: max(1, len(blocks) // 8)] + blocks[-1:]))
        scores, held = others * rows * seen, min(len(blocks), 2)
        capped = op.softcap is not None
        each = scores * (2 if capped else 1) + others * rows * (self.sizes.volume(q[-1:]) + 4)
        passing = max(scores if capped or op.alibi else 0, others * rows * self.sizes.volume(v[-1:]))
        masks = rows * seen * ((3 if op.local else 0) + (16 if op.alibi else 0))
        keeps = sum(
            self.sizes.volume(one.shape[:1]) * rows * seen for one in types[3:] if one.dtype == "bool" and one.shape
        )
        return int((held * each + passing) * self.sizes.width + masks + keeps)

    def _spell(self, node: Node, op: Op, types: tuple[Type, ...]) -> None:
        """Meet the values that a composite op would have if it were written out."""
        if type(op).expand is Op.expand:
            return
        largest = self.sizes.spelled.get((op, types))
        if largest is None:
            largest = self.sizes.spelled[op, types] = _largest_within(op, types, self.sizes)
        where = f"{self.prefix}{node.scope}" if node.scope else self.prefix.rstrip(".*")
        name = ": ".join(filter(None, (where, largest.name)))
        self.sizes.consider(Tensor(name, largest.shape, largest.bytes, held=False, place=node.place))


def _largest_within(op: Op, types: tuple[Type, ...], sizes: _Sizes) -> Tensor:
    """The largest value of an op's expansion: for attention it is the scores."""
    builder = GraphBuilder()
    operands = [builder.append(Input("", one.shape or (), one.dtype), (), (one,))[0] for one in types]
    named: dict[int, str] = {}
    if isinstance(op, Attend):
        named = {value: name for name, value in pieces(op, builder, *operands).items()}
    else:
        op.expand(builder, *operands)
    values = [value for node in builder.nodes if not isinstance(node.op, Leaf) for value in node.outputs]
    ranked = max(values, key=lambda value: (sizes.bytes(builder.types[value]), value in named, -value), default=None)
    if ranked is None:
        return Tensor(op.name)
    inner = named.get(ranked) or next(node.op.name for node in builder.nodes if ranked in node.outputs)
    given = builder.types[ranked]
    return Tensor(f"{inner} of {op.name}", given.shape or (), sizes.bytes(given))


def _weights(graph: Graph, sizes: _Sizes) -> int:
    """The bytes of all parameters, each shared one once."""
    count = count_parameters(replace(graph, dims=sizes.numbers))
    assert count is not None, "all numbers are known"
    return int(count.evaluate(sizes.numbers)) * sizes.width
