"""Operands that do not fit, told with both shapes, where each was born, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from blockgraph.bounds import valued
from blockgraph.dims import Dim, Shape, show
from blockgraph.elaborate.calls import Bound
from blockgraph.elaborate.conditions import is_no_size
from blockgraph.elaborate.items import Fault, Ref
from blockgraph.errors import Related
from blockgraph.graph import ROOT, Node
from blockgraph.op import Misfit
from blockgraph.pattern import PatternError
from blockgraph.syntax import Binary, Call, Expr, Name, Text, unparse

if TYPE_CHECKING:
    from blockgraph.elaborate.frame import Frame


def pattern_fault(error: PatternError, node: Expr) -> Fault:
    """A malformed pattern, under its own characters."""
    if isinstance(node, Text):
        start = node.start + 1 + error.start
        at = Expr(start, max(start + 1, node.start + 1 + error.end))
        return Fault("BG017", str(error), at, error.help)
    return Fault("BG017", str(error), node, error.help)


def explain_misfit(frame: Frame, bound: Bound, node: Expr, refs: tuple[Ref, ...], misfit: Misfit) -> None:
    """Report a misfit under the guilty operand, with the other operands beside it."""
    numbers = frame.body.session.env.numbers
    if any(is_no_size(dim, numbers) for ref in refs for dim in frame.body.type(ref).shape or ()):
        return  # that something does not divide is told; what else does not fit follows from it
    blame = _blamed(frame, bound, misfit)
    message = misfit.message.format(*(_text(part, numbers) for part in misfit.parts))
    help = (
        misfit.help.format(*(_text(part, numbers) for part in misfit.help_parts)) if misfit.help_parts else misfit.help
    )
    guilty = node if blame is None or frame.place is not None else bound.operands[blame].expr
    label = "" if blame is None else _described(frame, refs[blame], "")
    related = tuple(
        Related(_other(frame, bound, index, refs[index]), frame.locate(bound.operands[index].expr))
        for index in range(len(refs))
        if index != blame
    )
    if frame.place is not None:
        message = f"in `{frame.key.rpartition('.')[2]}`: {message}"
    elif misfit.code == "BG101" and _is_stream(frame, node):
        message = "the branch does not fit the stream it is added to"
    if blame is not None:
        lines = {int(line) for line in re.findall(r"\bline (\d+)", label)} | {frame.locate(guilty).start.line}
        related += _told_origin(frame, refs, blame, lines)
    help = _remedy(frame, refs, blame) or help
    if misfit.code == "BG101" and not help:
        help = _of_other_rank(
            [(one.expr, frame.body.type(ref).shape) for one, ref in zip(bound.operands, refs, strict=True)]
        )
    frame.report(misfit.code, message, guilty, help, label=label, related=related)


def _told_origin(frame: Frame, refs: tuple[Ref, ...], blame: int, told: set[int]) -> tuple[Related, ...]:
    """Where a foreign size came in, unless it was in a line that is told anyway."""
    found = _origin(frame, refs, blame)
    if found is None or found[0].place is None:
        return ()
    (node, size), place = found, found[0].place
    if place.start.line in told:
        return ()
    source = f"the parameter {node.op.label()}" if node.op.name == "param" else f"`{node.text or node.op.name}`"
    return (Related(f"{size} comes in with {source}", place),)


def _origin(frame: Frame, refs: tuple[Ref, ...], blame: int) -> tuple[Node, str] | None:
    """Which step a foreign size came into the guilty operand with, and the size; None if no size is foreign.

    It is followed back from operand to operand as long as one has it.
    """
    types, makers = frame.body.builder.types, {value: one for one in frame.body.builder.nodes for value in one.outputs}
    others = {dim for index, ref in enumerate(refs) if index != blame for dim in types[ref.value].shape or ()}
    alien = [dim for dim in types[refs[blame].value].shape or () if dim not in others]
    known = frozenset().union(*(dim.symbols for dim in others))
    foreign = frozenset().union(*(dim.symbols for dim in alien)) - known
    node = makers[refs[blame].value]
    while before := [makers[value] for value in node.inputs if _has(types[value].shape, alien, foreign)]:
        node = before[0]
    return (node, str(min(foreign) if foreign else alien[0])) if alien else None


def _has(shape: Shape | None, alien: list[Dim], foreign: frozenset[str]) -> bool:
    """Whether a shape has one of some sizes, or some of their symbols."""
    return any(dim.symbols & foreign if foreign else dim in alien for dim in shape or ())


def _text(part: Any, numbers: dict[str, int]) -> str:
    if isinstance(part, Dim):
        return valued(part, numbers)
    return show(part) if isinstance(part, tuple) else str(part)


def _blamed(frame: Frame, bound: Bound, misfit: Misfit) -> int | None:
    """The guilty operand; in a residual add the one that is not the stream."""
    if misfit.code != "BG101" or frame.line is None:
        return misfit.blame
    stream = [index for index, operand in enumerate(bound.operands) if _starts_with_stream(frame, operand.expr)]
    return 0 if stream == [1] else misfit.blame


def _starts_with_stream(frame: Frame, expr: Expr) -> bool:
    """Whether an operand of an add is the stream: the name being assigned, scaled or with other branches added."""
    assert frame.line is not None
    names = {target.name for target in frame.line.equation.targets}
    while isinstance(expr, Binary) and expr.op in "+-":
        expr = expr.left
    if isinstance(expr, Binary) and expr.op == "*":
        return any(isinstance(side, Name) and side.name in names for side in (expr.left, expr.right))
    return isinstance(expr, Name) and expr.name in names


def _is_stream(frame: Frame, node: Expr) -> bool:
    return isinstance(node, Binary) and (
        _starts_with_stream(frame, node.left) or _starts_with_stream(frame, node.right)
    )


def _other(frame: Frame, bound: Bound, index: int, ref: Ref) -> str:
    expr = bound.operands[index].expr
    text = unparse(expr)
    name = text if len(text) <= 40 else text[:37] + "..."
    if frame.place is not None:
        name = bound.op.operand_name(index)
    elif _starts_with_stream(frame, expr) and isinstance(expr, Name):
        name = f"stream {name}"
    return _described(frame, ref, f"{name} is ")


def _described(frame: Frame, ref: Ref, prefix: str) -> str:
    """`(B, T, 3*C), from feed_forward, line 9`."""
    numbers = frame.body.session.env.numbers
    shape = frame.body.type(ref).shape
    born = birthplace(frame, ref)
    return f"{prefix}{_shape(shape, numbers)}{born}"


def _shape(shape: Shape | None, numbers: dict[str, int]) -> str:
    """The symbolic shape, then the numbers of the axes that are expressions: `(B, T, 3*C), 3*C = 192`."""
    told = [
        valued(dim, numbers) for dim in dict.fromkeys(shape or ()) if dim.symbols and not dim.symbols - numbers.keys()
    ]
    return ", ".join([show(shape), *told])


def birthplace(frame: Frame, ref: Ref) -> str:
    """Where a value comes from: `, from feed_forward, line 9`."""
    node = _producer(frame, ref)
    if node is None:
        return ""
    if node.op.name == "input":
        return ", an input" if node.place is None or frame.body.in_stack else f", from line {node.place.start.line}"
    if node.op.name == "param":
        return f", a parameter, line {node.place.start.line}" if node.place else ", a parameter"
    if frame.body.type(ref).bare and (origin := _parameter_of(frame, node)) is not None:
        return f", from the parameter {origin.op.label()}, line {origin.place.start.line}" if origin.place else ""
    scope = frame.body.builder.scopes.get(node.scope) if node.scope not in (ROOT, frame.key) else None
    if scope is not None and scope.place is not None:
        return f", from {scope.kind}, line {scope.place.start.line}"
    return f", from line {node.place.start.line}" if node.place else ""


def _parameter_of(frame: Frame, node: Node) -> Node | None:
    """The one parameter that a value made of parameters and numbers comes from; None if there are several."""
    makers = {value: one for one in frame.body.builder.nodes for value in one.outputs}
    found, waiting = set(), [node]
    while waiting:
        one = waiting.pop()
        found |= {one.id} if one.op.name == "param" else set()
        waiting += [makers[value] for value in one.inputs]
    return frame.body.builder.nodes[found.pop()] if len(found) == 1 else None


def _producer(frame: Frame, ref: Ref) -> Node | None:
    for node in reversed(frame.body.builder.nodes):
        if ref.value in node.outputs:
            return node
    return None


def _remedy(frame: Frame, refs: tuple[Ref, ...], blame: int | None) -> str:
    """A remedy that names the option at fault, or the dim that a literal stands for."""
    if blame is None:
        return ""
    shapes = [frame.body.type(ref).shape for ref in refs]
    node = _producer(frame, refs[blame])
    part = frame.body.instances.get(node.scope) if node is not None and node.scope != frame.key else None
    if part is not None and part.options is not None and part.options.mistaken:
        document = frame.body.session.env.spec.document
        bounds = (part.decl.option(option) for option, *_ in part.options.bounds())
        frame.body.session.conditions.withdraw({document.value(path) for path in bounds})
        return part.options.mistaken.format(part=part.decl.name)
    out = getattr(part.options, "out", None) if part is not None and part.options is not None else None
    others = [shape for index, shape in enumerate(shapes) if index != blame and shape]
    if out is not None and others and part is not None:
        return f"`out` of {part.decl.kind} is {out}; leave it out, or write `out: {others[0][-1]}`"
    return _literal(shapes, frame.body.session.env.numbers)


def _of_other_rank(operands: list[tuple[Expr, Shape | None]]) -> str:
    """How to keep the axes of what has fewer than the other operand, as a mean over some of them."""
    ranks = [len(shape or ()) for _, shape in operands]
    if len(set(ranks)) < 2 or not min(ranks):
        return ""
    expr = operands[ranks.index(min(ranks))][0]
    if isinstance(expr, Call) and len(expr.args) == 2 and isinstance(pattern := expr.args[1], Text):
        before, arrow, after = pattern.value.partition("->")
        if arrow and "(" not in pattern.value:
            kept = " ".join(axis if axis in after.split() else "1" for axis in before.split())
            return f'keep the axes as 1: `{expr.name}({unparse(expr.args[0])}, "{before.strip()} -> {kept}")`'
    return "both need the same number of axes: `[..., None]` adds one of size 1 at the end"


def _literal(shapes: list[Shape | None], numbers: dict[str, int]) -> str:
    """A literal that equals a dim's number: say which dim to write."""
    dims = [dim for shape in shapes if shape for dim in shape]
    literals = {dim.as_int() for dim in dims if dim.as_int() not in (None, 1)}
    for dim in dims:
        name = next(iter(dim.symbols)) if len(dim.symbols) == 1 else None
        if name and dim == Dim(name) and numbers.get(name) in literals:
            number = numbers[name]
            return f"{number} is a number of its own here: write `{name}`, so that the shapes agree for every {name}"
    return ""
