"""Graph -> Diagram: a part becomes one box, a block or a stack a plate, an op in an equation a box of its own.

Parameters and numbers are no boxes; they are written beside the op that takes them (`× a`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from blockgraph.drawing.diagram import FIGURE, Box, Diagram, Plate, Wire
from blockgraph.drawing.extras import NO_EXTRAS, Extras
from blockgraph.drawing.fold import Fold, folds
from blockgraph.drawing.marking import NO_MARKS, Marks
from blockgraph.drawing.scopes import block_scopes, leaf_scope
from blockgraph.graph import Graph, Node, Repeat, Scope
from blockgraph.op import Op

OPS_LIKE_PARTS: Final = {"attend": "attention"}
SIGNS: Final = frozenset({"+", "−", "×", "÷", "@", "**", "<", "<=", ">", ">=", "==", "!="})
BRIEF: Final = 32  # characters of an operand beside its op

Value = Wire | str
"""What a value is in the drawing: a wire, or the text of a parameter or number."""
Walk = Generator["Walk", Any, Any]


def collapse(graph: Graph, *, expand: bool = False, marks: Marks = NO_MARKS, extras: Extras = NO_EXTRAS) -> Diagram:
    """The diagram of a graph at the level of sublayers; `expand` writes stacks out layer by layer."""
    layered = any(isinstance(node.op, Repeat) for node in graph.nodes)
    diagram = Diagram(plates=[Plate(None, graph.name, kind="figure")], layered=layered)
    outputs = _run(_Collapse(diagram, graph.dims, expand, marks, extras).walk(graph, {}, _frame(diagram, graph)))
    for port, value in zip(graph.outputs, outputs, strict=True):
        wire = value if isinstance(value, Wire) else _made(diagram.add(Box(value)), graph, port.value)
        diagram.add(Box(port.name, "output", inputs=(wire,)))
    return diagram


def _frame(diagram: Diagram, graph: Graph) -> int:
    """A plate around a lone block; a model, made of blocks and stacks, has plates enough."""
    made_of_plates = any(isinstance(node.op, Repeat) or block_scopes(graph, node.scope) for node in graph.nodes)
    return FIGURE if made_of_plates else diagram.frame(Plate(FIGURE, key=(id(graph), "")))


def _run(walk: Walk) -> Any:
    """Run generators that wait for generators: stacks in stacks without recursion."""
    waiting, answer = [walk], None
    while waiting:
        try:
            waiting.append(waiting[-1].send(answer))
            answer = None
        except StopIteration as done:
            waiting.pop()
            answer = done.value
    return answer


class _Collapse:
    """The diagram being written."""

    def __init__(self, diagram: Diagram, dims: Mapping[str, int], expand: bool, marks: Marks, extras: Extras) -> None:
        self.diagram, self.dims, self.expand = diagram, dims, expand
        self.marks, self.extras = marks, extras

    def walk(self, graph: Graph, known: dict[int, Value], plate: int) -> Walk:
        """Draw the nodes of a graph inside a plate; returns its outputs. `known` holds its inputs, if any."""
        plates: dict[str, int] = {}
        calls = _calls(graph)
        for node in graph.nodes:
            inner = self.plate(graph, node.scope, plate, plates)
            leaf = leaf_scope(graph, node.scope)
            if node.op.name == "input":
                self.input(graph, node, known)
            elif isinstance(node.op, Repeat):
                outputs = yield self.stack(graph, node.op, [known[value] for value in node.inputs], inner)
                known.update(_seen(graph, node.outputs, outputs))
            elif node.op.name in ("param", "constant"):
                known[node.outputs[0]] = _source_text(node, inside=leaf is not None)
            elif leaf is None:
                self.op(graph, node, known, inner)
            elif node.outputs[0] not in known:
                self.part(graph, leaf, calls[leaf], known, inner)
        return [known[port.value] for port in graph.outputs]

    def plate(self, graph: Graph, key: str, plate: int, plates: dict[str, int]) -> int:
        """The innermost plate of a scope, made when first met."""
        for outer in block_scopes(graph, key):
            if outer not in plates:
                scope = graph.scopes[outer]
                details = self.details(graph, outer)
                made = Plate(plate, scope.title or scope.path, details, key=(id(graph), outer))
                plates[outer] = self.diagram.frame(made)
            plate = plates[outer]
        return plate

    def input(self, graph: Graph, node: Node, known: dict[int, Value]) -> None:
        """An input of the main module; inputs of a block are known already."""
        value = node.outputs[0]
        if value not in known:
            box = Box(node.op.label(), "input", key=(id(graph), node.id))
            known[value] = _made(self.diagram.add(box), graph, value)

    def part(self, graph: Graph, key: str, call: list[Node], known: dict[int, Value], plate: int) -> None:
        """All nodes of one call as one box."""
        made = {value for node in call for value in node.outputs}
        read = dict.fromkeys(value for node in call for value in node.inputs if value not in made)
        wires = [self.told(graph, call, value, known[value]) for value in read if value in known]
        scope = graph.scopes[key]
        details = (*filter(None, (self.extras.written(scope.detail),)), *self.details(graph, key))
        inputs = tuple(dict.fromkeys(wire for wire in wires if isinstance(wire, Wire)))
        made_for = (id(graph), key)
        mark, toll = self.marks.boxes.get(made_for), made_for in self.extras.tolls
        title = scope.title or scope.path
        made_box = Box(title, "box", scope.family, details, inputs, plate, mark=mark, toll=toll, key=made_for)
        box = self.diagram.add(made_box)
        known.update((value, _made(box, graph, value)) for value in sorted(made))

    def op(self, graph: Graph, node: Node, known: dict[int, Value], plate: int) -> None:
        """One op of an equation: a box, a circle or, of parameters and numbers alone, just text."""
        assert isinstance(node.op, Op)
        values = [self.told(graph, [node], value, known[value]) for value in node.inputs]
        if node.inputs and not any(isinstance(value, Wire) for value in values):
            known.update((value, _bare_text(node, [str(value) for value in values])) for value in node.outputs)
            return
        key = id(graph), node.id
        made = op_box(node.op, values, plate)
        box = self.diagram.add(replace(made, mark=self.marks.boxes.get(key), toll=key in self.extras.tolls, key=key))
        known.update((value, _made(box, graph, value)) for value in node.outputs)

    def body_line(self, repeat: Repeat, body: int) -> tuple[str, ...]:
        """The parameters of one layer; of a stack with one set for all layers they are not each layer's own."""
        line = self.extras.line(repeat.bodies[body])
        return tuple(text.replace(" each", " in all") for text in line) if repeat.shared else line

    def member(self, plate: int, name: str, repeat: Repeat, body: int) -> int:
        """The plate of one member of a cycle."""
        return self.diagram.frame(Plate(plate, name, self.body_line(repeat, body), key=(id(repeat.bodies[body]), "")))

    def details(self, graph: Graph, key: str) -> tuple[str, ...]:
        """What is said of a part that is not its own: its parameters where it is met first, else which use it is."""
        again = "#" in key.rpartition(".")[2]
        return (*(() if again else self.extras.line(graph, key)), *_use(key, graph.scopes[key]))

    def told(self, graph: Graph, call: list[Node], value: int, given: Value) -> Value:
        """A wire with what is to be said beside it where it enters one of these nodes."""
        notes = (self.marks.wires.get((id(graph), node.id, value)) for node in call)
        note = next(filter(None, notes), "") if self.marks.wires else ""
        return replace(given, note=note) if note and isinstance(given, Wire) else given

    def stack(self, graph: Graph, repeat: Repeat, values: list[Value], plate: int) -> Walk:
        """The plates of a stack, each fed by the one below; returns the outputs of the last."""
        outputs: list[Value] = [values[carried or 0] for carried in repeat.carried]
        for fold in folds(repeat, self.dims, expand=self.expand):
            alone = len(fold.members) == 1
            details = (*fold.details, *(self.body_line(repeat, fold.members[0][0]) if alone else ()))
            key = (id(repeat.bodies[fold.members[0][0]]), "") if alone else None
            inner = self.diagram.frame(Plate(plate, fold.title, details, "stack" if _many(fold) else "block", key))
            for body, name in fold.members:
                block = repeat.bodies[body]
                member = inner if alone else self.member(inner, name, repeat, body)
                inputs = _seen(block, (port.value for port in block.inputs), values)
                outputs = yield self.walk(block, inputs, member)
                values = _carry(repeat, values, outputs)
        return outputs


