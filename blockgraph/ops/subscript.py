"""Subscripts: `x[:, 0]`, `x[..., :D]`, `x[:, 1:]`, `x[None]`, with sizes that hold for all numbers."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import Any, final

from blockgraph.dims import STRETCH, Dim, DimError, Shape
from blockgraph.lazy import np
from blockgraph.op import Misfit, Move, Need, Size, Type
from blockgraph.ops.axes import Moving
from blockgraph.pattern import Axis, Pattern
from blockgraph.records import dataclass

Stretch = tuple[Size | None, Size | None, Size | None]
Item = Size | Stretch | EllipsisType | None
"""An integer, `(first, stop, step)` of a slice, `...`, or None for a new axis of size one."""
WHOLE: Stretch = (None, None, None)


@dataclass(frozen=True, slots=True)
class Cut:
    """What a subscript does to one axis: `axis` of the operand (None: a new one), and what of it is read.

    `size` None: one position is read and the axis goes away.
    """

    axis: int | None
    first: Dim
    size: Dim | None
    step: int = 1


@final
@dataclass(frozen=True)
class Index(Moving, name="index", role="move"):
    """y = x[items], with NumPy's meaning of integers, slices, `...` and None

    A negative number counts from the end, also a negative size such as `-W`. Source: NumPy, basic indexing.
    """

    signature = "x, items"
    function = False
    items: tuple[Item, ...]

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The symbolic sizes of the slices. Raises Misfit where no formula gives one."""
        (given,) = types
        if given.shape is None:
            return (Type(None, given.dtype, given.bare),)
        cuts = self.reads(given.shape)
        shape = tuple(self._size(cut, given.shape) for cut in cuts if cut.size is not None)
        return (Type(shape, given.dtype, given.bare),)

    def _size(self, cut: Cut, shape: Shape) -> Dim:
        """The size of a kept axis; one that is kept whole keeps its very dim."""
        assert cut.size is not None
        if cut.axis is None:
            return STRETCH
        whole = shape[cut.axis]
        return whole if cut.first == 0 and cut.step == 1 and cut.size == whole else cut.size

    def reads(self, shape: Shape) -> tuple[Cut, ...]:
        """What happens to each axis, in the order of the output. Raises Misfit."""
        found: list[Cut] = []
        axis = 0
        for item in self.spelled(len(shape)):
            if item is None:
                found.append(Cut(None, Dim(0), STRETCH))
                continue
            found.append(_cut(item, axis, shape[axis]))
            axis += 1
        return tuple(found)

    def spelled(self, rank: int) -> tuple[Size | Stretch | None, ...]:
        """The items with `...` replaced by whole axes. Raises Misfit when there are too many."""
        dots = [i for i, item in enumerate(self.items) if item is Ellipsis]
        used = sum(item is not None and item is not Ellipsis for item in self.items)
        if len(dots) > 1:
            raise Misfit("BG105", "a subscript may have one `...` only", blame=0)
        if used > rank:
            raise Misfit("BG105", "the subscript names {} axes and the value has {}", used, rank, blame=0)
        at = dots[0] if dots else len(self.items)
        items = (*self.items[:at], *(WHOLE,) * (rank - used), *self.items[at + 1 :])
        return tuple(item for item in items if not isinstance(item, EllipsisType))

    def needs(self, types: tuple[Type, ...]) -> Iterator[Need]:
        """What is read must lie within the axis."""
        shape = types[0].shape
        for cut in self.reads(shape) if shape is not None else ():
            if cut.axis is None or shape is None:
                continue
            length = Dim(1) if cut.size is None else cut.size * cut.step
            yield from _unless_plain(Dim(0), cut.first)
            yield from _unless_plain(cut.first, cut.first + length)
            yield from _unless_plain(cut.first + (length if cut.step == 1 else Dim(0)), shape[cut.axis])

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Sliced axes keep their letters; `moves` says where they are read."""
        shape = types[0].shape
        if shape is None:
            return Pattern((("...",),), (("...",),))
        axes = tuple(f"a{i}" for i in range(len(shape)))
        kept = (cut.axis for cut in self.reads(shape) if cut.size is not None)
        output: tuple[Axis, ...] = tuple("1" if axis is None else axes[axis] for axis in kept)
        return Pattern((axes,), (output,))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Position t of a slice is read at `first + t`; the axes left whole are not listed."""
        shape = types[0].shape
        return tuple(
            Move(0, f"a{cut.axis}", cut.first, cut.first if cut.step == 1 else None)
            for cut in (self.reads(shape) if shape is not None else ())
            if cut.axis is not None and cut.size is not None and shape is not None and cut.size != shape[cut.axis]
        )

    def forward(self, *arrays: Any) -> Any:
        """A view."""
        return arrays[0][self.key()]

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Zeros with dy where it was read."""
        dx = np.zeros_like(arrays[0])
        dx[self.key()] = dy
        return (dx,)

    def key(self) -> tuple[Any, ...]:
        """The subscript as NumPy takes it; the op must be bound."""
        return tuple(slice(*item) if isinstance(item, tuple) else item for item in self.items)

    def label(self) -> str:
        """`[:, 0]`"""
        return f"[{', '.join(_text(item) for item in self.items)}]"


def _text(item: Item) -> str:
    if isinstance(item, tuple):
        first, stop, step = ("" if part is None else str(part) for part in item)
        return f"{first}:{stop}" + (f":{step}" if step else "")
    return "..." if item is Ellipsis else str(item)


def _cut(item: Size | Stretch, axis: int, size: Dim) -> Cut:
    """What an integer or a slice reads of an axis of this size. Raises Misfit."""
    if not isinstance(item, tuple):
        return Cut(axis, _inside(_from_start(Dim(item), size), size), None)
    first, stop, step = item
    stride = 1 if step is None else Dim(step).as_int()
    if stride is None or stride < 1:
        raise Misfit("BG106", "the step of a slice must be a number from 1, not {}", Dim(step or 0), blame=0)
    start = Dim(0) if first is None else _from_start(Dim(first), size)
    end = size if stop is None else _from_start(Dim(stop), size)
    _refuse_outside(start, end, size)
    return Cut(axis, start, _steps(end - start, stride, size), stride)


def _from_start(bound: Dim, size: Dim) -> Dim:
    """The bound counted from the start; one without a positive term counts from the end."""
    return size + bound if negative(bound) else bound


def negative(dim: Dim) -> bool:
    """Whether it is below zero whatever the sizes: no term is positive. (A Dim prints a positive term first.)"""
    return dim != 0 and str(dim).startswith("-")


def _inside(position: Dim, size: Dim) -> Dim:
    if position.number is not None and size.number is not None and not 0 <= position.number < size.number:
        message = "position {} lies outside an axis of {}"
        raise Misfit("BG106", message, position, size, help="positions count from 0", blame=0)
    return position


def _refuse_outside(start: Dim, end: Dim, size: Dim) -> None:
    """Raises Misfit for a slice that is wrong for all sizes: NumPy would shorten it in silence."""
    below, beyond = size - end, end - start
    if negative(below) or negative(start) or negative(beyond):
        help = "write a slice that lies within the axis, in its sizes, such as `x[:, :T - 1]`"
        message = "the slice from {} to {} does not fit an axis of {}"
        raise Misfit("BG106", message, start, end, size, help=help, blame=0)


def _steps(length: Dim, step: int, size: Dim) -> Dim:
    """How many positions a slice reads: ceil(length / step). Raises Misfit where that has no formula."""
    if step == 1:
        return length
    number = length.as_int()
    if number is not None:
        return Dim(-(-number // step))
    try:
        steps = length / step
    except DimError as error:
        raise Misfit("BG106", str(error), blame=0) from None
    if steps.conditions():
        help = 'cut the axis in two and take one: `rearrange(x, "b (t two) c -> b t two c", two=2)[:, :, 0]`'
        message = "how many positions every {} of {} are has no formula that holds for all numbers"
        raise Misfit("BG106", message, step, size, help=help, blame=0)
    return steps


def _unless_plain(smaller: Dim, larger: Dim) -> Iterator[Need]:
    """The need, unless it holds for all sizes: they are whole and at least 1, so T - 1 is never below zero."""
    if not negative(smaller - larger - 1):
        yield Need(smaller, larger)
