"""Real numbers with symbols, for options and constants: `(2*N)**0.25`, `1/sqrt(layer)`, `D**-0.5`.

Unlike a size, such a number is never rearranged: expanding `(a - b)**2` would change what the floats give.
An expression is kept as its steps in postfix order, so that no depth of nesting needs recursion.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar, final

from blockgraph.dims import Dim
from blockgraph.errors import near

Real = int | float
MAX_STEPS = 10_000
MAX_INT_BITS = 1023  # so that every whole number has a finite float too
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_T = TypeVar("_T")


class NumberError(ValueError):
    """A number that cannot be: a root of a negative, a division by zero, an overflow; the message is for users."""


class Apply(NamedTuple):
    """The step that takes the last `arity` results and pushes `function` of them; `neg` is the unary minus."""

    function: str
    arity: int


Step = Real | str | Apply
"""A constant, a symbol or an application."""


class Function(NamedTuple):
    """A function of numbers: how it is computed, with at least `low` and at most `high` arguments."""

    compute: Callable[..., Any]
    low: int = 1
    high: int = 1


FUNCTIONS: dict[str, Function] = {
    "abs": Function(abs),
    "ceil": Function(math.ceil),
    "cos": Function(math.cos),
    "exp": Function(math.exp),
    "floor": Function(math.floor),
    "log": Function(math.log),
    "max": Function(max, 2, 100),
    "min": Function(min, 2, 100),
    "sin": Function(math.sin),
    "sqrt": Function(math.sqrt),
    "tanh": Function(math.tanh),
}
"""What may be called in a number."""


@final
class Number:
    """A constant, a symbol or an expression of them, immutable; equal when written the same way.

    Constants fold at once and whole ones stay exact: `Number(2) * 3` is 6, and `6/3` is 2.

    >>> N = Number("N")
    >>> print((2 * N) ** 0.25, Number(Dim("C") * 4), Number(2) * 3)
    (2*N)**0.25 4*C 6

    Raises NumberError where a constant part has no real, finite value.
    """

    __slots__ = ("steps",)
    steps: tuple[Step, ...]

    def __new__(cls, value: Real | Dim | str | Number) -> Number:
        """The number `value` stands for; a str is one symbol."""
        if isinstance(value, str):
            if not _NAME.match(value):
                raise NumberError(f"{value!r} is not a name: use letters, digits and _, with a letter first")
            return _new((value,))
        number = _operand(value)
        if number is None:
            raise NumberError(f"{value} is not a number")
        return number

    @staticmethod
    def call(function: str, *args: Number) -> Number:
        """`function(*args)`, one of FUNCTIONS; NumberError for an unknown one or a wrong count."""
        known = FUNCTIONS.get(function)
        if known is None:
            guess = near(function, FUNCTIONS)
            hint = f"did you mean {guess}?" if guess else f"there are {', '.join(FUNCTIONS)}"
            raise NumberError(f"there is no function {function} of numbers: {hint}")
        if not known.low <= len(args) <= known.high:
            wanted = "1 number" if known.high == 1 else f"{known.low} numbers or more"
            raise NumberError(f"{function} takes {wanted}, not {len(args)}")
        return _apply(function, args)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Number cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_new, (self.steps,))

    def __hash__(self) -> int:
        return hash(self.steps if len(self.steps) > 1 else self.steps[0])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Number):
            return self.steps == other.steps
        if isinstance(other, (int, float)):
            return self.value == other
        return NotImplemented

    def __add__(self, other: Number | Real | Dim) -> Number:
        return _binary("+", self, other)

    def __radd__(self, other: Real | Dim) -> Number:
        return _binary("+", other, self)

    def __sub__(self, other: Number | Real | Dim) -> Number:
        return _binary("-", self, other)

    def __rsub__(self, other: Real | Dim) -> Number:
        return _binary("-", other, self)

    def __mul__(self, other: Number | Real | Dim) -> Number:
        return _binary("*", self, other)

    def __rmul__(self, other: Real | Dim) -> Number:
        return _binary("*", other, self)

    def __truediv__(self, other: Number | Real | Dim) -> Number:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Real | Dim) -> Number:
        return _binary("/", other, self)

    def __pow__(self, other: Number | Real | Dim) -> Number:
        return _binary("**", self, other)

    def __rpow__(self, other: Real | Dim) -> Number:
        return _binary("**", other, self)

    def __neg__(self) -> Number:
        return _apply("neg", (self,))

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols it depends on."""
        return frozenset(step for step in self.steps if isinstance(step, str))

    @property
    def value(self) -> Real | None:
        """Its value when it has no symbols, else None."""
        step = self.steps[0]
        return step if len(self.steps) == 1 and isinstance(step, (int, float)) else None

    def subs(self, values: Mapping[str, Number | Dim | Real]) -> Number:
        """The same expression with all symbols in `values` replaced at once; what becomes constant folds."""
        if not any(isinstance(step, str) and step in values for step in self.steps):
            return self

        def leaf(step: Real | str) -> Number:
            return Number(values[step]) if isinstance(step, str) and step in values else _new((step,))

        return self._run(leaf, _apply)

    def evaluate(self, values: Mapping[str, Real]) -> Real:
        """Its value when the symbols are `values`; NumberError for a missing symbol or where there is none."""

        missing = sorted(self.symbols - values.keys())
        if missing:
            raise NumberError(f"{self} has no value, as {missing[0]} is not known")
        try:
            return self._run(lambda step: _finite(values[step]) if isinstance(step, str) else step, _compute)
        except NumberError as error:
            given = ", ".join(f"{symbol} = {values[symbol]:.6g}" for symbol in sorted(self.symbols))
            raise NumberError(f"{error}, in {self}" + (f" with {given}" if given else "")) from None

    def _run(self, leaf: Callable[[Real | str], _T], apply: Callable[[str, Sequence[_T]], _T]) -> _T:
        """The result of the steps, with `leaf` for constants and symbols and `apply` for applications."""
        stack: list[_T] = []
        for step in self.steps:
            if isinstance(step, Apply):
                args = stack[-step.arity :]
                del stack[-step.arity :]
                stack.append(apply(step.function, args))
            else:
                stack.append(leaf(step))
        return stack[0]

    def __str__(self) -> str:
        """A Python expression that reads back to the same number."""
        return self._run(_leaf_text, _application_text).text

    def __repr__(self) -> str:
        return f"<Number {self}>"


