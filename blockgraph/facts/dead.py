"""Dead parameters: those from which no gradient can come back, because no path to the outputs lets it pass.

Told on the folded graph. In the last layers of a stack something may be dead that is alive before: then those layers
are named, `later.5.key.W`; what is dead in all of them is `later.*.key.W`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from blockgraph.dims import Dim
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.ops.leaf import Constant, Param
from blockgraph.records import dataclass

Live = frozenset[int]
EVERY = "*"
MANY = 32


@dataclass(slots=True)
class Known:
    """The numbers of dims, and what was found of bodies, by which of their outputs are live: each is followed once."""

    numbers: Mapping[str, int]
    inputs: dict[tuple[int, Live], Live] = field(default_factory=dict)
    parameters: dict[tuple[int, Live], dict[str, bool]] = field(default_factory=dict)


def dead_parameters(graph: Graph, numbers: Mapping[str, int]) -> tuple[str, ...]:
    """The names of parameters that can never receive a gradient from the outputs, in the order of the graph."""
    ends = frozenset(port.value for port in graph.outputs)
    return tuple(name for name, alive in _walk(graph, ends, Known(numbers), "").items() if not alive)


def live_values(graph: Graph, ends: Live, known: Known) -> Live:
    """The values from which a gradient's path leads to one of `ends`."""
    live = set(ends)
    for node in reversed(graph.nodes):
        if isinstance(node.op, Repeat):
            live |= _live_inputs(node, node.op, live, known)
        elif node.inputs and not live.isdisjoint(node.outputs):
            live |= {value for index, value in enumerate(node.inputs) if _passes(graph, node, index)}
    return frozenset(live)


def _passes(graph: Graph, node: Node, index: int) -> bool:
    """Whether a gradient may reach an operand."""
    assert not isinstance(node.op, Repeat)
    if index in node.op.cuts or index in node.op.shape_only:
        return False
    if graph.types[node.inputs[index]].dtype != "float":
        return False
    others = [value for at, value in enumerate(node.inputs) if at != index]
    return not (node.op.factors == "all" and any(_is_zero(graph, value) for value in others))


def _is_zero(graph: Graph, value: int) -> bool:
    op = graph.producers[value].op
    return isinstance(op, Constant) and op.value == 0


def _live_inputs(node: Node, stack: Repeat, live: set[int], known: Known) -> set[int]:
    ends = frozenset(index for index, value in enumerate(node.outputs) if value in live)
    if not ends:
        return set()
    constant: set[int] = set()
    first = _carried_into(stack, ends)
    for layers in _layers(stack, ends, known):
        inputs = _inputs_of(stack.bodies[layers.body], layers.outputs, known)
        constant |= inputs - set(stack.carried)
        first = inputs & {index for index in stack.carried if index is not None}
    if _number(stack.count, known) is None:  # it may be empty, and then what is carried passes
        first |= _carried_into(stack, ends)
    return {node.inputs[index] for index in constant | first}


def _carried_into(stack: Repeat, outputs: Live) -> Live:
    return frozenset(index for at, index in enumerate(stack.carried) if at in outputs and index is not None)


def _inputs_of(body: Graph, outputs: Live, known: Known) -> Live:
    key = (id(body), outputs)
    found = known.inputs.get(key)
    if found is None:
        live = live_values(body, frozenset(body.outputs[index].value for index in outputs), known)
        found = frozenset(index for index, port in enumerate(body.inputs) if port.value in live)
        known.inputs[key] = found
    return found


@dataclass(frozen=True, slots=True)
class _Layers:
    """Layers of one body with the same live outputs; their numbers, None where the count is not known."""

    body: int
    outputs: Live
    numbers: range | None


