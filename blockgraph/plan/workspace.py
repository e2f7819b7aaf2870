"""The memory of a plan and the calls that were written down for it: what one run at a time works with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from operator import is_
from sys import getrefcount
from typing import Any

from blockgraph.lazy import np
from blockgraph.plan.blas import limited
from blockgraph.plan.compiled import Kind, Plan
from blockgraph.plan.kernel import Call, Emit
from blockgraph.plan.memory import Arena
from blockgraph.plan.segments import Segment
from blockgraph.plan.team import run_together
from blockgraph.plan.written import Stretches, Written, joined, stretches, written
from blockgraph.records import dataclass

_ALONE = [object()]
ONLY_HERE = getrefcount(_ALONE[0])
"""What `getrefcount` tells of an array that the list it is asked from alone refers to."""
GENERATIONS = 2
"""Results of one value that are remembered: a caller who binds a new result has the one before until then."""


@dataclass(slots=True)
class Arrays:
    """The whole arrays of a run by value. `fixed` stay from run to run, `passing` do not.

    `made` are arrays that callers got: their memory is used again when the callers have let go of them.
    """

    plan: Plan
    arena: Arena
    fixed: dict[int, Any] = field(default_factory=dict)
    passing: dict[int, Any] = field(default_factory=dict)
    made: dict[int, list[Any]] = field(default_factory=dict)

    def array(self, value: int) -> Any:
        """The array of a value that lives whole, or the number it is."""
        found = self.fixed.get(value)
        if found is None:
            found = self.passing.get(value)
        return self._find(value) if found is None else found

    def _find(self, value: int) -> Any:
        plan = self.plan
        look = plan.aliases.looks.get(value)
        if look is not None:
            array = look.at(self.array(look.base))
            store = self.passing if plan.aliases.root(value) in plan.passing else self.fixed
        elif value in plan.passing:
            owner = plan.layout.owner[value]
            array = self.passing[owner] if owner in self.passing else self._fresh(owner)
            store = self.passing
        else:
            offset = plan.offsets[plan.layout.owner[value]]
            array = self.arena.array(offset, plan.steps.shapes[value], plan.steps.dtypes[value])
            store = self.fixed
        store[value] = array
        return array

    def make(self, owners: Iterable[int]) -> None:
        """Get arrays for the caller, before there is more than one thread."""
        for owner in owners:
            self.array(owner)

    def _fresh(self, owner: int) -> Any:
        """An array for the caller: one that was made before and that nobody has any more, or else a new one.

        The system zeroes the pages of new memory one by one, which takes longer than to fill them.
        """
        made = self.made.setdefault(owner, [])
        form = (self.plan.steps.shapes[owner], self.plan.steps.dtypes[owner])
        free = next(
            (at for at in range(len(made)) if getrefcount(made[at]) == ONLY_HERE and _is(made[at], *form)), None
        )
        if free is None:
            array = np.empty(*form)
            made[GENERATIONS - 1 :] = []
            made.insert(0, array)
        else:
            array = made[free]
        self.passing[owner] = array
        return array


def _is(array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array that a caller had is still what he got."""
    return array.shape == shape and array.dtype == dtype and bool(array.flags.carray)


