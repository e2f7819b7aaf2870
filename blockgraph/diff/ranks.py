"""An order of the symbols that does not depend on their names: by where they stand in the canonical form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from blockgraph.diff.terms import LAYER, Line, parts_of
from blockgraph.dims import Dim

Spot = tuple[int, int, int, str, int, tuple[tuple[str, int], ...]]
"""One occurrence: line, value in it, step or power, factor, and the symbols beside it with their powers."""


def ranked(lines: Sequence[Line]) -> list[str]:
    """The symbols by their first occurrences; those that stand in one product by all of them.

    Symbols that nothing tells apart are exchangeable; one of them goes first, and the others follow from it.
    """
    spots = _spots(lines)
    colours = _refined(spots, dict.fromkeys(spots, 0))
    while len(set(colours.values())) < len(colours):
        by_colour: dict[int, list[str]] = {}
        for symbol, colour in colours.items():
            by_colour.setdefault(colour, []).append(symbol)
        tied = min((colour, symbols) for colour, symbols in by_colour.items() if len(symbols) > 1)[1]
        first = min(tied)
        colours = _refined(spots, {symbol: 2 * colour + (symbol != first) for symbol, colour in colours.items()})
    return sorted(colours, key=colours.__getitem__)


def _spots(lines: Sequence[Line]) -> dict[str, list[Spot]]:
    found: dict[str, list[Spot]] = {}
    for number, line in enumerate(lines):
        for place, value in enumerate(parts_of(line.values)):
            for symbol, spot in _in_dim(value) if isinstance(value, Dim) else _in_steps(value.steps):
                if symbol != LAYER:
                    found.setdefault(symbol, []).append((number, place, *spot))
    return found


def _in_dim(dim: Dim) -> Iterable[tuple[str, tuple[int, str, int, tuple[tuple[str, int], ...]]]]:
    for monomial, factor in dim.terms:
        for symbol, power in monomial:
            beside = tuple(one for one in monomial if one[0] != symbol)
            yield symbol, (power, str(factor), len(dim.terms), beside)


def _in_steps(steps: Iterable[object]) -> Iterable[tuple[str, tuple[int, str, int, tuple[tuple[str, int], ...]]]]:
    for index, step in enumerate(steps):
        if isinstance(step, str):
            yield step, (index, "", 0, ())


def _refined(spots: Mapping[str, list[Spot]], colours: dict[str, int]) -> dict[str, int]:
    """The colours split by where the symbols stand and beside what, until nothing splits any more."""
    while True:
        keys = {symbol: (colours[symbol], _told(at, colours)) for symbol, at in spots.items()}
        ordered = _distinct(keys.values())
        new = {symbol: ordered.index(key) for symbol, key in keys.items()}
        if len(set(new.values())) == len(set(colours.values())):
            return new
        colours = new


def _told(spots: Iterable[Spot], colours: Mapping[str, int]) -> list[Spot]:
    """The occurrences of a symbol with colours in place of the names beside it."""
    beside = (tuple(sorted((str(colours.get(name, -1)), power) for name, power in spot[5])) for spot in spots)
    return sorted((*spot[:5], others) for spot, others in zip(spots, beside, strict=True))


def _distinct(keys: Iterable[tuple[int, list[Spot]]]) -> list[tuple[int, list[Spot]]]:
    found: list[tuple[int, list[Spot]]] = []
    for key in sorted(keys):
        if not found or found[-1] != key:
            found.append(key)
    return found
