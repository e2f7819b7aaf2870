"""A stacked block that reads as one before has the same graph, at another place of the file.

Files in which 96 layers are written out, equal up to their names, are then checked like a stack of one block: the graph
of the first is taken over, and only whoever looks at nodes or places of another has them made.
"""

from __future__ import annotations

from typing import Any, Self

from blockgraph.alike import covers, tree_at
from blockgraph.elaborate.body import MAX_NODES, Session
from blockgraph.elaborate.replay import Start
from blockgraph.errors import Place, Position, SpecPath, spec_path
from blockgraph.graph import Graph, Repeat
from blockgraph.module import Module, PartDecl
from blockgraph.op import Type
from blockgraph.records import dataclass
from blockgraph.source import Tree


@dataclass(frozen=True, slots=True)
class Layered:
    """The graph of a block as a layer, the block, and how many steps it counted."""

    graph: Graph
    module: Module
    counted: int

    @classmethod
    def of(cls, graph: Graph, session: Session, module: Module, start: Start) -> Self | None:
        """What can be taken over from a layer; None after a finding, and where places are not those of its own text."""
        tree = tree_at(session.spec.document, module.path)
        if session.report.told != start.told or tree is None or _has_stack(graph):
            return None
        own = spec_path(module.path)
        places = [one.place for one in graph.nodes] + [one.place for one in graph.steps]
        places += [one.place for one in graph.scopes.values()]
        if not all(place is None or _is_movable(own, tree, place) for place in places):
            return None
        return cls(graph, module, session.nodes - start.counted)

    def copy(self, session: Session, module: Module) -> Graph | None:
        """The graph of another block that reads the same; None if there is no room for it."""
        if session.nodes + self.counted > MAX_NODES:
            return None
        session.nodes += self.counted
        session.called.add(module.name)
        return self.graph.elsewhere(module.name, self.module.way_to(module))


def likeness_of_layer(module: Module | None, decl: PartDecl, around: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """What two layers have in common that have the same graph; None for one that is no block.

    `around` is what they have in common by the stack they are in: see `likeness_of_stack`.
    """
    if module is None or around is None:
        return None
    return (around, id(module.original), repr(decl.options))


def likeness_of_stack(path: SpecPath, likeness: tuple[Any, ...], inputs: dict[str, Type]) -> tuple[Any, ...] | None:
    """The part of a layer's likeness that all layers of a stack at `path` share; None where an input is unknown."""
    if any(given.shape is None for given in inputs.values()):
        return None
    stretchy = tuple(dim.stretchy for given in inputs.values() for dim in given.shape or ())  # equal to 1, not the same
    return (path, likeness, tuple(inputs.items()), stretchy)


def _has_stack(graph: Graph) -> bool:
    return any(isinstance(node.op, Repeat) for node in graph.nodes)


def _is_movable(own: str, tree: Tree, place: Place) -> bool:
    """Whether a place lies in the block's text, or has nothing to do with the block."""
    if place.spec_path == own:
        return False
    return not covers(own, place) or _within(tree, place.start, place.end)


def _within(tree: Tree, start: Position, end: Position) -> bool:
    return tree.start <= start and end <= tree.end
