"""What the symbols of a spec mean in one place: dims, constants, free symbols and their numbers.

`--set` and `set:` rebind them; expressions in `dims` are worked out again, so `D: C/H` follows C and H.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from blockgraph.dims import STRETCH, Dim
from blockgraph.elaborate.items import UNKNOWN, Fault, Item, evaluate, fold, size
from blockgraph.equation import parse_expression
from blockgraph.errors import Related, SpecPath, near
from blockgraph.kind import refuse
from blockgraph.module import Report, SizeText
from blockgraph.number import Number
from blockgraph.records import dataclass
from blockgraph.spec import MAX_DIM, UNREAD, Spec
from blockgraph.syntax import Expr, Name, Num

NONE = "none"
LAYER = "layer"


@dataclass(slots=True)
class Env:
    """The names that sizes and options may use. `free` are bound anew at every call of a module.

    `changes` are the values of `set:` in force, `outer` the constants that hold the `layer` of a stack further out.
    `lenient` says that something which gives names could not be read, so that an unknown name is no finding.
    `memo` holds what was worked out here before; all that is made from one environment by `replace` has the same.
    """

    spec: Spec
    report: Report
    dims: dict[str, Dim] = field(default_factory=dict)
    constants: dict[str, Item] = field(default_factory=dict)
    free: dict[str, Dim] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    in_stack: bool = False
    changes: dict[str, Item] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    lenient: bool = False
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def likeness(self) -> tuple[Any, ...]:
        """What two environments made from one by `replace`, with one `memo`, have in common when they say the same."""
        return (tuple(self.free.items()), self.in_stack, self.outer, self.lenient)

    def in_layer(self) -> Env:
        """The environment inside a stack that stands in a layer: what holds `layer` so far means the outer one."""
        return replace(self, outer=frozenset(name for name, item in self.constants.items() if _holds_layer(item)))

    def name(self, node: Name) -> Item:
        """What a name stands for. Raises Fault with the nearest name that exists."""
        name = node.name
        if name in self.outer:
            help = "leave out this stack, or set the constant where its own blocks are used"
            raise Fault("BG027", f"`{name}` was set from the `layer` of a stack further out", node, help)
        for table in (self.free, self.dims, self.constants):
            if name in table:
                return table[name]
        if name == NONE:
            return None
        if name == LAYER:
            if self.in_stack:
                return Number(LAYER)
            help = "write a number, or use the block in a stack: `layers: {kind: stack, of: block, repeat: 12}`"
            raise Fault("BG027", "`layer` has a meaning only inside a stack", node, help)
        if self.lenient:
            return UNKNOWN
        raise Fault("BG027", f"unknown name `{name}`", node, self.suggest(name))

    def knows(self, name: str) -> bool:
        """Whether a name stands for something, so that no input's shape can introduce it."""
        if name in self.outer or (name == LAYER and not self.in_stack):
            return False
        return name in (NONE, LAYER) or any(name in table for table in (self.free, self.dims, self.constants))

    def lost_its_number(self, name: str) -> bool:
        """Whether a dim has no number since what is written for it is at fault, and not since it is left open."""
        decl = self.spec.dims.get(name)
        if decl is None or name in self.numbers:
            return False
        written = decl.number is None and decl.expr is None and self.spec.document.data["dims"][name] is not None
        return name in self.spec.overrides or name in self.changes or written

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
            if self.is_told(fault):
                return UNKNOWN
            at = fault.expr or expr
            place = self.spec.document.within(path, at.start, at.end)
            message = fault.message
            if expected and isinstance(expr, Name) and message.startswith("unknown name"):
                message = f"{expected} expected, and `{expr.name}` is no name of this file"
            self.report.add(fault.code, message, place, fault.help)
            return UNKNOWN

    def is_told(self, fault: Fault) -> bool:
        """Whether this is a name of nothing that was told before: a name of the file is told once."""
        name = fault.expr.name if isinstance(fault.expr, Name) and fault.message.startswith("unknown name") else None
        known = name in self.report.unknown_names
        self.report.unknown_names |= {name} if name is not None else set()
        return known

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


def _holds_layer(item: Item) -> bool:
    return isinstance(item, Number) and LAYER in item.symbols


