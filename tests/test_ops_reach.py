"""What an op claims about positions, which proofs build upon, is what its numbers do: asked of all samples."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.op import Op, Type
from blockgraph.pattern import ELLIPSIS, Axes
from tests.op_samples import Sample
from tests.test_ops_promises import CASES, bound_op, operands_for, tupled


def spelled(axes: Axes, rank: int) -> list[str]:
    """One name per axis of an array; `...` as numbers, a group as its text."""
    names: list[str] = []
    for axis in axes:
        names += [f"{ELLIPSIS}{i}" for i in range(rank - len(axes) + 1)] if axis == ELLIPSIS else [str(axis)]
    return names


def reads(op: Op, arrays: list, operand: int, axis: int, output: int, out_axis: int) -> set[tuple[int, int]]:
    """Pairs (input position, output position) along two axes where the output changes with the input."""
    base = np.asarray(tupled(op.forward(*arrays))[output])
    pairs = set()
    for p in range(arrays[operand].shape[axis]):
        moved = arrays[operand].copy()
        part = moved[(slice(None),) * axis + (slice(p, p + 1),)]
        part[...] = ~part if part.dtype == bool else part * 0.75
        new = np.asarray(tupled(op.forward(*arrays[:operand], moved, *arrays[operand + 1 :]))[output])
        others = tuple(i for i in range(new.ndim) if i != out_axis)
        pairs |= {(p, int(o)) for o in np.flatnonzero((new != base).any(axis=others))}
    return pairs


def reach(op: Op, types: tuple[Type, ...], operand: int, letter: str, values: Mapping) -> tuple[float, float]:
    """The interval of input - output position that the op states."""
    for move in op.moves(types):
        if (move.operand, move.letter) == (operand, letter):
            low = -math.inf if move.low is None else float(Dim(move.low).evaluate(values))
            return low, math.inf if move.high is None else float(Dim(move.high).evaluate(values))
    return 0, 0


@pytest.mark.parametrize(("sample", "values"), CASES)
def test_positions_are_read_where_the_op_says(sample: Sample, values: dict[str, int]) -> None:
    op, pattern, arrays = bound_op(sample, values), sample.op.pattern(sample.types), operands_for(sample, values)
    outs = tupled(op.forward(*arrays))
    for operand, axes in enumerate(pattern.operands):
        if operand in op.shape_only or arrays[operand].dtype.kind == "i":
            continue
        for axis, letter in enumerate(spelled(axes, arrays[operand].ndim)):
            low, high = reach(sample.op, sample.types, operand, letter, values)
            for output, out_axes in enumerate(pattern.outputs):
                names = spelled(out_axes, np.ndim(outs[output]))
                if letter not in names or letter == "1":
                    continue
                for p, o in reads(op, arrays, operand, axis, output, names.index(letter)):
                    assert low <= p - o <= high


@pytest.mark.parametrize(("sample", "values"), CASES)
def test_operands_of_which_only_the_shape_is_read_change_nothing(sample: Sample, values: dict[str, int]) -> None:
    op, arrays = bound_op(sample, values), operands_for(sample, values)
    if op.shape_only:
        others = [np.zeros_like(array) for array in arrays]
        for a, b in zip(tupled(op.forward(*arrays)), tupled(op.forward(*others)), strict=True):
            np.testing.assert_array_equal(a, b)
