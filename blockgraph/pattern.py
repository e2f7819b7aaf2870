"""Axis patterns: `b t (h d) -> b h t d`, for shape rules and for the functions that take a pattern.

A letter (or word) names an axis, `...` any leading axes, `1` an axis of size one that may stretch, and a
bracketed group one axis made of several. The notation is that of einops.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from blockgraph.dims import STRETCH, Dim, DimError, Shape
from blockgraph.records import dataclass

ELLIPSIS: Final = "..."
Axis = str | tuple[str, ...]
Axes = tuple[Axis, ...]


class PatternError(ValueError):
    """The pattern text is malformed; `start` and `end` are offsets into it."""

    def __init__(self, message: str, start: int = 0, end: int = 0, help: str = "") -> None:
        self.start, self.end, self.help = start, end, help
        super().__init__(message)


class PatternMisfit(Exception):
    """Shapes do not fit a pattern. `operand` is the guilty operand; `found` and `expected` its two dims."""

    def __init__(
        self,
        message: str,
        operand: int,
        axis: Axis | None = None,
        found: Dim | None = None,
        expected: Dim | None = None,
    ) -> None:
        self.message, self.operand, self.axis, self.found, self.expected = message, operand, axis, found, expected
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern: the axes of each operand and of each output."""

    operands: tuple[Axes, ...]
    outputs: tuple[Axes, ...]

    def bind(self, shapes: tuple[Shape, ...], sizes: Mapping[str, Dim]) -> dict[str, Shape]:
        """What each letter stands for, as a shape of one dim (`...`: of any length). Raises PatternMisfit."""
        found: dict[str, Shape] = {letter: (dim,) for letter, dim in sizes.items()}
        for index, (axes, shape) in enumerate(zip(self.operands, shapes, strict=True)):
            _bind_operand(axes, shape, index, found)
        return found

    def outputs_for(self, shapes: tuple[Shape, ...], sizes: Mapping[str, Dim]) -> tuple[Shape, ...]:
        """The shapes of the outputs. Raises PatternMisfit when an operand does not fit."""
        found = self.bind(shapes, sizes)
        return tuple(_output(axes, found) for axes in self.outputs)

    def __str__(self) -> str:
        sides = (
            ", ".join(" ".join(axis_text(axis) for axis in axes) for axes in side)
            for side in (self.operands, self.outputs)
        )
        return " -> ".join(sides)


def axis_text(axis: Axis) -> str:
    """The text of one axis: `h`, `(h d)`."""
    return axis if isinstance(axis, str) else f"({' '.join(axis)})"


@cache
def parse(text: str) -> Pattern:
    """The pattern in `text`, which must have one `->`. Raises PatternError."""
    left, arrow, right = text.partition("->")
    if not arrow:
        raise PatternError(
            "a pattern needs `->` between what goes in and what comes out", 0, len(text), 'for example "b t c -> b c t"'
        )
    if "->" in right:
        start = len(left) + 2 + right.index("->")
        raise PatternError("a pattern has one `->` only", start, start + 2)
    operands = _side(left, 0)
    outputs = _side(right, len(left) + 2)
    return Pattern(operands, outputs)


def _side(text: str, offset: int) -> tuple[Axes, ...]:
    found: list[Axes] = []
    start = offset
    for part in text.split(","):
        found.append(_axes(part, start))
        start += len(part) + 1
    return tuple(found)


def _axes(text: str, offset: int) -> Axes:
    axes: list[Axis] = []
    group: list[str] | None = None
    for word, start in _words(text, offset):
        if word == "(":
            if group is not None:
                raise PatternError("a group may not stand in a group", start, start + 1)
            group = []
        elif word == ")":
            if group is None:
                raise PatternError("this bracket closes nothing", start, start + 1)
            axes.append(tuple(group))
            group = None
        elif not ((word.isidentifier() and word.isascii()) or word in (ELLIPSIS, "1")):
            raise PatternError(
                f"`{word}` is no axis name", start, start + len(word), "use letters or words, `...` and 1"
            )
        elif group is not None and word == ELLIPSIS:
            raise PatternError("`...` may not stand in a group", start, start + len(word), "name the axes")
        elif group is not None:
            group.append(word)
        else:
            axes.append(word)
    if group is not None:
        raise PatternError("a bracket is not closed", offset, offset + len(text))
    _refuse_repeats(axes, text, offset)
    return tuple(axes)


