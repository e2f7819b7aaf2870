"""What an expression can be before it is a node of the graph: sizes, numbers, words, lists.

Sizes stay `Dim` as long as they can, since only a Dim can be an axis; what leaves the whole numbers becomes a
`Number`. A value of the graph is a `Ref`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from types import EllipsisType
from typing import Any

from blockgraph.dims import MAX_POWER, Dim, DimError
from blockgraph.number import FUNCTIONS, Number, NumberError
from blockgraph.records import dataclass
from blockgraph.syntax import (
    Attr,
    Binary,
    Bool,
    Call,
    EllipsisLit,
    Expr,
    List,
    Name,
    NoneLit,
    Num,
    Slice,
    Text,
    Unary,
    Unread,
    children,
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph."""

    value: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A slice in a subscript."""

    first: Any
    stop: Any
    step: Any


class Unknown:
    """What stands for an item after its finding; everything with it in is unknown too, in silence."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
MAX_SIZE = 2**31
OPAQUE = frozenset({Attr, Unread})
Item = Ref | Dim | Number | str | bool | tuple[Any, ...] | Cut | EllipsisType | Unknown | None


class Fault(Exception):
    """Something wrong under an expression; whoever knows the file turns it into a finding."""

    def __init__(self, code: str, message: str, expr: Expr | None = None, help: str = "") -> None:
        self.code, self.message, self.expr, self.help = code, message, expr, help
        super().__init__(message)


def evaluate(expr: Expr, step: Callable[[Expr, tuple[Any, ...]], Any]) -> Any:
    """`step` applied to every node below and at `expr`, operands first and from left to right, without recursion."""
    done: dict[int, Any] = {}
    pending: list[tuple[Expr, tuple[Expr, ...] | None]] = [(expr, None)]
    while pending:
        node, below = pending.pop()
        if below is None:
            below = () if type(node) in OPAQUE else children(node)  # a part before a dot is no value
            if below:
                pending.append((node, below))
                pending.extend([(child, None) for child in reversed(below)])
                continue
        done[id(node)] = step(node, tuple([done[id(child)] for child in below]))
    return done[id(expr)]


def fold(node: Expr, items: tuple[Any, ...], name: Callable[[Name], Item]) -> Item:
    """One node of an expression of sizes and numbers. Raises Fault for what only a graph could hold."""
    if any(item is UNKNOWN for item in items):
        return UNKNOWN
    match node:
        case Name():
            return name(node)
        case List():
            return items
        case Slice():
            parts = iter(items)
            return Cut(*(None if part is None else next(parts) for part in (node.first, node.stop, node.step)))
        case Binary():
            return arithmetic(node, *items)
        case Unary():
            return items[0] if node.op == "+" else arithmetic(node, Dim(0), items[0], "-")
        case Call():
            return apply_function(node, items)
    return literal(node)


def literal(node: Expr) -> Item:
    """A number, word or sign that stands for itself. Raises Fault for anything else."""
    match node:
        case Num():
            return Dim(node.value) if isinstance(node.value, int) else Number(node.value)
        case Text() | Bool():
            return node.value
        case NoneLit():
            return None
        case EllipsisLit():
            return ...
    raise Fault("BG010", "this cannot stand where a size or a number is expected", node)


def arithmetic(node: Expr, left: Any, right: Any, op: str = "") -> Item:
    """`left op right` of two sizes or numbers."""
    op = op or getattr(node, "op", "")
    for side in (left, right):
        if not isinstance(side, Dim | Number):
            raise Fault("BG010", f"`{op}` takes sizes and numbers, not {describe(side)}", node)
    try:
        if isinstance(left, Dim) and isinstance(right, Dim):
            exact = _exact(op, left, right) if not _is_huge(op, left, right) else None
            if exact is not None:
                return exact
        return _real(op, Number(left), Number(right), node)
    except (DimError, NumberError) as error:
        raise Fault("BG032" if isinstance(error, DimError) else "BG401", str(error), node) from None


def _is_huge(op: str, left: Dim, right: Dim) -> bool:
    """Whether this is a power of plain numbers that no size can be, as 10**400."""
    return op == "**" and left.number is not None and right.number is not None and abs(right.number) > MAX_POWER


def _exact(op: str, left: Dim, right: Dim) -> Dim | None:
    """The result as a Dim, or None where only a Number can hold it."""
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if op == "/":
        return left / right if len(right.terms) <= 1 else None
    power = right.as_int()
    if op == "**" and power is not None and (power >= 0 or len(left.terms) == 1):
        return left**power
    return None


def _real(op: str, left: Number, right: Number, node: Expr) -> Number:
    if op == "@":
        raise Fault("BG010", "`@` multiplies values, not numbers", node)
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__, "**": left.__pow__}[op](
        right
    )


def apply_function(node: Call, items: tuple[Any, ...]) -> Item:
    """A function of numbers, such as sqrt(2*N)."""
    if node.name not in FUNCTIONS or node.named:
        raise Fault("BG026", f"`{node.name}` is no function of numbers", node, f"one of {', '.join(FUNCTIONS)}")
    try:
        return Number.call(node.name, *(real(item, node) for item in items))
    except (NumberError, TypeError) as error:
        raise Fault("BG401", str(error), node) from None


def real(item: Any, node: Expr | None = None) -> Number:
    """An item as a number. Raises Fault."""
    if isinstance(item, Number):
        return item
    if isinstance(item, Dim):
        try:
            return Number(item)
        except NumberError as error:
            raise Fault("BG401", str(error), node) from None
    raise Fault("BG022", f"number expected, got {describe(item)}", node)


def size(item: Any, node: Expr | None = None) -> Dim:
    """An item as a size. Raises Fault."""
    found = item if isinstance(item, Dim) else None
    if isinstance(item, Number) and item.value is not None and Fraction(item.value).denominator == 1:
        found = Dim(int(item.value))
    if found is not None:
        number = found.number
        if number is not None and abs(number) > MAX_SIZE:
            raise Fault("BG022", f"a size is at most {MAX_SIZE}, and this is {describe(item)[:40]}", node)
        return found
    raise Fault("BG022", f"positive whole number or a dim expected, got {describe(item)}", node)


def describe(item: Any) -> str:
    """An item in the user's words."""
    if item is None:
        return "none"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return f'the word "{item}"'
    if isinstance(item, Ref):
        return "a value that is computed"
    if isinstance(item, tuple):
        return "a list"
    return str(item) if isinstance(item, Dim | Number) else "this"


def known_numbers(items: Iterable[Any]) -> bool:
    """Whether all items are sizes or numbers."""
    return all(isinstance(item, Dim | Number) for item in items)
