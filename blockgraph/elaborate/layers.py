"""A stacked block that reads as one before has the same graph, at another place of the file.

Files in which 96 layers are written out, equal up to their names, are then checked like a stack of one block: the graph
of the first is taken over, and only whoever looks at nodes or places of another has them made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from blockgraph.elaborate.body import MAX_NODES, Body
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.instance import Instance, ModuleInstance
from blockgraph.elaborate.replay import Start
from blockgraph.errors import Place, Position, SpecPath, spec_path
from blockgraph.graph import Graph, Repeat, Shift, covers
from blockgraph.op import Type
from blockgraph.records import dataclass
from blockgraph.source import Document, Tree


@dataclass(frozen=True, slots=True)
class Layered:
    """The graph of a block as a layer, the path where the block is written, and how many steps it counted."""

    graph: Graph
    path: SpecPath
    counted: int

    @classmethod
    def of(cls, graph: Graph, body: Body, layer: Instance, start: Start) -> Self | None:
        """What can be taken over from a layer; None after a finding, and where places are not those of its own text."""
        module, session = _module(layer), body.session
        tree = _tree(session.spec.document, module)
        if session.report.told != start.told or tree is None or _has_stack(graph):
            return None
        own = spec_path(module)
        places = [one.place for one in graph.nodes] + [one.place for one in graph.steps]
        places += [one.place for one in graph.scopes.values()]
        if not all(place is None or _is_movable(own, tree, place) for place in places):
            return None
        return cls(graph, module, session.nodes - start.counted)

    def copy(self, body: Body, name: str, layer: Instance) -> Graph | None:
        """The graph of another layer that reads the same; None if there is no room for it."""
        session, module = body.session, _module(layer)
        if session.nodes + self.counted > MAX_NODES:
            return None
        session.nodes += self.counted
        session.called.add(name)
        here, there = (_tree(session.spec.document, path) for path in (module, self.path))
        assert here is not None
        assert there is not None
        shift = Shift(here.start.line - there.start.line, spec_path(self.path), spec_path(module))
        return self.graph.elsewhere(name, shift)


def likeness_of_layer(
    layer: Instance, stack: SpecPath, env: Env, inputs: Sequence[tuple[str, Type]]
) -> tuple[Any, ...] | None:
    """What two layers of a stack have in common that have the same graph; None for one that has no text of its own."""
    if not isinstance(layer, ModuleInstance) or any(given.shape is None for _, given in inputs):
        return None
    text = _text(layer.body.session.spec.document, _module(layer))
    if text is None:
        return None
    stretchy = tuple(dim.stretchy for _, given in inputs for dim in given.shape or ())  # equal to 1, and not the same
    return (stack, text, repr(layer.decl.options), env.likeness, tuple(inputs), stretchy)


def _has_stack(graph: Graph) -> bool:
    return any(isinstance(node.op, Repeat) for node in graph.nodes)


def _module(layer: Instance) -> SpecPath:
    assert isinstance(layer, ModuleInstance)
    assert layer.module is not None
    return layer.module.path


def _text(document: Document, path: SpecPath) -> tuple[Any, ...] | None:
    """The text of a block and its first column; None in a file with anchors, where equal texts may differ."""
    tree = _tree(document, path)
    if tree is None or "&" in document.text:
        return None
    (first, column), (last, end) = tree.start, tree.end
    head, *rest = document.lines[first - 1 : last]
    lines = [head[column - 1 :], *rest]
    lines[-1] = lines[-1][: end - 1 if rest else end - column]
    return (column, tuple(lines))


def _tree(document: Document, path: SpecPath) -> Tree | None:
    tree: Tree | None = document.tree
    for step in path:
        tree = tree.child(step) if tree is not None else None
    return tree


def _is_movable(own: str, tree: Tree, place: Place) -> bool:
    """Whether a place lies in the block's text, or has nothing to do with the block."""
    if place.spec_path == own:
        return False
    return not covers(own, place) or _within(tree, place.start, place.end)


def _within(tree: Tree, start: Position, end: Position) -> bool:
    return tree.start <= start and end <= tree.end
