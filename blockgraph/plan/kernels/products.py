"""Matrix products: all rows of a block in one, written straight to where they belong."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from blockgraph.lazy import np
from blockgraph.op import Op
from blockgraph.ops.einsum import Einsum, letters_for
from blockgraph.ops.gather import Lookup
from blockgraph.ops.matmul import MatMul
from blockgraph.plan.kernel import FORWARD, SMALL, Emit, kernel
from blockgraph.plan.memory import as_rows


@kernel(MatMul, product=True)
def matmul(emit: Emit, op: MatMul, out: Any, left: Any, right: Any) -> None:
    """One product where the right operand is one matrix and the rows lie one after the other."""
    if right.ndim == 2 and left.ndim > 2:
        rows, result = as_rows(left), as_rows(out)
        if rows is not None and result is not None:
            left, out = rows, result
    emit(np.dot if _is_quicker_by_dot(left, right, out) else np.matmul, left, right, out)


def _is_quicker_by_dot(left: Any, right: Any, out: Any) -> bool:
    """Small matrices, all of them without gaps: `dot` then needs two thirds of the time to begin."""
    dense = left.flags.forc and right.flags.forc and out.flags.c_contiguous
    return bool(left.ndim == right.ndim == 2 and out.size <= SMALL and dense)


def row_sums(emit: Emit, x: Any, ones: Any, out: Any) -> None:
    """The sum of each row of a matrix without gaps."""
    emit(np.dot if x.ndim == 2 and x.size <= SMALL else np.matmul, x, ones, out)


@kernel(Einsum, product=True)
def einsum(emit: Emit, op: Einsum, out: Any, *operands: Any) -> None:
    """All rows of one operand against all of another, as in the gradient of a matrix; the rest by its `forward`."""
    left, right = map(as_rows, operands) if is_over_rows(op, *(x.ndim for x in operands)) else (None, None)
    if left is None or right is None:
        FORWARD.write(emit, op, out, *operands)
    else:
        emit(np.matmul, left.T, right, out)


@lru_cache(maxsize=1024)
def is_over_rows(op: Op, *ranks: int) -> bool:
    """Whether an op is an einsum whose pattern reads `... k, ... n -> k n`"""
    if not isinstance(op, Einsum):
        return False
    letters, out = letters_for(op.axes, ranks)
    if len(letters) != 2:
        return False
    (*rows, k), (*others, n) = letters
    return rows == others and bool(rows) and out == (k, n) and k != n and not {k, n} & set(rows)


@kernel(Lookup)
def lookup(emit: Emit, op: Lookup, out: Any, table: Any, ids: Any) -> None:
    """The rows of a table. Ids were held against their bound before the run; clipping spares a second look."""
    emit(np.take, table, ids, 0, out, "clip")
