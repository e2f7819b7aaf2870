"""Which rows of a value a step needs: the new ones, some before them, or all of them so far; and their sizes.

A step comes after `past` positions and brings `new` ones. A view says for each axis of time how many rows before the
new ones belong to it: 0, a number, or None for all. Sizes of views are Dims in symbols of their own, so that what an
op states about its operands can be held against them for all steps at once.
"""

from __future__ import annotations

from typing import Any, Final

from blockgraph.dims import Dim, Shape
from blockgraph.number import Number
from blockgraph.op import Op
from blockgraph.records import dataclass

NEW: Final = 0
Past = int | None
"""How many rows before the new ones: 0 none, None all."""
View = tuple[Past, ...]
"""One `Past` for each axis of time, in order."""
NEW_ROWS: Final = Dim("new_rows__")
PAST_ROWS: Final = Dim("past_rows__")


@dataclass(frozen=True, slots=True)
class Clock:
    """One step: `past` positions are known, `new` ones come."""

    past: int
    new: int

    @property
    def total(self) -> int:
        """All positions when the step is done."""
        return self.past + self.new

    def rows(self, past: Past) -> int:
        """The number of rows of a view."""
        return self.new + (self.past if past is None else min(past, self.past))


def size(past: Past) -> Dim:
    """The number of rows of a view."""
    return NEW_ROWS + PAST_ROWS if past is None else NEW_ROWS + _held(past)


def first(past: Past) -> Dim:
    """The position of the first row of a view."""
    return Dim(0) if past is None else PAST_ROWS - _held(past)


def _held(past: int) -> Dim:
    """The rows before the new ones; at most `past`, for there may not be as many."""
    return Dim(f"held_{past}_rows__") if past else Dim(0)


def axes_of(shape: Shape | None, time: Dim) -> tuple[int, ...]:
    """The axes of time."""
    return tuple(axis for axis, dim in enumerate(shape or ()) if dim == time)


def mentions(value: Any, symbol: str) -> bool:
    """Whether a size or number depends on a symbol; a bound that is None does not."""
    return isinstance(value, Dim | Number) and symbol in value.symbols


def resized(op: Op, symbol: str, to: Dim) -> Op:
    """The op with a symbol of its sizes replaced."""
    import dataclasses

    if symbol not in op.symbols:
        return op
    names = [field.name for field in dataclasses.fields(op)]
    return dataclasses.replace(op, **{name: _replaced(getattr(op, name), symbol, to) for name in names})


def _replaced(value: Any, symbol: str, to: Dim) -> Any:
    if isinstance(value, Dim):
        return value.subs({symbol: to})
    if isinstance(value, tuple):
        return tuple(_replaced(one, symbol, to) for one in value)
    return value
