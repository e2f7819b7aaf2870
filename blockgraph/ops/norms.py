"""Norms over the last axis. Each row is normalised by itself, whatever its neighbours hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.number import Number
from blockgraph.op import Builder, Cost, Move, Op, Real, Refusal, Type, volume
from blockgraph.ops.arithmetic import Add, Compare, Divide, Multiply, Subtract
from blockgraph.ops.elementwise import Sqrt, Where
from blockgraph.ops.leaf import number
from blockgraph.ops.reduce import Mean, Sum
from blockgraph.pattern import Pattern, parse
from blockgraph.records import dataclass

MEAN = Mean("... c -> ... 1")
SUM = Sum("... c -> ... 1")


@dataclass(frozen=True)
class Norm(Op, role="norm"):
    """A norm over the last axis, then a gain per feature and a shift per feature where they are given.

    `operations` counts the FLOPs of one element without gain and shift, `row` those of one row.
    """

    operations: ClassVar[int] = 0
    row: ClassVar[int] = 3
    opens = True
    eps: Real = 1e-5
    given: tuple[str, ...] = ()

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Gain and shift have the width of the rows."""
        return parse("... c" + ", c" * len(self.given) + " -> ... c")

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Every feature of a row is read for each of its features."""
        return (Move(0, "c", None, None),)

    def refusals(self) -> Iterator[Refusal]:
        """A negative eps."""
        eps = self.eps.value if isinstance(self.eps, Number) else self.eps
        if eps is not None and eps < 0:
            message = f"eps is added below a root and may not be negative, like {eps}"
            yield Refusal("eps", message, "write a small number: 1e-5")

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """The steps of the formula; a reduction counts one per element."""
        shape = outs[0].shape or ()
        per_element = self.operations + len(self.given)
        return Cost(elementwise=volume(shape) * per_element + volume(shape[:-1]) * self.row)

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """A few numbers of every row."""
        return volume((outs[0].shape or ())[:-1]) * 3


@final
class LayerNorm(Norm, name="layer_norm"):
    """y = (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta, mean and variance (over n, not n - 1) of a row

    x (..., C), gamma and beta (C,). Source: Ba et al. 2016, arXiv:1607.06450, eq. 3 and 4.
    """

    signature = "x, gamma=, beta="
    operations = 5

    def forward(self, *arrays: Any) -> Any:
        """Normalised rows, scaled and shifted."""
        x, *affine = arrays
        y, _ = normalised(x - row_means(x), float(self.eps))  # type: ignore[arg-type]
        for name, array in zip(self.given, affine, strict=True):
            if name == "gamma":
                y *= array
            else:
                y += array
        return y

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """The differences from the mean, too."""
        return super().room(types, outs) + volume(outs[0].shape)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = (dz - mean(dz) - z * mean(dz * z)) / sigma with z the normalised rows and dz = dy * gamma"""
        x, *affine = arrays
        z, inverse = normalised(x - row_means(x), float(self.eps))  # type: ignore[arg-type]
        named = dict(zip(self.given, affine, strict=True))
        gradients = {"gamma": lambda: column_sums(dy * z), "beta": lambda: column_sums(dy)}
        dz = dy * named["gamma"] if "gamma" in named else dy
        dx = dz - row_means(dz)
        dx -= z * (np.vecdot(dz, z) / x.shape[-1])[..., None]
        dx *= inverse
        return dx, *(gradients[name]() for name in self.given)

    def expand(self, g: Builder, *values: int) -> int:
        """Mean, difference, mean of squares, root, quotient, gain, shift."""
        x, *affine = values
        centred = g(Subtract(), x, g(MEAN, x))
        y = _by_root(g, centred, self.eps)
        for name, value in zip(self.given, affine, strict=True):
            y = g(Multiply(), y, value) if name == "gamma" else g(Add(stretch=True), y, value)
        return y


@final
@dataclass(frozen=True)
class RmsNorm(Norm, name="rms_norm"):
    """y = x / sqrt(mean(x*x) + eps) * (offset + gamma), the mean of a row

    x (..., C), gamma (C,). Source: Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4.
    """

    signature = "x, gamma="
    operations = 3
    eps: Real = 1e-6
    offset: Real = 0

    def refusals(self) -> Iterator[Refusal]:
        """A negative eps, and an offset of nothing."""
        yield from super().refusals()
        if self.offset != 0 and not self.given:
            yield Refusal("offset", "`offset` is added to gamma, and there is no gamma", "leave `offset` out")

    def forward(self, *arrays: Any) -> Any:
        """Normalised rows, scaled."""
        x, *gamma = arrays
        y, _ = normalised(x, float(self.eps))  # type: ignore[arg-type]
        if gamma:
            y *= self._gain(gamma[0])
        return y

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = (dz - z * mean(dz * z)) / sigma with z the normalised rows and dz = dy * (offset + gamma)"""
        x, *gamma = arrays
        z, inverse = normalised(x, float(self.eps))  # type: ignore[arg-type]
        dz = dy * self._gain(gamma[0]) if gamma else dy
        dx = dz - z * (np.vecdot(dz, z) / x.shape[-1])[..., None]
        dx *= inverse
        return (dx, column_sums(dy * z)) if gamma else (dx,)

    def _gain(self, gamma: Any) -> Any:
        return gamma + float(self.offset) if self.offset else gamma  # type: ignore[arg-type]

    def expand(self, g: Builder, *values: int) -> int:
        """Mean of squares, root, quotient, gain."""
        x, *gamma = values
        y = _by_root(g, x, self.eps)
        if not gamma:
            return y
        gain = g(Add(stretch=True), gamma[0], g(number(self.offset))) if self.offset != 0 else gamma[0]
        return g(Multiply(), y, gain)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """The steps of the formula; the offset counts once per feature."""
        base = super().cost(types, outs)
        if self.offset == 0 or not self.given:
            return base
        return Cost(elementwise=base.elementwise + volume(types[1].shape))


@final
@dataclass(frozen=True)
class L2Norm(Norm, name="l2_norm"):
    """y = x / sqrt(sum(x*x) + eps), the sum of a row; a row of zeros stays zero

    Source: Loshchilov et al. 2024, arXiv:2410.01131, section 2.
    """

    operations = 3
    row = 2
    eps: Real = 0

    def forward(self, *arrays: Any) -> Any:
        """Rows of length one."""
        return arrays[0] * self._inverse(arrays[0])

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = (dy - y * sum(dy * y)) / length; 0 for a row of zeros without eps"""
        dx = dy - y * np.vecdot(dy, y)[..., None]
        dx *= self._inverse(arrays[0])
        return (dx,)

    def _inverse(self, x: Any) -> Any:
        total = np.asarray(np.vecdot(x, x) + float(self.eps))[..., None]  # type: ignore[arg-type]
        root = np.sqrt(total)
        return np.divide(1, root, out=np.zeros_like(root), where=root > 0)

    def expand(self, g: Builder, *values: int) -> int:
        """Sum of squares, root, quotient; without eps the rows of zeros are divided by 1."""
        (x,) = values
        total = g(SUM, g(Multiply(), x, x))
        if self.eps != 0:
            total = g(Add(), total, g(number(self.eps)))
        else:
            total = g(Where(), g(Compare(relation=">"), total, g(number(0))), total, g(number(1)))
        return g(Divide(), x, g(Sqrt(), total))


def row_means(x: Any) -> Any:
    """The mean of each row, with the axis kept.

    A dot product with 1/C is several times faster than `mean`; `x @ (1/C)` gains little more and waits for a thread.
    """
    return np.vecdot(x, shares(x.shape[-1], x.dtype))[..., None]


@lru_cache(maxsize=64)
def shares(width: int, dtype: Any) -> Any:
    """1/C, C times; nobody may write to it."""
    weights = np.full(width, 1 / max(width, 1), dtype)
    weights.flags.writeable = False
    return weights


def normalised(x: Any, eps: float) -> tuple[Any, Any]:
    """x / sqrt(mean(x*x) + eps) as a new array, and 1 / sqrt(...) with the axis kept."""
    inverse = np.asarray(np.vecdot(x, x) / max(x.shape[-1], 1) + eps)[..., None]
    inverse = 1 / np.sqrt(inverse)
    return x * inverse, inverse


def column_sums(x: Any) -> Any:
    """The sum over all axes but the last."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).sum(axis=0)


def _by_root(g: Builder, x: int, eps: Real) -> int:
    """x / sqrt(mean(x*x) + eps)"""
    square = g(MEAN, g(Multiply(), x, x))
    return g(Divide(), x, g(Sqrt(), g(Add(), square, g(number(eps)))))
