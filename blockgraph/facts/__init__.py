"""Proofs about a graph, told from what every op declares: nothing is computed, and every stack counts once.

Causal, batch items independent, position-wise, stackable, the residual highway, and parameters that are dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from blockgraph.facts.dead import dead_parameters
from blockgraph.facts.flow import Memo
from blockgraph.facts.highway import Highway, Stop, highway
from blockgraph.facts.positions import Leak, Verdict, causal, leak, part_of, positions, time_axis
from blockgraph.graph import Graph, Repeat
from blockgraph.records import dataclass

MANY = 6

__all__ = [
    "Highway",
    "Leak",
    "Proofs",
    "Stop",
    "Verdict",
    "causal",
    "dead_parameters",
    "highway",
    "leak",
    "part_of",
    "positions",
    "prove",
    "stackable",
    "stacked_blocks",
    "time_axis",
    "told",
]


@dataclass(frozen=True, slots=True)
class Proofs:
    """What is known of a graph for all sizes and all numbers; `blocks` are those of the blocks in its stacks."""

    causal: Verdict
    batch_independent: Verdict
    positionwise: Verdict
    stackable: Verdict
    highway: Highway | None
    dead_parameters: tuple[str, ...]
    blocks: dict[str, Proofs] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The proofs as JSON tells them."""
        path = self.highway
        found: dict[str, Any] = {
            "causal": self.causal,
            "batch_independent": self.batch_independent,
            "positionwise": self.positionwise,
            "stackable": self.stackable,
            "highway": {
                "clean": path is not None and path.clean,
                "on_path": [] if path is None else list(path.on_path),
            },
            "dead_parameters": list(self.dead_parameters),
        }
        return {**found, "blocks": {name: one.as_data() for name, one in self.blocks.items()}} if self.blocks else found


def told(proofs: Proofs) -> Iterator[str]:
    """The proofs in words, for a person: a few short lines."""
    verdicts = {
        "causal": proofs.causal,
        "batch items independent": proofs.batch_independent,
        "each position by itself": proofs.positionwise,
        "stackable": proofs.stackable,
    }
    for verdict in ("proved", "refuted", "not proved"):
        names = [name for name, found in verdicts.items() if found == verdict]
        names = [name for name in names if name != "stackable" or verdict == "proved"]
        if names:
            yield f"{verdict}: {', '.join(names)}"
    if proofs.highway is not None:
        yield f"residual highway: {_highway_text(proofs.highway)}"
    if proofs.dead_parameters:
        yield f"never get a gradient: {_some(proofs.dead_parameters)}"


def _highway_text(path: Highway) -> str:
    if not path.exists:
        return "none, every path goes through a sublayer"
    return "clean, additions only" if path.clean else f"through {_some(path.on_path)}"


def _some(names: tuple[str, ...]) -> str:
    """The first few names."""
    return ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")


def prove(graph: Graph, numbers: Mapping[str, int] | None = None) -> Proofs:
    """All proofs of a graph and of the blocks in its stacks; `numbers` are those of the dims (default: the graph's)."""
    known = graph.dims if numbers is None else numbers
    blocks: dict[str, Proofs] = {}
    memo = Memo()
    for name, body in stacked_blocks(graph):
        found = _proofs(body, known, {}, memo.next())
        if found not in [one for other, one in blocks.items() if other.rstrip("0123456789") == name]:
            number = sum(other.rstrip("0123456789") == name for other in blocks)
            blocks[f"{name}{number + 1}" if number else name] = found
    return _proofs(graph, known, blocks, memo.next())


def _proofs(graph: Graph, numbers: Mapping[str, int], blocks: dict[str, Proofs], memo: Memo) -> Proofs:
    is_causal, is_positionwise, is_independent = positions(graph, numbers, memo)
    return Proofs(
        is_causal,
        is_independent,
        is_positionwise,
        stackable(graph),
        highway(graph),
        dead_parameters(graph, numbers),
        blocks,
    )


def stackable(graph: Graph) -> Verdict:
    """Whether the outputs that have the name of an input have its shape and type too; at least one must."""
    types = {port.name: graph.types[port.value] for port in graph.inputs}
    pairs = [(types[port.name], graph.types[port.value]) for port in graph.outputs if port.name in types]
    if any(before.shape is None or after.shape is None for before, after in pairs):
        return "not proved"
    fits = all(before.shape == after.shape and before.dtype == after.dtype for before, after in pairs)
    return "proved" if pairs and fits else "refuted"


def stacked_blocks(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """The blocks in all stacks of a graph with their names, inner ones after outer ones."""
    yield from ((body.name, body) for body in _bodies(graph))


def _bodies(graph: Graph) -> Iterator[Graph]:
    waiting = [graph]
    while waiting:
        one = waiting.pop(0)
        inner = [body for node in one.nodes if isinstance(node.op, Repeat) for body in node.op.bodies]
        yield from inner
        waiting += inner
