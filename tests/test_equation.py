"""The equation language: what is read, as which tree, and what is refused, at which column and in which words."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockgraph.equation import (
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
    Unread,
    parse_equations,
    parse_expression,
    unparse,
    walk,
)


def name(text: str) -> Name:
    return Name(0, 0, text)


def num(value: float) -> Num:
    return Num(0, 0, value)


def binary(left: Expr, op: str, right: Expr) -> Binary:
    return Binary(0, 0, op, left, right, 0)


def call(function: str, *args: Expr, **named: Expr) -> Call:
    return Call(0, 0, function, args, tuple(Named(key, value, 0, 0) for key, value in named.items()))


def minus(operand: Expr) -> Unary:
    return Unary(0, 0, "-", operand)


def piece(first: Expr | None, stop: Expr | None, step: Expr | None = None) -> Slice:
    return Slice(0, 0, first, stop, step)


x, y, C = name("x"), name("y"), name("C")
TREES = [
    ("x", x, "x"),
    ("(((x)))", x, "x"),
    ("1e-5", num(1e-5), "1e-05"),
    (".5", num(0.5), "0.5"),
    ("4*C", binary(num(4), "*", C), "4*C"),
    ("x+y+C", binary(binary(x, "+", y), "+", C), "x + y + C"),
    ("x-(y-C)", binary(x, "-", binary(y, "-", C)), "x - (y - C)"),
    ("x-y*C", binary(x, "-", binary(y, "*", C)), "x - y*C"),
    ("(x-y)*C", binary(binary(x, "-", y), "*", C), "(x - y)*C"),
    ("x / y @ C", binary(binary(x, "/", y), "@", C), "x/y @ C"),
    ("x**y**C", binary(x, "**", binary(y, "**", C)), "x**y**C"),
    ("(x**y)**C", binary(binary(x, "**", y), "**", C), "(x**y)**C"),
    ("-x**2", minus(binary(x, "**", num(2))), "-x**2"),
    ("(-x)**2", binary(minus(x), "**", num(2)), "(-x)**2"),
    ("2**-x", binary(num(2), "**", minus(x)), "2**-x"),
    ("x - -y", binary(x, "-", minus(y)), "x - -y"),
    ("+x", Unary(0, 0, "+", x), "+x"),
    ("x <= y + 1", Compare(0, 0, "<=", x, binary(y, "+", num(1)), 0), "x <= y + 1"),
    ("(x != y)*C", binary(Compare(0, 0, "!=", x, y, 0), "*", C), "(x != y)*C"),
    ("f()", call("f"), "f()"),
    ("f(x, y=C, z=None)", call("f", x, y=C, z=NoneLit(0, 0)), "f(x, y=C, z=None)"),
    ("f(x, renormalise=True)", call("f", x, renormalise=Bool(0, 0, True)), "f(x, renormalise=True)"),
    ("embed.table", Attr(0, 0, name("embed"), "table"), "embed.table"),
    ("embed.table.T", Transpose(0, 0, Attr(0, 0, name("embed"), "table")), "embed.table.T"),
    ("f(x).T.T", Transpose(0, 0, Transpose(0, 0, call("f", x))), "f(x).T.T"),
    ("(x + y).T", Transpose(0, 0, binary(x, "+", y)), "(x + y).T"),
    ("'b t -> b'", Text(0, 0, "b t -> b"), '"b t -> b"'),
    ('"\'"', Text(0, 0, "'"), '"\'"'),
    ("'\"'", Text(0, 0, '"'), "'\"'"),
    (r"f('\')", call("f", Text(0, 0, "\\")), r'f("\")'),
    (r"'a\d'", Text(0, 0, r"a\d"), r'"a\d"'),
    ("'# ( ∑ é'", Text(0, 0, "# ( ∑ é"), '"# ( ∑ é"'),
    ("[x, (y, C)]", List(0, 0, (x, List(0, 0, (y, C)))), "[x, [y, C]]"),
    ("x[0]", Subscript(0, 0, x, (num(0),)), "x[0]"),
    ("x[..., None]", Subscript(0, 0, x, (EllipsisLit(0, 0), NoneLit(0, 0))), "x[..., None]"),
    ("x[:, 1:C:2]", Subscript(0, 0, x, (piece(None, None), piece(num(1), C, num(2)))), "x[:, 1:C:2]"),
    ("x[-1:][0]", Subscript(0, 0, Subscript(0, 0, x, (piece(minus(num(1)), None),)), (num(0),)), "x[-1:][0]"),
]


@pytest.mark.parametrize(("text", "tree", "canonical"), TREES, ids=[row[0] for row in TREES])
def test_an_expression_reads_as_its_tree_and_writes_back_canonically(text: str, tree: Expr, canonical: str) -> None:
    expr, refusals = parse_expression(text)
    assert refusals == ()
    assert expr == tree
    assert unparse(tree) == canonical


@pytest.mark.parametrize("lead", ["", "y = 1\n\n# comment é\n", "  "])
def test_every_node_knows_its_place_in_the_text(lead: str) -> None:
    text = lead + "x = w*('é×', (x) @ norm1.gamma, f(a=-C))"
    equation = parse_equations(text).equations[-1]
    places = {unparse(node): text[node.start : node.end] for node in walk(equation.expr)}
    assert places == {
        'w*["é×", x @ norm1.gamma, f(a=-C)]': "w*('é×', (x) @ norm1.gamma, f(a=-C))",
        "w": "w",
        '["é×", x @ norm1.gamma, f(a=-C)]': "('é×', (x) @ norm1.gamma, f(a=-C))",
        '"é×"': "'é×'",
        "x @ norm1.gamma": "(x) @ norm1.gamma",
        "x": "x",
        "norm1.gamma": "norm1.gamma",
        "norm1": "norm1",
        "f(a=-C)": "f(a=-C)",
        "-C": "-C",
        "C": "C",
    }
    ops = [text[node.op_start] for node in walk(equation.expr) if isinstance(node, Binary)]
    assert ops == ["*", "@"]
    named = next(node for node in walk(equation.expr) if isinstance(node, Call)).named[0]
    assert text[named.start : named.end] == "a"
    assert [text[target.start : target.end] for target in equation.targets] == ["x"]
    assert text[equation.start : equation.end] == equation.text == text[len(lead) :].strip()


def test_places_stay_true_after_a_missing_star() -> None:
    text = "y = f(4C, 2D) + x"
    parsed = parse_equations(text)
    expr = parsed.equations[0].expr
    assert unparse(expr) == "f(4*C, 2*D) + x"
    assert {text[node.start : node.end] for node in walk(expr)} == {
        "f(4C, 2D) + x", "f(4C, 2D)", "4C", "4", "C", "2D", "2", "D", "x",
    }  # fmt: skip
    assert [text[r.start : r.end] for r in parsed.refusals] == ["4C", "2D"]


def test_a_block_is_read_line_by_line_with_comments_and_continued_lines() -> None:
    text = "# head\n\nx = x + f(x)  # tail\r\nu = einsum(\n  '# b',  # the pattern\n  x,\n)\n\n"
    text += "a , b = split(x, [D1, D2])\n"
    parsed = parse_equations(text)
    assert parsed.refusals == ()
    read = [([target.name for target in e.targets], unparse(e.expr)) for e in parsed.equations]
    assert read == [(["x"], "x + f(x)"), (["u"], 'einsum("# b", x)'), (["a", "b"], "split(x, [D1, D2])")]
    assert parsed.equations[0].text == "x = x + f(x)"


@pytest.mark.parametrize("text", ["", "\n \n", "# only a comment", "\t\r\n"])
def test_a_text_without_equations_is_empty_and_not_wrong(text: str) -> None:
    assert parse_equations(text) == parse_equations("")
    assert parse_equations(text).equations == ()


LONG = "n" * 65
REFUSED = [
    # text, code, column of the refusal (from 1), a part of message or help
    ("y = 4C", "BG011", 5, "write `4*C`"),
    ("y = 1.5e3x", "BG011", 5, "write `1.5e3*x`"),
    ("x += f(x)", "BG012", 3, "write `x = x + f(x)`"),
    ("x @= a + b", "BG012", 3, "write `x = x @ (a + b)`"),
    ("x **= 2", "BG012", 3, "write `x = x**2`"),
    ("x -= y *", "BG012", 3, "write `x = x - ...`"),
    ("y = x^2", "BG010", 6, "`**`"),
    ("y = x // 2", "BG010", 7, "write `/`"),
    ("y = x % 2", "BG010", 7, "`%`"),
    ("y = x & z", "BG010", 7, "`&`"),
    ("y = ~x", "BG010", 5, "`~`"),
    ("y = x << 2", "BG010", 7, "`<<`"),
    ("y = a and b", "BG010", 7, "`and`"),
    ("y = not a", "BG010", 5, "`not`"),
    ("y = a if b else c", "BG010", 7, "where(condition, a, b)"),
    ("y = lambda x: x", "BG010", 5, "`lambda`"),
    ("y = [a for a in x]", "BG010", 8, "`for`"),
    ("y = a is None", "BG010", 7, "write `==`"),
    ("y = a in b", "BG010", 7, "`in`"),
    ("y = a < b < c", "BG010", 11, "a second comparison"),
    ("y = f(*x)", "BG010", 7, "`*` before an argument"),
    ("y = f(**x)", "BG010", 7, "`**` before an argument"),
    ("y = f(a=1, a=2)", "BG010", 12, "giving `a` twice"),
    ("y = f'a'", "BG010", 5, "`f` before a quoted text"),
    ("y = b'a'", "BG010", 5, "`b` before a quoted text"),
    ("y = (z := 3)", "BG010", 8, "`:=`"),
    ("y = {1: 2}", "BG010", 5, "`{`"),
    ("y = 0x10", "BG010", 5, "decimal"),
    ("y = 1_000", "BG010", 5, "write the digits without it"),
    ("y = 007", "BG010", 5, "write `7`"),
    ("y = 1e999", "BG010", 5, "too large"),
    ("y = " + "9" * 41, "BG010", 5, "41 characters; 40 are allowed"),
    ("y = ().__class__.__mro__", "BG013", 8, "`__class__`"),
    ("y = __import__('os').system('touch pwned')", "BG013", 5, "`__import__`"),
    ("y = x.a.b", "BG010", 9, "`.b`"),
    ("y = f(x).shape", "BG010", 10, "`.shape`"),
    ("y = open('f').read()", "BG010", 15, "`.read`"),
    ("y = 2(x + 1)", "BG010", 5, "to multiply write `*`"),
    ("y = f(x)(x)", "BG010", 5, "only a name can be called"),
    ("y = x[()]", "BG010", 5, "an empty subscript"),
    ("y = a = b", "BG010", 7, "a second `=`"),
    ("x[0] = 3", "BG010", 1, "assigning to `x[0]`"),
    ("x.a = 3", "BG010", 1, "assigning to `x.a`"),
    ("f(x) = 3", "BG010", 1, "assigning to `f(x)`"),
    ("(a, b) = f(x)", "BG010", 1, "`a, b = ...`"),
    ("x: int = 3", "BG010", 2, "a type after a name"),
    ("f(x)", "BG010", 1, "name the result"),
    ("a == b", "BG010", 1, "name the result"),
    ("return x", "BG010", 1, "`return`"),
    ("import os", "BG010", 1, "`import`"),
    ("def f(x): x", "BG010", 1, "`def`"),
    ("y = x; z = x", "BG010", 6, "one equation a line"),
    ("y -> x", "BG010", 3, "`->`"),
    ("y = a × b", "BG010", 7, "write `*`"),
    ("y = a · b", "BG010", 7, "write `*`"),
    ("y = a − b", "BG010", 7, "write `-`"),
    ("y = x²", "BG010", 6, "write `**2`"),
    ("y = f(“a”)", "BG010", 7, 'write `"`'),
    ("y =\u00a0x", "BG010", 4, "write a plain space"),
    ("y = x\x00", "BG010", 6, "U+0000"),
    ("y = \ud800", "BG010", 5, "U+D800"),
    ("y = x\\", "BG010", 6, "open a bracket"),
    ("y = é + 1", "BG013", 5, "cannot stand in a name"),
    ("é = 1", "BG013", 1, "cannot stand in a name"),
    ("layer = 3", "BG013", 1, "`layer` is reserved"),
    ("a, tensor = f(x)", "BG013", 4, "`tensor` is reserved"),
    ("lambda = 3", "BG013", 1, "`lambda` is reserved"),
    ("__x = 3", "BG013", 1, "two underscores"),
    ("a, a = f(x)", "BG013", 4, "assigned twice"),
    (f"{LONG} = 3", "BG013", 1, "65 characters; 64 are allowed"),
    (f"y = {LONG}", "BG013", 5, "65 characters; 64 are allowed"),
    ("y = f(x", "BG016", 6, "`(` is never closed"),
    ("y = f(x))", "BG016", 9, "`)` closes no bracket"),
    ("y = f(x]", "BG016", 6, "`(` is never closed"),
    ("y = 'abc", "BG016", 5, "never closed"),
    ("y = 'a' 'b'", "BG016", 9, "side by side"),
    ("y = a b", "BG016", 7, "an operator is missing before `b`"),
    ("y = 3 C", "BG016", 7, "write `3*C`"),
    ("y = a + ", "BG016", 8, "ends where a value is expected"),
    ("y = (a + )", "BG016", 10, "a value is missing before `)`"),
    ("y = * a", "BG016", 5, "a value is missing before `*`"),
    ("y = f(a,, b)", "BG016", 9, "a value is missing before `,`"),
    ("y =", "BG016", 4, "nothing stands after `=`"),
    ("= x", "BG016", 1, "a name is missing before `=`"),
    ("h = q: k", "BG016", 6, "`:` cannot stand here"),
    ("h: k", "BG016", 2, "`:` cannot stand here"),
    ("y = x[]", "BG016", 7, "`]` cannot stand here"),
    ("y = " + "x" * 60 + " + z" * 1100, "BG014", 1, "4,096 are allowed"),
    ("y = " + "(" * 101 + "x" + ")" * 101, "BG015", 105, "nested more than 100 deep"),
    ("y = " + "-" * 101 + "x", "BG015", 5, "nested more than 100 deep"),
]


@pytest.mark.parametrize(("text", "code", "column", "words"), REFUSED, ids=[ascii(row[0])[:40] for row in REFUSED])
def test_a_wrong_equation_is_refused_at_its_column_and_its_neighbours_are_read(
    text: str, code: str, column: int, words: str
) -> None:
    block = f"before = x\n{text}\nafter = x"
    parsed = parse_equations(block)
    first = parsed.refusals[0]
    assert (first.code, first.start - len("before = x\n") + 1) == (code, column)
    assert words in f"{first.message} | {first.help}"
    assert first.start <= first.end <= len("before = x\n") + max(len(text), first.start - 11)
    names = [target.name for equation in parsed.equations for target in equation.targets]
    assert (names[0], names[-1]) == ("before", "after")
    assert len(parsed.refusals) == (2 if text == "x -= y *" else 1)


def test_refusals_can_be_printed_whatever_the_text() -> None:
    for text, *_ in REFUSED:
        for refusal in parse_equations(text).refusals:
            f"{refusal.message}{refusal.help}".encode()


def test_a_refused_equation_still_tells_its_targets_and_the_names_it_uses() -> None:
    equation = parse_equations("a, b = f(x ^ 4y, 'not me', p.w) if z").equations[0]
    assert [target.name for target in equation.targets] == ["a", "b"]
    assert isinstance(equation.expr, Unread)
    assert [used.name for used in equation.expr.names] == ["f", "x", "p", "w", "z"]


def test_an_augmented_assignment_and_a_missing_star_are_both_found_and_both_read() -> None:
    parsed = parse_equations("x += 4C\ny = x")
    assert [(r.code, r.start) for r in parsed.refusals] == [("BG012", 2), ("BG011", 5)]
    assert [unparse(equation.expr) for equation in parsed.equations] == ["x + 4*C", "x"]


def test_an_unclosed_bracket_does_not_swallow_the_next_equation() -> None:
    parsed = parse_equations("x = f(x\ny = g(x)\nz = [y\n")
    assert [(r.code, r.start) for r in parsed.refusals] == [("BG016", 5), ("BG016", 21)]
    assert [unparse(e.expr) for e in parsed.equations if not isinstance(e.expr, Unread)] == ["g(x)"]


def test_an_empty_expression_is_refused() -> None:
    expr, refusals = parse_expression(" ")
    assert expr is None
    assert [(r.code, r.message) for r in refusals] == [("BG016", "an expression is expected")]


def test_an_expression_in_brackets_may_be_deep_up_to_the_limit() -> None:
    def read(depth: int) -> bool:
        return parse_expression("f(" * depth + "x" + ")" * depth)[0] is not None

    assert (read(99), read(100)) == (True, False)
    assert parse_expression("(" * 100 + "x" + ")" * 100)[0] == x


def test_a_long_sum_counts_by_the_depth_of_its_tree() -> None:
    assert parse_expression("+".join(["x"] * 100))[0] is not None
    assert [r.code for r in parse_expression("+".join(["x"] * 101))[1]] == ["BG015"]
    assert parse_expression("+".join(["a*x"] * 90))[0] is not None
    assert parse_expression("[" + ", ".join(["a*x"] * 500) + "]")[0] is not None


HOSTILE = [
    "(" * 5000, ")" * 5000, "[" * 2000 + "]" * 2000, "(" * 5000 + ")" * 5000, "-" * 4000 + "x", "- " * 2000 + "x",
    "x" + "**x" * 1300, "x" + "+x" * 2040, "x" + ".T" * 2000, "x" + "[0]" * 1300, "x" + "(0)" * 1300,
    "f(-" * 1000 + "x" + ")" * 1000, "x" + "<x" * 2000, "x[" * 90 + "-" * 90 + "x" + "]" * 90, "2**-" * 1000 + "x",
    "9" * 4000, "9" * 100_000, "1e" + "9" * 4000, "0" * 4000, "\x00" * 4000, "\ud800\udfff", "'" * 4001, '"\ud800"',
    "'''" + "\\" * 4000, "'\\'", "'\\N{x}'", "x\\", "\\\n", "\x0c x", "\ufeffx", "4C" * 1000, "4" * 39 + "C",
    "4if", "4else", "1_", "1__a", "1.e",
    "x.1.T", "....", "x[...:]", "@" * 4000, "=" * 4000, "x=" * 2000, "," * 4000, "lambda:" * 500,
    "(x for" * 600, "{" * 4000, "f(a=" * 900, "x if " * 800, "\t" * 5000 + "x", "x\u2028y", "print(1)" * 500,
    "(" * 99 + "x",
]  # fmt: skip


def deep(frames: int, then: Callable[[], object]) -> object:
    return then() if frames == 0 else deep(frames - 1, then)


@pytest.mark.parametrize("frames", [0, 500])
@pytest.mark.parametrize("text", HOSTILE, ids=[f"{i} {text[:12]!a}" for i, text in enumerate(HOSTILE)])
def test_no_text_breaks_the_parser(text: str, frames: int) -> None:
    def read() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expr, refusals = parse_expression(text)
            parsed = parse_equations(f"y = {text}\n{text}\n{text} = x")
        assert (expr is not None) or refusals
        assert all(0 <= r.start <= r.end <= len(text) for r in refusals)
        assert all(len(r.message) + len(r.help) < 400 for r in (*refusals, *parsed.refusals))
        if expr is not None:
            assert parse_expression(unparse(expr))[0] is not None

    assert sys.getrecursionlimit() <= 1000
    started = time.perf_counter()
    deep(frames, read)
    assert time.perf_counter() - started < 2


def test_a_long_broken_block_takes_linear_time() -> None:
    started = time.perf_counter()
    parsed = parse_equations("x = f(\n" * 20_000)
    assert len(parsed.refusals) == 20_000
    assert time.perf_counter() - started < 10


@given(st.text(alphabet="xC4.()[]+-*/@<=>,:'\"# \n^_éT\\\x00", max_size=60))
def test_random_text_is_read_or_refused(text: str) -> None:
    parsed = parse_equations(text)
    for refusal in parsed.refusals:
        assert 0 <= refusal.start <= refusal.end <= len(text)
    for equation in parsed.equations:
        if not isinstance(equation.expr, Unread):
            assert parse_expression(unparse(equation.expr)) == (equation.expr, ())


def test_a_thousand_blocks_are_read_quickly() -> None:
    block = "x = x + attention(norm1(x))\nx = x + feed_forward(norm2(x))"
    best = min(_seconds(block) for _ in range(3))
    assert best < 0.5


def _seconds(block: str) -> float:
    started = time.perf_counter()
    for _ in range(1000):
        parse_equations(block)
    return time.perf_counter() - started
