"""What to mark in a graph with findings: the steps at fault, with the shape found and the shape expected.

A step that has a finding stands in its graph as an `unknown` op, its value fits everything. Those whose operands are
known are at fault; what depends on them is merely unknown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from blockgraph.dims import Shape, show
from blockgraph.drawing.marking import Mark, Marks
from blockgraph.drawing.scopes import leaf_scope
from blockgraph.drawing.values import bare_values
from blockgraph.errors import Finding
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.ops.unknown import Unknown

Lines = Callable[[str, int], str | None]
WIDTH: Final = 44  # characters of a message in a box
WANTED: Final = re.compile(r"(?: needs | had width )(\S+?)(?: at |$)")
AXIS: Final = re.compile(r"^axis `.*?` of `.*?` is (\S+)(?: = \d+)? where `.*?` needs (\S+)")
ELEMENTWISE: Final = ("+", "-", "*", "/")
DECLARED: Final = re.compile(r"declares (\(.*\))")


def mended(graph: Graph, findings: Sequence[Finding], lines: Lines) -> Graph:
    """The graph with every step at fault linked to the value that does not fit, where the text tells which one."""
    nodes = list(graph.nodes)
    for index, node in enumerate(nodes):
        if not isinstance(node.op, Unknown):
            continue
        op = node.op if node.op.what else replace(node.op, what=_right_side(node))
        found = [_named(graph, node, _text(finding, lines)) for finding in matching(graph, node, findings)]
        inputs = node.inputs or tuple(dict.fromkeys(value for value in found if value is not None))[:1]
        nodes[index] = replace(node, op=op, inputs=inputs)
    return replace(graph, nodes=tuple(nodes))


def guilty(graph: Graph, findings: Sequence[Finding] = ()) -> list[Node]:
    """The steps at fault: unknown, though all their operands are known or because their part is declared wrongly."""
    unknown = [node for node in graph.nodes if isinstance(node.op, Unknown)]
    return [
        node
        for node in unknown
        if all(graph.types[value].shape is not None for value in node.inputs) or _declared(graph, node, findings)
    ]


def faults(graphs: Iterable[Graph], findings: Sequence[Finding]) -> Marks:
    """The marks of mended graphs: a red dashed box with the message, and both shapes on the wire into it."""
    boxes: dict[tuple[int, str | int], Mark] = {}
    wires: dict[tuple[int, int, int], str] = {}
    for graph in graphs:
        for node in guilty(graph, findings):
            told = matching(graph, node, findings)
            leaf = leaf_scope(graph, node.scope)
            notes = [line for one in told for line in textwrap.wrap(f"{one.code}: {one.message}", WIDTH)]
            boxes[id(graph), node.id if leaf is None else leaf] = Mark("!", tuple(notes))
            for finding in told:
                wires |= {(id(graph), node.id, value): text for value, text in _shapes(graph, node, finding)}
    return Marks(boxes, wires)


def matching(graph: Graph, node: Node, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a step: under its text, else on its line, else at the declaration of its part."""
    errors = [one for one in findings if one.severity == "error"]
    place = node.place
    under = [one for one in errors if place is not None and _within(one, node)]
    line = [one for one in errors if place is not None and _line(one) == (place.path, place.start.line)]
    return (under or _declared(graph, node, errors) or line)[:1]


def _declared(graph: Graph, node: Node, findings: Sequence[Finding]) -> list[Finding]:
    """The errors in the declaration of the part that a step belongs to."""
    names = [node.scope, *(step.name for step in graph.steps if step.value in node.outputs)]
    scope = next((graph.scopes[name] for name in names if name in graph.scopes), None)
    place = scope.place if scope is not None else None
    if place is None or not place.spec_path:
        return []
    found = [one for one in findings if one.severity == "error" and one.place.path == place.path]
    return [one for one in found if f"{one.place.spec_path}.".startswith(f"{place.spec_path}.")]


def _line(finding: Finding) -> tuple[str, int]:
    return finding.place.path, finding.place.start.line


