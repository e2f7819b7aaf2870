"""Where values come from: inputs, parameters and numbers."""

from __future__ import annotations

import math
from typing import Any, final

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import np
from blockgraph.number import Number
from blockgraph.op import Cost, DType, Op, Real, Size, Type
from blockgraph.pattern import Pattern
from blockgraph.records import dataclass

NOTHING = Pattern((), ((),))


class Leaf(Op):
    """An op without operands."""

    function = False

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """No operand, one output."""
        return NOTHING

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing is computed."""
        return Cost()


@final
@dataclass(frozen=True)
class Input(Leaf, name="input", role="source"):
    """A value given at every call. `below` bounds ids."""

    signature = ""
    path: str = ""
    dims: Shape = ()
    dtype: DType = "float"
    below: Size | None = None

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The declared shape and type."""
        return (Type(self.dims, self.dtype, below=None if self.below is None else Dim(self.below)),)

    def forward(self, *arrays: Any) -> Any:
        """Inputs are handed to a run, not computed."""
        raise AssertionError("an input is given, not computed")

    def label(self) -> str:
        """Its name."""
        return self.path


@final
@dataclass(frozen=True)
class Param(Leaf, name="param", role="source"):
    """A parameter: its full name, shape and how it is drawn at init.

    `init` is one of zeros, ones, eye, constant (`amount`), normal (std `amount`), uniform (within +-`amount`),
    xavier (normal, std `amount * sqrt(2 / (in + out))`). `shared`: one set for all layers of a stack.
    """

    signature = ""
    path: str = ""
    dims: Shape = ()
    init: str = "normal"
    amount: Real = 0.02
    frozen: bool = False
    shared: bool = False

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The declared shape."""
        return (Type(self.dims, "float", bare=True),)

    def forward(self, *arrays: Any) -> Any:
        """Parameters are handed to a run, not computed."""
        raise AssertionError("a parameter is given, not computed")

    def draw(self, rng: Any) -> Any:
        """A float64 array drawn from `rng`; only random inits consume numbers. The op must be bound."""
        shape = tuple(int(dim) for dim in self.dims)  # type: ignore[call-overload]
        if self.init in ("zeros", "ones", "constant"):
            return np.full(shape, {"zeros": 0.0, "ones": 1.0}.get(self.init, self.amount), dtype=np.float64)
        if self.init == "eye":
            return np.broadcast_to(np.eye(*shape[-2:]), shape).copy()
        if self.init == "uniform":
            return rng.uniform(-self.amount, self.amount, shape)
        spread = float(self.amount)  # type: ignore[arg-type]
        if self.init == "xavier":
            fan_in, fan_out = (shape[-2], shape[-1]) if len(shape) > 1 else (shape[0] if shape else 1,) * 2
            spread *= math.sqrt(2 / (fan_in + fan_out))
        return rng.standard_normal(shape) * spread

    def label(self) -> str:
        """Its name without the path."""
        return self.path.rpartition(".")[2]


@final
@dataclass(frozen=True)
class Constant(Leaf, name="constant", role="source"):
    """A number standing in an equation; it takes the dtype of what it meets."""

    signature = "value"
    value: Real = 0

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """A number has no axes."""
        return (Type((), "float", bare=True),)

    def forward(self, *arrays: Any) -> Any:
        """The Python number, so that it never widens an array."""
        return self.value

    def label(self) -> str:
        """The number."""
        return str(self.value)


def number(value: Number | Dim | float) -> Constant:
    """The constant that holds `value`."""
    return Constant(Number(value) if isinstance(value, Dim | int | float) else value)
