"""Sums of products by pattern, computed as matrix products wherever they are some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.lazy import np
from blockgraph.op import Cost, Misfit, Op, Type, volume
from blockgraph.ops.axes import at_letter
from blockgraph.ops.broadcast import width
from blockgraph.pattern import ELLIPSIS, Axes, Pattern, PatternError, parse
from blockgraph.records import dataclass

Letters = tuple[str, ...]
Steps = tuple[tuple[int, ...], ...]
"""Which values meet, step by step; a result joins the end of the list, as in NumPy's `einsum_path`."""


@final
@dataclass(frozen=True)
class Einsum(Op, name="einsum"):
    """y = sum over the letters that the output lacks of the product of the operands

    `einsum("b t c, c h r -> b h t r", x, U)`: words name axes, `...` leading axes that all who have it share.
    Source: Rogozhnikov 2022, einops, ICLR.
    """

    signature = "axes, *xs"
    factors = "all"
    axes: str

    def pattern(self, types: tuple[Type, ...]) -> Pattern:
        """The pattern given. Raises PatternError where it is none for einsum, Misfit for a wrong number of operands."""
        pattern = checked(self.axes)
        if len(pattern.operands) != len(types):
            message = "the pattern of `einsum` names {} values and {} are given"
            raise Misfit("BG105", message, len(pattern.operands), len(types))
        return pattern

    def infer(self, *types: Type) -> tuple[Type, ...]:
        """By the pattern; an axis that only parameters bring is a width."""
        (found,) = super().infer(*types)
        if found.shape is None or found.bare or not any(dim.stretchy for dim in found.shape):
            return (found,)
        operands, out = letters_for(self.axes, tuple(len(given.shape or ()) for given in types))
        kept = {letter for given, letters in zip(types, operands, strict=True) if not given.bare for letter in letters}
        shape = tuple(dim if letter in kept else width(dim) for letter, dim in zip(out, found.shape, strict=True))
        return (Type(shape, found.dtype),)

    def forward(self, *arrays: Any) -> Any:
        """Pairwise matrix products in a good order."""
        operands, out = letters_for(self.axes, tuple(x.ndim for x in arrays))
        return contract(arrays, operands, out)

    def backward(self, dy: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        """dx_i = einsum of dy and the other operands onto the axes of x_i"""
        operands, out = letters_for(self.axes, tuple(x.ndim for x in arrays))
        grads = []
        for i, x in enumerate(arrays):
            others = [(a, letters) for j, (a, letters) in enumerate(zip(arrays, operands, strict=True)) if j != i]
            known = {letter for _, letters in others for letter in letters} | set(out)
            shared = tuple(letter for letter in operands[i] if letter in known)
            dx = contract([dy, *(a for a, _ in others)], [out, *(letters for _, letters in others)], shared)
            grads.append(_spread(dx, shared, operands[i], x.shape))
        return tuple(grads)

    def cost(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Cost:
        """Of pairwise products from left to right; a sum over a letter makes it a matrix product."""
        total = Cost()
        for terms, _, summed in self._products(types):
            if summed:
                total = Cost(total.products + terms * 2, total.elementwise)
            else:
                total = Cost(total.products, total.elementwise + terms)
        return total

    def _products(self, types: tuple[Type, ...]) -> Iterator[tuple[Dim, Dim, bool]]:
        """Of each pairwise product from left to right its terms, the elements it makes, whether it sums over any."""
        shapes = [t.shape for t in types]
        if any(shape is None for shape in shapes):
            return
        operands, out = letters_for(self.axes, tuple(len(shape or ()) for shape in shapes))
        size: dict[str, Dim] = {}
        for letters, shape in zip(operands, shapes, strict=True):
            size.update(zip(letters, shape or (), strict=True))
        left = operands[0]
        for i, right in enumerate(operands[1:], 1):
            later = set(out).union(*operands[i + 1 :])
            every = tuple(dict.fromkeys((*left, *right)))
            left = tuple(letter for letter in every if letter in later)
            terms, made = (volume(tuple(size[letter] for letter in letters)) for letters in (every, left))
            yield terms, made, len(left) < len(every)

    def room(self, types: tuple[Type, ...], outs: tuple[Type, ...]) -> Dim:
        """Copies of two operands that do not lie as their product wants them; what products of more have in between."""
        if any(given.shape is None for given in types):
            return Dim(0)
        operands, out = letters_for(self.axes, tuple(len(given.shape or ()) for given in types))
        copies = sum((volume(types[index].shape) for index in _copied(operands, set(out))), Dim(0))
        made = [made for _, made, _ in self._products(types)]
        return copies + sum(made[:-1], Dim(0)) * 2

    def label(self) -> str:
        """The pattern."""
        return self.axes


@lru_cache(maxsize=1024)
def checked(text: str) -> Pattern:
    """The pattern, if einsum can have it. Raises PatternError."""
    pattern = parse(text)
    arrow = text.index("->")
    if len(pattern.outputs) != 1:
        comma = text.index(",", arrow)
        raise PatternError("einsum gives one value", comma, comma + 1)
    for axes in (*pattern.operands, *pattern.outputs):
        for axis in axes:
            if not isinstance(axis, str) or axis == "1":
                help = "cut, join and add axes with `rearrange`"
                if axis == "1":
                    raise at_letter(text, "1", "einsum takes letters only", help)
                raise PatternError("einsum takes letters only", text.index("("), text.index(")") + 1, help)
    known = {axis for axes in pattern.operands for axis in axes}
    for axis in pattern.outputs[0]:
        if axis not in known:
            raise at_letter(text, str(axis), f"`{axis}` stands in no operand", "`repeat` adds an axis", arrow)
    if ELLIPSIS in known and ELLIPSIS not in pattern.outputs[0]:
        raise at_letter(text, ELLIPSIS, "`...` is lost", "write it on both sides of `->`")
    return pattern


@lru_cache(maxsize=1024)
def letters_for(text: str, ranks: tuple[int, ...]) -> tuple[tuple[Letters, ...], Letters]:
    """The letters of each operand and of the output; `...` spelled out for operands of these ranks."""
    pattern = parse(text)
    spread = [rank - len(axes) + 1 for axes, rank in zip(pattern.operands, ranks, strict=True) if ELLIPSIS in axes]
    dots = tuple(f".{i}" for i in range(spread[0])) if spread else ()
    return tuple(_spelled(axes, dots) for axes in pattern.operands), _spelled(pattern.outputs[0], dots)


def _spelled(axes: Axes, dots: Letters) -> Letters:
    return tuple(letter for axis in axes for letter in (dots if axis == ELLIPSIS else (str(axis),)))


def contract(arrays: Sequence[Any], letters: Sequence[Letters], out: Letters) -> Any:
    """The sum of products with these letters. Pairs follow NumPy's greedy order; one operand alone is summed."""
    values = list(zip(arrays, letters, strict=True))
    for pair in _order(tuple(letters), out, tuple(x.shape for x in arrays)):
        taken = [values[i] for i in pair]
        values = [value for i, value in enumerate(values) if i not in pair]
        later = set(out).union(*(names for _, names in values))
        if len(taken) == 1:
            values.append(_summed(*taken[0], later))
            continue
        (a, a_letters), (b, b_letters) = taken
        values.append(_product(a, a_letters, b, b_letters, later))
    ((result, names),) = values
    result, names = _summed(result, names, set(out))
    return result.transpose([names.index(letter) for letter in out])


@lru_cache(maxsize=1024)
def _order(letters: tuple[Letters, ...], out: Letters, shapes: tuple[tuple[int, ...], ...]) -> Steps:
    """Which operands meet in which step."""
    if len(letters) < 3:
        return ((0, 1),) if len(letters) == 2 else ()
    number = {letter: i for i, letter in enumerate(dict.fromkeys(letter for names in letters for letter in names))}
    call: list[Any] = []
    for names, shape in zip(letters, shapes, strict=True):
        call += [np.broadcast_to(np.empty(()), shape), [number[letter] for letter in names]]
    path, _ = np.einsum_path(*call, [number[letter] for letter in out], optimize="greedy")
    return _in_pairs(path[1:], len(letters))


def _in_pairs(path: Sequence[tuple[int, ...]], count: int) -> Steps:
    """The path with steps of more than two operands taken two at a time."""
    steps: list[tuple[int, ...]] = []
    for step in path:
        chosen = sorted(step)
        steps.append(tuple(chosen[:2]))
        count -= 1 if len(chosen) > 1 else 0
        rest = [i - sum(j < i for j in chosen[:2]) for i in chosen[2:]]
        while rest:
            steps.append((rest[0], count - 1))
            rest = [i - 1 for i in rest[1:]]
            count -= 1
    return tuple(steps)


def _summed(x: Any, letters: Letters, keep: set[str]) -> tuple[Any, Letters]:
    """x summed over the letters that nobody needs any more."""
    gone = tuple(i for i, letter in enumerate(letters) if letter not in keep)
    return (x.sum(axis=gone), tuple(letter for letter in letters if letter in keep)) if gone else (x, letters)


def _product(a: Any, a_letters: Letters, b: Any, b_letters: Letters, keep: set[str]) -> tuple[Any, Letters]:
    """The product of two operands, summed over shared letters that are not kept."""
    a, a_letters = _summed(a, a_letters, keep | set(b_letters))
    b, b_letters = _summed(b, b_letters, keep | set(a_letters))
    shared = [letter for letter in a_letters if letter in b_letters]
    batch = [letter for letter in shared if letter in keep]
    inner = [letter for letter in shared if letter not in keep]
    if not inner:
        return _elementwise(a, a_letters, b, b_letters)
    rows = [letter for letter in a_letters if letter not in shared]
    columns = [letter for letter in b_letters if letter not in shared]
    left = _matrices(a, a_letters, batch, rows, inner)
    right = _matrices(b, b_letters, batch, inner, columns)
    size = dict(zip((*a_letters, *b_letters), (*a.shape, *b.shape), strict=True))
    names = (*batch, *rows, *columns)
    return np.matmul(left, right).reshape([size[letter] for letter in names]), names


def _matrices(x: Any, letters: Letters, batch: list[str], rows: list[str], columns: list[str]) -> Any:
    """x as matrices (*batch, rows, columns): a view where the layout allows it."""
    moved = x.transpose([letters.index(letter) for letter in (*batch, *rows, *columns)])
    lead, middle = len(batch), len(batch) + len(rows)
    return moved.reshape(*moved.shape[:lead], prod(moved.shape[lead:middle]), prod(moved.shape[middle:]))


def _copied(operands: Sequence[Letters], out: set[str]) -> Iterator[int]:
    """Which of two operands, that lie row after row, `_matrices` cannot see without a copy."""
    if len(operands) != 2:
        return
    inner = [letter for letter in operands[0] if letter in operands[1] and letter not in out]
    for index, letters in enumerate(operands):
        groups = ([letter for letter in letters if letter not in operands[1 - index]], inner)
        starts = [letters.index(group[0]) if group else 0 for group in groups]
        runs = (list(letters[at : at + len(group)]) for at, group in zip(starts, groups, strict=True))
        if inner and any(run != group for run, group in zip(runs, groups, strict=True)):
            yield index


def _elementwise(a: Any, a_letters: Letters, b: Any, b_letters: Letters) -> tuple[Any, Letters]:
    """The product without a sum, by broadcasting."""
    names = tuple(dict.fromkeys((*a_letters, *b_letters)))
    return _aligned(a, a_letters, names) * _aligned(b, b_letters, names), names


def _aligned(x: Any, letters: Letters, names: Letters) -> Any:
    """x with its axes in the order of `names`, of size one where it lacks one."""
    moved = x.transpose([letters.index(letter) for letter in names if letter in letters])
    return moved[tuple(slice(None) if letter in letters else None for letter in names)]


def _spread(dx: Any, shared: Letters, letters: Letters, shape: tuple[int, ...]) -> Any:
    """dx repeated along the letters that were summed on their own."""
    if shared == letters:
        return dx
    return np.broadcast_to(_aligned(dx, shared, letters), shape).copy()
