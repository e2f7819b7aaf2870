"""Ops that move elements without changing them, by pattern: rearrange, repeat, and the cutting of heads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Builder, Cost, DType, Op, Refusal, Size, Type, whole
from blockgraph.pattern import ELLIPSIS, Axes, Axis, Pattern, PatternError, parse
from blockgraph.records import dataclass

Sizes = tuple[tuple[str, Size], ...]


class Moving(Op):
    """An op that only moves elements: it keeps the dtype and computes nothing."""

    factors: ClassVar[tuple[int, ...] | Literal["all"]] = "all"
    operand_dtypes: ClassVar[tuple[DType | Literal["any"], ...]] = ("any",)

    def result_dtype(self, types: tuple[Type, ...]) -> DType:
        """That of the operand."""
        return types[0].dtype

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Nothing is computed."""
        return Cost()


@dataclass(frozen=True)
class ByPattern(Moving):
    """What `rearrange` and `repeat` share: one operand, a pattern, and sizes by keyword."""

    signature = "x, axes"
    axes: str
    sizes: Sizes = ()

    def sizes_by_letter(self) -> Mapping[str, Dim]:
        """The sizes given by keyword."""
        return {letter: Dim(size) for letter, size in self.sizes}

    def checked(self) -> tuple[Pattern, list[str]]:
        """The pattern, and the letters that only the output has. Raises PatternError."""
        pattern = parse(self.axes)
        if len(pattern.operands) != 1 or len(pattern.outputs) != 1:
            comma = self.axes.index(",")
            raise PatternError(f"`{self.name}` takes one value and gives one", comma, comma + 1)
        before, after = _letters(pattern.operands[0]), _letters(pattern.outputs[0])
        for letter in before:
            if letter not in after:
                message = f"`{letter}` is lost: {self.name} keeps every axis"
                raise at_letter(self.axes, letter, message, "sum, mean and max reduce an axis")
        return pattern, [letter for letter in after if letter not in before]

    def refusals(self) -> Iterator[Refusal]:
        """A size for a letter that the pattern does not have, a size below one."""
        for letter, size in self.sizes:
            number = Dim(size).number
            if number is not None and (number < 1 or number.denominator > 1):
                yield Refusal(letter, f"the size of `{letter}` must be a whole number from 1, not {number}")
            if not _find(self.axes, letter):
                yield Refusal(letter, f'"{self.axes}" has no axis `{letter}`', "leave it out, or add it to the pattern")

    def forward(self, *arrays: Any) -> Any:
        """Cut the groups, permute, stretch, join the groups."""
        (x,) = arrays
        plan = plan_for(self.axes, x.shape, self.sizes)
        y = x.reshape(plan.split).transpose(plan.order).reshape(plan.spots)
        return (np.broadcast_to(y, plan.full) if plan.new else y).reshape(plan.out)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The same moves backwards; what was repeated is summed."""
        (x,) = arrays
        plan = plan_for(self.axes, x.shape, self.sizes)
        dx = dy.reshape(plan.full)
        if plan.new:
            dx = dx.sum(axis=plan.new)
        permuted = tuple(plan.split[axis] for axis in plan.order)
        inverse = sorted(range(len(plan.order)), key=plan.order.__getitem__)
        return (dx.reshape(permuted).transpose(inverse).reshape(x.shape),)

    def label(self) -> str:
        """The pattern."""
        return self.axes


@final
class Rearrange(ByPattern, name="rearrange", role="move"):
    """y = x with its axes permuted, cut and joined: `rearrange(x, "b t (h d) -> b h t d", h=H)`

    Source: Rogozhnikov 2022, einops, ICLR.
    """

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The pattern given. Raises PatternError where it drops or adds an axis."""
        pattern, added = self.checked()
        for letter in added:
            message = f"`{letter}` is new: rearrange adds no axis"
            raise at_letter(self.axes, letter, message, "write 1, or use `repeat`", self.axes.index("->"))
        return pattern


