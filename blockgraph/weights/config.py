"""Numbers of a config.json for the dims and constants of a spec, and what the spec assumes of the model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, final

from blockgraph.dims import Dim
from blockgraph.elaborate.env import Env
from blockgraph.elaborate.items import UNKNOWN, Fault, evaluate, fold
from blockgraph.equation import parse_expression
from blockgraph.errors import Place, Related, SpecPath, near
from blockgraph.module import Report
from blockgraph.number import Number
from blockgraph.records import dataclass
from blockgraph.spec import Spec
from blockgraph.syntax import Attr, Expr, Name, walk
from blockgraph.weights.mapping import KEY, Section
from blockgraph.weights.take import numbered
from blockgraph.wording import show_value

DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
MISSING = object()


class Absent(Exception):
    """The config has no such key, or null under it; carries the key."""


@final
@dataclass(slots=True)
class ConfigReader:
    """One config.json held against one spec. `file` is its path."""

    spec: Spec
    section: Section
    config: Mapping[str, Any]
    file: str
    report: Report

    def applied(self) -> Spec:
        """The spec with the config's values, each expression after the dims it uses. What is wrong is reported."""
        waiting = {name: text for name, text in self.section.config.items() if not self._is_set(name, text)}
        spec = self.spec
        while waiting:
            ready = [name for name, text in waiting.items() if DOTTED.fullmatch(text)]
            ready = ready or [name for name, text in waiting.items() if not _names(text) & (waiting.keys() - {name})]
            ready = ready or list(waiting)
            env = numbered(spec, Report())
            found = {name: value for name in ready if (value := self._value(name, waiting[name], env)) is not MISSING}
            spec = spec.with_values(found)
            for name in ready:
                del waiting[name]
        self._expected()
        return spec

    def _is_set(self, name: str, text: str) -> bool:
        """Whether `--set` has bound the name already, which then counts; a note says so."""
        if name not in self.spec.overrides:
            return False
        message = f"`{name}` is {show_value(self.spec.overrides[name])}, as set; `{text}` of {self.file} is not used"
        self.report.add("BG309", message, self._place("config", name), severity="note")
        return True

    def _place(self, *path: str) -> Place:
        return self.spec.document.value((KEY, *path))

    def _value(self, name: str, text: str, env: Env) -> Any:
        """The value for a dim or constant; MISSING after a finding or a note."""
        try:
            value = look_up(self.config, text) if DOTTED.fullmatch(text) else self._expression(name, text, env)
        except Absent as absent:
            self._keep(name, str(absent))
            return MISSING
        if value is MISSING:
            return MISSING
        if name in self.spec.dims:
            return self._size(name, text, value)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            self._refuse(name, text, value, "a number or a word")
            return MISSING
        return value

    def _expression(self, name: str, text: str, env: Env) -> Any:
        """A formula of keys and dims as a number. Raises Absent."""
        path = (KEY, "config", name)
        expr, refusals = parse_expression(text)
        for one in refusals:
            place = self.spec.document.within(path, one.start, one.end)
            self.report.add(one.code, one.message, place, one.help)
        if expr is None:
            return MISSING
        try:
            return self._number(evaluate(expr, lambda node, items: self._node(node, items, env)))
        except Fault as fault:
            at = fault.expr or expr
            place = self.spec.document.within(path, at.start, at.end)
            self.report.add(fault.code, fault.message, place, fault.help)
            return MISSING

    def _node(self, node: Expr, items: tuple[Any, ...], env: Env) -> Any:
        if isinstance(node, Attr):
            return self._item(look_up(self.config, f"{node.base.name}.{node.name}"), node)
        return fold(node, items, lambda name: self._name(name, env))

    def _name(self, node: Name, env: Env) -> Any:
        """A key of the config, else a dim or constant of the spec."""
        if node.name in self.config:
            return self._item(look_up(self.config, node.name), node)
        if node.name in env.dims or node.name in env.constants:
            return env.name(node)
        raise Absent(node.name)

    def _item(self, value: Any, node: Expr) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Fault("BG308", f"number expected from {self.file}, got {show_value(value)}", node)
        return Dim(value) if isinstance(value, int) else Number(value)

    def _number(self, item: Any) -> Any:
        """A result as a Python number; MISSING for what has none, which has its finding."""
        if item is UNKNOWN:
            return MISSING
        if isinstance(item, Dim):
            item = Number(item)
        if isinstance(item, Number):
            if item.value is None:
                unknown = ", ".join(sorted(item.symbols))
                raise Fault("BG038", f"`{unknown}` has no number")
            return item.value
        return item

    def _size(self, name: str, text: str, value: Any) -> Any:
        """A whole-valued number for a dim."""
        number = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        whole = round(value) if number else 0
        if whole < 1 or abs(value - whole) > 1e-9 * whole:
            self._refuse(name, text, value, "a positive whole number")
            return MISSING
        return whole

    def _refuse(self, name: str, text: str, value: Any, expected: str) -> None:
        message = f"`{name}` must be {expected}, and `{text}` of {self.file} is {show_value(value)}"
        self.report.add("BG308", message, self._place("config", name), "correct the file, or map another key")

    def _keep(self, name: str, key: str) -> None:
        """The note that a value comes from the spec, not from the config."""
        path: SpecPath = ("dims" if name in self.spec.dims else "constants", name)
        shown = current(self.spec, name)
        null = look_up(self.config, key, null=True) is None
        reason = f"{self.file} has {'null under' if null else 'no key'} `{key}`"
        found = None if null else near(key, self.config)
        related = (Related(f"`{name}: {shown}` stands here", self.spec.document.value(path)),)
        message = f"`{name}` keeps {shown}, the value of this spec: {reason}"
        help = f"did you mean `{found}`?" if found else ""
        self.report.add("BG309", message, self._place("config", name), help, related=related, severity="note")

    def _expected(self) -> None:
        """Hold what the spec assumes against the config."""
        for key, wanted in self.section.expect.items():
            path = (KEY, "expect", key)
            try:
                value = look_up(self.config, key)
            except Absent:
                value = look_up(self.config, key, null=True)
            if value is MISSING and _agree(None, wanted):
                continue  # a key that is not there says what null says
            if value is MISSING:
                message = f"the spec assumes `{key}: {_shown(wanted)}`, and {self.file} does not say"
                self.report.add("BG309", message, self.spec.document.key(path), severity="note")
            elif not _agree(value, wanted):
                message = f"`{key}` is {_shown(value)} in {self.file}, and this spec is for {_shown(wanted)}"
                help = "the numbers would differ: write the spec for this model, or correct `expect`"
                self.report.add("BG308", message, self.spec.document.value(path), help)


def look_up(config: Mapping[str, Any], key: str, null: bool = False) -> Any:
    """The value under a dotted key. Raises Absent; with `null`, null comes as None and nothing as MISSING."""
    value: Any = config
    for part in key.split("."):
        value = value[part] if isinstance(value, Mapping) and part in value else MISSING
    if null:
        return value
    if value is None or value is MISSING:
        raise Absent(key)
    return value


def _names(text: str) -> set[str]:
    expr, _ = parse_expression(text)
    return set() if expr is None else {node.name for node in walk(expr) if isinstance(node, Name)}


def current(spec: Spec, name: str) -> str:
    """The value that a dim or constant has without the config, as the file writes it."""
    data = spec.data["dims" if name in spec.dims else "constants"][name]
    return "any size" if data is None and name in spec.dims else _shown(data)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else show_value(value)


def _agree(value: Any, wanted: Any) -> bool:
    if wanted == "none" and value is None:
        return True
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)
