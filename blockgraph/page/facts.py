"""What the side panel says about one box: formula, equations, shapes, parameters, costs, lines of the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from blockgraph.cost.bodies import bodies
from blockgraph.cost.nodes import NodeCosts
from blockgraph.cost.parameters import number
from blockgraph.cost.tally import Counting, Tally, total
from blockgraph.dims import Dim, DimError, Shape, show
from blockgraph.drawing import Box, Key, Plate, guilty
from blockgraph.drawing.faults import matching
from blockgraph.errors import Finding, Place
from blockgraph.graph import Graph, Node, Repeat, Scope
from blockgraph.kind import load_kinds
from blockgraph.op import Op, volume
from blockgraph.ops.leaf import Leaf, Param
from blockgraph.page.subject import Inner, Lines, inner_graphs, no_lines
from blockgraph.records import dataclass

Fact = dict[str, Any]
"""Plain data, as the page's script reads it; what is empty is left out."""


@dataclass(frozen=True)
class Facts:
    """The facts of all boxes and plates of some graphs; `numbers` are sizes known beside the graphs' own."""

    graphs: Sequence[Graph]
    findings: Sequence[Finding] = ()
    lines: Lines = field(default=no_lines, repr=False)
    numbers: Mapping[str, int] = field(default_factory=dict)

    def of_box(self, box: Box, *, step: bool = False) -> Fact:
        """What is known of a box; a `step` is one of several boxes that together stand for one op."""
        title, details = box.text
        shown: Fact = {"title": title, "details": list(details), "family": box.family}
        if box.key is None:
            return _without_empty(shown)
        if box.look == "output":
            return self._output(box, self._inner[box.key[0]].graph)
        if step:
            found = self._of(box.key)
            wires = [[wire.name or "input", *self.shape(wire.shape)] for wire in box.inputs]
            told = ("name", "equations", "places", "findings")
            shown |= {name: found[name] for name in told if name in found}
            return _without_empty({**shown, "kind": f"a step of {found['kind']}", "operands": wires})
        return {**self._of(box.key), **_without_empty(shown)}

    def of_plate(self, plate: Plate) -> Fact:
        """What is known of a plate; of a block or a layer the sums over what is in it."""
        shown = _without_empty({"title": plate.title or "block", "details": list(plate.details)})
        found = self._of(plate.key) if plate.key is not None else {}
        if plate.key is not None and plate.key[1] == "":
            found.pop("parameters", None)  # they are told at the parts
        return {**found, **shown, "family": plate.family or "plate"}

    def _of(self, key: Key) -> Fact:
        """What is known of a body, a part or an op."""
        owner, which = key
        inner, nodes = self._inner[owner], self.nodes(key)
        graph, scope = inner.graph, inner.graph.scopes.get(str(which))
        if which == "" or (scope is not None and scope.family == "block"):
            return self._block(inner, scope, nodes)
        found = {
            "name": scope.path if scope is not None else self._name(graph, nodes),
            "kind": scope.kind if scope is not None else nodes[0].op.name if nodes else "",
            "formula": _formula(scope, nodes),
            "equations": _equations(graph, scope, which, nodes),
            "inside": self._inside(graph, nodes, which),
            "operands": [self._value(graph, value) for value in _operands(graph, nodes)],
            "results": [self._value(graph, value) for value in _results(graph, nodes)],
            "parameters": self._parameters(graph, nodes, scope.path if scope is not None else ""),
            "costs": self._costs(owner, nodes),
            "places": self._places(scope, nodes),
            "findings": self._found(owner, which, nodes),
        }
        return _without_empty(found)

    def _block(self, inner: Inner, scope: Scope | None, nodes: Sequence[Node]) -> Fact:
        """A block or the body of a stack: its equations, and the sums over what is in it."""
        graph, top = inner.graph, scope is None
        ports = (graph.inputs, graph.outputs) if top else ((), ())
        read = [port.value for port in ports[0]] if top else _operands(graph, nodes)
        made = [port.value for port in ports[1]] if top else _results(graph, nodes)
        found = {
            "name": graph.name if scope is None else scope.path,
            "kind": "block" if scope is None else scope.kind,
            "equations": list(dict.fromkeys(node.text for node in nodes if node.scope == "" and node.text)),
            "operands": [self._value(graph, value) for value in read],
            "results": [self._value(graph, value) for value in made],
            "parameters": self._parameters(graph, nodes, "" if scope is None else scope.path),
            "costs": self._costs(id(graph), nodes, parameters=True),
            "places": self._places(scope, [inner.node] if inner.node is not None else []),
        }
        return _without_empty(found)

    def nodes(self, key: Key) -> list[Node]:
        """The nodes that a box or a plate stands for, parameters included."""
        owner, which = key
        graph = self._inner[owner].graph
        if isinstance(which, int):
            return [node for node in graph.nodes if node.id == which]
        return self._by_scope[owner].get(which, []) if which else list(graph.nodes)

    @cached_property
    def _inner(self) -> Mapping[int, Inner]:
        return inner_graphs(self.graphs)

    @cached_property
    def _by_scope(self) -> dict[int, dict[str, list[Node]]]:
        """The nodes in each scope and the scopes inside it, for each graph."""
        found: dict[int, dict[str, list[Node]]] = {}
        for owner, inner in self._inner.items():
            scopes = found[owner] = {}
            for node in inner.graph.nodes:
                steps = node.scope.split(".")
                for end in range(1, len(steps) + 1):
                    scopes.setdefault(".".join(steps[:end]), []).append(node)
        return found

    @cached_property
    def _tallies(self) -> dict[int, NodeCosts]:
        """What tells the costs in each graph; nothing where a shape is unknown."""
        graphs = [inner.graph for inner in self._inner.values()]
        if any(given.shape is None for graph in graphs for given in graph.types):
            return {}
        found: dict[int, NodeCosts] = {}
        for graph in self.graphs:
            for body in bodies(graph):
                found.setdefault(id(body.graph), NodeCosts(body, Counting(), graph.dims))
        return found

    def _called(self, graph: Graph, value: int) -> str:
        """The name of a value; one without a name is told by the op that makes it."""
        name = self._names[id(graph)].get(value)
        node = graph.producers.get(value)
        return name or ("" if node is None else node.op.label())

    @cached_property
    def _names(self) -> dict[int, dict[int, str]]:
        """The names of values in each graph: the outermost, of several the first."""
        found: dict[int, dict[int, str]] = {}
        for owner, inner in self._inner.items():
            names = found[owner] = {}
            for step in sorted(inner.graph.steps, key=lambda step: step.depth):
                names.setdefault(step.value, step.name)
        return found

    def _known(self) -> dict[str, int]:
        known: dict[str, int] = {}
        for graph in self.graphs:
            known |= graph.dims
        return known | dict(self.numbers)

    def shape(self, shape: Shape | None) -> list[str]:
        """A shape in symbols, and in numbers as far as they are known."""
        return [show(shape), "" if shape is None else self.in_numbers(shape)]

    def in_numbers(self, shape: Shape) -> str:
        """A shape with the known symbols replaced."""
        try:
            return show(tuple(dim.subs(self._known()) for dim in shape))
        except DimError:
            return ""

    def _value(self, graph: Graph, value: int) -> list[str]:
        """Name and shape of a value."""
        given = graph.types[value]
        words = {"int": " ids", "bool": " true or false"}.get(given.dtype, "")
        symbols, numbers = self.shape(given.shape)
        return [self._called(graph, value), symbols + words, numbers]

    def _name(self, graph: Graph, nodes: Sequence[Node]) -> str:
        return self._called(graph, nodes[-1].outputs[0]) if nodes and nodes[-1].outputs else ""

    def _inside(self, graph: Graph, nodes: Sequence[Node], key: int | str) -> list[list[str]]:
        """The named values inside a part: equation and shape."""
        made = {value for node in nodes for value in node.outputs}
        if isinstance(key, int):
            return []
        steps = [step for step in graph.steps if step.value in made and step.name.startswith(f"{key}.")]
        return [[step.text or step.name, *self.shape(graph.types[step.value].shape)] for step in steps]

    def _parameters(self, graph: Graph, nodes: Sequence[Node], part: str = "") -> list[list[str]]:
        """Name in its part, shape and count of each parameter; of an op those that it reads."""
        read = [node for node in nodes if isinstance(node.op, Param)] or list(_read_parameters(graph, nodes))
        found = []
        for node in read:
            assert isinstance(node.op, Param)
            count = volume(node.op.dims)
            known = number(count, self._known())
            shapes = self.shape(node.op.dims)
            found.append(
                [node.op.path.removeprefix(f"{part}."), *shapes, str(count) if known is None else f"{known:,}"]
            )
        return found

    def _costs(self, owner: int, nodes: Sequence[Node], *, parameters: bool = False) -> list[list[str]]:
        """Label, formula and number of each cost of one layer that is not nothing."""
        costs = self._tallies.get(owner)
        if costs is None:
            return []
        one = total(costs.tally(node, "") for node in nodes if not isinstance(node.op, Repeat))
        rows = [self._amount(label, size) for label, size in _amounts(one, parameters=parameters) if size != 0]
        layers = costs.body.layers
        if rows and layers is not None and layers != 1:
            rows.append(["layers", str(layers), self._amount("", layers)[2]])
        return rows

    def _amount(self, label: str, size: Dim) -> list[str]:
        known = number(size, self._known())
        return [label, str(size), str(size.subs(self._known())) if known is None else f"{known:,}"]

    def _places(self, scope: Scope | None, nodes: Sequence[Node]) -> list[list[Any]]:
        """Lines of the spec: number and text."""
        places = [scope.place if scope is not None else None, *(node.place for node in nodes[-1:])]
        found: dict[int, str] = {}
        for place in places:
            text = self.lines(place.path, place.start.line) if place is not None else None
            if place is not None and text is not None:
                found[place.start.line] = text
        return [[line, found[line]] for line in sorted(found)]

    def _found(self, owner: int, scope: str | int, nodes: Sequence[Node]) -> list[int]:
        """The findings about a box, by number."""
        keys = {(owner, scope), *((owner, node.id) for node in nodes)}
        return [number for number, blamed in enumerate(self._blamed) if not keys.isdisjoint(blamed)]

    @cached_property
    def _blamed(self) -> list[set[Key]]:
        """What each finding is about: the part whose declaration it is in, else what its text makes; and the fault."""
        graphs = [inner.graph for inner in self._inner.values()]
        found = [_declared(graphs, one.place) or _nearest(graphs, one.place) for one in self.findings]
        for graph in graphs:
            for node in guilty(graph, self.findings):
                for one in matching(graph, node, self.findings):
                    found[self.findings.index(one)].add((id(graph), node.id))
        return found

    def _output(self, box: Box, figure: Graph) -> Fact:
        values = {port.name: port.value for port in figure.outputs}
        shape = [self._value(figure, values[box.title])] if box.title in values else []
        return _without_empty({"title": box.title, "name": box.title, "kind": "output", "results": shape})


