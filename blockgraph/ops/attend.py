"""Attention as one op: scores, bias, cap, mask, sinks and softmax, in blocks of queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, final

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import np
from blockgraph.number import Number
from blockgraph.op import (
    Builder,
    Cost,
    Count,
    Misfit,
    Move,
    Need,
    Op,
    Real,
    Refusal,
    Size,
    Type,
    volume,
    whole,
)
from blockgraph.ops.arithmetic import Add, Divide, Multiply
from blockgraph.ops.attend_block import Block
from blockgraph.ops.axes import Rearrange
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.elementwise import Tanh, Where
from blockgraph.ops.join import Concat
from blockgraph.ops.leaf import Constant
from blockgraph.ops.positions import Alibi
from blockgraph.ops.softmax import Band, Softmax, masked
from blockgraph.ops.subscript import Index
from blockgraph.ops.visible import View, unseeing
from blockgraph.pattern import ELLIPSIS, Axis, Pattern, PatternMisfit
from blockgraph.records import dataclass


@final
@dataclass(frozen=True)
class Attend(Op, name="attend"):
    """y_i = sum_j w_ij v_j, w_i = softmax over the keys j that query i sees of cap(scale * q_i . k_j + bias_ij)

    q (..., H, T, D), k (..., G, S, D), v (..., G, S, E): query head h reads key head h // (H/G), so neighbours share.
    keep (B, S) or (B, T, S), true = visible; score_bias broadcasts to (..., H, T, S); sinks (H), a further logit per
    head whose weight is dropped. Order: scale (default D**-0.5), bias, cap (softcap * tanh(s / softcap)), mask, sinks,
    softmax. If T is not S, query i stands at position i + S - T. `window` W leaves the W keys up to the own one, or
    without the causal mask those less than W away. `alibi` adds -slope_h * distance to the bias. A row that sees
    nothing gives zeros.

    Source: Vaswani et al. 2017, arXiv:1706.03762, eq. 1; Ainslie et al. 2023, arXiv:2305.13245 (grouped heads);
    Press et al. 2022, arXiv:2108.12409 (ALiBi); Gemma Team 2024, arXiv:2408.00118 (cap); Beltagy et al. 2020,
    arXiv:2004.05150 (window); OpenAI 2025, arXiv:2508.10925 (sinks).
    """

    signature = "q, k, v, keep=, score_bias=, sinks="
    optional_dtypes = MappingProxyType({"keep": "bool"})
    opens = True
    mask: str = "full"
    window: Size | None = None
    scale: Real | None = None
    softcap: Real | None = None
    alibi: bool = False
    given: tuple[str, ...] = ()

    def refusals(self) -> Iterator[Refusal]:
        """An unknown mask, a window below one, a cap that caps nothing."""
        if self.mask not in ("full", "causal"):
            yield Refusal("mask", f"`{self.mask}` is no mask", "write `full` or `causal`")
        window = None if self.window is None else Dim(self.window).number
        if window is not None and (window < 1 or window.denominator > 1):
            help = "it counts the visible keys, the own one included"
            yield Refusal("window", f"a window is a whole number from 1, not {window}", help)
        cap = known(self.softcap)
        if cap is not None and not (math.isfinite(cap) and cap > 0):
            yield Refusal(
                "softcap", "cap must be positive and finite", f"{cap:g} caps nothing; leave it out for no cap"
            )
        scale = known(self.scale)
        if scale is not None and not math.isfinite(scale):
            yield Refusal("scale", "scale must be finite", "leave it out for head_dim**-0.5")

    def names(self) -> tuple[str, ...]:
        """The operands present."""
        return ("q", "k", "v", *self.given)

    def check_dtypes(self, types: tuple[Type, ...]) -> None:
        """`keep` holds booleans, all else numbers."""
        for index, (name, given) in enumerate(zip(self.names(), types, strict=True)):
            wanted = self.optional_dtypes.get(name, "float")
            if given.dtype != wanted:
                words = {"float": "numbers", "int": "ids", "bool": "true and false"}
                message = f"`{name}` of `attend` takes {words[wanted]}, not {words[given.dtype]}"
                help = "true means visible; a comparison such as `tokens != 0` gives it" if name == "keep" else ""
                raise Misfit("BG107", message, help=help, blame=index)

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """(..., H, T, E)"""
        self.check_dtypes(types)
        bare = all(t.bare for t in types)
        shapes = tuple(t.shape for t in types if t.shape is not None)
        if len(shapes) < len(types):
            return (Type(None, "float", bare),)
        try:
            (shape,) = self._axes(types, "g", "s").outputs_for(shapes, {})
        except PatternMisfit as misfit:
            raise self.misfit(misfit) from None
        heads, groups = shapes[0][-3].as_int(), shapes[1][-3].as_int()
        if heads is not None and groups is not None and (groups == 0 or heads % groups):
            message = "{} query heads cannot share {} key and value heads evenly"
            raise Misfit("BG103", message, shapes[0][-3], shapes[1][-3], blame=1)
        return (Type(shape, "float", bare),)

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """Key heads divide query heads."""
        q, k = types[0].shape, types[1].shape
        if q is not None and k is not None and q[-3] != k[-3]:
            yield Need(k[-3], q[-3], "divides")

    @property
    def local(self) -> bool:
        """Whether a mask or a window ties the keys that are seen to the query's position."""
        return self.mask == "causal" or self.window is not None

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Heads stay apart unless they are grouped; under a mask keys share the letter of the queries, with `moves`."""
        q, k = types[0].shape, types[1].shape
        return self._axes(types, "h" if q and k and q[-3] == k[-3] else "g", "t" if self.local else "s")

    def _axes(self, types: tuple[Type, ...], groups: str, keys: str) -> Pattern:
        """The axes of all operands, key heads and keys under these letters."""
        lead = (ELLIPSIS, groups, keys)
        axes: list[tuple[Axis, ...]] = [(ELLIPSIS, "h", "t", "d"), (*lead, "d"), (*lead, "e")]
        for name, given in zip(self.given, types[3:], strict=True):
            shape, rank = given.shape or (), len(types[0].shape or ())
            if name == "keep":
                axes.append((ELLIPSIS, "t", "s") if len(shape) >= rank - 1 else (ELLIPSIS, keys))
            elif name == "sinks":
                axes.append(("h",))
            else:
                axes.append(_bias_axes(shape))
        return Pattern(tuple(axes), ((ELLIPSIS, "h", "t", "e"),))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Keys, values, and what is given for each key, are read from window to mask."""
        q, k = types[0].shape, types[1].shape
        if not self.local or q is None or k is None:
            return ()
        low, high = self.reach(k[-2] - q[-2])
        axes = self.pattern(types).operands
        rows = tuple(Move(row, "t", low, high) for row in (1, 2))
        for row in range(3, len(types)):
            if "s" in axes[row]:
                rows += (Move(row, "s", low, high, "t"),)
            elif self.given[row - 3] == "keep":
                rows += (Move(row, "t", low, high),)
        return rows

    def counts(self, types: tuple[Type, ...]) -> tuple[Count, ...]:
        """The heads and the distance of ALiBi; under a mask `moves` say how queries and keys are numbered."""
        q, k = types[0].shape, types[1].shape
        if not self.alibi or q is None or k is None:
            return ()
        return (Count("h"), *(() if self.local else (Count("t", k[-2] - q[-2], "s"),)))

    def reach(self, offset: Dim) -> tuple[Dim | None, Dim | None]:
        """The positions that are seen, from the query's own: from window to mask."""
        low = None if self.window is None else offset - self.window + 1
        high = offset if self.mask == "causal" else None if self.window is None else offset + self.window - 1
        return low, high

    def forward(self, *arrays: Any) -> Any:
        """Block by block; the weights of a block are never kept."""
        q, _, v = arrays[:3]
        y = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
        for block in self.blocks(arrays):
            block.put(y, block.grouped(block.exps) @ block.v, block.sums)
        return y

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Weights are computed again, block by block: ds = w * (dy v^T - dy . y), times the slope of the cap."""
        grads = [None if x.dtype == bool else np.zeros_like(x) for x in arrays]
        for block in self.blocks(arrays):
            block.add_gradients(dy, y, grads)
        return tuple(grads)

    def view(self, q: Any, k: Any) -> View:
        """Which keys the queries see by mask and window; the op must be bound."""
        window = None if self.window is None else whole(self.window)
        return View(q.shape[-2], k.shape[-2], self.mask == "causal", window)

    def unseeing(self, *arrays: Any) -> Any:
        """True for the queries that see no key, (..., T); a bias of minus infinity does not count."""
        operands = dict(zip(self.names(), arrays, strict=True))
        keep = operands.get("keep")
        wide = keep is not None and keep.ndim >= arrays[0].ndim - 1
        return unseeing(self.view(*arrays[:2]), keep, wide)

    def blocks(self, arrays: tuple[Any, ...]) -> Iterator[Block]:
        """The blocks of queries that see any key."""
        q, view = arrays[0], self.view(*arrays[:2])
        for rows in view.blocks(math.prod(q.shape[:-2])):
            keys = view.seen(rows)
            if keys.start < keys.stop:
                yield Block(self, dict(zip(self.names(), arrays, strict=True)), view, rows, keys)

    def expand(self, g: Builder, *values: int) -> int | None:
        """Scores, weights and the mixed values, op by op."""
        return None if any(g.type(value).shape is None for value in values) else pieces(self, g, *values)["y"]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Scores and values, counted dense whatever the mask."""
        q, k, v = (t.shape for t in types[:3])
        if q is None or k is None or v is None:
            return Cost()
        scores = volume(q[:-1]) * k[-2]
        extra = len(self.given) + self.alibi + 3 * (self.softcap is not None)
        return Cost(scores * 2 * (q[-1] + v[-1]), scores * (5 + extra))

    def label(self) -> str:
        """The mask and its window show."""
        return masked("attend", self.mask if self.mask != "full" else "", self.window)


