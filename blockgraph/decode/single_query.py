"""Attention of one new query that sees every key it is handed: no mask, no blocks, a dozen calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blockgraph.lazy import np
from blockgraph.op import real
from blockgraph.ops.attend import Attend
from blockgraph.ops.visible import alibi_slopes


def attention(op: Attend) -> Callable[..., Any]:
    """The forward of a bound `attend` whose keys all lie within mask and window when there is one query."""

    def forward(*arrays: Any) -> Any:
        if arrays[0].shape[-2] != 1:
            return op.forward(*arrays)
        return single(op, *arrays)

    return forward


def single(op: Attend, q: Any, k: Any, v: Any, *given: Any) -> Any:
    """softmax(cap(scale * q @ k.T + bias)) @ v for q (..., H, 1, D), k (..., G, S, D) and v (..., G, S, E)"""
    groups, heads = k.shape[-3], q.shape[-3]
    if groups == heads and not given and not op.alibi and op.softcap is None:
        return _plain(q * (q.shape[-1] ** -0.5 if op.scale is None else real(op.scale)), k, v)
    operands = dict(zip(op.given, given, strict=True))
    shape = (*q.shape[:-3], groups, heads // groups)
    q = q.reshape(*shape, q.shape[-1]) * (q.shape[-1] ** -0.5 if op.scale is None else real(op.scale))
    scores = np.matmul(q, k.swapaxes(-1, -2))
    if "score_bias" in operands or op.alibi:
        scores = scores.reshape(*shape[:-2], heads, 1, scores.shape[-1])
        if "score_bias" in operands:
            scores = scores + operands["score_bias"]
        if op.alibi:
            scores = scores - _distances(heads, scores.shape[-1], scores.dtype)
        scores = scores.reshape(*shape, scores.shape[-1])
    if op.softcap is not None:
        cap = real(op.softcap)
        scores = np.tanh(scores * (1 / cap)) * cap
    top = scores.max(axis=-1, keepdims=True)
    sinks = operands.get("sinks")
    if sinks is not None:
        sinks = sinks.reshape(groups, -1, 1)
        top = np.maximum(top, sinks)
    elif "score_bias" in operands:
        top[np.isneginf(top)] = 0  # a bias may hide every key
    scores -= top
    np.exp(scores, out=scores)
    sums = scores.sum(axis=-1, keepdims=True)
    if sinks is not None:
        sums += np.exp(sinks - top)
    y = np.matmul(scores, v)
    y /= sums
    return y.reshape(*shape[:-2], heads, 1, v.shape[-1])


def _plain(q: Any, k: Any, v: Any) -> Any:
    """softmax(q @ k.T) @ v for q (..., H, 1, D), k (..., H, S, D) and v (..., H, S, E)

    Products with a single row are cut up for threads by the BLAS, however short they are. So the scores are dot
    products, and the weights are taken twice: two rows make a matrix, which one thread multiplies in less time.
    """
    scores = np.vecdot(k, q)
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, axis=-1, keepdims=True)
    twice = np.empty((*scores.shape[:-1], 2, scores.shape[-1]), scores.dtype)
    twice[...] = scores[..., None, :]
    return np.matmul(twice, v)[..., :1, :]


def _distances(heads: int, keys: int, dtype: Any) -> Any:
    """What ALiBi takes from the scores of the last of so many positions, (H, 1, S)."""
    away = np.arange(keys - 1, -1, -1, dtype=dtype)
    return np.asarray(alibi_slopes(heads), dtype)[:, None, None] * away
