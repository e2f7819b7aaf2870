"""How a parameter is drawn: `normal(0.02)`, `zeros`, `eye`, `xavier(1)`, a number."""

from __future__ import annotations

from functools import cache
from typing import Any

from blockgraph.elaborate.env import Env
from blockgraph.elaborate.items import UNKNOWN, Fault, Item, evaluate, fold, real
from blockgraph.equation import parse_expression
from blockgraph.errors import SpecPath
from blockgraph.number import Number
from blockgraph.records import dataclass
from blockgraph.schema import suggestion
from blockgraph.syntax import Call, Expr, Name, walk

PLAIN = ("zeros", "ones", "eye")
DRAWN = {"normal": "std", "uniform": "a", "xavier": "gain"}
RANDOM = frozenset(DRAWN)


@dataclass(frozen=True, slots=True)
class Init:
    """A resolved init: its name and its amount (std, half width, gain or the constant)."""

    name: str
    amount: Number

    @classmethod
    def read(cls, raw: Any, default: str, env: Env, path: SpecPath) -> Init:
        """The init as written, or the default; the default too after a finding."""
        if raw is None:
            return cls.of(default, env.name)
        if isinstance(raw, int | float):
            return cls("constant", Number(raw))
        expr, refusals = parse_expression(str(raw))
        try:
            for refusal in refusals:
                raise Fault(refusal.code, refusal.message, Expr(refusal.start, refusal.end), refusal.help)
            assert expr is not None
            return _read(_word(expr, env), env.name)
        except Fault as fault:
            at = fault.expr or Expr(0, 0)
            if not env.is_told(fault):
                place = env.spec.document.within(path, at.start, at.end)
                env.report.add(fault.code, fault.message, place, fault.help)
            return cls.of(default, env.name)

    @classmethod
    def of(cls, text: str, symbol: Any) -> Init:
        """An init from text that is known to be right."""
        return _plain(text) or _read(_parsed(text), symbol)


@cache
def _parsed(text: str) -> Expr:
    expr, _ = parse_expression(text)
    assert expr is not None
    return expr


@cache
def _plain(text: str) -> Init | None:
    """The init of a text without symbols."""
    expr = _parsed(text)
    names = [node.name for node in walk(expr) if isinstance(node, Name)]
    return _read(expr, None) if set(names) <= set(PLAIN) else None


def _word(expr: Expr, env: Env) -> Expr:
    """The expression, or `zeros` for a constant that holds this word."""
    word = env.constants.get(expr.name) if isinstance(expr, Name) else None
    return Name(expr.start, expr.end, word) if isinstance(word, str) else expr


def _read(expr: Expr, symbol: Any) -> Init:
    if isinstance(expr, Name) and expr.name in PLAIN:
        return Init(expr.name, Number(0))
    if isinstance(expr, Name) and expr.name in DRAWN:
        raise Fault("BG022", f"`{expr.name}` needs its {DRAWN[expr.name]}", expr, f"for example {expr.name}(0.02)")
    if isinstance(expr, Call) and expr.name in DRAWN:
        if len(expr.args) != 1 or expr.named:
            raise Fault(
                "BG022", f"`{expr.name}` takes its {DRAWN[expr.name]} alone", expr, f"for example {expr.name}(0.02)"
            )
        return _drawn(expr, symbol)
    if isinstance(expr, Call) and expr.name not in ("sqrt", "exp", "log", "abs", "min", "max"):
        raise Fault("BG022", f"unknown init `{expr.name}`", expr, suggestion(expr.name, (*PLAIN, *DRAWN)))
    try:
        return Init("constant", _amount(expr, symbol))
    except Fault as fault:
        if isinstance(expr, Name) and fault.message.startswith("unknown name"):
            raise Fault("BG022", f"unknown init `{expr.name}`", expr, suggestion(expr.name, (*PLAIN, *DRAWN))) from None
        raise


def _drawn(expr: Call, symbol: Any) -> Init:
    """`normal(0.02)` and its kin, whose amount is never negative."""
    amount = _amount(expr.args[0], symbol)
    if amount.value is not None and amount.value < 0:
        raise Fault(
            "BG022", f"the {DRAWN[expr.name]} of `{expr.name}` is negative: {amount}", expr, "leave out the sign"
        )
    return Init(expr.name, amount)


def _amount(expr: Expr, symbol: Any) -> Number:
    item: Item = evaluate(expr, lambda node, items: fold(node, items, symbol))
    if item is UNKNOWN:
        return Number(0)
    return real(item, expr)
