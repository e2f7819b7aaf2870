"""The ops that only gradients need: what is saved on the way there, and what is done with it on the way back.

They are no functions of the equation language. A letter that an output shares with no operand, moved over without
bounds, says that nothing may be cut there.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Move, Op, Type, volume
from blockgraph.ops.activations import Activation
from blockgraph.ops.broadcast import aligned_pattern, chain, loose
from blockgraph.ops.elementwise import Unary
from blockgraph.ops.gather import add_rows
from blockgraph.ops.norms import column_sums, normalised, row_means
from blockgraph.ops.rope import Rope
from blockgraph.pattern import Axes, Pattern, parse
from blockgraph.records import dataclass


@dataclass(frozen=True)
class Adjoint(Op):
    """An op that no equation can call."""

    function = False


@final
@dataclass(frozen=True)
class Normalised(Adjoint):
    """z = x / sqrt(mean(x*x) + eps) and the inverse of that root, of rows less their mean where they are `centred`"""

    name: ClassVar[str] = "normalised"
    shape = parse("... c -> ... c, ... 1")
    eps: float
    centred: bool

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Every feature of a row is read for each of its features."""
        return (Move(0, "c", None, None),)

    def forward(self, *arrays: Any) -> Any:
        """The rows, and one number for each."""
        (x,) = arrays
        return normalised(x - row_means(x) if self.centred else x, self.eps)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Mean, difference, square, its mean and the quotient."""
        return Cost(elementwise=volume(outs[0].shape) * 5)


@final
@dataclass(frozen=True)
class NormBackward(Adjoint):
    """dx = (dz - mean(dz) - z * mean(dz * z)) * inverse; without the first mean where the rows were not `centred`"""

    name: ClassVar[str] = "norm backward"
    signature = "dz, z, inverse"
    shape = parse("... c, ... c, ... 1 -> ... c")
    centred: bool

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Every feature of a row is read for each of its features."""
        return (Move(0, "c", None, None), Move(1, "c", None, None))

    def forward(self, *arrays: Any) -> Any:
        """The gradient of the rows before they were normalised."""
        dz, z, inverse = arrays
        dx = dz - row_means(dz) if self.centred else dz.copy()
        dx -= z * (np.vecdot(dz, z) / max(z.shape[-1], 1))[..., None]
        dx *= inverse
        return dx

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Two means, two products and a difference."""
        return Cost(elementwise=volume(outs[0].shape) * 7)


@final
@dataclass(frozen=True)
class WithSlope(Adjoint):
    """y = curve(x), and dy/dx beside it: what makes the one makes most of the other."""

    name: ClassVar[str] = "with slope"
    shape = parse("... -> ..., ...")
    op: Activation

    def forward(self, *arrays: Any) -> Any:
        """The values and their slopes."""
        (x,) = arrays
        y = self.op.curve(x)
        return y, _slope(self.op, y, x)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Twice the formula."""
        return Cost(elementwise=volume(outs[0].shape) * self.op.operations * 2)


@final
@dataclass(frozen=True)
class Slope(Adjoint):
    """dy/dx of a curve, where its value is not wanted"""

    name: ClassVar[str] = "slope"
    shape = parse("... -> ...")
    op: Activation

    def forward(self, *arrays: Any) -> Any:
        """The slopes."""
        (x,) = arrays
        return _slope(self.op, self.op.curve(x), x)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """As the formula."""
        return Cost(elementwise=volume(outs[0].shape) * self.op.operations)


def _slope(op: Activation, y: Any, x: Any) -> Any:
    """The slope of a curve, in the type of x; where there is none it is not finite."""
    with np.errstate(all="ignore"):
        return np.asarray(op.slope(y, x)).astype(x.dtype, copy=False)


@final
@dataclass(frozen=True)
class Chain(Adjoint):
    """dx = dy * slope; 0 times an infinite or undefined slope is 0, for that branch was not chosen"""

    name: ClassVar[str] = "chain"
    signature = "dy, slope"

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The axes aligned from the right."""
        return aligned_pattern(types, loose("`*`", *types))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The common shape."""
        return (Type(loose("`*`", *types)),)

    def forward(self, *arrays: Any) -> Any:
        """The product."""
        return chain(*arrays)


@final
@dataclass(frozen=True)
class Elementwise(Adjoint):
    """dx from dy, y and x of a function of one value, element by element"""

    name: ClassVar[str] = "elementwise backward"
    signature = "dy, y, x"
    shape = parse("..., ..., ... -> ...")
    op: Unary

    def forward(self, *arrays: Any) -> Any:
        """dy times the slope."""
        dy, y, x = arrays
        return self.op.backward(dy, y, x)[0]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """As the formula, and the product."""
        return Cost(elementwise=volume(outs[0].shape) * (self.op.operations + 1))


@final
@dataclass(frozen=True)
class Rowwise(Adjoint):
    """dx from dy, y and x of an op that works on each row by itself"""

    name: ClassVar[str] = "row backward"
    signature = "dy, y, x"
    shape = parse("... c, ... c, ... c -> ... c")
    op: Op

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Every element of a row is read for each of its elements."""
        return tuple(Move(index, "c", None, None) for index in range(3))

    def forward(self, *arrays: Any) -> Any:
        """The op's own backward."""
        dy, y, x = arrays
        return self.op.backward(dy, y, x)[0]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """A product and a sum, a difference and a product."""
        return Cost(elementwise=volume(outs[0].shape) * 4)


