"""Ops that sum, average or pick along axes, named by a pattern: `mean(x, "b t c -> b t 1")`, `cumsum(x, "b [t] c")`."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, final

from blockgraph.lazy import np
from blockgraph.op import Cost, Move, Op, Type, volume
from blockgraph.pattern import ELLIPSIS, Axes, Pattern, PatternError, parse
from blockgraph.records import dataclass

CUMSUM_HELP = 'for example cumsum(x, "b [t] c")'


@dataclass(frozen=True)
class Reduce(Op):
    """What sum, mean, max and min share: the axes that the right side of the pattern lacks are reduced.

    A 1 on the right keeps an axis of size one, which stretches when it meets the operand again.
    """

    signature = "x, axes"
    axes: str

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The pattern given. Raises PatternError when it is not one of a reduction."""
        pattern = parse(self.axes)
        if len(pattern.operands) != 1 or len(pattern.outputs) != 1:
            comma = self.axes.index(",")
            raise PatternError(f"`{self.name}` takes one value and gives one", comma, comma + 1)
        for axes in (*pattern.operands, *pattern.outputs):
            self._refuse_groups(axes)
        for letter in pattern.outputs[0]:
            if letter != "1" and letter not in pattern.operands[0]:
                message = f"`{letter}` is new: {self.name} adds no axis"
                raise _at(self.axes, str(letter), message, "use `repeat`, or write 1")
        return pattern

    def _refuse_groups(self, axes: Axes) -> None:
        if any(isinstance(axis, tuple) for axis in axes):
            start = self.axes.index("(")
            message = f"`{self.name}` takes axes one by one, not in brackets"
            raise PatternError(message, start, self.axes.index(")") + 1, "cut or join the axes with `rearrange` first")

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """One FLOP per element of the operand."""
        return Cost(elementwise=volume(types[0].shape))

    def label(self) -> str:
        """The name and the pattern."""
        return f"{self.name} {self.axes}"

    def restored(self, reduced: Any, shape: tuple[int, ...]) -> Any:
        """An array like the output, with the axes of the operand in order and size one where they were reduced."""
        plan = plan_for(self.axes, len(shape))
        kept = reduced[tuple(0 if new is None else slice(None) for new in plan.index)]
        return np.expand_dims(kept.transpose(plan.inverse), plan.reduced)


@dataclass(frozen=True, slots=True)
class Plan:
    """Reduce the axes `reduced`, permute by `order`, subscript with `index`, where None is a new axis.

    `inverse` undoes `order`.
    """

    reduced: tuple[int, ...]
    order: tuple[int, ...]
    inverse: tuple[int, ...]
    index: tuple[slice | None, ...]


@lru_cache(maxsize=1024)
def plan_for(text: str, rank: int) -> Plan:
    """How to reduce an array with `rank` axes; the pattern has been checked."""
    pattern = parse(text)
    before, after = _spelled(pattern.operands[0], rank), pattern.outputs[0]
    dots = [axis for axis in before if axis.startswith(ELLIPSIS)]
    names = [name for axis in after for name in (dots if axis == ELLIPSIS else [str(axis)])]
    kept = [axis for axis in before if axis != "1" and axis in names]
    order = tuple(kept.index(name) for name in names if name != "1")
    return Plan(
        reduced=tuple(i for i, axis in enumerate(before) if axis not in kept),
        order=order,
        inverse=tuple(sorted(range(len(order)), key=order.__getitem__)),
        index=tuple(None if name == "1" else slice(None) for name in names),
    )


def _spelled(axes: Axes, rank: int) -> list[str]:
    """One name per axis of an array with `rank` axes."""
    dots = [f"{ELLIPSIS}{index}" for index in range(rank - len(axes) + 1)]
    return [name for axis in axes for name in (dots if axis == ELLIPSIS else [str(axis)])]


def _arranged(y: Any, plan: Plan) -> Any:
    return np.asarray(y).transpose(plan.order)[plan.index]