def build(spec: Spec, report: Report, changes: Mapping[str, Item] | None = None, in_stack: bool = False) -> Env:
    """The environment of a spec, with the `--set` values and a use's `set:` applied."""
    changes = dict(changes or {})
    lenient = bool(spec.unread & {"dims", "constants"})
    env = Env(spec, report, in_stack=in_stack, changes=changes, lenient=lenient)
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
    _constants(env, spec, changes)
    return env


def _override(env: Env, name: str, value: Any, path: SpecPath) -> None:
    if isinstance(value, str) and value.isdecimal():  # a number too long to be read as one
        message = f"dim `{name}`: a size up to {MAX_DIM} expected, got a number of {len(value):,} digits"
        env.report.add("BG022", message, env.spec.document.value(path), "give a smaller number")
        return
    item = env.item(value, path)
    found = env.as_size(item, path) if item is not UNKNOWN else None
    if found is None:
        return
    number = found.as_int()
    if number is None:
        env.dims[name] = found
    elif number < 1:
        place, kept = env.spec.document.value(path), env.spec.dims[name].number
        help = "give a number from 1 on" + ("" if kept is None else f", or leave it out: the file says {kept}")
        env.report.add("BG022", f"dim `{name}`: positive whole number expected, got {value}", place, help)
    else:
        env.numbers[name] = number


def _expressions(env: Env, spec: Spec, changes: Mapping[str, Item]) -> None:
    """Work out the dims that are expressions, each after those it uses; a circle is a finding."""
    texts = {
        name: decl.expr
        for name, decl in spec.dims.items()
        if decl.expr and name not in changes and name not in spec.overrides
    }
    for name in _in_order(env, "dim", {name: _names(text.expr) for name, text in texts.items()}):
        found = env.size(texts[name])
        if found is not None:
            env.dims[name] = found


def _constants(env: Env, spec: Spec, changes: Mapping[str, Item]) -> None:
    """Work out the constants, each after those it uses; one that is part of a circle is unknown."""
    env.constants.update(dict.fromkeys(spec.constants, UNKNOWN))
    env.constants.update((name, item) for name, item in changes.items() if name in spec.constants)
    values = {name: spec.overrides.get(name, value) for name, value in spec.constants.items() if name not in changes}
    exprs = {name: parse_expression(value)[0] for name, value in values.items() if isinstance(value, str)}
    used = {name: _names(expr) if (expr := exprs.get(name)) is not None else set() for name in values}
    for name in _in_order(env, "constant", used):
        env.constants[name] = constant(env, values[name], ("constants", name))


def _in_order(env: Env, what: str, used: Mapping[str, set[str]]) -> Iterator[str]:
    """The names, each after those it uses; a circle is a finding, and its names are left out."""
    missing = {name: names & used.keys() for name, names in used.items()}
    users: dict[str, list[str]] = {name: [] for name in used}
    for name, names in missing.items():
        for one in names:
            users[one].append(name)
    ready = deque(name for name, names in missing.items() if not names)
    while ready:
        name = ready.popleft()
        del missing[name]
        yield name
        for user in users[name]:
            missing[user].discard(name)
            if not missing[user]:
                ready.append(user)
    if missing:
        _report_circle(env, what, list(missing))


def _report_circle(env: Env, what: str, names: list[str]) -> None:
    places = [env.spec.document.value((f"{what}s", name)) for name in names]
    others = tuple(Related(f"`{name}` is part of the circle", place) for name, place in zip(names, places, strict=True))
    message = f"{what} `{names[0]}` is defined by itself"
    env.report.add("BG030", message, places[0], "give one of them a number", related=others[1:])


def _names(expr: Expr) -> set[str]:
    found: set[str] = set()
    evaluate(expr, lambda node, _: found.add(node.name) if isinstance(node, Name) else None)
    return found


def constant(env: Env, value: Any, path: SpecPath) -> Item:
    """A constant: a number, none, an expression, or else a word."""
    if value is UNREAD:
        return UNKNOWN
    if not isinstance(value, str):
        return env.item(value, path)
    expr, _ = parse_expression(value)
    if isinstance(expr, Name) and expr.name not in (NONE, LAYER, *env.dims, *env.constants):
        return value
    return env.item(value, path)
