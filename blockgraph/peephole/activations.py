"""Rules for activations: gelu by tanh or erf, silu, quick_gelu, sigmoid, relu squared, in any order of their terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from blockgraph.graph import Node
from blockgraph.op import Op
from blockgraph.ops.activations import (
    ROOT_HALF,
    TANH_CUBIC,
    TANH_LINEAR,
    GeluErf,
    GeluTanh,
    QuickGelu,
    Relu,
    ReluSquared,
    Silu,
)
from blockgraph.ops.arithmetic import Add, Divide, Multiply, Negate, Power, Subtract
from blockgraph.ops.elementwise import Erf, Exp, Sigmoid, Tanh
from blockgraph.ops.leaf import Constant
from blockgraph.peephole.formula import Polynomial, polynomial, product, same
from blockgraph.peephole.sketch import Rule, Sketch, Step
from blockgraph.records import dataclass

DEEPEST: Final = 6
MOST: Final = 24


@dataclass(frozen=True, slots=True)
class Curve:
    """An activation as two polynomials: of x for what its bend is applied to, of x and the bend for the result."""

    op: Op
    bend: type[Op]
    inner: Polynomial
    outer: Polynomial


HALF_OPEN: Final[Polynomial] = {(1, 0): 0.5, (1, 1): 0.5}
GATED: Final[Polynomial] = {(1, 1): 1}
CURVES: Final = (
    Curve(GeluTanh(), Tanh, {(1,): TANH_LINEAR, (3,): TANH_CUBIC}, HALF_OPEN),
    Curve(GeluErf(), Erf, {(1,): ROOT_HALF}, HALF_OPEN),
    Curve(Silu(), Sigmoid, {(1,): 1}, GATED),
    Curve(QuickGelu(), Sigmoid, {(1,): 1.702}, GATED),
)
ARITHMETIC: Final = (Add, Subtract, Multiply, Divide, Negate, Power)


def curve(sketch: Sketch, node: Node) -> bool:
    """An activation with a bend, as one node."""
    if not isinstance(node.op, Multiply | Add | Divide):
        return False
    value = node.outputs[0]
    for bend in _within(sketch, value):
        known = [one for one in CURVES if isinstance(sketch.op(bend), one.bend)]
        candidates = _arguments(sketch, sketch.inputs(bend)[0]) if known else ()
        if any(_is_curve(sketch, value, bend, x, one) for x in candidates for one in known):
            return True
    return False


def _is_curve(sketch: Sketch, value: int, bend: int, x: int, one: Curve) -> bool:
    inside: set[int] = {bend}
    (inner,) = sketch.inputs(bend)
    if sketch.shape(x) != sketch.shape(value) or not same(polynomial(sketch, inner, (x,), inside), one.inner):
        return False
    if not same(polynomial(sketch, value, (x, bend), inside), one.outer):
        return False
    return sketch.replaces(value, inside - {x}, Step(one.op, (x,)))


def _within(sketch: Sketch, value: int) -> Iterator[int]:
    """The values with a bend that a formula, and nothing else, is made from."""
    level, seen = [value], {value}
    for _ in range(DEEPEST):
        level = [one for above in level for one in sketch.inputs(above) if one not in seen and sketch.reads[one] == 1]
        seen.update(level)
        yield from (one for one in level if isinstance(sketch.op(one), Tanh | Erf | Sigmoid))
        level = [one for one in level if isinstance(sketch.op(one), ARITHMETIC)][:MOST]


def _arguments(sketch: Sketch, inner: int) -> list[int]:
    """What the argument of an activation may be: the operand of its bend, or something that this is made from.

    The argument is read by more than the bend, so what lies further down is none.
    """
    found = [inner]
    for value in found:
        if len(found) > MOST:
            break
        if sketch.reads[value] == 1 and isinstance(sketch.op(value), ARITHMETIC):
            found += [one for one in sketch.inputs(value) if one not in found and sketch.constant(one) is None]
    return found


def sigmoid(sketch: Sketch, node: Node) -> bool:
    """1 / (1 + exp(-x)), or x in place of the 1 above."""
    if not isinstance(node.op, Divide):
        return False
    above, below = node.inputs
    powers = next((one for one in _exponentials(sketch, below)), None)
    if powers is None:
        return False
    inside: set[int] = {powers}
    (inner,) = sketch.inputs(powers)
    if not same(polynomial(sketch, below, (powers,), inside), {(0,): 1, (1,): 1}):
        return False
    for x in _arguments(sketch, inner):
        if same(polynomial(sketch, inner, (x,), inside), {(1,): -1}):
            op = Silu() if above == x else Sigmoid() if sketch.constant(above) == 1 else None
            return op is not None and sketch.replaces(node.outputs[0], inside - {x}, Step(op, (x,)))
    return False


def _exponentials(sketch: Sketch, value: int) -> Iterator[int]:
    if isinstance(sketch.op(value), Add):
        yield from (one for one in sketch.inputs(value) if isinstance(sketch.op(one), Exp))


def squared(sketch: Sketch, node: Node) -> bool:
    """relu(x) * relu(x), relu(x) ** 2"""
    if not isinstance(node.op, Multiply | Power):
        return False
    found = product(sketch, node.outputs[0])
    if found is None or found.coefficient != 1 or list(found.powers.values()) != [2]:
        return False
    (base,) = found.powers
    if not isinstance(sketch.op(base), Relu):
        return False
    return sketch.replaces(node.outputs[0], found.inside | {base}, Step(ReluSquared(), sketch.inputs(base)))


def folded(sketch: Sketch, node: Node) -> bool:
    """A formula of numbers alone is the number."""
    if not node.inputs or len(node.outputs) > 1 or not isinstance(node.op, ARITHMETIC):
        return False
    numbers = [sketch.constant(value) for value in node.inputs]
    if any(number is None for number in numbers):
        return False
    try:
        result = node.op.forward(*numbers)
    except (ArithmeticError, ValueError):
        return False
    return isinstance(result, float) and sketch.replaces(node.outputs[0], (), Step(Constant(result), ()))


RULES: tuple[Rule, ...] = (folded, sigmoid, curve, squared)
