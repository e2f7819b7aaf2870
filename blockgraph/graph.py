"""The waist of the hourglass: the front end writes a `Graph`, every back end reads one.

A graph is a list of nodes in the order in which they can run. A node is an op or a `Repeat`, the only
nesting: a stack keeps one body per distinct layer, so a graph costs the same for 12 layers and for 10,000.
`unrolled()` writes the layers out for those who need them. Values are integer handles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from blockgraph.alike import Shift
from blockgraph.dims import Dim, show
from blockgraph.errors import Place
from blockgraph.op import Op, Type
from blockgraph.records import dataclass

if TYPE_CHECKING:
    import networkx

ROOT = ""
PLACED = frozenset({"nodes", "scopes", "steps"})  # the fields of a graph in which places of the file stand


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of layers in a stack: `count` layers that cycle through `bodies` (indices into `Repeat.bodies`)."""

    bodies: tuple[int, ...]
    count: Dim


@dataclass(frozen=True, slots=True)
class Repeat:
    """A stack: bodies, the segments that say which layer has which body, and the inputs that are carried.

    The node's inputs are the stack's arguments in the order of the body's inputs; its outputs follow the
    body's outputs. `carried[i]` is the input that output i of one layer becomes in the next, or None.
    With `shared`, all uses of one body have the parameters of the first. `inherited`: the stack stands in a shared
    part, so each of its layers has one set of parameters for all layers of the stack around it.
    """

    path: str
    bodies: tuple[Graph, ...]
    segments: tuple[Segment, ...]
    carried: tuple[int | None, ...]
    shared: bool = False
    inherited: bool = False

    @property
    def name(self) -> str:
        """The name under which it is listed beside ops."""
        return "repeat"

    @property
    def count(self) -> Dim:
        """The number of layers."""
        return sum((segment.count for segment in self.segments), Dim(0))

    def layers(self, values: dict[str, int]) -> Iterator[int]:
        """The body index of each layer in turn; `values` are the numbers of the dims in the counts."""
        for segment in self.segments:
            for layer in range(int(segment.count.evaluate(values))):
                yield segment.bodies[layer % len(segment.bodies)]

    def label(self) -> str:
        """Short text for a drawing: `× 12`."""
        return f"× {self.count}"


