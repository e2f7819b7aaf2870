"""What an op claims about positions, which proofs build upon, is what its numbers do: asked of all samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.op import Misfit, Op, Type
from blockgraph.pattern import ELLIPSIS, Axes, PatternMisfit
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


def apart(sample: Sample, letter: str) -> bool:
    """Whether the op says that positions along a letter may be run on their own."""
    op, types = sample.op, sample.types
    pattern = op.pattern(types)
    names = {name for axes in (*pattern.operands, *pattern.outputs) for name in axes if name == letter}
    grouped = any(isinstance(axis, tuple) and letter in axis for axes in pattern.operands for axis in axes)
    told = {one.letter for one in (*op.moves(types), *op.zeros(types), *op.counts(types))}
    told |= {one.to for one in (*op.moves(types), *op.zeros(types), *op.counts(types))}
    return bool(names) and not grouped and letter not in told | set(op.sizes_by_letter()) | {"1", ELLIPSIS}


@pytest.mark.parametrize(("sample", "values"), CASES)
def test_positions_that_an_op_keeps_apart_may_be_run_on_their_own(sample: Sample, values: dict[str, int]) -> None:
    op, pattern, arrays = bound_op(sample, values), sample.op.pattern(sample.types), operands_for(sample, values)
    whole = tupled(op.forward(*arrays))
    for letter in {str(axis) for axes in pattern.operands for axis in axes if apart(sample, str(axis))}:
        where = [spelled(axes, array.ndim) for axes, array in zip(pattern.operands, arrays, strict=True)]
        ends = [spelled(axes, np.ndim(one)) for axes, one in zip(pattern.outputs, whole, strict=True)]
        cut = [tail(array, names, letter) for array, names in zip(arrays, where, strict=True)]
        if not all(letter in names for names in ends) or not fits(op, sample.types, cut):
            continue
        for one, all_of_it, names in zip(tupled(op.forward(*cut)), whole, ends, strict=True):
            np.testing.assert_allclose(one, tail(all_of_it, names, letter), rtol=1e-12, atol=1e-12)


def fits(op: Op, types: tuple[Type, ...], arrays: list[Any]) -> bool:
    """Whether arrays have shapes that the op takes: query heads in groups do not come one by one."""
    try:
        op.infer(*(replace(t, shape=tuple(map(Dim, array.shape))) for t, array in zip(types, arrays, strict=True)))
    except (Misfit, PatternMisfit):
        return False
    return True


def tail(array: Any, names: list[str], letter: str) -> Any:
    """Everything behind the first position along a letter."""
    return array[tuple(slice(1, None) if name == letter else slice(None) for name in names)]
