"""What stands in a graph for a step that has a finding, so that everything around it can still be told and drawn."""

from __future__ import annotations

from typing import Any, final

from blockgraph.op import Cost, Op, Type
from blockgraph.pattern import Pattern
from blockgraph.records import dataclass


@final
@dataclass(frozen=True)
class Unknown(Op, name="unknown"):
    """A value whose shape is unknown; it fits everything. A graph with one in it cannot run."""

    signature = "*xs"
    function = False
    what: str = ""

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """Nothing is known of it."""
        return (Type(None),)

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """No axis is known."""
        return Pattern(((),) * len(types), ((),))

    def forward(self, *arrays: Any) -> Any:
        """A graph with findings is never run."""
        raise AssertionError("a graph with findings is never run")

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing."""
        return Cost()

    def label(self) -> str:
        """What it stands for."""
        return self.what or "?"
