"""The residual highway in a drawing: the wires of the cheapest way from bottom to top, additions being free."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from blockgraph.drawing.diagram import FIGURE, Box, Wire
from blockgraph.drawing.wiring import Wiring

COST: Final = {"norm": 1_000, "operator": 1}
DEAR: Final = 1_000_000


def trail(wiring: Wiring) -> set[tuple[int, int]]:
    """The wires of the way, as (source, target); of a model with stacks from its first plate to its last."""
    ends = [box for box in wiring.live if wiring.boxes[box].look == "output"]
    way = _way(wiring, ends[0]) if ends else []
    if not wiring.diagram.layered:
        return set(pairwise(way))
    inner = [place for place, box in enumerate(way) if wiring.boxes[box].plate != FIGURE]
    return set(pairwise(way[max(inner[0] - 1, 0) : inner[-1] + 2])) if inner else set()


def _way(wiring: Wiring, end: int) -> list[int]:
    """The boxes of the cheapest way from an input to a box; from the input of its name if there is one."""
    boxes = wiring.boxes
    inputs = [box for box in wiring.live if boxes[box].look == "input"]
    starts = [box for box in inputs if boxes[box].title == boxes[end].title] or inputs
    costs, before = dict.fromkeys(starts, 0), dict[int, int]()
    for index in wiring.live:
        found = [(costs[wire.box], wire.box) for wire in _carrying(wiring, index) if wire.box in costs]
        if found and index not in costs:
            cost, before[index] = min(found, key=lambda item: item[0])
            costs[index] = cost + _cost(boxes[index])
    way = [end] if end in costs else []
    while way and way[-1] in before:
        way.append(before[way[-1]])
    return way[::-1]


def _carrying(wiring: Wiring, index: int) -> list[Wire]:
    """The operands that may be the stream: all of an op in an equation; of a part the one from below, no memory."""
    box, main = wiring.boxes[index], wiring.main(index)
    if box.direct or box.look == "circle":
        return list(box.inputs)
    return [] if main is None else [main]


def _cost(box: Box) -> int:
    """As the proof of the highway counts: additions are free, scales cheap, norms dear, all else dearer."""
    return 0 if box.is_plus or box.look in ("output", "port") else COST.get(box.family, DEAR)
