"""Every module of a spec worked out by itself, with its parts still at hand.

A graph has forgotten which option was written and which was a default, so the parts themselves are kept here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from blockgraph.dims import Dim, show
from blockgraph.elaborate.body import Body, Session
from blockgraph.elaborate.env import Env, build
from blockgraph.elaborate.instance import Instance, ModuleInstance
from blockgraph.elaborate.items import Fault, Ref
from blockgraph.graph import Condition, GraphBuilder
from blockgraph.module import Module, PartDecl, Report
from blockgraph.op import Type
from blockgraph.ops.leaf import Input
from blockgraph.spec import Spec
from blockgraph.syntax import Name, walk


@dataclass(frozen=True, slots=True)
class Opened:
    """A module with its parts, and the types of its values by step: `x.2`, `scores`."""

    module: Module
    parts: Mapping[str, Instance]
    types: Mapping[str, Type]

    def shapes(self) -> Iterator[str]:
        """The shapes of each equation's targets, in order: `(B, T, C)`; empty where unknown."""
        inputs = {one.name for one in self.module.inputs}
        targets = [target.name for line in self.module.lines for target in line.equation.targets]
        assigned = Counter([*inputs, *targets])
        version = Counter(inputs)
        for line in self.module.lines:
            found = []
            for target in line.equation.targets:
                name = target.name
                version[name] += 1
                found.append(self._shape(name if assigned[name] == 1 else f"{name}.{version[name]}"))
            yield ", ".join(found) if all(found) else ""

    def _shape(self, step: str) -> str:
        given = self.types.get(step)
        if given is None or given.shape is None:
            return ""
        words = {"int": " ids", "bool": " true or false"}
        return show(given.shape) + words.get(given.dtype, "")


@dataclass(frozen=True, slots=True)
class OpenedSpec:
    """The modules by name, the conditions of the whole, and the numbers they are held against."""

    modules: Mapping[str, Opened]
    conditions: tuple[Condition, ...]
    numbers: Mapping[str, int]


def open_spec(spec: Spec) -> OpenedSpec:
    """Every module of a spec without errors, the main one first."""
    session = _session(spec)
    names = sorted(spec.modules, key=lambda name: name != spec.main)
    modules = {}
    for name in names:
        # A block that others use is worked out with them; here it only shows what its own declaration gives.
        own = _session(spec) if name in session.called else session
        own.nodes = 0
        modules[name] = _open(own, spec.modules[name], in_stack=name != spec.main)
    found = session.conditions.found.values()
    conditions = tuple(one for one in found if one.smaller.symbols | one.larger.symbols)
    return OpenedSpec({name: modules[name] for name in spec.modules}, conditions, session.env.numbers)


def _session(spec: Spec) -> Session:
    report = Report()
    return Session(spec, report, build(spec, report))


def _open(session: Session, module: Module, *, in_stack: bool) -> Opened:
    """One module over its inputs as declared. In a stack `layer` means something."""
    builder = GraphBuilder(module.name)
    body = Body(session, builder, in_stack=in_stack)
    env = replace(session.env, in_stack=in_stack, free=_free(session.env, module))
    main = ModuleInstance(body, PartDecl(module.name, module.name, {}, module.path), "", env, module=module)
    values: dict[str, Ref] = {}
    for one in module.inputs:
        builder.place = session.spec.document.key(one.path)
        shape = [dim for axis in one.dims if (dim := env.size(axis)) is not None]
        known = len(shape) == len(one.dims)
        values[one.name] = Ref(body.node(Input(one.name, tuple(shape), one.dtype))[0]) if known else body.unknown()
    session.open_blocks.append(module.name)
    main.run_module(values, env, "", 0)
    session.open_blocks.pop()
    types = {step.name: builder.types[step.value] for step in builder.steps}
    return Opened(module, main.parts, types)


def _free(env: Env, module: Module) -> dict[str, Dim]:
    names = {
        node.name for one in module.inputs for axis in one.dims for node in walk(axis.expr) if isinstance(node, Name)
    }
    return {name: Dim(name) for name in sorted(names) if _is_free(env, name)}


def _is_free(env: Env, name: str) -> bool:
    try:
        env.name(Name(0, 0, name))
    except Fault:
        return True
    return False
