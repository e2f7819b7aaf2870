"""Symbolic sizes: what makes a shape a proof for all sizes and not for the sample at hand.

A `Dim` is a sum of products of symbols with whole, possibly negative, powers and fractional factors,
kept in a normal form, so that equality is that of two tuples. A general algebra system does far more
and is 20 to 100 times slower at this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import Any, final

from blockgraph.records import dataclass

Monomial = tuple[tuple[str, int], ...]
"""A product of symbols: (symbol, power) sorted by symbol, no power zero."""
Term = tuple[Monomial, int | Fraction]
Terms = tuple[Term, ...]
"""A sum: (monomial, factor) in the order of `_rank`, no factor zero; a factor is an int when it is whole."""

MAX_POWER = 64
MAX_TERMS = 1000
MAX_PRODUCTS = 50_000  # pairs of terms multiplied at once
MAX_BITS = 512  # of a factor; real ones are far shorter
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class DimError(ValueError):
    """A size that cannot be: division by a sum or by zero, a power that is not whole; the message is for users."""


@final
class Dim:
    """sum_i factor_i * prod_j symbol_j**power_ij, immutable; equal when the normal forms are.

    `Dim("C")` is one symbol, `Dim(3)` and `Dim(Fraction(1, 2))` are numbers; a Dim is returned as it is.
    A size without symbols equals its number. Arithmetic is exact; `/` takes one product as its divisor.

    >>> C, H = Dim("C"), Dim("H")
    >>> print(4 * C, C / (2 * H), C / H * H == C)
    4*C C/(2*H) True

    Raises DimError for a name that is not one, and where an operation has no result.
    """

    __slots__ = ("_hash", "terms")
    _hash: int
    terms: Terms

    def __new__(cls, value: int | Fraction | str | Dim) -> Dim:
        """The size `value` stands for."""
        dim = _symbol(value) if isinstance(value, str) else _operand(value)
        if dim is None:
            raise DimError(f"a size is a whole number or an expression of sizes, not {value}")
        return dim

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Dim cannot be changed")

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "STRETCH" if self.stretchy else (_new, (self.terms,))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Dim):
            return self.terms == other.terms
        if isinstance(other, (int, Fraction)):
            return self.number == other
        return NotImplemented

    def __add__(self, other: Dim | int | Fraction) -> Dim:
        right = _operand(other)
        return NotImplemented if right is None else _collect(self.terms + right.terms)

    __radd__ = __add__

    def __sub__(self, other: Dim | int | Fraction) -> Dim:
        right = _operand(other)
        return NotImplemented if right is None else self + -right

    def __rsub__(self, other: int | Fraction) -> Dim:
        return -self + other

    def __neg__(self) -> Dim:
        return _new(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __mul__(self, other: Dim | int | Fraction) -> Dim:
        right = _operand(other)
        return NotImplemented if right is None else _product(self, right)

    __rmul__ = __mul__

    def __truediv__(self, other: Dim | int | Fraction) -> Dim:
        right = _operand(other)
        return NotImplemented if right is None else _product(self, _inverse(right, self))

    def __rtruediv__(self, other: int | Fraction) -> Dim:
        left = _operand(other)
        return NotImplemented if left is None else left / self

    def __pow__(self, exponent: int | Dim) -> Dim:
        if not isinstance(exponent, (int, float, Fraction, Dim)):
            return NotImplemented
        return _power(self, _exponent(self, exponent))

    def __rpow__(self, base: int | Fraction) -> Dim:
        left = _operand(base)
        return NotImplemented if left is None else left**self

    @property
    def stretchy(self) -> bool:
        """Whether this is `STRETCH` itself, the 1 that may stretch under `+` and `-`."""
        return self is STRETCH

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols it depends on."""
        return frozenset(symbol for monomial, _ in self.terms for symbol, _ in monomial)

    @property
    def number(self) -> Fraction | None:
        """Its number when it has no symbols, else None."""
        if not self.terms:
            return Fraction(0)
        monomial, factor = self.terms[0]
        return None if monomial or self.terms[1:] else Fraction(factor)

    @property
    def as_written(self) -> Terms:
        """The terms in the order of the text: a positive one comes first where there is one."""
        first = next((term for term in self.terms if term[1] > 0), None)
        return self.terms if first is None else (first, *(term for term in self.terms if term is not first))

    def as_int(self) -> int | None:
        """Its number when it has no symbols and is whole, else None."""
        number = self.number
        return number.numerator if number is not None and number.denominator == 1 else None

    def subs(self, values: Mapping[str, Dim | int]) -> Dim:
        """The same sum with all symbols in `values` replaced at once; the others stay.

        A size in which nothing is replaced is returned as it is, and a bare symbol becomes its value as it
        is, so `STRETCH` survives here. Raises DimError where a replacement makes a divisor zero or a sum.
        """
        terms = self.terms
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][1] == 1:
            symbol = terms[0][0][0][0]
            return Dim(values[symbol]) if symbol in values else self
        if not any(symbol in values for monomial, _ in terms for symbol, _ in monomial):
            return self
        replaced = [self._replaced(monomial, factor, values) for monomial, factor in terms]
        return replaced[0] if len(replaced) == 1 else _collect(term for dim in replaced for term in dim.terms)

    def _replaced(self, monomial: Monomial, factor: int | Fraction, values: Mapping[str, Dim | int]) -> Dim:
        """One term with its symbols replaced."""
        result = _number(factor)
        for symbol, power in monomial:
            value = Dim(values.get(symbol, _symbol(symbol)))
            if power < 0 and not value.terms:
                raise DimError(f"{self} divides by zero, as {symbol} is 0")
            result = _product(result, _power(value, power))
        return result

    def evaluate(self, values: Mapping[str, int]) -> Fraction:
        """Its number when the symbols are `values`; DimError for a missing symbol or a division by zero."""
        total: int | Fraction = 0
        for monomial, factor in self.terms:
            product = factor
            for symbol, power in monomial:
                if symbol not in values:
                    raise DimError(f"{self} has no number, as the size {symbol} is not known")
                if power < 0 and values[symbol] == 0:
                    raise DimError(f"{self} divides by zero, as {symbol} is 0")
                value = values[symbol]
                product *= value**power if power > 0 and type(value) is int else Fraction(value) ** power
            total += product
        return Fraction(total)

    def conditions(self) -> tuple[Divides, ...]:
        """What must hold for every term to be a whole number: `C/H` needs "H divides C"."""
        found = dict.fromkeys(_divides(*term) for term in self.terms)
        return tuple(condition for condition in found if condition.divisor != 1)

    def __str__(self) -> str:
        """The sum as a Python expression that reads back to the same size."""
        text = ""
        for monomial, factor in self.as_written:
            sign = ("-" if factor < 0 else "") if not text else " - " if factor < 0 else " + "
            text += sign + _term_text(monomial, factor if factor > 0 else -factor)
        return text or "0"

    def __repr__(self) -> str:
        return f"<Dim {self}>"


