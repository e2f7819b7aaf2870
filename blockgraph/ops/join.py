"""Ops that join values along an axis, and cut one into several."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, final

from blockgraph.dims import Dim, Shape
from blockgraph.lazy import np
from blockgraph.op import Misfit, Move, Size, Type
from blockgraph.ops.axes import Moving
from blockgraph.pattern import ELLIPSIS, Pattern, PatternError
from blockgraph.records import dataclass

MAX_PARTS = 4096


def axis_in(text: str) -> int:
    """The axis in square brackets, `1` in `"b [t] c"` and `-1` in `"... [c]"`. Raises PatternError."""
    words = text.split()
    marked = [i for i, word in enumerate(words) if re.fullmatch(r"\[\w+\]", word)]
    if len(marked) != 1:
        raise PatternError("one axis must stand in square brackets", 0, len(text), 'for example "b [t] c"')
    for found in re.finditer(r"\S+", text):
        if not re.fullmatch(r"[A-Za-z_]\w*|\[[A-Za-z_]\w*\]|\.\.\.|1", found.group()):
            message, help = f"`{found.group()}` is no axis name", "use letters or words, `...` and 1"
            raise PatternError(message, found.start(), found.end(), help)
    (axis,) = marked
    return axis - len(words) if ELLIPSIS in words[:axis] else axis


@final
@dataclass(frozen=True)
class Concat(Moving, name="concat", role="move"):
    """y = the operands one after another, along the last axis unless `axes` says `"b [t] c"`

    All other axes are the same in every operand.
    """

    signature = "*xs"
    factors = ()
    axes: str = "... [c]"

    def check_dtypes(self, types: tuple[Type, ...]) -> None:
        """All hold the same."""
        for index, given in enumerate(types):
            if given.dtype != types[0].dtype:
                raise Misfit("BG107", "`concat` cannot join numbers, ids and booleans with one another", blame=index)

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The sizes along the axis add up."""
        if not types:
            raise Misfit("BG105", "`concat` needs at least one value")
        self.check_dtypes(types)
        axis = axis_in(self.axes)
        dtype, bare = types[0].dtype, all(t.bare for t in types)
        shapes = [t.shape for t in types if t.shape is not None]
        if len(shapes) < len(types):
            return (Type(None, dtype, bare),)
        for index, shape in enumerate(shapes):
            self._fit(shape, shapes[0], axis, index)
        total = sum((shape[axis] for shape in shapes[1:]), shapes[0][axis])
        return (Type(_replaced(shapes[0], axis, total), dtype, bare),)

    def _fit(self, shape: Shape, first: Shape, axis: int, index: int) -> None:
        """Raises Misfit when an operand does not line up with the first."""
        words = self.axes.split()
        few = len(words) - 1 if ELLIPSIS in words else len(words)
        if len(shape) < few or (len(shape) > few and ELLIPSIS not in words):
            raise Misfit("BG105", f'a value of shape {{}} does not fit "{self.axes}" in `concat`', shape, blame=index)
        if len(shape) != len(first):
            raise Misfit("BG105", "`concat` joins values with as many axes: {} and {}", first, shape, blame=index)
        if _replaced(shape, axis, Dim(0)) != _replaced(first, axis, Dim(0)):
            raise Misfit(
                "BG104",
                "the values of `concat` differ beside the axis that is joined: {} and {}",
                first,
                shape,
                help='another axis is joined by `axes="b [t] c"`',
                blame=index,
            )

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Every axis keeps its letter; `moves` says where the operands lie along the joined one."""
        rank = next((len(t.shape) for t in types if t.shape is not None), 0)
        axes = tuple(f"a{i}" for i in range(rank))
        return Pattern((axes,) * len(types), (axes,))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Operand i is read at the output's position less the sizes before it."""
        found, before, axis = [], Dim(0), axis_in(self.axes)
        for index, given in enumerate(types):
            if given.shape is None:
                return ()
            found.append(Move(index, f"a{axis % len(given.shape)}", -before, -before))
            before = before + given.shape[axis]
        return tuple(found)

    def forward(self, *arrays: Any) -> Any:
        """One copy."""
        return np.concatenate(arrays, axis=axis_in(self.axes))

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The stretch of each operand."""
        axis = axis_in(self.axes)
        ends = np.cumsum([x.shape[axis] for x in arrays])[:-1]
        return tuple(np.split(dy, ends, axis=axis))


def _replaced(shape: Shape, axis: int, dim: Dim) -> Shape:
    index = axis % len(shape)
    return (*shape[:index], dim, *shape[index + 1 :])


@final
@dataclass(frozen=True)
class Split(Moving, name="split", role="move"):
    """x cut along the last axis: `split(x, [D1, D2])` into these sizes, `split(x, 3)` into equal parts"""

    signature = "x, parts"
    parts: Size | tuple[Size, ...]

    def widths(self, width: Dim) -> tuple[Dim, ...]:
        """The sizes of the parts. Raises Misfit."""
        if isinstance(self.parts, tuple):
            return tuple(Dim(part) for part in self.parts)
        count = Dim(self.parts).as_int()
        if count is None or not 1 <= count <= MAX_PARTS:
            message = f"into how many parts `split` cuts must be a number from 1 to {MAX_PARTS}, not {{}}"
            raise Misfit("BG108", message, Dim(self.parts), help="cut an axis in two with rearrange instead")
        return (width / count,) * count

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The parts, which must sum to the axis. Raises Misfit."""
        (given,) = types
        if given.shape == ():
            raise Misfit("BG105", "`split` needs an axis to cut, and a single number has none", blame=0)
        widths = self.widths(given.shape[-1] if given.shape else Dim(1))
        if given.shape is None:
            return tuple(Type(None, given.dtype, given.bare) for _ in widths)
        total = sum(widths, Dim(0))
        if total != given.shape[-1]:
            raise Misfit("BG108", "the parts sum to {} but the axis is {}", total, given.shape[-1], blame=0)
        return tuple(Type((*given.shape[:-1], width), given.dtype, given.bare) for width in widths)

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Equal parts are a group cut in two; parts of other sizes are axes of their own."""
        if isinstance(self.parts, tuple):
            return Pattern(((ELLIPSIS, "c"),), tuple((ELLIPSIS, f"c{i}") for i in range(len(self.parts))))
        count = len(self.widths(Dim(1)))
        return Pattern(((ELLIPSIS, ("n", "c")),), ((ELLIPSIS, "c"),) * count)

    def sizes_by_letter(self) -> dict[str, Dim]:
        """The sizes of the parts, or their number."""
        if isinstance(self.parts, tuple):
            return {f"c{i}": Dim(part) for i, part in enumerate(self.parts)}
        return {"n": Dim(self.parts)}

    def forward(self, *arrays: Any) -> Any:
        """Views."""
        (x,) = arrays
        return tuple(x[..., start:stop] for start, stop in pairwise(self._edges(x.shape[-1])))

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """The gradients of the parts side by side; a part that is not used has none."""
        (x,) = arrays
        dx = np.zeros_like(x)
        for part, (start, stop) in zip(dy, pairwise(self._edges(x.shape[-1])), strict=True):
            if part is not None:
                dx[..., start:stop] = part
        return (dx,)

    def _edges(self, width: int) -> list[int]:
        edges = [0]
        for part in self.widths(Dim(width)):
            edges.append(edges[-1] + int(part.evaluate({})))
        return edges
