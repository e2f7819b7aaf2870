"""The activations of feed-forward layers and gates.

`gelu` alone names two different functions, so there is `gelu_erf` and `gelu_tanh` and no `gelu`.
"""

from __future__ import annotations

import math
from typing import Any, final

from blockgraph.lazy import np
from blockgraph.op import Builder
from blockgraph.ops.arithmetic import Add, Compare, Multiply, Negate, Subtract
from blockgraph.ops.elementwise import Abs, Erf, Exp, Log, Sigmoid, Tanh, Unary, Where, sigmoid
from blockgraph.ops.erf import erf, in_chunks
from blockgraph.ops.leaf import number
from blockgraph.pattern import parse

ROOT_HALF = math.sqrt(0.5)
TANH_LINEAR = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715 * TANH_LINEAR


class Activation(Unary):
    """A curve that may stand as `activation:` of a part."""

    activation = True
    shape = parse("... -> ...")


@final
class Relu(Activation, name="relu"):
    """y = max(x, 0); the slope at 0 is 0

    Source: Nair & Hinton 2010, Rectified linear units improve restricted Boltzmann machines.
    """

    def curve(self, x: Any) -> Any:
        """max(x, 0)"""
        return np.maximum(x, 0)

    def slope(self, y: Any, x: Any) -> Any:
        """1 where x > 0"""
        return x > 0

    def side(self, y: Any, *arrays: Any) -> Any:
        """The sign of x."""
        return np.sign(arrays[0])


@final
class ReluSquared(Activation, name="relu_squared"):
    """y = max(x, 0)**2

    Source: So et al. 2021, Primer, arXiv:2109.08668, section 3.
    """

    operations = 2
    held = 1

    def curve(self, x: Any) -> Any:
        """max(x, 0)**2"""
        y = np.maximum(x, 0)
        return y * y

    def slope(self, y: Any, x: Any) -> Any:
        """2 max(x, 0)"""
        return 2 * np.maximum(x, 0)

    def expand(self, g: Builder, *values: int) -> int:
        """relu(x) * relu(x)"""
        y = g(Relu(), *values)
        return g(Multiply(), y, y)


@final
class Silu(Activation, name="silu"):
    """y = x * sigmoid(x)

    Source: Elfwing et al. 2017, arXiv:1702.03118, eq. 6; swish in Ramachandran et al. 2017, arXiv:1710.05941.
    """

    operations = 4

    def curve(self, x: Any) -> Any:
        """x * sigmoid(x)"""
        return in_chunks(lambda x: x * sigmoid(x), x)

    def slope(self, y: Any, x: Any) -> Any:
        """s (1 + x (1 - s)) with s = sigmoid(x)"""
        return in_chunks(_swish_slope, x)

    def expand(self, g: Builder, *values: int) -> int:
        """x * sigmoid(x)"""
        (x,) = values
        return g(Multiply(), x, g(Sigmoid(), x))


@final
class QuickGelu(Activation, name="quick_gelu"):
    """y = x * sigmoid(1.702 * x)

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2.
    """

    operations = 5

    def curve(self, x: Any) -> Any:
        """x * sigmoid(1.702 * x)"""
        return in_chunks(lambda x: x * sigmoid(1.702 * x), x)

    def slope(self, y: Any, x: Any) -> Any:
        """That of silu at 1.702 * x: y is silu(1.702 * x) / 1.702."""
        return in_chunks(lambda x: _swish_slope(1.702 * x), x)

    def expand(self, g: Builder, *values: int) -> int:
        """x * sigmoid(1.702 * x)"""
        (x,) = values
        return g(Multiply(), x, g(Sigmoid(), g(Multiply(), g(number(1.702)), x)))


def _swish_slope(x: Any) -> Any:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


@final
class GeluErf(Activation, name="gelu_erf"):
    """y = x * (1 + erf(x / sqrt(2))) / 2

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2.
    """

    operations = 5

    def curve(self, x: Any) -> Any:
        """x * (0.5 + 0.5 * erf(x * sqrt(0.5)))"""
        return in_chunks(lambda x: x * (0.5 + 0.5 * erf(x * ROOT_HALF)), x)

    def slope(self, y: Any, x: Any) -> Any:
        """Phi(x) + x * phi(x), the normal distribution and its density."""
        return in_chunks(_gelu_erf_slope, x)

    def expand(self, g: Builder, *values: int) -> int:
        """x * (0.5 + 0.5 * erf(x * sqrt(0.5)))"""
        (x,) = values
        return _half_open(g, x, g(Erf(), g(Multiply(), x, g(number(ROOT_HALF)))))


