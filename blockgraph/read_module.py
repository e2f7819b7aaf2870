"""One module of a spec file, from plain data to a `Module`: names, shapes, parts and equations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

from blockgraph.equation import MAX_EQUATIONS, parse_equations, parse_expression
from blockgraph.errors import Place, Related, SpecPath, near
from blockgraph.module import InputDecl, Line, ParamDecl, PartDecl, Report, SizeText
from blockgraph.op import DType
from blockgraph.records import dataclass
from blockgraph.scan import check_target
from blockgraph.schema import InputKeys, ParamKeys, misread, validate
from blockgraph.source import Document
from blockgraph.syntax import Call, Name, Unread, walk

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Names:
    """The names of a module; inputs, values, parts, parameters, dims and constants are all distinct."""

    document: Document
    report: Report
    known: dict[str, tuple[str, SpecPath]] = field(default_factory=dict)

    def declare(self, name: Any, what: str, path: SpecPath) -> bool:
        """Take a name, or report why it cannot be had. An input may be assigned again as a value."""
        if not is_name(name):
            help = "a name is made of letters, digits and _, and does not begin with a digit"
            self.report.add("BG013", f"`{name}` is no name", self._place(name, path), help)
            return False
        if (refusal := check_target(name, 0)) is not None:
            self.report.add("BG013", refusal.message, self._place(name, path), refusal.help)
            return False
        old = self.known.get(name)
        if old is None:
            self.known[name] = (what, path)
            return True
        if what == "value" and old[0] in ("value", "input"):
            return True
        related = (Related(f"the {old[0]} `{name}`", self._place(name, old[1])),)
        message = f"`{name}` is already the name of {article(old[0])}"
        self.report.add("BG029", message, self._place(name, path), "choose another name", related=related)
        return False

    def _place(self, name: Any, path: SpecPath) -> Any:
        return self.document.key(path) if path and path[-1] == name else self.document.value(path)


def is_name(text: object) -> bool:
    """Whether a text is made like a name."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def article(what: str) -> str:
    """`an input`, `a dim`."""
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def size_text(value: Any, path: SpecPath, document: Document, report: Report) -> SizeText | None:
    """A size: a whole number, a symbol or an expression. Reports what is wrong and reads what can be read."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        report.wrong_value("positive whole number or a dim", value, document.value(path))
        return None
    expr, refusals = parse_expression(str(value))
    for refusal in refusals:
        place = document.within(path, refusal.start, refusal.end)
        report.add(refusal.code, refusal.message, place, refusal.help)
    return None if expr is None else SizeText(expr, path)


def sizes(values: Any, path: SpecPath, document: Document, report: Report) -> tuple[tuple[SizeText, ...], bool]:
    """The axes of a shape that can be read, and whether these are all."""
    if not isinstance(values, list):
        report.wrong_value("a shape", values, document.value(path), "for example [B, T, C]")
        return (), False
    found = [size_text(value, (*path, index), document, report) for index, value in enumerate(values)]
    return tuple(one for one in found if one is not None), None not in found


def read_inputs(data: Mapping[str, Any], path: SpecPath, document: Document, report: Report) -> Iterator[InputDecl]:
    """The declared inputs in order."""
    for name, value in data.items():
        where = (*path, name)
        shape, dtype, below = value, "float", None
        if isinstance(value, dict):
            keys = validate(InputKeys, value, where, document, report, "an input")
            missed = frozenset() if keys is None else misread(keys, value)
            if keys is None or (keys.ids is None) == (keys.bool_ is None):
                if keys is not None and not missed:
                    help = "for example {ids: [B, T], below: V}"
                    report.add("BG022", f"`{name}` needs `ids` or `bool`", document.value(where), help)
                yield InputDecl(name, (), path=where, unread=True)
                continue
            shape, dtype = (keys.ids, "int") if keys.bool_ is None else (keys.bool_, "bool")
            where = (*where, "ids" if dtype == "int" else "bool")
            if keys.below is not None:
                below = size_text(keys.below, (*path, name, "below"), document, report)
            elif dtype == "int" and "below" not in missed:
                report.add(
                    "BG021",
                    "`below` is required for an input of ids",
                    document.value((*path, name)),
                    "add the vocabulary's dim",
                )
        dims, whole = sizes(shape, where, document, report)
        yield InputDecl(name, dims, _dtype(dtype), below, where, unread=not whole)


def _dtype(word: str) -> DType:
    return "int" if word == "int" else "bool" if word == "bool" else "float"


def read_params(data: Mapping[str, Any], path: SpecPath, document: Document, report: Report) -> Iterator[ParamDecl]:
    """The module's own parameters in order."""
    for name, value in data.items():
        where, init, frozen, shape = (*path, name), None, False, value
        if isinstance(value, dict):
            keys = validate(ParamKeys, value, where, document, report, "a parameter")
            if keys is None:
                yield ParamDecl(name, None, path=where)
                continue
            shape, init, frozen, where = keys.shape, keys.init, keys.frozen, (*where, "shape")
        dims, whole = sizes(shape, where, document, report)
        yield ParamDecl(name, dims if whole else None, init, frozen, (*path, name))


