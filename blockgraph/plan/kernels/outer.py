"""The gradient of a matrix whose left side is made column by column as it is needed."""

from __future__ import annotations

from typing import Any

from blockgraph.adjoint.outer import Outer
from blockgraph.lazy import np
from blockgraph.plan.kernel import CHUNK, FORWARD, Emit, kernel, kernel_of
from blockgraph.plan.memory import as_rows
from blockgraph.plan.rows import Box, boxes


@kernel(Outer, product=True)
def outer(emit: Emit, op: Outer, out: Any, *operands: Any) -> None:
    """Some columns of the left side over all rows, chunk by chunk, then one product."""
    *given, right = operands
    rows, columns = as_rows(right), out.shape[0]
    if rows is None:
        FORWARD.write(emit, op, out, *operands)
        return
    left = emit.room((*right.shape[:-1], columns))
    used, box = emit.used, emit.box
    for chunk in boxes(right.shape[:-1], max(1, CHUNK // max(1, columns))):
        _make(emit, op, left[chunk], [_at(one, chunk) for one in given])
        emit.start(used, box)
    emit(np.matmul, left.reshape(rows.shape[0], columns).T, rows, out)


def _make(emit: Emit, op: Outer, out: Any, made: list[Any]) -> None:
    """Run the recipe on a chunk of rows; the last result is the left side."""
    for number, (step, places) in enumerate(op.recipe, 1):
        target = out if number == len(op.recipe) else emit.room(out.shape)
        kernel_of(step).write(emit, step, target, *(made[place] for place in places))
        made.append(target)


def _at(given: Any, chunk: Box) -> Any:
    """The rows of an operand, whose axes are aligned with those of the left side from the right."""
    if getattr(given, "ndim", 0) < 2:
        return given
    own = chunk[len(chunk) + 1 - given.ndim :]
    lengths = given.shape[:-1]
    return given[tuple(slice(None) if size == 1 else one for size, one in zip(lengths, own, strict=True))]
