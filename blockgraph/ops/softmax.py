"""Softmax over the last axis, with what may not be seen left out, and the band of true and false that says so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Builder, Cost, Misfit, Move, Op, Refusal, Size, Type, Zero, volume
from blockgraph.ops.broadcast import aligned_pattern, loose
from blockgraph.ops.elementwise import Where
from blockgraph.ops.leaf import Constant, Leaf
from blockgraph.pattern import Pattern
from blockgraph.records import dataclass

MASKS = ("none", "causal")


@final
@dataclass(frozen=True)
class Band(Leaf, name="band"):
    """y[i, j] = low <= j - i <= high, true and false; None is no bound

    The causal mask of T queries over S keys has high = S - T; a window of W keys adds low = S - T - W + 1.
    """

    signature = "rows, columns"
    rows: Size
    columns: Size
    low: Size | None = None
    high: Size | None = None

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """(rows, columns) of true and false."""
        return (Type((Dim(self.rows), Dim(self.columns)), "bool", bare=True),)

    def forward(self, *arrays: Any) -> Any:
        """The band."""
        low, high = (None if bound is None else _whole(bound) for bound in (self.low, self.high))
        return band(_whole(self.rows), _whole(self.columns), low, high)

    def label(self) -> str:
        """The bounds: `j - i ≤ 0`."""
        low = "" if self.low is None else f"{self.low} ≤ "
        return f"{low}j - i" + ("" if self.high is None else f" ≤ {self.high}")


def _whole(size: Size) -> int:
    number = Dim(size).as_int()
    assert number is not None, "an op that runs is bound"
    return number


def masked(name: str, mask: str, window: Size | None) -> str:
    """The label of an op with a mask: `attend causal · window W`."""
    return " ".join(filter(None, (name, mask))) + ("" if window is None else f" · window {window}")


def band(rows: int, columns: int, low: int | None, high: int | None) -> Any:
    """low <= j - i <= high as an array of booleans (rows, columns)."""
    inside = np.ones((rows, columns), bool) if high is None else np.tri(rows, columns, high, dtype=bool)
    return inside if low is None else inside & ~np.tri(rows, columns, low - 1, dtype=bool)


@final
@dataclass(frozen=True)
class Softmax(Op, name="softmax"):
    """y = exp(x - max(x)) / sum(exp(x - max(x))) over the last axis, over what is visible; the rest is 0

    `mask="causal"` on scores (..., T, S): query i sees the keys j <= i + (S - T); `window=W` of these the last W.
    `keep`, true where visible, aligns with x from the right and stretches. A row with nothing visible is 0.
    Source: Vaswani et al. 2017, arXiv:1706.03762, eq. 1 and section 3.2.3.
    """

    signature = "x, keep="
    operand_dtypes = ("float", "bool")
    cuts = (1,)
    mask: str = "none"
    window: Size | None = None
    given: tuple[str, ...] = ()

    def refusals(self) -> Iterator[Refusal]:
        """An unknown mask, and a window without a mask or without a key."""
        if self.mask not in MASKS:
            yield Refusal("mask", f"`{self.mask}` is no mask", 'write "causal" or "none"')
        if self.window is None:
            return
        if self.mask == "none":
            yield Refusal("window", "`window` narrows a causal mask, and there is none", 'write mask="causal" too')
        number = Dim(self.window).number
        if number is not None and number < 1:
            yield Refusal("window", f"a window of {number} keys shows nothing", "the own key counts: write 1 or more")

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The axes aligned from the right. Raises Misfit."""
        return aligned_pattern(types, types[0].shape)

    def label(self) -> str:
        """The mask and its window show."""
        return masked("softmax", self.mask if self.mask != "none" else "", self.window)

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The shape of x. Raises Misfit (BG104, BG105)."""
        self.check_dtypes(types)
        shape = types[0].shape
        needed = 1 if self.mask == "none" else 2
        if shape is not None and len(shape) < needed:
            axes = "one axis" if needed == 1 else "the axes of queries and keys"
            raise Misfit("BG105", f"`softmax` needs {axes}, and has {{}}", shape, blame=0)
        if len(types) > 1 and shape is not None and types[1].shape is not None and loose("`softmax`", *types) != shape:
            help = "its axes are those of the scores, or 1"
            message = "`keep` is larger than what it masks: {} against {}"
            raise Misfit("BG104", message, types[1].shape, shape, help=help, blame=1)
        return (Type(shape, "float", all(given.bare for given in types)),)

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Every element of a row that is visible is read for each of its elements."""
        if types[0].shape is None:
            return ()
        last = f"a{len(types[0].shape) - 1}"
        mixed = tuple(Move(index, last, None, None) for index in range(len(types)))
        seen = ((index, zero) for index in range(len(types)) for zero in self.zeros(types))
        return mixed + tuple(Move(index, zero.letter, zero.low, zero.high, zero.to) for index, zero in seen)

    def zeros(self, types: tuple[Type, ...]) -> tuple[Zero, ...]:
        """What the mask hides."""
        shape = types[0].shape
        if shape is None or self.mask == "none":
            return ()
        reach = shape[-1] - shape[-2]
        low = None if self.window is None else reach - self.window + 1
        return (Zero(f"a{len(shape) - 1}", f"a{len(shape) - 2}", low, reach),)

    def forward(self, *arrays: Any) -> Any:
        """The weights."""
        x, *keep = arrays
        visible = self._visible(x.shape)
        if keep:
            visible = keep[0] if visible is None else keep[0] & visible
        return softmax(x if visible is None else np.where(visible, x, -math.inf))

    def _visible(self, shape: tuple[int, ...]) -> Any:
        if self.mask == "none":
            return None
        queries, keys = shape[-2:]
        low = None if self.window is None else keys - queries - _whole(self.window) + 1
        return band(queries, keys, low, keys - queries)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = y * (dy - sum(dy * y)); 0 for what is not visible"""
        dx = dy - np.vecdot(dy, y)[..., None]
        dx *= y
        return (dx,) if len(arrays) == 1 else (dx, None)

    def expand(self, g: Builder, *values: int) -> int | None:
        """Scores of what is not visible replaced by minus infinity, then softmax without a mask."""
        x, *keep = values
        shape = g.type(x).shape
        if shape is None or (self.mask == "none" and not keep):
            return None
        hidden = g(Constant(-math.inf))
        if self.mask == "causal":
            rows, columns = shape[-2:]
            low = None if self.window is None else columns - rows - Dim(self.window) + 1
            x = g(Where(), g(Band(rows, columns, low, columns - rows)), x, hidden)
        if keep:
            x = g(Where(), *keep, x, hidden)
        return g(Softmax(), x)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Largest, difference, exp, sum and quotient, and one per mask."""
        masks = len(self.given) + (self.mask != "none")
        return Cost(elementwise=volume(outs[0].shape) * (5 + masks))

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """A few numbers of every row; with a mask also the masked scores, and what is visible."""
        shape = outs[0].shape or ()
        rows = volume(shape[:-1]) * 3
        return rows if self.mask == "none" and not self.given else rows + volume(shape) + volume(shape[-2:])


def softmax(x: Any) -> Any:
    """exp(x) / sum(exp(x)) over the last axis as a new array; a row of minus infinities gives zeros."""
    largest = x.max(axis=-1, keepdims=True, initial=-math.inf)
    largest = np.where(largest == -math.inf, np.zeros_like(largest), largest)
    y = np.subtract(x, largest)
    np.exp(y, out=y)
    total = y.sum(axis=-1, keepdims=True)
    y /= np.where(total == 0, np.ones_like(total), total)
    return y
