"""Known values and refusals of arithmetic and of functions of one value."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

from blockgraph.dims import STRETCH, Dim, show
from blockgraph.op import Misfit, Op, Type, load_ops
from blockgraph.ops.activations import Elu, GeluErf, GeluTanh, QuickGelu, Relu, ReluSquared, Silu, Softplus
from blockgraph.ops.arithmetic import Add, Compare, Divide, Multiply, Power, Subtract
from blockgraph.ops.elementwise import Exp, Log, Sigmoid, Sqrt, StopGradient, Tanh, Where
from blockgraph.ops.erf import CHUNK, erf
from tests.op_samples import typed

OPS = load_ops()


def misfit(op: Op, *types: Type) -> Misfit:
    with pytest.raises(Misfit, match=r".") as caught:
        op.infer(*types)
    return caught.value


def shape(op: Op, *types: Type) -> str:
    return show(op.infer(*types)[0].shape)


# Shapes of operands that meet.


@pytest.mark.parametrize("op", [Add(), Subtract()], ids=["add", "subtract"])
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (typed("B T C"), typed("B T C"), "(B, T, C)"),
        (typed("B T C"), typed("1 T C"), "(B, T, C)"),
        (typed("B T 1"), typed("B 1 C"), "(B, T, C)"),
        (typed("B T C"), typed("C", bare=True), "(B, T, C)"),
        (typed("B T C"), typed("", bare=True), "(B, T, C)"),
        (typed("B T C"), typed("=1 C", bare=True), "(B, T, C)"),
        (typed("=1 C", bare=True), typed("T 1 1", bare=True), "(T, 1, C)"),
        (typed("B =1"), typed("B =1"), "(B, 1)"),
    ],
)
def test_plus_accepts_equal_shapes_written_ones_and_parameters(op: Op, left: Type, right: Type, expected: str) -> None:
    assert shape(op, left, right) == expected
    assert shape(op, right, left) == expected


@pytest.mark.parametrize("op", [Add(), Subtract()], ids=["add", "subtract"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (typed("B T C"), typed("B T 3*C")),
        (typed("B T C"), typed("B T =1")),
        (typed("B T C"), typed("T C")),
        (typed("B T C"), typed("C")),
        (typed("B T C"), typed("")),
        (typed("B T =1"), typed("C", bare=True)),
        (typed("C"), typed("T C", bare=True)),
        (typed("B T C"), typed("B T D", bare=True)),
    ],
)
def test_plus_refuses_an_accidental_broadcast(op: Op, left: Type, right: Type) -> None:
    for first, second in ((left, right), (right, left)):
        found = misfit(op, first, second)
        assert found.code == "BG101"
        assert found.blame == 1
        assert found.parts == (first.shape, second.shape)
        assert found.message == f"operands of `{'+' if isinstance(op, Add) else '-'}` need equal shapes: {{}} and {{}}"


def test_plus_says_how_a_width_of_one_can_be_added() -> None:
    assert misfit(Add(), typed("B T C"), typed("B T =1")).help.startswith(
        "multiply by it, or write the broadcast with repeat("
    )
    assert "rearrange" in misfit(Add(), typed("B T C"), typed("T C")).help
    assert misfit(Add(), typed("B T C"), typed("B T D")).help == ""


@pytest.mark.parametrize("op", [Multiply(), Divide(), Power(), Compare(), Add(stretch=True)], ids=lambda op: op.name)
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (typed("B T C"), typed("B T =1"), "(B, T, C)"),
        (typed("B T C"), typed("T C"), "(B, T, C)"),
        (typed("H 1 1"), typed("B =1 T T"), "(B, H, T, T)"),
        (typed(""), typed("B"), "(B,)"),
        (typed("2*C"), typed("2*C"), "(2*C,)"),
    ],
)
def test_times_stretches_any_one(op: Op, left: Type, right: Type, expected: str) -> None:
    assert shape(op, left, right) == expected
    assert shape(op, right, left) == expected


def test_times_names_both_axes_that_do_not_match() -> None:
    found = misfit(Multiply(), typed("B T C"), typed("B S C"))
    assert (found.code, found.blame) == ("BG104", 1)
    assert found.parts == (Dim("T"), typed("B T C").shape, Dim("S"), typed("B S C").shape)
    assert found.message == "axes of `*` do not match: {} in {}, {} in {}"


def test_times_says_how_to_align_operands_of_different_ranks() -> None:
    found = misfit(Multiply(), typed("B T C"), typed("B C"))
    assert found.help.startswith("axes are matched from the right; give the smaller one the axes it lacks")
    assert misfit(Multiply(), typed("B T C"), typed("B S C")).help == ""


def test_sizes_that_are_equal_as_numbers_only_do_not_match() -> None:
    assert misfit(Multiply(), typed("C"), typed("64")).code == "BG104"
    assert misfit(Add(), typed("C"), typed("D")).code == "BG101"


def test_a_stretched_axis_has_the_size_of_the_other_and_two_stay_stretchable() -> None:
    def last(op: Op, left: str, right: str) -> Dim:
        out = op.infer(typed(left), typed(right))[0].shape
        assert out is not None
        return out[-1]

    for op in (Add(), Multiply()):
        assert last(op, "B 1", "B 1") is STRETCH
        assert not last(op, "B 1", "B =1").stretchy
        assert not last(op, "B =1", "B 1").stretchy


def test_only_values_of_parameters_and_numbers_are_bare() -> None:
    bare, stream = typed("C", bare=True), typed("B T C")
    assert Add().infer(bare, bare)[0].bare
    assert Exp().infer(bare)[0].bare
    assert not Multiply().infer(stream, bare)[0].bare


@pytest.mark.parametrize("op", [Add(), Subtract(), Multiply(), Divide(), Power()], ids=lambda op: op.name)
@pytest.mark.parametrize(("dtype", "word"), [("int", "ids"), ("bool", "true and false")])
def test_arithmetic_refuses_ids_and_booleans(op: Op, dtype: str, word: str) -> None:
    found = misfit(op, typed("B T"), typed("B T", dtype))  # type: ignore[arg-type]
    assert (found.code, found.blame) == ("BG107", 1)
    assert found.message == f"`{op.symbol}` takes numbers, not {word}"  # type: ignore[attr-defined]


def test_comparisons_give_booleans_and_refuse_them() -> None:
    ids, number = typed("B T", "int"), typed("", bare=True)
    assert Compare(relation="==").infer(ids, number)[0] == Type(typed("B T").shape, "bool")
    assert (
        misfit(Compare(), typed("B", "bool"), typed("B", "bool")).message == "`<` compares numbers, not true and false"
    )
    assert misfit(Compare(relation="=="), ids, typed("B T")).message == "`==` compares ids with numbers"
    assert [refusal.option for refusal in Compare(relation="=<").refusals()] == ["relation"]


def test_where_wants_a_condition() -> None:
    assert misfit(Where(), typed("B"), typed("B"), typed("B")).code == "BG107"


# Gradients of operands that were stretched, and of branches that were not chosen.


def test_the_gradient_of_a_stretched_operand_has_its_shape() -> None:
    x, bias, gain = np.ones((2, 3, 4)), np.zeros(4), np.full((1, 3, 1), 2.0)
    dy = np.ones((2, 3, 4))
    _, dbias = Add().backward(dy, x + bias, x, bias)
    np.testing.assert_array_equal(dbias, [6, 6, 6, 6])
    dx, dgain = Multiply().backward(dy, x * gain, x, gain)
    assert dgain.shape == (1, 3, 1)
    np.testing.assert_array_equal(dgain[0, :, 0], [8, 8, 8])
    np.testing.assert_array_equal(dx, np.full((2, 3, 4), 2.0))


def test_a_number_in_an_equation_has_no_gradient_and_widens_nothing() -> None:
    x = np.ones(3, np.float32)
    for op in (Add(), Subtract(), Multiply(), Divide(), Power()):
        y = op.forward(x, 2)
        dx, none = op.backward(np.ones_like(y), y, x, 2)
        assert (y.dtype, dx.dtype, none) == (np.float32, np.float32, None)
        y = op.forward(2.5, x)
        none, dx = op.backward(np.ones_like(y), y, 2.5, x)
        assert (y.dtype, dx.dtype, none) == (np.float32, np.float32, None)
    assert Where().forward(x > 0, x, 0.5).dtype == np.float32
    assert isinstance(Exp().forward(1.0), float)


@pytest.mark.parametrize(
    ("op", "x"),
    [(Sqrt(), [-1.0, -4.0, 0.0]), (Log(), [0.0, -1.0, 0.0]), (Exp(), [800.0, 1000.0, 710.0])],
    ids=["sqrt", "log", "exp"],
)
def test_no_gradient_comes_from_a_branch_that_was_not_chosen(op: Op, x: list[float]) -> None:
    values = np.array(x)
    with np.errstate(all="ignore"):
        branch = op.forward(values)
    chosen = np.zeros(3, bool)
    y = Where().forward(chosen, branch, values)
    _, dbranch, dvalues = Where().backward(np.ones(3), y, chosen, branch, values)
    (dx,) = op.backward(dbranch, branch, values)
    np.testing.assert_array_equal(dx + dvalues, [1, 1, 1])


def test_no_gradient_comes_from_a_quotient_or_product_that_was_not_chosen() -> None:
    zero, one, infinite = np.zeros(2), np.ones(2), np.full(2, np.inf)
    with np.errstate(all="ignore"):
        y = Divide().forward(one, zero)
    for gradient in (
        *Divide().backward(np.zeros(2), y, one, zero),
        *Multiply().backward(np.zeros(2), y, one, infinite),
    ):
        np.testing.assert_array_equal(gradient, [0, 0])


def test_the_gradient_passes_infinity_on_where_the_branch_was_chosen() -> None:
    (dx,) = Sqrt().backward(np.array([1.0, 0.0]), np.zeros(2), np.zeros(2))
    assert np.isinf(dx[0])
    assert dx[1] == 0


# Functions of one value against definitions computed to 30 digits.

t = sympy.Symbol("t", real=True)
FORMULAS: dict[str, tuple[Op, sympy.Expr]] = {
    "sigmoid": (Sigmoid(), 1 / (1 + sympy.exp(-t))),
    "tanh": (Tanh(), sympy.tanh(t)),
    "silu": (Silu(), t / (1 + sympy.exp(-t))),
    "quick_gelu": (QuickGelu(), t / (1 + sympy.exp(-sympy.Rational(1702, 1000) * t))),
    "gelu_erf": (GeluErf(), t * (1 + sympy.erf(t / sympy.sqrt(2))) / 2),
    "gelu_tanh": (
        GeluTanh(),
        t * (1 + sympy.tanh(sympy.sqrt(2 / sympy.pi) * (t + sympy.Rational(44715, 10**6) * t**3))) / 2,
    ),
    "softplus": (Softplus(), sympy.log(1 + sympy.exp(t))),
}
POINTS = [-6.0, -2.5, -1.0, -0.125, 0.0, 0.25, 0.5, 1.0, 1.75, 3.0, 7.5]


@pytest.mark.parametrize("name", FORMULAS)
def test_curve_and_slope_equal_the_published_formula(name: str) -> None:
    op, formula = FORMULAS[name]
    x = np.array(POINTS)
    exact = [float(formula.subs(t, sympy.Rational(point)).evalf(30)) for point in POINTS]
    slopes = [float(sympy.diff(formula, t).subs(t, sympy.Rational(point)).evalf(30)) for point in POINTS]
    y = op.forward(x)
    np.testing.assert_allclose(y, exact, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(op.backward(np.ones_like(x), y, x)[0], slopes, rtol=1e-14, atol=2e-15)


def test_relu_and_its_kin_have_slope_zero_at_zero() -> None:
    x = np.array([-1.0, 0.0, 1e-9, 3.0])
    np.testing.assert_array_equal(Relu().backward(np.ones(4), Relu().forward(x), x)[0], [0, 0, 1, 1])
    np.testing.assert_array_equal(ReluSquared().forward(x), [0, 0, 1e-18, 9])
    np.testing.assert_allclose(Elu().forward(x), [math.expm1(-1), 0, 1e-9, 3], rtol=1e-15)


@pytest.mark.parametrize(
    "op", [Sigmoid(), Silu(), QuickGelu(), GeluErf(), GeluTanh(), Softplus(), Tanh()], ids=lambda op: op.name
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_arguments_neither_overflow_nor_warn(op: Op, dtype: type) -> None:
    x = np.array([-1e6, -800, -100, 100, 800, 1e6], dtype)
    y = op.forward(x)
    assert np.isfinite(y).all()
    assert np.isfinite(op.backward(np.ones_like(x), y, x)[0]).all()
    flat = op.name in ("sigmoid", "tanh")
    np.testing.assert_array_equal(y[3:], np.ones(3, dtype) if flat else x[3:])
    np.testing.assert_allclose(y[:3], -1 if op.name == "tanh" else 0, atol=1e-30)


@pytest.mark.parametrize("op", [Silu(), QuickGelu(), GeluErf(), GeluTanh()], ids=lambda op: op.name)
def test_large_arrays_are_taken_in_stretches_without_a_seam(op: Op) -> None:
    x = np.linspace(-5, 5, 3 * CHUNK + 17).reshape(1, -1)[:, ::-1]
    whole, part = op.forward(x), op.forward(x[:, CHUNK - 5 : CHUNK + 5])
    assert whole.shape == x.shape
    np.testing.assert_allclose(whole[:, CHUNK - 5 : CHUNK + 5], part, rtol=1e-15)
    np.testing.assert_allclose(whole[0, -1], op.forward(x[0, -1:])[0], rtol=1e-15)


def test_erf_is_good_to_double_precision() -> None:
    x = np.concatenate([np.linspace(-7, 7, 40_001), np.geomspace(1e-300, 0.5, 2_000), [0.46875, 4.0, 6.0, 30.0]])
    exact = np.array([math.erf(value) for value in x])
    error = np.abs(erf(x) - exact) / np.maximum(np.abs(exact), 1e-300)
    assert error.max() < 1e-15


def test_erf_in_float32_is_good_to_a_few_roundings() -> None:
    x = np.concatenate([np.linspace(-6, 6, 40_001), np.geomspace(1e-30, 0.5, 2_000)]).astype(np.float32)
    exact = np.array([math.erf(value) for value in x.astype(float)])
    assert (np.abs(erf(x) - exact) / np.maximum(np.abs(exact), 1e-30)).max() < 5e-7


def test_erf_knows_infinity_and_what_is_no_number() -> None:
    for dtype in (np.float32, np.float64):
        found = erf(np.array([np.inf, -np.inf, np.nan, -0.0], dtype))
        np.testing.assert_array_equal(found, [1, -1, np.nan, 0])
        assert np.signbit(found[3])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64, 65, 0.5, 1.5, -0.5, -1, -2])
def test_a_power_with_a_number_equals_the_plain_power(exponent: float) -> None:
    x = np.array([0.25, 1.0, 1.75])
    y = Power().forward(x, exponent)
    np.testing.assert_allclose(y, [value**exponent for value in x], rtol=1e-13)
    (dx, _) = Power().backward(np.ones(3), y, x, exponent)
    np.testing.assert_allclose(dx, [exponent * value ** (exponent - 1) for value in x], rtol=1e-13)


def test_powers_of_negative_numbers_and_zero_have_their_slopes() -> None:
    x = np.array([-2.0, 0.0])
    np.testing.assert_array_equal(Power().backward(np.ones(2), x * x, x, 2)[0], [-4, 0])
    np.testing.assert_array_equal(Power().backward(np.ones(2), np.ones(2), x, 0)[0], [0, 0])
    exponent = np.array([2.0, 3.0])
    y = Power().forward(x, exponent)
    dx, dexponent = Power().backward(np.ones(2), y, x, exponent)
    np.testing.assert_array_equal(dx, [-4, 0])
    np.testing.assert_array_equal(dexponent, [0, 0])


def test_stop_gradient_gives_none() -> None:
    assert StopGradient().backward(np.ones(2), np.ones(2), np.ones(2)) == (None,)


def test_the_activations_of_papers_may_stand_as_an_activation() -> None:
    names = {name for name, op in OPS.items() if op.activation}
    wanted = {
        "relu",
        "relu_squared",
        "silu",
        "gelu_erf",
        "gelu_tanh",
        "quick_gelu",
        "sigmoid",
        "tanh",
        "softplus",
        "elu",
    }
    assert names == wanted
