"""Which symbol of one graph is which of the other, and options under that correspondence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from blockgraph.diff.terms import LAYER, value_text
from blockgraph.dims import Dim, show
from blockgraph.graph import Graph
from blockgraph.number import Number
from blockgraph.op import symbols_in
from blockgraph.records import dataclass


@dataclass(slots=True)
class Naming:
    """Symbols of the left graph by those of the right. Each is paired once, the first occurrence decides."""

    left: Graph
    right: Graph
    pairs: dict[str, str] = field(default_factory=dict)

    def learn(self, found: Iterable[tuple[Any, Any]]) -> None:
        """Pair the symbols that stand alone at the same place: equal names first, then by turn."""
        alone = list(dict.fromkeys(pair for a, b in found for pair in _alone(a, b)))
        for a, b in sorted(alone, key=lambda pair: pair[0] != pair[1]):
            if a not in self.pairs and b not in self.pairs.values():
                self.pairs[a] = b

    def same(self, left: Any, right: Any) -> bool:
        """Whether two options are equal, the symbols of the left one read as those of the right."""
        ours = {symbol: self.pairs.get(symbol, f"{symbol}'") for symbol in symbols_in([left])} | {LAYER: LAYER}
        theirs = {symbol: symbol for symbol in symbols_in([right])}
        return value_text(left, ours) == value_text(right, theirs)

    def sizes(self) -> list[str]:
        """The sizes whose numbers differ: `C 64 -> 128`."""
        found = []
        for a, b in self.pairs.items():
            before, after = self.left.dims.get(a), self.right.dims.get(b)
            if before != after:
                name = a if a == b else f"{a} ({b} on the right)"
                found.append(f"{name} {_number(before)} -> {_number(after)}")
        return found


def _number(number: int | None) -> str:
    return "open" if number is None else str(number)


def _alone(left: Any, right: Any) -> Iterator[tuple[str, str]]:
    if isinstance(left, tuple) and isinstance(right, tuple):
        for a, b in zip(left, right, strict=False):
            yield from _alone(a, b)
    elif isinstance(left, Dim | Number) and isinstance(right, Dim | Number):
        a, b = sorted(left.symbols), sorted(right.symbols)
        if len(a) == 1 == len(b) and str(left) == a[0] and str(right) == b[0]:
            yield a[0], b[0]


def shown(value: Any) -> str:
    """An option for a reader."""
    if isinstance(value, tuple) and all(isinstance(one, Dim) for one in value) and value:
        return show(value)
    if isinstance(value, tuple):
        told = (" ".join(map(shown, one)) if isinstance(one, tuple) else shown(one) for one in value)
        return ", ".join(told) or "none"
    words = {"None": "none", "True": "yes", "False": "no"}
    return words.get(str(value), str(value))
