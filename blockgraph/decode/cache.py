"""Rows that are kept from step to step: written in place, with room for more, and let go once a window has passed."""

from __future__ import annotations

from typing import Any, Final

from blockgraph.decode.views import Clock, Past
from blockgraph.lazy import np

ROOM: Final = 64  # rows to begin with
SLACK: Final = 4  # a window of W rows has room for W/4 more, so that rows are moved once in W/4 steps


class Rows:
    """The rows of one value along one axis; `past` of them stay when a step is done, all if that is None.

    Where they stand follows from the clock alone, so a step that was broken off leaves nothing behind.
    """

    def __init__(self, axis: int, past: Past, length: int | None) -> None:
        self.axis, self.past, self.length = axis, past, length
        self.buffer: Any = None
        self.base = 0  # the position of the buffer's first row
        self._before = (slice(None),) * axis

    def put(self, x: Any, clock: Clock) -> None:
        """Write the new rows behind those of the past."""
        end = clock.past - self.base
        if self.buffer is None or end + clock.new > self.buffer.shape[self.axis]:
            self._make_room(x, clock)
            end = clock.past - self.base
        self.buffer[(*self._before, slice(end, end + clock.new))] = x

    def last(self, past: Past, clock: Clock) -> Any:
        """The new rows and `past` before them, as a view."""
        end = clock.total - self.base
        return self.buffer[(*self._before, slice(end - clock.rows(past), end))]

    def settle(self, clock: Clock) -> None:
        """Let go of the room that a step of many rows took for itself; `clock` has that step in its past."""
        if self.past is not None and self.buffer is not None and self.buffer.shape[self.axis] > self._room(1):
            self._move(self.buffer, clock.past, self._room(1))

    @property
    def bytes(self) -> int:
        """The memory they take, room included."""
        return 0 if self.buffer is None else int(self.buffer.nbytes)

    def _room(self, new: int) -> int:
        """How many rows a buffer for a window has."""
        assert self.past is not None, "only a window has a size"
        return room_of(self.past, new)

    def _make_room(self, x: Any, clock: Clock) -> None:
        """A larger buffer, twice as large at least; or for a window the rows that still count, moved to the front."""
        if self.past is not None:
            room = self._room(clock.new)
        else:
            held = 0 if self.buffer is None else self.buffer.shape[self.axis]
            room = max(clock.total, 2 * held, ROOM, self.length or 0)
        self._move(x if self.buffer is None else self.buffer, clock.past, room)

    def _move(self, like: Any, known: int, room: int) -> None:
        rows = known if self.past is None else min(known, self.past)
        old, start = self.buffer, known - rows - self.base
        shape = list(like.shape)
        shape[self.axis] = room
        reuse = old is not None and old.shape[self.axis] == room
        new = old if reuse else np.empty(shape, like.dtype)
        if rows and old is not None:
            kept = old[(*self._before, slice(start, start + rows))]
            new[(*self._before, slice(0, rows))] = kept.copy() if reuse and start < rows else kept
        self.buffer, self.base = new, known - rows


def room_of(past: int, new: int) -> int:
    """How many rows a buffer for a window of `past` has when `new` ones come at once."""
    return past + max(new, 1 + past // SLACK)
