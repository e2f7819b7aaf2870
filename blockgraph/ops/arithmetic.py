"""The operators of the equation language on two operands: `+ - * / **`, comparisons, and the minus sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, final

from blockgraph.dims import Shape
from blockgraph.lazy import np
from blockgraph.op import DType, Misfit, Op, Refusal, Type
from blockgraph.ops.broadcast import aligned_pattern, chain, is_number, loose, strict, unbroadcast
from blockgraph.pattern import Pattern, parse
from blockgraph.records import dataclass

WORDS: dict[DType, str] = {"float": "numbers", "int": "ids", "bool": "true and false"}
REMEDIES: dict[DType, str] = {
    "float": "",
    "int": "look the ids up in a table first, with an embedding",
    "bool": "choose between values with where(condition, a, b)",
}
RELATIONS = ("<", "<=", ">", ">=", "==", "!=")


class Binary(Op):
    """An op on two operands, element by element. `symbol` is how an equation writes it."""

    signature = "left, right"
    symbol: ClassVar[str] = ""
    sign: ClassVar[str] = ""

    def common(self, left: Type, right: Type) -> Shape | None:
        """The shape of the output; any axis of 1 may stretch. Raises Misfit (BG104)."""
        return loose(f"`{self.symbol}`", left, right)

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The axes aligned from the right."""
        left, right = types
        return aligned_pattern(types, self.common(left, right))

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """The common shape of both operands. Raises Misfit."""
        self.check_dtypes(types)
        left, right = types
        return (Type(self.common(left, right), self.result_dtype(types), left.bare and right.bare),)

    def check_dtypes(self, types: tuple[Type, ...]) -> None:
        """Raises Misfit (BG107) when an operand holds ids or booleans."""
        for index, given in enumerate(types):
            if given.dtype != "float":
                message = f"`{self.symbol}` takes numbers, not {WORDS[given.dtype]}"
                raise Misfit("BG107", message, help=REMEDIES[given.dtype], blame=index)

    def label(self) -> str:
        """The sign as mathematics writes it."""
        return self.sign or self.symbol


@dataclass(frozen=True)
class Additive(Binary):
    """`+` and `-`: shapes are equal, but for axes of 1 written as such and values made of parameters.

    `stretch=True` asks for NumPy's broadcasting, in which any axis of 1 stretches and ranks may differ.
    """

    stretch: bool = False

    def common(self, left: Type, right: Type) -> Shape | None:
        """The shape of the output. Raises Misfit (BG101)."""
        symbol = f"`{self.symbol}`"
        return loose(symbol, left, right) if self.stretch else strict(symbol, left, right)


@final
class Add(Additive, name="add", role="add"):
    """y = left + right

    Shapes as told under `Additive`; the residual connection. Source: He et al. 2015, arXiv:1512.03385, eq. 1.
    """

    symbol = "+"

    def forward(self, *arrays: Any) -> Any:
        """left + right"""
        left, right = arrays
        return left + right

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy to both, summed where an operand was stretched."""
        left, right = arrays
        return unbroadcast(dy, left), unbroadcast(dy, right)


@final
class Subtract(Additive, name="subtract", role="add"):
    """y = left - right"""

    symbol, sign = "-", "−"

    def forward(self, *arrays: Any) -> Any:
        """left - right"""
        left, right = arrays
        return left - right

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy and -dy"""
        left, right = arrays
        return unbroadcast(dy, left), None if is_number(right) else -unbroadcast(dy, right)


@final
class Multiply(Binary, name="multiply", role="scale"):
    """y = left * right, element by element"""

    factors = "all"
    symbol, sign = "*", "×"

    def forward(self, *arrays: Any) -> Any:
        """left * right"""
        left, right = arrays
        return left * right

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy * right and dy * left"""
        left, right = arrays
        dleft = None if is_number(left) else unbroadcast(chain(dy, right), left)
        return dleft, None if is_number(right) else unbroadcast(chain(dy, left), right)


@final
class Divide(Binary, name="divide", role="scale"):
    """y = left / right, element by element"""

    factors = (0,)
    symbol, sign = "/", "÷"

    def forward(self, *arrays: Any) -> Any:
        """left / right"""
        left, right = arrays
        return left / right

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy / right and -dy * y / right"""
        left, right = arrays
        with np.errstate(all="ignore"):
            inverse = 1 / right
            slope = None if is_number(right) else -y * inverse
        dleft = None if is_number(left) else unbroadcast(chain(dy, inverse), left)
        return dleft, None if slope is None else unbroadcast(chain(dy, slope), right)


