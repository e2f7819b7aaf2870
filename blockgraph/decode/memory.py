"""How much memory a generation takes, told before it starts: from shapes alone, nothing is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Final

from blockgraph.cost.memory import WIDTHS, MemoryReport, looks, memory
from blockgraph.decode.bind import FIRST_TABLE
from blockgraph.decode.cache import room_of
from blockgraph.decode.derive import Keep, Run, Schedule
from blockgraph.decode.fused import together
from blockgraph.decode.sampling import PROMPT_ROWS
from blockgraph.graph import Graph
from blockgraph.op import Op
from blockgraph.ops.leaf import Input, Param
from blockgraph.records import dataclass

READ_TOGETHER: Final = 3  # so many products of one value a run holds at once too: queries, keys and values


def foresee(schedule: Schedule, numbers: Mapping[str, int], prompt: int, total: int, dtype: str) -> MemoryReport:
    """The memory for `total` positions, of which the prompt has so many; `numbers` holds every symbol but that of time.

    Values count as in a run over as much of the prompt as is read at once, without what only the scores need, or over
    one position with the scores; rows that are kept and weights that are held twice come on top.
    """
    graph, rows = schedule.graph, min(max(prompt - 1, 1), PROMPT_ROWS)
    known, time = {**graph.dims, **numbers}, str(schedule.timing.time)
    last, fed = memory(graph, {**known, time: 1}, dtype), memory(_feeding(schedule), {**known, time: rows}, dtype)
    held = _Held(schedule, {**known, time: total}, dtype)
    tables = _Held(schedule, {**known, time: max(total, FIRST_TABLE)}, dtype)
    more = sum(held.kept(one, rows) for one in schedule.kept) + sum(map(tables.bytes, schedule.tables))
    at_once = _Held(schedule, {**known, time: rows}, dtype).at_once()
    return replace(last, values=max(last.values, fed.values + at_once) + more + held.fixed())


def _feeding(schedule: Schedule) -> Graph:
    """What is computed where only later steps count: the graph up to the values that are kept."""
    needed = {one.source.value for one in schedule.kept}
    nodes = []
    for node in reversed(schedule.graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    return replace(schedule.graph, nodes=tuple(reversed(nodes)), outputs=())


@dataclass(frozen=True)
class _Held:
    """Bytes of what stays from step to step; `numbers` holds all symbols."""

    schedule: Schedule
    numbers: Mapping[str, int]
    dtype: str

    def shape(self, value: int) -> tuple[int, ...]:
        dims = self.schedule.graph.types[value].shape or ()
        return tuple(int(dim.evaluate(dict(self.numbers))) for dim in dims)

    def width(self, value: int) -> int:
        return {"float": WIDTHS[self.dtype], "int": 8, "bool": 1}[self.schedule.graph.types[value].dtype]

    def bytes(self, value: int) -> int:
        return self.width(value) * prod(self.shape(value))

    def kept(self, one: Keep, rows: int) -> int:
        """Rows of one value: of all positions, or those of a window and the room to move it in."""
        shape = list(self.shape(one.source.value))
        if one.past is not None:
            shape[one.axis] = room_of(one.past, rows)
        return self.width(one.source.value) * prod(shape)

    def shapes(self) -> dict[int, tuple[int, ...]]:
        """Those of what is the same at every step."""
        return {value: self.shape(value) for value in self.schedule.fixed}

    def joined(self) -> Iterator[list[Run]]:
        """The products that become one."""
        return (products for _, products in together(self.schedule, self.shapes()))

    def at_once(self) -> int:
        """What products that become one hold beyond a run of one after the other, such as those of many experts."""
        sizes = [sorted(self.bytes(one.outputs[0].value) for one in products) for products in self.joined()]
        return max((sum(group[:-READ_TOGETHER]) for group in sizes), default=0)

    def fixed(self) -> int:
        """What is computed once, and the weights of products that become one."""
        shapes = self.shapes()
        twice = (one.inputs[1].value for products in self.joined() for one in products)
        made = (
            value
            for node in self.schedule.graph.nodes
            if isinstance(node.op, Op) and not isinstance(node.op, Input | Param) and not looks(node.op)
            for value in node.outputs
            if value in shapes
        )
        return sum(map(self.bytes, (*twice, *made)))
