"""A built-in kind explained: its formula, options, parameters, the equations it stands for and an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from blockgraph.dims import Dim
from blockgraph.explain.defaults import value_text
from blockgraph.explain.example import example_of, letters_by_option, needed_options
from blockgraph.explain.table import WIDTH, columns, docstring, fenced, section
from blockgraph.explain.written_out import wrapped
from blockgraph.kind import Kind, Own, markers

READS = {"real": "number", "flag": "true or false", "use": "a kind", "group": "mapping"}
HEADINGS = ("name", "value", "default", "meaning")


def kind_text(kind: type[Kind], width: int = WIDTH) -> str:
    """All there is to know about a kind."""
    lines = [f"{kind.name}: a kind", "", *docstring(kind, width)]
    if kind.equations is Kind.equations:
        lines += section("Options", columns([HEADINGS, *_options(kind)], width))
    else:
        opened = _opened(kind)
        lines += section("Inputs", columns(list(_inputs(kind)), width))
        lines += section("Options", columns([HEADINGS, *_options(kind)], width))
        lines += section("Letters below", columns(list(_letters(kind)), width))
        lines += section("Parameters, in the order they are drawn", columns(list(_parameters(kind, opened)), width))
        lines += section("Parts inside", columns(list(_parts(opened)), width))
        lines += section(
            "Equations, with the defaults",
            [part for line in fenced(opened.equations(frozenset())) for part in wrapped(line, width - 2)],
        )
    lines += section("Example", fenced(example_of(kind, width - 2)))
    return "\n".join(lines) + "\n"


def _opened(kind: type[Kind]) -> Kind:
    """The kind with its needed options, sizes by letter; two of each where it wants a number."""
    options = needed_options(kind)
    letters = letters_by_option(kind)
    sizes = {name: Dim(letter) for name, letter in letters.items() if name in options}
    needed = {letters[name]: 2 for name in sizes}
    return kind.model_validate(options).model_copy(update=sizes).settle(needed)


def _parts(opened: Kind) -> Iterator[tuple[str, str]]:
    for name, use in opened.parts().items():
        kind, options = (use["kind"], use) if isinstance(use, dict) else (use, {})
        told = ", ".join(f"{key}: {_plain(one)}" for key, one in options.items() if key != "kind")
        yield name, f"{kind} ({told})" if told else kind


def _plain(value: Any) -> Any:
    if not isinstance(value, Dim):
        return value
    number = value.as_int()
    return str(value) if number is None else number


def _inputs(kind: type[Kind]) -> Iterator[tuple[str, str]]:
    for name, axes in kind.inputs.items():
        shape = "any shape" if axes == "..." else f"({', '.join(axes.split())})"
        yield name, shape + (" (may be left out)" if name in kind.optional else "")


def _options(kind: type[Kind]) -> Iterator[tuple[str, str, str, str]]:
    """Name, what it takes, default and meaning; those of every kind last."""
    of_every_kind = list(Kind.model_fields)
    for name in sorted(kind.model_fields, key=of_every_kind.__contains__):
        mark = markers(kind).get(name)
        yield _option(kind, kind, name, name)
        if mark is not None and mark.model is not None:
            yield from (_option(kind, mark.model, inner, f"{name}.{inner}") for inner in mark.model.model_fields)


def _option(kind: type[Kind], model: type[BaseModel], name: str, shown: str) -> tuple[str, str, str, str]:
    field = model.model_fields[name]
    formula = dict(_formulas(kind)).get(shown)
    default = "must be given" if field.is_required() else formula or _default(name, field.default)
    return shown, _takes(model, name), default, field.description or ""


def _takes(model: type[BaseModel], name: str) -> str:
    """What an option takes: `full | causal`, `size | none`."""
    mark = markers(model).get(name)
    if mark is None:
        return _schema_words(model, name)
    words = " | ".join(mark.choices) if mark.choices else READS.get(mark.reads, mark.reads)
    off = mark.off or mark.reads == "group"
    return f"{words} | none" if off else words


def _default(name: str, value: Any) -> str:
    return "by parameter" if name == "init" else value_text(value)


def _schema_words(model: type[BaseModel], name: str) -> str:
    """What an option takes, from its JSON schema: `true or false | list`."""
    given = model.model_json_schema()["properties"][name]
    names = {"boolean": "true or false", "array": "list", "string": "text", "object": "mapping"}
    types = [one.get("type", "") for one in given.get("anyOf", [given])]
    return " | ".join(names.get(one, one) for one in types if one)


def _formulas(kind: type[Kind]) -> Iterator[tuple[str, str]]:
    """Options whose default is worked out from others, with the formula in words of options."""
    tables = {**kind.sizes, **kind.numbers}
    for text in tables.values():
        option, equals, formula = (part.strip() for part in text.partition("="))
        if equals:
            yield option, formula


def _letters(kind: type[Kind]) -> Iterator[tuple[str, str]]:
    for letter, text in kind.sizes.items():
        yield letter, text.partition("=")[0].strip()
    for name, axes in kind.inputs.items():
        width = axes.split()[-1]
        if width not in ("...", *kind.sizes):
            yield width, f"the {'width' if width in kind.widths else 'last axis'} of `{name}`"


def _parameters(kind: type[Kind], opened: Kind) -> Iterator[tuple[str, str, str, str]]:
    """All parameters there can be, with the choice that brings those that the defaults leave out."""
    base = [own.name for own in opened.params()]
    listed: dict[str, tuple[Own, str]] = {}
    order: list[str] = []
    for variant, when in ((tuple(opened.params()), ""), *_variants(kind, opened)):
        place = 0
        for own in variant:
            if own.name not in listed:
                listed[own.name] = (own, "" if own.name in base else when)
                order.insert(place, own.name)
            place = order.index(own.name) + 1
    yield from (_row(*listed[name]) for name in order)


def _variants(kind: type[Kind], opened: Kind) -> Iterator[tuple[tuple[Own, ...], str]]:
    """The parameters after one switch was turned, and what was turned."""
    for name in kind.model_fields:
        value = getattr(opened, name)
        if isinstance(value, bool) and name not in Kind.model_fields:
            yield _with(kind, {name: not value}), f"with {name}: {value_text(not value)}"


def _row(own: Own, when: str) -> tuple[str, str, str, str]:
    return own.name, f"({own.dims})" if ", " in own.dims else f"({own.dims},)", own.init, when


def _with(kind: type[Kind], changes: Mapping[str, Any]) -> tuple[Own, ...]:
    try:
        return tuple(kind.model_validate({**needed_options(kind), **changes}).params())
    except ValidationError:
        return ()
