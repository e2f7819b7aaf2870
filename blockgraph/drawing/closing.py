"""Columns closed up from above: where a decoder waits for its encoder, the gap is below it and not in it.

A gap that a column makes itself, by waiting for a branch that it forks, stays where it is: the branches that begin at
one fork begin at one height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

Bound = tuple[int, float]
"""A thing that stands below, and how far at least."""


def closed_up(
    at: Sequence[float],
    bounds: Sequence[Sequence[Bound]],
    rows: Set[int],
    columns: Sequence[Sequence[int]],
    starts: Set[int],
) -> list[float]:
    """Where things stand when the columns have risen as far as what is above lets them.

    `at` is where things stand, each after what it is above by `bounds`; the `rows` of them are drawn. `columns` are
    those that may rise, each from its first thing, which stays, to its last; `starts` are the inputs.
    """
    raised = {thing for column in columns for thing in column[1:]}
    limits = _limits(at, bounds, rows, raised)
    wanted = list(at)
    for column in columns:
        rise, above = math.inf, column[-1]
        for thing in reversed(column[1:]):
            slack = limits[thing] - at[thing]
            if slack < rise or _waits_for_others(above, at, bounds, starts - {column[0]}):
                rise = slack
            wanted[thing] = max(wanted[thing], at[thing] + rise)
            above = thing
    for thing, below in enumerate(bounds):
        wanted[thing] = max([wanted[thing], *(wanted[other] + gap for other, gap in below)])
    return wanted


def _limits(at: Sequence[float], bounds: Sequence[Sequence[Bound]], rows: Set[int], raised: Set[int]) -> list[float]:
    """How high each thing may stand while the rows that are not raised stay."""
    found = [math.inf] * len(at)
    for thing in reversed(range(len(at))):
        if thing in rows and (thing not in raised or found[thing] == math.inf):
            found[thing] = at[thing]
        for below, gap in bounds[thing]:
            found[below] = min(found[below], found[thing] - gap)
    return found


def _waits_for_others(thing: int, at: Sequence[float], bounds: Sequence[Sequence[Bound]], starts: Set[int]) -> bool:
    """Whether a thing stands so high because of a column that begins elsewhere."""
    seen, waiting = set[int](), [thing]
    while waiting:
        one = waiting.pop()
        tight = [below for below, gap in bounds[one] if at[below] + gap > at[one] - 0.01]
        waiting += [below for below in tight if below not in seen]
        seen |= set(tight)
    return bool(seen & starts)
