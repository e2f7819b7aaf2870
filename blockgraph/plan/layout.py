"""Which memory each value has: its own, that of an operand that is done with, or none beyond a block of rows.

A value that is only read within its stage lives as long as a block of rows is worked on, or only a chunk of that. The
others live whole: in the arena of the workspace, or in arrays made for the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import accumulate
from typing import Literal

from blockgraph.plan.kernel import kernel_of
from blockgraph.plan.memory import Life
from blockgraph.plan.stages import Rows, Serial, Spread, Stage, reads_of
from blockgraph.plan.steps import Step, Steps
from blockgraph.plan.views import Aliases
from blockgraph.records import dataclass

Level = Literal["given", "fresh", "whole", "block", "chunk"]
"""Given by the caller; made for the caller; in the arena; in the scratch memory of a thread."""
SMALL = 1 << 16
"""Bytes up to which an input is copied into the arena and a result out of it: all calls can then be kept."""


@dataclass(slots=True)
class Layout:
    """`owner` of each root: the value whose memory it has. `levels` by owner; `lives` of whole owners, by stage."""

    owner: dict[int, int] = field(default_factory=dict)
    levels: dict[int, Level] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)

    def level(self, root: int) -> Level:
        """Where a root lies."""
        return self.levels[self.owner.get(root, root)]


@dataclass(slots=True)
class Layouter:
    """Decides for all values. `kept` are the values that the caller gets.

    What was made before the stage `often` and is read from there on stays as it is: those stages may run again.
    """

    steps: Steps
    aliases: Aliases
    stages: list[Stage]
    kept: frozenset[int]
    often: int
    starts: list[int] = field(init=False)
    reads: Mapping[int, list[tuple[int, int, int]]] = field(init=False)
    born: dict[int, tuple[int, int]] = field(init=False)
    groups: dict[int, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Note where every root is made and read."""
        lengths = (len(stage.steps) if isinstance(stage, Serial) else 1 for stage in self.stages)
        self.starts = [0, *accumulate(lengths)]
        self.reads = reads_of(self.stages, self.aliases)
        self.born = {
            self.aliases.root(value): (at, index)
            for at, stage in enumerate(self.stages)
            for index, step in enumerate(stage.steps)
            for value in step.outputs
        }

    def run(self) -> Layout:
        """The layout."""
        found = Layout()
        roots = {self.aliases.root(value) for value in self.kept}
        small = {value for value in self.steps.inputs if self.steps.bytes(value) <= SMALL}
        given = ({*self.steps.inputs} - small) | self.steps.params.keys() | self.steps.constants.keys()
        found.levels.update(dict.fromkeys(given, "given"))
        self._share(found, given | small, roots)
        members: dict[int, list[int]] = {}
        for root in (*small, *self.born):
            members.setdefault(found.owner.setdefault(root, root), []).append(root)
        for owner, values in members.items():
            self._settle(found, owner, values, roots, owner in small)
        return found

    def _share(self, found: Layout, given: set[int], kept: set[int]) -> None:
        """Let outputs have the memory of an operand that is read here for the last time."""
        for at, stage in enumerate(self.stages):
            for index, step in enumerate(stage.steps):
                out = step.outputs[0]
                if out in self.aliases.looks or isinstance(stage, Spread):
                    continue
                for place in kernel_of(step.op).over:
                    value = step.inputs[place] if place < len(step.inputs) else -1
                    if value in given | kept or not self._fits(at, index, step, value, out):
                        continue
                    found.owner[out] = found.owner.setdefault(value, value)
                    break

    def _fits(self, at: int, index: int, step: Step, value: int, out: int) -> bool:
        """Whether `value` can make room for `out`: same form, no reader after this, and all near it see it by rows."""
        if value < 0 or value in self.aliases.looks or value not in self.born:
            return False
        if self.steps.shapes[value] != self.steps.shapes[out] or self.steps.dtypes[value] != self.steps.dtypes[out]:
            return False
        if any(self.aliases.root(one) == value and one != value for one in step.inputs):
            return False
        if at >= self.often and self.born[value][0] < self.often:
            return False
        reads = self.reads[value]
        if any((stage, place) > (at, index) for stage, place, _ in reads):
            return False
        here = [(place, one) for stage, place, one in reads if stage == at]
        return not isinstance(self.stages[at], Rows) or all(self._straight(at, place, one) for place, one in here)

    def _straight(self, at: int, index: int, value: int) -> bool:
        """Whether a member of a chain reads of a value just the rows that it makes."""
        stage = self.stages[at]
        assert isinstance(stage, Rows)
        member = stage.members[index]
        straight = (*range(len(stage.lead)), None)
        return all(cut == straight for one, cut in zip(member.step.inputs, member.cuts, strict=True) if one == value)

    def _settle(self, found: Layout, owner: int, values: list[int], kept: set[int], small: bool) -> None:
        """Level and life of an owner."""
        born = [self.born[value] for value in values if value in self.born]
        reads = [(stage, index) for value in values for stage, index, _ in self.reads.get(value, ())]
        moments = born + reads
        first = -1 if small else min(self._moment(*one) for one in born)
        last = max((self._moment(*one) for one in moments), default=first)
        if any(stage >= self.often for stage, _ in reads) and (small or min(born)[0] < self.often):
            last = self.starts[-1]
        if not kept.isdisjoint(values):
            value = next(value for value in values if value in kept)
            if self.steps.bytes(value) > SMALL:
                found.levels[owner] = "fresh"
                return
            last = self.starts[-1]
        elif not small and (stage := self._one_chain(values, moments)) is not None:
            group_of = self._group_of(moments[0][0], stage)
            one_group = len({group_of[index] for _, index in moments}) == 1
            found.levels[owner] = "chunk" if one_group else "block"
            return
        found.levels[owner] = "whole"
        found.lives.append(Life(owner, self.steps.bytes(owner), first, last))

    def _group_of(self, at: int, stage: Rows) -> dict[int, int]:
        """The number of the group of each member of a chain."""
        if at not in self.groups:
            pairs = ((index, number) for number, group in enumerate(stage.groups()) for index in group)
            self.groups[at] = dict(pairs)
        return self.groups[at]

    def _moment(self, stage: int, index: int) -> int:
        """When a step runs: those of a chain all at once, because blocks of rows take turns."""
        return self.starts[stage] + (index if isinstance(self.stages[stage], Serial) else 0)

    def _one_chain(self, values: list[int], moments: list[tuple[int, int]]) -> Rows | None:
        """The chain in which these values are made and seen, row block by row block; None if there is none."""
        stage = self.stages[moments[0][0]]
        if not isinstance(stage, Rows) or any(at != moments[0][0] for at, _ in moments):
            return None
        seen = {*values, *(value for root in values for _, _, value in self.reads.get(root, ()))}
        return stage if seen <= stage.inside else None


def local_lives(stage: Rows, layout: Layout, steps: Steps, aliases: Aliases) -> Iterator[tuple[int, int, list[int]]]:
    """Of the owners that live in scratch memory: the owner, its bytes in a row, and the members that touch it."""
    touched: dict[int, list[int]] = {}
    for index, member in enumerate(stage.members):
        for value in (*member.step.inputs, *member.step.outputs):
            root = aliases.root(value)
            owner = layout.owner.get(root, root)
            if layout.levels[owner] in ("block", "chunk"):
                touched.setdefault(owner, []).append(index)
    for owner, indices in touched.items():
        yield owner, steps.shapes[owner][-1] * int(steps.dtypes[owner].itemsize), indices
