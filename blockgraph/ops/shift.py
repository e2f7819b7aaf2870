"""Ops along time that read neighbours: shift and depthwise convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Move, Op, Size, Type, volume, whole
from blockgraph.ops.axes import Moving
from blockgraph.pattern import Pattern, parse
from blockgraph.records import dataclass


@final
@dataclass(frozen=True)
class Shift(Moving, name="shift", role="move"):
    """y[..., t, c] = x[..., t - steps, c], zero where that lies outside: `shift(x, 1)` moves to the right

    x (..., T, C); a negative number moves to the left. Source: Peng et al. 2023, arXiv:2305.13048, sec. 3.1.1.
    """

    signature = "x, steps"
    shape = parse("... t c -> ... t c")
    steps: Size = 1

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Position t reads t - steps."""
        return (Move(0, "t", -self.steps, -self.steps),)

    def forward(self, *arrays: Any) -> Any:
        """A copy."""
        (x,) = arrays
        return shifted(x, whole(self.steps))

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = dy moved back"""
        return (shifted(dy, -whole(self.steps)),)


def shifted(x: Any, steps: int) -> Any:
    """x moved to the right along its last but one axis, with zeros entering."""
    y = np.zeros_like(x)
    if abs(steps) >= x.shape[-2]:
        return y
    if steps >= 0:
        y[..., steps:, :] = x[..., : x.shape[-2] - steps, :]
    else:
        y[..., :steps, :] = x[..., -steps:, :]
    return y


@final
@dataclass(frozen=True)
class DepthwiseConv(Op, name="depthwise_conv"):
    """y[t, c] = sum_k weight[k, c] * x[t + k - left, c] + bias[c], x zero outside

    x (..., T, C), weight (K, C), bias (C). `left` is K - 1 if causal, else (K - 1)//2: the window is centred, and
    a K that is even looks one further to the right. Source: Gulati et al. 2020, arXiv:2005.08100, sec. 2.2.
    """

    signature = "x, weight, bias="
    causal: bool = False
    given: tuple[str, ...] = ()

    def label(self) -> str:
        """Whether it is causal shows."""
        return f"{self.name} causal" if self.causal else self.name

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """With or without a bias."""
        return parse("... t c, k c, c -> ... t c" if self.given else "... t c, k c -> ... t c")

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """The window around t; its halves are bounds where K is a symbol."""
        if types[1].shape is None:
            return ()
        reach = types[1].shape[0] - 1
        if self.causal:
            return (Move(0, "t", -reach, 0),)
        number = reach.as_int()
        if number is None:
            return (Move(0, "t", -reach / 2, (reach + 1) / 2),)
        return (Move(0, "t", -(number // 2), number - number // 2),)

    def forward(self, *arrays: Any) -> Any:
        """One multiply-add over the stretch per tap."""
        x, weight, *bias = arrays
        y = np.zeros(x.shape, np.result_type(x, weight))
        for k, to, at in self._taps(x.shape[-2], weight.shape[0]):
            y[..., to, :] += weight[k] * x[..., at, :]
        if bias:
            y += bias[0]
        return y

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx gathers dy over the mirrored window; dweight[k] = sum of dy * x at tap k"""
        x, weight, *bias = arrays
        dx, dweight = np.zeros(x.shape, x.dtype), np.zeros(weight.shape, weight.dtype)
        for k, to, at in self._taps(x.shape[-2], weight.shape[0]):
            dx[..., at, :] += weight[k] * dy[..., to, :]
            dweight[k] = (dy[..., to, :] * x[..., at, :]).reshape(-1, x.shape[-1]).sum(axis=0)
        dbias = (dy.reshape(-1, dy.shape[-1]).sum(axis=0),) if bias else ()
        return (dx, dweight, *dbias)

    def _taps(self, steps: int, taps: int) -> Iterator[tuple[int, slice, slice]]:
        """Per tap: its number, the outputs it reaches and the inputs it reads."""
        left = taps - 1 if self.causal else (taps - 1) // 2
        for k in range(taps):
            offset = k - left
            if abs(offset) < steps:
                yield k, slice(max(0, -offset), steps - max(0, offset)), slice(max(0, offset), steps - max(0, -offset))

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """A multiply and an add per tap, and the bias."""
        taps = types[1].shape[0] if types[1].shape else Dim(1)
        return Cost(elementwise=volume(outs[0].shape) * (2 * taps + len(self.given)))

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """One tap at a time."""
        return volume(outs[0].shape)
