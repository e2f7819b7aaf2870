"""Where along one axis of an input a value reads, axis by axis of the value, and how an op changes that.

Every op states it once: by its pattern, its moves, and where its outputs are zero. Nothing here knows an op by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from blockgraph.facts.interval import OWN, Bound, Interval, least
from blockgraph.op import Op, Type
from blockgraph.pattern import ELLIPSIS, Axes, Axis
from blockgraph.records import dataclass

Intervals = tuple[tuple[int, Interval], ...]


@dataclass(frozen=True, slots=True)
class Access:
    """One way in which a value reads the source.

    The element at (i_0, i_1, ...) reads only positions p with p - i_a in `intervals[a]`, for every axis a listed; with
    none listed it may read all. `sure`: it does read that far, unless numbers happen to cancel; else it is not known.
    """

    intervals: Intervals = ()
    sure: bool = True

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes listed."""
        return tuple(axis for axis, _ in self.intervals)


@dataclass(frozen=True, slots=True)
class Reach:
    """All ways in which a value reads the source; none if it does not.

    `zeros`: per pair of axes (a, b) the value is 0 unless i_a - i_b is in the interval. `gated`: some of its elements
    are zero or chosen where that is not known, so that what it is multiplied with may not be read there.
    """

    accesses: tuple[Access, ...] = ()
    zeros: tuple[tuple[int, int, Interval], ...] = ()
    gated: bool = False


NOTHING = Reach()
ANYWHERE = Access((), sure=False)


def merged(accesses: Iterable[Access]) -> tuple[Access, ...]:
    """The same ways, at most one for each set of axes: its intervals are the hulls."""
    found: dict[tuple[tuple[int, ...], bool], Access] = {}
    waiting = list(accesses)
    while waiting:
        one = waiting.pop(0)
        key = (one.axes, one.sure)
        other = found.get(key)
        if other is None or other == one:
            found[key] = one
            continue
        joined = _joined(other, one)
        if joined.sure == one.sure:
            found[key] = joined
        else:  # which of the two reaches further depends on sizes
            waiting.append(joined)
            del found[key]
    return tuple(found[key] for key in sorted(found))


def _joined(left: Access, right: Access) -> Access:
    pairs = [(axis, a, b) for (axis, a), (_, b) in zip(left.intervals, right.intervals, strict=True)]
    hulls = tuple((axis, a.hull(b)) for axis, a, b in pairs)
    known = all(
        hull.high is not None or a.high is None or b.high is None
        for (_, a, b), (_, hull) in zip(pairs, hulls, strict=True)
    )
    return Access(hulls, left.sure and known)


def joined(reaches: Sequence[Reach]) -> Reach:
    """What holds for a value that is one of several."""
    return Reach(merged(access for one in reaches for access in one.accesses), gated=any(one.gated for one in reaches))


def spelled(axes: Axes, rank: int) -> list[Axis]:
    """One name per axis: `...` as several, a group of one letter as that letter."""
    names: list[Axis] = []
    for axis in axes:
        if axis == ELLIPSIS:
            names += [f"{ELLIPSIS}{i}" for i in range(rank - len(axes) + 1)]
        elif isinstance(axis, tuple):
            letters = tuple(letter for letter in axis if letter != "1")
            names.append(letters[0] if len(letters) == 1 else letters or "1")
        else:
            names.append(axis)
    return names


def through(op: Op, types: tuple[Type, ...], outs: tuple[Type, ...], operands: tuple[Reach, ...]) -> tuple[Reach, ...]:
    """The reach of each output of an op."""
    stretchy = tuple([dim.stretchy for one in types for dim in one.shape or ()])  # equal to 1, and not the same
    return _through(op, types, outs, operands, stretchy)


@lru_cache(maxsize=4096)  # layers, and the files of one call, are much alike
def _through(
    op: Op, types: tuple[Type, ...], outs: tuple[Type, ...], operands: tuple[Reach, ...], stretchy: tuple[bool, ...]
) -> tuple[Reach, ...]:
    if not any(one.accesses or one.zeros or one.gated for one in operands) and not op.zeros(types):
        return (NOTHING,) * len(outs)
    if any(given.shape is None for given in (*types, *outs)):
        lost = Reach((ANYWHERE,) if any(one.accesses for one in operands) else (), gated=True)
        return (lost,) * len(outs)
    step = _Step(op, types, operands)
    return tuple(step.output(index, given) for index, given in enumerate(outs))


