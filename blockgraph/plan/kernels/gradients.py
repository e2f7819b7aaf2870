"""What gradients are made of: normalised rows and slopes on the way there, chains and sums of rows on the way back."""

from __future__ import annotations

from typing import Any

from blockgraph.adjoint.ops import (
    AddRows,
    Chain,
    ColumnDot,
    Columns,
    ColumnSum,
    Elementwise,
    Normalised,
    NormBackward,
    Parts,
    Rowwise,
    Slope,
    TurnedBack,
    WithSlope,
)
from blockgraph.lazy import np
from blockgraph.op import Op
from blockgraph.ops.activations import TANH_CUBIC, TANH_LINEAR, GeluTanh, Silu
from blockgraph.ops.elementwise import Exp, Sigmoid, Tanh
from blockgraph.ops.gather import add_rows
from blockgraph.ops.softmax import Softmax
from blockgraph.plan.kernel import Emit, kernel
from blockgraph.plan.kernels.norms import divide_by_root
from blockgraph.plan.kernels.positions import turn
from blockgraph.plan.memory import as_rows


@kernel(Normalised)
def normalised(emit: Emit, op: Normalised, out: Any, x: Any) -> None:
    """The rows over the root of their mean square, and its inverse."""
    z, inverse = out
    if op.centred:
        mean = emit.room(x.shape[:-1])
        emit(np.vecdot, x, emit.full(x.shape[-1], 1 / max(x.shape[-1], 1)), mean)
        emit(np.subtract, x, mean[..., None], z)
        x = z
    divide_by_root(emit, x, z, inverse[..., 0], op.eps)


@kernel(NormBackward, over=(0,))
def norm_backward(emit: Emit, op: NormBackward, out: Any, dz: Any, z: Any, inverse: Any) -> None:
    """(dz - mean(dz) - z * mean(dz * z)) * inverse"""
    dot, along, share = emit.room(z.shape[:-1]), emit.room(z.shape), 1 / max(z.shape[-1], 1)
    emit(np.vecdot, dz, z, dot)
    emit(np.multiply, dot, share, dot)
    emit(np.multiply, z, dot[..., None], along)
    if op.centred:
        emit(np.vecdot, dz, emit.full(z.shape[-1], share), dot)
        emit(np.subtract, dz, dot[..., None], out)
        dz = out
    emit(np.subtract, dz, along, out)
    emit(np.multiply, out, inverse, out)


@kernel(WithSlope)
def with_slope(emit: Emit, op: WithSlope, out: Any, x: Any) -> None:
    """The value and the slope, which have most of their steps in common."""
    if isinstance(op.op, GeluTanh):
        _gelu(emit, out[0], out[1], x)
    elif isinstance(op.op, Silu):
        _silu(emit, out[0], out[1], x)
    else:
        emit(_both, op, out, x)


def _both(op: WithSlope, out: Any, x: Any) -> None:
    for array, result in zip(out, op.forward(x), strict=True):
        np.copyto(array, result)


def _gelu(emit: Emit, y: Any | None, slope: Any, x: Any) -> None:
    """y = x h with h = (1 + tanh(x (c0 + c1 x x))) / 2; slope = h (1 + 2 (1 - h) x (c0 + 3 c1 x x))"""
    square, h = emit.room(x.shape), emit.room(x.shape)
    emit(np.multiply, x, x, square)
    emit(np.multiply, square, TANH_CUBIC, h)
    emit(np.add, h, TANH_LINEAR, h)
    emit(np.multiply, h, x, h)
    emit(np.tanh, h, h)
    emit(np.multiply, h, 0.5, h)
    emit(np.add, h, 0.5, h)
    emit(np.multiply, square, 6 * TANH_CUBIC, square)
    emit(np.add, square, 2 * TANH_LINEAR, square)
    emit(np.multiply, square, x, square)
    if y is not None:
        emit(np.multiply, h, x, y)
    emit(np.subtract, 1, h, slope)
    emit(np.multiply, square, slope, square)
    emit(np.add, square, 1, square)
    emit(np.multiply, square, h, slope)


