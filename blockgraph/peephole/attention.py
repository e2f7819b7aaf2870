"""The rule for attention: scores of queries and keys, scaled, biased, capped, their softmax, and the values it mixes.

Whatever of this is missing may be missing, and axes may stand in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from blockgraph.graph import Node
from blockgraph.ops.arithmetic import Add, Divide, Multiply
from blockgraph.ops.attend import Attend
from blockgraph.ops.einsum import Einsum, letters_for
from blockgraph.ops.elementwise import Tanh
from blockgraph.ops.matmul import MatMul, Transpose
from blockgraph.ops.softmax import Softmax
from blockgraph.peephole.formula import close, product
from blockgraph.peephole.products import moved
from blockgraph.peephole.sketch import Prior, Rule, Sketch, Step
from blockgraph.records import dataclass

Letters = tuple[str, ...]


@dataclass(slots=True)
class Pair:
    """A product of two operands with letters on every axis."""

    left: int
    right: int
    left_letters: Letters
    right_letters: Letters
    out: Letters
    inside: set[int]

    def turned(self) -> Pair:
        """The operands the other way round."""
        return Pair(self.right, self.left, self.right_letters, self.left_letters, self.out, self.inside)


@dataclass(slots=True)
class Scores:
    """How scores come from a product of queries and keys; `inside` are the values on the way."""

    product: Pair
    scale: float = 1.0
    softcap: float | None = None
    bias: int | None = None
    inside: set[int] = field(default_factory=set)


def attention(sketch: Sketch, node: Node) -> bool:
    """softmax(scores) times values, as one node."""
    mix = pair(sketch, node.outputs[0])
    if mix is None:
        return False
    for one in (mix, mix.turned()):
        weights = sketch.op(one.left)
        if isinstance(weights, Softmax) and not weights.given:
            scores = _scores(sketch, sketch.inputs(one.left)[0])
            if scores is not None and _written(sketch, node.outputs[0], one, weights, scores):
                return True
    return False


def pair(sketch: Sketch, value: int) -> Pair | None:
    """`value` as a product of two operands: an `einsum`, or `@` with or without `.T`."""
    op = sketch.op(value)
    if isinstance(op, Einsum) and len(sketch.inputs(value)) == 2:
        left, right = sketch.inputs(value)
        letters, out = letters_for(op.axes, (len(sketch.shape(left)), len(sketch.shape(right))))
        return Pair(left, right, letters[0], letters[1], out, {value})
    if not isinstance(op, MatMul):
        return None
    left, right = sketch.inputs(value)
    rank = len(sketch.shape(left))
    if rank < 3 or sketch.shape(left)[:-2] != sketch.shape(right)[:-2]:
        return None
    lead = tuple(f"b{i}" for i in range(rank - 2))
    inside = {value}
    keys: Letters = (*lead, "k", "n")
    if isinstance(sketch.op(right), Transpose):
        inside.add(right)
        (right,) = sketch.inputs(right)
        keys = (*lead, "n", "k")
    return Pair(left, right, (*lead, "m", "k"), keys, (*lead, "m", "n"), inside)


def _scores(sketch: Sketch, value: int) -> Scores | None:
    """Scores from the softmax down to the product: a cap, then a bias, then a scale, each of which may be missing."""
    inside: set[int] = set()
    cap, bias, top = None, None, value
    capped = _capped(sketch, value)
    if capped is not None:
        cap, value, passed = capped
        inside |= passed | {top}
    sides = sketch.inputs(value) if isinstance(sketch.op(value), Add) else (value,)
    for side, other in zip(sides, (*sides[1:], *sides[:1]), strict=True):
        found = product(sketch, side)
        if found is None or list(found.powers.values()) != [1]:
            continue
        (base,) = found.powers
        scored = pair(sketch, base)
        if scored is not None and sketch.shape(base) == sketch.shape(value):
            bias = other if len(sides) == 2 else None
            inside |= found.inside | scored.inside | {value, top}
            return Scores(scored, found.coefficient, cap, bias, inside)
    return None


def _capped(sketch: Sketch, value: int) -> tuple[float, int, set[int]] | None:
    """`value` as cap * tanh(below / cap): the cap, what is below, and the values in between."""
    if not isinstance(sketch.op(value), Multiply | Divide):
        return None
    outer = product(sketch, value)
    if outer is None or list(outer.powers.values()) != [1]:
        return None
    (bend,) = outer.powers
    if not isinstance(sketch.op(bend), Tanh) or outer.coefficient <= 0:
        return None
    (inner,) = sketch.inputs(bend)
    op = sketch.op(inner)
    if not isinstance(op, Multiply | Divide):
        return None
    first, second = sketch.inputs(inner)
    for below, number in ((first, second), (second, first)) if isinstance(op, Multiply) else ((first, second),):
        given = sketch.constant(number)
        factor = None if not given else given if isinstance(op, Multiply) else 1 / given
        if factor is not None and close(factor * outer.coefficient, 1):
            return outer.coefficient, below, outer.inside | {bend, inner}
    return None


def _written(sketch: Sketch, value: int, mix: Pair, weights: Softmax, scores: Scores) -> bool:
    queries = scores.product.out[-2:]
    if len(mix.left_letters) != len(scores.product.out) or len(queries) < 2:
        return False
    named = dict(zip(mix.left_letters, scores.product.out, strict=True))
    if len(named) < len(mix.left_letters) or any(letter in named.values() for letter in _others(mix, named)):
        mix = _renamed(mix, {letter: f"v {letter}" for letter in _others(mix, named)})
    mix = _renamed(mix, named)
    for one in (scores.product, scores.product.turned()):
        steps = _steps(sketch, mix, one, weights, scores)
        if steps is not None:
            return sketch.replaces(value, mix.inside | scores.inside | {mix.left}, *steps)
    return False


def _others(mix: Pair, named: dict[str, str]) -> list[str]:
    return [letter for letter in dict.fromkeys((*mix.right_letters, *mix.out)) if letter not in named]


def _renamed(mix: Pair, names: dict[str, str]) -> Pair:
    left, right, out = (
        tuple(names.get(one, one) for one in letters) for letters in (mix.left_letters, mix.right_letters, mix.out)
    )
    return Pair(mix.left, mix.right, left, right, out, mix.inside)


def _steps(sketch: Sketch, mix: Pair, qk: Pair, weights: Softmax, scores: Scores) -> list[Step] | None:
    """Queries, keys and values with the axes that `attend` takes, `attend`, and its result with the axes of the mix."""
    *lead, t, s = qk.out
    inner = [letter for letter in qk.left_letters if letter in qk.right_letters and letter not in qk.out]
    wide = [letter for letter in mix.right_letters if letter not in mix.left_letters]
    if len(inner) != 1 or len(wide) != 1 or s in mix.out or not lead:
        return None
    (d,), (e,) = inner, wide
    if set(qk.left_letters) != {*lead, t, d} or set(mix.out) != {*lead, t, e}:
        return None
    keys = [letter if letter in qk.right_letters else "1" for letter in lead]
    if not _are(qk.right_letters, [*keys, s, d]) or not _are(mix.right_letters, [*keys, s, e]) or "1" in keys[:-1]:
        return None
    steps: list[Step] = []
    q = moved(sketch, steps, qk.left, qk.left_letters, [*lead, t, d])
    k = moved(sketch, steps, qk.right, qk.right_letters, [*keys, s, d])
    v = moved(sketch, steps, mix.right, mix.right_letters, [*keys, s, e])
    more = () if scores.bias is None else (scores.bias,)
    steps.append(Step(_attend(weights, scores), (q, k, v, *more)))
    moved(sketch, steps, Prior(len(steps) - 1), [*lead, t, e], mix.out)
    return steps


def _are(letters: Letters, wanted: Sequence[str]) -> bool:
    named = [letter for letter in wanted if letter != "1"]
    return len(letters) == len(named) and set(letters) == set(named)


def _attend(weights: Softmax, scores: Scores) -> Attend:
    given = () if scores.bias is None else ("score_bias",)
    mask = "causal" if weights.mask == "causal" else "full"
    return Attend(mask, weights.window, scores.scale, scores.softcap, given=given)


RULES: tuple[Rule, ...] = (attention,)
