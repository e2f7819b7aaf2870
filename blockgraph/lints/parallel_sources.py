"""BG218: branches that are added up side by side, but read different values of the stream."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import combinations

from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node
from blockgraph.lints.wiring import SUBLAYERS, of_role, ops, role

CODE = "BG218"


def lint(graph: Graph) -> Iterator[Finding]:
    """Sums of two or more sublayers that do not start from one value."""
    only, named = graph.only_readers, frozenset(step.value for step in graph.steps)
    for node, _ in ops(graph, of_role("add")):
        if node.place is None or _is_inner(only.get(node.outputs[0]), node, named):
            continue
        parts = _branches(graph, node, named, only.keys())
        if len(parts) < 2:
            continue
        sources = [(part, source) for part in parts if (source := _source(graph, part)) is not None]
        apart = (pair for pair in combinations(sources, 2) if _is_apart(graph, node.scope, *pair))
        pair = next(apart, None)
        if pair is None:
            continue
        (first, a), (second, b) = pair
        message = f"`{_called(first)}` and `{_called(second)}` are added side by side, but read different values: "
        message += _told(graph, a, b)
        help = "let both read the same value; or add the first to the stream before the second reads it"
        yield Finding(CODE, message, node.place, help, severity="warning")


def _is_inner(reader: Node | None, node: Node, named: frozenset[int]) -> bool:
    """Whether the sum is a term of a larger one in the same equation."""
    is_target = node.outputs[0] in named
    return not is_target and reader is not None and role(reader) == "add" and reader.scope == node.scope


def _branches(graph: Graph, node: Node, named: frozenset[int], only: Set[int]) -> list[str]:
    """The sublayers among the terms of a sum; a term that is read elsewhere too is a stream."""
    found: list[str] = []
    waiting = list(node.inputs[::-1])
    while waiting:
        value = waiting.pop()
        made = graph.producers[value]
        if role(made) == "add" and value not in named and made.scope == node.scope:
            waiting.extend(made.inputs[::-1])
            continue
        part = _sublayer(graph, value, node.scope) if value in only else None
        if part is not None:
            found.append(part)
    return found


def _sublayer(graph: Graph, value: int, around: str) -> str | None:
    """The sublayer right inside a scope that made a value, scaled or normalised since or not."""
    while True:
        node = graph.producers[value]
        prefix = f"{around}." if around else ""
        if node.scope.startswith(prefix) and node.scope != around:
            key = prefix + node.scope[len(prefix) :].partition(".")[0]
            if key in graph.scopes and graph.scopes[key].family in SUBLAYERS:
                return key
        if role(node) not in ("norm", "scale", "move"):
            return None
        inputs = [one for one in node.inputs if not graph.types[one].bare]
        if len(inputs) != 1:
            return None
        value = inputs[0]


def _source(graph: Graph, part: str) -> int | None:
    """What a part reads first, norms left aside."""
    nodes = [node for node in graph.nodes if node.scope == part or node.scope.startswith(f"{part}.")]
    inside = {value for node in nodes for value in node.outputs}
    read = [value for node in nodes for value in node.inputs if value not in inside and not graph.types[value].bare]
    if not read:
        return None
    value = read[0]
    while role(graph.producers[value]) == "norm":
        value = graph.producers[value].inputs[0]
    return value


def _is_apart(graph: Graph, around: str, first: tuple[str, int], second: tuple[str, int]) -> bool:
    """Whether two branches read different values, and not the one what the other has been added to.

    In `x + a(x) + f(h)` with h = x + a(x) they follow each other; the sum is a sequence, written out.
    """
    (one, a), (other, b) = first, second
    if a == b or graph.types[a] != graph.types[b]:
        return False
    return not (_adds(graph, around, one, a, to=b) or _adds(graph, around, other, b, to=a))


def _adds(graph: Graph, around: str, part: str, source: int, to: int) -> bool:
    """Whether a value is the source of a part with, among others, the part's result added."""
    terms, waiting = set(), [to]
    while waiting:
        value = waiting.pop()
        if value not in terms:
            terms.add(value)
            made = graph.producers[value]
            waiting.extend(made.inputs if role(made) == "add" else ())
    added = {_called(found) for value in terms if (found := _sublayer(graph, value, around)) is not None}
    return source in terms and _called(part) in added


def _called(part: str) -> str:
    """The part of a call: `attention#2` is its second."""
    return part.partition("#")[0]


def _told(graph: Graph, a: int, b: int) -> str:
    names = {step.value: step.name for step in graph.steps if step.depth == 0}
    names.update({port.value: port.name for port in graph.inputs if port.value not in names})
    return " and ".join(f"`{names.get(value, graph.producers[value].op.name)}`" for value in (a, b))