@final
class Sum(Reduce, name="sum"):
    """y = the sum over the axes that the pattern leaves out: `sum(x, "b t c -> b t 1")`"""

    factors = "all"

    def forward(self, *arrays: Any) -> Any:
        """The sum."""
        plan = plan_for(self.axes, arrays[0].ndim)
        return _arranged(arrays[0].sum(axis=plan.reduced), plan)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy to every summand."""
        shape = arrays[0].shape
        return (np.broadcast_to(self.restored(dy, shape), shape),)


@final
class Mean(Reduce, name="mean"):
    """y = the mean over the axes that the pattern leaves out: `mean(x, "b t c -> b t 1")`"""

    factors = "all"

    def forward(self, *arrays: Any) -> Any:
        """The sum, divided."""
        plan = plan_for(self.axes, arrays[0].ndim)
        y = _arranged(arrays[0].sum(axis=plan.reduced), plan)
        return y / self._count(arrays[0].shape)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy / n to every element."""
        shape = arrays[0].shape
        return (np.broadcast_to(self.restored(dy / self._count(shape), shape), shape),)

    def _count(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape[axis] for axis in plan_for(self.axes, len(shape)).reduced)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """One FLOP per element of the operand and a division per element of the output."""
        return Cost(elementwise=volume(types[0].shape) + volume(outs[0].shape))


class Extreme(Reduce):
    """max and min; elements that tie share the gradient equally."""

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy to the elements that were picked."""
        (x,) = arrays
        picked = x == self.restored(y, x.shape)
        count = picked.sum(axis=plan_for(self.axes, x.ndim).reduced, keepdims=True, dtype=x.dtype)
        return (picked * (self.restored(dy, x.shape) / count),)

    def side(self, y: Any, *arrays: Any) -> Any:
        """Which elements were picked."""
        (x,) = arrays
        return x == self.restored(y, x.shape)


@final
class Max(Extreme, name="max"):
    """y = the largest over the axes that the pattern leaves out: `max(x, "b t c -> b c")`"""

    def forward(self, *arrays: Any) -> Any:
        """The largest."""
        plan = plan_for(self.axes, arrays[0].ndim)
        return _arranged(arrays[0].max(axis=plan.reduced, initial=-np.inf), plan)


@final
class Min(Extreme, name="min"):
    """y = the smallest over the axes that the pattern leaves out: `min(x, "b t c -> b c")`"""

    def forward(self, *arrays: Any) -> Any:
        """The smallest."""
        plan = plan_for(self.axes, arrays[0].ndim)
        return _arranged(arrays[0].min(axis=plan.reduced, initial=np.inf), plan)


@final
@dataclass(frozen=True)
class Cumsum(Op, name="cumsum"):
    """y[t] = x[0] + ... + x[t] along the axis in square brackets: `cumsum(x, "b [t] c")`"""

    signature = "x, axes"
    axes: str

    @property
    def letter(self) -> str:
        """The axis that is summed along. Raises PatternError when not exactly one is marked."""
        marked = re.findall(r"\[\s*(\w+)\s*\]", self.axes)
        if len(marked) != 1 or self.axes.count("[") != 1 or self.axes.count("]") != 1 or not marked[0].isidentifier():
            message = "cumsum needs one axis in square brackets, the one to sum along"
            raise PatternError(message, 0, len(self.axes), CUMSUM_HELP)
        return str(marked[0])

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """All axes stay. Raises PatternError."""
        assert self.letter
        if "->" in self.axes or "," in self.axes or "(" in self.axes:
            raise PatternError("cumsum takes the axes of one value", 0, len(self.axes), CUMSUM_HELP)
        plain = self.axes.replace("[", " ").replace("]", " ")
        return parse(f"{plain} -> {plain}")

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Position t reads all positions up to t."""
        return (Move(0, self.letter, None, 0),)

    def forward(self, *arrays: Any) -> Any:
        """The running sum."""
        (x,) = arrays
        return x.cumsum(axis=self._axis(x.ndim))

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The running sum from the other end."""
        axis = self._axis(dy.ndim)
        return (np.flip(np.flip(dy, axis).cumsum(axis=axis), axis),)

    def _axis(self, rank: int) -> int:
        return _spelled(self.pattern(()).operands[0], rank).index(self.letter)

    def label(self) -> str:
        """The name and the axes."""
        return f"{self.name} {self.axes}"


def _at(text: str, letter: str, message: str, help: str) -> PatternError:
    """A PatternError at the last place where a letter stands."""
    start = max(text.rfind(letter), 0)
    return PatternError(message, start, start + len(letter), help)