def split_use(
    value: Any, path: SpecPath, document: Document, report: Report, owner: str
) -> tuple[str, dict[str, Any]] | None:
    """The kind and the options of a use: `layer_norm`, or `{kind: linear, out: C}`."""
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict) or not value:
        report.wrong_value("a kind", value, document.value(path), "for example {kind: linear, out: C}")
        return None
    key = "kind"
    if not isinstance(value.get(key), str):
        slip = None if key in value else next((one for one in value if one == "type" or near(one, ("kind",))), None)
        cause = ("kind", document.value(path))  # the same for every use of an anchor
        if slip is None:
            message = f"`kind` is required for {owner}"
            report.add("BG021", message, document.key(path), "add `kind: ...`", cause=cause)
        elif slip == "type":
            help = "write `kind` instead of `type`"
            message = f"`kind` is required for {owner}"
            report.add("BG021", message, document.key((*path, slip)), help, cause=cause)
        else:
            message = f"unknown key `{slip}` in {owner}"
            report.add("BG020", message, document.key((*path, slip)), "did you mean `kind`?", cause=cause)
        if slip is None or not isinstance(value[slip], str):
            return None
        key = slip
    return value[key], {one: option for one, option in value.items() if one != key}


def read_part(name: str, value: Any, path: SpecPath, document: Document, report: Report) -> PartDecl:
    """A named part; after a finding one without a kind."""
    kind, options = split_use(value, path, document, report, f"the part `{name}`") or ("", {})
    return PartDecl(name, kind, options, path)


def read_equations(value: Any, path: SpecPath, document: Document, report: Report) -> list[Line]:
    """The equations of a text block or a list of texts, with their places."""
    if isinstance(value, str):
        return _read_text(value, path, document, report)
    if len(value) > MAX_EQUATIONS:
        parsed, where = parse_equations("\n".join(map(str, value))), (*path, MAX_EQUATIONS)
        if [one.code for one in parsed.refusals] == ["BG018"]:
            report.add("BG018", parsed.refusals[0].message, document.value(where), parsed.refusals[0].help)
            return [Line(equation, partial(document.within, where), where) for equation in parsed.equations]
    lines: list[Line] = []
    for index, item in enumerate(value):
        where = (*path, index)
        if isinstance(item, str):
            lines += _read_text(item, where, document, report)
        else:
            report.wrong_value("equation", item, document.value(where), "quote the text")
            lines += _guessed(item, partial(document.within, where), where)
    return lines


def _guessed(item: Any, locate: Callable[[int, int], Place], path: SpecPath) -> list[Line]:
    """A mapping where an equation should stand, with its names counted as set and used."""
    if not isinstance(item, dict) or len(item) != 1:
        return []
    ((left, right),) = item.items()
    equations = parse_equations(f"{str(left).partition('=')[0]} = {right}").equations
    names = tuple(node for one in equations for node in walk(one.expr) if isinstance(node, Name))
    calls = tuple(Name(0, 0, node.name) for one in equations for node in walk(one.expr) if isinstance(node, Call))
    return [Line(replace(one, expr=Unread(0, 0, (*names, *calls))), locate, path) for one in equations]


def _read_text(text: str, path: SpecPath, document: Document, report: Report) -> list[Line]:
    parsed = parse_equations(text)
    joined = bool(parsed.refusals) and document.joins(path)
    for refusal in parsed.refusals:
        place = document.within(path, refusal.start, refusal.end)
        help = f"YAML joins these lines into one: write `{path[-1]}: |`" if joined else refusal.help
        report.add(refusal.code, refusal.message, place, help)
    return [Line(equation, partial(document.within, path), path) for equation in parsed.equations]
