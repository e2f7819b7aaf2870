"""The skip path of a layer: the cheapest way from the stream that comes in to the stream that goes out.

Roles of ops decide what is cheap: additions cost nothing, a scale or a change of axes little, a norm more; nothing else
may stand on a skip path. In a pre-norm layer it has additions only, in a post-norm layer a norm per sublayer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from blockgraph.grad import backward
from blockgraph.records import dataclass
from blockgraph.run import Call

COSTS: Final[Mapping[str, int]] = {"add": 0, "move": 1, "scale": 1, "norm": 1000}


@dataclass(frozen=True, slots=True)
class Hop:
    """One call on the path, and the operand through which the path enters it."""

    call: Call
    operand: int


@dataclass(frozen=True, slots=True)
class SkipPath:
    """The calls from the stream in to the stream out."""

    hops: tuple[Hop, ...]

    @property
    def norms(self) -> int:
        """How many norms stand on it."""
        return sum(hop.call.op.role == "norm" for hop in self.hops)

    def pull_back(self, dy: Any, slots: Mapping[int, Any]) -> Any:
        """What comes back along the path alone: at every call only the operand on the path gets its gradient."""
        for hop in reversed(self.hops):
            dys = [dy if slot == self._leaves(hop) else None for slot in hop.call.outputs]
            dy = backward(hop.call, dys, slots)[hop.operand]
        return dy

    def _leaves(self, hop: Hop) -> int:
        """The output through which the path goes on."""
        index = self.hops.index(hop) + 1
        if len(hop.call.outputs) == 1 or index == len(self.hops):
            return hop.call.outputs[0]
        after = self.hops[index]
        return after.call.inputs[after.operand]


def skip_path(calls: Sequence[Call], entry: int, end: int) -> SkipPath | None:
    """The cheapest path through the calls of a layer; None where only other ops lead from the entry to the end."""
    cost = {entry: 0}
    through: dict[int, Hop] = {}
    for call in calls:
        step = COSTS.get(call.op.role)
        known = [
            (cost[slot], index)
            for index, slot in enumerate(call.inputs)
            if slot in cost and index not in call.op.cuts and index not in call.op.shape_only
        ]
        if step is None or not known:
            continue
        least, operand = min(known)
        for slot in call.outputs:
            cost[slot] = least + step
            through[slot] = Hop(call, operand)
    if end not in cost:
        return None
    hops = []
    slot = end
    while slot != entry:
        hops.append(through[slot])
        slot = through[slot].call.inputs[through[slot].operand]
    return SkipPath(tuple(reversed(hops)))
