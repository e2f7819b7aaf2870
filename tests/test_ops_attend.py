"""Attention against its definition written with loops, and the cases people got wrong."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.graph import GraphBuilder
from blockgraph.number import Number
from blockgraph.op import Misfit, Move, Need, Type
from blockgraph.ops.attend import Attend, pieces
from blockgraph.ops.leaf import Input
from blockgraph.ops.visible import View, alibi_slopes
from tests.op_samples import typed

RNG = np.random.default_rng(11)
Q, K, V = typed("B H T D"), typed("B G S D"), typed("B G S E")


def by_loops(q, k, v, visible, scale, bias=None, cap=None, sinks=None) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The definition for one batch, one query and one head at a time."""
    heads, steps, _ = q.shape
    y = np.zeros((heads, steps, v.shape[-1]))
    for h in range(heads):
        g = h // (heads // k.shape[0])
        for i in range(steps):
            seen = [j for j in range(k.shape[1]) if visible(i, j)]
            scores = [scale * float(q[h, i] @ k[g, j]) + (0 if bias is None else bias[h, i, j]) for j in seen]
            if cap is not None:
                scores = [cap * math.tanh(s / cap) for s in scores]
            total = sum(math.exp(s) for s in scores) + (0 if sinks is None else math.exp(sinks[h]))
            for j, s in zip(seen, scores, strict=True):
                y[h, i] += math.exp(s) / total * v[g, j]
    return y


def drawn(heads: int, groups: int, steps: int, keys: int, width: int = 4) -> tuple[np.ndarray, ...]:
    shapes = (heads, steps, width), (groups, keys, width), (groups, keys, 3)
    return tuple(RNG.standard_normal(shape) for shape in shapes)


@pytest.mark.parametrize(("steps", "keys"), [(5, 5), (3, 7), (7, 3), (300, 300), (270, 600)])
@pytest.mark.parametrize(("mask", "window"), [("full", None), ("causal", None), ("causal", 2), ("full", 3)])
def test_attention_is_its_definition(mask: str, window: int | None, steps: int, keys: int) -> None:
    q, k, v = drawn(2, 1, steps, keys)

    def visible(i: int, j: int) -> bool:
        distance = i + keys - steps - j
        return (mask == "full" or distance >= 0) and (window is None or abs(distance) < window)

    y = Attend(mask, window).forward(q, k, v)
    np.testing.assert_allclose(y, by_loops(q, k, v, visible, 0.5), atol=1e-12)


