"""Rotary positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Builder, Cost, Count, Misfit, Move, Need, Op, Real, Refusal, Size, Type, real, volume, whole
from blockgraph.ops.arithmetic import Add, Multiply, Subtract
from blockgraph.ops.axes import Rearrange
from blockgraph.ops.join import Concat, Split
from blockgraph.ops.positions import RopeAngles, angles
from blockgraph.ops.subscript import WHOLE, Index
from blockgraph.pattern import parse
from blockgraph.records import dataclass


@final
@dataclass(frozen=True)
class Rope(Op, name="rope", role="scale"):
    """A pair (a, b) of features at position p becomes (a cos - b sin, b cos + a sin), angle p * theta**(-2m/width)

    x (..., T, D). Pair m is (m, m + width/2) in style `half`, (2m, 2m + 1) in style `pairs`; features past `width`
    pass unchanged; positions count from 0. Both styles go by the name of rotary and give other numbers, so the style
    must be written. Source: Su et al. 2021, arXiv:2104.09864, eq. 34.
    """

    signature = "x"
    shape = parse("... t d -> ... t d")
    style: str
    theta: Real = 10000.0
    width: Size | None = None
    scaling: None = None

    def refusals(self) -> Iterator[Refusal]:
        """An unknown style, an odd width, a base that is not positive."""
        if self.style not in ("half", "pairs"):
            yield Refusal("style", f"`{self.style}` is no style of rotary positions", "write `half` or `pairs`")
        number = None if self.width is None else Dim(self.width).number
        if number is not None and (number < 2 or number % 2):
            message = f"rotary positions turn pairs of features, and {number} is odd or too small"
            yield Refusal("width", message, "write an even width")
        if isinstance(self.theta, int | float) and not self.theta > 0:
            yield Refusal("theta", f"theta must be positive, not {self.theta}", "10000 is usual")

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The type of x. Raises Misfit for an odd width."""
        found = super().infer(*types)
        shape = types[0].shape
        if shape is None:
            return found
        width = shape[-1] if self.width is None else Dim(self.width)
        number, features = width.as_int(), shape[-1].as_int()
        if number is not None and number % 2:
            help = "choose heads so that a head has an even number of features"
            raise Misfit("BG103", "rotary positions turn pairs of features, and {} is odd", width, help=help, blame=0)
        if number is not None and features is not None and number > features:
            raise Misfit("BG104", "`width` of `rope` is {} where x has {} features", width, shape[-1], blame=0)
        return found

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Features of a pair mix; positions stay."""
        return (Move(0, "d", None, None),)

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """Positions count from 0."""
        return (Count("t"),)

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """An even width, within the features."""
        if types[0].shape is None:
            return
        width = types[0].shape[-1] if self.width is None else Dim(self.width)
        yield Need(Dim(2), width, "divides")
        if self.width is not None:
            yield Need(width, types[0].shape[-1])

    def forward(self, *arrays: Any) -> Any:
        """The features past the width are copied."""
        return self._turned(arrays[0], 1)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The turn back."""
        return (self._turned(dy, -1),)

    def _turned(self, x: Any, direction: int) -> Any:
        """x turned by its angles, forwards or backwards."""
        width = x.shape[-1] if self.width is None else whole(self.width)
        cos, sin = angles(x.shape[-2], width, real(self.theta), x.dtype)
        if direction < 0:
            sin = -sin
        first, second = self.pairs(width)
        a, b = x[..., first], x[..., second]
        y = np.empty_like(x)
        y[..., first] = a * cos - b * sin
        y[..., second] = b * cos + a * sin
        y[..., width:] = x[..., width:]
        return y

    def pairs(self, width: int) -> tuple[slice, slice]:
        """Where the first and the second features of the pairs stand."""
        if self.style == "half":
            return slice(0, width // 2), slice(width // 2, width)
        return slice(0, width, 2), slice(1, width, 2)

    def expand(self, g: Builder, *values: int) -> int | None:
        """Tables of cos and sin, and the four products of every pair."""
        (x,) = values
        shape = g.type(x).shape
        if shape is None:
            return None
        width = shape[-1] if self.width is None else Dim(self.width)
        rest = shape[-1] - width
        turned, *kept = g.all(Split((width, rest)), x) if rest != 0 else (x,)
        a, b = self._split(g, turned, width)
        cos, sin = g.all(RopeAngles(width, self.theta), x)
        first = g(Subtract(), g(Multiply(), a, cos), g(Multiply(), b, sin))
        second = g(Add(), g(Multiply(), b, cos), g(Multiply(), a, sin))
        y = self._joined(g, first, second)
        return g(Concat(), y, *kept) if kept else y

    def _split(self, g: Builder, x: int, width: Dim) -> tuple[int, int]:
        """The first and the second features of the pairs."""
        if self.style == "half":
            a, b = g.all(Split((width / 2, width / 2)), x)
            return a, b
        pairs = g(Rearrange("... t (m two) -> ... t m two", (("two", 2),)), x)
        return g(Index((..., 0)), pairs), g(Index((..., 1)), pairs)

    def _joined(self, g: Builder, first: int, second: int) -> int:
        """The inverse of `_split`."""
        if self.style == "half":
            return g(Concat(), first, second)
        column = Index((..., WHOLE, None))
        return g(Rearrange("... t m two -> ... t (m two)"), g(Concat(), g(column, first), g(column, second)))

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Two products and a sum per rotated feature."""
        shape = types[0].shape
        if shape is None:
            return Cost()
        width = shape[-1] if self.width is None else Dim(self.width)
        return Cost(elementwise=volume(shape[:-1]) * width * 3)

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """The halves turned."""
        return volume(outs[0].shape)

    def label(self) -> str:
        """The style shows, because it matters."""
        return f"rope {self.style}"
