"""Functions of one value, element by element, and the choice between two values."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Op, Type, volume
from blockgraph.ops import erf as error_function
from blockgraph.ops.broadcast import aligned_pattern, chain, is_number, loose, unbroadcast
from blockgraph.pattern import Pattern, parse


class Unary(Op):
    """y = curve(x), element by element.

    `operations` counts the FLOPs of one element, `held` the arrays that `curve` has at once beside x and y.
    """

    shape = parse("... -> ...")
    operations: ClassVar[int] = 1
    held: ClassVar[int] = 0

    @abstractmethod
    def curve(self, x: Any) -> Any:
        """The values."""

    @abstractmethod
    def slope(self, y: Any, x: Any) -> Any:
        """dy/dx"""

    def forward(self, *arrays: Any) -> Any:
        """curve(x); a plain number stays one, so that it never widens an array."""
        (x,) = arrays
        return float(self.curve(x)) if is_number(x) else self.curve(x)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy * slope"""
        (x,) = arrays
        if is_number(x):
            return (None,)
        with np.errstate(all="ignore"):
            slope = self.slope(y, x)
        return (chain(dy, slope),)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """One FLOP per element and step of the formula."""
        return Cost(elementwise=volume(outs[0].shape) * self.operations)

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """What `curve` holds."""
        return volume(outs[0].shape) * self.held


@final
class Exp(Unary, name="exp"):
    """y = e**x"""

    def curve(self, x: Any) -> Any:
        """e**x"""
        return np.exp(x)

    def slope(self, y: Any, x: Any) -> Any:
        """y"""
        return y


@final
class Log(Unary, name="log"):
    """y = log(x), the natural logarithm"""

    def curve(self, x: Any) -> Any:
        """log(x)"""
        return np.log(x)

    def slope(self, y: Any, x: Any) -> Any:
        """1 / x"""
        return 1 / x


@final
class Sqrt(Unary, name="sqrt"):
    """y = sqrt(x)"""

    def curve(self, x: Any) -> Any:
        """sqrt(x)"""
        return np.sqrt(x)

    def slope(self, y: Any, x: Any) -> Any:
        """1 / (2 y)"""
        return 0.5 / y


@final
class Abs(Unary, name="abs"):
    """y = abs(x); the slope at 0 is 0"""

    def curve(self, x: Any) -> Any:
        """abs(x)"""
        return np.abs(x)

    def slope(self, y: Any, x: Any) -> Any:
        """The sign of x."""
        return np.sign(x)

    def side(self, y: Any, *arrays: Any) -> Any:
        """The sign of x."""
        return np.sign(arrays[0])


@final
class Erf(Unary, name="erf"):
    """y = erf(x), the error function 2 / sqrt(pi) * integral of exp(-t*t) from 0 to x"""

    def curve(self, x: Any) -> Any:
        """erf(x)"""
        return error_function.erf(x)

    def slope(self, y: Any, x: Any) -> Any:
        """2 / sqrt(pi) * exp(-x*x)"""
        return 2 / math.sqrt(math.pi) * np.exp(-x * x)


@final
class Sigmoid(Unary, name="sigmoid"):
    """y = 1 / (1 + exp(-x))"""

    activation = True
    operations = 3
    held = 1

    def curve(self, x: Any) -> Any:
        """1 / (1 + exp(-x))"""
        return sigmoid(x)

    def slope(self, y: Any, x: Any) -> Any:
        """y (1 - y)"""
        return y * (1 - y)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)); far to the left exp overflows to infinity, whose inverse is the right 0."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


@final
class Tanh(Unary, name="tanh"):
    """y = tanh(x)"""

    activation = True

    def curve(self, x: Any) -> Any:
        """tanh(x)"""
        return np.tanh(x)

    def slope(self, y: Any, x: Any) -> Any:
        """1 - y*y"""
        return 1 - y * y


@final
class StopGradient(Op, name="stop_gradient"):
    """y = x; no gradient passes"""

    shape = parse("... -> ...")
    cuts = (0,)

    def forward(self, *arrays: Any) -> Any:
        """x itself"""
        return arrays[0]

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Nothing."""
        return (None,)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing is computed."""
        return Cost()


@final
class Where(Op, name="where"):
    """y = if_true where condition, else if_false

    The three align from the right and stretch any axis of 1. No gradient reaches what was not chosen.
    """

    signature = "condition, if_true, if_false"
    operand_dtypes = ("bool",)
    cuts = (0,)
    chooses = True

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The axes aligned from the right."""
        return aligned_pattern(types, loose("`where`", *types))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The common shape of the three. Raises Misfit."""
        self.check_dtypes(types)
        return (Type(loose("`where`", *types), "float", all(given.bare for given in types)),)

    def forward(self, *arrays: Any) -> Any:
        """The chosen values."""
        condition, if_true, if_false = arrays
        return np.where(condition, if_true, if_false)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy to the operand that was chosen, 0 to the other."""
        condition, if_true, if_false = arrays
        zero = np.zeros_like(dy)
        dtrue = None if is_number(if_true) else unbroadcast(np.where(condition, dy, zero), if_true)
        return None, dtrue, None if is_number(if_false) else unbroadcast(np.where(condition, zero, dy), if_false)
