"""Rotary positions: pairs of features turned by angles that are made once."""

from __future__ import annotations

from typing import Any

from blockgraph.lazy import np
from blockgraph.op import real, whole
from blockgraph.ops.positions import angles
from blockgraph.ops.rope import Rope
from blockgraph.plan.kernel import Emit, kernel


@kernel(Rope, placed=True)
def rope(emit: Emit, op: Rope, out: Any, x: Any) -> None:
    """(a cos - b sin, b cos + a sin) for each pair; the features past the width are copied."""
    turn(emit, op, out, x, 1)


def turn(emit: Emit, op: Rope, out: Any, x: Any, direction: int) -> None:
    """Each pair turned by its angle, or back."""
    width = x.shape[-1] if op.width is None else whole(op.width)
    at = emit.box[-1]
    first, second = op.pairs(width)
    # Angles of as many positions as asked for so far would do; those of one block are exact and small.
    key = ("angles", at.start, at.stop, width, real(op.theta))
    cos, sin = emit.constant(key, lambda: [one[at] for one in angles(at.stop, width, real(op.theta), emit.dtype)])
    a, b, y, z = x[..., first], x[..., second], out[..., first], out[..., second]
    product = emit.room(a.shape)
    emit(np.multiply, b, sin, product)
    emit(np.multiply, a, cos, y)
    emit(np.subtract if direction > 0 else np.add, y, product, y)
    emit(np.multiply, a, sin, product)
    emit(np.multiply, b, cos, z)
    emit(np.add if direction > 0 else np.subtract, z, product, z)
    if width < x.shape[-1]:
        emit(np.copyto, out[..., width:], x[..., width:])