def pieces(op: Attend, g: Builder, *values: int) -> dict[str, int]:
    """Attention op by op: `scores` as they meet the mask, `weights` of the keys, and the result `y`."""
    operands = dict(zip(op.names(), values, strict=True))
    scores = _scores(op, g, operands)
    weights = _weights(op, g, scores, operands)
    v = operands["v"]
    shape, heads = g.type(v).shape, g.type(operands["q"]).shape
    assert shape is not None
    assert heads is not None
    if shape[-3] == heads[-3]:
        return {"scores": scores, "weights": weights, "y": g(Einsum("... h t s, ... h s e -> ... h t e"), weights, v)}
    shared = g(Rearrange("... (g r) t s -> ... g r t s", (("g", shape[-3]),)), weights)
    mixed = g(Einsum("... g r t s, ... g s e -> ... g r t e"), shared, v)
    return {"scores": scores, "weights": weights, "y": g(Rearrange("... g r t e -> ... (g r) t e"), mixed)}


def _scores(op: Attend, g: Builder, operands: dict[str, int]) -> int:
    """Scaled, biased and capped."""
    q, k = operands["q"], operands["k"]
    shape, keys = g.type(q).shape, g.type(k).shape
    assert shape is not None
    assert keys is not None
    if shape[-3] == keys[-3]:
        scores = g(Einsum("... h t d, ... h s d -> ... h t s"), q, k)
    else:
        shared = g(Rearrange("... (g r) t d -> ... g r t d", (("g", keys[-3]),)), q)
        scores = g(Einsum("... g r t d, ... g s d -> ... g r t s"), shared, k)
        scores = g(Rearrange("... g r t s -> ... (g r) t s"), scores)
    scores = g(Multiply(), scores, g(Constant(Number(shape[-1]) ** -0.5 if op.scale is None else op.scale)))
    if "score_bias" in operands:
        scores = g(Add(stretch=True), scores, operands["score_bias"])
    if op.alibi:
        scores = g(Add(stretch=True), scores, g(Alibi(), scores))
    if op.softcap is not None:
        cap = g(Constant(op.softcap))
        scores = g(Multiply(), g(Tanh(), g(Divide(), scores, cap)), cap)
    return scores