def test_everything_at_once_is_its_definition() -> None:
    q, k, v = drawn(6, 2, 5, 7)
    bias, sinks, keep = RNG.standard_normal((6, 5, 7)), RNG.standard_normal(6), RNG.random((5, 7)) < 0.6
    slopes = [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
    distance = np.abs(np.arange(5)[:, None] + 2 - np.arange(7))
    op = Attend("causal", 4, 0.3, 1.7, True, ("keep", "score_bias", "sinks"))
    y = op.forward(q, k, v, keep, bias, sinks)
    full = bias - np.array(slopes)[:, None, None] * distance
    expected = by_loops(q, k, v, lambda i, j: keep[i, j] and 0 <= i + 2 - j < 4, 0.3, full, 1.7, sinks)
    np.testing.assert_allclose(y, expected, atol=1e-12)


def test_a_window_shows_as_many_keys_as_it_says() -> None:
    q, k, v = np.zeros((1, 6, 1)), np.zeros((1, 6, 1)), np.eye(6)[None]
    assert [(row > 0).sum() for row in Attend("causal", 4).forward(q, k, v)[0]] == [1, 2, 3, 4, 4, 4]


def test_neighbouring_query_heads_share_a_key_head() -> None:
    v = np.array([[[10.0]], [[20.0]]])
    y = Attend().forward(np.ones((4, 1, 2)), np.ones((2, 1, 2)), v)
    assert y.ravel().tolist() == [10, 10, 20, 20]


def test_a_row_that_sees_nothing_is_exactly_zero_and_has_no_gradient() -> None:
    q, k, v = (RNG.standard_normal((1, 2, 4, 3)) for _ in range(3))
    keep = np.ones((1, 4, 4), bool)
    keep[0, 1] = False
    op = Attend(given=("keep",))
    y, plain = op.forward(q, k, v, keep), Attend().forward(q, k, v)
    assert not y[:, :, 1].any()
    np.testing.assert_allclose(y[:, :, [0, 2, 3]], plain[:, :, [0, 2, 3]], atol=1e-15)
    dq, dk, dv, dkeep = op.backward(np.ones_like(y), y, q, k, v, keep)
    assert dkeep is None
    assert not dq[:, :, 1].any()
    assert all(np.isfinite(gradient).all() for gradient in (dq, dk, dv))


def test_queries_that_see_nothing_are_listed() -> None:
    q, k = np.zeros((2, 1, 3, 1)), np.zeros((2, 1, 3, 1))
    keep = np.array([[True, True, True], [False, False, True]])
    assert Attend("causal", given=("keep",)).unseeing(q, k, k, keep).tolist() == [[False] * 3, [True, True, False]]
    assert Attend("causal").unseeing(q, k[:, :, :1], k[:, :, :1]).tolist() == [True, True, False]
    wide = np.array([np.eye(3, dtype=bool), np.zeros((3, 3), bool)])
    assert Attend(given=("keep",)).unseeing(q, k, k, wide).tolist() == [[False] * 3, [True] * 3]


def test_a_bias_of_minus_infinity_hides_a_row_as_well() -> None:
    q, k, v = (RNG.standard_normal((1, 2, 3)) for _ in range(3))
    bias = np.array([[-math.inf, -math.inf], [0, -math.inf]])
    y = Attend(given=("score_bias",)).forward(q, k, v, bias)
    assert y[0, 0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(y[0, 1], v[0, 0], atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_meet_as_booleans(dtype: type) -> None:
    q, k = (RNG.standard_normal((1, 1, 5, 4)).astype(dtype) for _ in range(2))
    keep = np.array([[False, False, False, True, True]])
    weights = Attend("causal", given=("keep",)).forward(q, k, np.eye(5, dtype=dtype)[None, None], keep)[0, 0]
    assert not weights[:3].any()
    np.testing.assert_allclose(weights.sum(axis=1), [0, 0, 0, 1, 1], atol=1e-6)
    assert weights.dtype == dtype


def test_the_cap_comes_before_the_mask() -> None:
    q, k, v = np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 2, 1)), np.eye(2)[None, None]
    weights = Attend(softcap=1, given=("keep",)).forward(q, k, v, np.array([[True, False]]))
    assert weights.ravel().tolist() == [1, 0]


def test_a_score_of_124_is_capped_at_30() -> None:
    op = Attend(scale=1.0, softcap=30, given=("sinks",))
    weight = float(op.forward(np.array([[[124.0]]]), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.array([30.0]))[0, 0, 0])
    assert math.log(weight / (1 - weight)) + 30 == pytest.approx(29.9845874, abs=1e-6)


@pytest.mark.parametrize("cap", [0, -5, math.inf, math.nan])
def test_a_cap_that_caps_nothing_is_refused(cap: float) -> None:
    (refusal,) = Attend(softcap=cap).refusals()
    assert (refusal.option, refusal.message) == ("softcap", "cap must be positive and finite")


def test_options_that_make_no_sense_are_refused() -> None:
    found = {refusal.option: refusal.message for refusal in Attend("past", window=0, scale=math.inf).refusals()}
    assert found == {
        "mask": "`past` is no mask",
        "window": "a window is a whole number from 1, not 0",
        "scale": "scale must be finite",
    }
    assert not list(Attend("causal", Dim("W"), Number("s"), Number("c")).refusals())


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]),
        (
            12,
            [*(0.5**h for h in range(1, 9)), 0.7071068, 0.3535534, 0.1767767, 0.0883883],
        ),
    ],
)
def test_alibi_slopes_are_the_published_ones(heads: int, slopes: list[float]) -> None:
    assert alibi_slopes(heads) == pytest.approx(slopes, abs=1e-7)


def test_alibi_under_a_causal_mask_is_a_slope_per_key_position() -> None:
    q, k, v = drawn(8, 8, 5, 5)
    rising = np.array([0.5**h for h in range(1, 9)])[:, None, None] * np.arange(5)
    expected = Attend("causal", given=("score_bias",)).forward(q, k, v, rising)
    np.testing.assert_allclose(Attend("causal", alibi=True).forward(q, k, v), expected, atol=1e-12)