def _layers(stack: Repeat, ends: Live, known: Known) -> Iterator[_Layers]:
    """From the last layer to the first, those at the front that are alike together."""
    outputs = ends
    top = _number(stack.count, known)
    for segment in reversed(stack.segments):
        count, cycle = _number(segment.count, known), len(segment.bodies)
        seen: list[Live] = []
        step = 0
        while count is None or step < count:
            if step % cycle == 0:
                if outputs in seen:
                    break
                seen.append(outputs)
            body = segment.bodies[((count or 0) - 1 - step) % cycle]
            yield _Layers(body, outputs, None if top is None else range(top - 1 - step, top - step))
            outputs = _before(stack, body, outputs, known)
            step += 1
        outputs = outputs.union(*seen[seen.index(outputs) :]) if outputs in seen else outputs
        for phase in range(cycle if count is None else min(cycle, count - step)):
            body = segment.bodies[((count or 0) - 1 - step - phase) % cycle]
            rest = range(0) if top is None or count is None else range(top - 1 - step - phase, top - count - 1, -cycle)
            yield _Layers(body, outputs, None if top is None else rest)
            outputs = _before(stack, body, outputs, known)
        top = None if top is None or count is None else top - count


def _before(stack: Repeat, body: int, outputs: Live, known: Known) -> Live:
    """The live outputs of the layer before one."""
    inputs = _inputs_of(stack.bodies[body], outputs, known)
    return frozenset(at for at, index in enumerate(stack.carried) if index in inputs)


def _number(dim: Dim, known: Known) -> int | None:
    return None if dim.symbols - known.numbers.keys() else int(dim.evaluate(dict(known.numbers)))


def _walk(graph: Graph, ends: Live, known: Known, prefix: str) -> dict[str, bool]:
    """Whether each parameter is alive, by its name after `prefix`."""
    live = live_values(graph, ends, known)
    found: dict[str, bool] = {}
    for node in graph.nodes:
        if isinstance(node.op, Param):
            found[prefix + node.op.path] = node.outputs[0] in live
        elif isinstance(node.op, Repeat):
            found.update(_walk_stack(node, node.op, live, known, prefix))
    return found


def _tails_of(body: Graph, outputs: Live, known: Known) -> dict[str, bool]:
    """Whether each parameter of one layer is alive."""
    key = (id(body), outputs)
    if key not in known.parameters:
        values = frozenset(body.outputs[index].value for index in outputs)
        known.parameters[key] = _walk(body, values, known, "")
    return known.parameters[key]


def _walk_stack(node: Node, stack: Repeat, live: Live, known: Known, prefix: str) -> dict[str, bool]:
    ends = frozenset(index for index, value in enumerate(node.outputs) if value in live)
    tails: dict[str, list[tuple[range | None, bool]]] = {}
    for layers in _layers(stack, ends, known):
        body = stack.bodies[layers.body]
        for tail, alive in _tails_of(body, layers.outputs, known).items():
            tails.setdefault(tail, []).append((layers.numbers, alive))
    base, shared = f"{prefix}{stack.path}.", _shared_tails(stack)
    stacks = (node.op for body in stack.bodies for node in body.nodes if isinstance(node.op, Repeat))
    inner = [f"{one.path}." for one in stacks if one.inherited]  # one set for all layers of the stack around it
    found: dict[str, bool] = {}
    for tail, uses in tails.items():
        dead = [numbers for numbers, alive in uses if not alive]
        if len(dead) == len(uses):
            found[f"{base}{EVERY}.{tail}"] = False
        elif not stack.shared and tail not in shared and not any(tail.startswith(one) for one in inner):
            found.update({f"{base}{layer}.{tail}": False for layer in _listed(dead)})
    return found


def _shared_tails(stack: Repeat) -> set[str]:
    """Parameters that all layers of a stack have in common."""
    nodes = (node.op for body in stack.bodies for node in body.nodes)
    return {op.path for op in nodes if isinstance(op, Param) and op.shared}


def _listed(dead: list[range | None]) -> Iterator[str]:
    """The numbers of some layers, from the first; many in a row as `0-99`."""
    for numbers in sorted((one for one in dead if one), key=min):
        if len(numbers) > MANY:
            yield f"{min(numbers)}-{max(numbers)}"
        else:
            yield from (str(number) for number in sorted(numbers))
