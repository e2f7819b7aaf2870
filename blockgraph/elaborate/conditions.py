"""What must hold for the numbers: whole sizes and bounds, each with the place it comes from.

They are collected while shapes are worked out, checked where the numbers are known and listed where not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from fractions import Fraction

from blockgraph.bounds import exceeded, remedy, valued
from blockgraph.dims import Dim, Divides
from blockgraph.errors import Place
from blockgraph.graph import Condition
from blockgraph.module import Report
from blockgraph.op import Need
from blockgraph.records import dataclass


@dataclass(slots=True)
class Conditions:
    """The conditions found so far; the first place that needs one is the one that is told."""

    found: dict[tuple[str, str, str], Condition] = field(default_factory=dict)
    nouns: dict[tuple[str, str, str], str] = field(default_factory=dict)
    seen: set[Dim] = field(default_factory=set)

    def whole(self, dim: Dim, place: Place, noun: str = "") -> None:
        """`dim` is used as a size, so it must be a whole number. `noun` is what the divisor counts."""
        if dim in self.seen:
            return
        self.seen.add(dim)
        for divides in dim.conditions():
            self._add(Condition(str(divides), divides.divisor, divides.dividend, "divides", place), noun)

    def need(self, need: Need, place: Place) -> None:
        """A bound or a divisibility that an op asks for."""
        if need.relation == "divides":
            text = f"{need.smaller} divides {need.larger}"
            self._add(Condition(text, need.smaller, need.larger, need.relation, place), "")
            return
        room = (need.larger - need.smaller).number
        if room is not None and room >= 0:
            return  # it holds for all numbers
        smaller, larger = _sides(need.larger - need.smaller)
        if not (smaller.symbols and larger.symbols):  # nothing of one side is left: tell it as it was asked for
            smaller, larger = need.smaller, need.larger
        self._add(Condition(f"{smaller} <= {larger}", smaller, larger, need.relation, place), "")

    def withdraw(self, places: Collection[Place]) -> None:
        """Forget what was asked for at these places, by a call that is told to be wrong."""
        self.found = {key: one for key, one in self.found.items() if one.place not in places}

    def _add(self, condition: Condition, noun: str) -> None:
        key = (str(condition.smaller), str(condition.larger), condition.relation)
        if key not in self.found:
            self.found[key] = condition
            self.nouns[key] = noun

    def _follows(self, condition: Condition) -> bool:
        """Whether it always holds, or follows from another: `H divides C*G` from `H divides C`."""
        if condition.relation == "at most" and condition.smaller == 0:
            return all(factor > 0 for _, factor in condition.larger.terms)
        if condition.relation != "divides" or len(condition.smaller.terms) != 1:
            return False
        quotient = condition.larger / condition.smaller
        if not quotient.conditions():
            return True
        same = (one for one in self.found.values() if one.relation == "divides" and one.smaller == condition.smaller)
        smaller = [one for one in same if one is not condition and len(one.larger.terms) == 1]
        return any(not (condition.larger / one.larger).conditions() for one in smaller)

    def _is_told_of(self, condition: Condition, numbers: Mapping[str, int]) -> bool:
        """Whether a side is no whole number, for which another condition asks: that is the cause, this follows."""
        parts = [dim for dim in (condition.smaller, condition.larger) if is_no_size(dim, numbers)]
        asked = (divides for dim in parts for divides in dim.conditions())
        return any((str(one.divisor), str(one.dividend), "divides") in self.found for one in asked)

    def check(self, numbers: Mapping[str, int], report: Report, repeats: Mapping[str, Dim]) -> tuple[Condition, ...]:
        """Report what does not hold; the rest is returned, for the graph to keep. `repeats` are layer counts."""
        kept = []
        for key, condition in self.found.items():
            if self._follows(condition):
                continue
            holds = condition.holds(dict(numbers))
            if holds is False and self._is_told_of(condition, numbers):
                continue
            if holds is False and condition.relation == "divides":
                _report_remainder(condition, self.nouns[key], numbers, report, repeats)
            elif holds is False or _never(condition):
                report.add("BG109", exceeded(condition, numbers), condition.place, remedy(condition, numbers))
            elif condition.smaller.symbols | condition.larger.symbols:
                kept.append(replace(condition))
        return tuple(kept)


def _never(condition: Condition) -> bool:
    """Whether no sizes, which are at least 1, can meet a bound: 2*V <= V."""
    room = condition.larger - condition.smaller
    return condition.relation == "at most" and bool(room.terms) and all(factor < 0 for _, factor in room.terms)


def _sides(room: Dim) -> tuple[Dim, Dim]:
    """`room >= 0` with every term on the side where it is positive: T + 2 <= L + 2 is T <= L."""
    smaller, larger = Dim(0), Dim(0)
    for monomial, factor in room.terms:
        term = Dim(abs(Fraction(factor)))
        for symbol, power in monomial:
            term = term * Dim(symbol) ** power
        smaller, larger = (smaller + term, larger) if factor < 0 else (smaller, larger + term)
    return smaller, larger


def is_no_size(dim: Dim, numbers: Mapping[str, int]) -> bool:
    """Whether a dim is no whole number, as C/H with C = 48 and H = 5."""
    return dim.symbols <= numbers.keys() and dim.evaluate(numbers).denominator != 1


def _report_remainder(
    condition: Condition, noun: str, numbers: Mapping[str, int], report: Report, repeats: Mapping[str, Dim]
) -> None:
    divides = Divides(condition.smaller, condition.larger)
    small, large = (int(dim.evaluate(dict(numbers))) for dim in (condition.smaller, condition.larger))
    remainder = divides.remainder(numbers)
    message = (
        f"{valued(condition.smaller, numbers)} does not divide {valued(condition.larger, numbers)}: "
        f"{large} / {small} leaves {remainder}"
    )
    help = f"nearest {noun or 'numbers'} that divide {large}: {' and '.join(map(str, _nearest(small, large)))}"
    for name, count in repeats.items():
        if not count.symbols - numbers.keys():
            layers = int(count.evaluate({s: numbers[s] for s in count.symbols}))
            if layers > 1 and layers != small and large % layers == 0 and noun == "head counts":
                told = f"{count} = {layers}" if count.symbols else f"{layers} of `{name}`"
                help += f"; {told} does divide it: were layers and heads swapped?"
    report.add("BG103", message, condition.place, help)


def _nearest(small: int, large: int) -> list[int]:
    """The nearest divisor of `large` below and above `small`."""
    divisors = [n for n in range(1, min(large, 100_000) + 1) if large % n == 0]
    below = [n for n in divisors if n < small]
    above = [n for n in divisors if n > small]
    return [*below[-1:], *above[:1]] or [1]
