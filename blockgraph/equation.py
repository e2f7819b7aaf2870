"""Equation text to a syntax tree, with everything that is wrong in the text.

Specs are passed around, so their equations are never evaluated: Python's `ast` reads the text, an allow-list
decides what may stand in it, and the rest is refused at its column, in the reader's words. One bad line costs one
refusal; the others are still read. Depth is measured without recursion.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from blockgraph.habits import for_method
from blockgraph.scan import (
    MAX_DEPTH,
    MAX_LENGTH,
    RESERVED,
    Layout,
    Scanned,
    broken,
    check_target,
    explain_no_target,
    explain_syntax,
    first_too_deep,
    lay_out,
    outside,
    scan,
    too_long,
)
from blockgraph.syntax import (
    Attr,
    Binary,
    Bool,
    Call,
    Compare,
    EllipsisLit,
    Equation,
    Expr,
    List,
    Name,
    Named,
    NoneLit,
    Num,
    Parsed,
    Refusal,
    Slice,
    Subscript,
    Target,
    Text,
    Transpose,
    Unary,
    Unread,
    children,
    depth_of,
    unparse,
    walk,
)

__all__ = [
    "RESERVED", "Attr", "Binary", "Bool", "Call", "Compare", "EllipsisLit", "Equation", "Expr", "List", "Name", "Named",
    "NoneLit", "Num", "Parsed", "Refusal", "Slice", "Subscript", "Target", "Text", "Transpose", "Unary", "Unread",
    "children", "depth_of", "parse_equations", "parse_expression", "unparse", "walk",
]  # fmt: skip

MAX_EQUATIONS = 50_000
_TARGETS = re.compile(r"([A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*(\*\*|[-+*/@])?=(?!=)[ \t\r]*", re.ASCII)
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|(?<!\w)[A-Za-z_]\w*", re.ASCII)
_BINARY: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
_COMPARE: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_UNARY: dict[type, str] = {ast.USub: "-", ast.UAdd: "+"}


def parse_equations(text: str) -> Parsed:
    """Read a block of equations, one a line; brackets may continue one over several lines, `#` begins a comment.

    Offsets are into `text`. Nothing is raised: whatever is wrong is among the refusals. `4C` is read as `4*C` and
    `x += e` as `x = x + e` beside their refusals; the value of any other refused equation is `Unread`. More than
    MAX_EQUATIONS are not read at all: their names are then those of one such value.
    """
    layout = lay_out(text)
    equations: list[Equation] = []
    refusals: list[Refusal] = []
    stretches = list(layout.lines())
    if len(stretches) > MAX_EQUATIONS:
        return _too_many(layout, stretches)
    for start, end in stretches:
        equation, wrong = _read_equation(layout, start, end, text)
        refusals += wrong
        if equation:
            equations.append(equation)
    return Parsed(tuple(equations), tuple(refusals))


def _too_many(layout: Layout, stretches: Sequence[tuple[int, int]]) -> Parsed:
    """The last equation with all names in it, and the first one that is too many."""
    start, end = stretches[-1]
    head = _TARGETS.match(layout.code[start:end][:MAX_LENGTH])
    targets = _read_targets(head, start)[0] if head else ()
    names = tuple(Name(0, 0, word) for word in dict.fromkeys(_WORD.findall(layout.code)) if word.isidentifier())
    message = f"a module has at most {MAX_EQUATIONS:,} equations, and these are {len(stretches):,}"
    refusal = Refusal(*stretches[MAX_EQUATIONS], message, "repeat a block with a stack instead", "BG018")
    whole = Equation(targets, Unread(start, end, names), start, end, layout.code[start:end])
    return Parsed((whole,) if targets else (), (refusal,))


def parse_expression(text: str) -> tuple[Expr | None, tuple[Refusal, ...]]:
    """Read one expression: a dim, an option's value, a checkpoint's `take`. None if it cannot be read."""
    layout = lay_out(text)
    code = layout.code.replace("\n", " ")
    if not code.strip():
        return None, (broken(0, len(text), "an expression is expected", "write a number, a name or a formula"),)
    scanned = scan(code, 0, layout.unpaired)
    expr, fatal = _read_expr(scanned, text)
    return expr, (*scanned.mended, *([fatal] if fatal else []))


def _read_equation(layout: Layout, start: int, end: int, text: str) -> tuple[Equation | None, list[Refusal]]:
    """One equation: its tree, or Unread, or None if not even its targets can be told."""
    code, unpaired = layout.code[start:end], layout.unpaired
    head = _TARGETS.match(code[:MAX_LENGTH])
    if len(code) > MAX_LENGTH:
        targets = _read_targets(head, start)[0] if head else ()
        unread = Equation(targets, Unread(start, end, ()), start, end, code) if targets else None
        return unread, [too_long(start, end)]
    if head is None:
        scanned = scan(code, start, unpaired)
        return None, [scanned.fatal or explain_no_target(code, start)]
    targets, wrong = _read_targets(head, start)
    rest = start + head.end()
    scanned = scan(code[head.end() :], rest, unpaired)
    expr, fatal = _read_expr(scanned, text)
    if head[2] and len(targets) == 1:
        expr, refusal = _mend_augmented(head, start, targets[0], expr)
        wrong.append(refusal)
    elif head[2]:
        fatal = fatal or outside(start, rest, f"`{head[2]}=`")
    if expr is None:
        expr = Unread(rest, end, _names_in(scanned))
    wrong += scanned.mended
    if fatal and not any(refusal.code == "BG013" for refusal in wrong):
        wrong.append(fatal)
    if len(wrong) > 1:
        wrong.sort(key=lambda refusal: refusal.start)
    written = text[start:end]
    return Equation(targets, expr, start, end, code if "#" in written else written) if targets else None, wrong


def _read_targets(head: re.Match[str], start: int) -> tuple[tuple[Target, ...], list[Refusal]]:
    """The names before `=`, bad ones too so that later uses find them, and what is wrong with the first bad one."""
    targets: list[Target] = []
    wrong: list[Refusal] = []
    for word in re.finditer(r"\w+", head[1]):
        name, place = word[0], start + word.start()
        refusal = check_target(name, place)
        if any(name == target.name for target in targets):
            message = f"`{name}` is assigned twice at once"
            refusal = Refusal(place, place + len(name), message, "choose another name", "BG013")
        targets.append(Target(name, place, place + len(name)))
        if refusal is not None and not wrong:
            wrong.append(refusal)
    return tuple(targets), wrong


def _mend_augmented(head: re.Match[str], start: int, target: Target, expr: Expr | None) -> tuple[Expr | None, Refusal]:
    """`x += e` is refused and read as `x = x + e`."""
    op, at = head[2], start + head.start(2)
    message = f"`{op}=` is not part of the equation language"
    refusal = Refusal(at, at + len(op) + 1, message, f"write `{target.name} = {target.name} {op} ...`", "BG012")
    if expr is None:
        return None, refusal
    help = f"write `{target.name} = {unparse(Binary(0, 0, op, Name(0, 0, target.name), expr, 0))}`"
    left = Name(target.start, target.end, target.name)
    return Binary(target.start, expr.end, op, left, expr, at), replace(refusal, help=help)


def _names_in(scanned: Scanned) -> tuple[Name, ...]:
    """All names in code that could not be read, so that they count as used."""
    words = [word for word in _WORD.finditer(scanned.code) if word[0].isidentifier() and not keyword.iskeyword(word[0])]
    return tuple(Name(scanned.place(word.start()), scanned.place(word.end()), word[0]) for word in words)


def _read_expr(scanned: Scanned, text: str) -> tuple[Expr | None, Refusal | None]:
    """The tree of scanned code, or why there is none."""
    if scanned.fatal:
        return None, scanned.fatal
    code, place = scanned.code, scanned.place
    if not code:
        return None, broken(scanned.base, scanned.base, "nothing stands after `=`", "write an expression")
    deep = first_too_deep(code)
    if deep and deep[1]:
        return None, _too_deep(place(deep[0]))
    stripped = code.lstrip()
    indent = len(code) - len(stripped)
    try:
        body = ast.parse(stripped, mode="eval").body
    except (RecursionError, MemoryError):
        return None, _too_deep(place(deep[0] if deep else 0))
    except (SyntaxError, ValueError) as error:
        return None, explain_syntax(scanned, indent + (getattr(error, "offset", 0) or 0) - 1)
    expr, fatal = _Reader(scanned, text, indent).read(body)
    if expr and deep and depth_of(expr) > MAX_DEPTH:
        return None, _too_deep(place(deep[0]))
    return expr, fatal


def _too_deep(at: int) -> Refusal:
    help = "give parts of it names of their own"
    return Refusal(at, at + 1, f"the expression is nested more than {MAX_DEPTH} deep", help, "BG015")


class _Reader:
    """Turns Python's tree into ours: once down to list the nodes, once up to build them, without recursion."""

    def __init__(self, scanned: Scanned, text: str, indent: int) -> None:
        self.scanned, self.text, self.indent = scanned, text, indent
        self.plain = scanned.base + indent if not scanned.inserted else None
        self.built: dict[ast.AST, Expr] = {}

    def place(self, column: int) -> int:
        return self.plain + column if self.plain is not None else self.scanned.place(self.indent + column)

    def read(self, body: ast.expr) -> tuple[Expr | None, Refusal | None]:
        """The tree, or the refusal of the first thing in it that is not allowed."""
        order: list[ast.expr] = []
        wrong: list[Refusal] = []
        pending: list[ast.expr] = [body]
        while pending:
            node = pending.pop()
            allowed = _ALLOWED.get(type(node))
            below = allowed[0](node) if allowed else "this form"
            if isinstance(below, str):
                wrong.append(self.refuse(node, below))
            else:
                order.append(node)
                pending += below
        if wrong:
            return None, min(wrong, key=lambda refusal: refusal.start)
        for node in reversed(order):
            start, end = self.place(node.col_offset), self.place(node.end_col_offset or 0)
            self.built[node] = _ALLOWED[type(node)][1](self, node, start, end)
        return self.built[body], None

    def refuse(self, node: ast.expr, what: str) -> Refusal:
        """The refusal of a form, at the part of it that is not allowed."""
        column, help = node.col_offset, ""
        end = node.end_col_offset or column
        if isinstance(node, ast.Attribute):
            column, help = _last_word(node), "only `part.param` and `.T` have a dot"
        elif isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            help = "only a name can be called; to multiply write `*`"
            if isinstance(node.func, ast.Attribute):
                column, help = _last_word(node.func), for_method(node.func.attr)
        elif isinstance(node, ast.Starred):
            end, help = column + 1, "name each argument"
        elif isinstance(node, ast.Call):
            again = _repeated(node)
            column = again.col_offset if again else column
            help = "keep one of the two" if again and again.arg else "name each argument"
            end = column + len(again.arg or "") if again else end
        elif isinstance(node, ast.Compare):
            column, help = node.comparators[0].end_col_offset or 0, "write each comparison on a line of its own"
            column += len(self.code(column, end)) - len(self.code(column, end).lstrip(" )"))
        return outside(self.place(column), self.place(end), what, help)

    def code(self, start: int, end: int) -> str:
        return self.scanned.code[self.indent + start : self.indent + end]

    def op_place(self, op: str, left: ast.expr) -> int:
        """Where the operator after an operand stands; only brackets and spaces can lie between."""
        return self.place(self.scanned.code.index(op, self.indent + (left.end_col_offset or 0)) - self.indent)


