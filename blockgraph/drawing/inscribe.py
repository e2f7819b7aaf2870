"""What is written in the box of an op, and what of parameters and numbers, which are no boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from blockgraph.drawing.diagram import Box, Wire
from blockgraph.graph import Node
from blockgraph.op import Op, signature_of

Value = Wire | str
"""What a value is in the drawing: a wire, or the text of a parameter or number."""

OPS_LIKE_PARTS: Final = {"attend": "attention"}
SYMMETRIC: Final = frozenset({"+", "×", "==", "!="})
SIGNS: Final = SYMMETRIC | {"−", "÷", "@", "**", "<", "<=", ">", ">="}
BRIEF: Final = 32  # characters of an operand beside its op
HIDDEN: Final = "-inf"


def op_box(op: Op, values: Sequence[Value], plate: int, write: Callable[[str], str] = str) -> Box:
    """The box of an op that stands in an equation; `write` puts numbers for symbols in its small lines."""
    wires = tuple(value for value in values if isinstance(value, Wire))
    bare = [value for value in values if isinstance(value, str)]
    sign = symbol(op)
    if sign:
        return _sign_box(sign, values, wires, bare, plate)
    label, more = titled(op)
    details = (label.removeprefix(f"{op.name} ").replace("->", "→"),) if "->" in label else tuple(map(write, more))
    if op.name == "where" and values[2:] == [HIDDEN]:
        kept = () if not isinstance(values[0], str) else (f"keeps {values[0]}",)
        last = len(wires) - 1
        wires = tuple(replace(wire, name="" if place == last else "keep") for place, wire in enumerate(wires))
        return Box("mask", "box", "other", kept, wires, plate, direct=True, trunk=last)
    details = (*details, f"with {', '.join(bare)}") if bare else details
    trunk = 0 if op.name in OPS_LIKE_PARTS and len(wires) == len(values) else None
    title = op.name if "->" in label else label
    return Box(title, "box", family(op, bare), details, wires, plate, direct=True, trunk=trunk)


def titled(op: Op) -> tuple[str, tuple[str, ...]]:
    """The label of an op as a title and the small lines under it: `attend causal`, `window W`."""
    title, *more = op.label().split(" · ")
    return title, tuple(more)


def family(op: Op, bare: Sequence[str] = ()) -> str:
    """To which family the box of an op belongs; `bare` are the operands that are no wires."""
    return "norm" if op.role == "norm" else OPS_LIKE_PARTS.get(op.name, "linear" if bare else "other")


def _sign_box(sign: str, values: Sequence[Value], wires: tuple[Wire, ...], bare: list[str], plate: int) -> Box:
    """A sign between its operands: a circle; where their order matters `a − b`, with the names at the arrows."""
    if len(values) != 2:
        return Box(sign, "pill", "operator", (), wires, plate, direct=True)
    if len(bare) == 2:
        return Box(f"{bare[0]} {sign} {bare[1]}", "pill", "operator", (), wires, plate, direct=True)
    if len(bare) == 1:
        text = f"{bare[0]} {sign} ·" if isinstance(values[0], str) and sign not in "+×" else f"{sign} {bare[0]}"
        return Box(text, "pill", "linear" if sign == "@" else "operator", (), wires, plate, direct=True)
    if sign == "×" and wires[0] == wires[1]:
        return Box("square", "pill", "operator", (), wires[:1], plate, direct=True)
    if sign in SYMMETRIC and len(sign) == 1:
        return Box(sign, "circle", "operator", (), wires, plate, direct=True)
    return Box(f"a {sign} b", "pill", "operator", (), wires, plate, direct=True, trunk=0)


def operand_names(op: Op, own: Sequence[str]) -> list[str]:
    """What the operands of an op are called where their order matters; `own` are the names they have themselves."""
    if len(own) < 2 or symbol(op) in SYMMETRIC:
        return [""] * len(own)
    if symbol(op):
        return ["a", "b"]
    if signature_of(type(op)).variadic is not None:
        return [name or str(place + 1) for place, name in enumerate(own)]
    return [op.operand_name(place) for place in range(len(own))]


def symbol(op: Op) -> str:
    """The sign of an op that is written between its operands, or nothing."""
    label = op.label()
    return label if label in SIGNS else ""


def source_text(node: Node, *, inside: bool) -> str:
    """A parameter by its name, one inside a part by the part's name too; a number as it is written."""
    assert isinstance(node.op, Op)
    path = str(getattr(node.op, "path", ""))
    return _brief(".".join(path.split(".")[-2:]) if inside else node.op.label())


def bare_text(node: Node, operands: list[str]) -> str:
    """A value made of parameters and numbers alone, as in the equation."""
    assert isinstance(node.op, Op)
    sign, label = symbol(node.op), node.op.label()
    if sign and len(operands) == 2:
        return _brief(f"{operands[0]} {sign} {operands[1]}")
    if sign:
        return _brief(f"{sign}{operands[0]}")
    if not operands:
        return _brief(label)
    if label == "T" or label.startswith("["):
        return _brief(f"{operands[0]}{'.T' if label == 'T' else label}")
    name = node.op.name if "->" in label else label
    return _brief(f"{name}({', '.join(operands)})")


def _brief(text: str) -> str:
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"
