"""How much memory there is, and the refusal of what does not fit: a finding in place of Python's MemoryError."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from math import prod
from typing import Any, TypeVar, cast

from blockgraph.errors import EnvironmentFailure, Finding, Place

F = TypeVar("F", bound=Callable[..., Any])
SMALL = 1 << 26
"""So many bytes are there: whether they are is not asked."""
DRAWN = 8
"""Bytes of a number as it is drawn, whatever it is kept as."""
HELP = "choose smaller sizes (`--set`, `--batch`, `--time`), or float32"


def free_memory() -> int | None:
    """The memory that is free, in bytes, where the machine tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return None


def refuse_arrays(path: str, shapes: Iterable[tuple[str, tuple[int, ...]]], width: int) -> None:
    """Raises EnvironmentFailure (BG904) if arrays of `width` bytes a number cannot be drawn in what is free."""
    sizes = {name: prod(shape) for name, shape in shapes}
    if not sizes:
        return
    largest = max(sizes, key=sizes.__getitem__)
    needed = sum(sizes.values()) * width + sizes[largest] * (DRAWN if width < DRAWN else 0)
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        message = (
            f"the arrays to be drawn need {needed:,} bytes, and {free:,} are free; "
            f"the largest is {largest}, {sizes[largest] * width:,} bytes"
        )
        raise EnvironmentFailure([Finding("BG904", message, Place(path), HELP)])


def used_up(path: str) -> Finding:
    """BG904 for memory that ran out while something was computed."""
    return Finding("BG904", "the memory of this machine is not enough", Place(path), HELP)


def within_memory(call: F) -> F:
    """A method of what has a `spec`, with BG904 (EnvironmentFailure) where memory runs out in it."""

    @wraps(call)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return call(self, *args, **options)
        except MemoryError:
            raise EnvironmentFailure([used_up(self.spec.path)]) from None

    return cast(F, guarded)
