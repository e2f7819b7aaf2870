"""The weights of attention for a block of queries, and the gradients through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from blockgraph.lazy import np
from blockgraph.op import Real, real
from blockgraph.ops.broadcast import unbroadcast
from blockgraph.ops.visible import View, alibi_slopes


class Scoring(Protocol):
    """The options of attention that scores depend on."""

    @property
    def scale(self) -> Real | None:
        """The factor on the scores; None: D**-0.5."""

    @property
    def softcap(self) -> Real | None:
        """The cap of the scores."""

    @property
    def alibi(self) -> bool:
        """Whether scores fall with the distance."""

    def names(self) -> Sequence[str]:
        """The operands present."""


class Block:
    """The weights of a block of queries: `exps / sums`, and what the gradient needs."""

    def __init__(self, op: Scoring, operands: dict[str, Any], view: View, rows: slice, keys: slice) -> None:
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
        self.top = top
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
