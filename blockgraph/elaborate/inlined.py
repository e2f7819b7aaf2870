"""A block that one more part uses writes the same nodes again: they are copied, with new names.

A model of 96 parts of one block, called one after another, is 96 times the same text over values of the same types.
What the first call of a part wrote is kept as an `Inlined`, and the first call of another part takes it over, with the
parts inside it. A call that found something, or that wrote a stack, is never kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from blockgraph.elaborate.body import MAX_NODES, Body
from blockgraph.elaborate.instance import Argument, Instance, ModuleInstance
from blockgraph.elaborate.items import Ref
from blockgraph.elaborate.replay import Start
from blockgraph.graph import Node, Scope, Step
from blockgraph.op import Op, Type
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass

Any_Instance = TypeVar("Any_Instance", bound=Instance)


@dataclass(frozen=True, slots=True)
class Inlined:
    """What the first call of a part wrote. Values from 0 on are the call's own, -1 is its first argument, and so on.

    Names in `nodes`, `scopes` and `steps` are those of the call. `part` is the part as the call left it, `base` its
    first value; `instances` are the parts inside it by scope.
    """

    key: str
    depth: int
    base: int
    nodes: tuple[tuple[Node, tuple[int, ...]], ...]
    types: tuple[Type, ...]
    steps: tuple[tuple[Step, int], ...]
    scopes: Mapping[str, Scope]
    opened: Mapping[str, int]
    results: tuple[int, ...]
    counted: int
    part: ModuleInstance
    instances: Mapping[str, Instance]


def likeness(part: ModuleInstance, args: Mapping[str, Argument]) -> tuple[Any, ...] | None:
    """What two calls have in common that write the same; None for a part that was called before or is not to be had."""
    assert part.module is not None
    values = [ref.value for ref, _ in args.values()]
    types = tuple([part.body.builder.types[value] for value in values])
    if part.calls > 1 or part.parts or part.params or not part.path or any(one.shape is None for one in types):
        return None
    stretchy = tuple([dim.stretchy for one in types for dim in one.shape or ()])  # equal to 1, and not the same
    same = tuple([values.index(value) for value in values])
    inside = (len(part.body.session.open_blocks), part.share, part.env.likeness)
    return (part.module.name, repr(part.decl.options), inside, tuple(args), types, stretchy, same)


def record(
    part: ModuleInstance, args: Mapping[str, Argument], key: str, depth: int, start: Start, refs: tuple[Ref, ...]
) -> Inlined | None:
    """What a call has written since `start`; None if it cannot be copied."""
    body, builder = part.body, part.body.builder
    nodes, types = builder.nodes[start.nodes :], tuple(builder.types[start.types :])
    scopes = list(islice(reversed(builder.scopes), len(builder.scopes) - start.scopes))[::-1]
    if body.session.report.told != start.told or any(one.shape is None for one in types):
        return None
    own = {ref.value: -1 - index for index, (ref, _) in reversed(list(enumerate(args.values())))}
    own |= {value: value - start.types for value in range(start.types, len(builder.types))}
    steps = tuple((step, own[step.value]) for step in builder.steps[start.steps :])
    if any(value < 0 and step.text for step, value in steps):
        return None  # `y = x` is told as what stood before the call
    known = {key, *scopes}
    if not all(isinstance(node.op, Op) and node.scope in known and own.keys() >= {*node.inputs} for node in nodes):
        return None
    made: dict[int, Instance] = {}
    kept = _copied(part, body, lambda path: path, 0, made)
    return Inlined(
        key,
        depth,
        start.types,
        tuple((node, tuple(own[value] for value in node.inputs)) for node in nodes),
        types,
        steps,
        {name: builder.scopes[name] for name in scopes},
        {stem: body.opened[stem] for stem in map(_stem, scopes)},
        tuple(own[ref.value] for ref in refs),
        body.session.nodes - start.counted,
        kept,
        {name: made[id(body.instances[name])] for name in scopes if name in body.instances},
    )


def copy(
    written: Inlined, part: ModuleInstance, args: Mapping[str, Argument], key: str, depth: int
) -> tuple[Ref, ...] | None:
    """Write it once more for another part; None, and nothing is done, if there is no room for it."""
    body, builder = part.body, part.body.builder
    if body.session.nodes + written.counted > MAX_NODES:
        return None
    body.session.nodes += written.counted
    first = len(builder.types)
    given = [ref.value for ref, _ in args.values()]
    own = [*range(first, first + len(written.types)), *reversed(given)]  # -1 is the first argument
    key_at, path_at = len(written.key), len(written.part.path)
    delta, deeper = first - written.base, depth - written.depth

    def path_of(path: str) -> str:
        return part.path + path[path_at:]

    builder.types.extend(written.types)
    scopes = {name: key + name[key_at:] for name in (written.key, *written.scopes)}
    for number, (node, inputs) in enumerate(written.nodes, len(builder.nodes)):
        op = node.op
        if type(op) is Param:
            op = Param(path_of(op.path), op.dims, op.init, op.amount, op.frozen, op.shared)
        outputs = tuple([value + delta for value in node.outputs])
        operands = tuple([own[value] for value in inputs])
        builder.nodes.append(Node(number, op, operands, outputs, scopes[node.scope], node.place, node.text))
    for step, value in written.steps:
        name = key + step.name[key_at:]
        builder.steps.append(Step(name, own[value], step.text, step.op, step.depth + deeper, step.place))
    for name, scope in written.scopes.items():
        path = path_of(scope.path)
        builder.scopes[scopes[name]] = Scope(
            path, scope.kind, scope.title, scope.detail, scope.family, scope.calls, scope.place
        )
    body.opened.update({key + stem[key_at:]: number for stem, number in written.opened.items()})
    _take_over(written, part, path_of, delta, scopes)
    return tuple(Ref(own[value]) for value in written.results)


def _take_over(
    written: Inlined, part: ModuleInstance, path_of: Callable[[str], str], delta: int, scopes: Mapping[str, str]
) -> None:
    """Give a part the parameters and the parts of the one that was kept, with names and values of its own."""
    made: dict[int, Instance] = {}
    copied = _copied(written.part, part.body, path_of, delta, made)
    part.params, part.values, part.parts = copied.params, copied.values, copied.parts
    for name, inside in written.instances.items():
        part.body.instances.setdefault(scopes[name], made[id(inside)])


def _copied(
    part: Any_Instance, body: Body, path_of: Callable[[str], str], delta: int, made: dict[int, Instance]
) -> Any_Instance:
    """A part and those inside it once more, with other names and values; `made` are the copies by id of what they are.

    Blocks stand in blocks less than MAX_NESTING deep, so this may call itself.
    """
    copied = object.__new__(type(part))
    for name in part.__dataclass_fields__:
        value = getattr(part, name)
        setattr(copied, name, dict(value) if type(value) is dict else value)
    copied.body, copied.path = body, path_of(part.path)
    copied.values = {name: Ref(ref.value + delta) for name, ref in part.values.items()}
    copied.parts = {name: _copied(one, body, path_of, delta, made) for name, one in part.parts.items()}
    made[id(part)] = copied
    return copied


def _stem(key: str) -> str:
    """The key without the number of the call: `ff` of `ff#2`."""
    around, dot, last = key.rpartition(".")
    return around + dot + last.partition("#")[0]
