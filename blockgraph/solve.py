"""An axis read backwards: what its one open symbol is when the array's size is known.

Apart from `dims`, since it is needed at the border only: by the check that every call can bind its symbols, and by
the call itself.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
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
