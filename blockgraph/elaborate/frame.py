"""One call of a module: its equations run over values of the graph, one syntax node at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from blockgraph.dims import Dim
from blockgraph.elaborate.body import Body
from blockgraph.elaborate.calls import (
    Bound,
    Operand,
    bind,
    functions,
    nearest_function,
    operator,
    refusal,
    subscript_items,
)
from blockgraph.elaborate.items import UNKNOWN, Cut, Fault, Item, Ref, describe, evaluate, fold, known_numbers, real
from blockgraph.elaborate.misfits import explain_misfit, pattern_fault
from blockgraph.errors import Place, SpecPath, near
from blockgraph.module import Line
from blockgraph.number import FUNCTIONS, Number
from blockgraph.op import OPS, Misfit, Op, Refusal
from blockgraph.ops.leaf import Constant
from blockgraph.pattern import PatternError
from blockgraph.records import dataclass
from blockgraph.syntax import (
    Attr,
    Binary,
    Call,
    Compare,
    Expr,
    Name,
    Subscript,
    Transpose,
    Unary,
    Unread,
    children,
    unparse,
)
from blockgraph.wording import counted

if TYPE_CHECKING:
    from blockgraph.elaborate.instance import Instance

SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@", "compare": "<"}


class UnknownName(Fault):
    """A name that stands for nothing; told once in a module, however often it is used."""

    def __init__(self, name: str, code: str, message: str, expr: Expr, help: str) -> None:
        """The name, and what is told."""
        self.name = name
        super().__init__(code, message, expr, help)


@dataclass(frozen=True, slots=True)
class Outs:
    """The several results of one call."""

    refs: tuple[Ref, ...]


@dataclass(slots=True)
class Frame:
    """The names that the equations of one call see. `key` is its scope; `own` its depth below the main module.

    `unread` are the keys of its module that could not be read, `told` the names already told to be unknown. It is
    `unsure` of what was called once an equation could not be read.
    """

    body: Body
    key: str
    depth: int
    symbol: Callable[[Name], Item]
    param: Callable[[str], Ref | None]
    param_names: tuple[str, ...]
    parts: Mapping[str, Instance]
    values: dict[str, Ref] = field(default_factory=dict)
    place: Place | None = None
    versions: Counter[str] = field(default_factory=Counter)
    line: Line | None = None
    options_at: SpecPath | None = None
    unread: frozenset[str] = frozenset()
    told: set[str] = field(default_factory=set)
    unsure: bool = False

    def run(self, lines: tuple[Line, ...]) -> None:
        """Run the equations in order; each fault is reported and its value is unknown from there on."""
        assigned = Counter(target.name for line in lines for target in line.equation.targets)
        assigned.update(self.values.keys())
        if self.place is None:
            for name in self.values:
                self._step(name, assigned, "", "input", None)
        for line in lines:
            self._run_line(line, assigned, lines[-1])

    def _run_line(self, line: Line, assigned: Counter[str], last: Line) -> None:
        self.line = line
        builder = self.body.builder
        expr = line.equation.expr
        builder.scope, builder.text = self.key, line.equation.text
        builder.place = place = self.locate(expr)
        result = evaluate(expr, self._node)
        builder.place = place
        refs = self._results(result, len(line.equation.targets), expr)
        for target, ref in zip(line.equation.targets, refs, strict=True):
            self.values[target.name] = ref
            if self.place is not None and line is last:
                continue  # the result of a kind is named by its part
            made = builder.nodes[-1].op.name if builder.nodes else ""
            op = self._kind_of(expr.name) if isinstance(expr, Call) else made
            self._step(target.name, assigned, line.equation.text, op, place)

    def _kind_of(self, name: str) -> str:
        return self.parts[name].decl.kind if name in self.parts else name

    def _step(self, name: str, assigned: Counter[str], text: str, op: str, place: Place | None) -> None:
        self.versions[name] += 1
        shown = name if assigned[name] == 1 else f"{name}.{self.versions[name]}"
        full = f"{self.key}.{shown}" if self.key else shown
        self.body.step(full, self.values[name], text, op, self.depth, place)

    def _results(self, result: Any, count: int, expr: Expr) -> tuple[Ref, ...]:
        """The values that an equation's targets take."""
        refs = result.refs if isinstance(result, Outs) else (self.as_ref(result, expr),)
        if len(refs) == count:
            return refs
        if not (len(refs) == 1 and self.body.type(refs[0]).shape is None):
            message = f"{counted(len(refs), 'result')} cannot be given {counted(count, 'name')}"
            self.report("BG028", message, expr, "name each result once")
        return tuple(self.body.unknown() for _ in range(count))

    def locate(self, expr: Expr) -> Place:
        """The place of an expression; inside a kind, that of the call of the kind."""
        if self.place is not None:
            return self.place
        assert self.line is not None
        return self.line.locate(expr.start, expr.end)

    def report(self, code: str, message: str, expr: Expr, help: str = "", **more: Any) -> None:
        """Report an error under an expression."""
        self.body.session.add(code, message, self.locate(expr), help, **more)

    def as_ref(self, item: Any, expr: Expr) -> Ref:
        """An item as a value of the graph: numbers become constants, anything else is a finding."""
        if isinstance(item, Ref):
            return item
        if isinstance(item, Dim | Number):
            try:
                return self._add(Constant(real(item, expr)))
            except Fault as fault:
                return self._fault(fault, expr)
        if item is not UNKNOWN:
            what = "several results" if isinstance(item, Outs) else describe(item)
            self.report("BG028", f"a value is expected here, not {what}", expr)
        return self.body.unknown()

    def _add(self, op: Op, *refs: Ref) -> Ref:
        return Ref(self.body.node(op, *(ref.value for ref in refs))[0])

    def _node(self, node: Expr, items: tuple[Any, ...]) -> Any:
        """One syntax node, its operands known."""
        try:
            return self._evaluate(node, items)
        except Fault as fault:
            return self.body.unknown() if self._follows(fault, node, items) else self._fault(fault, node)

    def _follows(self, fault: Fault, node: Expr, items: tuple[Any, ...]) -> bool:
        """Whether it was told already: of an operand that is unknown, or of the same unknown name."""
        if isinstance(fault, UnknownName):
            known, self.unsure = fault.name in self.told, True
            self.told.add(fault.name)
            self.body.session.report.unknown_names.add(fault.name)
            return known
        found = [item for one, item in zip(children(node), items, strict=False) if one is fault.expr]
        return any(self._is_lost(item) for item in found)

    def _is_lost(self, item: Any) -> bool:
        """Whether an item, or one in a list or a slice, is unknown."""
        waiting = [item]
        while waiting:
            one = waiting.pop()
            if one is UNKNOWN or (isinstance(one, Ref) and self.body.type(one).shape is None):
                return True
            if isinstance(one, Cut):
                waiting += (one.first, one.stop, one.step)
            elif isinstance(one, tuple):
                waiting += one
        return False

    def _fault(self, fault: Fault, node: Expr) -> Ref:
        self.report(fault.code, fault.message, fault.expr or node, fault.help)
        return self.body.unknown()

    def _evaluate(self, node: Expr, items: tuple[Any, ...]) -> Any:
        match node:
            case Name():
                return self._name(node)
            case Attr():
                return self._attribute(node)
            case Unread():
                self.unsure = True
                return self.body.unknown()
            case Transpose():
                return self._operation(OPS["transpose"](), node, (node.base,), items)
            case Subscript():
                return self._subscript(node, items)
            case Binary() if not known_numbers(items):
                return self._operation(operator(node.op), node, (node.left, node.right), items)
            case Compare():
                return self._operation(operator(node.op), node, (node.left, node.right), items)
            case Unary() if not known_numbers(items):
                return items[0] if node.op == "+" else self._operation(OPS["negate"](), node, (node.operand,), items)
            case Call():
                return self._call(node, items)
        return fold(node, items, self.symbol)

    def _name(self, node: Name) -> Any:
        if node.name in self.values:
            return self.values[node.name]
        if node.name in self.parts:
            raise Fault("BG028", f"`{node.name}` is a part: call it, as in `{node.name}(x)`", node)
        if (own := self.param(node.name)) is not None:
            return own
        try:
            return self.symbol(node)
        except Fault as fault:
            if not fault.message.startswith("unknown name"):
                raise
            found = near(node.name, (*self.values, *self.param_names, *self.parts))
            help = f"did you mean `{found}`?" if found else self._available(fault.help)
            raise UnknownName(node.name, "BG025", fault.message, node, help) from None

    def _available(self, otherwise: str) -> str:
        if otherwise.startswith("did you mean"):
            return otherwise
        return f"values so far: {', '.join(self.values)}"

    def _attribute(self, node: Attr) -> Ref:
        part = self.parts.get(node.base.name)
        if (part is None and "parts" in self.unread) or (part is not None and not part.calls and self.unsure):
            return self.body.unknown()  # it may be what could not be read, or be called there
        if part is None:
            found = near(node.base.name, self.parts)
            help = f"did you mean `{found}`?" if found else "only a part has parameters"
            raise UnknownName(node.base.name, "BG025", f"unknown part `{node.base.name}`", node.base, help)
        return part.parameter(node.name, node)

    def _subscript(self, node: Subscript, items: tuple[Any, ...]) -> Ref:
        if isinstance(items[0], tuple):
            raise Fault("BG010", "a list cannot be cut here", node)
        op = OPS["index"](items=subscript_items(items[1:], node.items))  # type: ignore[call-arg]
        return self._operation(op, node, (node.base,), items[:1])  # type: ignore[return-value]

    def _operation(self, op: Op, node: Expr, exprs: tuple[Expr, ...], items: tuple[Any, ...]) -> Ref | Outs:
        if op.name == "divide" and _is_zero(items[1]):
            raise Fault(
                "BG401", f"this divides by `{unparse(exprs[1])}`, which is 0", exprs[1], "divide by another number"
            )
        operands = tuple(Operand(expr, item) for expr, item in zip(exprs, items, strict=True))
        return self._apply(Bound(op, operands, {}), node)

    def _call(self, node: Call, items: tuple[Any, ...]) -> Any:
        if node.name in self.parts:
            return self._call_part(self.parts[node.name], node, items)
        if known_numbers(items) and items and not node.named and node.name not in functions():
            return fold(node, items, self.symbol)
        if known_numbers(items) and items and not node.named and node.name in FUNCTIONS:
            return fold(node, items, self.symbol)
        if node.name not in functions():
            if "parts" in self.unread:
                return self.body.unknown(node.name)
            found = near(node.name, self.parts)
            help = f"did you mean the part `{found}`?" if found else nearest_function(node.name)
            raise UnknownName(node.name, "BG026", f"unknown function `{node.name}`", node, help)
        bound = bind(node, items)
        wrong = refusal(bound)
        if wrong is not None:
            return self._refused(wrong, bound.option_exprs.get(wrong.option, node))
        return self._apply(bound, node)

    def _refused(self, wrong: Refusal, expr: Expr) -> Ref:
        """Report a senseless option: under its text, or inside a kind at the kind's option of the same name."""
        document = self.body.session.spec.document
        path = None if self.options_at is None else (*self.options_at, wrong.option)
        place = document.value(path) if path is not None and document.has(path) else self.locate(expr)
        self.body.session.add(wrong.code, wrong.message, place, wrong.help)
        return self.body.unknown()

    def _call_part(self, part: Instance, node: Call, items: tuple[Any, ...]) -> Any:
        args = [self.as_ref(item, expr) for item, expr in zip(items, node.args, strict=False)]
        named = {
            one.name: (self.as_ref(item, one.value), one.value)
            for one, item in zip(node.named, items[len(node.args) :], strict=True)
            if item is not None
        }
        positional = list(zip(args, node.args, strict=True))
        builder = self.body.builder
        kept = (builder.scope, builder.text, builder.place)
        refs = part.call(self, node, positional, named)
        builder.scope, builder.text, builder.place = kept
        return refs[0] if len(refs) == 1 else Outs(refs)

    def _apply(self, bound: Bound, node: Expr) -> Ref | Outs:
        """Add the node of an op; a misfit becomes a finding and an unknown value."""
        refs = tuple(self.as_ref(operand.item, operand.expr) for operand in bound.operands)
        self.body.builder.place = self.locate(node)
        try:
            outputs = self.body.node(bound.op, *(ref.value for ref in refs))
        except PatternError as error:
            text = next((expr for expr in bound.option_exprs.values()), node)
            raise pattern_fault(error, text) from None
        except Misfit as misfit:
            explain_misfit(self, bound, node, refs, misfit)
            return self.body.unknown(SYMBOLS.get(bound.op.name, bound.op.name), *refs)
        found = tuple(Ref(value) for value in outputs)
        return found[0] if len(found) == 1 else Outs(found)


def _is_zero(item: Any) -> bool:
    return (isinstance(item, Dim) and item.number == 0) or (isinstance(item, Number) and item.value == 0)
