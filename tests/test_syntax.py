"""Trees of every form are written with as few brackets as can be, and read back as the same tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockgraph.equation import parse_expression
from blockgraph.syntax import (
    Attr,
    Binary,
    Bool,
    Call,
    Compare,
    EllipsisLit,
    Expr,
    List,
    Name,
    Named,
    NoneLit,
    Num,
    Slice,
    Subscript,
    Text,
    Transpose,
    Unary,
    depth_of,
    unparse,
    walk,
)


def num(value: float) -> Num:
    return Num(0, 0, value)


x, y, C = (Name(0, 0, letter) for letter in "xyC")


def wider(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """One level more of every form around the trees of `inner`."""
    part = st.none() | inner
    item = inner | st.builds(Slice, st.just(0), st.just(0), part, part, part)
    few = st.lists(inner, max_size=3).map(tuple)
    op = st.sampled_from(["+", "-", "*", "/", "**", "@"])
    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    zero = st.just(0)
    named = st.builds(Named, st.sampled_from(["mask", "scale"]), inner, zero, zero)
    return (
        st.builds(Binary, zero, zero, op, inner, inner, zero)
        | st.builds(Compare, zero, zero, order, inner, inner, zero)
        | st.builds(Unary, zero, zero, st.sampled_from(["-", "+"]), inner)
        | st.builds(Transpose, zero, zero, inner)
        | st.builds(List, zero, zero, few)
        | st.builds(Subscript, zero, zero, inner, st.lists(item, min_size=1, max_size=3).map(tuple))
        | st.builds(
            Call, zero, zero, st.just("f"), few, st.lists(named, max_size=2, unique_by=lambda n: n.name).map(tuple)
        )
    )


ATOMS = (
    st.sampled_from([x, y, C, EllipsisLit(0, 0), NoneLit(0, 0), Bool(0, 0, True), Attr(0, 0, x, "gamma")])
    | st.integers(0, 10**30).map(num)
    | st.floats(0, allow_infinity=False, allow_nan=False).map(num)
    | st.text(alphabet="ab ->\\é×#'(").map(lambda value: Text(0, 0, value))
)


@pytest.mark.filterwarnings(
    "ignore:Generating overly large repr"
)  # of the strategy, which hypothesis now and then tells
@given(st.recursive(ATOMS, wider, max_leaves=12))
def test_what_is_written_reads_back_as_the_same_tree(expr: Expr) -> None:
    assert parse_expression(unparse(expr)) == (expr, ())


def test_a_tree_of_any_depth_is_walked_and_written_without_recursion() -> None:
    expr: Expr = x
    for _ in range(5000):
        expr = Unary(0, 0, "-", expr)
    assert depth_of(expr) == len(list(walk(expr))) == 5001
    assert unparse(expr) == "-" * 5000 + "x"


def test_a_tree_is_walked_parents_first_in_the_order_of_the_text() -> None:
    expr, _ = parse_expression("f(x, y[1:C], s=-w) + embed.table.T")
    assert expr is not None
    assert [unparse(node) for node in walk(expr)] == [
        "f(x, y[1:C], s=-w) + embed.table.T", "f(x, y[1:C], s=-w)", "x", "y[1:C]", "y", "1:C", "1", "C", "-w", "w",
        "embed.table.T", "embed.table", "embed",
    ]  # fmt: skip