class Workspace:
    """One plan's memory, lent to one caller at a time. The calls are kept as long as the parameters stay the same."""

    def __init__(self, plan: Plan) -> None:
        """Allocate the arena."""
        self.plan = plan
        self.arena = Arena(plan.bytes)
        self.constants: dict[Hashable, Any] = plan.constants
        self.arrays = Arrays(plan, self.arena)
        inputs = [(value, name, value in plan.passing) for value, name in plan.steps.inputs.items()]
        self._inputs = [[one for one in inputs if (one[0] in plan.steps.late) == late] for late in (False, True)]
        self._params: Sequence[Any] | None = None
        self._calls: dict[tuple[int, int, int], Written] = {}
        self._one: dict[tuple[int, int], Written] = {}
        self._open: list[Written] = []
        self._anew: set[tuple[int, int, int]] = set()
        self._settled: set[tuple[int, int]] = set()
        self._stretches: Stretches | None = None

    def begin(self, inputs: Mapping[str, Any], params: Sequence[Any], own: bool = True) -> dict[int, Any]:
        """Run whatever does not need late inputs; the kept values that are there then.

        They share no memory with the arena, nor with what is given if they shall be `own`. Arrays are as the plan
        expects them.
        """
        if params is not self._params and (
            self._params is None or len(params) != len(self._params) or not all(map(is_, params, self._params))
        ):
            self._bind(params)
        plan = self.plan
        self._take(inputs, late=False)
        if plan.fresh:
            self.arrays.make(owner for owner in plan.fresh if owner not in plan.after)
        self._execute(0, plan.pause)
        return {value: self._result(value, kind, inputs, own) for value, kind in plan.early}

    def proceed(self, late: Mapping[str, Any]) -> dict[int, Any]:
        """Run the rest, once or again; the kept values that were made."""
        plan, passing = self.plan, self.arrays.passing
        for value in [value for value in passing if plan.aliases.root(value) in plan.after]:
            del passing[value]
        self._take(late, late=True)
        self.arrays.make(owner for owner in plan.fresh if owner not in passing)
        self._execute(plan.pause, len(plan.work[0]))
        return {value: self._result(value, kind, late, True) for value, kind in plan.late}

    def end(self) -> None:
        """Let go of the arrays of the caller and of those made for him."""
        self.arrays.passing.clear()
        for kept in self._open:
            kept.empty()

    def _take(self, given: Mapping[str, Any], late: bool) -> None:
        arrays = self.arrays
        for value, name, passes in self._inputs[late]:
            if passes:
                arrays.passing[value] = given[name]
            else:
                np.copyto(arrays.array(value), given[name])

    def _bind(self, params: Sequence[Any]) -> None:
        """Take other parameters: what was written down for the old ones is forgotten."""
        self._params = params
        self._calls.clear()
        self._one.clear()
        self._open.clear()
        self._anew.clear()
        self._settled.clear()
        fixed = self.arrays.fixed = dict(self.plan.steps.constants)
        fixed.update(zip(self.plan.steps.params, params, strict=True))

    def _execute(self, first: int, last: int) -> None:
        """Run the stages from `first` to before `last`."""
        plan, one = self.plan, self._one.get((first, last))
        if one is not None and not plan.limits:  # the smallest runs are made of little else
            one.run(self.arrays.array)
            return
        if first == last:
            return
        if (first, last) not in self._settled:
            others = {*plan.steps.inputs, *plan.fresh}
            passing = {value: array for value, array in self.arrays.passing.items() if value in others}
            self._stretches = stretches(passing, self._params or ())
        if plan.limits:
            with limited(1 if len(plan.work) > 1 else plan.threads):
                self._go(first, last)
        else:
            self._go(first, last)
        if self._stretches is not None:
            self._settled.add((first, last))

    def _go(self, first: int, last: int) -> None:
        if (first, last) in self._one:
            self._one[first, last].run(self.arrays.array)
        elif len(self.plan.work) == 1:
            self._alone(first, last)
        elif first < last:
            run_together([self._stages(number, first, last) for number in range(len(self.plan.work))])

    def _alone(self, first: int, last: int) -> None:
        """The stages on this thread; if all can be kept they are one list of calls."""
        stages = self.plan.work[0]
        for at in range(first, last):
            self._make(0, at, stages[at])
        keys = [(0, at, index) for at in range(first, last) for index in range(len(stages[at]))]
        if all(key in self._calls for key in keys):
            self._one[first, last] = joined(self._calls.pop(key) for key in keys)

    def _stages(self, thread: int, first: int, last: int) -> Sequence[Callable[[], None]]:
        def stage(at: int, segments: Sequence[Segment]) -> Callable[[], None]:
            return lambda: self._make(thread, at, segments)

        return [stage(at, self.plan.work[thread][at]) for at in range(first, last)]

    def _make(self, thread: int, at: int, segments: Sequence[Segment]) -> None:
        """Make the calls of one thread in one stage, written down before or now."""
        for index, segment in enumerate(segments):
            kept = self._calls.get((thread, at, index))
            if kept is None:
                emit = Emit(self.arena, self.plan.base(thread), self.plan.steps.dtype, self.constants)
                segment.write(emit, self.arrays)
                if self.plan.keeps and (thread, at, index) not in self._anew:
                    self._keep((thread, at, index), emit.calls, segment.changing)
                for function, arguments in emit.calls:
                    function(*arguments)
            else:
                kept.run(self.arrays.array)

    def _keep(self, key: tuple[int, int, int], calls: list[Call], changing: bool) -> None:
        """Keep calls for the next run, if what changes in them can be exchanged."""
        kept = written(calls, self._stretches) if changing else Written(calls)
        if kept is not None:
            self._calls[key] = kept
            if kept.holes:
                self._open.append(kept)
        elif self._stretches is not None:
            self._anew.add(key)

    def _result(self, value: int, kind: Kind, inputs: Mapping[str, Any], own: bool) -> Any:
        if kind == "input":  # as it was given, and not the copy of a small one
            return inputs[self.plan.steps.inputs[value]].copy() if own else inputs[self.plan.steps.inputs[value]]
        array = self.arrays.array(value)
        if kind == "fresh":
            return array
        return np.array(array) if own or kind == "arena" else np.asarray(array)
