"""A kind that is opened as one before writes the same nodes again: they are copied, with new names and places.

A file of 96 written-out layers has few distinct parts: the second norm of a block differs from the first in its name
and its line only. What the first call wrote is kept as a `Written`, and a later call with equal options and equal types
of its arguments takes it over. A call that found something, or opened parts with nodes of their own, is never kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.dims import Dim
from blockgraph.elaborate.body import MAX_NODES, Body, join
from blockgraph.elaborate.instance import ActivationInstance, Argument, Instance, ParamSpec
from blockgraph.elaborate.items import Item, Ref
from blockgraph.errors import Place, SpecPath
from blockgraph.graph import Node, Step
from blockgraph.kind import Kind
from blockgraph.op import Op, Type
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

if TYPE_CHECKING:
    from blockgraph.elaborate.parts import KindInstance


@dataclass(frozen=True, slots=True)
class Start:
    """How far everything was when a call began."""

    nodes: int
    types: int
    steps: int
    scopes: int
    told: int
    counted: int

    @classmethod
    def of(cls, body: Body) -> Start:
        """The state of a body and its session."""
        builder, session = body.builder, body.session
        nodes, types, steps = len(builder.nodes), len(builder.types), len(builder.steps)
        return cls(nodes, types, steps, len(builder.scopes), session.report.told, session.nodes)


@dataclass(frozen=True, slots=True)
class Line:
    """One node, perhaps that of the parameter `param`. Values from 0 on are the call's own, -1 is its first argument.

    The second argument is -2, and so on.
    """

    op: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    text: str
    param: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """What the first call of a kind wrote and found out; values as in `Line`."""

    lines: tuple[Line, ...]
    types: tuple[Type, ...]
    steps: tuple[tuple[str, int, str, str], ...]
    result: int
    counted: int
    given: Kind
    options: Kind
    letters: dict[str, Item]
    widths: dict[str, Dim]
    params: tuple[ParamSpec, ...]
    parts: dict[str, Instance]
    path: SpecPath


def likeness(instance: KindInstance, args: Mapping[str, Argument]) -> tuple[Any, ...] | None:
    """What two calls have in common that write the same; None for a part that was called before or is not to be had."""
    if instance.opened or instance.options is None or instance.calls > 1 or instance.values:
        return None
    values = [ref.value for ref, _ in args.values()]
    types = tuple(instance.body.builder.types[value] for value in values)
    if any(one.shape is None for one in types):
        return None
    stretchy = tuple(dim.stretchy for one in types for dim in one.shape or ())  # equal to 1, and not the same
    same = tuple(values.index(value) for value in values)
    return (instance.kind.name, id(instance.options), instance.share, tuple(args), types, stretchy, same)


def record(
    instance: KindInstance, given: Kind, args: Mapping[str, Argument], key: str, place: Place, start: Start, ref: Ref
) -> Written | None:
    """What a call has written since `start`; None if it cannot be copied. `given` are the options it was given."""
    body, builder = instance.body, instance.body.builder
    types = tuple(builder.types[start.types :])
    clean = body.session.report.told == start.told and len(builder.scopes) == start.scopes
    plain = all(isinstance(part, ActivationInstance) for part in instance.parts.values())
    if not (clean and plain and instance.opened) or any(one.shape is None for one in types):
        return None
    own = {ref.value: -1 - index for index, (ref, _) in reversed(list(enumerate(args.values())))}
    own |= {value: value - start.types for value in range(start.types, len(builder.types))}
    names = {ref.value: name for name, ref in instance.values.items()}
    lines = []
    for node in builder.nodes[start.nodes :]:
        param = names.get(node.outputs[0])
        at = instance.params[param].place if param is not None else place
        if node.scope != key or node.place is not at or any(value not in own for value in node.inputs):
            return None
        inputs, outputs = (tuple(own[value] for value in side) for side in (node.inputs, node.outputs))
        assert isinstance(node.op, Op)
        lines.append(Line(node.op, inputs, outputs, node.text, param))
    steps = builder.steps[start.steps :]
    if any(step.place is not place or not step.name.startswith(f"{key}.") for step in steps):
        return None
    return Written(
        tuple(lines),
        types,
        tuple((step.name[len(key) :], own[step.value], step.text, step.op) for step in steps),
        own[ref.value],
        body.session.nodes - start.counted,
        given,
        instance.options or given,
        instance.letters,
        instance.widths,
        tuple(instance.params.values()),
        instance.parts,
        instance.decl.path,
    )


def replay(
    written: Written, instance: KindInstance, args: Mapping[str, Argument], key: str, place: Place, depth: int
) -> Ref | None:
    """Write it once more for another instance; None, and nothing is done, if there is no room for it."""
    body, builder = instance.body, instance.body.builder
    if body.session.nodes + written.counted > MAX_NODES:
        return None
    body.session.nodes += written.counted
    first, declared = len(builder.types), instance.place
    given = [ref.value for ref, _ in args.values()]
    own = [*range(first, first + len(written.types)), *reversed(given)]  # -1 is the first argument
    builder.types.extend(written.types)
    for line in written.lines:
        op, at = line.op, place
        if line.param is not None:
            assert isinstance(op, Param)
            name = join(instance.path, line.param)
            op, at = Param(name, op.dims, op.init, op.amount, op.frozen, op.shared), declared
            instance.values[line.param] = Ref(own[line.outputs[0]])
        inputs, outputs = (tuple([own[value] for value in side]) for side in (line.inputs, line.outputs))
        builder.nodes.append(Node(len(builder.nodes), op, inputs, outputs, key, at, line.text))
    for name, value, text, made in written.steps:
        builder.steps.append(Step(key + name, own[value], text, made, depth, place))
    instance.options, instance.letters, instance.widths = written.options, written.letters, dict(written.widths)
    instance.params = {
        one.name: ParamSpec(one.name, one.dims, one.init, one.frozen, declared) for one in written.params
    }
    instance.parts = {name: _moved(part, name, instance, written.path) for name, part in written.parts.items()}
    instance.opened = True
    return Ref(own[written.result])


def _moved(part: Instance, name: str, instance: KindInstance, around: SpecPath) -> Instance:
    """An activation inside a kind that is declared at the path `around`, inside another use of the kind."""
    path = (*instance.decl.path, *part.decl.path[len(around) :])
    decl = replace(part.decl, path=path)
    return replace(part, body=instance.body, decl=decl, path=join(instance.path, name), env=instance.env, values={})
