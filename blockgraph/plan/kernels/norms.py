"""Norms: a handful of calls on the rows, the result written over the operand where that is done with."""

from __future__ import annotations

import math
from typing import Any

from blockgraph.lazy import np
from blockgraph.op import real
from blockgraph.ops.norms import L2Norm, LayerNorm, RmsNorm
from blockgraph.plan.kernel import Emit, kernel


@kernel(LayerNorm, over=(0,))
def layer_norm(emit: Emit, op: LayerNorm, out: Any, x: Any, *affine: Any) -> None:
    """Rows less their mean, divided by their deviation, then gain and shift."""
    mean = emit.room(x.shape[:-1])
    emit(np.vecdot, x, emit.full(x.shape[-1], 1 / max(x.shape[-1], 1)), mean)
    emit(np.subtract, x, mean[..., None], out)
    divide_by_root(emit, out, out, mean, real(op.eps))
    _gain_and_shift(emit, op.given, out, affine)


@kernel(RmsNorm, over=(0,))
def rms_norm(emit: Emit, op: RmsNorm, out: Any, x: Any, *gamma: Any) -> None:
    """Rows divided by the root of their mean square, then the gain."""
    divide_by_root(emit, x, out, emit.room(x.shape[:-1]), real(op.eps))
    if gamma and op.offset:
        gain = emit.room(gamma[0].shape)
        emit(np.add, gamma[0], real(op.offset), gain)
        gamma = (gain,)
    _gain_and_shift(emit, op.given, out, gamma)


@kernel(L2Norm, over=(0,))
def l2_norm(emit: Emit, op: L2Norm, out: Any, x: Any) -> None:
    """Rows divided by their length; without eps the inverse of 0 is 0."""
    inverse = emit.room(x.shape[:-1])
    emit(np.vecdot, x, x, inverse)
    emit(np.add, inverse, real(op.eps), inverse)
    emit(np.sqrt, inverse, inverse)
    emit(_inverse_or_zero, inverse)
    emit(np.multiply, x, inverse[..., None], out)


def _inverse_or_zero(x: Any) -> None:
    np.divide(1, x, out=x, where=x > 0)


def divide_by_root(emit: Emit, x: Any, out: Any, square: Any, eps: float) -> None:
    """out = x / sqrt(mean(x*x) + eps), as x * (sqrt(C) / sqrt(sum(x*x) + C * eps))"""
    width = max(x.shape[-1], 1)
    emit(np.vecdot, x, x, square)
    emit(np.add, square, width * eps, square)
    emit(np.sqrt, square, square)
    emit(np.divide, math.sqrt(width), square, square)
    emit(np.multiply, x, square[..., None], out)


def _gain_and_shift(emit: Emit, given: tuple[str, ...], out: Any, affine: tuple[Any, ...]) -> None:
    for name, array in zip(given, affine, strict=True):
        emit(np.multiply if name == "gamma" else np.add, out, array, out)