@dataclass(frozen=True, slots=True)
class Divides:
    """The condition `divisor divides dividend`; both are one product with whole factors and powers."""

    divisor: Dim
    dividend: Dim

    def holds(self, values: Mapping[str, int]) -> bool | None:
        """Whether it holds for these sizes (zero divides nothing); None when a symbol is missing."""
        remainder = self.remainder(values)
        return None if remainder is None else remainder == 0 and self.divisor.evaluate(values) != 0

    def remainder(self, values: Mapping[str, int]) -> int | None:
        """dividend mod divisor (the dividend itself when the divisor is zero); None when a symbol is missing."""
        if not (self.divisor.symbols | self.dividend.symbols) <= values.keys():
            return None
        divisor, dividend = self.divisor.evaluate(values), self.dividend.evaluate(values)
        return int(dividend % divisor if divisor else dividend)

    def __str__(self) -> str:
        return f"{self.divisor} divides {self.dividend}"


Shape = tuple[Dim, ...]


def show(shape: Shape | None) -> str:
    """The shape as a user writes it: `(B, T, C)`, `(C,)`, `()`; `unknown` for None."""
    return "unknown" if shape is None else _tuple_text(str(dim) for dim in shape)


def show_numbers(shape: Shape | None, values: Mapping[str, int]) -> str:
    """The shape with the numbers that are known: `(B, T, 4*C = 3072)`; `unknown` for None."""
    return "unknown" if shape is None else _tuple_text(_with_number(dim, values) for dim in shape)


def _with_number(dim: Dim, values: Mapping[str, int]) -> str:
    if not dim.symbols or not dim.symbols <= values.keys():
        return str(dim)
    try:
        return f"{dim} = {dim.evaluate(values)}"
    except DimError:  # a division by zero is found and told where the size is used
        return str(dim)


def _tuple_text(axes: Iterable[str]) -> str:
    text = ", ".join(texts := list(axes))
    return f"({text},)" if len(texts) == 1 else f"({text})"


def _new(terms: Terms) -> Dim:
    """A Dim of terms that are in normal form already; a number hashes like that number."""
    dim = object.__new__(Dim)
    key = hash(terms if terms[1:] or (terms and terms[0][0]) else terms[0][1] if terms else 0)
    object.__setattr__(dim, "terms", terms)
    object.__setattr__(dim, "_hash", key)
    return dim


@lru_cache(maxsize=4096)
def _symbol(name: str) -> Dim:
    if not _NAME.match(name):
        raise DimError(f"{name!r} is not the name of a size: use letters, digits and _, with a letter first")
    return _new(((((name, 1),), 1),))