def _last_word(node: ast.Attribute) -> int:
    """The column of the name after the dot."""
    return (node.end_col_offset or 0) - len(node.attr)


def _repeated(node: ast.Call) -> ast.keyword | None:
    """The first named argument that is `**all` or has been given before."""
    seen: set[str | None] = {None}
    for given in node.keywords:
        if given.arg in seen:
            return given
        seen.add(given.arg)
    return None


def _below_attribute(node: ast.Attribute) -> list[ast.expr] | str:
    if node.attr == "T" or isinstance(node.value, ast.Name):
        return [node.value]
    return f"`.{node.attr}` here"


def _below_call(node: ast.Call) -> list[ast.expr] | str:
    if not isinstance(node.func, ast.Name):
        return f"calling `.{node.func.attr}`" if isinstance(node.func, ast.Attribute) else "calling what is not a name"
    if again := _repeated(node):
        return "`**` before an argument" if again.arg is None else f"giving `{again.arg}` twice"
    return [*node.args, *(given.value for given in node.keywords)]


def _below_constant(node: ast.Constant) -> list[ast.expr] | str:
    return [] if isinstance(node.value, int | float | str) or node.value in (None, ...) else "this value"


def _items(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _build_constant(reader: _Reader, node: ast.Constant, start: int, end: int) -> Expr:
    match node.value:
        case bool():
            return Bool(start, end, node.value)
        case int() | float():
            return Num(start, end, node.value)
        case str():
            return Text(start, end, reader.text[start + 1 : end - 1])
        case None:
            return NoneLit(start, end)
    return EllipsisLit(start, end)


def _build_attribute(reader: _Reader, node: ast.Attribute, start: int, end: int) -> Expr:
    base = reader.built[node.value]
    if node.attr != "T" and isinstance(base, Name):
        return Attr(start, end, base, node.attr)
    return Transpose(start, end, base)


def _build_call(reader: _Reader, node: ast.Call, start: int, end: int) -> Expr:
    named = []
    for given in node.keywords:
        at, name = reader.place(given.col_offset), given.arg or ""
        named.append(Named(name, reader.built[given.value], at, at + len(name)))
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return Call(start, end, name, tuple([reader.built[arg] for arg in node.args]), tuple(named))


def _build_binary(reader: _Reader, node: ast.BinOp, start: int, end: int) -> Expr:
    op = _BINARY[type(node.op)]
    return Binary(start, end, op, reader.built[node.left], reader.built[node.right], reader.op_place(op, node.left))


def _build_compare(reader: _Reader, node: ast.Compare, start: int, end: int) -> Expr:
    op, right = _COMPARE[type(node.ops[0])], reader.built[node.comparators[0]]
    return Compare(start, end, op, reader.built[node.left], right, reader.op_place(op, node.left))


def _build_slice(reader: _Reader, node: ast.Slice, start: int, end: int) -> Expr:
    first, stop, step = (reader.built[part] if part else None for part in (node.lower, node.upper, node.step))
    return Slice(start, end, first, stop, step)


def _build_items(reader: _Reader, node: ast.List | ast.Tuple, start: int, end: int) -> Expr:
    return List(start, end, tuple([reader.built[item] for item in node.elts]))


def _build_subscript(reader: _Reader, node: ast.Subscript, start: int, end: int) -> Expr:
    return Subscript(start, end, reader.built[node.value], tuple([reader.built[item] for item in _items(node)]))


# The allow-list: for each form of Python's what lies below it (or what is wrong with it), and what it becomes.
_ALLOWED: dict[type, tuple[Callable[..., list[ast.expr] | str], Callable[..., Expr]]] = {
    ast.Constant: (_below_constant, _build_constant),
    ast.Name: (lambda node: [], lambda reader, node, start, end: Name(start, end, node.id)),
    ast.Attribute: (_below_attribute, _build_attribute),
    ast.Call: (_below_call, _build_call),
    ast.BinOp: (lambda node: [node.left, node.right], _build_binary),
    ast.UnaryOp: (
        lambda node: [node.operand],
        lambda reader, node, start, end: Unary(start, end, _UNARY[type(node.op)], reader.built[node.operand]),
    ),
    ast.Compare: (
        lambda node: [node.left, *node.comparators] if len(node.ops) == 1 else "a second comparison",
        _build_compare,
    ),
    ast.Starred: (lambda node: "`*` before an argument", _build_items),
    ast.List: (lambda node: node.elts, _build_items),
    ast.Tuple: (lambda node: node.elts, _build_items),
    ast.Subscript: (
        lambda node: [node.value, *_items(node)] if _items(node) else "an empty subscript",
        _build_subscript,
    ),
    ast.Slice: (lambda node: [part for part in (node.lower, node.upper, node.step) if part], _build_slice),
}
