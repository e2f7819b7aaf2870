"""Every module of a spec worked out by itself, with its parts still at hand.

A graph has forgotten which option was written and which was a default, so the parts themselves are kept here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from blockgraph.dims import show
from blockgraph.elaborate import open_module
from blockgraph.elaborate.body import Session
from blockgraph.elaborate.env import build
from blockgraph.elaborate.instance import Instance
from blockgraph.graph import Condition
from blockgraph.module import Module, Report
from blockgraph.op import Type
from blockgraph.records import dataclass
from blockgraph.spec import Spec


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
    graph, main = open_module(session, module, in_stack)
    return Opened(module, main.parts, {step.name: graph.types[step.value] for step in graph.steps})
