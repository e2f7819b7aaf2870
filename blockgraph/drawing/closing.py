"""Columns closed up from above: where a decoder waits for its encoder, the gap is below it and not in it.

A gap that a column makes itself, by waiting for a branch that it forks, stays where it is: the branches that begin at
one fork begin at one height, and rise with it. An input stays at the bottom of the figure, unless the line from it
would be a long one with nothing on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Final

Bound = tuple[int, float]
"""A thing that stands below, and how far at least."""
LONG: Final = 250.0  # of a line from an input, in points


def closed_up(
    at: Sequence[float],
    bounds: Sequence[Sequence[Bound]],
    rows: Set[int],
    columns: Sequence[Sequence[int]],
    starts: frozenset[int],
    hanging: Sequence[tuple[int, Sequence[int]]] = (),
) -> list[float]:
    """Where things stand when the columns have risen as far as what is above lets them.

    `at` is where things stand, each after what it is above by `bounds`; the `rows` of them are drawn. `columns` are
    those that may rise, each from its first thing, which stays, to its last; `starts` are the inputs. `hanging` are
    branches, each with the thing at which it forks from one of the columns or from another branch before it.
    """
    raised = {thing for column in columns for thing in column[1:]} | {
        thing for _, things in hanging for thing in things
    }
    limits = _limits(at, bounds, rows, raised)
    wanted, awaited = list(at), _awaited(at, bounds, starts)
    for column in columns:
        rise, above = math.inf, column[-1]
        for thing in reversed(column[1:]):
            slack = limits[thing] - at[thing]
            if slack < rise or awaited[above] - {column[0]}:
                rise = slack
            wanted[thing] = max(wanted[thing], at[thing] + rise)
            above = thing
    for fork, things in hanging:
        for thing in things:
            wanted[thing] = max(wanted[thing], min(at[thing] + wanted[fork] - at[fork], limits[thing]))
    for thing, below in enumerate(bounds):
        wanted[thing] = max([wanted[thing], *(wanted[other] + gap for other, gap in below)])
    return wanted


def brought_near(at: Sequence[float], bounds: Sequence[Sequence[Bound]], starts: Set[int]) -> list[float]:
    """Where things stand when each of the starts that is far below what stands on it has risen to it."""
    limits = dict.fromkeys(starts, math.inf)
    for thing, below in enumerate(bounds):
        for other, gap in below:
            if other in limits:
                limits[other] = min(limits[other], at[thing] - gap)
    far = {start: limit for start, limit in limits.items() if LONG < limit - at[start] < math.inf}
    return [far.get(thing, height) for thing, height in enumerate(at)]


def _limits(at: Sequence[float], bounds: Sequence[Sequence[Bound]], rows: Set[int], raised: Set[int]) -> list[float]:
    """How high each thing may stand while the rows that are not raised stay."""
    found = [math.inf] * len(at)
    for thing in reversed(range(len(at))):
        if thing in rows and (thing not in raised or found[thing] == math.inf):
            found[thing] = at[thing]
        for below, gap in bounds[thing]:
            found[below] = min(found[below], found[thing] - gap)
    return found


def _awaited(at: Sequence[float], bounds: Sequence[Sequence[Bound]], starts: frozenset[int]) -> list[frozenset[int]]:
    """The starts because of which each thing stands so high and no lower; what is below a thing comes before it."""
    found: list[frozenset[int]] = []
    for thing, below in enumerate(bounds):
        tight = [other for other, gap in below if at[other] + gap > at[thing] - 0.01]
        found.append(frozenset(starts.intersection(tight)).union(*(found[other] for other in tight)))
    return found
