"""Tables that depend on positions alone: sinusoids, rotary angles, ALiBi, buckets of distances.

Their operand only tells how many positions there are, and of which precision the numbers shall be: nothing
flows from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Builder, Cost, Count, DType, Misfit, Op, Real, Refusal, Size, Type, real, volume, whole
from blockgraph.ops.visible import View, alibi_slopes
from blockgraph.pattern import Axis, Pattern, parse
from blockgraph.records import dataclass


class PositionTable(Op):
    """A table whose size is that of its operand's axes; no values are read."""

    signature = "like"
    shape_only = (0, 1)
    cuts = (0, 1)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Nothing depends on the values."""
        return (None,) * len(arrays)


@final
@dataclass(frozen=True)
class Sinusoid(PositionTable, name="sinusoid", role="source"):
    """y[0, p] = the sines and cosines of p * theta**(-2m/C), for x (..., T, C): `x + sinusoid(x, style="pairs")`

    Style `pairs`: sin, cos, sin, cos; `half`: all sines, then all cosines. y is (1, T, C).
    Source: Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5.
    """

    shape = parse("... t c -> 1 t c")
    style: str
    theta: Real = 10000.0

    def refusals(self) -> Iterator[Refusal]:
        """An unknown style."""
        if self.style not in ("half", "pairs"):
            help = "write `pairs` (sin, cos, sin, cos) or `half`"
            yield Refusal("style", f"`{self.style}` is no style of sinusoids", help)

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """Positions count from 0, and so do features."""
        return Count("t"), Count("c")

    def forward(self, *arrays: Any) -> Any:
        """Formed in float64 and rounded once; with an odd width the last cosine is left out."""
        (x,) = arrays
        width = x.shape[-1]
        cos, sin = angles(x.shape[-2], width, real(self.theta), x.dtype)
        y = np.empty((1, *x.shape[-2:]), x.dtype)
        if self.style == "half":
            y[0, :, : sin.shape[-1]], y[0, :, sin.shape[-1] :] = sin, cos[:, : width // 2]
        else:
            y[0, :, ::2], y[0, :, 1::2] = sin, cos[:, : width // 2]
        return y


@final
@dataclass(frozen=True)
class RopeAngles(PositionTable, name="rope_angles", role="source"):
    """cos, sin = those of p * theta**(-2m/width) as (T, width/2) each, for x (..., T, D)

    Source: Su et al. 2021, arXiv:2104.09864, eq. 15.
    """

    width: Size
    theta: Real = 10000.0

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Two tables."""
        return parse("... t d -> t m, t m")

    def sizes_by_letter(self) -> dict[str, Dim]:
        """Half the width."""
        return {"m": Dim(self.width) / 2}

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """Positions count from 0."""
        return (Count("t"),)

    def forward(self, *arrays: Any) -> Any:
        """The tables in the precision of x."""
        (x,) = arrays
        return angles(x.shape[-2], whole(self.width), real(self.theta), x.dtype)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """An angle and its two functions."""
        return Cost(elementwise=volume(outs[0].shape) * 3)


def angles(steps: int, width: int, theta: float, dtype: Any) -> tuple[Any, Any]:
    """cos and sin (T, width/2) of p * theta**(-2m/width), formed in float64 and rounded once."""
    frequencies = np.exp(np.arange(0, width, 2, dtype=np.float64) * (-np.log(theta) / width))
    angle = np.arange(steps, dtype=np.float64)[:, None] * frequencies
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


@final
class Alibi(PositionTable, name="alibi", role="source"):
    """y[h, i, j] = -slope_h * |i + S - T - j|, for scores (..., H, T, S)

    Source: Press et al. 2022, arXiv:2108.12409, sec. 3.
    """

    shape = parse("... h t s -> h t s")

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """The distance of a query from a key; every head has its slope."""
        shape = types[0].shape
        return () if shape is None else (Count("h"), Count("t", shape[-1] - shape[-2], "s"))

    def forward(self, *arrays: Any) -> Any:
        """A table of distances, a slope per head."""
        (scores,) = arrays
        heads, steps, keys = scores.shape[-3:]
        view = View(steps, keys, False, None)
        distance = np.abs(view.ahead(slice(0, steps), slice(0, keys)))
        return -np.asarray(alibi_slopes(heads), scores.dtype)[:, None, None] * distance.astype(scores.dtype)


