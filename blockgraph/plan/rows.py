"""Which ops can be computed row block by row block, read from the facts that the proofs use.

The rows of a value are all its axes but the last. A step is cut along the rows of its output if every operand either
has such an axis at the same place, or lacks it, and if no position is read for another: then a block of rows of the
output needs the same block of rows of its operands, and whole whatever lacks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from blockgraph.op import Move, Op, Type
from blockgraph.pattern import ELLIPSIS, Axes

Lead = tuple[int, ...]
"""The sizes of the axes that count the rows."""
Box = tuple[slice, ...]
"""A block of rows: a stretch of each of these axes."""
Cut = tuple[int | None, ...]
"""For each axis of an operand the row axis that it is, None where it is read whole."""


def cuts_of(op: Op, types: tuple[Type, ...], outs: tuple[Type, ...], placed: bool = False) -> tuple[Cut, ...] | None:
    """How the operands are cut along the rows of the output; None if they cannot be.

    `placed` says that whoever computes the op knows where the rows stand, so that it may count positions.
    """
    if any(given.shape is None for given in types) or not outs[0].shape or not types:
        return None
    pattern = op.pattern(types)
    rows, *others = (_letters(axes, len(out.shape or ()))[:-1] for axes, out in zip(pattern.outputs, outs, strict=True))
    if any(isinstance(letter, tuple) for letter in rows) or any(other != rows for other in others):
        return None
    place = {letter: i for i, letter in enumerate(rows) if letter != "1"}
    if len(place) < len([letter for letter in rows if letter != "1"]) or _tied(op, types, place.keys(), placed):
        return None
    if not place.keys().isdisjoint(op.sizes_by_letter()):
        return None
    found = []
    for index, (axes, given) in enumerate(zip(pattern.operands, types, strict=True)):
        own = _letters(axes, len(given.shape or ()))
        joined = {letter for axis in own if isinstance(axis, tuple) for letter in axis}
        if joined & place.keys() or (index in op.shape_only and not place.keys().isdisjoint(own)):
            return None
        found.append(tuple(place.get(axis) if isinstance(axis, str) else None for axis in own))
    made_up = set(place.values()) - {place for cut in found for place in cut}
    return None if made_up else tuple(found)


def pointwise(op: Op, types: tuple[Type, ...], outs: tuple[Type, ...]) -> bool:
    """Whether each element of the only output is made of those at its own place, axes aligned from the right."""
    if len(outs) > 1 or op.moves(types) or op.counts(types) or op.zeros(types) or op.shape_only or not types:
        return False
    pattern = op.pattern(types)
    whole = _letters(pattern.outputs[0], len(outs[0].shape or ()))
    for axes, given in zip(pattern.operands, types, strict=True):
        own = _letters(axes, len(given.shape or ()))
        if len(own) > len(whole) or any(a not in ("1", b) for a, b in zip(own[::-1], whole[::-1], strict=False)):
            return False
    return bool(whole) and len({*whole}) == len(whole) and all(isinstance(letter, str) for letter in whole)


def _tied(op: Op, types: tuple[Type, ...], rows: object, placed: bool) -> bool:
    """Whether positions along the rows meet, or count."""
    assert hasattr(rows, "__contains__")
    if not placed and any(count.letter in rows or count.to in rows for count in op.counts(types)):
        return True
    if any(zero.letter in rows or zero.to in rows for zero in op.zeros(types)):
        return True
    return any((move.letter in rows or move.to in rows) and not _stays(move) for move in op.moves(types))


def _stays(move: Move) -> bool:
    return move.low is not None and move.high is not None and move.low == 0 and move.high == 0


def _letters(axes: Axes, rank: int) -> list[str | tuple[str, ...]]:
    """One letter, or group of letters, per axis."""
    dots = [f".{index}" for index in range(rank - len(axes) + 1)] if ELLIPSIS in axes else []
    found: list[str | tuple[str, ...]] = []
    for axis in axes:
        found.extend(dots if axis == ELLIPSIS else [axis])
    return found


def boxes(lead: Lead, rows: int, times: int = 1) -> list[Box]:
    """All rows in blocks of at most `rows`, in order; their number is a multiple of `times` where there are as many.

    The first axis whose single positions have no more rows than that is cut into stretches, those before it into
    single positions: a block is one stretch of memory.
    """
    axis, inner = _axis(lead, rows)
    if not lead:
        return [()]
    steps = max(1, rows // max(1, inner))
    count = -(-lead[axis] // steps)
    outer = 1
    for size in lead[:axis]:
        outer *= size
    while count < lead[axis] and (outer * count) % times:
        count += 1
    return [
        (*(slice(i, i + 1) for i in before), stretch, *(slice(0, size) for size in lead[axis + 1 :]))
        for before in product(*(range(size) for size in lead[:axis]))
        for stretch in _stretches(lead[axis], count)
    ]


def _axis(lead: Lead, rows: int) -> tuple[int, int]:
    """The axis that is cut, and how many rows one position of it has."""
    inner = 1
    for axis in range(len(lead) - 1, -1, -1):
        if axis == 0 or inner * lead[axis] > rows:
            return axis, inner
        inner *= lead[axis]
    return 0, 1


def _stretches(size: int, count: int) -> Iterator[slice]:
    """`count` stretches of nearly equal length."""
    for i in range(count):
        yield slice(size * i // count, size * (i + 1) // count)


def volume(box: Box) -> int:
    """The number of rows in a block."""
    total = 1
    for one in box:
        total *= one.stop - one.start
    return total


def within(box: Box, block: Box) -> Box:
    """The box counted from the start of the block it lies in."""
    return tuple(
        slice(one.start - around.start, one.stop - around.start) for one, around in zip(box, block, strict=True)
    )


def moved(box: Box, block: Box) -> Box:
    """The inverse of `within`."""
    return tuple(
        slice(one.start + around.start, one.stop + around.start) for one, around in zip(box, block, strict=True)
    )


def shape_of(box: Box) -> Lead:
    """The lengths of the stretches."""
    return tuple(one.stop - one.start for one in box)
