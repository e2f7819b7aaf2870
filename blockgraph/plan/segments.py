"""The calls of each stage, written down for given arrays: a stretch of a stage that one thread makes is a segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Protocol

from blockgraph.plan.kernel import CHUNK, SPREADS, Emit, Task, kernel_of
from blockgraph.plan.layout import Layout, local_lives
from blockgraph.plan.memory import Life, place
from blockgraph.plan.rows import Box, Cut, boxes, moved, shape_of, within
from blockgraph.plan.rows import volume as rows_in
from blockgraph.plan.stages import Member, Rows, Serial, Spread, Stage
from blockgraph.plan.steps import Step, Steps
from blockgraph.plan.views import Aliases
from blockgraph.records import dataclass

BLOCK = 512
"""Rows that a chain takes at once: enough for the weights to be read rarely, few enough for the caches."""

LOCAL = 1 << 22
"""Bytes of a block from which on it has half the rows in a run for gradients, which keeps enough memory as it is."""


class Frame(Protocol):
    """The arrays of one run."""

    def array(self, value: int) -> Any:
        """The whole array of a value that does not live in scratch memory, or the number it is."""


@dataclass(frozen=True, slots=True)
class Known:
    """What all segments read."""

    steps: Steps
    aliases: Aliases
    layout: Layout

    def whole(self, value: int) -> bool:
        """Whether there is a whole array, or number, of a value."""
        return self.layout.level(self.aliases.root(value)) not in ("block", "chunk")

    def changing(self, step: Step) -> bool:
        """Whether a step touches memory that is another at every call."""
        for value in (*step.inputs, *step.outputs):
            root = self.aliases.root(value)
            level = self.layout.level(root)
            if level == "fresh" or (level == "given" and root in self.steps.inputs):
                return True
        return False


class Segment(Protocol):
    """A stretch of calls of one thread. If it is `changing` it must be written anew for every run."""

    @property
    def changing(self) -> bool:
        """Whether it touches arrays that are others at every run."""

    def write(self, emit: Emit, frame: Frame) -> None:
        """Write the calls down."""


@dataclass(slots=True)
class Chain:
    """A stage of rows: where its values lie in scratch memory, and the groups of its members."""

    stage: Rows
    known: Known
    groups: list[list[int]] = field(init=False)
    offsets: dict[int, int] = field(init=False)
    local: int = field(init=False)
    blocks: list[Box] = field(init=False)
    rows: dict[int, int] = field(default_factory=dict)

    def cut(self, threads: int) -> Chain:
        """Cut the rows into blocks and give every local value its place."""
        self.groups = list(self.stage.groups())
        self._cut(threads, BLOCK)
        if self.known.steps.late and self.local > LOCAL:
            self._cut(threads, BLOCK // 2)
        return self

    def _cut(self, threads: int, most: int) -> None:
        """The same with at most so many rows in a block."""
        self.rows.clear()
        total = rows_in(tuple(slice(0, size) for size in self.stage.lead))
        width = max(self._width(member) for member in self.stage.members)
        if not any(member.kernel.product for member in self.stage.members):
            most = max(1, 4 * CHUNK // width)
        rows = max(1, min(most, -(-total // threads)))
        self.blocks = boxes(self.stage.lead, rows, threads)
        group_of = {index: number for number, group in enumerate(self.groups) for index in group}
        largest = max((rows_in(block) for block in self.blocks), default=0)
        lives = []
        for owner, row, members in local_lives(self.stage, self.known.layout, self.known.steps, self.known.aliases):
            chunk = self.known.layout.levels[owner] == "chunk"
            group = group_of[members[0]]
            held = min(largest, self._chunk_rows(self.groups[group])) if chunk else largest
            last = max(group_of[index] for index in members)
            lives.append(Life(owner, held * row, group, last))
        self.offsets, self.local = place(lives)

    def _width(self, member: Member) -> int:
        shapes = self.known.steps.shapes
        return max(1, *(shapes[value][-1] for value in (*member.step.inputs, *member.step.outputs) if shapes[value]))

    def _chunk_rows(self, group: list[int]) -> int:
        """The rows that a group takes at once."""
        if group[0] not in self.rows:
            self.rows[group[0]] = self._rows_of(group)
        return self.rows[group[0]]

    def _rows_of(self, group: list[int]) -> int:
        if self.stage.members[group[0]].kernel.product:
            return BLOCK
        made = (value for index in group for value in self.stage.members[index].step.outputs)
        return max(1, CHUNK // max(1, *(self.known.steps.shapes[value][-1] for value in made)))

    def chunks(self, group: list[int], block: Box) -> Iterator[Box]:
        """The stretches of a block that a group takes one after the other."""
        if self.stage.members[group[0]].kernel.product:
            yield block
            return
        for box in boxes(shape_of(block), self._chunk_rows(group)):
            yield moved(box, block)

    def write(self, emit: Emit, frame: Frame, block: Box, group: list[int], thread: int) -> None:
        """The calls of a group on a block."""
        straight = (*range(len(self.stage.lead)), None)
        for chunk in self.chunks(group, block):
            for index in group:
                member = self.stage.members[index]
                step = member.step
                outs = [
                    frame.array(value)[thread]
                    if member.kernel.sums
                    else self._array(emit, frame, value, straight, block, chunk)
                    for value in step.outputs
                ]
                operands = [
                    self._array(emit, frame, value, cut, block, chunk)
                    for value, cut in zip(step.inputs, member.cuts, strict=True)
                ]
                emit.start(self.local, chunk)
                member.kernel.write(emit, step.op, outs[0] if len(outs) == 1 else tuple(outs), *operands)

    def _array(self, emit: Emit, frame: Frame, value: int, cut: Cut, block: Box, chunk: Box) -> Any:
        """The rows of a value."""
        if self.known.whole(value):
            array = frame.array(value)
            return array[tuple(slice(None) if i is None else chunk[i] for i in cut)] if cut else array
        look = self.known.aliases.looks.get(value)
        if look is not None:
            return look.at(self._array(emit, frame, look.base, cut, block, chunk))
        owner = self.known.layout.owner[value]
        width, dtype = self.known.steps.shapes[value][-1], self.known.steps.dtypes[value]
        offset = emit.base + self.offsets[owner]
        if self.known.layout.levels[owner] == "chunk":
            return emit.arena.array(offset, (*shape_of(chunk), width), dtype)
        return emit.arena.array(offset, (*shape_of(block), width), dtype)[within(chunk, block)]


@dataclass(frozen=True, slots=True)
class GroupSegment:
    """A group of a chain on one block."""

    chain: Chain
    block: Box
    group: list[int]
    thread: int
    changing: bool

    def write(self, emit: Emit, frame: Frame) -> None:
        """Write the calls down."""
        self.chain.write(emit, frame, self.block, self.group, self.thread)


@dataclass(frozen=True, slots=True)
class ClearSegment:
    """The rows onto which a thread adds, all those of `rows`, before it begins: it may have nothing to add."""

    value: int
    rows: slice
    changing: bool = False

    def write(self, emit: Emit, frame: Frame) -> None:
        """Write the call down."""
        emit(frame.array(self.value)[self.rows].fill, 0)


@dataclass(frozen=True, slots=True)
class TaskSegment:
    """One task of a step that shares itself out."""

    step: Step
    task: Task
    changing: bool

    def write(self, emit: Emit, frame: Frame) -> None:
        """Write the calls down."""
        emit.start(0, ())
        outs = tuple(frame.array(value) for value in self.step.outputs)
        self.task.write(emit, outs if len(outs) > 1 else outs[0], *(frame.array(value) for value in self.step.inputs))


@dataclass(frozen=True, slots=True)
class StepSegment:
    """One step on whole values."""

    step: Step
    known: Known
    changing: bool

    def write(self, emit: Emit, frame: Frame) -> None:
        """Write the calls down."""
        outs = tuple(frame.array(value) for value in self.step.outputs)
        emit.start(0, tuple(slice(0, size) for size in self.known.steps.shapes[self.step.outputs[0]][:-1]))
        operands = (frame.array(value) for value in self.step.inputs)
        kernel_of(self.step.op).write(emit, self.step.op, outs if len(outs) > 1 else outs[0], *operands)


def shared_out(stage: Stage, known: Known, threads: int) -> list[list[Segment]]:
    """The segments of a stage, one list per thread."""
    if isinstance(stage, Serial):
        alone: list[Segment] = [StepSegment(step, known, known.changing(step)) for step in stage.steps]
        return [alone, *([] for _ in range(threads - 1))]
    if isinstance(stage, Spread):
        return _tasks(stage.step, known, threads)
    chain = Chain(stage, known).cut(threads)
    sums = [value for one in stage.members if one.kernel.sums for value in one.step.outputs]
    found: list[list[Segment]] = [
        [ClearSegment(value, slice(thread, None, threads)) for value in sums] for thread in range(threads)
    ]
    changing = [any(known.changing(stage.members[index].step) for index in group) for group in chain.groups]
    for number, block in enumerate(chain.blocks):
        thread = number * threads // len(chain.blocks)
        for group, changes in zip(chain.groups, changing, strict=True):
            found[thread].append(GroupSegment(chain, block, group, thread, changes))
    return found


def _tasks(step: Step, known: Known, threads: int) -> list[list[Segment]]:
    """The longest first, each to the thread that has least to do; each thread then keeps their order."""
    shapes = [known.steps.shapes[value] for value in step.inputs]
    tasks = list(SPREADS[type(step.op)](step.op, threads, *shapes))
    loads, own = [0] * threads, [0] * len(tasks)
    for number in sorted(range(len(tasks)), key=lambda i: -tasks[i].weight):
        own[number] = loads.index(min(loads))
        loads[own[number]] += tasks[number].weight
    changes = known.changing(step)
    found: list[list[Segment]] = [[] for _ in range(threads)]
    for task, thread in zip(tasks, own, strict=True):
        found[thread].append(TaskSegment(step, task, changes))
    return found
