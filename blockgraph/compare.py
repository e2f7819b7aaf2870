"""Where two runs part: the first value that differs, and whether a step differs by itself or inherits it.

Each step of the first run is computed again from the other run's values just before it. What then still differs is
the step's own; the rest came in from above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from blockgraph.errors import Place
from blockgraph.grad import Tape
from blockgraph.graph import Graph, Step
from blockgraph.lazy import np
from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One named value in both runs. Relative differences are largest absolute ones over the largest reference value.

    `own` is what is left when the step is computed from the reference's own inputs, None where they are not known;
    `shapes` are told when they differ, and the numbers are then infinite.
    """

    name: str
    op: str
    text: str
    absolute: float
    relative: float
    own: float | None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    place: Place | None = None

    def beyond(self, rtol: float) -> bool:
        """Whether it differs by more than `rtol`; a value that is not finite in one run alone always does."""
        return not self.relative <= rtol


@dataclass(frozen=True, slots=True)
class NotFinite:
    """A value that holds infinity or what is no number, and in which of the two runs."""

    name: str
    in_first: bool
    in_second: bool
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All values that both runs name, in running order, and the names that only one of them has.

    `not_finite` is the first of the values that is not finite in one of the runs: from there on little is told.
    """

    differences: tuple[Difference, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    not_finite: NotFinite | None = None

    def first(self, rtol: float) -> Difference | None:
        """The first value that differs."""
        return next((one for one in self.differences if one.beyond(rtol)), None)


def compare(graph: Graph, tape: Tape, reference: Mapping[str, Any]) -> Comparison:
    """Hold a recorded run of `graph` against the named values of another."""
    steps = list(_last_by_value(graph))
    known = {step.value: np.asarray(reference[step.name]) for step in steps if step.name in reference}
    found = [_difference(step, tape, known) for step in steps if step.value in known]
    names = {step.name for step in steps}
    return Comparison(
        tuple(found),
        tuple(step.name for step in steps if step.name not in reference),
        tuple(name for name in reference if name not in names and name not in graph.named),
        next(_not_finite([step for step in steps if step.value in known], tape, known), None),
    )


def _not_finite(steps: Iterable[Step], tape: Tape, known: Mapping[int, Any]) -> Iterator[NotFinite]:
    for step in steps:
        in_first, in_second = (not np.isfinite(array).all() for array in (tape.slots[step.value], known[step.value]))
        if in_first or in_second:
            yield NotFinite(step.name, in_first, in_second, step.place)


def _last_by_value(graph: Graph) -> list[Step]:
    """The steps, one for each value, in the order in which values are computed; the shortest name is the one told."""
    best: dict[int, Step] = {}
    for step in graph.steps:
        old = best.get(step.value)
        if old is None or (step.name.count("."), len(step.name)) < (old.name.count("."), len(old.name)):
            best[step.value] = step
    return [best[value] for value in sorted(best)]


def _difference(step: Step, tape: Tape, known: Mapping[int, Any]) -> Difference:
    mine, theirs = np.asarray(tape.slots[step.value]), known[step.value]
    if mine.shape != theirs.shape:
        shapes = (mine.shape, theirs.shape)
        return Difference(step.name, step.op, step.text, np.inf, np.inf, None, shapes, step.place)
    absolute, relative = distance(mine, theirs)
    own = 0.0 if absolute == 0 else _own(step.value, tape, known)
    return Difference(step.name, step.op, step.text, absolute, relative, own, None, step.place)


def distance(mine: Any, theirs: Any) -> tuple[float, float]:
    """The largest absolute difference, and that over the largest finite reference, absolute.

    What is not finite is equal to the same in the same place, and infinitely far from all else.
    """
    if not mine.size:
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
        same = (mine == theirs) | (np.isnan(mine.astype(np.float64)) & np.isnan(theirs.astype(np.float64)))
        gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
        largest = float(gap.max())
        sizes = np.abs(theirs.astype(np.float64))
        scale = float(sizes.max(where=np.isfinite(sizes), initial=0.0))
    return largest, largest / scale if scale > 0 else largest


def _own(value: int, tape: Tape, known: Mapping[int, Any]) -> float | None:
    """The difference left when the step runs on the reference's values; None if some of them are not there."""
    makers = {slot: call for call in tape.calls for slot in call.outputs}
    needed: list[int] = []
    waiting, seen = [value], set()
    while waiting:
        slot = waiting.pop()
        if slot in seen or (slot in known and slot != value):
            continue
        seen.add(slot)
        if slot in makers:
            needed.append(slot)
            waiting.extend(makers[slot].inputs)
    if value not in makers:
        return distance(np.asarray(tape.slots[value]), np.asarray(known[value]))[1]  # an input differs by itself
    slots = {**tape.slots, **known}
    slots.pop(value, None)
    for call in tape.calls:
        if any(slot in needed for slot in call.outputs):
            call.run(slots)
    return distance(np.asarray(slots[value]), np.asarray(known[value]))[1]
