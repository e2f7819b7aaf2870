"""How operands of different shapes meet: which axes may stretch, and how a gradient comes back.

Axes are aligned from the right. `*` and its like stretch any axis of 1; `+` and `-` only one that was written
as such, so that a residual add never broadcasts by accident. Values made of parameters and numbers are free.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import np
from blockgraph.op import Misfit, Type
from blockgraph.pattern import ELLIPSIS, Axes, Pattern

REPEAT_HELP = 'multiply by it, or write the broadcast with repeat(x, "b t 1 -> b t c", c=...)'
AXES_HELP = 'give the smaller one the axes it lacks, for example rearrange(c, "b c -> b 1 c")'


def loose(symbol: str, *types: Type) -> Shape | None:
    """The common shape when any axis of 1 may stretch and ranks may differ; None if a shape is unknown.

    Raises Misfit (BG104) with both dims and both shapes.
    """
    common: Shape = ()
    for index, given in enumerate(types):
        if given.shape is None:
            return None
        joined = tuple(_meet(left, right) for left, right in _aligned(common, given.shape))
        for dim, (left, right) in zip(joined, _aligned(common, given.shape), strict=True):
            if dim is None:
                message = f"axes of {symbol} do not match: {{}} in {{}}, {{}} in {{}}"
                help = f"axes are matched from the right; {AXES_HELP}" if len(common) != len(given.shape) else ""
                raise Misfit("BG104", message, left, common, right, given.shape, help=help, blame=index)
        common = tuple(dim for dim in joined if dim is not None)
    return common


def strict(symbol: str, left: Type, right: Type) -> Shape | None:
    """The common shape of two operands of `+` or `-`; None if a shape is unknown. Raises Misfit (BG101)."""
    if left.shape is None or right.shape is None:
        return None
    common: list[Dim] = []
    for a, b in _aligned(left.shape, right.shape):
        dim = _meet_strictly(a, b, left.bare, right.bare)
        if dim is None:
            message = f"operands of {symbol} need equal shapes: {{}} and {{}}"
            raise Misfit("BG101", message, left.shape, right.shape, help=_remedy(left.shape, right.shape), blame=1)
        common.append(dim)
    return tuple(common)


def _remedy(left: Shape, right: Shape) -> str:
    if any(_meet(a, b) is None for a, b in _aligned(left, right)):
        return ""
    return AXES_HELP if len(left) != len(right) else REPEAT_HELP


def width(dim: Dim) -> Dim:
    """An axis that a product took over from a parameter: a 1 is a width there, which no `+` stretches."""
    return Dim(1) if dim.stretchy else dim


def _aligned(left: Shape, right: Shape) -> list[tuple[Dim | None, Dim | None]]:
    """Pairs of axes from left to right, aligned at the right; None where one shape has no axis."""
    return list(zip_longest(reversed(left), reversed(right)))[::-1]


def _meet(left: Dim | None, right: Dim | None) -> Dim | None:
    """The axis that comes out when any 1 may stretch, or None."""
    if left is None or right is None:
        return right if left is None else left
    if left == right:
        return left if right.stretchy else right
    return right if left == 1 else left if right == 1 else None


def _meet_strictly(left: Dim | None, right: Dim | None, left_free: bool, right_free: bool) -> Dim | None:
    """The axis that comes out when only free operands and a 1 written as such may stretch, or None."""
    if left is None or right is None:
        return right if left_free and left is None else left if right_free and right is None else None
    if left == right:
        return left if right.stretchy else right
    if left == 1 and (left.stretchy or left_free):
        return right
    return left if right == 1 and (right.stretchy or right_free) else None


def aligned_pattern(types: tuple[Type, ...], out: Shape | None) -> Pattern:
    """One letter per axis of the output; an operand's axis has that letter, or is `1` where it stretches."""
    if out is None:
        return Pattern(((ELLIPSIS,),) * len(types), ((ELLIPSIS,),))
    operands = tuple(_aligned_axes(given.shape or (), out) for given in types)
    return Pattern(operands, (tuple(f"a{index}" for index in range(len(out))),))


def _aligned_axes(shape: Shape, out: Shape) -> Axes:
    first = len(out) - len(shape)
    return tuple(f"a{first + index}" if dim == out[first + index] else "1" for index, dim in enumerate(shape))


def is_number(operand: Any) -> bool:
    """Whether an operand is a plain number out of an equation; it has no gradient and no dtype of its own."""
    return isinstance(operand, int | float) and not isinstance(operand, np.generic)


def unbroadcast(gradient: Any, operand: Any) -> Any:
    """The gradient summed over the axes along which the operand was stretched; None for a plain number."""
    if is_number(operand):
        return None
    if gradient.shape == operand.shape:
        return gradient
    lead = gradient.ndim - operand.ndim
    stretched = tuple(lead + i for i, size in enumerate(operand.shape) if size != gradient.shape[lead + i])
    return gradient.sum(axis=(*range(lead), *stretched), keepdims=True).reshape(operand.shape)


def chain(dy: Any, slope: Any) -> Any:
    """dy * slope, where 0 times an infinite or undefined slope is 0: that branch was not chosen."""
    with np.errstate(invalid="ignore"):
        product = dy * slope
    if np.isfinite(product).all():
        return product
    return np.where(dy == 0, np.zeros_like(product), product)
