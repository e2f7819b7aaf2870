"""Graph -> Diagram: a part becomes one box, a block or a stack a plate, an op in an equation a box of its own.

At level `block` a block is a box; at level `op` a part is a plate, and an op that opens is drawn by its expansion.
Parameters and numbers are no boxes; they are written beside the op that takes them (`× a`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from blockgraph.drawing.alike import Alike
from blockgraph.drawing.diagram import FIGURE, Box, Diagram, Plate, Wire
from blockgraph.drawing.extras import NO_EXTRAS, Extras
from blockgraph.drawing.fold import Fold, folds
from blockgraph.drawing.inscribe import Value, bare_text, family, op_box, operand_names, source_text, titled
from blockgraph.drawing.levels import Level, Reading, contents, opens
from blockgraph.drawing.marking import NO_MARKS, Key, Mark, Marks
from blockgraph.drawing.opening import written_out
from blockgraph.drawing.values import carry, is_read, name_of, seen, wire_of
from blockgraph.graph import Graph, Node, Repeat, Scope
from blockgraph.op import Op
from blockgraph.ops.leaf import Leaf
from blockgraph.ops.unknown import Unknown
from blockgraph.records import dataclass

RESULT = "y"  # what the equations of the built-in kinds call what they give
Walk = Generator["Walk", Any, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """How close to look, whether to write stacks out layer by layer, and what to tell and mark."""

    level: Level = "sublayer"
    expand: bool = False
    marks: Marks = NO_MARKS
    extras: Extras = NO_EXTRAS


def collapse(graph: Graph, look: Look) -> Diagram:
    """The diagram of a graph."""
    layered = any(isinstance(node.op, Repeat) for node in graph.nodes)
    diagram = Diagram(plates=[Plate(None, graph.name, kind="figure")], layered=layered, fine=look.level == "op")
    outputs = _run(_Collapse(diagram, graph.dims, look).whole(graph))
    for port, value in zip(graph.outputs, outputs, strict=True):
        key = (id(graph), graph.producers[port.value].id)
        wire = value if isinstance(value, Wire) else wire_of(diagram.add(Box(value, key=key)), graph, port.value)
        diagram.add(Box(port.name, "output", inputs=(wire,), key=key))
    return diagram


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

    def __init__(self, diagram: Diagram, dims: Mapping[str, int], look: Look) -> None:
        self.diagram, self.dims, self.look = diagram, dims, look
        self.marks, self.extras = look.marks, look.extras

    def whole(self, graph: Graph) -> Walk:
        """Draw a model, made of blocks and stacks; a lone block in a plate, or at level `block` as one box."""
        reading = Reading(graph, self.look.level)
        if any(isinstance(node.op, Repeat) for node in graph.nodes) or "block" in (
            s.family for s in graph.scopes.values()
        ):
            return (yield self.walk(graph, {}, FIGURE))
        if self.look.level != "block":
            return (yield self.walk(graph, {}, self.diagram.frame(Plate(FIGURE, key=(id(graph), "")))))
        known: dict[int, Value] = {}
        for port in graph.inputs:
            self.input(graph, reading.graph.producers[port.value], known)
        return self.body(graph, [known[port.value] for port in graph.inputs], FIGURE)

    def walk(self, graph: Graph, known: dict[int, Value], plate: int) -> Walk:
        """Draw the nodes of a graph inside a plate; returns its outputs. `known` holds its inputs, if any."""
        plates: dict[str, int] = {}
        reading = Reading(graph, self.look.level)
        for node in graph.nodes:
            if node.id in reading.skipped:
                continue
            inner = self.plate(reading, node, plate, plates)
            leaf = reading.leaf(node.scope)
            if node.op.name == "input":
                self.input(graph, node, known)
            elif isinstance(node.op, Repeat):
                outputs = yield self.stack(graph, node.op, [known[value] for value in node.inputs], inner)
                known.update(seen(graph, node.outputs, outputs))
            elif node.op.name in ("param", "constant"):
                known[node.outputs[0]] = source_text(node, inside=bool(node.scope) and node.op.name == "param")
            elif node.id in reading.sums:
                self.sum(graph, node, reading.sums[node.id], known, inner)
            elif leaf is not None:
                if node.outputs[0] not in known:
                    self.part(graph, leaf, reading.calls[leaf], known, inner)
            else:
                self.op(graph, node, known, inner)
        return [known[port.value] for port in graph.outputs]

    def plate(self, reading: Reading, node: Node, plate: int, plates: dict[str, int]) -> int:
        """The innermost plate of a node, made when first met."""
        graph = reading.graph
        beside = next((one for one in reading.alike if node.id in one.beside), None)
        for outer in [*reading.plates(node.scope), *([beside.first] if beside is not None else [])]:
            one = next((one for one in reading.alike if one.first == outer), None)
            if one is not None:
                plate = self.many(one, plate, plates)
            if one is not None and (one is beside or reading.shown[outer] == "box"):
                break
            if outer not in plates:
                scope = graph.scopes[outer]
                made = self.part_plate(plate, scope.title or scope.path, scope.family, (id(graph), outer))
                detail = tuple(filter(None, (self.extras.written(scope.detail),)))
                plates[outer] = self.diagram.frame(replace(made, details=(*detail, *self.details(graph, outer))))
            plate = plates[outer]
        return plate

    def many(self, one: Alike, plate: int, plates: dict[str, int]) -> int:
        """The plate of parts that are alike."""
        key = f"{one.first} and others"
        if key not in plates:
            plates[key] = self.diagram.frame(Plate(plate, f"× {one.count}", (one.name,), "stack"))
        return plates[key]

    def sum(self, graph: Graph, node: Node, one: Alike, known: dict[int, Value], plate: int) -> None:
        """The sum over parts that are alike, of which one is drawn, and what it is added to."""
        term, start = known[one.term], None if one.start is None else known[one.start]
        assert isinstance(term, Wire)
        key = (id(graph), node.id)
        box = Box(
            f"sum over {one.name}", "pill", "operator", (), (replace(term, name=""),), plate, direct=True, key=key
        )
        made = wire_of(self.diagram.add(box), graph, node.outputs[0])
        if isinstance(start, Wire):
            both = op_box(node.op, [replace(start, name=""), made], plate)  # type: ignore[arg-type]
            made = wire_of(self.diagram.add(replace(both, key=key)), graph, node.outputs[0])
        known[node.outputs[0]] = made

    def part_plate(self, parent: int, title: str, family: str, key: Key) -> Plate:
        """The plate of a block, or of a part that is opened."""
        kind: Literal["block", "part"] = "block" if family == "block" else "part"
        mark, toll = self.marks.boxes.get(key), key in self.extras.tolls
        return Plate(parent, title, kind=kind, key=key, family=family, mark=mark, toll=toll)

    def input(self, graph: Graph, node: Node, known: dict[int, Value]) -> None:
        """An input of the main module; inputs of a block are known already."""
        value = node.outputs[0]
        if value not in known:
            box = Box(node.op.label(), "input", key=(id(graph), node.id))
            known[value] = wire_of(self.diagram.add(box), graph, value)

    def part(self, graph: Graph, key: str, call: list[Node], known: dict[int, Value], plate: int) -> None:
        """All nodes of one call as one box."""
        made = {value for node in call for value in node.outputs}
        read = dict.fromkeys(value for node in call for value in node.inputs if value not in made)
        wires = [self.told(graph, call, value, known[value]) for value in read if value in known]
        scope, whole = graph.scopes[key], self.block(graph, key, call)
        details = (*filter(None, (self.extras.written(scope.detail),)), *whole, *self.details(graph, key))
        details = (*details, *self.extras.said((id(graph), key)))
        inputs = tuple(dict.fromkeys(wire for wire in wires if isinstance(wire, Wire)))
        made_for = (id(graph), key)
        mark, toll = self.mark(graph, key), made_for in self.extras.tolls
        title = scope.title or scope.path
        box = Box(title, "box", scope.family, details, inputs, plate, mark=mark, toll=toll, key=made_for)
        leaving = {port.value for port in graph.outputs}
        ids = {node.id for node in call}
        used = [v for v in sorted(made) if v in leaving or any(user.id not in ids for user in graph.users(v))]
        number = self.diagram.add(box)
        known.update((value, wire_of(number, graph, value)) for value in made)
        self.values(graph, number, used, known)

    def block(self, graph: Graph, key: str, call: list[Node]) -> Iterable[str]:
        """What is in a box that stands for a block of the file."""
        return contents(graph, call) if graph.scopes[key].family == "block" else ()

    def mark(self, graph: Graph, key: str = "") -> Mark | None:
        """The mark of a box; of one that stands for a block also that something in it is marked."""
        own = self.marks.boxes.get((id(graph), key))
        if own is not None or (key and graph.scopes[key].family != "block"):
            return own
        nodes = {node.id: f"{node.scope}." for node in graph.nodes}
        names = (
            (nodes.get(name, "") if isinstance(name, int) else f"{name}.", mark)
            for (owner, name), mark in self.marks.boxes.items()
            if owner == id(graph)
        )
        inside = [mark for name, mark in names if not key or name.startswith(f"{key}.")]
        if not inside:
            return None
        guilty = [mark for mark in inside if mark.sign == "!"]
        return guilty[0] if guilty else Mark("~", tuple(line for mark in inside for line in mark.notes))

    def values(self, graph: Graph, box: int, values: Sequence[int], known: dict[int, Value]) -> None:
        """What a box puts out; several values have a port each."""
        for value in values:
            made = replace(wire_of(box, graph, value), called=self.called(graph, value))
            known[value] = made if len(values) == 1 else self.port(graph, value, made, self.diagram.boxes[box].plate)

    def called(self, graph: Graph, value: int) -> str:
        """The name of a value inside a part, where the part is opened."""
        names = [step.name for step in graph.steps if step.value == value and step.name not in graph.scopes]
        inside = self.look.level == "op" and names and ("." in names[-1].rstrip("0123456789.") or not graph.scopes)
        name = name_of(graph, value) if inside else ""
        return "" if name == RESULT else name

    def port(self, graph: Graph, value: int, wire: Wire, plate: int, name: str = "") -> Wire:
        """The named end of a value that stands beside others: of a split, or at the border of a stack."""
        key, title = (id(graph), graph.producers[value].id), name or name_of(graph, value)
        told = replace(wire, called="") if wire.called == title else wire  # the port says it
        box = self.diagram.add(Box(title, "port", "port", (), (told,), plate, key=key))
        return replace(wire, box=box, name="", called="")

    def op(self, graph: Graph, node: Node, known: dict[int, Value], plate: int, key: Key | None = None) -> None:
        """One op of an equation: a box, a circle or, of parameters and numbers alone, just text."""
        assert isinstance(node.op, Op)
        values = self.operands(graph, node, known)
        bare = not any(isinstance(value, Wire) for value in values) and not isinstance(node.op, Unknown)
        if bare and (values or isinstance(node.op, Leaf)):
            known.update((value, bare_text(node, [str(value) for value in values])) for value in node.outputs)
            return
        if self.look.level == "op" and opens(node) and self.opened(graph, node, values, known, plate):
            return
        key = key or (id(graph), node.id)
        mark, toll = self.marks.boxes.get(key), key in self.extras.tolls
        names = operand_names(node.op, [name_of(graph, value) for value in node.inputs])
        named = [replace(v, name=name) if isinstance(v, Wire) else v for v, name in zip(values, names, strict=True)]
        made = op_box(node.op, named, plate, self.extras.written)
        if node.op.name == "index" and self.diagram.plates[plate].kind == "stack":
            made = replace(made, title="its own part")
        details = (*made.details, *self.extras.said(key))
        box = self.diagram.add(replace(made, details=details, mark=mark, toll=toll, key=key))
        leaving = {port.value for port in graph.outputs}
        used = [value for value in node.outputs if graph.users(value) or value in leaving]
        self.values(graph, box, used or node.outputs, known)

    def operands(self, graph: Graph, node: Node, known: dict[int, Value]) -> list[Value]:
        """The operands of an op; a parameter of the part that the op is in has no need of the part's name."""
        found: list[Value] = []
        for value in node.inputs:
            given = self.told(graph, [node], value, known[value])
            source = graph.producers[value]
            own = isinstance(given, str) and source.op.name == "param" and source.scope == node.scope
            found.append(source_text(source, inside=False) if own else given)
        return found

    def opened(self, graph: Graph, node: Node, values: list[Value], known: dict[int, Value], plate: int) -> bool:
        """Draw an op by its expansion, in a plate unless it is what its part is about; False if it has none."""
        assert isinstance(node.op, Op)
        names = [node.op.operand_name(place) for place in range(len(node.inputs))]
        inner = written_out(node.op, [graph.types[value] for value in node.inputs], names)
        if inner is None:
            return False
        key, kind = (id(graph), node.id), family(node.op)
        if self.diagram.plates[plate].family != kind:
            title, details = titled(node.op)
            made = self.part_plate(plate, title, kind, key)
            plate = self.diagram.frame(replace(made, details=tuple(map(self.extras.written, details))))
        inside = dict(zip((port.value for port in inner.inputs), values, strict=True))
        for step in inner.nodes:
            if step.op.name == "constant":
                inside[step.outputs[0]] = source_text(step, inside=False)
            elif step.op.name != "input":
                self.op(inner, step, inside, plate, key)
        known[node.outputs[0]] = inside[inner.outputs[0].value]
        return True

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
        """A wire with its name, and with what is to be said beside it where it enters one of these nodes."""
        if not isinstance(given, Wire):
            return given
        notes = (self.marks.wires.get((id(graph), node.id, value)) for node in call)
        note = next(filter(None, notes), "") if self.marks.wires else ""
        return replace(given, note=note, name=name_of(graph, value))

    def stack(self, graph: Graph, repeat: Repeat, values: list[Value], plate: int) -> Walk:
        """The plates of a stack, each fed by the one below; returns the outputs of the last."""
        outputs: list[Value] = [values[carried or 0] for carried in repeat.carried]
        for fold in folds(repeat, self.dims, expand=self.look.expand):
            alone = len(fold.members) == 1
            details = (*fold.details, *(self.body_line(repeat, fold.members[0][0]) if alone else ()))
            key = (id(repeat.bodies[fold.members[0][0]]), "") if alone else None
            inner = self.diagram.frame(Plate(plate, fold.title, details, "stack" if _many(fold) else "block", key))
            values = self.entering(repeat, fold, values, inner)
            for body, name in fold.members:
                block = repeat.bodies[body]
                if self.look.level == "block" and not _layered(block):
                    outputs = self.body(block, values, inner, "" if alone else name)
                else:
                    member = inner if alone else self.member(inner, name, repeat, body)
                    inputs = seen(block, (port.value for port in block.inputs), values)
                    outputs = yield self.walk(block, inputs, member)
                values = carry(repeat, values, outputs)
            outputs = self.leaving(repeat, fold, outputs, inner)
            values = carry(repeat, values, outputs)
        return outputs

    def entering(self, repeat: Repeat, fold: Fold, values: list[Value], plate: int) -> list[Value]:
        """The values that enter a stack: each of several streams by a port, and what an equation reads itself."""
        block = repeat.bodies[fold.members[0][0]]
        carried = {place for place in repeat.carried if place is not None}
        ported = carried if len(carried) > 1 else set()
        ported |= {
            place for place, port in enumerate(block.inputs) if place not in carried and is_read(block, port.value)
        }
        return [
            self.port(block, port.value, value, plate, port.name)
            if place in ported and isinstance(value, Wire)
            else value
            for place, (value, port) in enumerate(zip(values, block.inputs, strict=True))
        ]

    def leaving(self, repeat: Repeat, fold: Fold, outputs: list[Value], plate: int) -> list[Value]:
        """The values that leave a stack, by a port each if they are several."""
        block = repeat.bodies[fold.members[-1][0]]
        if len(outputs) == 1:
            return outputs
        pairs = zip(outputs, block.outputs, strict=True)
        return [
            self.port(block, port.value, wire, plate, port.name) if isinstance(wire, Wire) else wire
            for wire, port in pairs
        ]

    def body(self, block: Graph, values: list[Value], plate: int, title: str = "") -> list[Value]:
        """A whole block as one box."""
        wires = [
            replace(value, name=port.name)
            for value, port in zip(values, block.inputs, strict=True)
            if isinstance(value, Wire)
        ]
        told = (*contents(block), *(self.extras.line(block) if plate == FIGURE else ()))
        box = Box(
            title or block.name,
            "box",
            "block",
            told,
            tuple(wires),
            plate,
            mark=self.mark(block),
            key=(id(block), ""),
            trunk=0,
        )
        made = self.diagram.add(box)
        return [wire_of(made, block, port.value) for port in block.outputs]


def _layered(graph: Graph) -> bool:
    return any(isinstance(node.op, Repeat) for node in graph.nodes)


def _many(fold: Fold) -> bool:
    return "×" in fold.title


def _use(key: str, scope: Scope) -> tuple[str, ...]:
    """What says that a part is used more than once: `ff · use 2 of 2, shared parameters`."""
    if scope.calls < 2:
        return ()
    number = key.rpartition("#")[2] if "#" in key.rpartition(".")[2] else "1"
    return (f"{scope.path} · use {number} of {scope.calls}, shared parameters",)
