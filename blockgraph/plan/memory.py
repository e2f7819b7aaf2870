"""Where values lie: one piece of memory, in which the place of a value is used again once its last reader is done."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from blockgraph.lazy import np
from blockgraph.records import dataclass

MANY = 1000
"""Values from which on their places are found in one go: comparing all with all takes longer than it saves."""
LINE = 64
"""Bytes of a cache line; every value starts at one."""


@dataclass(frozen=True, slots=True)
class Life:
    """A value's bytes, and the first and last moment at which it is there."""

    key: int
    bytes: int
    first: int
    last: int


def aligned(size: int) -> int:
    """The next multiple of a cache line."""
    return -(-size // LINE) * LINE


def place(lives: Iterable[Life]) -> tuple[dict[int, int], int]:
    """An offset for every value, so that no two overlap that are there at the same moment, and the bytes of all.

    The largest come first, each into the tightest gap that is free all its life. Thousands take turns instead.
    """
    lives = list(lives)
    if len(lives) > MANY:
        return _in_turn(lives)
    placed: list[tuple[int, int, Life]] = []
    for life in sorted(lives, key=lambda one: (-one.bytes, one.first, one.key)):
        size = aligned(life.bytes)
        others = sorted((s, e) for s, e, one in placed if one.first <= life.last and life.first <= one.last)
        start = _tightest(others, size)
        placed.append((start, start + size, life))
    return {life.key: start for start, _, life in placed}, max((end for _, end, _ in placed), default=0)


def _in_turn(lives: list[Life]) -> tuple[dict[int, int], int]:
    """In the order of their lives, each where one of the same size was before, else behind all: in one go."""
    found: dict[int, int] = {}
    free: dict[int, list[int]] = {}
    there: list[tuple[int, int, int]] = []
    end = 0
    for life in sorted(lives, key=lambda one: (one.first, one.key)):
        while there and there[0][0] < life.first:
            _, size, start = heapq.heappop(there)
            free.setdefault(size, []).append(start)
        size = aligned(life.bytes)
        if free.get(size):
            start = free[size].pop()
        else:
            start, end = end, end + size
        found[life.key] = start
        heapq.heappush(there, (life.last, size, start))
    return found, end


def _tightest(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap of at least `size` between taken stretches; behind them all if there is none."""
    best, least, end = -1, -1, 0
    for start, stop in taken:
        gap = start - end
        if gap >= size and (best < 0 or gap < least):
            best, least = end, gap
        end = max(end, stop)
    return best if best >= 0 else end


class Arena:
    """One piece of memory, seen as arrays. Without `real` there is none: arrays have shapes and strides only."""

    def __init__(self, size: int, real: bool = True) -> None:
        """Get the memory, aligned to a cache line."""
        self.size, self.real = size, real
        raw = np.empty(size + LINE if real else 16, np.uint8)
        start = -raw.ctypes.data % LINE if real else 0
        self._bytes = raw[start:]

    def array(self, offset: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """The array of this shape at an offset."""
        if self.real:
            return np.ndarray(shape, dtype, self._bytes, offset)
        return shadow(shape, dtype)


def shadow(shape: tuple[int, ...], dtype: Any, dense: bool = True) -> Any:
    """An array with shape and strides and no memory behind them; it must not be read or written.

    If it is not `dense` there are gaps between the rows, along every axis.
    """
    strides, step = [], int(np.dtype(dtype).itemsize)
    for size in reversed(shape):
        strides.append(step)
        step = step * max(size, 1) if dense else step * (size + 1)
    one = np.zeros((), dtype)
    return np.lib.stride_tricks.as_strided(one, shape, strides[::-1])


def reshapes(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether the array can be seen in this shape, of as many elements, without a copy."""
    old = [(size, stride) for size, stride in zip(array.shape, array.strides, strict=True) if size != 1]
    new = [size for size in shape if size != 1]
    if 0 in array.shape:
        return True
    i = j = 0
    while i < len(old):
        size, wanted, first = old[i][0], new[j], i
        while size != wanted:
            if size < wanted:
                i += 1
                size *= old[i][0]
            else:
                j += 1
                wanted *= new[j]
        if any(outer != stride * length for (_, outer), (length, stride) in pairwise(old[first : i + 1])):
            return False
        i, j = i + 1, j + 1
    return True


def as_rows(array: Any) -> Any | None:
    """The array with all axes but the last in one, or None if that needs a copy."""
    shape = (math.prod(array.shape[:-1]), array.shape[-1])
    return array.reshape(shape) if reshapes(array, shape) else None
