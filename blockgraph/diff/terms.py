"""Options as text under any naming of the symbols: what a line of the canonical form consists of."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from blockgraph.dims import Dim
from blockgraph.number import Apply, Number
from blockgraph.op import Op, Type, symbols_in
from blockgraph.records import dataclass

LAYER: Final = "layer"  # the number of the layer: the one symbol whose name means something
ANONYMOUS: Final[Mapping[str, str]] = defaultdict(lambda: "_", {LAYER: LAYER})
NAMES: Final = {"input": {"path"}, "param": {"path", "init", "amount"}, "unknown": {"what"}}
"""Fields of ops that are names, or how a parameter is drawn."""
TOKENS: Final = re.compile(r"[A-Za-z_]\w*|\d+|\.\.\.|->|\S")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the canonical form: text without symbols, then values that may hold some."""

    head: str
    fields: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()


def line_text(line: Line, names: Mapping[str, str]) -> str:
    """The line with its symbols under these names."""
    fields = (*line.fields, *("" for _ in line.values[len(line.fields) :]))
    return " ".join([line.head, *(f"{f}={value_text(v, names)}" for f, v in zip(fields, line.values, strict=True))])


def identity(line: Line) -> dict[str, str]:
    """The symbols of a line under their own names."""
    return {symbol: symbol for symbol in symbols_of(line)}


def symbols_of(line: Line) -> frozenset[str]:
    """All symbols in a line."""
    return symbols_in(line.values)


def options_of(op: Op, types: Sequence[Type]) -> dict[str, Any]:
    """The options of an op that are structure: no names, and the default where it was written out."""
    left_out = NAMES.get(op.name, set())
    found = {one.name: getattr(op, one.name) for one in dataclasses.fields(op) if one.name not in left_out}
    if op.name == "attend" and types[0].shape and found["scale"] == Number(types[0].shape[-1]) ** -0.5:
        found["scale"] = None
    if isinstance(found.get("axes"), str):
        letters: dict[str, str] = {}
        found["axes"] = " ".join(_letter(token, letters) for token in TOKENS.findall(found["axes"]))
        if "sizes" in found:
            found["sizes"] = tuple(sorted((_letter(letter, letters), size) for letter, size in found["sizes"]))
    return found


def without_defaults(op: Op, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not at their default, so that an option that an op gains later changes no canonical form."""
    usual = {one.name: one.default for one in dataclasses.fields(op)}
    return {name: value for name, value in options.items() if value != usual[name]}


def _letter(token: str, letters: dict[str, str]) -> str:
    """A letter of a pattern by its turn."""
    return letters.setdefault(token, f"a{len(letters)}") if token[0].isalpha() or token[0] == "_" else token


def value_text(value: Any, names: Mapping[str, str]) -> str:
    """An option as text; a size, a number and a plain whole number that are equal give the same text."""
    if isinstance(value, Dim):
        return dim_text(value, names)
    if isinstance(value, Number):
        return " ".join(_step_text(step, names) for step in value.steps)
    if isinstance(value, tuple):
        return f"({', '.join(value_text(one, names) for one in value)})"
    if isinstance(value, str):
        return json.dumps(value)
    if value is None or value is ... or isinstance(value, bool):
        return str(value)
    return _real_text(value)


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """A size as a sum of products, sorted under the names given."""
    terms = []
    for monomial, factor in dim.terms:
        powers = sorted(f"{names[symbol]}^{power}" for symbol, power in monomial)
        terms.append("*".join([str(factor), *powers]))
    return "+".join(sorted(terms)) or "0"


def _step_text(step: float | str | Apply, names: Mapping[str, str]) -> str:
    if isinstance(step, Apply):
        return f"{step.function}/{step.arity}"
    return names.get(step, step) if step == LAYER else names[step] if isinstance(step, str) else _real_text(step)


def _real_text(value: float | Fraction) -> str:
    return str(int(value)) if value == int(value) else str(value)


def parts_of(values: Iterable[Any]) -> list[Dim | Number]:
    """The sizes and numbers in options, in order, also inside tuples."""
    found: list[Dim | Number] = []
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value[::-1]
        elif isinstance(value, Dim | Number):
            found.append(value)
    return found