@final
@dataclass(frozen=True)
class RelativeBuckets(PositionTable, name="relative_buckets", role="source"):
    """y[i, j] = the bucket of the distance from query i to key j, as ids (T, S) below `buckets`

    Operands are ids (B, T) or values (B, T, C); `keys` tells S where it is not T, and query i then stands at
    position i + S - T. `both`: half of the buckets for keys to the left, half for those to the right; `past`: all for
    the left. Half of each are for one distance each, the others grow with its logarithm up to `distance`.
    Source: Raffel et al. 2020, arXiv:1910.10683, sec. 2.1, and its published code.
    """

    signature = "queries, keys="
    operand_dtypes = ("any", "any")
    buckets: Size
    distance: Size
    direction: str
    given: tuple[str, ...] = ()

    def refusals(self) -> Iterator[Refusal]:
        """Numbers that leave no bucket, an unknown direction."""
        if self.direction not in ("both", "past"):
            yield Refusal("direction", f"`{self.direction}` is no direction", "write `both` or `past`")
        buckets, distance = Dim(self.buckets).number, Dim(self.distance).number
        least = 4 if self.direction == "both" else 2
        if buckets is not None and (buckets < least or buckets % 2):
            yield Refusal("buckets", f"the number of buckets must be even and at least {least}, not {buckets}")
        elif buckets is not None and distance is not None and distance <= buckets / least:
            message = f"distance must be more than {buckets / least}, up to which every distance has its own bucket"
            yield Refusal("distance", message, "128 is usual for 32 buckets")

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Positions are the second axis, or the only one. Raises Misfit for a value without axes."""
        for index, given in enumerate(types):
            if given.shape == ():
                message = "`relative_buckets` needs an axis of positions, and a single number has none"
                raise Misfit("BG105", message, blame=index)
        operands = tuple(_axes(given, letter) for given, letter in zip(types, "ts", strict=False))
        return Pattern(operands, (("t", "s" if len(types) > 1 else "t"),))

    def result_dtype(self, types: tuple[Type, ...]) -> DType:
        """Ids."""
        return "int"

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """The distance of a query from a key."""
        shapes = [given.shape for given in types if given.shape is not None]
        if len(shapes) < len(types):
            return ()
        steps, keys = (shape[time_axis(len(shape))] for shape in (shapes[0], shapes[-1]))
        return (Count("t", keys - steps, "s" if len(types) > 1 else "t"),)

    def expand(self, g: Builder, *values: int) -> int | None:
        """With the keys named, which may then be others than the queries."""
        return None if self.given else g(replace(self, given=("keys",)), *values, *values)

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """Distances and buckets in 8 bytes each, while they are made."""
        return volume(outs[0].shape) * 6

    def forward(self, *arrays: Any) -> Any:
        """A table of distances, looked up among the bounds of the buckets."""
        steps, keys = arrays[0].shape[time_axis(arrays[0].ndim)], arrays[-1].shape[time_axis(arrays[-1].ndim)]
        ahead = View(steps, keys, False, None).ahead(slice(0, steps), slice(0, keys))
        count = whole(self.buckets)
        count = count // 2 if self.direction == "both" else count
        distance = np.abs(ahead) if self.direction == "both" else np.maximum(-ahead, 0)
        found = np.searchsorted(bounds(count, whole(self.distance)), distance, side="right")
        return found + count * (ahead > 0) if self.direction == "both" else found


def time_axis(rank: int) -> int:
    """The axis of positions: the second, or the only one."""
    return min(1, rank - 1)


def _axes(given: Type, letter: str) -> tuple[Axis, ...]:
    rank = len(given.shape or (0, 0))
    return tuple(letter if i == time_axis(rank) else f"{letter}{i}" for i in range(rank))


@lru_cache(maxsize=64)
def bounds(count: int, distance: int) -> list[int]:
    """The least distance of every bucket but the first.

    With m = count/2 exact buckets, bucket m + k begins at the first r with (r/m)**(count - m) >= (distance/m)**k.
    Whole numbers decide, because logarithms in floats fall short where the two are equal.
    """
    exact = count // 2
    rest = count - exact
    found, r = list(range(1, exact + 1)), exact
    for k in range(1, rest):
        r = max(r, int(exact * (distance / exact) ** (k / rest)) - 1)
        while r**rest * exact**k < distance**k * exact**rest:
            r += 1
        found.append(r)
    return found