class _Step:
    """One op with its axes spelled out."""

    def __init__(self, op: Op, types: tuple[Type, ...], operands: Sequence[Reach]) -> None:
        pattern = op.pattern(types)
        self.op, self.operands = op, operands
        self.outputs = pattern.outputs
        self.names = [
            spelled(axes, len(given.shape or ())) for axes, given in zip(pattern.operands, types, strict=True)
        ]
        self.moves: dict[tuple[int, Axis], Interval] = {}
        self.ties: dict[tuple[int, Axis], list[tuple[str, Interval]]] = {}
        for move in op.moves(types):
            interval = Interval(move.low, move.high)
            if move.to:
                self.ties.setdefault((move.operand, move.letter), []).append((move.to, interval))
            else:
                self.moves[move.operand, move.letter] = interval
        self.own_zeros = op.zeros(types)
        self.factors = range(len(operands)) if op.factors == "all" else op.factors

    def output(self, index: int, given: Type) -> Reach:
        """The reach of one output."""
        names = spelled(self.outputs[index], len(given.shape or ()))
        at = {name: axis for axis, name in enumerate(names) if name != "1"}
        bands = self._bands()
        accesses: list[Access] = []
        for operand, reach in enumerate(self.operands):
            if operand not in self.op.shape_only:
                accesses += [self._access(operand, one, at, bands) for one in reach.accesses]
        zeros = self._zeros(at, bands)
        return Reach(merged(accesses), zeros, self._gated(at, bool(zeros)))

    def _bands(self) -> list[tuple[Axis, Axis, Interval]]:
        """Where the terms of the output are not zero, by the names of axes."""
        found = []
        for operand in self.factors:
            names = self.names[operand]
            for a, b, interval in self.operands[operand].zeros:
                if not {(operand, names[a]), (operand, names[b])} & self.moves.keys():
                    found.append((names[a], names[b], interval))
        return found

    def _access(
        self, operand: int, access: Access, at: dict[Axis, int], bands: list[tuple[Axis, Axis, Interval]]
    ) -> Access:
        """Where the output reads through one operand."""
        found: dict[int, Interval] = {}
        sure = access.sure and not (self._hidden(operand) and any(n not in at for n in self.names[operand]))
        for axis, interval in access.intervals:
            name = self.names[operand][axis]
            targets = list(self._targets(operand, name, at, bands))
            for target, shift in targets:
                total = interval + shift
                if not total.is_everything:
                    found[target] = total if target not in found else _tighter(found[target], total)
            sure = sure and (bool(targets) or self._is_mixed(name))
        return Access(tuple(sorted(found.items(), key=lambda item: item[0])), sure)

    def _targets(
        self, operand: int, name: Axis, at: dict[Axis, int], bands: list[tuple[Axis, Axis, Interval]]
    ) -> Iterable[tuple[int, Interval]]:
        """Axes of the output whose position says where this axis of the operand is read."""
        if name in at:
            yield at[name], self.moves.get((operand, name), OWN)
        for to, interval in self.ties.get((operand, name), ()):
            if to in at:
                yield at[to], interval
        if name not in at:
            yield from ((at[end], interval) for end, interval in _along(name, bands) if end in at)

    def _is_mixed(self, name: Axis) -> bool:
        """Whether an axis that the output lacks is summed over, and not cut, stretched or picked from."""
        return isinstance(name, str) and name != "1" and self.op.role != "move"

    def _hidden(self, operand: int) -> bool:
        """Whether another factor may be zero where this operand is read."""
        others = [self.operands[other].gated for other in self.factors if other != operand]
        return operand in self.factors and (any(others) or self.operands[operand].gated)

    def _zeros(
        self, at: dict[Axis, int], bands: list[tuple[Axis, Axis, Interval]]
    ) -> tuple[tuple[int, int, Interval], ...]:
        own: list[tuple[Axis, Axis, Interval]] = [
            (zero.letter, zero.to, Interval(zero.low, zero.high)) for zero in self.own_zeros
        ]
        return tuple((at[a], at[b], interval) for a, b, interval in (*own, *bands) if a in at and b in at)

    def _gated(self, at: dict[Axis, int], zeros: bool) -> bool:
        """Whether zeros are there that are not known; a sum over an axis is no mask any more."""
        summed = any(isinstance(name, str) and name not in at and name != "1" for names in self.names for name in names)
        if self.op.role != "move" and summed:
            return False
        lost = not zeros and any(one.zeros for one in self.operands)
        return lost or self.op.chooses or any(one.gated for one in self.operands)


def _along(name: Axis, bands: list[tuple[Axis, Axis, Interval]]) -> Iterable[tuple[Axis, Interval]]:
    """The axes that bands tie to this one, one after another, with where it may be seen from there."""
    found, waiting = {name: OWN}, [name]
    while waiting:
        here = waiting.pop(0)
        for a, b, interval in bands:
            back = Interval(_minus(interval.high), _minus(interval.low))
            for start, end, step in ((a, b, interval), (b, a, back)):
                if start == here and end not in found:
                    found[end] = found[here] + step
                    waiting.append(end)
    del found[name]
    return found.items()


def _tighter(left: Interval, right: Interval) -> Interval:
    """The one of two true statements that says more about later positions."""
    if left.high is None or (right.high is not None and least(left.high, right.high) == right.high):
        return right
    return left


def _minus(bound: Bound) -> Bound:
    return None if bound is None else -bound
