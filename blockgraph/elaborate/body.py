"""The graph being written: one body, its parts' scopes and parameters, and what all bodies have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from blockgraph.dims import Dim
from blockgraph.elaborate.conditions import Conditions
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.items import Ref
from blockgraph.errors import Place, Related
from blockgraph.graph import ROOT, GraphBuilder, Scope, Step
from blockgraph.module import Report
from blockgraph.op import Op, Type
from blockgraph.ops.unknown import Unknown
from blockgraph.records import dataclass
from blockgraph.spec import Spec

if TYPE_CHECKING:
    from blockgraph.elaborate.instance import Instance

MAX_NODES = 50_000
MAX_NESTING = 40


class TooLarge(Exception):
    """The graph has more distinct nodes than is allowed; `place` is where the last one stands."""

    def __init__(self, place: Place | None) -> None:
        self.place = place
        super().__init__(str(place))


class TooDeep(Exception):
    """Blocks stand in blocks deeper than is allowed."""

    def __init__(self, place: Place) -> None:
        """The call that goes too deep."""
        self.place = place
        super().__init__(str(place))


@dataclass(slots=True)
class Session:
    """One elaboration of a spec: what all bodies share.

    `called` are the blocks that were worked out for known arguments; `lost` says that some value is unknown.
    """

    spec: Spec
    report: Report
    env: Env
    conditions: Conditions = field(default_factory=Conditions)
    repeats: dict[str, Dim] = field(default_factory=dict)
    open_blocks: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    nodes: int = 0
    lost: bool = False

    def add(
        self, code: str, message: str, place: Place, help: str = "", label: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Report an error."""
        self.report.add(code, message, place, help, label=label, related=tuple(related))


@dataclass(slots=True)
class Body:
    """One graph being written. `instances` are its parts by scope key."""

    session: Session
    builder: GraphBuilder
    in_stack: bool = False
    instances: dict[str, Instance] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)

    def node(self, op: Op, *values: int) -> tuple[int, ...]:
        """Add a node; sizes that must be whole become conditions. Raises Misfit."""
        outputs = self.builder.all(op, *values)
        place = self.builder.place
        if place is not None:
            conditions = self.session.conditions
            types = tuple(self.builder.types[value] for value in values)
            if all(t.shape is not None for t in types):
                for need in op.needs(types):
                    conditions.need(need, place)
            for value in outputs:
                for dim in self.builder.types[value].shape or ():
                    if dim not in conditions.seen:
                        conditions.whole(dim, place)
        self.count()
        return outputs

    def count(self) -> None:
        """Count a step. Raises TooLarge."""
        self.session.nodes += 1
        if self.session.nodes > MAX_NODES:
            raise TooLarge(self.builder.place)

    def unknown(self, what: str = "", *values: Ref) -> Ref:
        """A value of unknown shape, in place of one that has a finding."""
        self.session.lost = True
        return Ref(self.builder.append(Unknown(what), (ref.value for ref in values), (Type(None),))[0])

    def type(self, ref: Ref) -> Type:
        """The type of a value."""
        return self.builder.types[ref.value]

    def open_scope(self, around: str, name: str, scope: Callable[[str], Scope]) -> str:
        """A new scope key for a call of a part; the second call of `ff` is `ff#2`."""
        stem = f"{around}.{name}" if around else name
        number = self.opened[stem] = self.opened.get(stem, 0) + 1
        key = stem if number == 1 else f"{stem}#{number}"
        self.builder.scopes[key] = scope(key)
        return key

    def step(self, name: str, ref: Ref, text: str, op: str, depth: int, place: Place | None) -> None:
        """Record a named value."""
        self.builder.steps.append(Step(name, ref.value, text, op, depth, place))


def report_circle(name: str, place: Place, report: Report) -> None:
    """Report a block that is called, by whatever way, within itself."""
    report.add("BG030", f"the block `{name}` contains itself", place, "a block cannot be its own part")


def join(around: str, name: str) -> str:
    """The path of a name inside a path."""
    return f"{around}.{name}" if around != ROOT else name
