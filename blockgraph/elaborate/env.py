"""What the symbols of a spec mean in one place: dims, constants, free symbols and their numbers.

`--set` and `set:` rebind them; expressions in `dims` are worked out again, so `D: C/H` follows C and H.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blockgraph.dims import STRETCH, Dim
from blockgraph.elaborate.items import UNKNOWN, Fault, Item, evaluate, fold, size
from blockgraph.equation import parse_expression
from blockgraph.errors import Related, SpecPath, near
from blockgraph.kind import refuse
from blockgraph.module import Report, SizeText
from blockgraph.number import Number
from blockgraph.spec import MAX_DIM, Spec
from blockgraph.syntax import Expr, Name, Num

NONE = "none"
LAYER = "layer"


@dataclass(slots=True)
class Env:
    """The names that sizes and options may use. `free` are bound anew at every call of a module."""

    spec: Spec
    report: Report
    dims: dict[str, Dim] = field(default_factory=dict)
    constants: dict[str, Item] = field(default_factory=dict)
    free: dict[str, Dim] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    in_stack: bool = False

    def name(self, node: Name) -> Item:
        """What a name stands for. Raises Fault with the nearest name that exists."""
        name = node.name
        for table in (self.free, self.dims, self.constants):
            if name in table:
                return table[name]
        if name == NONE:
            return None
        if name == LAYER:
            if self.in_stack:
                return Number(LAYER)
            raise Fault("BG027", "`layer` has a meaning only inside a stack", node)
        raise Fault("BG027", f"unknown name `{name}`", node, self.suggest(name))

    def suggest(self, name: str) -> str:
        """Help for an unknown name."""
        choices = [*self.free, *self.dims, *self.constants]
        found = near(name, choices)
        if found:
            return f"did you mean `{found}`?"
        return f"add `{name}` to `dims`, or use it in an input's shape"

    def item(self, value: Any, path: SpecPath, expected: str = "") -> Item:
        """An option's value: a number, or text holding an expression. Reports what is wrong; UNKNOWN then.

        `expected` says what an unknown name is not: `positive whole number or a dim`.
        """
        if value is None or isinstance(value, bool | Dim):
            return value
        if isinstance(value, int):
            return Dim(value)
        if not isinstance(value, str | float) or value != value or value in (math.inf, -math.inf):
            fault = refuse("a number or an expression", value).context or {}
            self.report.add("BG022", fault["message"], self.spec.document.value(path), fault["help"])
            return UNKNOWN
        if isinstance(value, float):
            return Number(value)
        expr, refusals = parse_expression(value)
        for refusal in refusals:
            place = self.spec.document.within(path, refusal.start, refusal.end)
            self.report.add(refusal.code, refusal.message, place, refusal.help)
        return UNKNOWN if expr is None else self.expression(expr, path, expected)

    def expression(self, expr: Expr, path: SpecPath, expected: str = "") -> Item:
        """A parsed expression that stands at `path`."""
        try:
            return evaluate(expr, lambda node, items: fold(node, items, self.name))  # type: ignore[no-any-return]
        except Fault as fault:
            at = fault.expr or expr
            place = self.spec.document.within(path, at.start, at.end)
            message = fault.message
            if expected and isinstance(expr, Name) and message.startswith("unknown name"):
                message = f"{expected} expected, and `{expr.name}` is no name of this file"
            self.report.add(fault.code, message, place, fault.help)
            return UNKNOWN

    def size(self, text: SizeText) -> Dim | None:
        """A size as written in a shape, where a 1 may stretch; None after its finding."""
        if isinstance(text.expr, Num) and text.expr.value == 1:
            return STRETCH
        item = self.expression(text.expr, text.path)
        return None if item is UNKNOWN else self.as_size(item, text.path)

    def as_size(self, item: Item, path: SpecPath) -> Dim | None:
        """An item as a size; None after its finding."""
        try:
            found = size(item)
            if LAYER in found.symbols:
                raise Fault("BG022", "`layer` may stand in numbers, not in sizes")
            if (number := found.number) is not None and (number < 0 or number > MAX_DIM):
                raise Fault("BG022", f"a size lies between 0 and {MAX_DIM}, and this is {found}")
        except Fault as fault:
            self.report.add(fault.code, fault.message, self.spec.document.value(path), fault.help)
            return None
        return found

    def symbols(self) -> dict[str, int]:
        """The numbers of all symbols that have one."""
        return self.numbers


def build(spec: Spec, report: Report, changes: Mapping[str, Item] | None = None, in_stack: bool = False) -> Env:
    """The environment of a spec, with the `--set` values and a use's `set:` applied."""
    env = Env(spec, report, in_stack=in_stack)
    changes = dict(changes or {})
    for name in spec.dims:
        env.dims[name] = Dim(name)
    for name, decl in spec.dims.items():
        if name in changes:
            found = env.as_size(changes[name], decl.path)
            env.dims[name] = found if found is not None else Dim(name)
        elif name in spec.overrides:
            _override(env, name, spec.overrides[name], decl.path)
        elif decl.number is not None:
            env.numbers[name] = decl.number
    _expressions(env, spec, changes)
    for name, value in spec.overrides.items():
        if name not in spec.dims and name not in spec.constants and isinstance(value, int):
            env.numbers[name] = value
    for name, value in spec.constants.items():
        value = spec.overrides.get(name, value)
        env.constants[name] = changes[name] if name in changes else constant(env, value, ("constants", name))
    return env


def _override(env: Env, name: str, value: Any, path: SpecPath) -> None:
    item = env.item(value, path)
    found = env.as_size(item, path) if item is not UNKNOWN else None
    if found is None:
        return
    number = found.as_int()
    if number is None:
        env.dims[name] = found
    elif number < 1:
        place = env.spec.document.value(path)
        env.report.add("BG022", f"dim `{name}`: positive whole number expected, got {value}", place)
    else:
        env.numbers[name] = number


def _expressions(env: Env, spec: Spec, changes: Mapping[str, Item]) -> None:
    """Work out the dims that are expressions, each after those it uses; a circle is a finding."""
    waiting = {
        name: decl
        for name, decl in spec.dims.items()
        if decl.expr and name not in changes and name not in spec.overrides
    }
    while waiting:
        ready = [name for name, decl in waiting.items() if decl.expr and not (_names(decl.expr.expr) & waiting.keys())]
        if not ready:
            first = next(iter(waiting))
            others = tuple(
                Related(f"`{name}` is part of the circle", spec.document.value(decl.path))
                for name, decl in waiting.items()
                if name != first
            )
            place = spec.document.value(waiting[first].path)
            env.report.add(
                "BG030", f"dim `{first}` is defined by itself", place, "give one of them a number", related=others
            )
            return
        for name in ready:
            text = waiting.pop(name).expr
            assert text is not None
            found = env.size(text)
            if found is not None:
                env.dims[name] = found


def _names(expr: Expr) -> set[str]:
    found: set[str] = set()
    evaluate(expr, lambda node, _: found.add(node.name) if isinstance(node, Name) else None)
    return found


def constant(env: Env, value: Any, path: SpecPath) -> Item:
    """A constant: a number, none, an expression, or else a word."""
    if not isinstance(value, str):
        return env.item(value, path)
    expr, _ = parse_expression(value)
    if isinstance(expr, Name) and expr.name != NONE and expr.name not in (*env.dims, *env.constants):
        return value
    return env.item(value, path)
