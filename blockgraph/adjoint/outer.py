"""The gradient of a matrix whose rows on one side are not kept: what they are made of is, element by element."""

from __future__ import annotations

from typing import Any, ClassVar, final

from blockgraph.adjoint.ops import Adjoint
from blockgraph.dims import Shape
from blockgraph.lazy import np
from blockgraph.op import Cost, Op, Type, volume
from blockgraph.ops.broadcast import loose
from blockgraph.pattern import Axes, Pattern
from blockgraph.records import dataclass

Recipe = tuple[tuple[Op, tuple[int, ...]], ...]
"""Ops of one output, each with its operands by number: first what is given, then the results in order."""


@final
@dataclass(frozen=True)
class Outer(Adjoint):
    """y[k, n] = the sum over all rows of left[k] * right[n], with `left` made of the operands by a recipe

    Operands are those of the recipe, then the right side. Each op of the recipe makes an element of the elements at the
    same place, so that columns of the left side can be made as they are needed.
    """

    name: ClassVar[str] = "outer"
    signature = "*arrays"
    recipe: Recipe

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """All rows are summed; columns of the two sides stay apart."""
        left = _left(types)
        rows = tuple(f"r{axis}" for axis in range(len(left) - 1))
        made = tuple(_aligned(given.shape or (), left, (*rows, "k")) for given in types[:-1])
        return Pattern((*made, (*rows, "n")), (("k", "n"),))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The last axes of both sides."""
        assert types[-1].shape is not None, "a graph that is run has all its shapes"
        return (Type((_left(types)[-1], types[-1].shape[-1])),)

    def forward(self, *arrays: Any) -> Any:
        """The left side whole, and one product."""
        *made, right = arrays
        for op, places in self.recipe:
            made.append(op.forward(*(made[place] for place in places)))
        left = made[-1]
        return np.matmul(left.reshape(-1, left.shape[-1]).T, right.reshape(-1, right.shape[-1]))

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """The product, and the ops of the recipe."""
        rows, made = volume(_left(types)), list(types[:-1])
        total = Cost(rows * volume(types[-1].shape[-1:] if types[-1].shape else ()) * 2)
        for op, places in self.recipe:
            given = tuple(made[place] for place in places)
            made += op.infer(*given)
            total = Cost(total.products, total.elementwise + op.cost(given, (made[-1],)).elementwise)
        return total


def _left(types: tuple[Type, ...]) -> Shape:
    """The shape of the left side."""
    shape = loose("`*`", *types[:-1])
    assert shape is not None, "a graph that is run has all its shapes"
    return shape


def _aligned(shape: Shape, whole: Shape, letters: Axes) -> Axes:
    """The letters of an operand of the recipe."""
    first = len(whole) - len(shape)
    places = zip(shape, whole[first:], letters[first:], strict=True)
    return tuple("1" if dim != size else letter for dim, size, letter in places)