def _made(box: int, graph: Graph, value: int) -> Wire:
    shape = graph.types[value].shape
    return Wire(box, shape, shape)


def _seen(graph: Graph, names: Iterable[int], values: Iterable[Value]) -> dict[int, Value]:
    """Values that come from another graph, with their shapes as this one tells them."""
    pairs = zip(names, values, strict=True)
    return {name: replace(v, seen=graph.types[name].shape) if isinstance(v, Wire) else v for name, v in pairs}


def _carry(repeat: Repeat, values: list[Value], outputs: list[Value]) -> list[Value]:
    """The inputs of the next layer."""
    values = list(values)
    for output, carried in zip(outputs, repeat.carried, strict=True):
        if carried is not None:
            values[carried] = output
    return values


def _many(fold: Fold) -> bool:
    return "×" in fold.title


def _calls(graph: Graph) -> dict[str, list[Node]]:
    """The nodes of each part that is drawn as one box, parameters and numbers left out."""
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        leaf = leaf_scope(graph, node.scope)
        if leaf is not None and node.op.name not in ("param", "constant"):
            found.setdefault(leaf, []).append(node)
    return found


def _use(key: str, scope: Scope) -> tuple[str, ...]:
    """What says that a part is used more than once: `ff · use 2 of 2, shared parameters`."""
    if scope.calls < 2:
        return ()
    number = key.rpartition("#")[2] if "#" in key.rpartition(".")[2] else "1"
    return (f"{scope.path} · use {number} of {scope.calls}, shared parameters",)