@final
class Power(Binary, name="power"):
    """y = left ** right

    The gradient of the exponent is 0 where the base is not positive.
    """

    symbol = "**"

    def forward(self, *arrays: Any) -> Any:
        """left ** right; small whole exponents by products, which are some 50 times faster."""
        left, right = arrays
        return raised(left, right)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dy * right * left**(right - 1) and dy * y * log(left)"""
        left, right = arrays
        dleft = dright = None
        with np.errstate(all="ignore"):
            if not is_number(left):
                slope = right * raised(left, right - 1)
                slope = slope if is_number(right) and right != 0 else np.where(right == 0, np.zeros_like(slope), slope)
                dleft = unbroadcast(chain(dy, slope), left)
            if not is_number(right):
                base = np.asarray(left, dtype=right.dtype)
                rate = np.where(base > 0, y * np.log(base), np.zeros_like(y))
                dright = unbroadcast(chain(dy, rate), right)
        return dleft, dright


def raised(base: Any, exponent: Any) -> Any:
    """base ** exponent, without NumPy's slow power where a few products or a root do."""
    if is_number(base) or not is_number(exponent):
        return np.power(base, exponent) if not is_number(exponent) else base**exponent
    if exponent < 0:
        return 1 / raised(base, -exponent)
    if exponent == 0.5:
        return np.sqrt(base)
    if exponent != int(exponent) or exponent > 64:
        return np.power(base, exponent)
    y, square, left = None, base, int(exponent)
    while left:
        if left % 2:
            y = square if y is None else y * square
        left //= 2
        square = square * square if left else square
    return np.ones_like(base) if y is None else +y


@final
class Negate(Op, name="negate", role="scale"):
    """y = -x"""

    factors = "all"
    shape = parse("... -> ...")

    def forward(self, *arrays: Any) -> Any:
        """-x"""
        return -arrays[0]

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """-dy"""
        return (None if is_number(arrays[0]) else -dy,)

    def label(self) -> str:
        """The sign as mathematics writes it."""
        return "−"


@final
@dataclass(frozen=True)
class Compare(Binary, name="compare"):
    """y = left relation right, true or false; no gradient passes

    Ids are compared with ids and with numbers written in the equation.
    """

    function = False
    cuts = (0, 1)
    chooses = True
    relation: str = "<"

    def common(self, left: Type, right: Type) -> Shape | None:
        """The shape of the output; any axis of 1 may stretch. Raises Misfit (BG104)."""
        return loose(f"`{self.relation}`", left, right)

    def check_dtypes(self, types: tuple[Type, ...]) -> None:
        """Raises Misfit (BG107) for booleans, and for ids beside numbers that are computed."""
        for index, given in enumerate(types):
            if given.dtype == "bool":
                message = f"`{self.relation}` compares numbers, not true and false"
                raise Misfit("BG107", message, help=REMEDIES["bool"], blame=index)
        left, right = types
        mixed = left.dtype != right.dtype and not (left.bare or right.bare)
        if mixed:
            raise Misfit("BG107", f"`{self.relation}` compares {WORDS[left.dtype]} with {WORDS[right.dtype]}", blame=1)

    def result_dtype(self, types: tuple[Type, ...]) -> DType:
        """True and false."""
        return "bool"

    def refusals(self) -> Iterator[Refusal]:
        """An unknown relation."""
        if self.relation not in RELATIONS:
            yield Refusal("relation", f"`{self.relation}` is no comparison", f"write one of {' '.join(RELATIONS)}")

    def forward(self, *arrays: Any) -> Any:
        """left relation right"""
        left, right = arrays
        names = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
        return getattr(np, names[RELATIONS.index(self.relation)])(left, right)

    def side(self, y: Any, *arrays: Any) -> Any:
        """The answer."""
        return y

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """Nothing."""
        return None, None

    def label(self) -> str:
        """The relation."""
        return self.relation
