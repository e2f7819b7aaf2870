"""How close a drawing looks: at blocks, their sublayers or every op; which scopes are plates and which are boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Literal

from blockgraph.drawing.alike import Alike, alike
from blockgraph.drawing.scopes import around
from blockgraph.drawing.values import bare_values
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.op import Op
from blockgraph.records import dataclass

Level = Literal["block", "sublayer", "op"]
Shown = Literal["plate", "box", "clear"]
SILENT: Final = frozenset({"param", "constant", "input"})


@dataclass(frozen=True)
class Reading:
    """The scopes of one graph at a level.

    A block is a box at level `block`, unless a stack is in it, else a plate. A part is a box, but at level `op` a plate
    if it has more than one op; one that only reads its parameters, such as learned positions, stays a box. A stack is
    drawn by its own rules.
    """

    graph: Graph
    level: Level = "sublayer"

    def plates(self, key: str) -> list[str]:
        """The scopes around a node that are plates, outermost first."""
        found = []
        for outer in around(self.graph, key):
            if self.shown[outer] == "box":
                break
            if self.shown[outer] == "plate":
                found.append(outer)
        return found

    def leaf(self, key: str) -> str | None:
        """The outermost scope around a node that is a box."""
        return next((outer for outer in around(self.graph, key) if self.shown[outer] == "box"), None)

    @cached_property
    def alike(self) -> list[Alike]:
        """Sums of parts that are alike, of which one is drawn, where parts are opened."""
        return alike(self.graph) if self.level == "op" else []

    @cached_property
    def skipped(self) -> frozenset[int]:
        """The nodes that are not drawn, because others are drawn for them."""
        return frozenset(node for one in self.alike for node in one.skipped)

    @cached_property
    def sums(self) -> dict[int, Alike]:
        """The nodes with which such sums end."""
        return {one.last: one for one in self.alike}

    @cached_property
    def calls(self) -> dict[str, list[Node]]:
        """The nodes of each scope that is a box, parameters and numbers left out."""
        found: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            leaf = self.leaf(node.scope)
            if leaf is not None and node.op.name not in ("param", "constant"):
                found.setdefault(leaf, []).append(node)
        return found

    @cached_property
    def shown(self) -> dict[str, Shown]:
        """How each scope is drawn."""
        return {key: self._shown(key, scope.family) for key, scope in self.graph.scopes.items()}

    def _shown(self, key: str, family: str) -> Shown:
        if family == "stack":
            return "clear"
        if family == "block":
            return "box" if self.level == "block" and key not in self._stacked else "plate"
        return "plate" if self.level == "op" and self._sizes[key] > 1 and key in self._fed else "box"

    @cached_property
    def _stacked(self) -> frozenset[str]:
        """The scopes with a stack in them."""
        stacks = (node for node in self.graph.nodes if isinstance(node.op, Repeat))
        return frozenset(outer for node in stacks for outer in around(self.graph, node.scope))

    @cached_property
    def _fed(self) -> frozenset[str]:
        """The scopes with an op that reads more than parameters and numbers."""
        bare = bare_values(self.graph)
        fed = (node for node in self.graph.nodes if not bare.issuperset(node.outputs))
        return frozenset(outer for node in fed for outer in around(self.graph, node.scope))

    @cached_property
    def _sizes(self) -> Counter[str]:
        """How many ops are in each scope; one that opens counts as two."""
        found: Counter[str] = Counter()
        for node in self.graph.nodes:
            if node.op.name not in SILENT:
                for outer in around(self.graph, node.scope):
                    found[outer] += 1 + opens(node)
        return found


def opens(node: Node) -> bool:
    """Whether a node is drawn by its expansion at level `op`."""
    return isinstance(node.op, Op) and node.op.opens


def contents(graph: Graph, nodes: Sequence[Node] | None = None) -> Iterator[str]:
    """The parts of a block in lines, without its norms, for a box that stands for all of it."""
    reading = Reading(graph)
    leaves = dict.fromkeys(leaf for node in nodes or graph.nodes if (leaf := reading.leaf(node.scope)) is not None)
    scopes = [graph.scopes[leaf] for leaf in leaves]
    yield from dict.fromkeys(
        " · ".join(filter(None, (scope.title or scope.path, scope.detail)))
        for scope in scopes
        if scope.family != "norm"
    )
