"""Ops that read or write at positions given as ids: lookup, top-k and its inverse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Need, Op, Refusal, Size, Type, volume, whole
from blockgraph.pattern import parse
from blockgraph.records import dataclass


@final
class Lookup(Op, name="lookup", role="source"):
    """y[...] = table[ids[...]]

    table (V, C), ids (...) below V: y (..., C). Source: Bengio et al. 2003, JMLR 3, sec. 2.
    """

    signature = "table, ids"
    shape = parse("v c, ... -> ... c")
    operand_dtypes = ("float", "int")
    cuts = (1,)

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """Ids that are bounded are rows of the table."""
        table, ids = types
        if ids.below is not None and table.shape:
            yield Need(ids.below, table.shape[0])

    def forward(self, *arrays: Any) -> Any:
        """A copy of the rows."""
        table, ids = arrays
        return table[ids]

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dtable[v] = sum of dy where the id is v"""
        table, ids = arrays
        return summed_rows(dy.reshape(-1, table.shape[-1]), ids.reshape(-1), table.shape[0]), None

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing is computed."""
        return Cost()


def summed_rows(rows: Any, ids: Any, size: int) -> Any:
    """The rows (N, C) summed by id into (size, C)."""
    total = np.zeros((size, rows.shape[-1]), rows.dtype)
    add_rows(total, rows, ids)
    return total


def add_rows(total: Any, rows: Any, ids: Any) -> None:
    """total[v] += the sum of the rows (N, C) whose id is v: sorted by id, then summed run by run."""
    if len(ids):
        order = np.argsort(ids, kind="stable")
        found, starts = np.unique(ids[order], return_index=True)
        total[found] += np.add.reduceat(rows[order], starts, axis=0)


@final
@dataclass(frozen=True)
class TopK(Op, name="top_k"):
    """values, indices = the k largest along the last axis, best first; of equals the lowest index wins

    The gradient goes to the values; the choice has none.
    """

    signature = "x, k"
    shape = parse("... n -> ... k, ... k")
    k: Size

    def sizes_by_letter(self) -> Mapping[str, Dim]:
        """k"""
        return {"k": Dim(self.k)}

    def refusals(self) -> Iterator[Refusal]:
        """A number below one."""
        number = Dim(self.k).number
        if number is not None and (number < 1 or number.denominator > 1):
            yield Refusal("k", f"how many are chosen must be a whole number from 1, not {number}")

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """Values are numbers, indices are ids."""
        values, indices = super().infer(*types)
        return values, Type(indices.shape, "int", indices.bare)

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """No more than there are."""
        if types[0].shape is not None:
            yield Need(Dim(self.k), types[0].shape[-1])

    def forward(self, *arrays: Any) -> Any:
        """A stable sort of -x, so that ties keep their order."""
        (x,) = arrays
        order: Any = np.argsort(-x, axis=-1, kind="stable")
        indices = order[..., : whole(self.k)].copy()  # so that the rest of the order is let go
        return np.take_along_axis(x, indices, axis=-1), indices

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy of the values at their places."""
        (x,) = arrays
        dx = np.zeros_like(x)
        if dy[0] is not None:
            np.put_along_axis(dx, y[1], dy[0], axis=-1)
        return (dx,)

    def side(self, y: Any, *arrays: Any) -> Any:
        """Which were chosen."""
        return y[1]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """One comparison per element and chosen one."""
        return Cost(elementwise=volume(types[0].shape) * Dim(self.k))

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """The order of all, in 8 bytes each, and the negated values."""
        return volume(types[0].shape) * 3


@final
@dataclass(frozen=True)
class Put(Op, name="put"):
    """y = zeros (..., size) with y[..., indices] = values; values with the same index add up

    values and indices (..., k): `put(values, indices, E)` undoes `top_k`. Indices are below `size`.
    """

    signature = "values, indices, size"
    shape = parse("... k, ... k -> ... n")
    operand_dtypes = ("float", "int")
    cuts = (1,)
    chooses = True
    size: Size

    def sizes_by_letter(self) -> Mapping[str, Dim]:
        """The size of the last axis."""
        return {"n": Dim(self.size)}

    def refusals(self) -> Iterator[Refusal]:
        """A size below one."""
        number = Dim(self.size).number
        if number is not None and (number < 1 or number.denominator > 1):
            yield Refusal("size", f"the size must be a whole number from 1, not {number}")

    def forward(self, *arrays: Any) -> Any:
        """Each row on its own."""
        values, indices = arrays
        size = whole(self.size)
        k = indices.shape[-1]
        flat = np.zeros((indices.size // k if k else 0, size), values.dtype)
        np.add.at(flat, (np.arange(len(flat))[:, None], indices.reshape(-1, k)), values.reshape(-1, k))
        return flat.reshape(*indices.shape[:-1], size)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dvalues = dy[..., indices]"""
        return np.take_along_axis(dy, arrays[1], axis=-1), None