def test_a_sink_takes_its_share_and_leaves_the_rest() -> None:
    op = Attend(given=("sinks",))
    y = op.forward(np.zeros((1, 1, 2)), np.zeros((1, 3, 2)), np.ones((1, 3, 1)), np.array([math.log(2)]))
    assert y.item() == pytest.approx(3 / 5, abs=1e-15)


def test_long_sequences_never_hold_all_scores() -> None:
    q, k, v = (RNG.standard_normal((1, 4096, 8)).astype(np.float32) for _ in range(3))
    tracemalloc.start()
    y = Attend("causal").forward(q, k, v)
    Attend("causal").backward(y, y, q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 4 / 3


def test_blocks_cover_every_row_once_and_see_no_upper_triangle() -> None:
    view = View(1000, 1000, True, 300)
    blocks = list(view.blocks(12))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(1000))
    assert [view.seen(block) for block in blocks][-1] == slice(blocks[-1].start - 299, 1000)
    assert view.seen(slice(0, 256)) == slice(0, 256)


def test_the_shape_follows_from_queries_and_values() -> None:
    (out,) = Attend().infer(Q, K, V)
    assert out.shape == tuple(map(Dim, ("B", "H", "T", "E")))
    assert list(Attend().needs((Q, K, V))) == [Need(Dim("G"), Dim("H"), "divides")]
    assert not list(Attend().needs((Q, typed("B H S D"), typed("B H S E"))))


@pytest.mark.parametrize(
    ("types", "given", "code", "message"),
    [
        ((Q, typed("B G S E"), V), (), "BG104", "axis `d` of `k` is {} where `attend` needs {}"),
        ((Q, K, typed("B G T E")), (), "BG104", "axis `s` of `v` is {} where `attend` needs {}"),
        ((Q, typed("B C"), V), (), "BG105", "`k` of `attend` has 2 axes where `... g s d` is expected"),
        ((Q, K, V, typed("B S")), ("keep",), "BG107", "`keep` of `attend` takes true and false, not numbers"),
        ((typed("B H T D", "int"), K, V), (), "BG107", "`q` of `attend` takes numbers, not ids"),
        ((Q, K, V, typed("B T", "bool")), ("keep",), "BG104", "axis `s` of `keep` is {} where `attend` needs {}"),
        ((Q, K, V, typed("T T")), ("score_bias",), "BG104", "axis `s` of `score_bias` is {} where `attend` needs {}"),
        ((typed("B 7 T D"), typed("B 2 S D"), typed("B 2 S E")), (), "BG103", "{} query heads cannot share {} key"),
    ],
)
def test_operands_that_do_not_fit_are_told(
    types: tuple[Type, ...], given: tuple[str, ...], code: str, message: str
) -> None:
    with pytest.raises(Misfit, match=message.replace("{}", r"\{\}").replace("...", r"\.\.\.")) as found:
        Attend(given=given).infer(*types)
    assert found.value.code == code


def test_a_mask_bounds_what_is_read() -> None:
    types = (Q, K, V, typed("B S", "bool"))
    reach = Dim("S") - Dim("T")
    assert Attend().moves(types[:3]) == ()
    assert Attend("causal").moves(types[:3]) == (Move(1, "t", None, reach), Move(2, "t", None, reach))
    moves = Attend("causal", Dim("W"), given=("keep",)).moves(types)
    assert moves == tuple(Move(i, "t", reach - Dim("W") + 1, reach) for i in (1, 2, 3))


def test_heads_stay_apart_unless_they_are_grouped() -> None:
    assert str(Attend().pattern((Q, K, V))) == "... h t d, ... g s d, ... g s e -> ... h t e"
    same = (Q, typed("B H T D"), typed("B H T E"))
    assert str(Attend("causal").pattern(same)) == "... h t d, ... h t d, ... h t e -> ... h t e"


def test_scores_and_values_both_cost() -> None:
    q = typed("1 12 1024 64")
    cost = Attend("causal").cost((q, q, q), (q,))
    assert cost.products == 3_221_225_472


def test_scores_and_weights_can_be_named() -> None:
    g = GraphBuilder()
    q, k, v = (g.append(Input(), (), (given,))[0] for given in (Q, K, V))
    found = pieces(Attend("causal"), g, q, k, v)
    assert g.type(found["weights"]).shape == g.type(found["scores"]).shape == tuple(map(Dim, ("B", "H", "T", "S")))
    assert g.type(found["y"]).shape == tuple(map(Dim, ("B", "H", "T", "E")))