def _new(steps: tuple[Step, ...]) -> Number:
    number = object.__new__(Number)
    object.__setattr__(number, "steps", steps)
    return number


def _operand(value: object) -> Number | None:
    """`value` as a Number, or None when it is none."""
    if isinstance(value, Number):
        return value
    if isinstance(value, Dim):
        return _from_dim(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return _new((_finite(value),))


def _finite(value: Real) -> Real:
    """The value as a plain int or float; NumberError when it is infinite, not a number or too large."""
    if isinstance(value, int):
        if value.bit_length() > MAX_INT_BITS:
            raise NumberError("a whole number of more than 300 digits is too large: write a smaller one")
        return int(value)
    if not math.isfinite(value):
        raise NumberError(f"{value} is not a finite number")
    return float(value)


def _from_dim(dim: Dim) -> Number:
    """The size as it is written: `3*C/(2*H)`."""
    if not dim.terms:
        return _new((0,))
    (monomial, factor), *rest = dim.as_written
    total = _term(monomial, abs(factor.numerator), factor.denominator)
    total = -total if factor < 0 else total
    for monomial, factor in rest:
        term = _term(monomial, abs(factor.numerator), factor.denominator)
        total = total - term if factor < 0 else total + term
    return total


def _term(monomial: tuple[tuple[str, int], ...], over: int, under: int) -> Number:
    top = _factors(over, [(symbol, power) for symbol, power in monomial if power > 0])
    bottom = _factors(under, [(symbol, -power) for symbol, power in monomial if power < 0])
    return top if bottom == 1 else top / bottom


def _factors(factor: int, powers: Sequence[tuple[str, int]]) -> Number:
    parts = [_new((symbol,)) if power == 1 else _new((symbol,)) ** power for symbol, power in powers]
    return reduce(operator.mul, parts if parts and factor == 1 else [Number(factor), *parts])


def _binary(function: str, left: object, right: object) -> Number:
    """The application; NotImplemented when an operand is no number."""
    first, second = _operand(left), _operand(right)
    return NotImplemented if first is None or second is None else _apply(function, (first, second))


def _apply(function: str, args: Sequence[Number]) -> Number:
    values = [arg.value for arg in args]
    known = [value for value in values if value is not None]
    if len(known) == len(args):
        return _new((_compute(function, known),))
    steps = tuple(step for arg in args for step in arg.steps)
    if len(steps) >= MAX_STEPS:
        raise NumberError(f"this number is made of more than {MAX_STEPS} parts: write it shorter")
    return _new((*steps, Apply(function, len(args))))


def _compute(function: str, args: Sequence[Real]) -> Real:
    """`function` of constants; NumberError, in the user's words, where it has no real, finite value."""
    try:
        result = _COMPUTE[function](*args)
    except ZeroDivisionError:
        raise NumberError(f"{_shown(function, args)} divides by zero") from None
    except OverflowError:
        raise NumberError(f"{_shown(function, args)} is too large") from None
    except ValueError:
        raise NumberError(f"{_shown(function, args)} has no real value") from None
    if isinstance(result, complex):
        raise NumberError(f"{_shown(function, args)} has no real value: the power of a negative number must be whole")
    if result.bit_length() > MAX_INT_BITS if isinstance(result, int) else not math.isfinite(result):
        raise NumberError(f"{_shown(function, args)} is too large")
    return result if isinstance(result, int) else float(result)


def _divide(left: Real, right: Real) -> Real:
    """left / right, a whole number where both are and it is exact."""
    if isinstance(left, int) and isinstance(right, int) and right and left % right == 0:
        return left // right
    return left / right


def _power(base: Real, exponent: Real) -> Any:
    """base**exponent, refusing a whole number too long to be computed in passing."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        if (abs(base).bit_length() - 1) * exponent > MAX_INT_BITS:
            raise OverflowError
    return base**exponent


_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "**": _power,
    "neg": operator.neg,
    **{name: function.compute for name, function in FUNCTIONS.items()},
}


class _Text(NamedTuple):
    """A piece of an expression and how tightly it binds."""

    text: str
    binding: int

    def within(self, least: int) -> str:
        """The text, in parentheses when it binds less tightly than its place needs."""
        return self.text if self.binding >= least else f"({self.text})"


_ATOM, _UNARY = 5, 3
_BINDING = {  # of the result; what the left and right operand need at least; the text between them
    "+": (1, 1, 2, " + "),
    "-": (1, 1, 2, " - "),
    "*": (2, 2, 3, "*"),
    "/": (2, 2, 3, "/"),
    "**": (4, 5, 3, "**"),
}


def _leaf_text(step: Real | str) -> _Text:
    if isinstance(step, str):
        return _Text(step, _ATOM)
    return _Text(repr(step), _UNARY if repr(step).startswith("-") else _ATOM)


def _application_text(function: str, args: Sequence[_Text]) -> _Text:
    if function == "neg":
        return _Text(f"-{args[0].within(_UNARY)}", _UNARY)
    if function not in _BINDING:
        return _Text(f"{function}({', '.join(arg.text for arg in args)})", _ATOM)
    binding, left, right, between = _BINDING[function]
    return _Text(f"{args[0].within(left)}{between}{args[1].within(right)}", binding)


def _shown(function: str, args: Sequence[Real]) -> str:
    short = [float(arg) if abs(arg) > 10**15 else arg for arg in args]
    return _application_text(function, [_leaf_text(arg) for arg in short]).text
