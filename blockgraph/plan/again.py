"""What the way back makes again of what is kept anyway, so that it need not be kept from the way there.

A value that is made element by element of others (an activation, a gain, a product of two branches) is dropped where
that keeps fewer bytes. Whoever reads it on the way back gets a copy made just before; where that is one matrix alone,
its gradient makes the columns that it works on, so that they never exist whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import field, replace
from itertools import count

from blockgraph.adjoint.ops import Slope, WithSlope
from blockgraph.adjoint.outer import Outer
from blockgraph.ops.arithmetic import Add, Multiply, Subtract
from blockgraph.ops.axes import Moving
from blockgraph.ops.elementwise import StopGradient
from blockgraph.ops.matmul import Transpose
from blockgraph.plan.kernel import FORWARD, kernel_of
from blockgraph.plan.kernels.products import is_over_rows
from blockgraph.plan.rows import pointwise
from blockgraph.plan.steps import Step, Steps
from blockgraph.records import dataclass

LEAST = 1 << 20
"""Bytes of a value from which on it may be dropped: less is sooner kept than made again."""
SLOW = 4
"""How many times as large an activation must be, which takes longer to make again than a sum or product."""
MOST = 8
"""Steps in which a value is made again at most."""


def make_again(steps: Steps, kept: Container[int]) -> None:
    """Rewrite the steps; those that make something again wait for the gradient that they are made for."""
    if steps.late:
        _Sparing(steps, kept).run()


@dataclass(slots=True)
class _Sparing:
    """`held` are the large values of the way there that the way back reads, `dropped` those it is to make again.

    `lengths` tells in how many steps at most, `through` what is made again of a held value.
    """

    steps: Steps
    kept: Container[int]
    after: set[int] = field(default_factory=set)
    there: list[Step] = field(default_factory=list)
    back: list[Step] = field(default_factory=list)
    makers: dict[int, Step] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    lengths: dict[int, int] = field(default_factory=dict)
    through: dict[int, set[int]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)
    new: Iterator[int] = field(init=False)

    def run(self) -> None:
        """Decide what is dropped, then write the steps anew."""
        self.new = count(max(self.steps.shapes) + 1)
        self.after.update(self.steps.late)
        for step in self.steps.steps:
            late = not self.after.isdisjoint(step.inputs)
            (self.back if late else self.there).append(step)
            self.after.update(step.outputs if late else ())
        for step in self.there:
            for single in _singles(step):
                self.makers[single.outputs[0]] = single
        self.places = {value: place for place, value in enumerate(self.makers)}
        self.held = {value for step in self.back for value in step.inputs if self._is_large(value)}
        fixed = self._looked_at()
        for step in reversed(self.there):
            least = LEAST if isinstance(step.op, Add | Subtract | Multiply) else SLOW * LEAST
            held = (value for value in step.outputs if value in self.held and value not in fixed)
            own = {value for value in held if self.steps.bytes(value) >= least}
            if own and all(value in self.makers and _is_quick(self.makers[value]) for value in own):
                self._drop(step, own)
        if self.dropped:
            self.steps.steps = [*self._forward(), *self._backward()]

    def _is_large(self, value: int) -> bool:
        return value in self.makers and self.steps.bytes(value) >= LEAST

    def _looked_at(self) -> set[int]:
        """What the caller gets, and what lies in memory that is kept for a value that looks at it."""
        fixed = {value for value in self.makers if value in self.kept}
        todo = list(self.held)
        while todo:
            step = self.makers[todo.pop()]
            if isinstance(step.op, Moving | StopGradient | Transpose) and step.inputs[0] in self.makers:
                fixed.add(step.inputs[0])
                todo.append(step.inputs[0])
        return fixed

    def _drop(self, step: Step, own: set[int]) -> None:
        """Drop the outputs of a step if what must be kept in their place is less, and no recipe becomes too long."""
        self.held -= own
        missing = {value for value in step.inputs if self._recipe(value, MOST - 1) is None}
        self.held |= missing
        recipes = {value: self._recipe(value) or [] for value in own}
        longer = sum(map(len, recipes.values()))
        users = {user for value in own for user in self.through.get(value, ())}
        fits = all(self.lengths[user] + longer <= MOST for user in users)
        if not fits or sum(map(self.steps.bytes, missing)) >= sum(map(self.steps.bytes, own)):
            self.held = self.held - missing | own
            return
        self.dropped |= own
        self.lengths.update({value: len(recipe) for value, recipe in recipes.items()})
        self.lengths.update({user: self.lengths[user] + longer for user in users})
        for leaf in {leaf for recipe in recipes.values() for one in recipe for leaf in one.inputs} & self.held:
            self.through.setdefault(leaf, set()).update(own, users)

    def _recipe(self, value: int, most: int | None = None) -> list[Step] | None:
        """The steps that make a value of what is held, in order; None if there are none, or more than `most`."""
        found: dict[int, Step] = {}
        todo = [value]
        while todo:
            value = todo.pop()
            if value in found or value in self.held or not self._is_large(value):
                continue
            step = self.makers[value]
            if not _is_quick(step) or (most is not None and len(found) >= most):
                return None
            found[value] = step
            todo.extend(step.inputs)
        return [found[value] for value in sorted(found, key=self.places.__getitem__)]

    def _forward(self) -> Iterator[Step]:
        """The way there, without what nobody needs any more."""
        needed = {value for step in (*self.there, *self.back) for value in step.inputs} - self.dropped
        needed.update(value for step in self.there for value in step.inputs)
        for step in self.there:
            wanted = [value for value in step.outputs if value in needed or value in self.kept]
            if wanted and len(wanted) < len(step.outputs) and self.dropped.intersection(step.outputs):
                yield from (self.makers[value] for value in wanted)
            elif wanted:
                yield step

    def _backward(self) -> Iterator[Step]:
        """The way back: gradients of matrices by recipe; what is read otherwise, or twice, is copied before."""
        readers = Counter(value for step in self.back for value in step.inputs)
        for step in self.back:
            missing = self.dropped.intersection(step.inputs)
            if step.inputs[0] in missing and readers[step.inputs[0]] == 1 and _is_over_rows(step):
                yield self._outer(step)
                continue
            for value in missing:
                yield from self._copied(value, step)
            yield replace(step, inputs=self._current(step)) if missing else step

    def _current(self, step: Step) -> tuple[int, ...]:
        """The operands, as they are now called."""
        return tuple(self.copies.get(value, value) for value in step.inputs)

    def _outer(self, step: Step) -> Step:
        """The gradient of a matrix with its left side by recipe."""
        recipe = self._recipe(step.inputs[0])
        assert recipe, "what was dropped can be made again"
        types = {value: given for one in recipe for value, given in zip(one.inputs, one.types, strict=True)}
        made = [one.outputs[0] for one in recipe]
        given = [value for value in types if value not in made]
        places = {value: place for place, value in enumerate((*given, *made))}
        op = Outer(tuple((one.op, tuple(places[value] for value in one.inputs)) for one in recipe))
        operands = tuple(types[value] for value in given)
        return replace(step, op=op, inputs=(*given, step.inputs[1]), types=(*operands, step.types[1]))

    def _copied(self, value: int, reader: Step) -> Iterator[Step]:
        """The steps that make a value again, once the gradient is there that its reader takes beside it."""
        recipe = self._recipe(value)
        assert recipe, "what was dropped can be made again"
        for step in recipe:
            made = step.outputs[0]
            if made in self.copies:
                continue
            copy = self.copies[made] = next(self.new)
            self.steps.shapes[copy], self.steps.dtypes[copy] = self.steps.shapes[made], self.steps.dtypes[made]
            self.steps.waits[copy] = tuple(one for one in reader.inputs if one in self.after)
            yield replace(step, inputs=self._current(step), outputs=(copy,))


def _singles(step: Step) -> Iterator[Step]:
    """The step, or one for each of its outputs if they can be made alone; nothing if they can not."""
    if isinstance(step.op, WithSlope):
        for op, value, out in zip((step.op.op, Slope(step.op.op)), step.outputs, step.outs, strict=True):
            yield replace(step, op=op, outputs=(value,), outs=(out,))
    else:
        for value in step.outputs:
            yield step if value == step.outputs[0] else replace(step, outputs=(value,))


def _is_quick(step: Step) -> bool:
    """Whether a step makes each element of those at its place, by a kernel: what has none takes long."""
    op = step.op.op if isinstance(step.op, Slope) else step.op
    return len(step.outputs) == 1 and kernel_of(op) is not FORWARD and pointwise(step.op, step.types, step.outs)


def _is_over_rows(step: Step) -> bool:
    return is_over_rows(step.op, *(len(given.shape or ()) for given in step.types))
