"""Matrix products, tables, and moves of elements."""

from __future__ import annotations

from collections.abc import Iterator

from blockgraph.adjoint.ops import AddRows, TurnedBack
from blockgraph.adjoint.reverse import RULES, Gradient, Reverse, rule
from blockgraph.graph import Node
from blockgraph.op import Op
from blockgraph.ops.axes import Heads, Merge, Rearrange
from blockgraph.ops.einsum import Einsum, letters_for
from blockgraph.ops.gather import Lookup
from blockgraph.ops.matmul import MatMul, Transpose
from blockgraph.ops.rope import Rope
from blockgraph.pattern import parse

Dys = tuple[Gradient, ...]


@rule(MatMul)
def matmul(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dleft = dy @ right.T, dright = left.T @ dy

    The matrix comes first: what was kept for it makes room for the gradient of the rows.
    """
    (dy,) = dys
    assert dy is not None
    left, right = node.inputs
    ranks = len(g.shape(left)), len(g.shape(right))
    if ranks[0] >= 2 and ranks[1] == 2:
        matrix = _weights(g, left, right, dy) if g.wants(right) else None
        yield g(MatMul(), dy, _turned(g, right)) if g.wants(left) else None
        yield matrix
    elif min(ranks) > 2 and g.shape(left)[:-2] == g.shape(right)[:-2]:
        yield g(MatMul(), dy, _turned(g, right)) if g.wants(left) else None
        yield g(MatMul(), _turned(g, left), dy) if g.wants(right) else None
    else:
        yield from RULES[Op](g, node, dys)


def _turned(g: Reverse, value: int) -> int:
    """The transpose; of a transpose what it was made from."""
    return g.makers[value].inputs[0] if isinstance(g.op(value), Transpose) else g(Transpose(), value)


def _weights(g: Reverse, left: int, right: int, dy: int) -> Gradient:
    """left.T @ dy over all rows. Of a transposed matrix the gradient is made as that of the matrix itself."""
    rows = " ".join(f"a{i}" for i in range(len(g.shape(left)) - 1))
    if not isinstance(g.op(right), Transpose):
        return g(Einsum(f"{rows} k, {rows} n -> k n"), left, dy)
    (table,) = g.makers[right].inputs
    g.add(table, g(Einsum(f"{rows} n, {rows} k -> n k"), dy, left))
    return None


@rule(Transpose)
def transpose(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """dy turned."""
    yield from (g(Transpose(), dy) for dy in dys if dy is not None)


@rule(Heads)
def heads(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """The heads joined again."""
    yield from (g(Merge(), dy) for dy in dys if dy is not None)


@rule(Merge)
def merge(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """Cut into heads again."""
    yield from (g(Heads(g.shape(node.inputs[0])[-3]), dy) for dy in dys if dy is not None)


@rule(Rope)
def rope(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """Turned back."""
    yield from (g(TurnedBack(node.op), dy) for dy in dys if dy is not None)  # type: ignore[arg-type]


@rule(Rearrange)
def rearrange(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """The pattern from right to left."""
    assert isinstance(node.op, Rearrange)
    before, arrow, after = node.op.axes.partition("->")
    if any(isinstance(axis, tuple) for axis in parse(node.op.axes).outputs[0]):  # what was joined has no sizes here
        yield from RULES[Op](g, node, dys)
        return
    back = Rearrange(f"{after.strip()} {arrow} {before.strip()}")
    yield from (g(back, dy) for dy in dys if dy is not None)


@rule(Einsum)
def einsum(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """For each operand the einsum of dy and the others."""
    assert isinstance(node.op, Einsum)
    (dy,) = dys
    assert dy is not None
    letters, out = letters_for(node.op.axes, tuple(len(g.shape(value)) for value in node.inputs))
    if not all(_is_direct(letters, out, index) for index, value in enumerate(node.inputs) if g.wants(value)):
        yield from RULES[Op](g, node, dys)
        return
    names = {letter: f"a{i}" for i, letter in enumerate(dict.fromkeys(letter for one in letters for letter in one))}
    for index, value in enumerate(node.inputs):
        if not g.wants(value):
            yield None
            continue
        others = [i for i in range(len(node.inputs)) if i != index]
        axes = [" ".join(names[letter] for letter in one) for one in (out, *(letters[i] for i in others))]
        wanted = " ".join(names[letter] for letter in letters[index])
        yield g(Einsum(f"{', '.join(axes)} -> {wanted}"), dy, *(node.inputs[i] for i in others))


def _is_direct(letters: tuple[tuple[str, ...], ...], out: tuple[str, ...], index: int) -> bool:
    """Whether each letter of an operand stands in it once, and also in the result or in another operand."""
    known = {*out, *(letter for i, one in enumerate(letters) if i != index for letter in one)}
    return len(set(letters[index])) == len(letters[index]) and set(letters[index]) <= known and bool(out)


@rule(Lookup)
def lookup(g: Reverse, node: Node, dys: Dys) -> Iterator[Gradient]:
    """The rows of dy summed by id; onto what the table has already."""
    (dy,) = dys
    assert dy is not None
    table, ids = node.inputs
    there = g.grads.get(table)
    if there is None:
        yield from RULES[Op](g, node, dys)
        return
    g.grads[table] = g(AddRows(), there, dy, ids)
    yield None
    yield None