def _without_empty(found: Fact) -> Fact:
    return {key: value for key, value in found.items() if value}


def _amounts(one: Tally, *, parameters: bool) -> Iterator[tuple[str, Dim]]:
    if parameters:
        yield "parameters", one.weights.total
    yield "FLOPs in matrix products", one.products
    yield "other FLOPs", one.elementwise
    yield "bytes put out (float32)", one.activations


def _formula(scope: Scope | None, nodes: Sequence[Node]) -> str:
    """The formula of a kind, or of an op that stands by itself."""
    if scope is not None:
        kind = load_kinds().get(scope.kind)
        return _first_line(kind) if kind is not None else ""
    op = nodes[0].op if nodes else None
    return _first_line(type(op)) if isinstance(op, Op) and not isinstance(op, Leaf) and op.name != "unknown" else ""


def _first_line(what: type) -> str:
    return (what.__doc__ or "").strip().partition("\n")[0]


def _equations(graph: Graph, scope: Scope | None, key: int | str, nodes: Sequence[Node]) -> list[str]:
    """The text of the spec that a box comes from: the call of a part, the equation of an op."""
    if scope is not None:
        return [step.text for step in graph.steps if step.name == key and step.text][:1]
    return list(dict.fromkeys(node.text for node in nodes if node.text))