def _within(finding: Finding, node: Node) -> bool:
    own, place = finding.place, node.place
    assert place is not None
    return own.path == place.path and place.start <= own.start and own.end <= place.end


def _text(finding: Finding, lines: Lines) -> str:
    """The text that a finding is about."""
    start, end = finding.place.start, finding.place.end
    line = lines(finding.place.path, start.line) or ""
    return line[start.column - 1 : end.column - 1] if start.line == end.line else ""


def _named(graph: Graph, node: Node, text: str) -> int | None:
    """The last value before a node that is called so, or was made by a call written so."""
    found = [step for step in graph.steps if step.value < min(node.outputs)]
    names = [step.value for step in found if text and text in (step.name, step.name.rpartition(".")[0], step.text)]
    return names[-1] if names else None


def _right_side(node: Node) -> str:
    return node.text.partition(" = ")[2] or node.text


def _shapes(graph: Graph, node: Node, finding: Finding) -> Iterator[tuple[int, str]]:
    """The operand that does not fit, with both shapes: `found (B, T, 3*C)`, `expected (B, T, C)`.

    A parameter has no wire: where it does not fit, the wire that meets it tells what it would take.
    """
    shapes = [graph.types[value].shape for value in node.inputs]
    index = _misfit(shapes, finding)
    if index is None:
        return
    bare = bare_values(graph)
    wires = [place for place, value in enumerate(node.inputs) if value not in bare]
    meets = node.inputs[index] in bare and len(wires) == 1 and shapes[wires[0]] is not None
    place = wires[0] if meets else index
    expected, shape = _expected(node, shapes, place, finding, meets=meets), shapes[place]
    assert shape is not None
    yield node.inputs[place], f"found {show(shape)}" + (f"\nexpected {expected}" if expected else "")


def _misfit(shapes: Sequence[Shape | None], finding: Finding) -> int | None:
    """Which operand a finding is about: the one whose shape stands beside its caret, or the only one."""
    known = [(index, shape) for index, shape in enumerate(shapes) if shape is not None]
    named = (index for index, shape in known if len(shapes) == 1 or finding.label.startswith(show(shape)))
    return next(named, None)


def _expected(node: Node, shapes: Sequence[Shape | None], index: int, finding: Finding, *, meets: bool = False) -> str:
    """The shape that the operand with this index should have; nothing where that is not known.

    `meets`: the finding is about the other operand, and this one is to be as that one wants it.
    """
    assert not isinstance(node.op, Repeat)
    shape, others = shapes[index], [one for at, one in enumerate(shapes) if at != index]
    assert shape is not None
    declared = DECLARED.search(finding.label)
    if declared is not None and not meets:
        return declared[1]
    other = others[0] if len(others) == 1 else None
    if node.op.label() in ELEMENTWISE and other is not None:
        return show(_beside(other, shape))
    if node.op.label() == "@" and other:
        return show(_to_meet(other, shape, index == 0))
    axis = AXIS.search(finding.message)
    if axis is not None:
        wrong, right = (axis[2], axis[1]) if meets else (axis[1], axis[2])
        return f"({', '.join(right if str(dim) == wrong else str(dim) for dim in shape)})"
    wanted = WANTED.search(finding.message) if not meets else None
    return f"({', '.join([*map(str, shape[:-1]), wanted[1].rstrip(',.')])})" if wanted is not None else ""


def _beside(other: Shape, shape: Shape) -> Shape:
    """The shape of an operand that fits another axis by axis, from the right; it keeps what the other has not."""
    if len(other) >= len(shape):
        return other
    far, near = shape[: -len(other)], shape[-len(other) :]
    return (*far, *(own if dim == 1 else dim for own, dim in zip(near, other, strict=True)))


def _to_meet(other: Shape, shape: Shape, first: bool) -> Shape:
    """The shape of an operand of `@`, on the left if it is the `first`, with the inner size of the other one."""
    if first:
        return (*shape[:-1], other[-2] if len(other) > 1 else other[-1])
    return (*shape[:-2], other[-1], *shape[-1:]) if len(shape) > 1 else other[-1:]
