"""A schedule bound to arrays: a flat list of calls over numbered slots, with nothing left to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, Final

from blockgraph.decode.cache import Rows
from blockgraph.decode.compute import compute, empty
from blockgraph.decode.derive import Cut, Keep, Part, Run, Schedule, Step, Take
from blockgraph.decode.fused import Joined, joined
from blockgraph.decode.single_query import attention
from blockgraph.decode.views import NEW, PAST_ROWS, Clock, mentions
from blockgraph.graph import Condition
from blockgraph.op import Op, whole
from blockgraph.ops.attend import Attend
from blockgraph.records import dataclass

Slots = list[Any]
Call = Callable[[Slots, Clock], None]
FIRST_TABLE: Final = 256  # positions that tables are made for at first
FEW: Final = 16  # rows up to which it costs more to let go of arrays than to hold them


@dataclass(frozen=True, slots=True)
class Bind:
    """A call with the slots it reads and writes; `keeps`: later steps read what it writes elsewhere."""

    call: Call
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    keeps: bool = False


@dataclass
class Bound:
    """The calls of one step; `slots` hold what is the same at every step, `places` where each part is."""

    schedule: Schedule
    slots: Slots
    places: dict[Part, int]
    calls: list[Bind]
    rows: dict[int, Rows]
    tables: Tables

    def __post_init__(self) -> None:
        kept = set(self.places.values()) - {index for one in self.calls for index in one.writes}
        self.all = [one.call for one in self.calls]
        self.freeing = _freeing(self.calls, kept | {self.places[part] for part in self.schedule.outputs})
        self.feeding = _freeing(_without_readers(self.calls), kept)

    def step(self, given: Mapping[int, Any], clock: Clock, wanted: bool = True) -> list[Any]:
        """The outputs for new rows of the inputs, by value; none if they are not wanted."""
        self.tables.reach(clock.total)
        slots = self.slots.copy()
        for value, array in given.items():
            if Part(value, (NEW,)) in self.places:
                slots[self.places[Part(value, (NEW,))]] = array
        if wanted and clock.new < FEW:
            for call in self.all:
                call(slots, clock)
        else:
            for call, dead in self.freeing if wanted else self.feeding:
                call(slots, clock)
                for index in dead:
                    slots[index] = None
        return [slots[self.places[part]] for part in self.schedule.outputs] if wanted else []

    def settle(self, clock: Clock) -> None:
        """Let go of room that only a step of many rows needed."""
        for rows in self.rows.values():
            rows.settle(clock)


def _freeing(calls: Sequence[Bind], kept: Set[int]) -> list[tuple[Call, tuple[int, ...]]]:
    """The calls, each with the slots that nothing reads after it."""
    last = {index: position for position, one in enumerate(calls) for index in (*one.writes, *one.reads)}
    dead: dict[int, list[int]] = {}
    for index, position in last.items():
        if index not in kept:
            dead.setdefault(position, []).append(index)
    return [(one.call, tuple(dead.get(position, ()))) for position, one in enumerate(calls)]


def _without_readers(calls: Sequence[Bind]) -> list[Bind]:
    """The calls without which later steps would lack something."""
    needed: set[int] = set()
    found = []
    for one in reversed(calls):
        if one.keeps or needed.intersection(one.writes):
            needed.update(one.reads)
            found.append(one)
    return found[::-1]


class Tables:
    """Values that depend on positions alone, computed for more of them than are needed yet."""

    def __init__(
        self, schedule: Schedule, known: Mapping[int, Any], numbers: Mapping[str, int], dtype: Any, length: int
    ) -> None:
        self.schedule, self.known, self.numbers, self.dtype = schedule, known, numbers, dtype
        self.length = 0
        self.wished = length
        self.arrays: dict[int, Any] = {}

    def reach(self, total: int) -> None:
        """Make them long enough."""
        if total <= self.length or not self.schedule.tables:
            return
        symbol = str(self.schedule.timing.time)
        self.length = longest(self.schedule.graph.conditions, symbol, self.numbers, total, max(2 * total, self.wished))
        numbers = {**self.numbers, symbol: self.length}
        self.arrays = compute(self.schedule.graph, self.schedule.tables, self.known, numbers, self.dtype)


def longest(conditions: Iterable[Condition], symbol: str, numbers: Mapping[str, int], least: int, most: int) -> int:
    """The largest number of positions up to `most` for which all bounds hold; `least` is known to be one."""
    bounds = [one for one in conditions if symbol in one.symbols]
    if any(one.relation != "at most" for one in bounds):
        return least
    while least < most:
        middle = (least + most + 1) // 2
        if any(one.holds({**numbers, symbol: middle}) is False for one in bounds):
            most = middle - 1
        else:
            least = middle
    return least


def bind(
    schedule: Schedule, known: Mapping[int, Any], numbers: Mapping[str, int], dtype: Any, length: int | None
) -> Bound:
    """The calls for these numbers of all symbols but time; `known` are parameters and the inputs without time."""
    fixed = compute(schedule.graph, schedule.fixed, known, numbers, dtype)
    work = _Binding(
        schedule, numbers, dtype, length, Tables(schedule, {**known, **fixed}, numbers, dtype, length or FIRST_TABLE)
    )
    for value, array in fixed.items():
        work.slots[work.place(Part(value))] = array
    for step in joined(schedule, fixed):
        work.add(step)
    for part in schedule.outputs:
        work.place(part)  # an input may be an output as it is
    return Bound(schedule, work.slots, work.places, work.calls, work.rows, work.tables)


@dataclass
class _Binding:
    schedule: Schedule
    numbers: Mapping[str, int]
    dtype: Any
    length: int | None
    tables: Tables
    slots: Slots = field(default_factory=list)
    places: dict[Part, int] = field(default_factory=dict)
    calls: list[Bind] = field(default_factory=list)
    rows: dict[int, Rows] = field(default_factory=dict)

    def place(self, part: Part) -> int:
        """The slot of a part."""
        if part not in self.places:
            self.places[part] = len(self.slots)
            self.slots.append(None)
        return self.places[part]

    def add(self, step: Step | Joined) -> None:
        """Add the call of a step."""
        if isinstance(step, Run):
            self._run(step)
        elif isinstance(step, Joined):
            outputs = tuple(self.place(part) for part in step.targets)
            self._bind(_call(step.forward, (self.place(step.source),), outputs), (self.place(step.source),), outputs)
        elif isinstance(step, Cut):
            source, target = self.place(step.source), self.place(step.target)
            self._bind(_cut(source, target, self._taken(step.target)), (source,), (target,))
        elif isinstance(step, Take):
            target = self.place(step.target)
            self._bind(_take(self.tables, step, target), (), (target,))
        else:
            self._keep(step)

    def _bind(self, call: Call, reads: tuple[int, ...], writes: tuple[int, ...], keeps: bool = False) -> None:
        self.calls.append(Bind(call, reads, writes, keeps))

    def _taken(self, part: Part) -> tuple[tuple[int, Any], ...]:
        axes = self.schedule.timing.axes(part.value)
        return tuple((axis, past) for axis, past in zip(axes, part.view, strict=True))

    def _keep(self, step: Keep) -> None:
        rows = self.rows[step.source.value] = Rows(step.axis, step.past, self.length)
        source, reads = self.place(step.source), [(self.place(part), part.view[0]) for part in step.reads]
        self._bind(_keep(rows, source, reads), (source,), tuple(target for target, _ in reads), keeps=True)

    def _run(self, step: Run) -> None:
        assert isinstance(step.node.op, Op), "stacks are written out before they are decoded"
        symbol = str(self.schedule.timing.time)
        shapes = {index: self._shape(step.inputs[index]) for index in step.like}
        inputs = tuple(-1 if index in shapes else self.place(part) for index, part in enumerate(step.inputs))
        outputs = tuple(self.place(part) for part in step.outputs)
        if symbol not in step.node.op.symbols and not shapes:
            self._bind(_call(self._forward(step), inputs, outputs), inputs, outputs)
            return
        sized = _Sized(step, symbol, self.numbers, shapes, self.dtype, self.schedule)
        self._bind(_sized(sized, inputs, outputs), tuple(index for index in inputs if index >= 0), outputs)

    def _forward(self, step: Run) -> Callable[..., Any]:
        """The forward of an op that is the same at every step."""
        assert isinstance(step.node.op, Op), "stacks are written out before they are decoded"
        op = step.node.op.bind(self.numbers)
        if isinstance(op, Attend) and self._sees_all(op, step.inputs[1]):
            return attention(op)
        return op.forward

    def _sees_all(self, op: Attend, keys: Part) -> bool:
        """Whether one new query sees all keys that it is handed."""
        if "keep" in op.given or (op.alibi and not op.local):
            return False
        if op.window is None:
            return True
        return op.mask == "causal" and keys.view == (whole(op.window) - 1,)

    def _shape(self, part: Part) -> Callable[[Clock], tuple[int, ...]]:
        """The shape of an operand that is not there, at every step."""
        axes = dict(self._taken(part))
        shape = self.schedule.graph.types[part.value].shape or ()
        symbol = str(self.schedule.timing.time)

        def at(clock: Clock) -> tuple[int, ...]:
            numbers = {**self.numbers, symbol: clock.total}
            return tuple(
                clock.rows(axes[axis]) if axis in axes else int(dim.evaluate(numbers)) for axis, dim in enumerate(shape)
            )

        return at


@dataclass
class _Sized:
    """An op whose options or operands have sizes that change with the step."""

    step: Run
    symbol: str
    numbers: Mapping[str, int]
    shapes: Mapping[int, Callable[[Clock], tuple[int, ...]]]
    dtype: Any
    schedule: Schedule

    def forward(self, clock: Clock, arrays: list[Any]) -> Any:
        """Bind the op and run it."""
        op = self.step.node.op
        assert isinstance(op, Op), "stacks are written out before they are decoded"
        size = clock.total if mentions(self.step.size, str(PAST_ROWS)) else clock.new
        for index, shape in self.shapes.items():
            given = self.schedule.graph.types[self.step.inputs[index].value]
            arrays[index] = empty(given, shape(clock), self.dtype)
        return op.bind({**self.numbers, self.symbol: size}).forward(*arrays)


def _sized(op: _Sized, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Call:
    def call(slots: Slots, clock: Clock) -> None:
        result = op.forward(clock, [slots[index] if index >= 0 else None for index in inputs])
        if len(outputs) == 1:
            slots[outputs[0]] = result
        else:
            for index, one in zip(outputs, result, strict=True):
                slots[index] = one

    return call


def _call(forward: Callable[..., Any], inputs: Sequence[int], outputs: Sequence[int]) -> Call:
    """One op with its slots; those of one output and one or two operands are most."""
    if len(outputs) > 1:

        def several(slots: Slots, clock: Clock) -> None:
            for index, one in zip(outputs, forward(*[slots[at] for at in inputs]), strict=True):
                slots[index] = one

        return several
    (out,) = outputs
    if len(inputs) == 1:
        (only,) = inputs

        def unary(slots: Slots, clock: Clock) -> None:
            slots[out] = forward(slots[only])

        return unary
    if len(inputs) == 2:
        left, right = inputs

        def binary(slots: Slots, clock: Clock) -> None:
            slots[out] = forward(slots[left], slots[right])

        return binary

    def many(slots: Slots, clock: Clock) -> None:
        slots[out] = forward(*[slots[at] for at in inputs])

    return many


def _cut(source: int, target: int, axes: tuple[tuple[int, Any], ...]) -> Call:
    def call(slots: Slots, clock: Clock) -> None:
        x = slots[source]
        index = [slice(None)] * x.ndim
        for axis, past in axes:
            index[axis] = slice(x.shape[axis] - clock.rows(past), None)
        slots[target] = x[tuple(index)]

    return call


def _take(tables: Tables, step: Take, target: int) -> Call:
    before, value, past = (slice(None),) * step.axis, step.value, step.target.view[0]

    def call(slots: Slots, clock: Clock) -> None:
        slots[target] = tables.arrays[value][(*before, slice(clock.total - clock.rows(past), clock.total))]

    return call


def _keep(rows: Rows, source: int, reads: list[tuple[int, Any]]) -> Call:
    def call(slots: Slots, clock: Clock) -> None:
        rows.put(slots[source], clock)
        for target, past in reads:
            slots[target] = rows.last(past, clock)

    return call