@dataclass(frozen=True, slots=True)
class Node:
    """One step: an op or a stack, its operands in order and where it comes from.

    `scope` is the key of the part it belongs to, `text` the stretch of equation that made it.
    """

    id: int
    op: Op | Repeat
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scope: str = ROOT
    place: Place | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """One call of a part: what it is and how a drawing names it.

    The key under which `Graph.scopes` holds it is its path, with `#2` and so on after a part that is called
    again (`ff`, `ff#2`); the scope around it is the key before the last dot.
    """

    path: str
    kind: str
    title: str = ""
    detail: str = ""
    family: str = "other"
    calls: int = 1
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A named value: a target of an equation (`x.2`, `attention.query`) or what a part returned (`norm1`).

    `depth` 0 is the main module; `op` is the op or kind that made it, `text` the equation.
    """

    name: str
    value: int
    text: str
    op: str
    depth: int
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a graph. `below` bounds ids."""

    name: str
    value: int
    below: Dim | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that must hold for the numbers: `H divides C`, `T <= 1024`; checked when they are known."""

    text: str
    smaller: Dim
    larger: Dim
    relation: str
    place: Place

    @property
    def symbols(self) -> frozenset[str]:
        """The sizes it is about."""
        return self.smaller.symbols | self.larger.symbols

    def holds(self, values: dict[str, int]) -> bool | None:
        """Whether it holds, or None while a number is missing."""
        if self.symbols - values.keys():
            return None
        small, large = self.smaller.evaluate(values), self.larger.evaluate(values)
        if self.relation == "divides":
            return small != 0 and (large / small).denominator == 1
        return small <= large


@dataclass(frozen=True, repr=False)
class Graph:
    """Nodes in running order, the types of all values, and the names people know them by.

    `draws` lists what is drawn when parameters are made, in order: names of parameters, and ids of `Repeat` nodes.
    `dims` are the numbers bound to symbols so far, `waived` the codes of lints that the spec's own options overrule.
    """

    name: str
    nodes: tuple[Node, ...]
    types: tuple[Type, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    scopes: dict[str, Scope] = field(default_factory=dict)
    steps: tuple[Step, ...] = field(default_factory=tuple)
    draws: tuple[str | int, ...] = ()
    conditions: tuple[Condition, ...] = ()
    dims: dict[str, int] = field(default_factory=dict)
    waived: frozenset[str] = frozenset()

    def elsewhere(self, name: str, shift: Shift) -> Graph:
        """The same graph of a block of another name that reads the same; its places are made when asked for."""
        made = object.__new__(Graph)
        own = self.__dict__
        made.__dict__.update({one: own[one] for one in _UNPLACED}, name=name, _moved=(self, shift))
        return made

    @property
    def shift(self) -> Shift | None:
        """How this graph's places differ from those of its original."""
        return self.__dict__["_moved"][1] if "_moved" in self.__dict__ else None

    @property
    def original(self) -> Graph:
        """The graph that this one is equal to up to name and places: the same questions have the same answers."""
        return self.__dict__["_moved"][0] if "_moved" in self.__dict__ else self

    def __getattr__(self, name: str) -> Any:
        if name not in PLACED or "_moved" not in self.__dict__:
            raise AttributeError(f"a graph has no attribute {name!r}")
        source, shift = self.__dict__["_moved"]
        self.__dict__.update(
            nodes=tuple(_moved(node, shift) for node in source.nodes),
            scopes={key: _moved(scope, shift) for key, scope in source.scopes.items()},
            steps=tuple(_moved(step, shift) for step in source.steps),
        )
        return self.__dict__[name]

    def __repr__(self) -> str:
        """One line: a graph's nodes are for its table and its picture."""
        sides = (
            ", ".join(f"{port.name} {show(self.types[port.value].shape)}" for port in side)
            for side in (self.inputs, self.outputs)
        )
        return f"<Graph {self.name}: {' -> '.join(sides)}, {len(self.nodes)} nodes>"

    @cached_property
    def producers(self) -> dict[int, Node]:
        """The node that makes each value."""
        return {value: node for node in self.nodes for value in node.outputs}

    @cached_property
    def worked_out(self) -> dict[Any, Any]:
        """What back ends have worked out of this graph alone, by question: they keep it here for the next who asks."""
        return {}

    @cached_property
    def by_class(self) -> dict[type[Op | Repeat], list[Node]]:
        """The nodes of each class of ops, in order."""
        found: dict[type[Op | Repeat], list[Node]] = {}
        for node in self.nodes:
            found.setdefault(type(node.op), []).append(node)
        return found

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The sizes that stand in options of its ops, without those of the bodies of stacks."""
        return frozenset(symbol for node in self.nodes if isinstance(node.op, Op) for symbol in node.op.symbols)

    @cached_property
    def only_readers(self) -> dict[int, Node]:
        """The one node that reads a value, for values that only one operand is and the graph does not return."""
        found: dict[int, Node | None] = {port.value: None for port in self.outputs}
        for node in self.nodes:
            for value in node.inputs:
                found[value] = None if value in found else node
        return {value: node for value, node in found.items() if node is not None}

    @cached_property
    def parameters(self) -> dict[str, Node]:
        """The parameter nodes of this graph by name, those inside stacks not included."""
        return {node.op.path: node for node in self.nodes if is_parameter(node.op)}  # type: ignore[union-attr]

    @cached_property
    def named(self) -> dict[str, int]:
        """Every named value; a name bound once or for the last time also without its number."""
        found = {step.name: step.value for step in self.steps}
        for step in self.steps:
            stem, dot, number = step.name.rpartition(".")
            if dot and number.isdigit():
                found[stem] = step.value
        return found

    @cached_property
    def nx(self) -> networkx.DiGraph[int]:
        """The op graph in networkx: node ids with the `Node` under `"node"`, an edge per producer and user.

        Operand order stays on the node: `x * x` has two operands and one edge.
        """
        import networkx

        graph: networkx.DiGraph[int] = networkx.DiGraph(name=self.name)
        graph.add_nodes_from((node.id, {"node": node, "op": node.op.name}) for node in self.nodes)
        graph.add_edges_from((self.producers[value].id, node.id) for node in self.nodes for value in node.inputs)
        return graph

    def users(self, value: int) -> list[Node]:
        """The nodes that read a value, in order."""
        return list(self._readers.get(value, ()))

    @cached_property
    def _readers(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                found.setdefault(value, []).append(node)
        return found


_UNPLACED = tuple(one.name for one in fields(Graph) if one.name not in PLACED)
Placed = TypeVar("Placed", Node, Scope, Step)


def _moved(one: Placed, shift: Shift) -> Placed:
    return one if one.place is None else replace(one, place=shift(one.place))


def distinct(bodies: Iterable[Graph]) -> Iterator[Graph]:
    """The first of each that are equal up to name and places."""
    seen: set[int] = set()
    for body in bodies:
        original = id(body.original)
        if original not in seen:
            seen.add(original)
            yield body


def is_parameter(op: Op | Repeat) -> bool:
    """Whether a node holds a parameter."""
    return op.name == "param"


class GraphBuilder:
    """Writes a graph node by node and infers every type on the way. Implements `op.Builder`."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.types: list[Type] = []
        self.steps: list[Step] = []
        self.scopes: dict[str, Scope] = {}
        self.scope, self.text = ROOT, ""  # what the next nodes belong to
        self.place: Place | None = None
        self.waived: set[str] = set()

    def __call__(self, op: Op, *values: int) -> int:
        """Add a node with one output and return that output. Raises Misfit or PatternMisfit."""
        return self.all(op, *values)[0]

    def all(self, op: Op, *values: int) -> tuple[int, ...]:
        """Add a node and return all its outputs. Raises Misfit or PatternMisfit."""
        return self.append(op, values, op.infer(*(self.types[value] for value in values)))

    def append(self, op: Op | Repeat, values: Iterable[int], types: Iterable[Type]) -> tuple[int, ...]:
        """Add a node whose output types are known."""
        first = len(self.types)
        self.types.extend(types)
        outputs = tuple(range(first, len(self.types)))
        self.nodes.append(Node(len(self.nodes), op, tuple(values), outputs, self.scope, self.place, self.text))
        return outputs

    def type(self, value: int) -> Type:
        """The type of a value."""
        return self.types[value]

    def _counted(self) -> dict[str, Scope]:
        """The scopes, each with the number of calls that its part has in the end."""
        calls = {scope.path: scope.calls for scope in self.scopes.values()}
        return {
            key: scope if scope.calls == calls[scope.path] else replace(scope, calls=calls[scope.path])
            for key, scope in self.scopes.items()
        }

    def finish(
        self,
        inputs: Iterable[Port],
        outputs: Iterable[Port],
        draws: Iterable[str | int] = (),
        conditions: Iterable[Condition] = (),
        dims: dict[str, int] | None = None,
    ) -> Graph:
        """The graph written so far."""
        return Graph(
            self.name,
            tuple(self.nodes),
            tuple(self.types),
            tuple(inputs),
            tuple(outputs),
            self._counted(),
            tuple(self.steps),
            tuple(draws),
            tuple(conditions),
            dict(dims or {}),
            frozenset(self.waived),
        )
