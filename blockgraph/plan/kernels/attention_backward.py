"""The gradients of attention: the weights are made again, block of queries by block, for a few heads at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from blockgraph.adjoint.attention import AttendBackward
from blockgraph.lazy import np
from blockgraph.op import real, whole
from blockgraph.ops.attend import Attend
from blockgraph.ops.visible import View
from blockgraph.plan.kernel import Emit, Task, spread
from blockgraph.plan.kernels.attention import QUERIES, SCORES, add_bias, grouped, hide
from blockgraph.plan.rows import Box, boxes


@spread(AttendBackward)
def attend_backward(op: AttendBackward, threads: int, *shapes: tuple[int, ...]) -> Iterator[Task]:
    """Tasks over batches and key heads: whoever has a key head has all its queries, and sums over them."""
    q, k = shapes[3:5]
    share = q[-3] // max(k[-3], 1)
    view = View(q[-2], k[-2], op.op.mask == "causal", None if op.op.window is None else whole(op.op.window))
    rows = max(1, min(QUERIES, SCORES // max(1, share * k[-2])))
    heads = max(1, min(SCORES // max(1, rows * share * k[-2]), math.prod(k[:-2]) // threads))
    for box in boxes(k[:-2], heads, threads):
        yield Task(math.prod(one.stop - one.start for one in box), partial(_write, op.op, view, box, rows))


def _write(op: Attend, view: View, box: Box, rows: int, emit: Emit, outs: Any, *operands: Any) -> None:
    """All queries of some key heads. The last block comes first: under a causal mask it sees every key."""
    dq, dk, dv = outs
    dy, y, logs, q, k, v, *given = operands
    share = q.shape[-3] // max(k.shape[-3], 1)
    queries = [grouped(x, share)[box] for x in (dq, dy, y, logs, q)]
    keys = [x[box] for x in (dk, dv, k, v)]
    room = _Room(emit, op, queries[-1].shape, keys, min(rows, view.steps))
    first = True
    for low in range((max(view.steps, 1) - 1) // rows * rows, -1, -rows):
        block = slice(low, min(view.steps, low + rows))
        seen = view.seen(block)
        if first and (seen.start > 0 or seen.stop < view.keys or seen.start >= seen.stop):
            emit(keys[0].fill, 0)
            emit(keys[1].fill, 0)
            first = False
        parts = [x[..., block, :] for x in queries]
        if seen.start >= seen.stop:
            emit(parts[0].fill, 0)
            continue
        more = dict(zip(op.given, given, strict=True))
        weights, slope = _weights(room, view, parts[4], keys[2], (box, block, seen), more, q.shape[-3])
        _gradients(room, weights, slope, parts, [x[..., seen, :] for x in keys], first)
        first = False


class _Room:
    """The memory that the blocks of queries use one after the other."""

    def __init__(self, emit: Emit, op: Attend, q: tuple[int, ...], keys: list[Any], rows: int) -> None:
        *lead, share, _, width = q
        self.emit, self.op, self.lead, self.share = emit, op, tuple(lead), share
        self.scale = width**-0.5 if op.scale is None else real(op.scale)
        scores = math.prod(lead) * share * rows * keys[2].shape[-2]
        wide = math.prod(lead) * share * rows * max(width, keys[3].shape[-1])
        narrow = max(math.prod(one.shape) for one in keys)
        self._sizes = {"weights": scores, "ds": scores, "q": wide, "dy": wide, "mixed": wide, "keys": narrow}
        self._sizes["row"] = math.prod(lead) * share * rows
        if op.softcap is not None:
            self._sizes["slope"] = scores
        self._flat = {name: emit.room((size,)) for name, size in self._sizes.items()}

    def array(self, name: str, *shape: int) -> Any:
        """An array with the leading axes of the heads."""
        full = (*self.lead, *shape)
        return self._flat[name][: math.prod(full)].reshape(full)


def _weights(
    room: _Room, view: View, q: Any, k: Any, place: tuple[Box, slice, slice], more: dict[str, Any], heads: int
) -> tuple[Any, Any]:
    """Scores in their place; the slope of the cap beside them, None without one."""
    emit, op, share = room.emit, room.op, room.share
    steps, width = q.shape[-2:]
    k = k[..., place[2], :]
    scaled = room.array("q", share, steps, width)
    emit(np.multiply, q, room.scale, scaled)
    scores = room.array("weights", share, steps, k.shape[-2])
    emit(np.matmul, _joined(scaled), k.swapaxes(-1, -2), _joined(scores))
    add_bias(emit, op, view, scores, None, place, heads)
    slope = None
    if op.softcap is not None:
        slope, cap = room.array("slope", share, steps, k.shape[-2]), real(op.softcap)
        emit(np.multiply, scores, 1 / cap, scores)
        emit(np.tanh, scores, scores)
        emit(np.multiply, scores, scores, slope)
        emit(np.subtract, 1, slope, slope)
        emit(np.multiply, scores, cap, scores)
    hide(emit, view, scores, more.get("keep"), place)
    return scores, slope


def _joined(x: Any) -> Any:
    """(..., G, share, T, n) as (..., G, share * T, n)"""
    return x.reshape(*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1])


def _gradients(room: _Room, weights: Any, slope: Any, queries: list[Any], keys: list[Any], first: bool) -> None:
    """What the docstring of `AttendBackward` says, for one block of queries over the keys that it sees."""
    emit, share = room.emit, room.share
    dq, dy, y, logs, q = queries
    dk, dv, k, v = keys
    steps, wide = dy.shape[-2:]
    emit(np.subtract, weights, logs, weights)
    emit(np.exp, weights, weights)
    own, row = room.array("dy", share, steps, wide), room.array("row", share, steps)
    emit(np.copyto, own, dy)
    emit(np.vecdot, own, y, row)
    ds = room.array("ds", share, steps, k.shape[-2])
    emit(np.matmul, _joined(own), v.swapaxes(-1, -2), _joined(ds))
    emit(np.subtract, ds, row[..., None], ds)
    emit(np.multiply, ds, weights, ds)
    if slope is not None:
        emit(np.multiply, ds, slope, ds)
    scaled, mixed = room.array("q", share, steps, q.shape[-1]), room.array("mixed", share, steps, q.shape[-1])
    for out, left, right in ((dv, weights, own), (dk, ds, scaled)):
        part = out if first else room.array("keys", *out.shape[-2:])
        emit(np.matmul, _joined(left).swapaxes(-1, -2), _joined(right), part)
        if not first:
            emit(np.add, out, part, out)
    emit(np.matmul, _joined(ds), k, _joined(mixed))
    emit(np.multiply, mixed, room.scale, dq)