def _operand(value: object) -> Dim | None:
    """`value` as a Dim, or None when it is not a size, so that the other operand's class is asked."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return None
    return _number(value)


@lru_cache(maxsize=1024)
def _number(value: int | Fraction) -> Dim:
    return _new((((), _whole(value)),)) if value else _new(())


def _whole(factor: int | Fraction) -> int | Fraction:
    """The factor as an int when it is whole; DimError when it is absurdly long."""
    if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > MAX_BITS:
        raise DimError("a number here has more than 150 digits: write a smaller one")
    return factor.numerator if factor.denominator == 1 else factor


@lru_cache(maxsize=4096)
def _rank(monomial: Monomial) -> tuple[bool, int, Monomial]:
    """The order of terms: higher powers first, then by symbol, the number last."""
    return (not monomial, -sum(power for _, power in monomial), monomial)


def _collect(terms: Iterable[Term]) -> Dim:
    """The sum of the terms in normal form."""
    sums: dict[Monomial, int | Fraction] = {}
    for monomial, factor in terms:
        sums[monomial] = sums.get(monomial, 0) + factor
    if len(sums) > MAX_TERMS:
        raise DimError(f"this size is a sum of more than {MAX_TERMS} terms: give parts of it a name in `dims`")
    found: list[Term] = [(monomial, _whole(factor)) for monomial, factor in sums.items() if factor]
    if len(found) > 1:
        found.sort(key=lambda term: _rank(term[0]))
    return _new(tuple(found))


def _product(left: Dim, right: Dim) -> Dim:
    if len(left.terms) == 1 == len(right.terms):
        (a, p), (b, q) = left.terms[0], right.terms[0]
        return _new(((_times(a, b), 1 if p == 1 == q else _whole(p * q)),))
    if len(left.terms) * len(right.terms) > MAX_PRODUCTS:
        raise DimError("this size is a product of sums with too many terms: give parts of it a name in `dims`")
    return _collect((_times(a, b), p * q) for a, p in left.terms for b, q in right.terms)


@lru_cache(maxsize=4096)
def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for symbol, power in right:
        powers[symbol] = powers.get(symbol, 0) + power
        _check_power(powers[symbol])
    return tuple(sorted(item for item in powers.items() if item[1]))


def _check_power(power: int) -> None:
    if abs(power) > MAX_POWER:
        shown = power if abs(power) < 10**9 else "here"
        raise DimError(f"the power {shown} is too high for a size: the highest is {MAX_POWER}")


def _inverse(divisor: Dim, dividend: Dim | int = 1) -> Dim:
    """1 / divisor, which must be one product; `dividend` is for the message."""
    if not divisor.terms:
        raise DimError(f"dividing {dividend} by zero")
    if len(divisor.terms) > 1:
        raise DimError(f"dividing by a sum ({divisor}): give it a name in `dims`")
    monomial, factor = divisor.terms[0]
    inverse = factor if factor in (1, -1) else _whole(1 / Fraction(factor))
    return _new(((tuple((symbol, -power) for symbol, power in monomial), inverse),))


def _exponent(base: Dim, exponent: float | Fraction | Dim) -> int:
    """The exponent as a whole number within the limit, or DimError."""
    if isinstance(exponent, Dim):
        number = exponent.number
        if number is None:
            raise DimError(f"the power of a size must be a number, not {exponent}")
        exponent = number if number.denominator > 1 else number.numerator
    if isinstance(exponent, bool) or not isinstance(exponent, int):
        raise DimError(f"{base} to the power {exponent} is no size: the power must be a whole number")
    _check_power(exponent)
    return exponent


def _power(base: Dim, exponent: int) -> Dim:
    if exponent < 0:
        base, exponent = _inverse(base), -exponent
    if exponent == 1:
        return base if not base.stretchy else _new(base.terms)
    result = _number(1)
    for _ in range(exponent):
        result = _product(result, base)
    return result


def _split(monomial: Monomial, factor: int | Fraction) -> tuple[tuple[int, Monomial], tuple[int, Monomial]]:
    """Numerator and denominator of a term."""
    over = tuple((symbol, power) for symbol, power in monomial if power > 0)
    under = tuple((symbol, -power) for symbol, power in monomial if power < 0)
    return (factor.numerator, over), (factor.denominator, under)


def _divides(monomial: Monomial, factor: int | Fraction) -> Divides:
    root = gcd(*(power for _, power in monomial))
    if root > 1 and abs(factor) == 1:  # P**2 divides I**2 exactly where P divides I
        monomial = tuple((symbol, power // root) for symbol, power in monomial)
    (numerator, over), (denominator, under) = _split(monomial, factor if factor > 0 else -factor)
    return Divides(_new(((under, denominator),)), _new(((over, numerator),)))


def _term_text(monomial: Monomial, factor: int | Fraction) -> str:
    over, under = (_factors(*part) for part in _split(monomial, factor))
    top = "*".join(over) or "1"
    if not under:
        return top
    return f"{top}/({'*'.join(under)})" if len(under) > 1 else f"{top}/{under[0]}"


def _factors(factor: int, monomial: Monomial) -> list[str]:
    powers = [symbol if power == 1 else f"{symbol}**{power}" for symbol, power in monomial]
    return powers if factor == 1 else [str(factor), *powers]


STRETCH: Dim = _new((((), 1),))
"""The 1 that a user wrote as an axis: equal to `Dim(1)`, but it may stretch under `+` and `-`."""
