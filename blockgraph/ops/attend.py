"""Attention as one op: scores, bias, cap, mask, sinks and softmax, in blocks of queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import np
from blockgraph.number import Number
from blockgraph.op import Builder, Cost, DType, Misfit, Move, Need, Op, Real, Refusal, Size, Type, real, volume, whole
from blockgraph.ops.arithmetic import Add, Divide, Multiply
from blockgraph.ops.axes import Rearrange
from blockgraph.ops.broadcast import unbroadcast
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.elementwise import Tanh, Where
from blockgraph.ops.join import Concat
from blockgraph.ops.leaf import Constant
from blockgraph.ops.positions import Alibi
from blockgraph.ops.softmax import Band, Softmax
from blockgraph.ops.subscript import Index
from blockgraph.ops.visible import View, alibi_slopes, unseeing
from blockgraph.pattern import ELLIPSIS, Axis, Pattern, PatternMisfit


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
            wanted: DType = "bool" if name == "keep" else "float"
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
        """Keys, values and a keep of (B, S) are read from window to mask."""
        q, k = types[0].shape, types[1].shape
        if not self.local or q is None or k is None:
            return ()
        low, high = self.reach(k[-2] - q[-2])
        rows = [1, 2]
        if "keep" in self.given:
            at = 3 + self.given.index("keep")
            rows += [at] if len(types[at].shape or ()) < len(q) - 1 else []
        return tuple(Move(row, "t", low, high) for row in rows)

    def reach(self, offset: Dim) -> tuple[Dim | None, Dim | None]:
        """The positions that are seen, from the query's own: from window to mask."""
        low = None if self.window is None else offset - self.window + 1
        high = offset if self.mask == "causal" else None if self.window is None else offset + self.window - 1
        return low, high

    def forward(self, *arrays: Any) -> Any:
        """Block by block; the weights of a block are never kept."""
        q, _, v = arrays[:3]
        y = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
        for block in self._blocks(arrays):
            block.put(y, block.grouped(block.exps) @ block.v, block.sums)
        return y

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Weights are computed again, block by block: ds = w * (dy v^T - dy . y), times the slope of the cap."""
        grads = [None if x.dtype == bool else np.zeros_like(x) for x in arrays]
        for block in self._blocks(arrays):
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

    def _blocks(self, arrays: tuple[Any, ...]) -> Iterator[Block]:
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
        """The mask shows."""
        return "attend" if self.mask == "full" else f"attend {self.mask}"


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


class Block:
    """The weights of a block of queries: `exps / sums`, and what the gradient needs."""

    def __init__(self, op: Attend, operands: dict[str, Any], view: View, rows: slice, keys: slice) -> None:
        self.op, self.operands, self.view, self.rows, self.keys = op, operands, view, rows, keys
        q, k, v = operands["q"], operands["k"], operands["v"]
        self.scale = q.shape[-1] ** -0.5 if op.scale is None else real(op.scale)
        self.groups, self.heads = k.shape[-3], q.shape[-3]
        self.q = self.grouped(q[..., rows, :] * self.scale)
        self.k, self.v = k[..., keys, :], v[..., keys, :]
        scores = self.apart(self.q @ self.k.swapaxes(-1, -2))
        self._add_bias(scores)
        self.slope: Any | None = self._cap(scores)
        self.masked = self._hide(scores) or "score_bias" in operands
        self.sinks, self.exps, self.sums = self._exponentials(scores)

    def grouped(self, x: Any) -> Any:
        """(..., H, rows, n) as (..., G, H/G * rows, n): all queries of a key head in one matrix."""
        if self.groups == self.heads:
            return x
        share = self.heads // self.groups
        return x.reshape(*x.shape[:-3], self.groups, share * x.shape[-2], x.shape[-1])

    def apart(self, x: Any) -> Any:
        """The inverse of `grouped`."""
        if self.groups == self.heads:
            return x
        return x.reshape(*x.shape[:-3], self.heads, x.shape[-2] * self.groups // self.heads, x.shape[-1])

    def put(self, y: Any, mixed: Any, sums: Any) -> None:
        """Write the rows of y; dividing (rows, E) is cheaper than dividing the weights."""
        np.divide(self.apart(mixed), sums, out=y[..., self.rows, :])

    def _add_bias(self, scores: Any) -> None:
        bias = self.operands.get("score_bias")
        if bias is not None:
            scores += self.stretch_of(bias)
        if self.op.alibi:
            slopes = np.asarray(alibi_slopes(self.heads), scores.dtype)[:, None, None]
            scores -= slopes * np.abs(self.view.ahead(self.rows, self.keys)).astype(scores.dtype)

    def stretch_of(self, bias: Any) -> Any:
        """The part of a (..., T, S) array that belongs to the block; axes of size one stay."""
        rows = self.rows if bias.ndim > 1 and bias.shape[-2] == self.view.steps else slice(None)
        keys = self.keys if bias.ndim and bias.shape[-1] == self.view.keys else slice(None)
        return bias[..., rows, keys] if bias.ndim > 1 else bias[keys] if bias.ndim else bias

    def _cap(self, scores: Any) -> Any | None:
        """Cap the scores in place; what the gradient is multiplied by, 1 - tanh**2 (None: no cap)."""
        if self.op.softcap is None:
            return None
        cap = real(self.op.softcap)
        scores *= 1 / cap
        np.tanh(scores, out=scores)
        slope = 1 - scores * scores
        scores *= cap
        return slope

    def _hide(self, scores: Any) -> bool:
        """Minus infinity where nothing is seen; masks meet as booleans. Whether any mask is there."""
        hidden = self.view.hidden(self.rows, self.keys)
        if hidden is not None:
            np.copyto(scores, -math.inf, where=hidden)
        keep = self.operands.get("keep")
        if keep is not None:
            wide = keep.ndim >= scores.ndim - 1
            seen = keep[..., None, self.rows, self.keys] if wide else keep[..., None, None, self.keys]
            np.copyto(scores, -math.inf, where=~seen)
        return hidden is not None or keep is not None

    def _exponentials(self, scores: Any) -> tuple[Any | None, Any, Any]:
        """exp(score - row maximum) and its sums, sinks included; a row that sees nothing has zeros, and the sum 1."""
        top = scores.max(axis=-1, keepdims=True)
        sinks = self.operands.get("sinks")
        if sinks is not None:
            sinks = sinks[:, None, None]
            top = np.maximum(top, sinks)
        if self.masked:
            top = np.where(np.isneginf(top), np.zeros_like(top), top)
        scores -= top
        exps = np.exp(scores, out=scores)
        sums = exps.sum(axis=-1, keepdims=True)
        if sinks is not None:
            sinks = np.exp(sinks - top)
            sums += sinks
        elif self.masked:
            sums[sums == 0] = 1
        return sinks, exps, sums

    def add_gradients(self, dy: Any, y: Any, grads: list[Any]) -> None:
        """Add this block's part to the gradients of all operands."""
        names = self.op.names()
        dy, y = dy[..., self.rows, :], y[..., self.rows, :]
        dmixed = self.grouped(dy / self.sums)
        row = (dy * y).sum(axis=-1, keepdims=True) / self.sums
        grads[2][..., self.keys, :] += self.grouped(self.exps).swapaxes(-1, -2) @ dmixed
        if self.sinks is not None:
            dsinks = grads[names.index("sinks")]
            dsinks -= (self.sinks * row).reshape(-1, self.heads, row.shape[-2]).sum(axis=(0, 2))
        ds = self.apart(dmixed @ self.v.swapaxes(-1, -2))
        ds -= row
        ds *= self.exps
        if self.slope is not None:
            ds *= self.slope
        if "score_bias" in names:
            dbias = self.stretch_of(grads[names.index("score_bias")])
            dbias += unbroadcast(ds, dbias)
        ds = self.grouped(ds)
        grads[0][..., self.rows, :] = self.apart(ds @ self.k) * self.scale
        grads[1][..., self.keys, :] += ds.swapaxes(-1, -2) @ self.q
