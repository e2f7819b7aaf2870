"""The matrix product `@` and the transpose `.T`."""

from __future__ import annotations

import math
from typing import Any, final

from blockgraph.dims import Shape
from blockgraph.lazy import np
from blockgraph.op import Cost, DType, Misfit, Op, Type, volume
from blockgraph.ops.broadcast import loose, unbroadcast, width
from blockgraph.pattern import ELLIPSIS, Axes, Pattern, PatternMisfit, parse


@final
class MatMul(Op, name="matmul"):
    """y[..., m, n] = sum_k left[..., m, k] * right[..., k, n]

    As NumPy's `@`: leading axes align from the right and stretch where they are 1; an operand with one axis is a
    row on the left and a column on the right, and that axis is dropped.
    """

    signature = "left, right"
    factors = "all"

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The leading axes, then m and n. Raises Misfit (BG102, BG104, BG105)."""
        self.check_dtypes(types)
        left, right = types
        bare = left.bare and right.bare
        if left.shape is None or right.shape is None:
            return (Type(None, bare=bare),)
        shape = _product_shape(left.shape, right.shape)
        if len(right.shape) > 1 and right.bare and not bare:
            shape = (*shape[:-1], width(shape[-1]))
        return (Type(shape, bare=bare),)

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The inner axis is mixed, the others stay."""
        left, right = types
        if left.shape is None or right.shape is None:
            return Pattern(((ELLIPSIS,), (ELLIPSIS,)), ((ELLIPSIS,),))
        lead = _leading(left.shape, right.shape)
        m = ("m",) if len(left.shape) > 1 else ()
        n = ("n",) if len(right.shape) > 1 else ()
        first = (*_lead_axes(left.shape[:-2], lead), *m, "k")
        second = (*_lead_axes(right.shape[:-2], lead), "k", *n)
        return Pattern((first, second), ((*(f"b{index}" for index in range(len(lead))), *m, *n),))

    def forward(self, *arrays: Any) -> Any:
        """One matrix product where the right operand is one matrix."""
        left, right = arrays
        if right.ndim != 2 or left.ndim <= 2:
            return np.matmul(left, right)
        y = np.matmul(_rows(left), right)
        return y.reshape(*left.shape[:-1], right.shape[-1])

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dleft = dy @ right.T, dright = left.T @ dy, summed where leading axes were stretched"""
        left, right = arrays
        if right.ndim == 2 and left.ndim >= 2:
            flat = _rows(dy)
            return np.matmul(flat, right.T).reshape(left.shape), np.matmul(_rows(left).T, flat)
        row = left[None, :] if left.ndim == 1 else left
        column = right[:, None] if right.ndim == 1 else right
        dy = np.expand_dims(dy, -1) if right.ndim == 1 else dy
        dy = np.expand_dims(dy, -2) if left.ndim == 1 else dy
        dleft = unbroadcast(np.matmul(dy, column.swapaxes(-1, -2)), row)
        dright = unbroadcast(np.matmul(row.swapaxes(-1, -2), dy), column)
        return dleft.reshape(left.shape), dright.reshape(right.shape)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Two FLOPs per element of the output and inner position."""
        inner = types[0].shape[-1] if types[0].shape else 1
        return Cost(products=2 * volume(outs[0].shape) * inner)

    def label(self) -> str:
        """The sign."""
        return "@"


def _rows(x: Any) -> Any:
    """All leading axes in one."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _product_shape(left: Shape, right: Shape) -> Shape:
    lead = _leading(left, right)
    inner = right[-2] if len(right) > 1 else right[-1]
    if left[-1] != inner:
        met = "the only axis" if len(right) == 1 else "the first axis" if len(right) == 2 else "the last axis but one"
        help = f"the last axis on the left meets {met} on the right"
        help += "; `.T` swaps the last two axes" if len(right) > 1 else ""
        raise Misfit("BG102", "inner sizes differ: {} against {}", left[-1], inner, help=help, blame=1)
    return (*lead, *(left[-2:-1] if len(left) > 1 else ()), *(right[-1:] if len(right) > 1 else ()))


def _leading(left: Shape, right: Shape) -> Shape:
    for index, shape in enumerate((left, right)):
        if not shape:
            message = "`@` needs an operand with axes, and this is a single number"
            raise Misfit("BG105", message, help="write `*`", blame=index)
    lead = loose("`@`", Type(left[:-2]), Type(right[:-2]))
    assert lead is not None, "both shapes are known"
    return lead


def _lead_axes(shape: Shape, lead: Shape) -> Axes:
    first = len(lead) - len(shape)
    return tuple(f"b{first + i}" if dim == lead[first + i] else "1" for i, dim in enumerate(shape))


@final
class Transpose(Op, name="transpose", role="move"):
    """y = x with its last two axes swapped"""

    factors = "all"
    operand_dtypes = ("any",)
    shape = parse("... i j -> ... j i")

    def result_dtype(self, types: tuple[Type, ...]) -> DType:
        """That of the operand."""
        return types[0].dtype

    def misfit(self, misfit: PatternMisfit) -> Misfit:
        """Too few axes."""
        return Misfit("BG105", "`.T` swaps the last two axes, and this has fewer than two", blame=0)

    def forward(self, *arrays: Any) -> Any:
        """A view."""
        return np.swapaxes(arrays[0], -1, -2)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy with its last two axes swapped."""
        return (np.swapaxes(dy, -1, -2),)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing is computed."""
        return Cost()

    def label(self) -> str:
        """The sign."""
        return "T"
