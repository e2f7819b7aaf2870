"""Rearranging, joining, cutting, contracting, looking up and telling positions, against NumPy and hand-made values."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from blockgraph.dims import Dim
from blockgraph.op import Misfit, Move, Need, Op, Type
from blockgraph.ops.axes import Heads, Rearrange, Repeat_
from blockgraph.ops.einsum import Einsum
from blockgraph.ops.gather import Lookup, Put, TopK
from blockgraph.ops.join import Concat, Split
from blockgraph.ops.positions import RelativeBuckets, Sinusoid
from blockgraph.ops.rope import Rope
from blockgraph.ops.shift import DepthwiseConv, Shift
from blockgraph.ops.subscript import WHOLE, Index
from blockgraph.pattern import PatternError
from tests.op_samples import typed

RNG = np.random.default_rng(3)
X = typed("B T C")
B, T, C, D, W = map(Dim, "BTCDW")


def shape_of(op: Op, *types: Type) -> tuple[Dim, ...] | None:
    return op.infer(*types)[0].shape


def ints(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape), dtype=float).reshape(shape)


# Rearranging


@pytest.mark.parametrize(
    ("pattern", "sizes", "shape", "expected"),
    [
        ("b t c -> c b t", {}, (2, 3, 4), lambda x: x.transpose(2, 0, 1)),
        ("b t (h d) -> b h t d", {"h": 2}, (2, 3, 4), lambda x: x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3)),
        (
            "(h three d) c -> three (h d) c",
            {"three": 3, "h": 2},
            (12, 5),
            lambda x: x.reshape(2, 3, 2, 5).transpose(1, 0, 2, 3).reshape(3, 4, 5),
        ),
        ("... c -> c ...", {}, (2, 3, 4), lambda x: np.moveaxis(x, -1, 0)),
        ("b c -> b 1 c", {}, (2, 3), lambda x: x[:, None]),
        ("h -> h 1 1", {}, (3,), lambda x: x[:, None, None]),
    ],
)
def test_rearrange_moves_elements_as_its_pattern_says(pattern, sizes, shape, expected) -> None:  # type: ignore[no-untyped-def]
    x = ints(shape)
    np.testing.assert_array_equal(Rearrange(pattern, tuple(sizes.items())).forward(x), expected(x))


def test_heads_own_neighbouring_features() -> None:
    assert Heads(2).forward(ints((1, 4)))[:, 0].tolist() == [[0, 1], [2, 3]]


def test_repeat_copies_blocks_or_neighbours_as_its_pattern_says() -> None:
    x = np.array([1, 2])
    assert Repeat_("c -> (r c)", (("r", 2),)).forward(x).tolist() == [1, 2, 1, 2]
    assert Repeat_("c -> (c r)", (("r", 2),)).forward(x).tolist() == [1, 1, 2, 2]


def test_heads_of_a_width_are_a_quotient() -> None:
    assert shape_of(Heads(Dim("H")), X) == (B, Dim("H"), T, C / Dim("H"))


@pytest.mark.parametrize(
    ("op", "message", "start", "end"),
    [
        (Rearrange("b t c -> b t"), "`c` is lost: rearrange keeps every axis", 4, 5),
        (Rearrange("b t c -> b t c h"), "`h` is new: rearrange adds no axis", 15, 16),
        (Rearrange("b t, c -> b t c"), "`rearrange` takes one value and gives one", 3, 4),
        (Repeat_("b t c -> b t"), "`c` is lost: repeat keeps every axis", 4, 5),
        (Repeat_("b t c -> b r t c"), "how often `r` repeats is not known", 11, 12),
        (Einsum("b t c -> b t h"), "`h` stands in no operand", 13, 14),
        (Einsum("b t (h d) -> b"), "einsum takes letters only", 4, 9),
        (Einsum("b c1 1 -> b"), "einsum takes letters only", 5, 6),
        (Einsum("b t c -> b t, c"), "einsum gives one value", 12, 13),
        (Einsum("... c -> c"), "`...` is lost", 0, 3),
        (Concat(axes="b t c"), "one axis must stand in square brackets", 0, 5),
        (Concat(axes="b [t] (c d)"), "`(c` is no axis name", 6, 8),
        (Rearrange("(... c) -> ... c"), "`...` may not stand in a group", 1, 4),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused_at_its_place(op: Op, message: str, start: int, end: int) -> None:
    with pytest.raises(PatternError, match=re.escape(message)) as found:
        op.infer(X)
    assert (str(found.value), found.value.start, found.value.end) == (message, start, end)


def test_a_size_for_an_axis_that_is_not_there_is_refused() -> None:
    (refusal,) = Rearrange("b t c -> t b c", (("h", 2),)).refusals()
    assert refusal.message == '"b t c -> t b c" has no axis `h`'
    assert not list(Rearrange("b (h d) -> b h d", (("h", 2),)).refusals())


# Joining and cutting


def test_lengths_add_up_in_a_join() -> None:
    assert shape_of(Concat(axes="b [t] c"), X, typed("B P C"), typed("B 2 C")) == (B, T + Dim("P") + 2, C)
    assert shape_of(Concat(), typed("T 2"), typed("T 3")) == (T, 5)


def test_a_join_along_time_reads_the_past() -> None:
    assert Concat(axes="b [t] c").moves((typed("B P C"), X)) == (
        Move(0, "a1", Dim(0), Dim(0)),
        Move(1, "a1", -Dim("P"), -Dim("P")),
    )


@pytest.mark.parametrize(
    ("op", "types", "code", "message"),
    [
        (Concat(), (X, typed("B S C")), "BG104", "differ beside the axis that is joined"),
        (Concat(), (X, typed("B C")), "BG105", "joins values with as many axes"),
        (Concat(axes="b [t] c"), (typed("T C"),), "BG105", "does not fit"),
        (Concat(), (X, typed("B T C", "int")), "BG107", "cannot join numbers, ids and booleans"),
        (Split((D, 3)), (X,), "BG108", "the parts sum to {} but the axis is {}"),
        (Split(Dim("N")), (X,), "BG108", "must be a number from 1 to 4096, not {}"),
        (Split(2), (typed(""),), "BG105", "a single number has none"),
        (Einsum("b t c, c d -> b t d"), (X,), "BG105", "names {} values and {} are given"),
        (Einsum("b t c, c d -> b t d"), (X, typed("D C")), "BG104", "axis `c` of `operand 2` is {} where"),
        (Rope("half"), (typed("T 5"),), "BG103", "{} is odd"),
        (Rope("half", width=6), (typed("T 4"),), "BG104", "`width` of `rope` is {} where x has {} features"),
        (Lookup(), (typed("V C"), X), "BG107", "takes ids here, not numbers"),
        (RelativeBuckets(8, 20, "past"), (typed(""),), "BG105", "a single number has none"),
        (Index((0, 0, 0, 0)), (X,), "BG105", "the subscript names {} axes and the value has {}"),
        (Index((..., 0, ...)), (X,), "BG105", "may have one `...` only"),
        (Index((WHOLE, (None, None, 2))), (X,), "BG106", "how many positions every {} of {}"),
        (Index((WHOLE, (None, None, -1))), (X,), "BG106", "the step of a slice must be a number from 1"),
        (Index((WHOLE, (None, T + 1, None))), (X,), "BG106", "the slice from {} to {} does not fit an axis of {}"),
        (Index((..., 4)), (typed("B 4"),), "BG106", "position {} lies outside an axis of {}"),
        (Index((..., -5)), (typed("B 4"),), "BG106", "position {} lies outside an axis of {}"),
    ],
)
def test_operands_that_do_not_fit_are_told(op: Op, types: tuple[Type, ...], code: str, message: str) -> None:
    with pytest.raises(Misfit, match=message.replace("{}", r"\{\}").replace("...", r"\.\.\.")) as found:
        op.infer(*types)
    assert found.value.code == code
    assert found.value.message.count("{}") == len(found.value.parts)


def test_halves_come_in_the_order_written() -> None:
    gate, up = Split(2).forward(np.array([[1.0, 2.0]]))
    assert (gate.item(), up.item()) == (1, 2)
    silu = gate / (1 + np.exp(-gate))
    assert (silu * up).item() == pytest.approx(1.4621172, abs=1e-6)


def test_the_gradient_of_a_part_that_is_not_used_is_zero() -> None:
    (dx,) = Split((1, 2)).backward((None, np.ones((1, 2))), None, np.zeros((1, 3)))
    assert dx.tolist() == [[0, 1, 1]]


# Subscripts


@pytest.mark.parametrize(
    ("items", "shape", "moves"),
    [
        ((WHOLE, 0), (B, C), ()),
        ((WHOLE, (None, -1, None)), (B, T - 1, C), (Move(0, "a1", Dim(0), Dim(0)),)),
        ((WHOLE, (1, None, None)), (B, T - 1, C), (Move(0, "a1", Dim(1), Dim(1)),)),
        ((WHOLE, (-W, None, None)), (B, W, C), (Move(0, "a1", T - W, T - W),)),
        ((WHOLE, (T - W, T, None)), (B, W, C), (Move(0, "a1", T - W, T - W),)),
        ((..., (None, D, None)), (B, T, D), (Move(0, "a2", Dim(0), Dim(0)),)),
        ((None, ..., None, WHOLE), (1, B, T, 1, C), ()),
        ((WHOLE, (None, T, None)), (B, T, C), ()),
    ],
)
def test_a_subscript_gives_sizes_for_all_numbers(items: tuple, shape: tuple, moves: tuple) -> None:
    assert shape_of(Index(items), X) == shape
    assert Index(items).moves((X,)) == moves


def test_a_new_axis_may_stretch_and_a_cut_to_one_may_not() -> None:
    new, *_ = shape_of(Index((None,)), X) or ()
    cut = (shape_of(Index((WHOLE, (0, 1, None))), X) or ())[1]
    assert new.stretchy
    assert cut == 1
    assert not cut.stretchy


def test_a_slice_needs_an_axis_that_is_long_enough() -> None:
    table = typed("L C", bare=True)
    assert list(Index(((None, T, None),)).needs((table,))) == [Need(T, Dim("L"))]
    assert list(Index((3,)).needs((table,))) == [Need(Dim(4), Dim("L"))]
    assert not list(Index((-1, (None, -1, None))).needs((table,)))


@pytest.mark.parametrize(
    "items", [(0,), (-1, ..., (1, 3, None)), ((None, None, 2), None), ((-3, -1, None),), (..., None, (0, 4, 3))]
)
def test_subscripts_read_what_numpy_reads(items: tuple) -> None:
    x = ints((4, 5, 6))
    expected = x[tuple(slice(*item) if isinstance(item, tuple) else item for item in items)]
    y = Index(items).forward(x)
    np.testing.assert_array_equal(y, expected)
    assert shape_of(Index(items), typed("4 5 6")) == y.shape


# Along time


def test_shift_moves_to_the_right_and_zeros_enter() -> None:
    x = np.array([[1.0], [2.0], [3.0]])
    assert Shift(1).forward(x).ravel().tolist() == [0, 1, 2]
    assert Shift(-2).forward(x).ravel().tolist() == [3, 0, 0]
    assert Shift(3).forward(x).ravel().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("causal", "taps", "left"), [(True, 3, 2), (False, 3, 1), (False, 4, 1), (True, 1, 0), (False, 7, 3)]
)
def test_a_convolution_is_that_of_numpy(causal: bool, taps: int, left: int) -> None:
    x, weight = RNG.standard_normal((5, 2)), RNG.standard_normal((taps, 2))
    y = DepthwiseConv(causal=causal).forward(x, weight)
    for c in range(2):
        padded = np.pad(x[:, c], (left, taps - 1 - left))
        np.testing.assert_allclose(y[:, c], np.correlate(padded, weight[:, c], "valid"), atol=1e-14)


# Products


@pytest.mark.parametrize(
    ("pattern", "numpy_pattern", "shapes"),
    [
        ("b h t d, b h s d -> b h t s", "bhtd,bhsd->bhts", ((2, 3, 4, 5), (2, 3, 6, 5))),
        ("b t c, c h r -> b h t r", "btc,chr->bhtr", ((2, 3, 4), (4, 5, 6))),
        ("b h t s, b h s r, h r c -> b t c", "bhts,bhsr,hrc->btc", ((2, 3, 4, 5), (2, 3, 5, 6), (3, 6, 7))),
        ("m n, b t n c -> b t m c", "mn,btnc->btmc", ((2, 3), (4, 5, 3, 6))),
        ("a b, c d -> d a", "ab,cd->da", ((2, 3), (4, 5))),
        ("a b, b c, c a ->", "ab,bc,ca->", ((2, 3), (3, 4), (4, 2))),
        ("a, a, a, a -> a", "a,a,a,a->a", ((3,),) * 4),
        ("... t c, ... s c -> ... s t", "...tc,...sc->...st", ((2, 3, 4, 5), (2, 3, 6, 5))),
        ("head time feature, feature -> time head", "htf,f->th", ((2, 3, 4), (4,))),
    ],
)
def test_einsum_is_that_of_numpy(pattern: str, numpy_pattern: str, shapes: tuple) -> None:
    arrays = [RNG.standard_normal(shape) for shape in shapes]
    np.testing.assert_allclose(Einsum(pattern).forward(*arrays), np.einsum(numpy_pattern, *arrays), atol=1e-12)


def test_einsum_counts_pairwise_products() -> None:
    types = typed("B T C"), typed("C D")
    op = Einsum("b t c, c d -> b t d")
    assert op.cost(types, op.infer(*types)).products == 2 * B * T * C * D
    outer = Einsum("t, c -> t c")
    cost = outer.cost((typed("T"), typed("C")), outer.infer(typed("T"), typed("C")))
    assert (cost.products, cost.elementwise) == (0, T * C)


# Looking up and putting


def test_rows_used_twice_add_their_gradients() -> None:
    table, ids = np.zeros((4, 2)), np.array([[2, 0], [2, 2]])
    dtable, dids = Lookup().backward(ints((2, 2, 2)), None, table, ids)
    assert dids is None
    assert dtable.tolist() == [[2, 3], [0, 0], [0 + 4 + 6, 1 + 5 + 7], [0, 0]]


def test_top_k_is_best_first_and_the_lowest_index_wins_a_tie() -> None:
    values, indices = TopK(3).forward(np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0]]))
    assert values.tolist() == [[3, 3, 2], [0, 0, 0]]
    assert indices.tolist() == [[1, 2, 3], [0, 1, 2]]
    assert TopK(3).forward(np.tile([0.0, 1.0], 500))[1].tolist() == [1, 3, 5]
    (dx,) = TopK(3).backward((np.array([[1.0, 2.0, 3.0]]), None), (values[:1], indices[:1]), np.zeros((1, 4)))
    assert dx.tolist() == [[0, 1, 2, 3]]


def test_top_k_knows_how_many_there_must_be() -> None:
    values, indices = TopK(D).infer(X)
    assert (values.shape, values.dtype, indices.shape, indices.dtype) == ((B, T, D), "float", (B, T, D), "int")
    assert list(TopK(D).needs((X,))) == [Need(D, C)]


def test_put_writes_values_where_they_came_from() -> None:
    x = np.array([[5.0, 1.0, 7.0], [0.5, 3.0, 2.0]])
    values, indices = TopK(2).forward(x)
    assert Put(3).forward(values, indices).tolist() == [[5, 0, 7], [0, 3, 2]]
    assert Put(2).forward(np.array([1.0, 2.0]), np.array([1, 1])).tolist() == [0, 3]


@pytest.mark.parametrize("op", [TopK(0), Put(0), Heads(0), TopK(-1), Repeat_("b -> b r", (("r", 0),))])
def test_a_count_below_one_is_refused(op: Op) -> None:
    (refusal,) = op.refusals()
    assert "whole number from 1" in refusal.message


# Positions


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("pairs", [-1.1426397, 1.9220756, 2.9598507, 4.0297995]),
        ("half", [-1.9841106, 1.9599007, 2.4623779, 4.0197997]),
    ],
)
def test_rotary_pairs_neighbours_or_halves(style: str, expected: list[float]) -> None:
    y = Rope(style).forward(np.tile([1.0, 2.0, 3.0, 4.0], (2, 1)))
    assert y[0].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(y[1], expected, atol=1e-6)


def test_a_rotary_style_must_be_known_and_the_width_even() -> None:
    found = {refusal.option: refusal.message for refusal in Rope("both", theta=0, width=3).refusals()}
    assert found == {
        "style": "`both` is no style of rotary positions",
        "theta": "theta must be positive, not 0",
        "width": "rotary positions turn pairs of features, and 3 is odd or too small",
    }
    assert list(Rope("half", width=D).needs((X,))) == [Need(Dim(2), D, "divides"), Need(D, C)]


def test_rotary_scores_depend_on_distance_alone() -> None:
    q, k = np.tile(RNG.standard_normal(6), (9, 1)), np.tile(RNG.standard_normal(6), (9, 1))
    scores = Rope("half", width=4).forward(q) @ Rope("half", width=4).forward(k).T
    np.testing.assert_allclose(scores[1:, 1:], scores[:-1, :-1], atol=1e-12)


def test_sinusoids_are_those_of_the_paper() -> None:
    y = Sinusoid("pairs").forward(np.zeros((3, 4)))
    expected = [math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100)]
    np.testing.assert_allclose(y[0, 2], expected, atol=1e-15)
    np.testing.assert_allclose(Sinusoid("half").forward(np.zeros((3, 4)))[0, 2], [expected[i] for i in (0, 2, 1, 3)])


def bucket(ahead: int, buckets: int, distance: int, both: bool) -> int:
    """The definition for one distance; the small term stands against rounding where the logarithm is whole."""
    start = 0
    if both:
        buckets //= 2
        start = buckets if ahead > 0 else 0
        r = abs(ahead)
    else:
        r = max(-ahead, 0)
    m = buckets // 2
    if r < m:
        return start + r
    return start + min(m + math.floor(math.log(r / m) / math.log(distance / m) * (buckets - m) + 1e-9), buckets - 1)


@pytest.mark.parametrize(("buckets", "distance"), [(32, 128), (8, 20), (4, 9), (16, 1000)])
@pytest.mark.parametrize("direction", ["both", "past"])
def test_buckets_of_distances_are_those_of_the_definition(buckets: int, distance: int, direction: str) -> None:
    found = RelativeBuckets(buckets, distance, direction).forward(np.zeros((1, 300)))
    expected = [[bucket(j - i, buckets, distance, direction == "both") for j in range(300)] for i in range(300)]
    np.testing.assert_array_equal(found, expected)


def test_buckets_with_other_keys_align_at_the_end() -> None:
    found = RelativeBuckets(8, 20, "past", given=("keys",)).forward(np.zeros((1, 2)), np.zeros((1, 4)))
    assert found.tolist() == [[2, 1, 0, 0], [3, 2, 1, 0]]


@pytest.mark.parametrize(
    ("buckets", "distance", "direction"), [(3, 20, "past"), (2, 20, "both"), (8, 4, "past"), (8, 9, "up")]
)
def test_buckets_that_make_no_sense_are_refused(buckets: int, distance: int, direction: str) -> None:
    assert len(list(RelativeBuckets(buckets, distance, direction).refusals())) == 1