def _operands(graph: Graph, nodes: Sequence[Node]) -> list[int]:
    """The values that come from outside, parameters and numbers left out."""
    made = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(value for node in nodes for value in node.inputs if value not in made)
    return [value for value in read if not graph.types[value].bare]


def _results(graph: Graph, nodes: Sequence[Node]) -> list[int]:
    """The values that are read outside, or that nobody reads."""
    inside = {node.id for node in nodes}
    outputs = {port.value for port in graph.outputs}
    values = [v for node in nodes if not isinstance(node.op, Param) for v in node.outputs if not graph.types[v].bare]
    used = [v for v in values if v in outputs or any(user.id not in inside for user in graph.users(v))]
    return used or values[-1:]


def _read_parameters(graph: Graph, nodes: Sequence[Node]) -> Iterator[Node]:
    """The parameters an op reads, also through ops on parameters and numbers alone."""
    waiting = [value for node in nodes for value in node.inputs if graph.types[value].bare]
    seen: set[int] = set()
    while waiting:
        node = graph.producers[waiting.pop()]
        if node.id not in seen:
            seen.add(node.id)
            waiting += node.inputs
            if isinstance(node.op, Param):
                yield node


def _declared(graphs: Sequence[Graph], place: Place) -> set[Key]:
    """The parts whose declaration a place is in, the innermost if it is in several."""
    found: dict[str, set[Key]] = {}
    for graph in graphs:
        for key, scope in graph.scopes.items():
            path = scope.place.spec_path if scope.place is not None and scope.place.path == place.path else ""
            if path and f"{place.spec_path}.".startswith((f"{path}.", f"{path}[")):
                found.setdefault(path, set()).add((id(graph), key))
    return found[max(found, key=len)] if found else set()


def _nearest(graphs: Sequence[Graph], place: Place) -> set[Key]:
    """The nodes made by a stretch of text, else by the least one around it, else by its line."""
    if place.start == place.end:
        return set()
    nodes = [(id(graph), node.id, node.place) for graph in graphs for node in graph.nodes if node.place is not None]
    near = [one for one in nodes if (one[2].path, one[2].start.line) == (place.path, place.start.line)]
    inside = [one for one in near if place.start <= one[2].start and one[2].end <= place.end]
    around = [one for one in near if one[2].start <= place.start and place.end <= one[2].end]
    most = max((_length(one[2]) for one in inside), default=(0, 0))
    least = min((_length(one[2]) for one in around), default=(0, 0))
    chosen = [one for one in inside if _length(one[2]) == most]
    chosen = chosen or [one for one in around if _length(one[2]) == least] or near
    return {(owner, node) for owner, node, _ in chosen}


def _length(place: Place) -> tuple[int, int]:
    return place.end.line - place.start.line, place.end.column - place.start.column
