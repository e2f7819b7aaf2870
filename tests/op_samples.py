"""What an op brings to the shared promises: an instance, symbolic operand types and numbers for the symbols."""

from __future__ import annotations

from dataclasses import dataclass, field

from blockgraph.dims import STRETCH, Dim
from blockgraph.op import DType, Op, Type

SIZES: tuple[dict[str, int], ...] = (
    {"B": 2, "T": 5, "S": 7, "C": 6, "D": 4, "F": 3, "H": 2, "E": 3, "V": 11},
    {"B": 1, "T": 1, "S": 3, "C": 4, "D": 2, "F": 5, "H": 1, "E": 4, "V": 3},
)
"""Every letter has a number, so that a sample rarely needs bindings of its own. `C = 2*F` does not hold by accident."""


@dataclass(frozen=True)
class Sample:
    """One op with operands.

    `ranges[i]` are the bounds between which operand i is drawn evenly (None or absent: normal); ids are drawn
    below `below`. `expansion` is how far the expansion may be off, relative to the largest element.
    """

    name: str
    op: Op
    types: tuple[Type, ...]
    bindings: tuple[dict[str, int], ...] = SIZES
    ranges: tuple[tuple[float, float] | None, ...] = ()
    below: int = 3
    expansion: float = 1e-12
    symbols: dict[str, float] = field(default_factory=dict)


def typed(axes: str, dtype: DType = "float", bare: bool = False) -> Type:
    """The type with axes such as `"B T 1"`: symbols, numbers, and `1` for an axis that may stretch."""
    return Type(tuple(axis(word) for word in axes.split()), dtype, bare)


def axis(word: str) -> Dim:
    """One axis: `B`, `3`, `2*C`, `1` (stretches), `=1` (a width that is one)."""
    if word == "1":
        return STRETCH
    product = Dim(1)
    for factor in word.removeprefix("=").split("*"):
        product = product * (Dim(int(factor)) if factor.isdigit() else Dim(factor))
    return product
