"""Rules for norms: rows over the root of their mean square, their mean taken off before or not, scaled, shifted."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from blockgraph.graph import Node
from blockgraph.ops.arithmetic import Add, Divide, Multiply, Power, Subtract
from blockgraph.ops.norms import LayerNorm, RmsNorm
from blockgraph.ops.reduce import Mean, Sum
from blockgraph.ops.reduce import plan_for as reduction
from blockgraph.peephole.formula import Product, close, product
from blockgraph.peephole.sketch import Rule, Sketch, Step


class MeanOf(NamedTuple):
    """The value whose rows are averaged, and the values in between."""

    value: int
    inside: set[int]


class Root(NamedTuple):
    """rows / sqrt(mean(rows * rows) + eps): the rows, eps, and the values in between."""

    rows: int
    eps: float
    inside: set[int]


def row_mean(sketch: Sketch, value: int) -> MeanOf | None:
    """`value` as the mean over the last axis, with the axis kept; also as a sum divided by the width."""
    op = sketch.op(value)
    if isinstance(op, Mean) and keeps_rows(sketch, value, op.axes):
        return MeanOf(sketch.inputs(value)[0], {value})
    if not isinstance(op, Multiply | Divide):
        return None
    found = product(sketch, value)
    if found is None or list(found.powers.values()) != [1]:
        return None
    (total,) = found.powers
    op = sketch.op(total)
    if not isinstance(op, Sum) or not keeps_rows(sketch, total, op.axes):
        return None
    width = _width(sketch, sketch.inputs(total)[0])
    if width is None or not close(found.coefficient * width, 1):
        return None
    return MeanOf(sketch.inputs(total)[0], found.inside | {total})


def keeps_rows(sketch: Sketch, value: int, axes: str) -> bool:
    """Whether a reduction is one over the last axis alone, which stays as an axis of one."""
    rank = len(sketch.shape(sketch.inputs(value)[0]))
    plan = reduction(axes, rank)
    kept = tuple(slice(None) for _ in range(rank - 1))
    return plan.reduced == (rank - 1,) and plan.index == (*kept, None) and plan.order == tuple(range(rank - 1))


def _width(sketch: Sketch, value: int) -> int | None:
    dim = sketch.shape(value)[-1]
    known = {symbol: sketch.numbers[symbol] for symbol in dim.symbols if symbol in sketch.numbers}
    return int(dim.evaluate(known)) if dim.symbols <= known.keys() else None


def by_root(sketch: Sketch, node: Node) -> bool:
    """A product with rows / sqrt(mean(rows * rows) + eps) in it, and maybe a gain per feature."""
    if not isinstance(node.op, Multiply | Divide):
        return False
    value = node.outputs[0]
    found = product(sketch, value)
    for below in [] if found is None else [one for one, power in found.powers.items() if power == -0.5]:
        root = _root(sketch, below)
        if root is not None and _is_norm(sketch, value, below, root):
            return True
    return False


def _root(sketch: Sketch, value: int) -> Root | None:
    """`value` as mean(rows * rows) + eps"""
    eps, mean, inside = 0.0, row_mean(sketch, value), {value}
    if mean is None and isinstance(sketch.op(value), Add):
        first, second = sketch.inputs(value)
        for one, other in ((first, second), (second, first)):
            number = sketch.constant(other)
            if number is not None and number >= 0:
                eps, mean = number, row_mean(sketch, one)
    if mean is None:
        return None
    square = sketch.op(mean.value)
    operands = sketch.inputs(mean.value) if square is not None else ()
    is_square = isinstance(square, Multiply) and operands[0] == operands[1]
    if not is_square and not (isinstance(square, Power) and sketch.constant(operands[1]) == 2):
        return None
    return Root(operands[0], eps, inside | mean.inside | {mean.value})


def _is_norm(sketch: Sketch, value: int, below: int, root: Root) -> bool:
    found = product(sketch, value, {root.rows, below})
    if found is None or found.coefficient != 1 or found.powers.get(root.rows) != 1:
        return False
    gains = found.without(root.rows, below)
    rows = sketch.shape(root.rows)
    if gains is None or len(gains) > 1 or sketch.shape(value) != rows:
        return False
    if any(sketch.shape(gain) != rows[-1:] for gain in gains):
        return False
    return _written(sketch, value, found, root, tuple(gains))


def _written(sketch: Sketch, value: int, found: Product, root: Root, gains: tuple[int, ...]) -> bool:
    """As layer norm where the rows are what is left after their mean is taken off, else as rms norm."""
    given = ("gamma",) * len(gains)
    inside = found.inside | root.inside
    if isinstance(sketch.op(root.rows), Subtract):
        x, taken = sketch.inputs(root.rows)
        mean = row_mean(sketch, taken)
        if mean is not None and mean.value == x:
            between = inside | mean.inside | {root.rows}
            if sketch.replaces(value, between, Step(LayerNorm(eps=root.eps, given=given), (x, *gains))):
                return True
    return sketch.replaces(value, inside, Step(RmsNorm(eps=root.eps, given=given), (root.rows, *gains)))


def gain(sketch: Sketch, node: Node) -> bool:
    """A norm without a gain, times one value per feature; rms norm also times (number + value)."""
    if not isinstance(node.op, Multiply):
        return False
    for norm, factor in (node.inputs, node.inputs[::-1]):
        op = sketch.op(norm)
        if isinstance(op, LayerNorm | RmsNorm) and not op.given and sketch.shape(factor) == sketch.shape(norm)[-1:]:
            value, offset = _offset(sketch, factor) if isinstance(op, RmsNorm) else (factor, 0.0)
            more = {"offset": offset} if offset else {}
            new = replace(op, given=("gamma",), **more)  # type: ignore[arg-type]
            inside = {norm, factor} if offset else {norm}
            return sketch.replaces(node.outputs[0], inside, Step(new, (*sketch.inputs(norm), value)))
    return False


def _offset(sketch: Sketch, factor: int) -> tuple[int, float]:
    """`number + value` apart; the number is 0 where there is none."""
    if isinstance(sketch.op(factor), Add) and sketch.reads[factor] == 1:
        first, second = sketch.inputs(factor)
        for value, other in ((first, second), (second, first)):
            number = sketch.constant(other)
            if number is not None and sketch.shape(value) == sketch.shape(factor):
                return value, number
    return factor, 0.0


def shift(sketch: Sketch, node: Node) -> bool:
    """A layer norm without a shift, plus one value per feature."""
    if not isinstance(node.op, Add):
        return False
    for norm, beta in (node.inputs, node.inputs[::-1]):
        op = sketch.op(norm)
        if isinstance(op, LayerNorm) and "beta" not in op.given and sketch.shape(beta) == sketch.shape(norm)[-1:]:
            new = replace(op, given=(*op.given, "beta"))
            return sketch.replaces(node.outputs[0], {norm}, Step(new, (*sketch.inputs(norm), beta)))
    return False


RULES: tuple[Rule, ...] = (by_root, gain, shift)