def _gelu_erf_slope(x: Any) -> Any:
    density = np.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return 0.5 + 0.5 * erf(x * ROOT_HALF) + x * density


@final
class GeluTanh(Activation, name="gelu_tanh"):
    """y = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2.
    """

    operations = 9

    def curve(self, x: Any) -> Any:
        """x * (0.5 + 0.5 * tanh(x * (c0 + c1 * x * x)))"""
        return in_chunks(_gelu_tanh, x)

    def slope(self, y: Any, x: Any) -> Any:
        """(1 + t) / 2 + x * (1 - t*t) * (c0 + 3 * c1 * x * x) / 2 with t = tanh(x * (c0 + c1 * x * x))"""
        return in_chunks(_gelu_tanh_slope, x)

    def expand(self, g: Builder, *values: int) -> int:
        """x * (0.5 + 0.5 * tanh(x * (c0 + c1 * (x * x))))"""
        (x,) = values
        cubic = g(Multiply(), g(number(TANH_CUBIC)), g(Multiply(), x, x))
        inner = g(Multiply(), x, g(Add(), g(number(TANH_LINEAR)), cubic))
        return _half_open(g, x, g(Tanh(), inner))


def _gelu_tanh(x: Any) -> Any:
    t = np.tanh(x * (TANH_LINEAR + TANH_CUBIC * (x * x)))
    return x * (0.5 + 0.5 * t)


def _gelu_tanh_slope(x: Any) -> Any:
    square = x * x
    t = np.tanh(x * (TANH_LINEAR + TANH_CUBIC * square))
    return 0.5 + 0.5 * t + 0.5 * x * (1 - t * t) * (TANH_LINEAR + 3 * TANH_CUBIC * square)


def _half_open(g: Builder, x: int, gate: int) -> int:
    """x * (0.5 + 0.5 * gate)"""
    half = g(number(0.5))
    return g(Multiply(), x, g(Add(), half, g(Multiply(), half, gate)))


@final
class Softplus(Activation, name="softplus"):
    """y = log(1 + exp(x))

    Source: Dugas et al. 2000, Incorporating second-order functional knowledge for better option pricing, eq. 5.
    """

    operations = 6
    held = 2

    def curve(self, x: Any) -> Any:
        """max(x, 0) + log(1 + exp(-abs(x))), which cannot overflow."""
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def slope(self, y: Any, x: Any) -> Any:
        """sigmoid(x)"""
        return sigmoid(x)

    def expand(self, g: Builder, *values: int) -> int:
        """relu(x) + log(1 + exp(-abs(x)))"""
        (x,) = values
        tail = g(Exp(), g(Negate(), g(Abs(), x)))
        return g(Add(), g(Relu(), x), g(Log(), g(Add(), g(number(1)), tail)))


@final
class Elu(Activation, name="elu"):
    """y = x where x > 0, else exp(x) - 1

    Source: Clevert et al. 2015, arXiv:1511.07289, eq. 1 with alpha = 1; `1 + elu(x)` is the feature map of linear
    attention, Katharopoulos et al. 2020, arXiv:2006.16236, eq. 7.
    """

    operations = 4
    held = 2

    def curve(self, x: Any) -> Any:
        """max(x, 0) + expm1(min(x, 0))"""
        return np.maximum(x, 0) + np.expm1(np.minimum(x, 0))

    def slope(self, y: Any, x: Any) -> Any:
        """exp(min(x, 0))"""
        return np.exp(np.minimum(x, 0))

    def expand(self, g: Builder, *values: int) -> int:
        """where(x > 0, x, exp(x) - 1)"""
        (x,) = values
        below = g(Subtract(), g(Exp(), x), g(number(1)))
        return g(Where(), g(Compare(relation=">"), x, g(number(0))), x, below)