def _silu(emit: Emit, y: Any, slope: Any, x: Any) -> None:
    """y = x s, slope = s (1 + x (1 - s)) = s + y (1 - s)"""
    s = emit.room(x.shape)
    emit(np.negative, x, s)
    emit(np.exp, s, s)
    emit(np.add, s, 1, s)
    emit(np.divide, 1, s, s)
    emit(np.multiply, x, s, y)
    emit(np.subtract, 1, s, slope)
    emit(np.multiply, slope, y, slope)
    emit(np.add, slope, s, slope)


@kernel(Slope, over=(0,))
def slope(emit: Emit, op: Slope, out: Any, x: Any) -> None:
    """The slope alone."""
    if isinstance(op.op, GeluTanh):
        _gelu(emit, None, out, x)
    elif isinstance(op.op, Silu):
        _silu(emit, emit.room(x.shape), out, x)
    else:
        emit(_elementwise, op, out, x)


@kernel(Chain, over=(1, 0))
def chain(emit: Emit, op: Chain, out: Any, dy: Any, slope: Any) -> None:
    """dy * slope; only where a slope is not finite is the product looked at again."""
    emit(_chained, op, out, dy, slope)


def _chained(op: Chain, out: Any, dy: Any, slope: Any) -> None:
    if np.isfinite(np.add.reduce(slope, axis=None)):
        np.multiply(dy, slope, out)
    else:
        np.copyto(out, op.forward(dy, slope))


@kernel(Elementwise, over=(0,))
def elementwise(emit: Emit, op: Elementwise, out: Any, dy: Any, y: Any, x: Any) -> None:
    """By the slope in terms of y where that is short."""
    if isinstance(op.op, Exp):
        emit(np.multiply, dy, y, out)
    elif isinstance(op.op, Tanh | Sigmoid):
        slope = emit.room(y.shape)
        emit(np.multiply, y, y, slope)
        emit(np.subtract, 1 if isinstance(op.op, Tanh) else y, slope, slope)
        emit(np.multiply, dy, slope, out)
    else:
        emit(_elementwise, op, out, dy, y, x)


def _elementwise(op: Op, out: Any, *arrays: Any) -> None:
    np.copyto(out, op.forward(*arrays))


@kernel(Rowwise, over=(0,))
def rowwise(emit: Emit, op: Rowwise, out: Any, dy: Any, y: Any, x: Any) -> None:
    """dx = (dy - sum(dy * y)) * y of a softmax; the others by their own backward."""
    if not isinstance(op.op, Softmax):
        emit(_elementwise, op, out, dy, y, x)
        return
    dot = emit.room(y.shape[:-1])
    emit(np.vecdot, dy, y, dot)
    emit(np.subtract, dy, dot[..., None], out)
    emit(np.multiply, out, y, out)


@kernel(TurnedBack, placed=True)
def turned_back(emit: Emit, op: TurnedBack, out: Any, dy: Any) -> None:
    """By the angles the other way."""
    turn(emit, op.op, out, dy, -1)


@kernel(AddRows, over=(0,))
def added_rows(emit: Emit, op: AddRows, out: Any, total: Any, dy: Any, ids: Any) -> None:
    """Onto the rows that are there."""
    if out is not total:
        emit(np.copyto, out, total)
    emit(_add_rows, out, dy, ids)


def _add_rows(out: Any, dy: Any, ids: Any) -> None:
    add_rows(out, dy.reshape(-1, out.shape[-1]), ids.reshape(-1))


@kernel(ColumnSum, ColumnDot)
def columns(emit: Emit, op: Columns, out: Any, *operands: Any) -> None:
    """The sum of few rows."""
    emit(np.add.reduce, *_summands(emit, *operands), None, out)


@kernel(Parts, sums=True)
def parts(emit: Emit, op: Parts, out: Any, *operands: Any) -> None:
    """The sum of these rows, onto what is there."""
    sums = emit.room(out.shape)
    emit(np.add.reduce, *_summands(emit, *operands), None, sums)
    emit(np.add, out, sums, out)


def _summands(emit: Emit, first: Any, *second: Any) -> tuple[Any, int | tuple[int, ...]]:
    """What is to be summed, and over which axes."""
    if second:
        product = emit.room(first.shape)
        emit(np.multiply, first, *second, product)
        first = product
    rows = as_rows(first)
    return (first, tuple(range(first.ndim - 1))) if rows is None else (rows, 0)
