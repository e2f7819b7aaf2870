"""The syntax tree of equations, how to walk it and how to write it out again.

Every node knows its place in the text, so that whatever is found wrong later can be shown under its own words.
Nothing here recurses, so a tree of any depth can be walked and written from any depth of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from blockgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Expr:
    """A node; `start` and `end` are character offsets into the text read. Equality ignores them."""

    start: int = field(compare=False)
    end: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Num(Expr):
    """A number: `4`, `0.5`, `1e-5`; the sign is a Unary."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Text(Expr):
    """A quoted word or pattern, without its quotes; there are no escapes."""

    value: str


@dataclass(frozen=True, slots=True)
class Bool(Expr):
    """`True` or `False`."""

    value: bool


@dataclass(frozen=True, slots=True)
class NoneLit(Expr):
    """`None`: in a subscript a new axis, in an option its absence."""


@dataclass(frozen=True, slots=True)
class EllipsisLit(Expr):
    """`...`"""


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A value, parameter, part, dim or constant."""

    name: str


@dataclass(frozen=True, slots=True)
class Attr(Expr):
    """`part.param`"""

    base: Name
    name: str


@dataclass(frozen=True, slots=True)
class Transpose(Expr):
    """`base.T`"""

    base: Expr


@dataclass(frozen=True, slots=True)
class Named:
    """`name=value` in a call; `start` and `end` are those of the name."""

    name: str
    value: Expr
    start: int = field(compare=False)
    end: int = field(compare=False)

    @property
    def place(self) -> Expr:
        """Where the name stands."""
        return Expr(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """`name(args, named)`; the name starts where the call starts."""

    name: str
    args: tuple[Expr, ...]
    named: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`left op right`, op one of `+ - * / ** @`; `op_start` is the place of the operator."""

    op: str
    left: Expr
    right: Expr
    op_start: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`-operand` or `+operand`"""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """`left op right`, op one of `< <= > >= == !=`."""

    op: str
    left: Expr
    right: Expr
    op_start: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class List(Expr):
    """`[a, b]` or `(a, b)`"""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """`first:stop:step` inside a subscript, each part optional."""

    first: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    """`base[items]`; an item may be a Slice, EllipsisLit or NoneLit. Never empty."""

    base: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Unread(Expr):
    """The right side of a refused equation: its value is unknown, the names in it count as used."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A name that an equation assigns."""

    name: str
    start: int = field(compare=False)
    end: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Equation:
    """`targets = expr`; `text` is the equation as written, without its comment."""

    targets: tuple[Target, ...]
    expr: Expr
    start: int = field(compare=False)
    end: int = field(compare=False)
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something wrong in the text: where (`end` exclusive), what, and what to write instead.

    BG010 not in the language, BG011 missing `*`, BG012 `+=`, BG013 name, BG014 too long, BG015 too deep, BG016 syntax,
    BG018 too many.
    """

    start: int
    end: int
    message: str
    help: str
    code: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The equations in order and all refusals; a refused equation whose targets could be read is there as Unread."""

    equations: tuple[Equation, ...]
    refusals: tuple[Refusal, ...]


_LEAVES = frozenset({Num, Text, Bool, NoneLit, EllipsisLit, Name})


def children(expr: Expr) -> tuple[Expr, ...]:
    """The nodes directly below one, in the order of the text."""
    if type(expr) in _LEAVES:
        return ()
    match expr:
        case Binary() | Compare():
            return (expr.left, expr.right)
        case Unary():
            return (expr.operand,)
        case Call():
            return (*expr.args, *(named.value for named in expr.named))
        case Attr() | Transpose():
            return (expr.base,)
        case List():
            return expr.items
        case Subscript():
            return (expr.base, *expr.items)
        case Slice():
            return tuple(part for part in (expr.first, expr.stop, expr.step) if part is not None)
        case Unread():
            return expr.names
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it, parents first, in the order of the text."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def depth_of(expr: Expr) -> int:
    """The number of nodes on the longest way down; 1 for a name."""
    deepest, pending = 0, [(expr, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(child, depth + 1) for child in children(node)]
    return deepest


_COMPARED, _SIGNED, _POSTFIX, _ATOM = 1, 4, 6, 7
_BINDING = {"+": 2, "-": 2, "*": 3, "/": 3, "@": 3, "**": 5}
Written = dict[int, tuple[str, int]]


def unparse(expr: Expr) -> str:
    """Canonical text with as few brackets as can be; it reads back as an equal tree."""
    written: Written = {}
    for node in reversed(list(walk(expr))):
        written[id(node)] = _write(node, written)
    return written[id(expr)][0]


def _write(node: Expr, written: Written) -> tuple[str, int]:
    """The text of one node, given that of its children, and how strongly it binds."""
    match node:
        case Binary():
            binding = _BINDING[node.op]
            op = f" {node.op} " if node.op in "+-@" else node.op
            left, right = (_POSTFIX, _SIGNED) if node.op == "**" else (binding, binding + 1)
            return _fit(node.left, written, left) + op + _fit(node.right, written, right), binding
        case Compare():
            return f"{_fit(node.left, written, 2)} {node.op} {_fit(node.right, written, 2)}", _COMPARED
        case Unary():
            return node.op + _fit(node.operand, written, _SIGNED), _SIGNED
        case Slice():
            step = f":{_fit(node.step, written)}" if node.step else ""
            return f"{_fit(node.first, written)}:{_fit(node.stop, written)}{step}", 0
        case Call() | Attr() | Transpose() | Subscript():
            return _write_postfix(node, written), _POSTFIX
        case List():
            return f"[{', '.join(_fit(item, written) for item in node.items)}]", _ATOM
    return _write_atom(node), _ATOM


def _write_postfix(node: Call | Attr | Transpose | Subscript, written: Written) -> str:
    match node:
        case Call():
            arguments = [_fit(arg, written) for arg in node.args]
            arguments += [f"{named.name}={_fit(named.value, written)}" for named in node.named]
            return f"{node.name}({', '.join(arguments)})"
        case Attr():
            return f"{node.base.name}.{node.name}"
        case Transpose():
            base = _fit(node.base, written, _POSTFIX)
            return f"({base}).T" if isinstance(node.base, Num) else f"{base}.T"
    return f"{_fit(node.base, written, _POSTFIX)}[{', '.join(_fit(item, written) for item in node.items)}]"


def _fit(child: Expr | None, written: Written, least: int = 0) -> str:
    """The child's text, in brackets if it binds less strongly than its place asks."""
    if child is None:
        return ""
    text, binding = written[id(child)]
    return text if binding >= least else f"({text})"


def _write_atom(node: Expr) -> str:
    match node:
        case Name():
            return node.name
        case Num() | Bool():
            return repr(node.value)
        case Text():
            return f"'{node.value}'" if '"' in node.value else f'"{node.value}"'
        case NoneLit():
            return "None"
        case EllipsisLit():
            return "..."
    return "?"
