"""A function of the equation language explained: how it is called, what it takes, what is inside it."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from blockgraph.dims import Dim
from blockgraph.elaborate.calls import usage
from blockgraph.elaborate.frame import SYMBOLS
from blockgraph.explain.table import WIDTH, columns, docstring, section
from blockgraph.explain.writing import expansion_of
from blockgraph.explain.written_out import wrapped
from blockgraph.op import Op, signature_of

SAMPLES: Mapping[str, Any] = {
    "heads": Dim("H"), "k": 2, "width": Dim("D"), "style": "half", "buckets": 32, "distance": 128, "direction": "both",
    "window": Dim("W"), "size": Dim("E"), "steps": 1, "parts": 2,
}  # fmt: skip
"""What an example gives for an option that must be given, by the option's name."""

DTYPES = {"int": "ids", "bool": "true and false", "any": "anything"}
NOT_TOLD = ("given", "sizes")


def function_text(op: type[Op], width: int = WIDTH) -> str:
    """All there is to know about a function."""
    lines = [f"{op.name}: a function of the equation language", ""]
    lines += [f"  {line}" for line in wrapped(_short(usage(op)), width - 2)]
    lines += ["", *docstring(op, width)]
    if op.activation:
        lines += ["", "It may stand where a kind asks for an `activation`."]
    lines += section("Operands", columns(list(_operands(op)), width))
    options = list(_options(op))
    lines += section("Options", columns([("name", "default"), *options] if options else [], width))
    lines += section("Shapes", [str(op.shape)] if op.shape is not None else [])
    lines += _inside(op, width)
    lines += section("Example", [example_of(op)])
    return "\n".join(lines) + "\n"


def _operands(op: type[Op]) -> Iterator[tuple[str, str]]:
    signature = signature_of(op)
    for index, name in enumerate(signature.operands):
        dtype = op.operand_dtypes[index] if index < len(op.operand_dtypes) else op.optional_dtypes.get(name, "float")
        words = [DTYPES.get(dtype, "numbers")]
        words += ["may be left out"] if name in signature.optional else []
        words += ["any number of values"] if name == signature.variadic else []
        words += ["no gradient"] if index in op.cuts else []
        yield name, ", ".join(words)


def _options(op: type[Op]) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(op):
        if field.name in NOT_TOLD:
            continue
        missing = field.default is dataclasses.MISSING
        yield field.name, "must be given" if missing else _shown(field.default)
    if "sizes" in signature_of(op).options:
        yield "AXIS=size", "sizes of axes that the pattern makes"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else _short(str(value))


def _short(text: str) -> str:
    """`1e-5` for Python's `1e-05`."""
    return re.sub(r"(\de-)0(\d)", r"\1\2", text)


def _inside(op: type[Op], width: int) -> list[str]:
    """The equations of the expansion, if there is one that can be written."""
    if op.expand is Op.expand:
        return []
    needed = {field.name: SAMPLES.get(field.name) for field in dataclasses.fields(op) if _is_needed(field)}
    if None in needed.values():
        return []
    found = expansion_of(op, needed)
    if found is None:
        return []
    shapes, equations = found
    given = "".join(f", {name} {_shown(value)}" for name, value in needed.items())
    lines = [part for line in equations for part in wrapped(_short(line), width - 2)]
    *title, last = textwrap.wrap(f"The same in simpler functions, for {shapes}{given}", width - 1)
    return ["", *title, *section(last, lines)[1:]]


def _is_needed(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def example_of(op: type[Op]) -> str:
    """One equation that calls the function, from its own documentation if that has one."""
    signature = signature_of(op)
    if op.name in SYMBOLS:
        return f"y = {signature.operands[0]} {SYMBOLS[op.name]} {signature.operands[1]}"
    found = re.search(rf"`({op.name}\([^`]*\))`", op.__doc__ or "")
    if found is not None:
        return f"{_targets(found[1], op)} = {found[1]}"
    args = [name for name in signature.positions if name not in signature.optional and name != signature.variadic]
    words = [name if name in signature.operands else _argument(name) for name in args]
    words += [f"x{i}" for i in (1, 2)] if signature.variadic is not None else []
    words += [
        f"{field.name}={_argument(field.name)}"
        for field in dataclasses.fields(op)
        if _is_needed(field) and field.name not in signature.positions
    ]
    call = f"{op.name}({', '.join(words)})"
    return f"{_targets(call, op)} = {call}"


def _argument(name: str) -> str:
    return _shown(SAMPLES[name])


def _targets(call: str, op: type[Op]) -> str:
    """As many names as there are results."""
    cut = re.search(r"\[([^\]]*,[^\]]*)\]\)$", call)
    if op.name == "split" and cut is not None:
        return ", ".join(f"y{i + 1}" for i in range(cut[1].count(",") + 1))
    named = re.match(r"(\w+(?:, \w+)+) = ", op.__doc__ or "")
    if named is not None:
        return named[1]
    count = len(op.shape.outputs) if op.shape is not None else 1
    return "y" if count == 1 else ", ".join(f"y{i + 1}" for i in range(count))
