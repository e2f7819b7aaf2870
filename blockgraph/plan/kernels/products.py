"""Matrix products: all rows of a block in one, written straight to where they belong."""

from __future__ import annotations

from typing import Any

from blockgraph.lazy import np
from blockgraph.ops.gather import Lookup
from blockgraph.ops.matmul import MatMul
from blockgraph.plan.kernel import Emit, kernel
from blockgraph.plan.memory import as_rows


@kernel(MatMul, product=True)
def matmul(emit: Emit, op: MatMul, out: Any, left: Any, right: Any) -> None:
    """One product where the right operand is one matrix and the rows lie one after the other."""
    if right.ndim == 2 and left.ndim > 2:
        rows, result = as_rows(left), as_rows(out)
        if rows is not None and result is not None:
            emit(np.matmul, rows, right, result)
            return
    emit(np.matmul, left, right, out)


@kernel(Lookup)
def lookup(emit: Emit, op: Lookup, out: Any, table: Any, ids: Any) -> None:
    """The rows of a table. Ids were held against their bound before the run; clipping spares a second look."""
    emit(np.take, table, ids, 0, out, "clip")
