"""The order of a run: steps in stages, each of which can be shared out among threads.

A `Rows` stage is a chain of steps that keep rows apart: it is run block of rows by block of rows, so that what lies
between its first and its last step never exists whole. A `Spread` is one step that knows its own parts, such as
attention. A `Serial` stage runs on whole values, in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from blockgraph.plan.kernel import SPREADS, Kernel, kernel_of
from blockgraph.plan.rows import Cut, Lead, cuts_of
from blockgraph.plan.steps import Step, Steps
from blockgraph.plan.views import Aliases
from blockgraph.records import dataclass

AHEAD = 48
"""How many steps further down a chain may go on; further away it would only keep values alive for longer."""
LARGE = 1 << 20
"""Bytes of a product from which on it does not join a chain that gains nothing by it."""
EARLY = 1 << 20
"""Bytes up to which what depends on parameters alone is computed before everything else."""


@dataclass(frozen=True, slots=True)
class Member:
    """A step of a chain, its kernel, and how its operands are cut along the rows."""

    step: Step
    kernel: Kernel
    cuts: tuple[Cut, ...]


@dataclass(slots=True)
class Rows:
    """Steps whose outputs have the same rows; `inside` are the values that are made and cut here."""

    lead: Lead
    members: list[Member] = field(default_factory=list)
    inside: set[int] = field(default_factory=set)

    @property
    def steps(self) -> list[Step]:
        """The steps in order."""
        return [member.step for member in self.members]

    def groups(self) -> Iterator[list[int]]:
        """Members that run together, by number: each product on its own, and all between two products."""
        light: list[int] = []
        for index, member in enumerate(self.members):
            if member.kernel.product:
                yield from ([light] if light else [])
                yield [index]
                light = []
            else:
                light.append(index)
        yield from ([light] if light else [])


@dataclass(slots=True)
class Spread:
    """One step that comes in parts."""

    step: Step

    @property
    def steps(self) -> list[Step]:
        """The step."""
        return [self.step]


@dataclass(slots=True)
class Serial:
    """Steps on whole values."""

    steps: list[Step] = field(default_factory=list)


Stage = Rows | Spread | Serial


@dataclass(frozen=True, slots=True)
class Order:
    """All steps that compute anything, in stages. Those from `pause` on wait for the late inputs."""

    stages: list[Stage]
    pause: int


def order_of(steps: Steps, aliases: Aliases) -> Order:
    """The order of a run."""
    return _Scheduler(steps, aliases).run()


@dataclass(slots=True)
class _Scheduler:
    steps: Steps
    aliases: Aliases
    stages: list[Stage] = field(default_factory=list)
    waiting: dict[int, int] = field(default_factory=dict)
    readers: dict[int, list[int]] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    made_here: set[int] = field(default_factory=set)
    last: int = 0

    def run(self) -> Order:
        given = {*self.steps.inputs, *self.steps.params, *self.steps.constants} - self.steps.late
        for number, step in enumerate(self.steps.steps):
            waited_for = self.steps.waits.get(step.outputs[0], ())
            open_values = {value for value in (*step.inputs, *waited_for) if value not in given}
            self.waiting[number] = len(open_values)
            for value in open_values:
                self.readers.setdefault(value, []).append(number)
        for number, count in tuple(self.waiting.items()):
            if not count:
                self._arrive(number)
        self._early()
        while self.ready:
            self._next()
        self.stages = [stage for stage in self.stages if stage.steps]
        pause = len(self.stages)
        self.stages.append(Serial())
        self._release(self.steps.late)
        while self.ready:
            self._next()
        return Order([stage for stage in self.stages if stage.steps], pause)

    def _arrive(self, number: int) -> None:
        """A step has all it reads. A view is there at once."""
        step = self.steps.steps[number]
        if step.outputs[0] not in self.aliases.free:
            heapq.heappush(self.ready, number)
            return
        stage = self.stages[-1] if self.stages else None
        if isinstance(stage, Rows) and step.inputs[0] in stage.inside and self._cuts(step, stage):
            stage.inside.update(step.outputs)
        self._made(step)

    def _made(self, step: Step) -> None:
        self._release(step.outputs)

    def _release(self, values: Iterable[int]) -> None:
        for value in values:
            for number in self.readers.get(value, ()):
                self.waiting[number] -= 1
                if not self.waiting[number]:
                    self._arrive(number)

    def _early(self) -> None:
        """What depends on parameters alone and is small comes first, so that it stands between no two stages."""
        stage = Serial()
        self.stages.append(stage)
        while True:
            found = [number for number in self.ready if self._is_early(self.steps.steps[number])]
            if not found:
                return
            for number in found:
                self.ready.remove(number)
            heapq.heapify(self.ready)
            for number in found:
                self._append(stage, number)

    def _is_early(self, step: Step) -> bool:
        bare = all(out.bare for out in step.outs)
        return bare and sum(self.steps.bytes(value) for value in step.outputs) <= EARLY

    def _next(self) -> None:
        stage = self.stages[-1]
        if isinstance(stage, Rows):
            for number in sorted(self.ready):
                if number > self.last + AHEAD:
                    break
                cuts = self._cuts(self.steps.steps[number], stage)
                if cuts is not None and not self._can_wait(self.steps.steps[number], stage):
                    self.ready.remove(number)
                    heapq.heapify(self.ready)
                    self._join(stage, number, cuts)
                    return
        self._open(self._first())

    def _first(self) -> int:
        """The step to begin a stage with: a sum only if there is nothing else, for it can join any with its rows."""
        number = min(self.ready, key=lambda one: (kernel_of(self.steps.steps[one].op).sums, one))
        self.ready.remove(number)
        heapq.heapify(self.ready)
        return number

    def _can_wait(self, step: Step, stage: Rows) -> bool:
        """Whether a large product gains nothing here, and memory is freed before it is needed.

        No chain reads it, and what it reads lives whole for a reader elsewhere.
        """
        if not kernel_of(step.op).product or self.steps.bytes(step.outputs[0]) < LARGE:
            return False
        read = {number for value in step.inputs if value in stage.inside for number in self.readers.get(value, ())}
        elsewhere = any(self._lead(number) != stage.lead for number in read)
        return elsewhere and not any(self._lead(number) == stage.lead for number in self._seen_by(step))

    def _lead(self, number: int) -> Lead:
        """The rows that a step goes over; none if it shares itself out."""
        step = self.steps.steps[number]
        return () if type(step.op) in SPREADS else self._rows(step)

    def _rows(self, step: Step) -> Lead:
        """The rows of what a step makes, or of what it sums."""
        value = step.inputs[0] if kernel_of(step.op).sums else step.outputs[0]
        return self.steps.shapes[value][:-1]

    def _seen_by(self, step: Step) -> Iterator[int]:
        """The steps that read the output of a step, or a view of it."""
        todo = list(step.outputs)
        while todo:
            for number in self.readers.get(todo.pop(), ()):
                outputs = self.steps.steps[number].outputs
                if outputs[0] in self.aliases.free:
                    todo.extend(outputs)
                else:
                    yield number

    def _open(self, number: int) -> None:
        """Begin a stage with a step, or go on with a serial one."""
        step = self.steps.steps[number]
        self.made_here = set()
        self.last = number
        if type(step.op) in SPREADS:
            self._append(Spread(step), number)
            return
        lead = self._rows(step)
        rows = Rows(lead)
        cuts = self._cuts(step, rows) if lead else None
        if cuts is not None:
            self.stages.append(rows)
            self._join(rows, number, cuts)
        else:
            stage = self.stages[-1]
            self._append(stage if isinstance(stage, Serial) else Serial(), number)

    def _append(self, stage: Spread | Serial, number: int) -> None:
        step = self.steps.steps[number]
        if not self.stages or self.stages[-1] is not stage:
            self.stages.append(stage)
        if isinstance(stage, Serial):
            stage.steps.append(step)
        self._made(step)

    def _join(self, stage: Rows, number: int, cuts: tuple[Cut, ...]) -> None:
        step = self.steps.steps[number]
        kernel = kernel_of(step.op)
        stage.members.append(Member(step, kernel, cuts))
        stage.inside.update(() if kernel.sums else step.outputs)
        self.made_here.update(self.aliases.root(value) for value in step.outputs)
        self.last = max(self.last, number)
        self._made(step)

    def _cuts(self, step: Step, stage: Rows) -> tuple[Cut, ...] | None:
        """How the operands are cut if the step can join the stage; None if it cannot."""
        if type(step.op) in SPREADS:
            return None
        if self._rows(step) != stage.lead:
            return None
        straight, kernel = tuple(range(len(stage.lead))), kernel_of(step.op)
        summed = ((*straight, None),) * len(step.inputs)
        cuts = summed if kernel.sums else cuts_of(step.op, step.types, step.outs, kernel.placed)
        if cuts is None:
            return None
        for value, cut in zip(step.inputs, cuts, strict=True):
            if value in stage.inside:
                if cut[:-1] != straight or cut[-1] is not None:
                    return None
            elif self.aliases.root(value) in self.made_here:
                return None
        return cuts


def reads_of(stages: list[Stage], aliases: Aliases) -> Mapping[int, list[tuple[int, int, int]]]:
    """For each root the places where it, or a view of it, is read: stage, step within it, value."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for at, stage in enumerate(stages):
        for index, step in enumerate(stage.steps):
            for value in dict.fromkeys(step.inputs):
                found.setdefault(aliases.root(value), []).append((at, index, value))
    return found
