"""Calls that were written down, with the arrays of the caller left open: they are others at every run.

To write the calls of a chain anew takes longer than to make the short ones. So they are written once; where an argument
looks at an array that will be another next time, there is a hole, filled before a run and emptied after it, so that no
array of a caller is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from blockgraph.lazy import np
from blockgraph.plan.kernel import Call
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Hole:
    """An argument that looks at the array of `value`: with these strides, from this offset on."""

    arguments: list[Any]
    index: int
    value: int
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


Stretches = Mapping[int, tuple[int, int]]
"""Where the memory of the arrays begins and ends that are others at every run, by value."""


@dataclass(slots=True)
class Written:
    """Calls, and the holes in them."""

    calls: Sequence[tuple[Callable[..., Any], Sequence[Any]]]
    holes: Sequence[Hole] = ()

    def run(self, array: Callable[[int], Any]) -> None:
        """Let the holes look at the arrays of this run, and make the calls."""
        for hole in self.holes:
            base = array(hole.value)
            hole.arguments[hole.index] = np.ndarray(hole.shape, base.dtype, base, hole.offset, hole.strides)
        for function, arguments in self.calls:
            function(*arguments)

    def empty(self) -> None:
        """Let go of the arrays."""
        for hole in self.holes:
            hole.arguments[hole.index] = None


def joined(parts: Iterable[Written]) -> Written:
    """All calls in one list."""
    parts = list(parts)
    return Written([call for part in parts for call in part.calls], [hole for part in parts for hole in part.holes])


def stretches(passing: Mapping[int, Any], staying: Iterable[Any]) -> Stretches | None:
    """Where arrays lie that are others at every run; None if not all do so row after row and in memory of their own."""
    if not all(array.flags.c_contiguous for array in passing.values()):
        return None
    found = {value: _stretch(array) for value, array in passing.items()}
    rest = [*found.values(), *map(_stretch, staying)]
    shared = sum(low < end and start < high for low, high in found.values() for start, end in rest)
    return found if shared == sum(low < high for low, high in found.values()) else None


def written(calls: Iterable[Call], passing: Stretches | None) -> Written | None:
    """The calls with a hole for every argument that looks at one of the `passing` arrays; None if not all can have one.

    An array within a tuple, or one whose method is called, has no place where it could be exchanged.
    """
    if passing is None:
        return None
    kept: list[tuple[Callable[..., Any], Sequence[Any]]] = []
    holes: list[Hole] = []
    for function, arguments in calls:
        owners = {index: value for index, one in enumerate(arguments) if (value := _looks(one, passing)) is not None}
        if any(not isinstance(arguments[index], np.ndarray) for index in owners):
            return None
        if _looks(getattr(function, "__self__", None), passing) is not None:
            return None
        open_arguments = list(arguments)
        for index, value in owners.items():
            one = arguments[index]
            holes.append(
                Hole(open_arguments, index, value, one.shape, _stretch(one)[0] - passing[value][0], one.strides)
            )
        kept.append((function, open_arguments if owners else arguments))
    return Written(kept, holes)


def _stretch(array: Any) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
    return int(low), int(high)


def _looks(argument: Any, passing: Stretches) -> int | None:
    """Whose memory an argument looks at: an array, or arrays in a tuple."""
    if isinstance(argument, tuple | list):
        return next((value for one in argument if (value := _looks(one, passing)) is not None), None)
    if not isinstance(argument, np.ndarray):
        return None
    first, last = _stretch(argument)
    return next((value for value, (low, high) in passing.items() if first < high and low < last), None)
