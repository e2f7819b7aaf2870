"""Which wire is which: the skip of a plus, the main operand of a box, the columns in which boxes stand.

Everything here follows from the wires alone: the same wiring gives the same picture, whatever its names.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property, reduce

from blockgraph.drawing.diagram import FIGURE, Box, Diagram, Wire
from blockgraph.records import dataclass

SPINE = 0


@dataclass(frozen=True, slots=True)
class Rail:
    """A residual path: from `source` through the ops in `chain`, if any, to the plus `target`."""

    source: int
    target: int
    chain: tuple[int, ...]
    wire: Wire


@dataclass
class Wiring:
    """The answers for one diagram. Boxes in `gone` were adds that are part of a later plus."""

    diagram: Diagram
    gone: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.before = _before(self.diagram.boxes)
        self.boxes = list(self.diagram.boxes)
        self.join()
        self.live = [index for index in range(len(self.boxes)) if index not in self.gone]

    def join(self) -> None:
        """Make one plus of a chain of adds with branches side by side: `x + attention(h) + feed_forward(h)`."""
        users = _users(self.boxes, self.gone)
        for index, box in enumerate(self.boxes):
            joined = [
                wire.box for wire in box.inputs if box.is_plus and len(users[wire.box]) == 1 and self.joins(wire, box)
            ]
            if joined:
                wires = [self.boxes[wire.box].inputs if wire.box in joined else (wire,) for wire in box.inputs]
                self.boxes[index] = replace(box, inputs=tuple(wire for part in wires for wire in part))
                self.gone |= set(joined)

    def joins(self, wire: Wire, plus: Box) -> bool:
        """Whether the terms of an add stand beside those of the next; a later step of the stream starts from them."""
        add = self.boxes[wire.box]
        if not add.is_plus or add.plate != plus.plate:
            return False
        skip = self.skip(add.inputs)
        terms = [term for term in add.inputs if term != skip]
        return not any(self.depends(other.box, term.box) for other in plus.inputs if other != wire for term in terms)

    def skip(self, wires: tuple[Wire, ...]) -> Wire | None:
        """The first operand that another one depends on."""
        return next((wire for wire in wires if self._feeds_another(wire, list(wires))), None)

    @cached_property
    def users(self) -> list[list[int]]:
        """The boxes that read each box, in order, each once per operand."""
        return _users(self.boxes, self.gone)

    def depends(self, later: int, earlier: int) -> bool:
        """Whether `later` is `earlier` or depends on it."""
        return bool(self.before[later] >> earlier & 1)

    @cached_property
    def rails(self) -> dict[int, Rail]:
        """The residual path of each plus that has one."""
        found = {index: self._rail(index) for index in self.live if self.boxes[index].is_plus}
        return {index: rail for index, rail in found.items() if rail is not None}

    def _rail(self, plus: int) -> Rail | None:
        """The operand whose source the other operands depend on: the stream that goes around them."""
        wires = self.boxes[plus].inputs
        rails = [self._trace(plus, wire) for wire in wires]
        skips = [
            rail
            for i, rail in enumerate(rails)
            if any(self.depends(other.box, rail.source) for j, other in enumerate(wires) if j != i)
        ]
        return min(skips, key=lambda rail: len(rail.chain)) if skips and len(wires) > 1 else None

    def _trace(self, plus: int, wire: Wire) -> Rail:
        """Follow an operand down through ops that stand on this path only."""
        chain, step = [], wire.box
        while self._rides(step, self.boxes[plus].plate):
            chain.append(step)
            step = self.boxes[step].inputs[0].box
        return Rail(step, plus, tuple(reversed(chain)), wire)

    def _rides(self, index: int, plate: int) -> bool:
        box = self.boxes[index]
        alone = len(self.users[index]) == 1 and len(box.inputs) == 1
        return alone and box.direct and box.look != "circle" and box.plate == plate

    @cached_property
    def on_rail(self) -> set[int]:
        """The boxes that stand on a rail."""
        return {index for rail in self.rails.values() for index in rail.chain}

    def main(self, index: int) -> Wire | None:
        """The operand that comes from below; the others come from the side."""
        box, rail = self.boxes[index], self.rails.get(index)
        if box.trunk is not None and box.trunk < len(box.inputs):
            return box.inputs[box.trunk]
        wires = [wire for wire in box.inputs if rail is None or wire != rail.wire]
        if rail is None and len(wires) > 1:
            wires = [wire for wire in wires if not self._feeds_another(wire, wires)] or wires
        if box.look == "circle" and not box.is_plus:
            wires = sorted(wires, key=self._stretched)
        return wires[0] if wires else None

    def _stretched(self, wire: Wire) -> int:
        """How much a factor is stretched over the other: a gate per position stands beside what it opens."""
        shape = wire.shape or ()
        return sum(dim == 1 for dim in shape) - len(shape)

    def _feeds_another(self, wire: Wire, wires: list[Wire]) -> bool:
        return any(other.box != wire.box and self.depends(other.box, wire.box) for other in wires)

    def sides(self, index: int) -> list[Wire]:
        """The operands that come from the side, in order, the rail left out."""
        rail, left = self.rails.get(index), list(self.boxes[index].inputs)
        for taken in (self.main(index), rail.wire if rail else None):
            if taken is not None:
                left.remove(taken)
        return left

    @cached_property
    def columns(self) -> list[list[int]]:
        """The boxes in columns from bottom to top, the spine first; boxes on rails are in none."""
        placed = set(self.on_rail)
        first, *others = [index for index in self.live if self.boxes[index].look == "output"] or [-1]
        ends = [index for index in others if len(self.users[self.boxes[index].inputs[0].box]) == 1]
        inner = [index for index in reversed(self.live) if index != first and index not in others]
        tops = [*([first] if first >= 0 else []), *ends, *inner, *others]
        return [self._down(top, placed) for top in tops if top not in placed]

    def _down(self, top: int, placed: set[int]) -> list[int]:
        """The column that ends with a box; it does not leave the plate in which what it makes is read."""
        plates, users = [self.boxes[box].plate for box in (top, *self.users[top])], self.users[top]
        home = reduce(self.diagram.common, plates) if users else FIGURE
        column: list[int] = []
        step: int | None = top
        while step is not None and step not in placed:
            placed.add(step)
            column.append(step)
            wire = self.main(step)
            inside = wire is not None and home in self.diagram.around(self.boxes[wire.box].plate)
            step = wire.box if wire is not None and inside else None
        return column[::-1]


def _users(boxes: list[Box], gone: set[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in boxes]
    for index, box in enumerate(boxes):
        for wire in box.inputs if index not in gone else ():
            found[wire.box].append(index)
    return found


def _before(boxes: list[Box]) -> list[int]:
    """The boxes each box depends on, as bits of a number, itself included."""
    found: list[int] = []
    for index, box in enumerate(boxes):
        bits = 1 << index
        for wire in box.inputs:
            bits |= found[wire.box]
        found.append(bits)
    return found
