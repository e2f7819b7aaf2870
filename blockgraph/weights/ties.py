"""Arrays with several uses: what a saved file says of them, and what it means that a spec has one more or one less."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from blockgraph.graph import Graph, Node, Repeat
from blockgraph.lower import draw_names
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

FORMAT = "blockgraph"
Shape = tuple[int, ...]


def notes(graph: Graph, flat: Graph) -> dict[str, str]:
    """What a file saved by blockgraph says of itself: its format, and each further use of an array, once."""
    found = {**shared(graph, flat.dims), **used_again(flat)}
    return {"format": FORMAT, **({"ties": json.dumps(found)} if found else {})}


def read(notes: Mapping[str, str]) -> dict[str, str]:
    """The ties that a file records: a further use, and the array that it uses."""
    try:
        found = json.loads(notes.get("ties", "{}"))
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(array) for name, array in found.items()} if isinstance(found, dict) else {}


def shared(graph: Graph, numbers: dict[str, int]) -> dict[str, str]:
    """Parameters that are one set for several layers: the name each would have by itself, and the one it has."""
    pairs = zip(draw_names(_unshared(graph), numbers), draw_names(graph, numbers), strict=True)
    return {alone: name for alone, name in pairs if alone != name}


def _unshared(graph: Graph) -> Graph:
    """The graph as if nothing said `share: true`; stacks are nested no deeper than blocks may be."""
    return replace(graph, nodes=tuple(_alone(node) for node in graph.nodes))


def _alone(node: Node) -> Node:
    if isinstance(node.op, Repeat):
        return replace(node, op=replace(node.op, shared=False, bodies=tuple(_unshared(one) for one in node.op.bodies)))
    return replace(node, op=replace(node.op, shared=False)) if isinstance(node.op, Param) else node


def used_again(flat: Graph) -> dict[str, str]:
    """Parameters that are read outside their own part, as `embed.table.T` is: the value made with it, and its name.

    One that belongs to no part is read again by each equation after the first.
    """
    made = {step.text: step.name for step in reversed(flat.steps) if step.text}
    readers: dict[int, list[Node]] = {node.outputs[0]: [] for node in flat.parameters.values()}
    for node in flat.nodes:
        for value in node.inputs:
            if value in readers:
                readers[value].append(node)
    found = {}
    for name, node in flat.parameters.items():
        home = _part(flat, node.scope)
        users = readers[node.outputs[0]]
        first = users[0].text if users else ""
        for user in users:
            if _part(flat, user.scope) != home or (not home and user.text != first):
                found[made.get(user.text, user.text)] = name
    return found


def _part(flat: Graph, scope: str) -> str:
    """The part that a scope is a call of; empty at the top."""
    return flat.scopes[scope].path if scope in flat.scopes else ""


def tables(flat: Graph) -> Iterator[str]:
    """The parameters that ids look up."""
    producers = flat.producers
    for node in flat.nodes:
        if node.op.name == "lookup" and isinstance(op := producers[node.inputs[0]].op, Param):
            yield op.path


@dataclass(frozen=True, slots=True)
class Tie:
    """An array of a file and a further use of it; `parameter` is the spec's name of the array."""

    array: str
    use: str
    parameter: str

    @property
    def by_layer(self) -> bool:
        """Whether the use is the same parameter of another layer, as `share: true` makes it."""
        return self.use.rpartition(".")[2] == self.array.rpartition(".")[2]


def recorded(notes: Mapping[str, str]) -> list[Tie]:
    """The ties that a file of blockgraph's own records."""
    return [Tie(array, use, array) for use, array in read(notes).items()]


def tie_of(name: str, shape: Shape, known: Iterable[Tie], shapes: Mapping[str, Shape]) -> Tie | None:
    """The tie that explains why a file lacks a parameter of a shape; None for an honest gap."""
    for tie in known:
        if tie.use == name or (not tie.by_layer and len(shape) > 1 and shapes.get(tie.array) in (shape, shape[::-1])):
            return tie
    return None


def says_tied(config: Mapping[str, Any] | None) -> bool:
    """Whether config.json says that the output head is the embedding."""
    return config is not None and config.get("tie_word_embeddings") is True