@final
class Repeat_(ByPattern, name="repeat", role="move"):
    """y = x repeated along new axes: `repeat(x, "b t c -> b r t c", r=4)`

    The underscore keeps it apart from `graph.Repeat`, the stack. Source: Rogozhnikov 2022, einops, ICLR.
    """

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The pattern given. Raises PatternError where it drops an axis or a new one has no size."""
        pattern, added = self.checked()
        given = dict(self.sizes)
        for letter in added:
            if letter not in given:
                message, help = f"how often `{letter}` repeats is not known", f"give it: repeat(..., {letter}=4)"
                raise at_letter(self.axes, letter, message, help, self.axes.index("->"))
        return pattern


def _letters(axes: Axes) -> list[str]:
    return [letter for axis in axes for letter in _members(axis) if letter != "1"]


def _members(axis: Axis) -> tuple[str, ...]:
    return (axis,) if isinstance(axis, str) else axis


def _find(text: str, letter: str, start: int = 0) -> re.Match[str] | None:
    return re.compile(rf"(?<![\w.]){re.escape(letter)}(?![\w.])").search(text, start)


def at_letter(text: str, letter: str, message: str, help: str, after: int = 0) -> PatternError:
    """The error about a letter, at its place in the pattern."""
    found = _find(text, letter, after)
    start = found.start() if found else 0
    return PatternError(message, start, start + len(letter), help)


@dataclass(frozen=True, slots=True)
class Plan:
    """A rearrangement of one shape: reshape to `split`, permute by `order`, reshape to `spots`, stretch, join to `out`.

    `full` is the stretched shape, `new` its axes that repeat.
    """

    split: tuple[int, ...]
    order: tuple[int, ...]
    spots: tuple[int, ...]
    full: tuple[int, ...]
    new: tuple[int, ...]
    out: tuple[int, ...]


@lru_cache(maxsize=1024)
def plan_for(text: str, shape: tuple[int, ...], sizes: Sizes) -> Plan:
    """How to rearrange an array of this shape."""
    pattern = parse(text)
    given = {letter: Dim(size) for letter, size in sizes}
    found = pattern.bind((tuple(Dim(size) for size in shape),), given)
    length = {f"{ELLIPSIS}{i}": int(dim.evaluate({})) for i, dim in enumerate(found.get(ELLIPSIS, ()))}
    length |= {letter: int(dims[0].evaluate({})) for letter, dims in found.items() if letter != ELLIPSIS}
    dots = tuple(letter for letter in length if letter.startswith(ELLIPSIS))
    before = [letter for letter in _spelled(pattern.operands[0], dots) if letter != "1"]
    after = _spelled(pattern.outputs[0], dots)
    full = tuple(1 if letter == "1" else length[letter] for letter in after)
    groups = [dots if axis == ELLIPSIS else _members(axis) for axis in pattern.outputs[0]]
    return Plan(
        split=tuple(length[letter] for letter in before),
        order=tuple(before.index(letter) for letter in after if letter in before),
        spots=tuple(length[letter] if letter in before else 1 for letter in after),
        full=full,
        new=tuple(i for i, letter in enumerate(after) if letter not in before and letter != "1"),
        out=tuple(_joined(axis, group, length) for axis, group in _output_axes(pattern.outputs[0], groups)),
    )


def _spelled(axes: Axes, dots: tuple[str, ...]) -> list[str]:
    """All letters in order, `...` spelled out as one letter per axis."""
    return [letter for axis in axes for letter in (dots if axis == ELLIPSIS else _members(axis))]


def _output_axes(axes: Axes, groups: list[tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for axis, group in zip(axes, groups, strict=True):
        if axis == ELLIPSIS:
            yield from ((letter, (letter,)) for letter in group)
        else:
            yield str(axis), group


def _joined(axis: str, group: tuple[str, ...], length: Mapping[str, int]) -> int:
    total = 1
    for letter in group:
        total *= 1 if letter == "1" else length[letter]
    return total


@final
@dataclass(frozen=True)
class Heads(Moving, name="heads", role="move"):
    """y[..., h, t, d] = x[..., t, h*D + d]: the features cut into heads, each head's together

    x (..., T, C) gives (..., H, T, C/H). Source: Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2.2.
    """

    signature = "x, heads"
    shape = parse("... t (h d) -> ... h t d")
    heads: Size

    def sizes_by_letter(self) -> Mapping[str, Dim]:
        """The number of heads."""
        return {"h": Dim(self.heads)}

    def refusals(self) -> Iterator[Refusal]:
        """A number of heads below one."""
        number = Dim(self.heads).number
        if number is not None and (number < 1 or number.denominator > 1):
            yield Refusal("heads", f"the number of heads must be a whole number from 1, not {number}")

    def forward(self, *arrays: Any) -> Any:
        """A view where the layout allows it."""
        (x,) = arrays
        heads = whole(self.heads)
        return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = merge(dy)"""
        return (dy.swapaxes(-2, -3).reshape(arrays[0].shape),)

    def expand(self, g: Builder, *values: int) -> int:
        """A rearrange."""
        return g(Rearrange("... t (h d) -> ... h t d", (("h", self.heads),)), *values)


@final
class Merge(Moving, name="merge", role="move"):
    """y[..., t, h*D + d] = x[..., h, t, d]: heads joined again, the inverse of `heads`

    Source: Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2.2.
    """

    shape = parse("... h t d -> ... t (h d)")

    def forward(self, *arrays: Any) -> Any:
        """One copy."""
        (x,) = arrays
        swapped = x.swapaxes(-2, -3)
        return swapped.reshape(*swapped.shape[:-2], x.shape[-3] * x.shape[-1])

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx = heads(dy)"""
        *lead, heads, steps, width = arrays[0].shape
        return (dy.reshape(*lead, steps, heads, width).swapaxes(-2, -3),)

    def expand(self, g: Builder, *values: int) -> int:
        """A rearrange."""
        return g(Rearrange("... h t d -> ... t (h d)"), *values)
