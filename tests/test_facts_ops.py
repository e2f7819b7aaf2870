"""What an op says about zeros and rows, which proofs build upon, is what its numbers do: asked of all samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.op import Type
from blockgraph.ops.softmax import Softmax
from tests.op_samples import Sample
from tests.test_ops_promises import CASES, bound_op, operands_for, tupled


@pytest.mark.parametrize(("sample", "values"), CASES)
def test_where_a_factor_is_zero_everywhere_so_is_the_output(sample: Sample, values: dict[str, int]) -> None:
    op, arrays = bound_op(sample, values), operands_for(sample, values)
    factors = range(len(arrays)) if op.factors == "all" else op.factors
    for index in factors:
        zeroed = [np.zeros_like(one) if i == index else one for i, one in enumerate(arrays)]
        for output in tupled(op.forward(*zeroed)):
            assert not np.any(output)


SHAPES = [((3, 5), "causal", None), ((2, 4, 4), "causal", None), ((2, 4, 6), "causal", 2), ((6, 4), "causal", 3)]


def masked(shape: tuple[int, ...], mask: str, window: int | None) -> tuple[Softmax, tuple[Type, ...]]:
    return Softmax(mask, window), (Type(tuple(Dim(size) for size in shape)),)


@pytest.mark.parametrize(("shape", "mask", "window"), SHAPES)
def test_a_masked_softmax_is_zero_exactly_outside_the_band_it_states(
    shape: tuple[int, ...], mask: str, window: int | None
) -> None:
    op, types = masked(shape, mask, window)
    (zero,) = op.zeros(types)
    y = op.forward(np.random.default_rng(0).standard_normal(shape)).reshape(-1, *shape[-2:])[0]
    low = -math.inf if zero.low is None else float(Dim(zero.low).evaluate({}))
    high = math.inf if zero.high is None else float(Dim(zero.high).evaluate({}))
    assert (zero.letter, zero.to) == (f"a{len(shape) - 1}", f"a{len(shape) - 2}")
    for i in range(shape[-2]):
        for j in range(shape[-1]):
            assert (y[i, j] != 0) == (low <= j - i <= high)


@pytest.mark.parametrize(("shape", "mask", "window"), SHAPES)
def test_a_row_of_a_masked_softmax_reads_scores_within_its_band_only(
    shape: tuple[int, ...], mask: str, window: int | None
) -> None:
    op, types = masked(shape, mask, window)
    (tied,) = [move for move in op.moves(types) if move.to]
    assert tied.high is not None
    x = np.random.default_rng(0).standard_normal(shape)
    for row in range(shape[-2]):
        changed = x.copy()
        first = row + int(Dim(tied.high).evaluate({})) + 1
        changed[..., row, max(first, 0) :] += 7.0
        np.testing.assert_array_equal(op.forward(changed), op.forward(x))


def test_an_op_without_a_mask_states_no_zeros() -> None:
    assert Softmax().zeros((Type((Dim("T"), Dim("S"))),)) == ()
