"""The canonical form of a graph: one text for all specs that say the same, whatever they call things.

Names of parts, values, dims, blocks and pattern letters, the order of independent equations and the order of the terms
of a sum or product do not count, nor do inits, places and texts. Ops, options, wiring, shapes as expressions of the
dims, parameters and who shares them, and the layers of stacks do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from blockgraph.diff.ranks import ranked
from blockgraph.diff.terms import ANONYMOUS, Line, identity, line_text, options_of, without_defaults
from blockgraph.dims import Dim
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

COMMUTATIVE = frozenset({"add", "multiply"})
MANY_LAYERS = 10_000  # up to here stacks are compared layer by layer


def fingerprint(graph: Graph) -> str:
    """sha256 of the canonical form, in hex: equal exactly for equal structures."""
    return hashlib.sha256("\n".join(canonical(graph)).encode()).hexdigest()


def canonical(graph: Graph) -> list[str]:
    """The canonical form, a line per node; symbols are s0, s1 ..."""
    lines = _written(graph)
    names = {symbol: f"s{rank}" for rank, symbol in enumerate(ranked(lines))}
    return [line_text(line, names) for line in lines]


def symbols_in_order(graph: Graph) -> list[str]:
    """The symbols of a graph in canonical order: those of equal structures correspond one by one."""
    return ranked(_written(graph))


def in_order(graph: Graph) -> list[Node]:
    """The nodes of one graph in the order in which they are needed, from the first output on, inputs first."""
    loose = {value for node in graph.nodes for value in node.outputs} - {v for node in graph.nodes for v in node.inputs}
    inputs = [graph.producers[port.value] for port in graph.inputs]
    ends = [*(port.value for port in graph.outputs), *sorted(loose)]
    return [*inputs, *_needed(graph, ends, {node.id: node.inputs for node in graph.nodes}, {n.id for n in inputs})]


def _needed(
    graph: Graph, ends: Iterable[int], operands: Mapping[int, tuple[int, ...]], done: set[int]
) -> Iterator[Node]:
    """The nodes that `ends` need, each after its operands; those in `done` are left out."""
    for end in ends:
        waiting = [(graph.producers[end], False)]
        while waiting:
            node, ready = waiting.pop()
            if ready:
                yield node
            elif node.id not in done:
                done.add(node.id)
                waiting.append((node, True))
                waiting += [(graph.producers[value], False) for value in reversed(operands[node.id])]


def _written(graph: Graph) -> tuple[Line, ...]:
    """The lines of a graph with those of its stacks between; inner bodies are written first."""
    graphs = _with_bodies(graph)
    elsewhere = {symbol for one, _ in graphs for symbol in _symbols(one)}
    done: dict[int, tuple[Line, ...]] = {}
    for one, shares in reversed(graphs):
        done[id(one)] = tuple(_Writer(one, shares, graph.dims, elsewhere, done).lines())
    return done[id(graph)]


def _with_bodies(graph: Graph) -> list[tuple[Graph, bool]]:
    """The graph and all bodies in it, outer ones first; with each whether `shared` on a parameter says anything."""
    found = [(graph, False)]
    for one, _ in found:
        for node in one.nodes:
            if isinstance(node.op, Repeat):
                found += [(body, not node.op.shared) for body in node.op.bodies]
    return found


def _symbols(graph: Graph) -> Iterator[str]:
    """The symbols that stand anywhere but in the number of layers."""
    for node in graph.nodes:
        if not isinstance(node.op, Repeat):
            yield from node.op.symbols
    for port in graph.inputs:
        yield from port.below.symbols if port.below is not None else ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """The layers of a stack: for each in turn which of the distinct bodies it is, and whose parameters it shares."""

    bodies: tuple[Graph, ...]
    text: str
    counts: tuple[Dim, ...]


class _Writer:
    """Writes one graph; the bodies of its stacks are in `done`."""

    def __init__(
        self,
        graph: Graph,
        shares: bool,
        dims: Mapping[str, int],
        elsewhere: set[str],
        done: dict[int, tuple[Line, ...]],
    ) -> None:
        self.graph, self.shares, self.dims, self.elsewhere, self.done = graph, shares, dims, elsewhere, done
        self.heads = {node.id: self.head(node) for node in graph.nodes}
        self.digests: dict[int, str] = {}
        for node in graph.nodes:
            self.digest(node)

    def head(self, node: Node) -> tuple[Line, ...]:
        """What a node is, operands left out: one line, or that of a stack with its bodies after it."""
        op = node.op
        if not isinstance(op, Repeat):
            types = [self.graph.types[value] for value in node.inputs]
            options = options_of(op, types)
            if isinstance(op, Param):
                options["shared"] = op.shared and self.shares
            told = without_defaults(op, options)
            return (Line(op.name, tuple(told), tuple(told.values())),)
        layers = sequence(op, self.dims, self.elsewhere, self.done)
        inner = [line for n, body in enumerate(layers.bodies) for line in (Line(f"body {n}"), *self.done[id(body)])]
        carried = ",".join("-" if one is None else str(one) for one in op.carried)
        first = Line("repeat", (f"layers {layers.text}", f"carried {carried}"), ("", "", *layers.counts))
        return (first, *inner, Line("end"))

    def digest(self, node: Node) -> None:
        """A hash of what a value is made of, symbols without names: it orders the terms of sums and products."""
        operands = [self.digests[value] for value in self.ordered(node)]
        text = "\n".join([*(line_text(line, ANONYMOUS) for line in self.heads[node.id]), *operands])
        if node.op.name == "input":
            ports = [n for n, port in enumerate(self.graph.inputs) if port.value == node.outputs[0]]
            text += f"\ninput {ports}"
        found = hashlib.sha256(text.encode()).hexdigest()
        self.digests |= {value: f"{found}.{n}" for n, value in enumerate(node.outputs)}

    def ordered(self, node: Node) -> tuple[int, ...]:
        """The operands, those of a sum or product in an order of their own."""
        if node.op.name not in COMMUTATIVE:
            return node.inputs
        return tuple(sorted(node.inputs, key=lambda value: self.digests[value]))

    def lines(self) -> Iterator[Line]:
        """Inputs in order, then nodes after their operands, from the first output on, then the outputs."""
        number = {port.value: f"i{n}" for n, port in enumerate(self.graph.inputs)}
        for n, port in enumerate(self.graph.inputs):
            (head,) = self.heads[self.graph.producers[port.value].id]
            below = () if port.below is None else (port.below,)
            yield Line(f"i{n} {head.head}", head.fields, (*head.values, *below))
        count = 0
        for node in self.in_order():
            number |= {value: f"n{count}.{k}" for k, value in enumerate(node.outputs)}
            first, *rest = self.heads[node.id]
            operands = " ".join(number[value] for value in self.ordered(node))
            yield Line(f"n{count} {first.head} {operands}", first.fields, first.values)
            yield from rest
            count += 1
        yield Line("return " + " ".join(number[port.value] for port in self.graph.outputs))

    def in_order(self) -> Iterator[Node]:
        """The nodes, each after its operands; those that lead nowhere come last."""
        done = {self.graph.producers[port.value].id for port in self.graph.inputs}
        read = {value for node in self.graph.nodes for value in node.inputs}
        loose = {value for node in self.graph.nodes for value in node.outputs if value not in read}
        ends = [port.value for port in self.graph.outputs]
        ends += sorted(loose.difference(ends), key=lambda value: self.digests[value])
        return _needed(self.graph, ends, {node.id: self.ordered(node) for node in self.graph.nodes}, done)


def sequence(
    op: Repeat, dims: Mapping[str, int], elsewhere: set[str], done: Mapping[int, tuple[Line, ...]]
) -> Sequence:
    """The layers of a stack, equal bodies as one, those that no layer has left out.

    A number of layers that is known counts as a number, with its expression only where its dims are used elsewhere too.
    """
    texts = ["\n".join(line_text(line, identity(line)) for line in done[id(body)]) for body in op.bodies]
    first = {text: n for n, text in reversed(list(enumerate(texts)))}
    same = [first[text] for text in texts]
    share = op.shared or any(_has_shared(body) for body in op.bodies)
    runs, counts = _runs(op, dims)
    order: dict[int, int] = {}
    groups: dict[int, int] = {}
    told = []
    for bodies, count in runs:
        cycle = [(same[body], body) for body in bodies]
        names = [
            f"{order.setdefault(one, len(order))}" + (f"/{groups.setdefault(own, len(groups))}" if share else "")
            for one, own in cycle
        ]
        told.append((tuple(names), count))
    text = " ".join(f"({' '.join(names)})*{count}" for names, count in _joined(told))
    kept = tuple(dim for dim in counts if dim.symbols & elsewhere or dim.symbols - dims.keys())
    return Sequence(tuple(op.bodies[body] for body in order), f"{text} inherited" if op.inherited else text, kept)


def _runs(op: Repeat, dims: Mapping[str, int]) -> tuple[list[tuple[tuple[int, ...], str]], list[Dim]]:
    """The layers as (cycle, number) pairs, a layer at a time where all numbers are known, and the numbers given."""
    counts = [segment.count for segment in op.segments]
    known = all(not count.symbols - dims.keys() for count in counts)
    if known and op.count.evaluate(dict(dims)) <= MANY_LAYERS:
        return [((body,), "1") for body in op.layers(dict(dims))], counts
    numbers = [count.subs(dict(dims)) for count in counts]
    shown = ["?" if number.symbols else str(number) for number in numbers]
    return [(segment.bodies, count) for segment, count in zip(op.segments, shown, strict=True)], counts


def _joined(runs: list[tuple[tuple[str, ...], str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Runs of one and the same layer with their length."""
    length = 0
    for n, (names, count) in enumerate(runs):
        if count != "1":
            yield names, count
            continue
        length += 1
        if n + 1 == len(runs) or runs[n + 1] != (names, count):
            yield names, str(length)
            length = 0


def _has_shared(graph: Graph) -> bool:
    return any(
        (isinstance(node.op, Param) and node.op.shared) or (isinstance(node.op, Repeat) and node.op.inherited)
        for one, _ in _with_bodies(graph)
        for node in one.nodes
    )
