"""Terms of one sum that are alike, such as the experts of a mixture: one is drawn, on a plate that says how many.

The parts are numbered (`experts_0`, `experts_1`, ...) and of one kind; each gives a term, itself or times a gate, and
the terms are added up one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from blockgraph.drawing.scopes import around
from blockgraph.graph import Graph, Node
from blockgraph.records import dataclass

NUMBERED: Final = re.compile(r"(.+)_(\d+)$")
LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Alike:
    """The parts of one sum: how they are called, how many, the scope of the first, and the nodes beside it.

    `skipped` are the nodes of the others and of the sum, which ends with the node `last`: `start` plus the terms like
    `term`, or the terms alone.
    """

    name: str
    count: int
    first: str
    beside: frozenset[int]
    skipped: frozenset[int]
    last: int
    term: int
    start: int | None


def alike(graph: Graph) -> list[Alike]:
    """All such sums of a graph."""
    found = (_sum_of(graph, stem, keys) for stem, keys in _numbered(graph).items() if len(keys) >= LEAST)
    return [one for one in found if one is not None]


def _numbered(graph: Graph) -> dict[str, list[str]]:
    """The scopes of parts that have the same name but for their number, of one kind, in order."""
    found: dict[str, list[str]] = {}
    for key, scope in graph.scopes.items():
        match = NUMBERED.match(key)
        if match is not None and "." not in match[2]:
            of = found.setdefault(f"{match[1]} {scope.kind} {scope.detail}", [])
            of += [key] if int(match[2]) == len(of) else []
    return found


def _sum_of(graph: Graph, stem: str, keys: list[str]) -> Alike | None:
    """The sum of the terms of these parts, if they are added up so."""
    terms = [_term(graph, key) for key in keys]
    value, start, skipped, last = terms[0][0], None, set[int](), -1
    adds = [_next_add(graph, terms[1][0])]
    if adds[0] is not None and value not in adds[0].inputs:  # something stands before the first term
        (start, value, skipped), adds = _started(graph, value), []
    for term, _ in terms[1:]:
        add = _next_add(graph, term)
        if add is None or set(add.inputs) != {value, term}:
            return None
        skipped.add(add.id)
        value, last = add.outputs[0], add.id
    others = {node.id for node in graph.nodes if any(outer in keys[1:] for outer in around(graph, node.scope))}
    skipped |= others | {node for _, beside in terms[1:] for node in beside}
    name = stem.partition(" ")[0].rpartition(".")[2]
    return Alike(
        name, len(keys), keys[0], frozenset(terms[0][1]), frozenset(skipped - {last}), last, terms[0][0], start
    )


def _started(graph: Graph, term: int) -> tuple[int | None, int, set[int]]:
    """What the first term is added to, and the sum of both."""
    add = _next_add(graph, term)
    if add is None:
        return None, -1, set()
    return next((value for value in add.inputs if value != term), None), add.outputs[0], {add.id}


def _term(graph: Graph, key: str) -> tuple[int, set[int]]:
    """What a part puts out, times its gate if it has one; and the nodes of the gate."""
    (value,) = {v for node in _within(graph, key) for v in node.outputs if _leaves(graph, v, key)} or {-1}
    users = graph.users(value)
    if len(users) != 1 or users[0].op.name != "multiply":
        return value, set()
    gates = [graph.producers[other] for other in users[0].inputs if other != value]
    own = {gate.id for gate in gates if gate.op.name == "index" and len(graph.users(gate.outputs[0])) == 1}
    return users[0].outputs[0], {users[0].id, *own}


def _within(graph: Graph, key: str) -> Iterator[Node]:
    return (node for node in graph.nodes if key in around(graph, node.scope))


def _leaves(graph: Graph, value: int, key: str) -> bool:
    return any(key not in around(graph, user.scope) for user in graph.users(value))


def _next_add(graph: Graph, value: int) -> Node | None:
    """The addition that is the only user of a value."""
    users = graph.users(value)
    return users[0] if len(users) == 1 and users[0].op.name == "add" else None
