"""Axes read backwards: what a symbol is when the sizes of arrays are known.

Apart from `dims`, since it is needed at the border only: by the check that every call can bind its symbols, by the
call itself, and where arrays have other sizes than the spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from fractions import Fraction

from blockgraph.dims import Dim


def open_symbol(dim: Dim, known: Container[str]) -> str | None:
    """The one symbol of `dim` that is not known, if `dim` is linear in it, as `2*T - 1` and `T*S` are; else None."""
    missing = {symbol for symbol in dim.symbols if symbol not in known}
    if len(missing) != 1:
        return None
    (symbol,) = missing
    powers = {power for monomial, _ in dim.terms for name, power in monomial if name == symbol}
    return symbol if powers == {1} else None


def solve(dim: Dim, symbol: str, size: int, numbers: Mapping[str, int]) -> int | None:
    """The whole number >= 0 for `symbol` at which `dim` is `size`, or None; the other symbols are in `numbers`."""
    offset = dim.evaluate({**numbers, symbol: 0})
    step = dim.evaluate({**numbers, symbol: 1}) - offset
    value = (Fraction(size) - offset) / step if step else Fraction(-1)
    return int(value) if value >= 0 and value.denominator == 1 else None


Cause = tuple[str, int]
"""A symbol, and its number in arrays of other sizes."""
Sized = tuple[Sequence[Dim], tuple[int, ...]]
"""A shape, and that of the array instead."""


def causes(wrong: Mapping[str, Sized], right: Set[str], numbers: Mapping[str, int]) -> dict[Cause, list[str]]:
    """The arrays of other sizes by the symbols whose other numbers explain them; who is in none is not explained.

    A symbol that stands in a shape that fits, one of `right`, explains nothing.
    """
    possible = {name: set(_candidates(*one, numbers)) for name, one in wrong.items()}
    votes = Counter(cause for found in possible.values() for cause in found if cause[0] not in right)
    chosen: dict[str, int] = {}
    for (symbol, number), _ in sorted(votes.items(), key=lambda one: (-one[1], one[0])):
        chosen.setdefault(symbol, number)
    found: dict[Cause, list[str]] = {}
    for name, (dims, shape) in wrong.items():
        used = [cause for cause in chosen.items() if cause in possible[name]]
        if used and tuple(dim.evaluate({**numbers, **dict(used)}) for dim in dims) == shape:
            for cause in used:
                found.setdefault(cause, []).append(name)
    return found


def _candidates(dims: Sequence[Dim], shape: Sequence[int], numbers: Mapping[str, int]) -> Iterator[Cause]:
    """Each symbol of an axis of another length, with the number that would give it."""
    for dim, size in zip(dims, shape, strict=False):
        for symbol in dim.symbols if dim.evaluate(dict(numbers)) != size else ():
            others = {name: number for name, number in numbers.items() if name != symbol}
            number = solve(dim, symbol, size, others) if open_symbol(dim, others) == symbol else None
            if number:
                yield symbol, number