def _weights(op: Attend, g: Builder, scores: int, operands: dict[str, int]) -> int:
    """Masked, with the sinks as one more key whose weight is dropped."""
    shape, queries = g.type(scores).shape, g.type(operands["q"]).shape
    assert shape is not None
    assert queries is not None
    hidden, seen = g(Constant(-math.inf)), scores
    if op.local:
        low, high = op.reach(shape[-1] - shape[-2])
        seen = g(Where(), g(Band(shape[-2], shape[-1], low, high)), seen, hidden)
    if "keep" in operands:
        keep = operands["keep"]
        wide = len(g.type(keep).shape or ()) >= len(queries) - 1
        seen = g(Where(), g(Rearrange("... t s -> ... 1 t s" if wide else "... s -> ... 1 1 s"), keep), seen, hidden)
    if "sinks" not in operands:
        return g(Softmax(), seen)
    column = g(Multiply(), g(Index((..., (None, 1, None))), scores), g(Constant(0)))
    column = g(Add(stretch=True), column, g(Rearrange("h -> h 1 1"), operands["sinks"]))
    weights = g(Softmax(), g(Concat(), seen, column))
    return g(Index((..., (None, shape[-1], None))), weights)


def known(value: Real | None) -> float | None:
    """The number of an option, None while it has symbols."""
    number = value if value is None or isinstance(value, int | float) else value.value
    return None if number is None else float(number)


def _bias_axes(shape: Shape) -> tuple[Axis, ...]:
    """The axes of a bias aligned with (..., h, t, s) from the right, `1` where it is stretched."""
    letters = ("h", "t", "s")[-len(shape) :] if shape else ()
    lead = shape[: -len(letters)] if letters else ()
    front: tuple[Axis, ...] = ("1",) * len(lead) if all(dim == 1 for dim in lead) else (ELLIPSIS,)
    last = shape[len(lead) :]
    return (*front, *("1" if dim == 1 else letter for dim, letter in zip(last, letters, strict=True)))
