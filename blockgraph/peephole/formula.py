"""What a value is as a formula: a product of powers, or a polynomial, of other values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import reduce

from blockgraph.ops.arithmetic import Add, Divide, Multiply, Negate, Power, Subtract
from blockgraph.ops.elementwise import Sqrt
from blockgraph.peephole.sketch import Sketch
from blockgraph.records import dataclass

MOST_FACTORS = 8
MOST_VALUES = 40
Powers = tuple[int, ...]
Polynomial = dict[Powers, float]


@dataclass(slots=True)
class Product:
    """coefficient * product of value ** exponent; `inside` are the values that it was taken apart at."""

    coefficient: float = 1.0
    powers: dict[int, float] = field(default_factory=dict)
    inside: set[int] = field(default_factory=set)

    def without(self, *values: int) -> list[int] | None:
        """The other factors, where each of them stands to the power of one."""
        rest = {value: power for value, power in self.powers.items() if value not in values}
        return list(rest) if all(power == 1 for power in rest.values()) else None


def product(sketch: Sketch, value: int, whole: Iterable[int] = ()) -> Product | None:
    """A value as a product of powers; values in `whole` are not taken apart. None where it has too many factors."""
    found, stay = Product(), frozenset(whole)
    waiting = [(value, 1.0)]
    while waiting:
        one, power = waiting.pop()
        number = sketch.constant(one)
        if number is not None:
            if number == 0:
                return None
            found.coefficient *= math.copysign(abs(number) ** power, number) if power == 1 else number**power
            continue
        further = None if one in stay else _factors(sketch, one, power, found)
        if further is None:
            found.powers[one] = found.powers.get(one, 0) + power
        else:
            found.inside.add(one)
            waiting += further
        if len(found.powers) > MOST_FACTORS or len(found.inside) > MOST_VALUES:
            return None
    return found


def _factors(sketch: Sketch, value: int, power: float, found: Product) -> list[tuple[int, float]] | None:
    """The factors that a value is made of, with their powers; None where it is no product."""
    op = sketch.op(value)
    operands = sketch.inputs(value) if op is not None else ()
    if isinstance(op, Multiply):
        return [(one, power) for one in operands]
    if isinstance(op, Divide):
        return [(operands[0], power), (operands[1], -power)]
    if isinstance(op, Sqrt):
        return [(operands[0], power / 2)]
    if isinstance(op, Power):
        exponent = sketch.constant(operands[1])
        return None if exponent is None else [(operands[0], power * exponent)]
    if isinstance(op, Negate) and power == 1:
        found.coefficient = -found.coefficient
        return [(operands[0], power)]
    return None


def polynomial(sketch: Sketch, value: int, variables: Sequence[int], inside: set[int]) -> Polynomial | None:
    """A value as a polynomial of other values: coefficients by the powers of the variables. None if it is none.

    Adds to `inside` the values that it was taken apart at.
    """
    done: dict[int, Polynomial | None] = {}
    waiting = [value]
    while waiting:
        one = waiting[-1]
        needed = [] if one in done else [each for each in _operands(sketch, one, variables) if each not in done]
        if needed:
            waiting += needed
            if len(done) + len(waiting) > MOST_VALUES:
                return None
            continue
        waiting.pop()
        if one not in done:
            done[one] = _polynomial(sketch, one, variables, done)
            if one not in variables and done[one] is not None:
                inside.add(one)
    return done[value]


def _operands(sketch: Sketch, value: int, variables: Sequence[int]) -> tuple[int, ...]:
    if value in variables or sketch.constant(value) is not None:
        return ()
    known = isinstance(sketch.op(value), Add | Subtract | Multiply | Divide | Negate | Power)
    return sketch.inputs(value) if known else ()


def _polynomial(
    sketch: Sketch, value: int, variables: Sequence[int], done: dict[int, Polynomial | None]
) -> Polynomial | None:
    """One value from the polynomials of its operands."""
    if value in variables:
        return {tuple(int(value == one) for one in variables): 1.0}
    number, nothing = sketch.constant(value), (0,) * len(variables)
    if number is not None:
        return {nothing: number}
    sides = [done.get(one) for one in _operands(sketch, value, variables)]
    known = [side for side in sides if side is not None]
    if not known or len(known) < len(sides):
        return None
    op = sketch.op(value)
    if isinstance(op, Negate):
        return {key: -one for key, one in known[0].items()}
    if isinstance(op, Multiply):
        return multiplied(*known)
    if isinstance(op, Add | Subtract):
        return _sum(known[0], known[1], 1 if isinstance(op, Add) else -1)
    constant = known[1].get(nothing) if known[1].keys() == {nothing} else None
    if isinstance(op, Divide):
        return {key: one / constant for key, one in known[0].items()} if constant else None
    return reduce(multiplied, [known[0]] * int(constant)) if constant in (2, 3, 4) else None


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    return {key: left.get(key, 0) + sign * right.get(key, 0) for key in left | right}


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product of two polynomials."""
    found: Polynomial = {}
    for a, one in left.items():
        for b, other in right.items():
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            found[key] = found.get(key, 0) + one * other
    return found


def same(found: Polynomial | None, wanted: Polynomial) -> bool:
    """Whether two polynomials are equal up to the rounding of their coefficients."""
    if found is None:
        return False
    return all(close(found.get(key, 0), wanted.get(key, 0)) for key in found | wanted)


def close(a: float, b: float) -> bool:
    """Equal up to a few roundings."""
    return math.isclose(a, b, rel_tol=2e-15)
