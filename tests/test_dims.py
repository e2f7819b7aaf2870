"""Sizes: tables for the cases a reader can check by hand, and sympy as the oracle for random expressions."""

from __future__ import annotations

import ast
import copy
import pickle
from fractions import Fraction
from typing import Any

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blockgraph.dims import STRETCH, Dim, DimError, Divides, show, show_numbers

SYMBOLS = ("C", "H", "N", "T")
C, H, N, T, P, D = (Dim(name) for name in "CHNTPD")
POSITIVE = {name: sympy.Symbol(name, positive=True) for name in SYMBOLS}


class _Literals(ast.NodeTransformer):
    """Wraps whole numbers, so that `1/2` is a size and not a float; powers stay plain."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node.left = self.visit(node.left)
        if not isinstance(node.op, ast.Pow):
            node.right = self.visit(node.right)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Call(ast.Name("Dim", ast.Load()), [node], [])


def read(text: str) -> Dim:
    """The size that Python reads from a text."""
    tree = ast.fix_missing_locations(_Literals().visit(ast.parse(text, mode="eval")))
    names = {node.id: Dim(node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return eval(compile(tree, "size", "eval"), {**names, "Dim": Dim})


Pair = tuple[Dim, Any]
leaves = st.sampled_from(SYMBOLS).map(lambda s: (Dim(s), POSITIVE[s])) | st.integers(-6, 6).map(
    lambda n: (Dim(n), sympy.Integer(n))
)


def _combined(children: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def combine(left: Pair, operation: str, right: Pair) -> Pair:
        if operation == "/":
            assume(len(right[0].terms) == 1)
            return left[0] / right[0], left[1] / right[1]
        if operation == "+":
            return left[0] + right[0], left[1] + right[1]
        if operation == "-":
            return left[0] - right[0], left[1] - right[1]
        return left[0] * right[0], left[1] * right[1]

    powers = st.builds(lambda x, n: (x[0] ** n, x[1] ** n), children, st.integers(0, 3))
    return powers | st.builds(combine, children, st.sampled_from("+-*/"), children)


expressions = st.recursive(leaves, _combined, max_leaves=8)
sizes = st.fixed_dictionaries({name: st.integers(1, 50) for name in SYMBOLS})


@given(expressions, expressions)
@settings(max_examples=150, deadline=None)
def test_two_sizes_are_equal_exactly_when_sympy_finds_no_difference(left: Pair, right: Pair) -> None:
    assert (left[0] == right[0]) == (sympy.expand(left[1] - right[1]) == 0)


@given(expressions)
@settings(max_examples=150, deadline=None)
def test_a_size_equals_what_sympy_expands_it_to(pair: Pair) -> None:
    expanded = str(sympy.expand(pair[1]))
    assert read(expanded) == pair[0]
    assert hash(read(expanded)) == hash(pair[0])


@given(expressions)
@settings(max_examples=150, deadline=None)
def test_a_size_reads_back_from_its_text(pair: Pair) -> None:
    assert read(str(pair[0])) == pair[0]


@given(expressions, sizes)
@settings(max_examples=150, deadline=None)
def test_a_size_has_the_number_that_sympy_computes(pair: Pair, values: dict[str, int]) -> None:
    exact = sympy.Rational(pair[1].subs({POSITIVE[name]: number for name, number in values.items()}))
    assert pair[0].evaluate(values) == Fraction(int(exact.p), int(exact.q))
    assert pair[0].subs(values).number == Fraction(int(exact.p), int(exact.q))


@given(expressions, sizes)
@settings(max_examples=150, deadline=None)
def test_a_size_is_whole_where_all_its_conditions_hold(pair: Pair, values: dict[str, int]) -> None:
    if all(condition.holds(values) for condition in pair[0].conditions()):
        assert pair[0].evaluate(values).denominator == 1


@given(expressions)
@settings(max_examples=100, deadline=None)
def test_replacing_symbols_happens_at_once(pair: Pair) -> None:
    swapped = pair[1].subs({POSITIVE["C"]: POSITIVE["H"], POSITIVE["H"]: POSITIVE["C"]}, simultaneous=True)
    assert pair[0].subs({"C": H, "H": C}) == read(str(sympy.expand(swapped)))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (4 * C, "4*C"),
        (C / H, "C/H"),
        (H * D, "D*H"),
        (T + P, "P + T"),
        (N - 1, "N - 1"),
        (1 - N, "1 - N"),
        (T - C, "T - C"),
        (C / (2 * H), "C/(2*H)"),
        (3 * C / (2 * H), "3*C/(2*H)"),
        (C / H / N, "C/(H*N)"),
        (-C, "-C"),
        (-C - 1, "-C - 1"),
        (-C / 2, "-C/2"),
        (Dim(1) / 2, "1/2"),
        (1 / H, "1/H"),
        (C**-2, "1/C**2"),
        ((N - 1) ** 2, "N**2 - 2*N + 1"),
        (C - C, "0"),
        (C + Fraction(1, 2), "C + 1/2"),
        (Dim(-3), "-3"),
    ],
)
def test_a_size_is_written_as_people_write_it(size: Dim, text: str) -> None:
    assert str(size) == text
    assert read(text) == size


@pytest.mark.parametrize(
    ("size", "conditions"),
    [
        (C / H, ["H divides C"]),
        (3 * C / (2 * H), ["2*H divides 3*C"]),
        (-C / H, ["H divides C"]),
        (Dim(7) / 2, ["2 divides 7"]),
        (C / H + T / 2 + 1, ["2 divides T", "H divides C"]),
        (C / H - C / H + N, []),
        (4 * C, []),
    ],
)
def test_every_fraction_is_a_condition(size: Dim, conditions: list[str]) -> None:
    assert sorted(str(condition) for condition in size.conditions()) == sorted(conditions)


@pytest.mark.parametrize(
    ("values", "holds", "remainder"),
    [
        ({"C": 64, "H": 4}, True, 0),
        ({"C": 64, "H": 5}, False, 4),
        ({"C": 64}, None, None),
        ({"C": 0, "H": 0}, False, 0),
    ],
)
def test_a_condition_is_checked_when_the_numbers_are_known(
    values: dict[str, int], holds: bool | None, remainder: int | None
) -> None:
    condition = Divides(H, C)
    assert condition.holds(values) is holds
    assert condition.remainder(values) == remainder


REFUSED: list[tuple[Any, str]] = [
    (lambda: C / (N - 1), r"^dividing by a sum \(N - 1\): give it a name in `dims`$"),
    (lambda: 1 / (N - 1), r"^dividing by a sum \(N - 1\)"),
    (lambda: (N - 1) ** -1, r"^dividing by a sum \(N - 1\)"),
    (lambda: C / 0, r"^dividing C by zero$"),
    (lambda: C / (H - H), r"^dividing C by zero$"),
    (lambda: Dim(0) ** -1, r"by zero"),
    (lambda: (C / H).subs({"H": 0}), r"^C/H divides by zero, as H is 0$"),
    (lambda: (C / H).subs({"H": N - 1}), r"^dividing by a sum \(N - 1\)"),
    (lambda: (C / H).evaluate({"C": 1, "H": 0}), r"^C/H divides by zero, as H is 0$"),
    (lambda: (C / H).evaluate({"C": 1}), r"the size H is not known$"),
    (lambda: C**0.5, r"^C to the power 0\.5 is no size"),
    (lambda: C**H, r"the power of a size must be a number, not H$"),
    (lambda: 2**H, r"the power of a size must be a number, not H$"),
    (lambda: C**65, r"^the power 65 is too high for a size: the highest is 64$"),
    (lambda: C ** (10**5000), r"^the power here is too high"),
    (lambda: (C**8) ** 9, r"^the power 65 is too high|^the power 72 is too high"),
    (lambda: (Dim(2) ** 64) ** 64, r"more than 150 digits"),
    (lambda: (C + H + N + T + P + 1) ** 30, r"more than 1000 terms"),
    (lambda: Dim("4C"), r"^'4C' is not the name of a size"),
    (lambda: Dim("C\n"), r"is not the name of a size"),
    (lambda: Dim(0.5), r"^a size is a whole number or an expression of sizes, not 0\.5$"),
    (lambda: Dim(True), r"not True$"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_what_is_no_size_is_refused_in_the_words_of_the_user(build: Any, message: str) -> None:
    with pytest.raises(DimError, match=message):
        build()


def test_a_size_without_symbols_equals_and_hashes_like_its_number() -> None:
    assert Dim(3) == 3
    assert hash(Dim(3)) == hash(3)
    assert Dim(1) / 2 == Fraction(1, 2)
    assert hash(Dim(1) / 2) == hash(Fraction(1, 2))
    assert C != 1
    assert (C.number, (C / C).as_int(), (Dim(1) / 2).as_int()) == (None, 1, None)
    assert Dim(0).number == 0
    assert (C / H + 1 - N).symbols == {"C", "H", "N"}


def test_only_the_written_one_stretches_and_arithmetic_forgets_it() -> None:
    assert STRETCH == Dim(1)
    assert hash(STRETCH) == hash(Dim(1))
    results = [STRETCH * 1, STRETCH + 0, STRETCH**1, STRETCH / 1, -STRETCH + 2, 0 + STRETCH, C / C, Dim(1)]
    assert [dim for dim in results if dim.stretchy or dim != 1] == []
    kept = [Dim(STRETCH), STRETCH.subs({"C": 2}), copy.deepcopy(STRETCH), pickle.loads(pickle.dumps(STRETCH))]
    assert [dim.stretchy for dim in kept] == [True] * 4


def test_a_size_survives_pickling_and_cannot_be_changed() -> None:
    assert pickle.loads(pickle.dumps(C / H + 1)) == C / H + 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        C.terms = ()  # type: ignore[misc]


def test_shapes_are_written_like_tuples() -> None:
    assert [show(shape) for shape in ((Dim("B"), T, C), (C,), (), None)] == ["(B, T, C)", "(C,)", "()", "unknown"]
    shape = (Dim("B"), T, 4 * C, Dim(7), C / H)
    assert show_numbers(shape, {"C": 768, "H": 0}) == "(B, T, 4*C = 3072, 7, C/H)"
    assert show_numbers((C / H,), {"C": 7, "H": 2}) == "(C/H = 7/2,)"
    assert show_numbers(None, {}) == "unknown"
