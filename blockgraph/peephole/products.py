"""Rules for products and moves by pattern: heads cut and joined, and `einsum` with one matrix of parameters, as `@`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from blockgraph.dims import Dim, Shape
from blockgraph.graph import Node
from blockgraph.op import Op
from blockgraph.ops.axes import Heads, Merge, Rearrange
from blockgraph.ops.einsum import Einsum, letters_for
from blockgraph.ops.matmul import MatMul
from blockgraph.pattern import ELLIPSIS, Axes, Axis, parse
from blockgraph.peephole.sketch import Prior, Rule, Sketch, Step

Letters = Sequence[str]


def move(sketch: Sketch, node: Node) -> bool:
    """Two moves as one, features cut into heads, heads joined."""
    if not isinstance(node.op, Rearrange):
        return False
    (x,) = node.inputs
    whole = composed(sketch, x, node.op)
    if whole is not None:
        return sketch.replaces(node.outputs[0], (x,), Step(whole, sketch.inputs(x)))
    simple = named(node.op, sketch.shape(node.outputs[0]))
    return simple is not node.op and sketch.replaces(node.outputs[0], (), Step(simple, (x,)))


def composed(sketch: Sketch, value: int, then: Rearrange) -> Rearrange | None:
    """The move that makes `value` and the move after it as one; None where `value` is not made by a move of letters."""
    first = _by_letters(sketch, value)
    if first is None:
        return None
    before, after = parse(first.axes), parse(then.axes)
    made, taken = before.outputs[0], after.operands[0]
    if len(made) != len(taken) or not all(_is_letter(one) for one in (*made, *taken)):
        return None
    names = {str(old): str(new) for old, new in zip(taken, made, strict=True)}
    return Rearrange(f"{axes_text(before.operands[0])} -> {axes_text(after.outputs[0], names)}", first.sizes)


def _by_letters(sketch: Sketch, value: int) -> Rearrange | None:
    """The move that makes a value as a `rearrange`; None if none does."""
    op = sketch.op(value)
    if isinstance(op, Heads) and len(sketch.shape(value)) == 4:
        return Rearrange("a b (c d) -> a c b d", (("c", op.heads),))
    if isinstance(op, Merge) and len(sketch.shape(value)) == 3:
        return Rearrange("a c b d -> a b (c d)")
    return op if isinstance(op, Rearrange) else None


def named(op: Rearrange, shape: Shape | None = None) -> Op:
    """`heads` or `merge` in place of a move that is one; `shape` is that of the result, where it is known."""
    pattern = parse(op.axes)
    before, after = pattern.operands[0], pattern.outputs[0]
    if _is_cut(after, before):
        return Merge()
    if not _is_cut(before, after):
        return op
    heads = dict(op.sizes).get(before[-1][0]) if shape is None else shape[-3]
    return op if heads is None else Heads(heads)


def _is_letter(axis: Axis) -> bool:
    return isinstance(axis, str) and axis not in (ELLIPSIS, "1")


def axes_text(axes: Iterable[Axis], names: Mapping[str, str] | None = None) -> str:
    """Axes as a pattern writes them, their letters renamed."""

    def name(letter: str) -> str:
        return (names or {}).get(letter, letter)

    return " ".join(name(axis) if isinstance(axis, str) else f"({' '.join(map(name, axis))})" for axis in axes)


def _is_cut(joined: Axes, cut: Axes) -> bool:
    """Whether axes read `... t (h d)` and `... h t d`."""
    group = joined[-1] if joined else None
    if not isinstance(group, tuple) or len(group) != 2 or len(joined) < 2 or "1" in group:
        return False
    steps = joined[-2]
    return isinstance(steps, str) and steps != ELLIPSIS and cut == (*joined[:-2], group[0], steps, group[1])


def linear(sketch: Sketch, node: Node) -> bool:
    """`einsum` of a value with parameters that share letters with it only to sum over them: a matrix product."""
    if not isinstance(node.op, Einsum) or len(node.inputs) != 2:
        return False
    (first, second), out = letters_for(node.op.axes, tuple(len(sketch.shape(one)) for one in node.inputs))
    if sketch.types[node.inputs[1]].bare:
        return _linear(sketch, node, node.inputs, (first, second), out)
    return sketch.types[node.inputs[0]].bare and _linear(sketch, node, node.inputs[::-1], (second, first), out)


def _linear(
    sketch: Sketch, node: Node, operands: Sequence[int], letters: tuple[Letters, Letters], out: Letters
) -> bool:
    x, weights = letters
    if len(set(x)) < len(x) or len(set(weights)) < len(weights):
        return False
    inner = [letter for letter in weights if letter in x]
    rows = [letter for letter in x if letter not in inner]
    columns = [letter for letter in weights if letter not in inner]
    if not (inner and rows and columns) or set(out) != {*rows, *columns}:
        return False
    sizes = {
        letter: dim
        for one, names in zip(operands, letters, strict=True)
        for letter, dim in zip(names, sketch.shape(one), strict=True)
    }
    steps: list[Step] = []
    left = moved(sketch, steps, operands[0], x, [*rows, tuple(inner)])
    right = moved(sketch, steps, operands[1], weights, [tuple(inner), tuple(columns)])
    steps.append(Step(MatMul(), (left, right)))
    moved(sketch, steps, Prior(len(steps) - 1), [*rows, tuple(columns)], out, sizes)
    return sketch.replaces(node.outputs[0], (), *steps)


def moved(
    sketch: Sketch,
    steps: list[Step],
    value: int | Prior,
    before: Sequence[Axis],
    after: Sequence[Axis],
    sizes: Mapping[str, Dim] | None = None,
) -> int | Prior:
    """The value with its axes as in `after`: one more move among the steps, or the value itself if nothing moves.

    `sizes` tells those of the letters in groups of `before`.
    """
    before, after = _plain(before), _plain(after)
    if before == after:
        return value
    letters = dict.fromkeys(letter for axis in (*before, *after) for letter in _members(axis) if letter != "1")
    names = {letter: f"a{i}" for i, letter in enumerate(letters)}
    text = f"{axes_text(before, names)} -> {axes_text(after, names)}"
    grouped = [letter for axis in before if isinstance(axis, tuple) for letter in axis[:-1]] if sizes else []
    op = Rearrange(text, tuple((names[letter], (sizes or {})[letter]) for letter in grouped))
    whole = composed(sketch, value, op) if isinstance(value, int) else None
    if whole is not None and isinstance(value, int):
        op, (value,) = whole, sketch.inputs(value)
    steps.append(Step(named(op), (value,)))
    return Prior(len(steps) - 1)


def _plain(axes: Iterable[Axis]) -> list[Axis]:
    """Groups of one as the letter itself."""
    return [axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis for axis in axes]


def _members(axis: Axis) -> tuple[str, ...]:
    return (axis,) if isinstance(axis, str) else axis


RULES: tuple[Rule, ...] = (linear, move)
