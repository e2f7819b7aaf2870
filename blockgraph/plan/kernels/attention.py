"""Attention by blocks of queries and groups of heads, so that scores stay in the cache and never exist whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from blockgraph.adjoint.attention import AttendSaved
from blockgraph.lazy import np
from blockgraph.op import real, whole
from blockgraph.ops.attend import Attend
from blockgraph.ops.visible import View, alibi_slopes
from blockgraph.plan.kernel import SMALL, Emit, Task, maximum, spread
from blockgraph.plan.kernels.products import row_sums
from blockgraph.plan.rows import Box, boxes

SCORES = 1 << 18
"""Scores that a task holds at once."""
QUERIES = 128
"""Queries that a task takes at most: under a causal mask the keys to the right of all of them are left out."""
GAPS = 4
"""How much longer a call takes on rows with gaps, such as those of one head, than on as many numbers without."""
LARGE = 32
"""Scores below this have exponentials of which thousands can be summed and mixed without coming near infinity, from
float32 on."""

Place = tuple[Box, slice, slice]
"""Batches and key heads, queries, keys."""


@spread(Attend)
def attend(op: Attend, threads: int, *shapes: tuple[int, ...]) -> Iterator[Task]:
    """Tasks over batches, key heads and blocks of queries."""
    q, k = shapes[:2]
    steps, keys = q[-2], k[-2]
    share = q[-3] // max(k[-3], 1)
    view = View(steps, keys, op.mask == "causal", None if op.window is None else whole(op.window))
    rows = max(1, min(QUERIES, SCORES // max(1, share * keys)))
    for low in range(0, steps, rows):
        block = slice(low, min(steps, low + rows))
        seen = view.seen(block)
        size = (block.stop - block.start) * share
        heads = max(1, SCORES // max(1, size * (seen.stop - seen.start)))
        heads = max(1, min(heads, math.prod(k[:-2]) // threads))
        for box in boxes(k[:-2], heads, threads):
            weight = math.prod(one.stop - one.start for one in box) * size * max(1, seen.stop - seen.start)
            yield Task(weight, partial(_write, op, view, box, block, seen))


@spread(AttendSaved)
def attend_saved(op: AttendSaved, threads: int, *shapes: tuple[int, ...]) -> Iterator[Task]:
    """Those of `attend`: their result is a pair."""
    yield from attend(op.op, threads, *shapes)


def _write(op: Attend, view: View, box: Box, rows: slice, keys: slice, emit: Emit, out: Any, *operands: Any) -> None:
    """Scores, weights and mixed values of some key heads, for the queries `rows` over the keys that they see.

    `out` is the result, or that and the logs of the sums of each query.
    """
    q, k, v, *given = operands
    out, logs = out if isinstance(out, tuple) else (out, None)
    share = q.shape[-3] // max(k.shape[-3], 1)
    y = grouped(out, share)[box][..., rows, :]
    if keys.start >= keys.stop:
        emit(y.fill, 0)
        if logs is not None:
            emit(grouped(logs, share)[box][..., rows, :].fill, 0)
        return
    more = dict(zip(op.given, given, strict=True))
    q, k, v = grouped(q, share)[box][..., rows, :], k[box][..., keys, :], v[box][..., keys, :]
    scores = emit.room((*q.shape[:-1], k.shape[-2]))
    joined = _score(emit, op, q, k, scores, saved=logs is not None)
    add_bias(emit, op, view, scores, more.get("score_bias"), (box, rows, keys), operands[0].shape[-3])
    _cap(emit, op, scores)
    wide = scores.size > SMALL and scores.dtype.itemsize >= 4 and "sinks" not in more
    small = emit.room((1,), bool) if wide else None
    if small is not None:
        emit(_look, scores, small)
    masked = hide(emit, view, scores, more.get("keep"), (box, rows, keys)) or "score_bias" in more
    sinks = more["sinks"].reshape(-1, share)[box[-1]][..., None, None] if "sinks" in more else None
    top, sums = _exponentials(emit, scores, view.keys, sinks, masked, small)
    if logs is not None:
        log = grouped(logs, share)[box][..., rows, :]
        emit(np.log, sums, log)
        emit(np.add, log, top, log)
    _mix(emit, scores, joined, sums, v, y)


def _score(emit: Emit, op: Attend, q: Any, k: Any, scores: Any, saved: bool) -> Any:
    """Scaled products, the queries that share a key head in one matrix; the scores seen in this form.

    If logs are saved the way back makes them again: they must be rounded alike, or what cancels there leaves more over.
    """
    *lead, share, steps, width = q.shape
    scale = width**-0.5 if op.scale is None else real(op.scale)
    joined = scores.reshape(*lead, share * steps, k.shape[-2])
    if share == 1 and k.shape[-2] <= GAPS * width and not saved:
        emit(np.matmul, q[..., 0, :, :], k.swapaxes(-1, -2), joined)
        emit(np.multiply, joined, scale, joined)
        return joined
    scaled = emit.room(q.shape)
    emit(np.multiply, q, scale, scaled)
    emit(np.matmul, scaled.reshape(*lead, share * steps, width), k.swapaxes(-1, -2), joined)
    return joined


def _mix(emit: Emit, scores: Any, joined: Any, sums: Any, v: Any, y: Any) -> None:
    """Values mixed by weights; divided by the sums where there are fewer numbers."""
    *lead, share, steps, keys = scores.shape
    if share == 1 and keys <= v.shape[-1]:
        emit(np.divide, joined, sums[..., 0, :, :], joined)
        emit(np.matmul, joined, v, y[..., 0, :, :])
        return
    mixed = emit.room((*lead, share, steps, v.shape[-1]))
    emit(np.matmul, joined, v, mixed.reshape(*lead, share * steps, v.shape[-1]))
    emit(np.divide, mixed, sums, y)


def grouped(x: Any, share: int) -> Any:
    """(..., H, T, n) as (..., G, H/G, T, n): the heads that share keys stand together."""
    return x.reshape(*x.shape[:-3], x.shape[-3] // share, share, *x.shape[-2:])


def add_bias(emit: Emit, op: Attend, view: View, scores: Any, bias: Any, place: Place, heads: int) -> None:
    """What is given, and what the distance of a key takes away; in place."""
    box, rows, keys = place
    share = scores.shape[-3]
    if bias is not None:
        bias = bias[(None,) * max(0, scores.ndim - 1 - bias.ndim)]
        apart = (bias.shape[-3] // share, share) if bias.shape[-3] > 1 else (1, 1)
        bias = bias.reshape(*bias.shape[:-3], *apart, *bias.shape[-2:])
        sizes = bias.shape
        cut = [one if size > 1 else slice(None) for one, size in zip(box, sizes, strict=False)]
        last = [one if size > 1 else slice(None) for one, size in zip((rows, keys), sizes[-2:], strict=True)]
        emit(np.add, scores, bias[(*cut, slice(None), *last)], scores)
    if op.alibi:
        slopes = np.asarray(alibi_slopes(heads), emit.dtype).reshape(-1, share)[box[-1]][..., None, None]
        _take_distance(emit, view, scores, slopes, rows, keys)


def _take_distance(emit: Emit, view: View, scores: Any, slopes: Any, rows: slice, keys: slice) -> None:
    """From each score the slope of its head times the distance between key and query."""
    low, used = min(view.offset, 0), emit.used
    places = emit.constant(("places", low, view.keys), lambda: np.arange(low, view.keys, dtype=emit.dtype))
    first = view.offset - low
    distance, taken = emit.room((rows.stop - rows.start, keys.stop - keys.start)), emit.room(scores.shape)
    queries = places[first + rows.start : first + rows.stop, None]
    emit(np.subtract, places[keys.start - low : keys.stop - low], queries, distance)
    emit(np.absolute, distance, distance)
    emit(np.multiply, distance, slopes, taken)
    emit(np.subtract, scores, taken, scores)
    emit.used = used  # it is free again: the way back takes many blocks in one kernel


def _cap(emit: Emit, op: Attend, scores: Any) -> None:
    if op.softcap is not None:
        cap = real(op.softcap)
        emit(np.multiply, scores, 1 / cap, scores)
        emit(np.tanh, scores, scores)
        emit(np.multiply, scores, cap, scores)


def hide(emit: Emit, view: View, scores: Any, keep: Any, place: Place) -> bool:
    """Minus infinity where nothing is seen. Whether any mask is there."""
    box, rows, keys = place
    first = max(keys.start, rows.start + view.offset + 1) if view.window is None else keys.start
    masked = (view.causal or view.window is not None) and first < keys.stop
    if masked:
        part = slice(first, keys.stop)
        alike = ("hidden", rows.stop - rows.start, keys.stop - first, first - rows.start, view)
        hidden = emit.constant(alike, lambda: view.hidden(rows, part))
        emit(np.copyto, scores[..., first - keys.start :], -math.inf, "same_kind", hidden)
    if keep is not None:
        wide = keep.ndim > len(box)
        keep = keep[..., None, None, rows, keys] if wide else keep[..., None, None, None, keys]
        keep = keep[tuple(one if size > 1 else slice(None) for one, size in zip(box, keep.shape, strict=False))]
        emit(_hide_unseen, scores, keep)
    return masked or keep is not None


def _hide_unseen(scores: Any, keep: Any) -> None:
    np.copyto(scores, -math.inf, where=~keep)


def _look(scores: Any, small: Any) -> None:
    """Whether all scores, also those that will be hidden, are so small that their exponentials need no shift."""
    small[0] = np.maximum.reduce(scores, None) < LARGE and np.minimum.reduce(scores, None) > -LARGE


def _exponentials(emit: Emit, scores: Any, most: int, sinks: Any, masked: bool, small: Any) -> tuple[Any, Any]:
    """exp(score - row maximum) in place; the maxima, and the sums with sinks included. Where all is `small` 0 will do.

    A row that sees nothing has zeros, the maximum 0 and the sum 1.
    """
    shape = (*scores.shape[:-1], 1)
    if sinks is None:  # heads count only where each has a sink of its own
        scores = scores.reshape(-1, scores.shape[-1])
    sums, top = emit.room((*scores.shape[:-1], 1)), emit.room((*scores.shape[:-1], 1))
    if small is not None:
        emit(_shift, scores, top, small, masked)
    else:
        emit(np.maximum.reduce, scores, -1, None, top, True)
        if sinks is not None:
            emit(maximum, top, sinks, top)
        if masked:
            emit(_raise, top)
        emit(np.subtract, scores, top, scores)
    emit(np.exp, scores, scores)
    ones = emit.full(most, 1.0)[: scores.shape[-1]]  # one row for all blocks, however many keys they see
    row_sums(emit, scores, ones, sums[..., 0])
    if sinks is not None:
        emit(np.subtract, sinks, top, top)
        emit(np.exp, top, top)
        emit(np.add, sums, top, sums)
    elif masked:
        emit(_one_for_none, sums)
    return top.reshape(shape), sums.reshape(shape)


def _shift(scores: Any, top: Any, small: Any, masked: bool) -> None:
    """Take the row maxima away; 0 in place of minus infinity."""
    if small[0]:
        top.fill(0)
        return
    np.maximum.reduce(scores, -1, out=top, keepdims=True)
    if masked:
        _raise(top)
    np.subtract(scores, top, scores)


def _raise(top: Any) -> None:
    """0 in place of minus infinity."""
    np.copyto(top, 0, where=np.isneginf(top))


def _one_for_none(sums: Any) -> None:
    np.copyto(sums, 1, where=sums == 0)
