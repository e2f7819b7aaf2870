"""What is in force on a part without having been written: its options' defaults, its parameters and their inits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from blockgraph.dims import Dim, show
from blockgraph.elaborate.init import Init
from blockgraph.elaborate.instance import Instance, ParamSpec
from blockgraph.elaborate.parts import KindInstance
from blockgraph.elaborate.stack import StackInstance
from blockgraph.kind import Kind
from blockgraph.number import Number
from blockgraph.source.write import to_yaml

OF_EVERY_KIND = frozenset(Kind.model_fields)
"""`share` and `init`: told once for the file, and shown by the parameters."""


def defaults_of(part: Instance) -> Iterator[str]:
    """Each option that was left out, with the value in force: `kv_heads: H`, `mask: full`, `rotary.theta: 10000`."""
    for prefix, one in _with_inner(part):
        if one.options is not None:
            yield from (f"{prefix}{name}: {value_text(value)}" for name, value in _left_out(one, one.options))


def _left_out(part: Instance, options: Kind) -> Iterator[tuple[str, Any]]:
    for name in type(options).model_fields:
        if name in OF_EVERY_KIND:
            continue
        if name in part.decl.options:
            yield from _left_out_inside(part, options, name)
        elif name != "repeat" or not isinstance(part, StackInstance):
            yield name, _in_force(part, name, getattr(options, name))


def _left_out_inside(part: Instance, options: Kind, name: str) -> Iterator[tuple[str, Any]]:
    """What a mapping that was given leaves out: the `theta` of `rotary: {style: half}`."""
    given, value = part.decl.options[name], getattr(options, name)
    if not isinstance(given, dict):
        return
    if isinstance(value, BaseModel):
        for inner in type(value).model_fields:
            if inner not in given:
                yield f"{name}.{inner}", _in_force(part, f"{name}.{inner}", getattr(value, inner))
        return
    # A use of another kind may have words of its own beside that kind's options; the first is the default.
    schema = type(options).model_json_schema()["properties"][name]
    for inner, words in schema.get("properties", {}).items():
        if inner not in given and "enum" in words:
            yield f"{name}.{inner}", words["enum"][0]


def _in_force(part: Instance, option: str, otherwise: Any) -> Any:
    """The value of an option that is worked out from others, else the one it has."""
    if isinstance(part, KindInstance):
        for table in (part.kind.sizes, part.kind.numbers):
            for letter, text in table.items():
                if text.partition("=")[0].strip() == option and letter in part.letters:
                    return part.letters[letter]
    return otherwise


def _with_inner(part: Instance) -> Iterator[tuple[str, Instance]]:
    """A part and those inside its kind, each with the prefix of its names; of parts that are alike the first."""
    waiting = [("", part)]
    while waiting:
        prefix, one = waiting.pop()
        yield prefix, one
        inner = one.parts.values() if isinstance(one, KindInstance) else ()
        for below in reversed(tuple(inner)):
            stem, dot, number = below.path[len(one.path) :].lstrip(".").rpartition(".")
            alike = bool(dot) and number.isdigit()
            if not alike or number == "0":
                waiting.append((f"{prefix}{stem}.*." if alike else f"{prefix}{stem}{dot}{number}.", below))


def value_text(value: Any) -> str:
    """A value as a spec writes it: `none`, `true`, `1e-5`, `C/H`."""
    if value is None:
        return "none"
    if isinstance(value, Number) and value.value is not None:
        value = int(value.value) if value.value == int(value.value) else float(value.value)
    if isinstance(value, Dim | Number):
        return str(value)
    return to_yaml(value).strip()


def parameters_of(part: Instance) -> Iterator[str]:
    """Each parameter of a part in the order of drawing: `Wq (C, C) normal(0.02)`."""
    for prefix, one in _with_inner(part):
        yield from (f"{prefix}{parameter_text(spec)}" for spec in one.params.values())


def parameter_text(spec: ParamSpec) -> str:
    """Name, shape and init of a parameter."""
    return f"{spec.name} {show(spec.dims)} {init_text(spec.init)}"


def init_text(init: Init) -> str:
    """An init as a spec writes it."""
    amount = value_text(init.amount)
    if init.name == "constant":
        return amount
    return init.name if init.name in ("zeros", "ones", "eye") else f"{init.name}({amount})"
