"""Intervals of positions whose ends are sizes: sums, hulls, and what is known of them for all numbers."""

from __future__ import annotations

from fractions import Fraction

from blockgraph.dims import Dim
from blockgraph.records import dataclass

Bound = Dim | int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """input position - output position lies in [low, high]; None is no bound."""

    low: Bound = 0
    high: Bound = 0

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.low, other.low), _sum(self.high, other.high))

    @property
    def is_own(self) -> bool:
        """Whether only the own position is read."""
        return self.low == 0 and self.high == 0

    @property
    def is_everything(self) -> bool:
        """Whether it says nothing."""
        return self.low is None and self.high is None

    @property
    def is_past(self) -> bool:
        """Whether no later position is read, for all sizes."""
        return self.high is not None and at_most(self.high, 0) is True

    @property
    def reads_later(self) -> bool:
        """Whether a later position is read, for all sizes."""
        return self.high is None or at_most(self.high, 0) is False

    def hull(self, other: Interval) -> Interval:
        """The least interval that holds both; no bound where sizes cannot be compared."""
        return Interval(least(self.low, other.low), greatest(self.high, other.high))


OWN = Interval()
EVERYTHING = Interval(None, None)


def at_most(left: Dim | int, right: Dim | int) -> bool | None:
    """left <= right for all sizes (each is at least 1), or left > right for all, or None: it depends."""
    if isinstance(left, int) and isinstance(right, int):
        return left <= right
    difference = Dim(left) - Dim(right)
    number = difference.number
    if number is not None:
        return number <= 0
    if _never_positive(difference):
        return True
    return False if _never_positive(-difference + 1) else None


def _never_positive(dim: Dim) -> bool:
    """Whether it is at most 0 when every symbol is at least 1, as far as its terms show it.

    A product of symbols with whole powers is at least 1, so terms below zero outweigh a number that is no larger.
    """
    number, below = Fraction(0), Fraction(0)
    for monomial, factor in dim.terms:
        if not monomial:
            number += factor
        elif factor > 0 or any(power < 0 for _, power in monomial):
            return False
        else:
            below += factor
    return number + below <= 0


def _sum(left: Bound, right: Bound) -> Bound:
    return None if left is None or right is None else left + right


def least(left: Bound, right: Bound) -> Bound:
    """The smaller of two lower bounds, None where that is not known."""
    if left is None or right is None:
        return None
    order = at_most(left, right)
    return None if order is None else left if order else right


def greatest(left: Bound, right: Bound) -> Bound:
    """The larger of two upper bounds, None where that is not known."""
    if left is None or right is None:
        return None
    order = at_most(left, right)
    return None if order is None else right if order else left
