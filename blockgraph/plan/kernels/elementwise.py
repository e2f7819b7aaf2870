"""Arithmetic, activations and other functions element by element, written over an operand that is done with."""

from __future__ import annotations

from typing import Any

from blockgraph.lazy import np
from blockgraph.op import Op
from blockgraph.ops.activations import TANH_CUBIC, TANH_LINEAR, GeluTanh, QuickGelu, Relu, ReluSquared, Silu
from blockgraph.ops.arithmetic import Add, Divide, Multiply, Negate, Subtract
from blockgraph.ops.elementwise import Abs, Exp, Log, Sigmoid, Sqrt, Tanh
from blockgraph.plan.kernel import Emit, kernel, maximum


def _by_ufunc(op: type[Op], name: str, operands: int) -> None:
    """Register an op that is one NumPy function."""

    def write(emit: Emit, op: Op, out: Any, *arrays: Any) -> None:
        emit(getattr(np, name), *arrays, out)

    kernel(op, over=tuple(range(operands)))(write)


BINARY: dict[type[Op], str] = {Add: "add", Subtract: "subtract", Multiply: "multiply", Divide: "divide"}
UNARY: dict[type[Op], str] = {Negate: "negative", Exp: "exp", Log: "log", Sqrt: "sqrt", Abs: "abs", Tanh: "tanh"}
for _op, _name in BINARY.items():
    _by_ufunc(_op, _name, 2)
for _op, _name in UNARY.items():
    _by_ufunc(_op, _name, 1)


@kernel(Relu, over=(0,))
def relu(emit: Emit, op: Relu, out: Any, x: Any) -> None:
    """max(x, 0)"""
    emit(maximum, x, 0, out)


@kernel(ReluSquared, over=(0,))
def relu_squared(emit: Emit, op: ReluSquared, out: Any, x: Any) -> None:
    """max(x, 0)**2"""
    emit(maximum, x, 0, out)
    emit(np.multiply, out, out, out)


@kernel(Sigmoid, over=(0,))
def sigmoid(emit: Emit, op: Sigmoid, out: Any, x: Any) -> None:
    """1 / (1 + exp(-x))"""
    _sigmoid(emit, out, x)


def _sigmoid(emit: Emit, out: Any, x: Any, slope: float = 1.0) -> None:
    emit(np.multiply, x, -slope, out)
    emit(np.exp, out, out)
    emit(np.add, out, 1, out)
    emit(np.divide, 1, out, out)


@kernel(Silu, over=(0,))
def silu(emit: Emit, op: Silu, out: Any, x: Any) -> None:
    """x / (1 + exp(-x))"""
    _swish(emit, out, x, 1.0)


@kernel(QuickGelu, over=(0,))
def quick_gelu(emit: Emit, op: QuickGelu, out: Any, x: Any) -> None:
    """x / (1 + exp(-1.702 * x))"""
    _swish(emit, out, x, 1.702)


def _swish(emit: Emit, out: Any, x: Any, slope: float) -> None:
    gate = emit.room(x.shape)
    emit(np.multiply, x, -slope, gate)
    emit(np.exp, gate, gate)
    emit(np.add, gate, 1, gate)
    emit(np.divide, x, gate, out)


@kernel(GeluTanh, over=(0,))
def gelu_tanh(emit: Emit, op: GeluTanh, out: Any, x: Any) -> None:
    """x / (1 + exp(-2 * x * (c0 + c1 * x * x))), which is the same: 0.5 + 0.5 * tanh(z) = 1 / (1 + exp(-2 * z))"""
    t = emit.room(x.shape)
    emit(np.multiply, x, x, t)
    emit(np.multiply, t, -2 * TANH_CUBIC, t)
    emit(np.subtract, t, 2 * TANH_LINEAR, t)
    emit(np.multiply, t, x, t)
    emit(np.exp, t, t)
    emit(np.add, t, 1, t)
    emit(np.divide, x, t, out)
