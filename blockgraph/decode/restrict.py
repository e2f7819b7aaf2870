"""An op run on some rows of its operands: which it needs for those that are wanted, and the proof that it gives them.

An op states at what positions it reads, where its outputs are zero and what it counts, as functions of its operands'
sizes. Run on parts of its operands it states the same for the parts. Only if that is what it states for the whole, seen
from where the parts begin, are the rows those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from blockgraph.decode.timing import Timing
from blockgraph.decode.views import NEW, NEW_ROWS, PAST_ROWS, Past, View, first, resized, size
from blockgraph.dims import Dim, Shape
from blockgraph.facts.interval import Bound
from blockgraph.facts.reach import NOTHING, spelled
from blockgraph.graph import Node
from blockgraph.op import Misfit, Move, Op, Type, Zero
from blockgraph.pattern import Axis, PatternMisfit
from blockgraph.records import dataclass

Names = list[list[Axis]]
Bounds = TypeVar("Bounds", Move, Zero)


@dataclass(frozen=True)
class Restricted:
    """`views` of the operands (None: no axis of time) give the new rows of the outputs, at their end.

    `surplus` rows come before them in the outputs (None: all the past); `size` is what T means in the op's options.
    """

    views: tuple[View | None, ...]
    outputs: tuple[View, ...]
    surplus: Past = NEW
    size: Dim = NEW_ROWS


def restricted(timing: Timing, node: Node, output: int, view: View) -> Restricted | None:
    """How to run a node for a view of one of its outputs that has new rows along one axis; None if it cannot be."""
    types = tuple(timing.graph.types[value] for value in (*node.inputs, *node.outputs))
    if any(given.shape is None for given in types) or not all(
        timing.plain(value) for value in (*node.inputs, *node.outputs)
    ):
        return None
    attempt = _Attempt(timing, node)
    letters = attempt.letters(output, view)
    if letters is None:
        return None
    for narrow in (True, False):
        for option in (NEW_ROWS, NEW_ROWS + PAST_ROWS):
            found = attempt.run(letters, narrow, option)
            if found is not None:
                return found
    return None


class _Attempt:
    """One node with its axes spelled out."""

    def __init__(self, timing: Timing, node: Node) -> None:
        assert isinstance(node.op, Op), "stacks are written out before they are decoded"
        self.timing, self.node, self.op = timing, node, node.op
        self.types = tuple(timing.graph.types[value] for value in node.inputs)
        self.outs = tuple(timing.graph.types[value] for value in node.outputs)
        pattern = self.op.pattern(self.types)
        self.operands: Names = [
            spelled(a, len(t.shape or ())) for a, t in zip(pattern.operands, self.types, strict=True)
        ]
        self.outputs: Names = [spelled(a, len(t.shape or ())) for a, t in zip(pattern.outputs, self.outs, strict=True)]

    def letters(self, output: int, view: View) -> dict[Axis, Past] | None:
        """The rows along each letter of the output; None where a letter is none, or stands twice."""
        names = [self.outputs[output][axis] for axis in self.timing.axes(self.node.outputs[output])]
        found = dict(zip(names, view, strict=True))
        plain = all(isinstance(name, str) and name != "1" for name in names)
        return found if plain and len(found) == len(names) else None

    def run(self, letters: Mapping[Axis, Past], narrow: bool, option: Dim) -> Restricted | None:
        """The views of the operands for these rows, if the op then states what it should."""
        (new,) = (name for name, past in letters.items() if past == NEW)
        views = [self._views(operand, new, letters, narrow) for operand in range(len(self.types))]
        surplus = NEW if self._anchored(new) else self._surplus(new, views)
        rows = {**letters, new: surplus}
        outputs = [dict(self._timed(names, out)) for names, out in zip(self.outputs, self.outs, strict=True)]
        if any(name not in rows for names in outputs for name in names.values()):
            return None
        op = resized(self.op, str(self.timing.time), option)
        types = tuple(_cut(given, view) for given, view in zip(self.types, views, strict=True))
        outs = tuple(
            _cut(out, {axis: rows[name] for axis, name in names.items()})
            for out, names in zip(self.outs, outputs, strict=True)
        )
        if not _fits(op, types, outs) or not self._same(op, types, views, rows):
            return None
        wanted = tuple(tuple(letters[name] for name in names.values()) for names in outputs)
        return Restricted(tuple(tuple(view.values()) if view else None for view in views), wanted, surplus, option)

    def _timed(self, names: list[Axis], given: Type) -> Iterator[tuple[int, Axis]]:
        return ((axis, names[axis]) for axis, dim in enumerate(given.shape or ()) if dim == self.timing.time)

    def _anchored(self, letter: Axis) -> bool:
        """Whether an operand has the letter where it is read at its own position, so that its rows are the outputs'."""
        moved = {(move.operand, move.letter) for move in self.op.moves(self.types) if not move.to}
        return any(
            name == letter and (operand, name) not in moved
            for operand, names in enumerate(self.operands)
            for _, name in self._timed(names, self.types[operand])
        )

    def _surplus(self, letter: Axis, views: list[dict[int, Past]]) -> Past:
        """The rows before the new ones that come out because they went in."""
        found = [
            view[axis]
            for names, view, given in zip(self.operands, views, self.types, strict=True)
            for axis, name in self._timed(names, given)
            if name == letter
        ]
        return None if None in found else max((one for one in found if one is not None), default=NEW)

    def _views(self, operand: int, new: Axis, letters: Mapping[Axis, Past], narrow: bool) -> dict[int, Past]:
        """The rows of an operand's axes of time."""
        return {
            axis: self._past(operand, name, new, letters, narrow)
            for axis, name in self._timed(self.operands[operand], self.types[operand])
        }

    def _past(self, operand: int, name: Axis, new: Axis, letters: Mapping[Axis, Past], narrow: bool) -> Past:
        """How far an axis of an operand is read before the new rows."""
        moves = [move for move in self.op.moves(self.types) if (move.operand, move.letter) == (operand, name)]
        if name == new:
            own = [move for move in moves if not move.to]
            return self._before(own[0].low, narrow) if own else NEW
        if name in letters:
            return letters[name]
        ties = [move.low for move in moves if move.to == new]
        lows = [low for low in (*ties, *self._bands(name, new)) if self._before(low, narrow) is not None]
        return self._before(lows[0], narrow) if lows else None

    def _before(self, low: Bound, narrow: bool) -> Past:
        """The rows before the new ones for a lower bound; all where it has no number."""
        if low is None or not narrow:
            return None
        bound = Dim(low)
        if bound.symbols - self.timing.graph.dims.keys():
            return None
        return max(0, -int(bound.evaluate(self.timing.graph.dims)))

    def _bands(self, name: Axis, new: Axis) -> Iterator[Bound]:
        """Lower bounds of (position along a letter - that along the new one) where terms are not zero."""
        factors = range(len(self.types)) if self.op.factors == "all" else self.op.factors
        for operand in factors:
            names = self.operands[operand]
            for a, b, interval in self.timing.reaches.get(self.node.inputs[operand], NOTHING).zeros:
                if (names[a], names[b]) == (name, new):
                    yield interval.low
                elif (names[b], names[a]) == (name, new):
                    yield None if interval.high is None else -interval.high

    def _same(self, op: Op, types: tuple[Type, ...], views: list[dict[int, Past]], rows: Mapping[Axis, Past]) -> bool:
        """Whether moves, zeros and counts of the parts are those of the whole, seen from where the parts begin."""
        start = {name: first(past) for name, past in rows.items()}

        def begins(operand: int, letter: Axis) -> Dim:
            names, view = self.operands[operand], views[operand]
            return next((first(view[axis]) for axis in view if names[axis] == letter), Dim(0))

        def at(letter: Axis) -> Dim:
            return start.get(letter, Dim(0))

        moves, zeros, counts = (list(one) for one in (op.moves(types), op.zeros(types), op.counts(types)))
        told = [
            _seen(one, at(one.to or one.letter) - begins(one.operand, one.letter)) for one in self.op.moves(self.types)
        ]
        hidden = [_seen(one, at(one.to) - at(one.letter)) for one in self.op.zeros(self.types)]
        numbered = [replace(one, first=one.first + at(one.letter) - at(one.to)) for one in self.op.counts(self.types)]
        return moves == told and zeros == hidden and counts == numbered


def _seen(bounds: Bounds, by: Dim) -> Bounds:
    """The bounds, seen from elsewhere."""
    low, high = bounds.low, bounds.high
    return replace(bounds, low=None if low is None else low + by, high=None if high is None else high + by)


def _fits(op: Op, types: tuple[Type, ...], outs: tuple[Type, ...]) -> bool:
    """Whether the op takes these operands and gives these outputs."""
    try:
        return tuple(one.shape for one in op.infer(*types)) == tuple(one.shape for one in outs)
    except (Misfit, PatternMisfit):
        return False


def _cut(given: Type, view: Mapping[int, Past]) -> Type:
    """The type of some rows."""
    shape: Shape = tuple(size(view[axis]) if axis in view else dim for axis, dim in enumerate(given.shape or ()))
    return replace(given, shape=shape)