def _refuse_repeats(axes: list[Axis], text: str, offset: int) -> None:
    letters = [letter for axis in axes for letter in ((axis,) if isinstance(axis, str) else axis)]
    for letter in letters:
        if letter != "1" and letters.count(letter) > 1:
            start = offset + text.rindex(letter)
            raise PatternError(f"`{letter}` stands twice in one operand", start, start + len(letter))


def _words(text: str, offset: int) -> list[tuple[str, int]]:
    words: list[tuple[str, int]] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        end = position + 1
        if text[position] not in "()":
            while end < len(text) and not text[end].isspace() and text[end] not in "()":
                end += 1
        words.append((text[position:end], offset + position))
        position = end
    return words


def _bind_operand(axes: Axes, shape: Shape, index: int, found: dict[str, Shape]) -> None:
    spread = len(shape) - len(axes)
    has_dots = ELLIPSIS in axes
    if spread < (-1 if has_dots else 0) or (spread > 0 and not has_dots):
        wanted = " ".join(axis_text(axis) for axis in axes)
        raise PatternMisfit(f"has {len(shape)} axes where `{wanted}` is expected", index)
    position = 0
    for axis in axes:
        if axis == ELLIPSIS:
            taken = shape[position : position + spread + 1]
            _agree_dots(taken, index, found)
            position += spread + 1
            continue
        dim = shape[position]
        position += 1
        if isinstance(axis, tuple):
            _bind_group(axis, dim, index, found)
        elif axis == "1":
            _agree(axis, STRETCH, dim, index)
        elif axis in found:
            _agree(axis, found[axis][0], dim, index)
        else:
            found[axis] = (dim,)


def _agree(axis: Axis, expected: Dim, dim: Dim, index: int) -> None:
    if dim != expected:
        raise PatternMisfit(f"axis `{axis_text(axis)}` does not fit", index, axis, dim, expected)


def _agree_dots(taken: Shape, index: int, found: dict[str, Shape]) -> None:
    known = found.setdefault(ELLIPSIS, taken)
    if known == taken:
        return
    if len(known) != len(taken):
        raise PatternMisfit("the leading axes differ in number", index, ELLIPSIS)
    for expected, dim in zip(known, taken, strict=True):
        _agree(ELLIPSIS, expected, dim, index)


def _bind_group(group: tuple[str, ...], dim: Dim, index: int, found: dict[str, Shape]) -> None:
    known, unknown = Dim(1), []
    for letter in group:
        if letter in found:
            known = known * found[letter][0]
        elif letter != "1":
            unknown.append(letter)
    if len(unknown) > 1:
        raise PatternMisfit(
            f"the sizes of `{unknown[0]}` and `{unknown[1]}` cannot both be told from one axis", index, group
        )
    if not unknown:
        _agree(group, known, dim, index)
        return
    try:
        found[unknown[0]] = (dim / known,)
    except DimError as error:
        raise PatternMisfit(str(error), index, group, dim, known) from None


def _output(axes: Axes, found: Mapping[str, Shape]) -> Shape:
    shape: list[Dim] = []
    for axis in axes:
        if axis == "1":
            shape.append(STRETCH)
        elif isinstance(axis, tuple):
            total = Dim(1)
            for letter in axis:
                total = total * (Dim(1) if letter == "1" else found[letter][0])
            shape.append(total)
        elif axis in found:
            shape.extend(found[axis])
        else:
            raise PatternMisfit(f"the size of `{axis}` is not known: give it as `{axis}=...`", 0, axis)
    return tuple(shape)
