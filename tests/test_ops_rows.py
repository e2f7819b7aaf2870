"""Known values and refusals of norms, softmax, reductions and the matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from blockgraph.dims import Dim, show
from blockgraph.op import Misfit, Op, Type
from blockgraph.ops.arithmetic import Subtract
from blockgraph.ops.elementwise import Log, Where
from blockgraph.ops.matmul import MatMul, Transpose
from blockgraph.ops.norms import L2Norm, LayerNorm, RmsNorm
from blockgraph.ops.reduce import Cumsum, Max, Mean, Min, Reduce, Sum
from blockgraph.ops.softmax import Band, Softmax
from blockgraph.pattern import PatternError
from tests.op_samples import typed


def misfit(op: Op, *types: Type) -> Misfit:
    with pytest.raises(Misfit, match=r".") as caught:
        op.infer(*types)
    return caught.value


def shape(op: Op, *types: Type) -> str:
    return show(op.infer(*types)[0].shape)


# Norms.


def test_layer_norm_divides_by_n_and_adds_eps_below_the_root() -> None:
    y = LayerNorm().forward(np.array([1.0, 0, 0, 0]))
    np.testing.assert_allclose(y, [1.7320046, -0.5773349, -0.5773349, -0.5773349], atol=5e-8)


def test_layer_norm_takes_each_row_by_itself() -> None:
    x = np.array([[1.0, 2, 3, 5], [1e6, 2e6, -1e6, 0]])
    y = LayerNorm().forward(x)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-15)
    np.testing.assert_array_equal(y[0], LayerNorm().forward(x[0]))


@pytest.mark.parametrize(("eps", "magnitude"), [(1e-5, 0.3015113), (1e-6, 0.7071068)])
def test_rms_norm_shows_its_eps_on_small_values(eps: float, magnitude: float) -> None:
    y = RmsNorm(eps=eps).forward(np.array([0.001, -0.001, 0.001, -0.001]))
    np.testing.assert_allclose(np.abs(y), magnitude, atol=5e-8)


def test_an_rms_norm_with_stored_weights_zero_and_offset_one_is_the_identity_gain() -> None:
    x = np.array([3.0, 4.0])
    y = RmsNorm(eps=0, offset=1, given=("gamma",)).forward(x, np.zeros(2))
    np.testing.assert_allclose(y, x / math.sqrt(12.5), rtol=1e-15)


def test_the_offset_is_added_in_the_precision_of_the_weight() -> None:
    x, gamma = np.ones((1, 1), np.float32), np.array([15.8125], np.float32)
    y = RmsNorm(eps=0, offset=1, given=("gamma",)).forward(x, gamma)
    assert y.dtype == np.float32
    assert y[0, 0] == 16.8125


def test_l2_norm_gives_length_one_and_keeps_zero() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    y = L2Norm().forward(x)
    np.testing.assert_allclose(y, [[0.6, 0.8], [0, 0]], rtol=1e-15)
    np.testing.assert_array_equal(L2Norm().backward(np.ones((2, 2)), y, x)[0][1], [0, 0])


def test_norms_name_a_gain_of_the_wrong_width() -> None:
    found = misfit(RmsNorm(given=("gamma",)), typed("B T C"), typed("D"))
    assert (found.code, found.blame, found.parts) == ("BG104", 1, (Dim("D"), Dim("C")))
    assert "gamma" in found.message


def test_norms_refuse_a_negative_eps_and_an_offset_of_nothing() -> None:
    assert [refusal.option for refusal in LayerNorm(eps=-1e-5).refusals()] == ["eps"]
    assert [refusal.option for refusal in RmsNorm(offset=1).refusals()] == ["offset"]
    assert not list(RmsNorm(offset=1, given=("gamma",)).refusals())


# Softmax and what it may see.


def test_softmax_is_the_share_of_exponentials() -> None:
    y = Softmax().forward(np.log(np.array([[1.0, 2, 3, 4], [5, 5, 5, 5]])))
    np.testing.assert_allclose(y, [[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]], rtol=1e-14)


def test_softmax_of_large_scores_does_not_overflow() -> None:
    np.testing.assert_allclose(Softmax().forward(np.array([1e4, 1e4, -1e4])), [0.5, 0.5, 0], rtol=1e-15)


VISIBLE = [
    ("square", 3, 3, None, ["100", "110", "111"]),
    ("more keys than queries", 2, 4, None, ["1110", "1111"]),
    ("fewer keys than queries", 3, 2, None, ["00", "10", "11"]),
    ("a window", 4, 4, 2, ["1000", "1100", "0110", "0011"]),
    ("a window of the own key", 2, 3, 1, ["010", "001"]),
]


@pytest.mark.parametrize(
    ("queries", "keys", "window", "rows"), [row[1:] for row in VISIBLE], ids=[row[0] for row in VISIBLE]
)
def test_a_causal_mask_shows_the_keys_up_to_the_query(
    queries: int, keys: int, window: int | None, rows: list[str]
) -> None:
    y = Softmax(mask="causal", window=window).forward(np.zeros((queries, keys)))
    seen = np.array([[int(cell) for cell in row] for row in rows], float)
    np.testing.assert_allclose(y, seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1), rtol=1e-15)
    low = None if window is None else keys - queries - window + 1
    np.testing.assert_array_equal(Band(queries, keys, low, keys - queries).forward(), seen.astype(bool))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_with_nothing_visible_gives_zeros_and_a_zero_gradient(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 4, 4)).astype(dtype)
    keep = np.ones((4, 4), bool)
    keep[1] = False
    masked, op = Softmax(given=("keep",)), Softmax()
    y = masked.forward(x, keep)
    np.testing.assert_array_equal(y[:, 1], 0)
    np.testing.assert_array_equal(y[:, [0, 2, 3]], op.forward(x)[:, [0, 2, 3]])
    dx, none = masked.backward(rng.standard_normal(x.shape).astype(dtype), y, x, keep)
    assert none is None
    assert np.isfinite(dx).all()
    np.testing.assert_array_equal(dx[:, 1], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_causal_and_left_padding_together_leave_zeros_and_shares(dtype: type) -> None:
    keep = np.array([[0, 0, 0, 1, 1]], bool)
    y = Softmax(mask="causal", given=("keep",)).forward(np.zeros((1, 5, 5), dtype), keep)
    np.testing.assert_array_equal(y.sum(axis=-1), [[0, 0, 0, 1, 1]])
    np.testing.assert_array_equal(y[0, 4], [0, 0, 0, 0.5, 0.5])


def test_what_is_masked_may_hold_anything() -> None:
    x = np.array([[1.0, np.nan], [1.0, np.inf]])
    y = Softmax(given=("keep",)).forward(x, np.array([True, False]))
    np.testing.assert_array_equal(y, [[1, 0], [1, 0]])


def test_the_log_of_a_masked_softmax_has_a_finite_gradient_on_the_kept_entries() -> None:
    x, keep = np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    softmax = Softmax(given=("keep",))
    weights = softmax.forward(x, keep)
    with np.errstate(divide="ignore"):
        logs = Log().forward(weights)
    y = Where().forward(keep, logs, 0.0)
    _, dlogs, _ = Where().backward(np.ones(3), y, keep, logs, 0.0)
    (dweights,) = Log().backward(dlogs, logs, weights)
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(
        softmax.backward(dweights, weights, x, keep)[0], [1 - 2 * share, 2 * share - 1, 0], atol=1e-15
    )


def test_softmax_refuses_what_makes_no_mask() -> None:
    assert [refusal.option for refusal in Softmax(mask="casual").refusals()] == ["mask"]
    assert [refusal.option for refusal in Softmax(window=3).refusals()] == ["window"]
    assert [refusal.option for refusal in Softmax(mask="causal", window=0).refusals()] == ["window"]
    assert misfit(Softmax(mask="causal"), typed("C")).code == "BG105"
    assert misfit(Softmax(given=("keep",)), typed("T S"), typed("B T S", "bool")).code == "BG104"
    assert misfit(Softmax(given=("keep",)), typed("T S"), typed("T T", "bool")).code == "BG104"


# Reductions.

X = np.arange(24.0).reshape(2, 3, 4)
REDUCED: list[tuple[type[Reduce], str, Callable[[np.ndarray], np.ndarray]]] = [
    (Sum, "b t c -> b t 1", lambda x: x.sum(axis=2, keepdims=True)),
    (Sum, "b t c -> c b", lambda x: x.sum(axis=1).T),
    (Mean, "b t c -> b c", lambda x: x.mean(axis=1)),
    (Mean, "... c -> ...", lambda x: x.mean(axis=-1)),
    (Mean, "b ... -> 1 b", lambda x: x.mean(axis=(1, 2))[None]),
    (Max, "... -> 1", lambda x: x.max(keepdims=True).reshape(1)),
    (Max, "b t c -> t b 1", lambda x: x.max(axis=2).T[..., None]),
    (Min, "b t c -> b 1 c", lambda x: x.min(axis=1, keepdims=True)),
]


@pytest.mark.parametrize(("op", "axes", "expected"), REDUCED, ids=[f"{row[0].name} {row[1]}" for row in REDUCED])
def test_a_reduction_follows_its_pattern(
    op: type[Reduce], axes: str, expected: Callable[[np.ndarray], np.ndarray]
) -> None:
    np.testing.assert_array_equal(op(axes).forward(X), expected(X))


def test_an_axis_of_one_from_a_pattern_may_stretch_again() -> None:
    (mean,) = Mean("b t c -> b t 1").infer(typed("B T C"))
    assert shape(Subtract(), typed("B T C"), mean) == "(B, T, C)"


def test_elements_that_tie_share_the_gradient() -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    y = Max("b c -> b").forward(x)
    np.testing.assert_array_equal(Max("b c -> b").backward(np.ones(2), y, x)[0], [[0, 0.5, 0.5], [1, 0, 0]])


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (Sum("b t c"), "needs `->`"),
        (Sum("b t c -> b d"), "`d` is new"),
        (Sum("b (t s) c -> b c"), "not in brackets"),
        (Sum("a, b -> a"), "takes one value"),
        (Cumsum("b t c"), "one axis in square brackets"),
        (Cumsum("[b] [t] c"), "one axis in square brackets"),
        (Cumsum("b [t] c -> b t c"), "the axes of one value"),
    ],
)
def test_a_pattern_that_is_no_reduction_is_refused(op: Op, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        op.infer(typed("B T C"))


def test_cumsum_runs_along_the_marked_axis_and_looks_back_only() -> None:
    for axes, axis in (("b [t] c", 1), ("[b] ...", 0), ("... [ c ]", 2)):
        op = Cumsum(axes)
        np.testing.assert_array_equal(op.forward(X), np.cumsum(X, axis=axis))
        (move,) = op.moves((typed("B T C"),))
        assert (move.low, move.high) == (None, 0)


# The matrix product.

PRODUCTS = [
    ("B T C", "C D", "(B, T, D)", "b t c, c d -> b t d"),
    ("B H T D", "B H D S", "(B, H, T, S)", "b h t d, b h d s -> b h t s"),
    ("B 1 T D", "H D S", "(B, H, T, S)", None),
    ("C", "C D", "(D,)", "c, c d -> d"),
    ("B T C", "C", "(B, T)", "b t c, c -> b t"),
    ("C", "C", "()", "c, c ->"),
    ("C", "B C D", "(B, D)", "c, b c d -> b d"),
]


@pytest.mark.parametrize(
    ("left", "right", "expected", "spelled"), PRODUCTS, ids=[f"{row[0]} @ {row[1]}" for row in PRODUCTS]
)
def test_the_matrix_product_has_numpys_shapes_and_values(
    left: str, right: str, expected: str, spelled: str | None
) -> None:
    types = typed(left), typed(right)
    assert shape(MatMul(), *types) == expected
    sizes = {"B": 2, "H": 3, "T": 4, "S": 5, "C": 6, "D": 7}
    arrays = [
        np.random.default_rng(1).standard_normal([int(dim.evaluate(sizes)) for dim in given.shape or ()])
        for given in types
    ]
    y = MatMul().forward(*arrays)
    assert y.shape == (arrays[0] @ arrays[1]).shape
    if spelled is not None:
        np.testing.assert_allclose(y, np.einsum(spelled.replace(" ", ""), *arrays), rtol=1e-12)


def test_the_matrix_product_counts_two_flops_per_multiply_add() -> None:
    types = typed("B T C"), typed("C D")
    cost = MatMul().cost(types, MatMul().infer(*types))
    assert cost.products == 2 * Dim("B") * Dim("T") * Dim("C") * Dim("D")
    assert cost.elementwise == 0


def test_the_matrix_product_names_both_inner_sizes() -> None:
    found = misfit(MatMul(), typed("B T C"), typed("D C"))
    assert (found.code, found.blame, found.parts) == ("BG102", 1, (Dim("C"), Dim("D")))
    assert found.message == "inner sizes differ: {} against {}"
    assert misfit(MatMul(), typed("B T C"), typed("")).code == "BG105"
    assert misfit(MatMul(), typed("B T C"), typed("H C D")).code == "BG104"


def test_transpose_swaps_the_last_two_axes() -> None:
    assert shape(Transpose(), typed("B T C")) == "(B, C, T)"
    assert Transpose().infer(typed("T C", "int"))[0].dtype == "int"
    np.testing.assert_array_equal(Transpose().forward(X), X.transpose(0, 2, 1))
    found = misfit(Transpose(), typed("C"))
    assert (found.code, found.message) == ("BG105", "`.T` swaps the last two axes, and this has fewer than two")
