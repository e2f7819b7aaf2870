"""Numbers with symbols: Python's own arithmetic is the oracle."""

from __future__ import annotations

import ast
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockgraph.dims import Dim
from blockgraph.number import FUNCTIONS, Number, NumberError

SYMBOLS = ("N", "layer", "beta")
N, LAYER, BETA = (Number(name) for name in SYMBOLS)
CALLS = {name: (lambda *args, name=name: Number.call(name, *(Number(arg) for arg in args))) for name in FUNCTIONS}
MATH = {name: getattr(math, name) for name in FUNCTIONS if hasattr(math, name)} | {"abs": abs, "max": max, "min": min}


class _Literals(ast.NodeTransformer):
    """Wraps literals, so that constants fold by the rules of Number and not by Python's."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Call(ast.Name("Number", ast.Load()), [node], [])


def read(text: str) -> Number:
    """The number that Python reads from a text."""
    tree = ast.fix_missing_locations(_Literals().visit(ast.parse(text, mode="eval")))
    names: dict[str, Any] = {**CALLS, **{name: Number(name) for name in SYMBOLS}, "Number": Number}
    return Number(eval(compile(tree, "number", "eval"), names))


constants = st.integers(-9, 9) | st.floats(-100, 100).map(lambda x: round(x, 3))
leaves = st.sampled_from(SYMBOLS) | constants.map(lambda x: f"({x!r})")
texts = st.recursive(
    leaves,
    lambda inner: (
        st.builds("({}{}{})".format, inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner)
        | st.builds("(-{})".format, inner)
        | st.builds("{}({})".format, st.sampled_from(["sqrt", "exp", "log", "tanh", "abs", "floor"]), inner)
        | st.builds("max({}, {})".format, inner, inner)
    ),
    max_leaves=8,
)


def built(text: str) -> Number | None:
    """The number of a text; None where a constant part has no value."""
    try:
        return read(text)
    except NumberError:
        return None


@given(texts)
@settings(max_examples=300, deadline=None)
def test_a_number_reads_back_from_its_text(text: str) -> None:
    number = built(text)
    if number is not None:
        assert read(str(number)) == number
        assert str(read(str(number))) == str(number)


@given(texts, st.integers(1, 20), st.integers(1, 20), st.floats(0.1, 2))
@settings(max_examples=300, deadline=None)
def test_a_number_has_the_value_that_python_computes(text: str, n: int, layer: int, beta: float) -> None:
    values: dict[str, float] = {"N": n, "layer": layer, "beta": beta}
    number = built(text)
    if number is None:
        return
    try:
        value = number.evaluate(values)
    except NumberError:
        with pytest.raises(NumberError, match=r"\w"):
            number.subs(values)
        return
    assert number.subs(values).value == value
    assert value == pytest.approx(eval(text, {**MATH, **values}), rel=1e-12)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ((2 * N) ** 0.25, "(2*N)**0.25"),
        (1 / Number.call("sqrt", LAYER), "1/sqrt(layer)"),
        (Dim("D") ** Number(-0.5), "D**-0.5"),
        (0.02 / Number.call("sqrt", 2 * N), "0.02/sqrt(2*N)"),
        (Number(2) * 3, "6"),
        (Number(6) / 3, "2"),
        (Number(1) / 2, "0.5"),
        (Number(0.00001), "1e-05"),
        (Number(4 * Dim("C")), "4*C"),
        (Number(3 * Dim("C") / (2 * Dim("H")) - 1), "3*C/(2*H) - 1"),
        (Number(-Dim("C") - 1), "-C - 1"),
        (Number(1 / Dim("H") ** 2), "1/H**2"),
        (Number(Dim(0)), "0"),
        (Number(Dim("C") + Fraction(1, 2)), "C + 0.5"),
        (N - (N - 1), "N - (N - 1)"),
        (N / (N * 2), "N/(N*2)"),
        ((N**2) ** 3, "(N**2)**3"),
        (Number(-2) ** N, "(-2)**N"),
        (-(N**2), "-N**2"),
        ((-N) ** 2, "(-N)**2"),
        (-(2 * N), "-(2*N)"),
        (N * -2, "N*-2"),
        (Number.call("max", N - 1, Number(1)), "max(N - 1, 1)"),
    ],
)
def test_a_number_is_written_as_people_write_it(number: Number, text: str) -> None:
    assert str(number) == text


def test_a_size_in_a_number_is_the_same_as_the_number_written_out() -> None:
    assert Number(4 * Dim("C")) == 4 * Number("C") == Number(4) * Dim("C")
    assert hash(Number(4 * Dim("C"))) == hash(4 * Number("C"))
    assert Number(Dim("C")) ** 2 != Number("C") * Number("C")
    assert Number(3) == 3
    assert hash(Number(3)) == hash(3)
    assert N != 3


def test_whole_numbers_stay_exact() -> None:
    assert (Number(10) ** 40 + 1).value == 10**40 + 1
    assert (N * Dim("C") / 2).evaluate({"N": 3, "C": 10**20}) == 15 * 10**19
    assert isinstance((N / 2).evaluate({"N": 4}), int)
    assert Number.call("floor", N / 2).evaluate({"N": 5}) == 2


def test_replacing_symbols_happens_at_once_and_folds() -> None:
    assert (N / LAYER).subs({"N": LAYER, "layer": N}) == LAYER / N
    assert (N * 2).subs({"N": Dim("C") * 3}) == Number(3 * Dim("C")) * 2
    assert ((2 * N) ** 0.25).subs({"N": 8}).value == 2.0
    assert ((2 * N) ** BETA).symbols == {"N", "beta"}
    assert N.subs({"layer": 2}) is N


REFUSED: list[tuple[Any, str]] = [
    (lambda: Number.call("sqrt", Number(-1)), r"^sqrt\(-1\) has no real value$"),
    (lambda: Number.call("log", Number(0)), r"^log\(0\) has no real value$"),
    (lambda: Number(1) / 0, r"^1/0 divides by zero$"),
    (lambda: Number(0) ** -1, r"^0\*\*-1 divides by zero$"),
    (lambda: Number(-8) ** 0.5, r"^\(-8\)\*\*0\.5 has no real value: the power of a negative number must be whole$"),
    (lambda: Number.call("exp", Number(1000)), r"^exp\(1000\) is too large$"),
    (lambda: Number(1e308) * 10, r"^1e\+308\*10 is too large$"),
    (lambda: Number(10**307) * 100, r"^1e\+307\*100 is too large$"),
    (lambda: Number(10) ** (10**300), r"^10\*\*1e\+300 is too large$"),
    (lambda: Number(9.0) ** 5000, r"is too large$"),
    (lambda: Number(10**5000), r"more than 300 digits"),
    (lambda: Number(math.inf), r"^inf is not a finite number$"),
    (lambda: N * math.nan, r"^nan is not a finite number$"),
    (lambda: Number(True), r"^True is not a number$"),
    (lambda: Number("2N"), r"^'2N' is not a name"),
    (lambda: Number.call("squrt", N), r"^there is no function squrt of numbers: did you mean sqrt\?$"),
    (lambda: Number.call("zzz", N), r"there are abs, ceil"),
    (lambda: Number.call("sqrt", N, N), r"^sqrt takes 1 number, not 2$"),
    (lambda: Number.call("max", N), r"^max takes 2 numbers or more, not 1$"),
    (lambda: (1 / N).evaluate({}), r"^1/N has no value, as N is not known$"),
    (lambda: (1 / N).evaluate({"N": 0}), r"^1/0 divides by zero, in 1/N with N = 0$"),
    (lambda: N.evaluate({"N": math.inf}), r"^inf is not a finite number, in N"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_what_is_no_number_is_refused_in_the_words_of_the_user(build: Any, message: str) -> None:
    with pytest.raises(NumberError, match=message):
        build()


def test_depth_costs_no_recursion_and_length_is_bounded() -> None:
    number = N
    for _ in range(2000):
        number = 1 + number
    assert number.evaluate({"N": 1}) == 2001
    assert number.subs({"N": 1}).value == 2001
    assert str(number).startswith("1 + (1 + (")
    number = number * number
    with pytest.raises(NumberError, match="more than 10000 parts"):
        number * number * number


def test_a_number_survives_pickling_and_cannot_be_changed() -> None:
    assert pickle.loads(pickle.dumps((2 * N) ** 0.25)) == (2 * N) ** 0.25
    with pytest.raises(AttributeError, match="cannot be changed"):
        N.steps = ()  # type: ignore[misc]