@final
@dataclass(frozen=True)
class TurnedBack(Adjoint):
    """dx = dy with its pairs turned back by the angles of `rope`"""

    name: ClassVar[str] = "rope backward"
    signature = "dy"
    shape = parse("... t d -> ... t d")
    op: Rope

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Features of a pair mix."""
        return (Move(0, "d", None, None),)

    def counts(self, types: tuple[Type, ...]) -> Any:
        """Positions count as they do for the op."""
        return self.op.counts(types)

    def forward(self, *arrays: Any) -> Any:
        """The turn back."""
        return self.op.backward(arrays[0], None, arrays[0])[0]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """As the turn."""
        return self.op.cost(types, outs)


@final
@dataclass(frozen=True)
class AddRows(Adjoint):
    """y[v] = total[v] + sum of dy where the id is v: the gradient of a table that has another gradient already"""

    name: ClassVar[str] = "add rows"
    signature = "total, dy, ids"
    operand_dtypes = ("float", "float", "int")

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Any row of the table may get any of the gradients."""
        return _apart(types, types[:1])

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Nothing may be cut."""
        return _uncut(types[:1])

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The shape of the table."""
        return (Type(types[0].shape),)

    def forward(self, *arrays: Any) -> Any:
        """The sum."""
        total, dy, ids = arrays
        y = total.copy()
        add_rows(y, dy.reshape(-1, total.shape[-1]), ids.reshape(-1))
        return y


@dataclass(frozen=True)
class Columns(Adjoint):
    """A sum over all axes but the last."""

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """One FLOP per element and operand."""
        return Cost(elementwise=volume(types[0].shape) * len(types))


@final
@dataclass(frozen=True)
class ColumnSum(Columns):
    """y[c] = the sum of x over all rows"""

    name: ClassVar[str] = "column sum"

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """All axes but the last are summed."""
        return Pattern((_rows(types[0]),), (("c",),))

    def forward(self, *arrays: Any) -> Any:
        """The sum."""
        return column_sums(arrays[0])


@final
@dataclass(frozen=True)
class ColumnDot(Columns):
    """y[c] = the sum of a * b over all rows"""

    name: ClassVar[str] = "column dot"
    signature = "a, b"

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """All axes but the last are summed."""
        return Pattern((_rows(types[0]), _rows(types[0])), (("c",),))

    def forward(self, *arrays: Any) -> Any:
        """The sum of the products."""
        a, b = arrays
        return column_sums(a * b)


@final
@dataclass(frozen=True)
class Parts(Columns):
    """y[p, c] = the same over a share of the rows; which rows are whose is for the plan to say

    Operands are those of `op`. All shares add up to what it computes.
    """

    name: ClassVar[str] = "parts of columns"
    signature = "*arrays"
    op: Columns
    shares: int

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """All axes but the last are summed."""
        return Pattern(tuple(_rows(given) for given in types), (("p", "c"),))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """A row for every share."""
        return tuple(Type((Dim(self.shares), *(out.shape or ()))) for out in self.op.infer(*types))

    def forward(self, *arrays: Any) -> Any:
        """All rows in the first share."""
        first = self.op.forward(*arrays)
        return np.concatenate([first[None], np.zeros((self.shares - 1, *first.shape), first.dtype)])


def _rows(given: Type) -> Axes:
    return (*(f"r{axis}" for axis in range(len(given.shape or ()) - 1)), "c")


@final
@dataclass(frozen=True)
class Backward(Adjoint):
    """The gradients of any op by its own `backward`: of the operands that `wants` marks

    Operands are the gradients of the outputs that have one (`has`), then outputs and operands of the op.
    """

    name: ClassVar[str] = "backward"
    signature = "*arrays"
    op: Op
    has: tuple[bool, ...]
    wants: tuple[bool, ...]

    def _parts(self, arrays: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """Gradients, outputs and operands."""
        first, second = sum(self.has), sum(self.has) + len(self.has)
        return arrays[:first], arrays[first:second], arrays[second:]

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """Nothing is known of where which element goes."""
        return _apart(types, self.infer(*types))

    def moves(self, types: tuple[Type, ...]) -> tuple[Move, ...]:
        """Nothing may be cut."""
        return _uncut(self.infer(*types))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The shapes of the operands that get a gradient."""
        _, _, operands = self._parts(types)
        return tuple(Type(x.shape) for x, wanted in zip(operands, self.wants, strict=True) if wanted)

    def forward(self, *arrays: Any) -> Any:
        """The op's own backward; zeros where it has none."""
        given, ys, xs = self._parts(arrays)
        left = iter(given)
        dys = tuple(next(left) if has else None for has in self.has)
        single = len(self.has) == 1
        found = self.op.backward(dys[0] if single else dys, ys[0] if single else ys, *xs)
        pairs = zip(found, xs, self.wants, strict=True)
        wanted = tuple(np.zeros_like(x) if dx is None else np.asarray(dx) for dx, x, want in pairs if want)
        return wanted if len(wanted) > 1 else wanted[0]

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Twice that of the op."""
        _, ys, xs = self._parts(types)
        once = self.op.cost(xs, ys)
        return Cost(once.products * 2, once.elementwise * 2)


def _apart(types: tuple[Type, ...], outs: tuple[Type, ...]) -> Pattern:
    """A pattern in which no axis of an output is one of an operand."""

    def axes(side: str, given: tuple[Type, ...]) -> tuple[Axes, ...]:
        return tuple(tuple(f"{side}{i}_{axis}" for axis in range(len(one.shape or ()))) for i, one in enumerate(given))

    return Pattern(axes("x", types), axes("y", outs))


def _uncut(outs: tuple[Type, ...]) -> tuple[Move, ...]:
    """All axes of all outputs, read everywhere."""
    return tuple(
        Move(0, f"y{i}_{axis}", None, None) for i, one in enumerate(outs) for axis in range(len(one.shape or ()))
    )