def op_box(op: Op, values: list[Value], plate: int) -> Box:
    """The box of an op that stands in an equation."""
    wires = tuple(value for value in values if isinstance(value, Wire))
    bare = [value for value in values if isinstance(value, str)]
    sign = symbol(op)
    if sign and len(values) == 2 and not bare:
        return Box(sign, "circle" if len(sign) == 1 else "pill", "operator", (), wires, plate, direct=True)
    if sign and len(values) == 2 and len(bare) == 1:
        text = f"{bare[0]} {sign} ·" if isinstance(values[0], str) and sign not in "+×" else f"{sign} {bare[0]}"
        family = "linear" if sign == "@" else "operator"
        return Box(text, "pill", family, (), wires, plate, direct=True)
    if sign:
        return Box(sign, "pill", "operator", (), wires, plate, direct=True)
    label = op.label()
    pattern = (label.removeprefix(f"{op.name} ").replace("->", "→"),) if "->" in label else ()
    details = (*pattern, f"with {', '.join(bare)}") if bare else pattern
    family = "norm" if op.role == "norm" else OPS_LIKE_PARTS.get(op.name, "linear" if bare else "other")
    return Box(op.name if pattern else label, "box", family, details, wires, plate, direct=True)


def symbol(op: Op) -> str:
    """The sign of an op that is written between its operands, or nothing."""
    label = op.label()
    return label if label in SIGNS else ""


def _source_text(node: Node, *, inside: bool) -> str:
    """A parameter by its name, one inside a part by the part's name too; a number as it is written."""
    assert isinstance(node.op, Op)
    path = str(getattr(node.op, "path", ""))
    return _brief(".".join(path.split(".")[-2:]) if inside else node.op.label())


def _bare_text(node: Node, operands: list[str]) -> str:
    """A value made of parameters and numbers alone, as in the equation."""
    assert isinstance(node.op, Op)
    sign, label = symbol(node.op), node.op.label()
    if sign and len(operands) == 2:
        return _brief(f"{operands[0]} {sign} {operands[1]}")
    if sign:
        return _brief(f"{sign}{operands[0]}")
    if label == "T" or label.startswith("["):
        return _brief(f"{operands[0]}{'.T' if label == 'T' else label}")
    name = node.op.name if "->" in label else label
    return _brief(f"{name}({', '.join(operands)})")


def _brief(text: str) -> str:
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"
